//! Strategic merge patch: a merge patch that knows which lists are maps in disguise.

use super::operations::unprocessable;
use super::words;
use crate::schema::{Strategy, Type, View};
use crate::status::Status;
use serde_json::{Map, Value};

const MARKER: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_LIST: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// What is wrong with a patch, and with it the code of the answer.
enum Fault {
    /// 400 with this sentence.
    Malformed(&'static str),
    /// 422.
    ListOfLists,
    /// 500 with this sentence: upstream lets these through unclassified.
    Other(String),
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Malformed(why) => Status::bad_request(why),
            Fault::ListOfLists => unprocessable(),
            Fault::Other(why) => Status::new(500, "", why),
        }
    }
}

const BAD_ORDER: Fault = Fault::Malformed("invalid patch format of setElementOrder list");
const BAD_DELETE: Fault = Fault::Malformed("invalid patch format of primitive list");
const BAD_RETAIN: Fault = Fault::Malformed("invalid patch format of retainKeys");

fn no_merge_key(item: &Value, key: &str) -> Fault {
    Fault::Other(format!("map: {} does not contain declared merge key: {key}", words::plain(item)))
}

fn wrong_type(want: &str, got: &Value) -> Fault {
    Fault::Other(format!("expected a {want}, but received a {}", words::type_name(got)))
}

/// How one field is merged.
#[derive(Clone, Copy)]
struct Field<'a> {
    view: Option<View<'a>>,
    merge: bool,
    replace: bool,
    key: &'a str,
}

impl<'a> Field<'a> {
    fn of(parent: Option<View<'a>>, name: &str) -> Result<Self, Fault> {
        let Some(parent) = parent else {
            return Ok(Self { view: None, merge: false, replace: false, key: "" });
        };
        let view = parent.field(name);
        if view.is_none() && parent.ty() == Type::Object && !parent.schema().properties.is_empty() {
            let of = parent.name().and_then(|n| n.rsplit('.').next()).unwrap_or_default();
            let why = format!("unable to find api field in struct {of} for the json field {name:?}");
            return Err(Fault::Other(why));
        }
        // `replace` exists on one field of one kind; the strategy as parsed does not tell it from none.
        let words = &parent.schema().raw["properties"][name]["x-kubernetes-patch-strategy"];
        let strategy = view.map(View::strategy);
        Ok(Self {
            view,
            merge: strategy.is_some_and(|s: &Strategy| s.merge),
            replace: words.as_str() == Some("replace"),
            key: strategy.and_then(|s| s.merge_key.as_deref()).unwrap_or_default(),
        })
    }

    fn items(self) -> Option<View<'a>> {
        self.view.and_then(View::items)
    }
}

/// Applies a patch to an object.
pub(super) fn apply(view: Option<View<'_>>, doc: &Value, patch: &Value) -> Result<Value, Status> {
    let name = words::json_name(patch);
    let patch = match patch {
        Value::Object(map) => map.clone(),
        Value::Null => Object::new(),
        _ => {
            return Err(Status::bad_request(format!(
                "json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let doc = doc.as_object().cloned().unwrap_or_default();
    Ok(Value::Object(merge_map(view, doc, patch)?))
}

fn merge_map(view: Option<View<'_>>, mut original: Object, mut patch: Object) -> Result<Object, Fault> {
    if let Some(directive) = patch.get(MARKER) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(MARKER);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(&Value::Object(patch.clone()))),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    ordered_lists(view, &mut original, &mut patch)?;
    for (key, value) in patch {
        let is_delete = key.starts_with(DELETE_LIST);
        let key = if is_delete { parallel(&key, DELETE_LIST).ok_or(BAD_DELETE)?.to_owned() } else { key };
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        let merged = match (original.get_mut(&key).map(Value::take), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let field = Field::of(view, &key)?;
                Some(Value::Object(if field.replace { new } else { merge_map(field.view, old, new)? }))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let field = Field::of(view, &key)?;
                Some(Value::Array(merge_list(field, old, new, is_delete)?))
            }
            (old, new) if is_delete => {
                drop(new);
                old
            }
            (_, mut new) => {
                drop_nulls(&mut new);
                without_directives(new)
            }
        };
        match merged {
            Some(value) => original.insert(key, value),
            None => original.remove(&key),
        };
    }
    Ok(original)
}

fn unknown_directive(map: &Value) -> Fault {
    let directive = words::plain(&map[MARKER]);
    Fault::Other(format!("unknown patch type: {directive} in map: {}", words::plain(map)))
}

/// `PREFIX/name` gives `name`.
fn parallel<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, name) = key.split_once('/')?;
    (start == prefix).then_some(name)
}

/// Drops what `$retainKeys` does not list; everything the patch sets must be listed.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), Fault> {
    let Some(directive) = patch.remove(RETAIN) else { return Ok(()) };
    let listed = directive.as_array().ok_or(BAD_RETAIN)?;
    let listed = |key: &String| listed.iter().any(|k| k.as_str() == Some(key));
    let unlisted = patch.iter().any(|(key, value)| {
        !value.is_null() && !key.starts_with(DELETE_LIST) && !key.starts_with(ORDER) && !listed(key)
    });
    if unlisted {
        return Err(BAD_RETAIN);
    }
    original.retain(|key, _| listed(key));
    Ok(())
}

/// Merges the lists that come with a `$setElementOrder` and takes them out of the patch.
fn ordered_lists(view: Option<View<'_>>, original: &mut Object, patch: &mut Object) -> Result<(), Fault> {
    let directives: Vec<String> = patch.keys().filter(|k| k.starts_with(ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(wrong_type("[]interface {}", &other.unwrap_or_default())),
        };
        let key = parallel(&directive, ORDER).ok_or(BAD_ORDER)?;
        let list = |value: Option<&Value>| match value {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list.clone())),
            Some(other) => Err(wrong_type("[]interface {}", other)),
        };
        let old = list(original.get(key))?;
        let new = list(patch.get(key))?;
        let field = Field::of(view, key)?;
        check_order(new.as_deref().unwrap_or_default(), &order, field.key)?;
        let server = old.clone().unwrap_or_default();
        let kind = (server.clone(), new.clone().unwrap_or_default());
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => merge_list(field, old, new, false)?,
        };
        let (listed, rest) = partition(merged, &order, field.key)?;
        let maps = element_is_map(&kind.0, &kind.1)?;
        let sorted = in_order(listed, rest, &order, &server, if maps { Some(field.key) } else { None })?;
        original.insert(key.to_owned(), Value::Array(sorted));
        patch.remove(key);
    }
    Ok(())
}

/// The patch may only list entries in the order the directive gives, and none beside it.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), Fault> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut kept = Vec::new();
    for item in patch {
        if !key.is_empty() && !item.is_object() {
            return Err(wrong_type("map[string]interface {}", item));
        }
        if key.is_empty() || item.get(MARKER).is_none() {
            kept.push(item);
        }
    }
    let mut next = kept.into_iter().peekable();
    for wanted in order {
        let Some(item) = next.peek() else { return Ok(()) };
        if entry_key(item, key)? == entry_key(wanted, key)? {
            next.next();
        }
    }
    if next.peek().is_none() {
        return Ok(());
    }
    let plain = |list: &[Value]| words::plain(&Value::Array(list.to_vec()));
    Err(Fault::Other(format!(
        "The order in patch list:\n{}\n doesn't match {ORDER} list:\n{}\n",
        plain(patch),
        plain(order)
    )))
}

/// What identifies an entry: the value of its merge key, or itself.
fn entry_key<'a>(item: &'a Value, key: &str) -> Result<&'a Value, Fault> {
    if key.is_empty() {
        return Ok(item);
    }
    let map = item.as_object().ok_or_else(|| wrong_type("map[string]interface {}", item))?;
    map.get(key).ok_or_else(|| no_merge_key(item, key))
}

fn merge_list(
    field: Field<'_>,
    original: Vec<Value>,
    patch: Vec<Value>,
    is_delete: bool,
) -> Result<Vec<Value>, Fault> {
    if !field.merge && !is_delete {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if !element_is_map(&original, &patch)? {
        if is_delete {
            return Ok(original.into_iter().filter(|v| !patch.contains(v)).collect());
        }
        let mut merged: Vec<Value> = Vec::new();
        for value in original.iter().chain(&patch) {
            if !merged.contains(value) {
                merged.push(value.clone());
            }
        }
        let (listed, rest) = partition(merged, &patch, field.key)?;
        return in_order(listed, rest, &patch, &original, None);
    }
    if field.key.is_empty() {
        return Err(Fault::Other("cannot merge lists without merge key for struct".to_owned()));
    }
    let (original, patch) = special_entries(original, patch, field.key)?;
    let server = original.clone();
    let mut merged = original;
    for item in &patch {
        let id = entry_key(item, field.key)?;
        match position(&merged, field.key, id)? {
            Some(at) => {
                if let (Value::Object(old), Value::Object(new)) = (merged[at].take(), item.clone()) {
                    merged[at] = Value::Object(merge_map(field.items(), old, new)?);
                }
            }
            None => merged.push(item.clone()),
        }
    }
    let (listed, rest) = partition(merged, &patch, field.key)?;
    in_order(listed, rest, &patch, &server, Some(field.key))
}

/// Carries out the entries that are directives and takes them out of the patch.
fn special_entries(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Fault> {
    let mut plain = Vec::new();
    let mut replace = false;
    for item in patch {
        match item.get(MARKER).map(Value::as_str) {
            None => plain.push(item),
            Some(Some("delete")) => {
                let id = entry_key(&item, key)?;
                while let Some(at) = position(&original, key, id)? {
                    original.remove(at);
                }
            }
            Some(Some("replace")) => replace = true,
            Some(Some("merge")) => {
                return Err(Fault::Other("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some(_) => return Err(unknown_directive(&item)),
        }
    }
    Ok(if replace { (plain, Vec::new()) } else { (original, plain) })
}

fn position(list: &[Value], key: &str, id: &Value) -> Result<Option<usize>, Fault> {
    for (at, item) in list.iter().enumerate() {
        let map = item.as_object().ok_or_else(|| Fault::Other(format!("value for key {at} is not a map")))?;
        if map.get(key) == Some(id) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Whether a list holds maps; all entries of both sides must be of one kind.
fn element_is_map(original: &[Value], patch: &[Value]) -> Result<bool, Fault> {
    let mut all = original.iter().chain(patch);
    let Some(first) = all.next() else {
        return Err(Fault::Other("no elements in any of the given slices".to_owned()));
    };
    if first.is_array() {
        return Err(Fault::ListOfLists);
    }
    if all.any(|v| words::type_name(v) != words::type_name(first)) {
        let plain = |list: &[Value]| words::plain(&Value::Array(list.to_vec()));
        return Err(Fault::Other(format!(
            "list element types are not identical: [{} {}]",
            plain(original),
            plain(patch)
        )));
    }
    Ok(first.is_object())
}

/// Splits entries into those `by` knows and the others.
fn partition(items: Vec<Value>, by: &[Value], key: &str) -> Result<(Vec<Value>, Vec<Value>), Fault> {
    let (mut listed, mut rest) = (Vec::new(), Vec::new());
    for item in items {
        let known = if key.is_empty() {
            by.contains(&item)
        } else {
            position(by, key, entry_key(&item, key)?)?.is_some()
        };
        if known { listed.push(item) } else { rest.push(item) }
    }
    Ok((listed, rest))
}

/// Entries of the patch in its order, with those only the server has woven in where the live list had them.
fn in_order(
    mut listed: Vec<Value>,
    mut rest: Vec<Value>,
    order: &[Value],
    server: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, Fault> {
    if let Some(key) = key {
        for item in order.iter().chain(server) {
            entry_key(item, key)?;
        }
    }
    let id = |item: &Value| match key {
        Some(key) => item.get(key).cloned().unwrap_or_default(),
        None => item.clone(),
    };
    let place = |list: &[Value], item: &Value| {
        let wanted = id(item);
        list.iter().position(|v| id(v) == wanted)
    };
    listed.sort_by_key(|item| place(order, item));
    rest.sort_by_key(|item| place(server, item));
    let mut out = Vec::with_capacity(listed.len() + rest.len());
    let mut rest = rest.into_iter().peekable();
    for item in listed {
        while let Some(before) = rest.peek() {
            match (place(server, before), place(server, &item)) {
                (Some(a), Some(b)) if a < b => out.extend(rest.next()),
                _ => break,
            }
        }
        out.push(item);
    }
    out.extend(rest);
    Ok(out)
}

/// Nulls mean deletion; in something that is new there is nothing to delete.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// A new value without the directives in it; `None` when it is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(MARKER) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(k, v)| Some((k, without_directives(v)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

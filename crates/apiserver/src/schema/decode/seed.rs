//! One value of a body, read with the schema that applies to it.

use crate::quote::quoted;
use crate::schema::gotime::{self, Precision};
use crate::schema::{Type, View, builtin};
use base64::Engine as _;
use loadline_machinery::quantity;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

/// Upstream stops collecting strict errors here.
const MOST_STRICT: usize = 100;
/// The recursive part of a `CustomResourceDefinition`.
const SCHEMA_PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// What has been found so far.
#[derive(Default)]
pub(super) struct State {
    /// Strict errors.
    pub(super) strict: Vec<String>,
    /// The first value of a wrong type; decoding goes on after it.
    pub(super) first: Option<String>,
    /// The refusal of a type that reads itself; decoding ends with it.
    pub(super) fatal: Option<String>,
    /// Keys and indices down to the current value, as strict errors print them.
    path: String,
    /// Names of fields down to the current value, as type errors print them.
    fields: Vec<String>,
    /// Go struct the current field belongs to.
    owner: String,
}

impl State {
    fn object_to(&mut self, what: &str, key: &str) {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        let error = format!("{what} field {}", quoted(&path));
        if self.strict.len() < MOST_STRICT && !self.strict.contains(&error) {
            self.strict.push(error);
        }
    }

    fn mismatch(&self, found: &str, wanted: &str) -> String {
        if self.owner.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        }
        let field = self.fields.join(".");
        format!("json: cannot unmarshal {found} into Go struct field {}.{field} of type {wanted}", self.owner)
    }
}

/// How a value reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A Go struct.
    Struct,
    /// A Go map.
    Map,
    /// A Go slice.
    List,
    /// One of the scalars.
    Scalar,
    /// Bytes, written in base64.
    Bytes,
    /// An amount.
    Quantity,
    /// A number or a string.
    IntOrString,
    /// A time.
    Time(Precision),
    /// A type that takes any JSON and looks no further.
    Opaque,
    /// No Go type at all.
    Untyped,
}

/// Reads one value.
pub(super) struct Seed<'a, 's> {
    view: Option<View<'a>>,
    shape: Shape,
    go: Cow<'a, str>,
    state: &'s RefCell<State>,
    /// Whether strict errors below are kept to ourselves, as types that read themselves do.
    silent: bool,
}

impl<'a, 's> Seed<'a, 's> {
    pub(super) fn root(view: Option<View<'a>>, state: &'s RefCell<State>) -> Self {
        Self::new(view, Cow::Borrowed(""), state, false)
    }

    fn new(view: Option<View<'a>>, go: Cow<'a, str>, state: &'s RefCell<State>, silent: bool) -> Self {
        let shape = view.map_or(Shape::Untyped, shape);
        let go = if go.is_empty() { view.map_or(go, |view| Cow::Owned(go_type(view))) } else { go };
        Self { view, shape, go, state, silent }
    }

    /// Records a value of a wrong type; the field stays unset.
    fn mismatch(&self, found: &str) -> Option<Value> {
        let mut state = self.state.borrow_mut();
        if state.first.is_none() {
            state.first = Some(state.mismatch(found, &self.go));
        }
        None
    }

    /// Ends decoding with a refusal.
    fn refuse<E: serde::de::Error>(&self, error: String) -> E {
        self.state.borrow_mut().fatal = Some(error);
        E::custom("refused")
    }

    /// A list or an object where an amount should be.
    fn no_quantity<E: serde::de::Error>(&self) -> E {
        let error = quantity::Error::Shape { text: String::new() };
        self.refuse(error.in_kubernetes_words().to_owned())
    }

    fn scalar<E: serde::de::Error>(&self, value: Value, found: &str) -> Result<Option<Value>, E> {
        let ty = self.view.map_or(Type::Any, View::ty);
        Ok(match self.shape {
            Shape::Untyped | Shape::Opaque => Some(value),
            Shape::Scalar => match (ty, &value) {
                (Type::Any, _)
                | (Type::String, Value::String(_))
                | (Type::Boolean, Value::Bool(_))
                | (Type::Number, Value::Number(_)) => Some(value),
                (Type::Integer, Value::Number(number)) => {
                    if fits(number, self.go.as_ref()) {
                        Some(value)
                    } else {
                        self.mismatch(&format!("number {number}"))
                    }
                }
                _ => self.mismatch(found),
            },
            Shape::Bytes => match &value {
                Value::String(text) => match base64::engine::general_purpose::STANDARD.decode(text) {
                    Ok(_) => Some(value),
                    Err(error) => {
                        let at = illegal_at(&error, text);
                        let mut state = self.state.borrow_mut();
                        state.first.get_or_insert(format!("illegal base64 data at input byte {at}"));
                        None
                    }
                },
                _ => self.mismatch(found),
            },
            Shape::Quantity => {
                let text = match &value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let amount = quantity::stored(&text)
                    .map_err(|error| self.refuse(error.in_kubernetes_words().to_owned()))?;
                Some(Value::String(amount))
            }
            Shape::IntOrString => match &value {
                Value::String(_) => Some(value),
                Value::Number(number) if fits(number, "int32") => Some(value),
                Value::Number(number) => return Err(self.wrong(&format!("number {number}"), "int32")),
                _ => return Err(self.wrong(found, "int32")),
            },
            Shape::Time(precision) => match &value {
                Value::String(text) => {
                    let time = gotime::canonical(text, precision).map_err(|error| self.refuse(error))?;
                    Some(Value::String(time))
                }
                _ => return Err(self.wrong(found, "string")),
            },
            Shape::Struct | Shape::Map | Shape::List => self.mismatch(found),
        })
    }

    /// A wrong type below a type that reads itself.
    fn wrong<E: serde::de::Error>(&self, found: &str, wanted: &str) -> E {
        let error = self.state.borrow().mismatch(found, wanted);
        self.refuse(error)
    }

    fn structure<'de, A: MapAccess<'de>>(&self, view: View<'a>, map: &mut A) -> Result<Value, A::Error> {
        let definition = view.name().unwrap_or_default();
        let owner = definition.rsplit('.').next().unwrap_or_default();
        let mut out = Map::new();
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let Some(field) = view.schema().properties.contains_key(&key).then(|| view.field(&key)).flatten()
            else {
                if !self.silent {
                    self.state.borrow_mut().object_to("unknown", &key);
                }
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if !seen.insert(key.clone()) && !self.silent {
                self.state.borrow_mut().object_to("duplicate", &key);
            }
            let type_meta = key == "kind" || key == "apiVersion";
            let (embedded, go) = match builtin::go_field(definition, &key) {
                Some(found) => found,
                None if type_meta && is_kind(view) => ("TypeMeta", ""),
                None => ("", ""),
            };
            let before = {
                let mut state = self.state.borrow_mut();
                let depth = state.fields.len();
                if !embedded.is_empty() {
                    state.fields.push(embedded.to_owned());
                }
                state.fields.push(key.clone());
                (depth, std::mem::replace(&mut state.owner, owner.to_owned()), state.push(&key))
            };
            let value =
                map.next_value_seed(Seed::new(Some(field), Cow::Borrowed(go), self.state, self.silent))?;
            {
                let mut state = self.state.borrow_mut();
                state.fields.truncate(before.0);
                state.owner = before.1;
                state.path.truncate(before.2);
            }
            match value {
                // Null is the absence of a value.
                Some(Value::Null) | None => drop(out.remove(&key)),
                Some(value) => drop(out.insert(key, value)),
            }
        }
        Ok(Value::Object(out))
    }

    fn map<'de, A: MapAccess<'de>>(&self, value: Option<View<'a>>, map: &mut A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        let mut seen = BTreeSet::new();
        let silent = self.silent || self.shape == Shape::Opaque;
        while let Some(key) = map.next_key::<String>()? {
            if !seen.insert(key.clone()) && !silent {
                self.state.borrow_mut().object_to("duplicate", &key);
            }
            let length = self.state.borrow_mut().push(&key);
            let inner = self.go.split_once(']').map_or("", |(_, inner)| inner);
            let go = if value.is_some() { Cow::Owned(inner.to_owned()) } else { Cow::Borrowed("") };
            let read = map.next_value_seed(Seed::new(value, go, self.state, silent))?;
            self.state.borrow_mut().path.truncate(length);
            if let Some(read) = read {
                out.insert(key, unless_null(read, value));
            }
        }
        Ok(Value::Object(out))
    }

    fn list<'de, A: SeqAccess<'de>>(&self, item: Option<View<'a>>, seq: &mut A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        let silent = self.silent || self.shape == Shape::Opaque;
        loop {
            let length = self.state.borrow_mut().push_index(out.len());
            let go = if item.is_some() { self.go.strip_prefix("[]").unwrap_or_default() } else { "" };
            let seed = Seed::new(item, Cow::Owned(go.to_owned()), self.state, silent);
            let read = seq.next_element_seed(seed);
            self.state.borrow_mut().path.truncate(length);
            match read? {
                None => return Ok(Value::Array(out)),
                Some(read) => out.push(unless_null(read.unwrap_or(Value::Null), item)),
            }
        }
    }
}

impl State {
    fn push(&mut self, key: &str) -> usize {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        length
    }

    fn push_index(&mut self, index: usize) -> usize {
        let length = self.path.len();
        // Writing to a string cannot fail.
        let _ = write!(self.path, "[{index}]");
        length
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    /// `None`: nothing usable was there, and somebody has been told.
    type Value = Option<Value>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        // `IntOrString` is the one type that reads null as a value, the number zero.
        Ok(Some(Value::Null))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Self::Value, E> {
        self.scalar(Value::Bool(value), "bool")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
        self.scalar(Value::from(value), "number")
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
        self.scalar(Value::from(value), "number")
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number that is not finite"))?;
        self.scalar(Value::Number(number), "number")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
        self.scalar(Value::from(value), "string")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        match (self.shape, self.view) {
            (Shape::List, Some(view)) => self.list(view.items(), &mut seq).map(Some),
            (Shape::Opaque, Some(view)) => self.list(props(view), &mut seq).map(Some),
            (Shape::Untyped | Shape::Opaque, _) => self.list(None, &mut seq).map(Some),
            (Shape::Quantity, _) => Err(self.no_quantity()),
            (Shape::IntOrString, _) => Err(self.wrong("array", "int32")),
            (Shape::Time(_), _) => Err(self.wrong("array", "string")),
            _ => {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(self.mismatch("array"))
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        match (self.shape, self.view) {
            (Shape::Struct, Some(view)) => self.structure(view, &mut map).map(Some),
            (Shape::Map, Some(view)) => self.map(view.value(), &mut map).map(Some),
            (Shape::Opaque, Some(view)) if props(view).is_some() => {
                let inner = Seed::new(props(view), Cow::Borrowed(""), self.state, true);
                match inner.view {
                    Some(view) => inner.structure(view, &mut map).map(Some),
                    None => Err(A::Error::custom("a schema without a schema")),
                }
            }
            (Shape::Untyped | Shape::Opaque, _) => self.map(None, &mut map).map(Some),
            (Shape::Quantity, _) => Err(self.no_quantity()),
            (Shape::IntOrString, _) => Err(self.wrong("object", "int32")),
            (Shape::Time(_), _) => Err(self.wrong("object", "string")),
            _ => {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(self.mismatch("object"))
            }
        }
    }
}

/// The schema behind the "schema or something simpler" types of a `CustomResourceDefinition`.
fn props(view: View<'_>) -> Option<View<'_>> {
    let kind = view.name()?.rsplit('.').next()?;
    let wraps =
        matches!(kind, "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray");
    if wraps { builtin::definitions().view(SCHEMA_PROPS) } else { None }
}

fn shape(view: View<'_>) -> Shape {
    let schema = view.schema();
    match view.name().and_then(|name| name.rsplit('.').next()) {
        Some("Quantity") => return Shape::Quantity,
        Some("IntOrString") => return Shape::IntOrString,
        Some("Time") => return Shape::Time(Precision::Seconds),
        Some("MicroTime") => return Shape::Time(Precision::Micros),
        _ => {}
    }
    match schema.ty {
        Type::Any => Shape::Opaque,
        Type::Object if schema.additional.is_some() => Shape::Map,
        Type::Object if schema.properties.is_empty() => Shape::Opaque,
        Type::Object => Shape::Struct,
        Type::Array => Shape::List,
        Type::IntOrString => Shape::IntOrString,
        Type::String if schema.raw["format"] == "byte" => Shape::Bytes,
        Type::String | Type::Integer | Type::Number | Type::Boolean => Shape::Scalar,
    }
}

/// The Go type a schema was made from, as far as it can be told from the schema.
fn go_type(view: View<'_>) -> String {
    if let Some((package, kind)) = view.name().and_then(|name| name.rsplit_once('.')) {
        return format!("{}.{kind}", package.rsplit('.').next().unwrap_or(package));
    }
    let schema = view.schema();
    let format = schema.raw["format"].as_str();
    match schema.ty {
        Type::Any | Type::IntOrString => "interface {}".to_owned(),
        Type::String if format == Some("byte") => "[]uint8".to_owned(),
        Type::String => "string".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Integer => format.unwrap_or("int64").to_owned(),
        Type::Number if format == Some("float") => "float32".to_owned(),
        Type::Number => "float64".to_owned(),
        Type::Array => format!("[]{}", view.items().map(go_type).unwrap_or_default()),
        Type::Object => format!("map[string]{}", view.value().map(go_type).unwrap_or_default()),
    }
}

/// Objects with a kind of their own embed `TypeMeta`; references that merely name a kind do not.
fn is_kind(view: View<'_>) -> bool {
    view.schema().raw.get("x-kubernetes-group-version-kind").is_some()
}

fn fits(number: &Number, go: &str) -> bool {
    match number.as_i64() {
        Some(value) => go != "int32" || i32::try_from(value).is_ok(),
        None => false,
    }
}

/// What Go holds where a list or a map says null: the empty value of its type.
fn unless_null(value: Value, view: Option<View<'_>>) -> Value {
    let Some(view) = view.filter(|_| value.is_null()) else { return value };
    match (shape(view), view.ty()) {
        (Shape::Struct, _) => Value::Object(Map::new()),
        (Shape::Quantity, _) => Value::from("0"),
        (Shape::Scalar, Type::String) => Value::from(""),
        (Shape::Scalar, Type::Boolean) => Value::Bool(false),
        (Shape::Scalar, Type::Integer | Type::Number) => Value::from(0),
        _ => value,
    }
}

/// Go counts the bytes up to the one it cannot use.
fn illegal_at(error: &base64::DecodeError, text: &str) -> usize {
    match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
    }
}

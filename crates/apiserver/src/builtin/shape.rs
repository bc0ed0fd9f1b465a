//! Which fields the server's types have, and which of them the encoder leaves out when empty.
//!
//! A real server decodes every object into typed structs and encodes it again. What a client sees of that is
//! decided by the types alone, so they are kept as a recorded table (`recorded/types.txt`): per field its name, a mark
//! (`?` left out when empty, `~` left out when zero, `!` always there) and its type.

mod encode;

use super::GroupVersionKind;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::LazyLock;

/// When a field is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Omit {
    Never,
    Empty,
    Zero,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Pointer(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
    Struct(usize),
    Text,
    Bool,
    Number,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Any JSON, kept as it is.
    Raw,
    /// A JSON schema, a list of them, or something that is neither.
    SchemaOr,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) omit: Omit,
    pub(super) ty: Type,
}

#[derive(Debug)]
pub(super) struct Struct {
    pub(super) name: &'static str,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    roots: HashMap<&'static str, usize>,
    structs: Vec<Struct>,
    schema: usize,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("../../recorded/types.txt")));

impl Table {
    fn read(text: &'static str) -> Self {
        let mut ids: HashMap<&'static str, usize> = HashMap::new();
        let lines = || text.lines().filter_map(|l| l.strip_prefix("type "));
        for (id, line) in lines().enumerate() {
            ids.insert(line.split(' ').next().unwrap_or_default(), id);
        }
        let structs = lines()
            .map(|line| {
                let mut words = line.split(' ');
                let name = words.next().unwrap_or_default();
                Struct { name, fields: words.filter_map(|w| field(w, &ids)).collect() }
            })
            .collect();
        let roots = text.lines().filter_map(|l| l.strip_prefix("root ")).filter_map(|l| {
            let (key, name) = l.split_once(' ')?;
            Some((key, *ids.get(name)?))
        });
        Self {
            roots: roots.collect(),
            structs,
            schema: ids.get("JSONSchemaProps").copied().unwrap_or_default(),
        }
    }

    fn root(&self, kind: GroupVersionKind<'_>) -> Option<usize> {
        let usual = if kind.group == "metrics.k8s.io" { "v1beta1" } else { "v1" };
        let GroupVersionKind { group, version, kind } = kind;
        let key =
            if version == usual { format!("{group}/{kind}") } else { format!("{group}/{version}/{kind}") };
        self.roots.get(key.as_str()).copied()
    }
}

fn field(word: &'static str, ids: &HashMap<&'static str, usize>) -> Option<Field> {
    let at = word.find(['?', '!', '~'])?;
    let (name, rest) = word.split_at(at);
    let omit = match rest.as_bytes().first()? {
        b'?' => Omit::Empty,
        b'~' => Omit::Zero,
        _ => Omit::Never,
    };
    Some(Field { name, omit, ty: type_of(&rest[1..], ids)? })
}

fn type_of(text: &str, ids: &HashMap<&'static str, usize>) -> Option<Type> {
    if let Some(inner) = text.strip_prefix('*') {
        return Some(Type::Pointer(Box::new(type_of(inner, ids)?)));
    }
    if let Some(inner) = text.strip_prefix("[]") {
        return Some(Type::List(Box::new(type_of(inner, ids)?)));
    }
    if let Some(inner) = text.strip_prefix("{}") {
        return Some(Type::Map(Box::new(type_of(inner, ids)?)));
    }
    Some(match text {
        "string" => Type::Text,
        "bool" => Type::Bool,
        "int" | "float" => Type::Number,
        "bytes" => Type::Bytes,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "quantity" => Type::Quantity,
        "intorstring" => Type::IntOrString,
        "raw" => Type::Raw,
        "schemaor" => Type::SchemaOr,
        name => Type::Struct(*ids.get(name)?),
    })
}

/// Rewrites an object into the form its kind's type encodes to. Unknown kinds stay as they are.
pub(super) fn normalize(kind: GroupVersionKind<'_>, obj: &mut Value) {
    if let Some(root) = TABLE.root(kind) {
        let whole = std::mem::take(obj);
        *obj = encode::encode_struct(&TABLE, root, whole);
    }
}

/// Calls `visit` with the type name of every struct in a normalized object, parents before their children.
pub(super) fn visit(
    kind: GroupVersionKind<'_>,
    obj: &mut Value,
    visit: &mut dyn FnMut(&str, &mut Map<String, Value>),
) {
    if let Some(root) = TABLE.root(kind) {
        visit_struct(root, obj, visit);
    }
}

fn visit_struct(id: usize, value: &mut Value, visit: &mut dyn FnMut(&str, &mut Map<String, Value>)) {
    let Some(ty) = TABLE.structs.get(id) else { return };
    let Some(map) = value.as_object_mut() else { return };
    visit(ty.name, map);
    for field in &ty.fields {
        if let Some(value) = map.get_mut(field.name) {
            visit_type(&field.ty, value, visit);
        }
    }
}

fn visit_type(ty: &Type, value: &mut Value, visit: &mut dyn FnMut(&str, &mut Map<String, Value>)) {
    match (ty, value) {
        (Type::Pointer(inner), value) => visit_type(inner, value, visit),
        (Type::List(inner), Value::Array(items)) => {
            for item in items.iter_mut() {
                visit_type(inner, item, visit);
            }
        }
        (Type::Map(inner), Value::Object(map)) => {
            for (_, item) in map.iter_mut() {
                visit_type(inner, item, visit);
            }
        }
        (Type::Struct(id), value) => visit_struct(*id, value, visit),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let text = include_str!("../../recorded/types.txt");
        for line in text.lines().filter_map(|l| l.strip_prefix("type ")) {
            let mut words = line.split(' ');
            let name = words.next().unwrap();
            let ty = TABLE.structs.iter().find(|t| t.name == name).unwrap();
            assert_eq!(ty.fields.len(), words.filter(|w| !w.is_empty()).count(), "{name}");
        }
        assert_eq!(TABLE.roots.len(), text.lines().filter(|l| l.starts_with("root ")).count());
    }
}

//! What a value is to server-side apply: something owned as a whole, or something owned field by field.

use super::fields::Element;
use crate::schema::{Definitions, ListKind, Schema, Type, View};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The type of a value, as far as ownership is concerned.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    /// A schema says so.
    Known(Known<'a>),
    /// An object without a schema of its own, except for its metadata.
    Bare,
    /// No schema: maps by field, lists as a whole.
    Deduced,
    /// No schema and nothing to merge: everything as a whole.
    Whole,
}

/// A type with a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    view: View<'a>,
    place: Place,
    /// Whether a schema above preserves unknown fields.
    keep: bool,
    /// Whether the field says it is granular, whatever its type says.
    granular: bool,
}

/// Where a type is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a built-in kind.
    Builtin,
    /// At the top of a custom resource, which has metadata whether its schema says so or not.
    Custom,
    /// Below that.
    Inside,
}

/// What a value is, after looking at both type and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Map { atomic: bool },
    List(List<'a>),
    Scalar(Scalar),
}

/// How a list is owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List<'a> {
    Atomic,
    Set,
    Keyed(&'a [String]),
    KeyedBy(&'a str),
}

/// Which scalars fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Text,
    Number,
    Truth,
    Any,
}

static METADATA: LazyLock<(Definitions, Schema)> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let time = json!({"type": "string", "format": "date-time"});
    let schema = json!({"type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
        "generation": {"type": "integer"}, "creationTimestamp": time, "deletionTimestamp": time,
        "deletionGracePeriodSeconds": {"type": "integer"}, "labels": map, "annotations": map,
        "ownerReferences": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "apiVersion": text, "kind": text, "name": text, "uid": text, "controller": {"type": "boolean"},
                "blockOwnerDeletion": {"type": "boolean"},
            }},
        },
        "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "managedFields": {"type": "array", "items": {"type": "object"}},
    }});
    (Definitions::default(), Schema::from_openapi(&schema))
});

static TEXT: LazyLock<Schema> = LazyLock::new(|| Schema::from_openapi(&json!({"type": "string"})));

fn known(view: View<'_>, place: Place) -> Known<'_> {
    Known { view, place, keep: view.schema().preserve_unknown, granular: false }
}

impl<'a> Shape<'a> {
    /// The shape of a whole object.
    pub(super) fn root(view: Option<View<'a>>, builtin: bool) -> Self {
        match view {
            Some(view) => Self::Known(known(view, if builtin { Place::Builtin } else { Place::Custom })),
            None => Self::Bare,
        }
    }

    /// Whether this is part of a built-in kind.
    pub(super) fn is_builtin(self) -> bool {
        matches!(self, Self::Known(Known { place: Place::Builtin, .. }))
    }

    /// What a value is. A value of a type that does not fit is taken for the type the schema names.
    pub(super) fn kind(self, value: Option<&Value>) -> Kind<'a> {
        let free = |atomic: bool| match value {
            Some(Value::Array(_)) => Kind::List(List::Atomic),
            Some(Value::Object(_) | Value::Null) | None => Kind::Map { atomic },
            Some(_) => Kind::Scalar(Scalar::Any),
        };
        match self {
            Self::Bare | Self::Deduced => free(false),
            Self::Whole => free(true),
            Self::Known(known) => known.kind(value),
        }
    }

    /// The shape of a field; `None` for one the schema does not allow.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Bare => Some(metadata_field(name).unwrap_or(Self::Deduced)),
            Self::Deduced => Some(Self::Deduced),
            Self::Whole => Some(Self::Whole),
            Self::Known(known) => known.field(name),
        }
    }

    /// Whether the schema names this field, rather than allowing any.
    pub(super) fn names(self, name: &str) -> bool {
        match self {
            Self::Bare => metadata_field(name).is_some(),
            Self::Deduced | Self::Whole => false,
            Self::Known(known) => {
                known.view.schema().properties.contains_key(name)
                    || (known.has_metadata() && metadata_field(name).is_some())
            }
        }
    }

    /// The shape of the entries of a list.
    pub(super) fn items(self) -> Self {
        match self {
            Self::Known(known) => match known.view.items() {
                Some(view) => known.child(view),
                None => Self::Whole,
            },
            _ => Self::Whole,
        }
    }

    /// What identifies an entry of a list of this shape.
    pub(super) fn element(self, list: List<'_>, item: &Value) -> Result<Element, String> {
        let keys = match list {
            List::Atomic => return Err("invalid indexing of non-associative list".to_owned()),
            List::Set => return set_element(item),
            List::Keyed(keys) => keys.iter().map(String::as_str).collect::<Vec<_>>(),
            List::KeyedBy(key) => vec![key],
        };
        let map = match item {
            Value::Object(map) => map,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let mut fields: Vec<(String, Value)> = keys
            .iter()
            .filter_map(|key| {
                let value = map.get(*key).or_else(|| self.items().default_of(key))?;
                Some(((*key).to_owned(), value.clone()))
            })
            .collect();
        if fields.is_empty() {
            return Err(format!(
                "associative list with keys has an element that omits all key fields {} (and doesn't have default \
                 values for any key fields)",
                quoted(&keys)
            ));
        }
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Element::Key(fields))
    }

    fn default_of(self, field: &str) -> Option<&'a Value> {
        let Self::Known(known) = self else { return None };
        known.view.schema().raw.get("properties")?.get(field)?.get("default").filter(|v| !v.is_null())
    }
}

fn set_element(item: &Value) -> Result<Element, String> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
        scalar => Ok(Element::Value(scalar.clone())),
    }
}

fn quoted(keys: &[&str]) -> String {
    format!("[{}]", keys.iter().map(|k| format!("{k:?}")).collect::<Vec<_>>().join(" "))
}

/// The fields every object has.
fn metadata_field(name: &str) -> Option<Shape<'static>> {
    let (defs, metadata) = &*METADATA;
    match name {
        "metadata" => Some(Shape::Known(known(metadata.standalone(defs), Place::Inside))),
        "apiVersion" | "kind" => Some(Shape::Known(known(TEXT.standalone(defs), Place::Inside))),
        _ => None,
    }
}

impl<'a> Known<'a> {
    fn child(self, view: View<'a>) -> Shape<'a> {
        let place = if self.place == Place::Builtin { Place::Builtin } else { Place::Inside };
        let child = known(view, place);
        Shape::Known(Known { keep: child.keep || self.keep, ..child })
    }

    fn has_metadata(self) -> bool {
        self.place == Place::Custom || self.view.schema().embedded
    }

    /// Whether any value goes; in built-in kinds such a field holds some other object, which is nobody's business.
    fn is_opaque(self) -> bool {
        let schema = self.view.schema();
        self.place == Place::Builtin
            && schema.ty == Type::Object
            && schema.properties.is_empty()
            && schema.raw.get("additionalProperties").is_none()
    }

    fn kind(self, value: Option<&Value>) -> Kind<'a> {
        let schema = self.view.schema();
        let map = Kind::Map { atomic: (schema.atomic_map && !self.granular) || self.is_opaque() };
        match schema.ty {
            Type::Object => map,
            Type::Array => Kind::List(self.list()),
            Type::String if schema.raw.get("format").is_none() => Kind::Scalar(Scalar::Text),
            Type::String if schema.raw["format"] == "byte" => Kind::Scalar(Scalar::Text),
            Type::Integer | Type::Number => Kind::Scalar(Scalar::Number),
            Type::Boolean => Kind::Scalar(Scalar::Truth),
            Type::String | Type::IntOrString => Kind::Scalar(Scalar::Any),
            Type::Any => match value {
                Some(Value::Array(_)) => Kind::List(self.list()),
                Some(Value::Object(_) | Value::Null) | None => map,
                Some(_) => Kind::Scalar(Scalar::Any),
            },
        }
    }

    fn list(self) -> List<'a> {
        match self.view.list() {
            ListKind::Set => List::Set,
            ListKind::Map(keys) => List::Keyed(keys),
            // Without a list type the older marker for patches decides.
            ListKind::Atomic if self.view.schema().raw.get("x-kubernetes-list-type").is_none() => {
                let strategy = self.view.strategy();
                match (&strategy.merge_key, strategy.merge) {
                    (Some(key), true) => List::KeyedBy(key),
                    (None, true) => List::Set,
                    (_, false) => List::Atomic,
                }
            }
            ListKind::Atomic => List::Atomic,
        }
    }

    fn field(self, name: &str) -> Option<Shape<'a>> {
        if self.has_metadata()
            && let Some(shape) = metadata_field(name)
        {
            return Some(shape);
        }
        let schema = self.view.schema();
        if schema.properties.contains_key(name) {
            let Some(view) = self.view.field(name) else { return Some(Shape::Deduced) };
            let granular = schema.raw["properties"][name]["x-kubernetes-map-type"] == "granular";
            return Some(match self.child(view) {
                Shape::Known(child) => Shape::Known(Known { granular, ..child }),
                other => other,
            });
        }
        match (self.view.value(), schema.raw.get("additionalProperties")) {
            (Some(view), _) => Some(self.child(view)),
            (None, Some(Value::Bool(false))) => None,
            (None, Some(_)) => Some(Shape::Deduced),
            (None, None) if self.is_opaque() => Some(Shape::Whole),
            (None, None) if self.keep || schema.properties.is_empty() => Some(Shape::Deduced),
            (None, None) => None,
        }
    }
}

/// The object a creator of a built-in kind starts from: upstream keeps those in structs, whose mandatory fields are there
/// before anybody sets them, and nobody comes to own what was there.
pub(super) fn zero(view: View<'_>) -> Value {
    let schema = view.schema();
    let required = |name: &str| {
        let list = schema.raw.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|r| r == name))
    };
    let mut out = Map::new();
    for name in schema.properties.keys() {
        let default = schema.raw.get("properties").and_then(|p| p.get(name)).and_then(|p| p.get("default"));
        let field = view.field(name);
        let empty = match field.map(View::ty) {
            Some(Type::String) => json!(""),
            Some(Type::Integer | Type::Number) => json!(0),
            Some(Type::Boolean) => json!(false),
            _ => Value::Null,
        };
        let value = match default {
            Some(Value::Object(_)) => field.map_or_else(|| json!({}), zero),
            // A default that is nothing says the field is always written.
            Some(default) if *default == empty => empty,
            Some(_) if required(name) => empty,
            None if required(name) => Value::Null,
            _ => continue,
        };
        out.insert(name.clone(), value);
    }
    Value::Object(out)
}

/// Adds the nulls of a new object to the one it started from: in a struct a field that can be null always was.
pub(super) fn add_nulls(start: &mut Value, new: &Value) {
    let (Value::Object(start), Value::Object(new)) = (start, new) else { return };
    for (key, value) in new {
        match start.get_mut(key) {
            Some(inner) => add_nulls(inner, value),
            None if value.is_null() => {
                start.insert(key.clone(), Value::Null);
            }
            None => {}
        }
    }
}

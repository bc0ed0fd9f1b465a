//! What a field is: the structural schema behind validation, merging, ownership and `kubectl explain`.
//!
//! Built-in kinds and custom resources share this one model. It is read from OpenAPI v3, the form in which both
//! the recorded built-in schemas and `CustomResourceDefinition`s come.

pub(crate) mod builtin;
pub(crate) mod decode;
mod gotime;
pub(crate) mod openapi;
pub(crate) mod structural;

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// JSON type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Type {
    /// Anything goes: no type given, or unknown fields preserved.
    #[default]
    Any,
    /// An object with known properties, or a map when `additional` is set.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// `x-kubernetes-int-or-string`, and quantities, which upstream treats alike.
    IntOrString,
}

/// How a list is merged and owned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ListKind {
    /// Replaced as a whole.
    #[default]
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects identified by these keys.
    Map(Vec<String>),
}

/// How strategic merge patch treats a field; upstream keeps it beside the server-side apply markers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Strategy {
    /// `merge`: entries are matched by `merge_key` (or by value in lists of scalars).
    pub merge: bool,
    /// `retainKeys`: only the keys the patch names survive.
    pub retain_keys: bool,
    /// Key that identifies an entry.
    pub merge_key: Option<String>,
}

/// One schema node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schema {
    /// JSON type.
    pub ty: Type,
    /// Known fields of an object.
    pub properties: BTreeMap<String, Node>,
    /// Type of the values of a map.
    pub additional: Option<Box<Node>>,
    /// Type of the entries of a list.
    pub items: Option<Box<Node>>,
    /// How a list is merged and owned.
    pub list: ListKind,
    /// `x-kubernetes-map-type: atomic`.
    pub atomic_map: bool,
    /// Strategic merge behaviour.
    pub strategy: Strategy,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded: bool,
    /// The schema as written, for constraints, defaults and descriptions.
    pub raw: Value,
}

/// A schema in place, or the name of one: upstream schemas are recursive.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// Written in place.
    Inline(Box<Schema>),
    /// `#/components/schemas/NAME`.
    Ref(Arc<str>, Strategy),
}

/// Named schemas that refer to each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Definitions {
    by_name: BTreeMap<String, Schema>,
}

/// A schema together with the definitions its references point into.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    defs: &'a Definitions,
    schema: &'a Schema,
    strategy: &'a Strategy,
    name: Option<&'a str>,
}

impl Definitions {
    /// Reads `components.schemas` of an OpenAPI v3 document.
    #[must_use]
    pub(crate) fn from_openapi(schemas: &Value) -> Self {
        let entries = schemas.as_object().into_iter().flatten();
        Self { by_name: entries.map(|(name, raw)| (name.clone(), Schema::from_openapi(raw))).collect() }
    }

    /// The named schema.
    #[must_use]
    pub(crate) fn view(&self, name: &str) -> Option<View<'_>> {
        let (name, schema) = self.by_name.get_key_value(name)?;
        Some(View { defs: self, schema, strategy: &schema.strategy, name: Some(name) })
    }

    /// All names and schemas, in order of name.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.by_name.iter().map(|(name, schema)| (name.as_str(), schema))
    }

    fn resolve<'a>(&'a self, node: &'a Node) -> Option<View<'a>> {
        match node {
            Node::Inline(schema) => Some(View { defs: self, schema, strategy: &schema.strategy, name: None }),
            Node::Ref(name, strategy) => {
                let view = self.view(name)?;
                // A reference may carry merge markers of its own; they belong to the field, not to the type.
                let strategy = if *strategy == Strategy::default() { view.strategy } else { strategy };
                Some(View { strategy, ..view })
            }
        }
    }
}

impl Schema {
    /// Reads one OpenAPI v3 schema.
    #[must_use]
    pub(crate) fn from_openapi(raw: &Value) -> Self {
        let flag = |key: &str| raw.get(key).and_then(Value::as_bool).unwrap_or(false);
        let text = |key: &str| raw.get(key).and_then(Value::as_str);
        let int_or_string =
            flag("x-kubernetes-int-or-string") || text("format") == Some("int-or-string") || only_types(raw);
        let ty = match text("type") {
            _ if int_or_string => Type::IntOrString,
            Some("object") => Type::Object,
            Some("array") => Type::Array,
            Some("string") => Type::String,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("boolean") => Type::Boolean,
            _ => Type::Any,
        };
        let list = match text("x-kubernetes-list-type") {
            Some("set") => ListKind::Set,
            Some("map") => ListKind::Map(strings(raw.get("x-kubernetes-list-map-keys"))),
            _ => ListKind::Atomic,
        };
        let properties = raw.get("properties").and_then(Value::as_object).into_iter().flatten();
        Self {
            ty,
            properties: properties.map(|(k, v)| (k.clone(), Node::from_openapi(v))).collect(),
            additional: raw
                .get("additionalProperties")
                .filter(|v| v.is_object())
                .map(|v| Box::new(Node::from_openapi(v))),
            items: raw.get("items").map(|v| Box::new(Node::from_openapi(v))),
            list,
            atomic_map: text("x-kubernetes-map-type") == Some("atomic"),
            strategy: Strategy::from_openapi(raw),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            raw: raw.clone(),
        }
    }

    /// A view of a schema that refers to nothing outside itself, as those of custom resources do.
    #[must_use]
    pub(crate) fn standalone<'a>(&'a self, defs: &'a Definitions) -> View<'a> {
        View { defs, schema: self, strategy: &self.strategy, name: None }
    }
}

impl Strategy {
    fn from_openapi(raw: &Value) -> Self {
        let words = raw.get("x-kubernetes-patch-strategy").and_then(Value::as_str).unwrap_or_default();
        Self {
            merge: words.split(',').any(|w| w == "merge"),
            retain_keys: words.split(',').any(|w| w == "retainKeys"),
            merge_key: raw.get("x-kubernetes-patch-merge-key").and_then(Value::as_str).map(str::to_owned),
        }
    }
}

impl Node {
    fn from_openapi(raw: &Value) -> Self {
        // Upstream wraps a reference with siblings (default, description) as `allOf: [{$ref}]`.
        let reference = raw.get("$ref").or_else(|| {
            raw.get("allOf").and_then(Value::as_array).and_then(|all| match all.as_slice() {
                [one] => one.get("$ref"),
                _ => None,
            })
        });
        match reference.and_then(Value::as_str).and_then(|r| r.rsplit('/').next()) {
            Some(name) => Self::Ref(name.into(), Strategy::from_openapi(raw)),
            None => Self::Inline(Box::new(Schema::from_openapi(raw))),
        }
    }
}

impl<'a> View<'a> {
    /// The schema itself.
    #[must_use]
    pub(crate) fn schema(self) -> &'a Schema {
        self.schema
    }

    /// JSON type.
    #[must_use]
    pub fn ty(self) -> Type {
        self.schema.ty
    }

    /// `format`, such as `int32`; empty if there is none.
    #[must_use]
    pub fn format(self) -> &'a str {
        self.schema.raw.get("format").and_then(Value::as_str).unwrap_or_default()
    }

    /// Names of the fields it knows.
    pub fn fields(self) -> impl Iterator<Item = &'a str> {
        self.schema.properties.keys().map(String::as_str)
    }

    /// May there be fields it does not know? So says `x-kubernetes-preserve-unknown-fields`.
    #[must_use]
    pub fn preserves_unknown(self) -> bool {
        self.schema.preserve_unknown
    }

    /// Schema of a field of an object: its property, else the value type of a map.
    #[must_use]
    pub fn field(self, name: &str) -> Option<View<'a>> {
        match self.schema.properties.get(name) {
            Some(node) => self.defs.resolve(node),
            None => self.value(),
        }
    }

    /// Schema of the values of a map.
    #[must_use]
    pub fn value(self) -> Option<View<'a>> {
        self.schema.additional.as_deref().and_then(|node| self.defs.resolve(node))
    }

    /// Schema of the entries of a list.
    #[must_use]
    pub fn items(self) -> Option<View<'a>> {
        self.schema.items.as_deref().and_then(|node| self.defs.resolve(node))
    }

    /// How this list is merged and owned.
    #[must_use]
    pub(crate) fn list(self) -> &'a ListKind {
        &self.schema.list
    }

    /// Name of the definition this view shows, if it has one.
    #[must_use]
    pub fn name(self) -> Option<&'a str> {
        self.name
    }

    /// The schema of the field a path of property names leads to, through lists and maps alike.
    #[cfg(test)]
    pub(crate) fn at(self, path: &[&str]) -> Option<View<'a>> {
        path.iter().try_fold(self, |view, name| match view.items() {
            Some(item) => item.field(name),
            None => view.field(name),
        })
    }

    /// Strategic merge behaviour of the field this view was reached through.
    #[must_use]
    pub(crate) fn strategy(self) -> &'a Strategy {
        self.strategy
    }
}

/// Whether a schema says nothing but "one of these types", as those of quantities do.
fn only_types(raw: &Value) -> bool {
    let alternatives = raw.get("oneOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let bare = |one: &Value| one.as_object().is_some_and(|one| one.len() == 1 && one.contains_key("type"));
    raw.get("type").is_none() && !alternatives.is_empty() && alternatives.iter().all(bare)
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

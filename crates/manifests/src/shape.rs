//! Does an object have the shape its kind has?
//!
//! Built-in kinds are held to the schemas the API server publishes: types everywhere, and the form of amounts and
//! times. What a field may be beyond its type is for whoever uses it.

use crate::kind::Kind;
use loadline_apiserver::validation::{Type, View, builtin_kind};
use loadline_core::quantity::Quantity;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// What was found in one object: paths and sentences.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What makes it unusable.
    pub problems: Vec<(String, String)>,
    /// What was left out or overlooked.
    pub warnings: Vec<(String, String)>,
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Anything,
    Object,
    List,
    Text,
    Time,
    Whole,
    /// Of 32 bits.
    Small,
    Number,
    Truth,
    Amount,
    WholeOrText,
}

/// A schema, reduced to what is checked. Others are referred to by their number.
struct Shape {
    rule: Rule,
    fields: FxHashMap<&'static str, usize>,
    /// Of fields that are not listed.
    other: Option<usize>,
    items: Option<usize>,
    /// Does it hold fields nobody lists?
    open: bool,
}

/// The shapes of kinds, looked up once.
pub struct Shapes {
    shapes: Vec<Shape>,
    /// Where the shape of a kind is, by name.
    kinds: FxHashMap<&'static str, usize>,
}

impl Shapes {
    /// Of these kinds; those that are not built in have none here, and what was observed may have any.
    pub fn of(kinds: &[Kind]) -> Self {
        let mut builder = Builder { shapes: Vec::new(), known: FxHashMap::default() };
        let mut of = |kind: &Kind| {
            let (group, version) = group_version(kind.versions.first()?);
            let view = if kind.observed { None } else { builtin_kind(group, version, kind.name) };
            Some((kind.name, builder.shape(view?)))
        };
        let kinds = kinds.iter().filter_map(&mut of).collect();
        Self { shapes: builder.shapes, kinds }
    }

    /// Checks one object, and takes out of it what was observed and makes no sense.
    pub fn check(&self, kind: Kind, object: &mut Value) -> Findings {
        let mut findings = Findings::default();
        let Some(root) = self.kinds.get(kind.name) else { return findings };
        let mut walk = Walk { shapes: &self.shapes, kind, observed: false, found: &mut findings };
        walk.value(&self.shapes[*root], None, object);
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let named = name.is_some_and(|name| !name.is_empty());
        if !named && !findings.problems.iter().any(|(path, _)| path.starts_with("metadata")) {
            findings.problems.push(("metadata.name".to_owned(), "expected a name, found nothing".to_owned()));
        }
        findings
    }
}

fn group_version(api_version: &'static str) -> (&'static str, &'static str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Shapes in the making.
struct Builder {
    shapes: Vec<Shape>,
    /// Schemas with a name, which may refer to themselves.
    known: FxHashMap<&'static str, usize>,
}

impl Builder {
    fn shape(&mut self, view: View<'static>) -> usize {
        if let Some(known) = view.name().and_then(|name| self.known.get(name)) {
            return *known;
        }
        let number = self.shapes.len();
        if let Some(name) = view.name() {
            self.known.insert(name, number);
        }
        let open = view.preserves_unknown() || view.fields().next().is_none();
        let empty = FxHashMap::default();
        self.shapes.push(Shape { rule: rule(view), fields: empty, other: None, items: None, open });
        for name in view.fields() {
            if let Some(field) = view.field(name).map(|field| self.shape(field)) {
                self.shapes[number].fields.insert(name, field);
            }
        }
        self.shapes[number].other = view.value().map(|value| self.shape(value));
        self.shapes[number].items = view.items().map(|item| self.shape(item));
        number
    }
}

fn rule(view: View<'_>) -> Rule {
    let name = view.name().and_then(|full| full.rsplit('.').next());
    match (view.ty(), name) {
        (Type::Any, _) => Rule::Anything,
        (Type::Object, _) => Rule::Object,
        (Type::Array, _) => Rule::List,
        (Type::String, Some("Time" | "MicroTime")) => Rule::Time,
        (Type::String, _) => Rule::Text,
        (Type::Integer, _) => match view.format() {
            "int32" => Rule::Small,
            _ => Rule::Whole,
        },
        (Type::Number, _) => Rule::Number,
        (Type::Boolean, _) => Rule::Truth,
        (Type::IntOrString, Some("Quantity")) => Rule::Amount,
        (Type::IntOrString, _) => Rule::WholeOrText,
    }
}

/// The way from the whole object to where we are, innermost first.
struct Trail<'a> {
    step: Step<'a>,
    from: Option<&'a Trail<'a>>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
}

impl Trail<'_> {
    fn path(trail: Option<&Self>) -> String {
        let Some(trail) = trail else { return String::new() };
        let mut path = Trail::path(trail.from);
        let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        // Writing to a string cannot fail.
        let _ = match trail.step {
            Step::Field(name) if path.is_empty() => write!(path, "{name}"),
            Step::Field(name) if plain(name) => write!(path, ".{name}"),
            Step::Field(name) => write!(path, "[{name}]"),
            Step::Index(index) => write!(path, "[{index}]"),
        };
        path
    }
}

struct Walk<'a> {
    shapes: &'a [Shape],
    kind: Kind,
    observed: bool,
    found: &'a mut Findings,
}

impl Walk<'_> {
    /// Checks a value; says whether it may stay.
    fn value(&mut self, shape: &Shape, trail: Option<&Trail<'_>>, value: &mut Value) -> bool {
        let right = match (shape.rule, &mut *value) {
            (Rule::Object, Value::Object(fields)) => {
                self.fields(shape, trail, fields);
                true
            }
            (Rule::List, Value::Array(items)) => {
                self.items(shape, trail, items);
                true
            }
            (Rule::Anything, _)
            | (_, Value::Null)
            | (Rule::Truth, Value::Bool(_))
            | (Rule::Number, Value::Number(_))
            | (Rule::Text | Rule::WholeOrText, Value::String(_)) => true,
            (Rule::Time, Value::String(text)) => text.parse::<jiff::Timestamp>().is_ok(),
            (Rule::Whole | Rule::WholeOrText, Value::Number(number)) => number.is_i64(),
            (Rule::Small, Value::Number(number)) => {
                number.as_i64().is_some_and(|whole| i32::try_from(whole).is_ok())
            }
            (Rule::Amount, Value::String(text)) => text.parse::<Quantity>().is_ok(),
            (Rule::Amount, Value::Number(number)) => number.to_string().parse::<Quantity>().is_ok(),
            _ => false,
        };
        if !right {
            let what = format!("expected {}, found {}", expected(shape.rule), found(value));
            if self.observed {
                self.found.warnings.push((Trail::path(trail), format!("{what}; left out")));
            } else {
                self.found.problems.push((Trail::path(trail), what));
            }
        }
        right || !self.observed
    }

    fn fields(&mut self, shape: &Shape, trail: Option<&Trail<'_>>, fields: &mut Map<String, Value>) {
        let mut wrong = Vec::new();
        let outside = self.observed;
        for (name, value) in fields.iter_mut() {
            let trail_here = Trail { step: Step::Field(name), from: trail };
            let Some(field) = shape.fields.get(name.as_str()).copied().or(shape.other) else {
                if !shape.open {
                    let what = "unknown field, overlooked".to_owned();
                    self.found.warnings.push((Trail::path(Some(&trail_here)), what));
                }
                continue;
            };
            // Nobody asks for a status; but what a node has for pods is what everything is decided by.
            self.observed |= trail.is_none() && name == "status";
            self.observed &= !(self.kind == Kind::NODE && is_allocatable(&trail_here));
            if !self.value(&self.shapes[field], Some(&trail_here), value) {
                wrong.push(name.clone());
            }
            self.observed = outside;
        }
        for name in wrong {
            fields.remove(&name);
        }
    }

    fn items(&mut self, shape: &Shape, trail: Option<&Trail<'_>>, items: &mut Vec<Value>) {
        let Some(item) = shape.items.map(|item| &self.shapes[item]) else { return };
        let mut index = 0;
        items.retain_mut(|value| {
            let here = Trail { step: Step::Index(index), from: trail };
            index += 1;
            self.value(item, Some(&here), value)
        });
    }
}

fn is_allocatable(trail: &Trail<'_>) -> bool {
    let field = |trail: &Trail<'_>, name: &str| matches!(trail.step, Step::Field(field) if field == name);
    let status = |from: &Trail<'_>| field(from, "status") && from.from.is_none();
    field(trail, "allocatable") && trail.from.is_some_and(status)
}

fn expected(rule: Rule) -> &'static str {
    match rule {
        Rule::Anything => "anything",
        Rule::Object => "an object",
        Rule::List => "a list",
        Rule::Text => "a string",
        Rule::Time => "a time such as 2025-01-01T00:00:00Z",
        Rule::Whole => "a whole number",
        Rule::Small => "a whole number of 32 bits",
        Rule::Number => "a number",
        Rule::Truth => "true or false",
        Rule::Amount => "an amount such as 500m or 1Gi",
        Rule::WholeOrText => "a whole number or a string",
    }
}

/// A value in a few words.
pub fn found(value: &Value) -> String {
    const SHOWN: usize = 40;
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() > SHOWN => {
            format!("{:?} and more", text.chars().take(SHOWN).collect::<String>())
        }
        Value::String(text) => format!("{text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

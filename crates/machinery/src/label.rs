//! Which labels match? Selectors, structured as in workloads or one line as on the command line.
//!
//! [`LabelSelector`] is the type of the API under its JSON names; prepared once, as a [`Selector`], it answers for any
//! number of labels without parsing again. A selector that is invalid matches nothing; it never matches by accident.

mod parse;

use crate::wire::or_default;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::BuildHasher;
use std::str::FromStr;

/// Anything labels can be looked up in.
pub trait Lookup {
    /// The value of a label, if it is there.
    fn value(&self, key: &str) -> Option<&str>;
}

impl Lookup for BTreeMap<String, String> {
    #[inline]
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl<S: BuildHasher> Lookup for HashMap<String, String, S> {
    #[inline]
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl<L: Lookup + ?Sized> Lookup for &L {
    #[inline]
    fn value(&self, key: &str) -> Option<&str> {
        (**self).value(key)
    }
}

/// Why a selector is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The key cannot be the key of a label.
    #[error("label key {key:?} is not valid: {problem}")]
    Key {
        /// What was given.
        key: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The value cannot be the value of a label.
    #[error("value {:?} of label {key:?} is not valid: {problem}", values[*at])]
    Value {
        /// The label.
        key: String,
        /// The operator.
        op: Op,
        /// What was given.
        values: Vec<String>,
        /// Which of them.
        at: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The operator does not go with that many values.
    #[error("operator {op} on label {key:?} takes {expected}, not {count} values")]
    Count {
        /// The label.
        key: String,
        /// The operator.
        op: Op,
        /// How many there were.
        count: usize,
        /// How many there should be.
        expected: &'static str,
    },
    /// There is no such operator here.
    #[error("{op:?} is no operator for {what}, expected {expected}")]
    Operator {
        /// What was given.
        op: String,
        /// What it was given for.
        what: String,
        /// What exists.
        expected: &'static str,
    },
    /// The text does not read as a selector.
    #[error(
        "selector {text:?} does not parse: found {}, expected {expected}",
        found.as_ref().map_or_else(|| "the end".to_owned(), |found| format!("{found:?}"))
    )]
    Parse {
        /// The whole text.
        text: String,
        /// What stood there; `None` is the end.
        found: Option<String>,
        /// What should have.
        expected: Expected,
    },
}

/// What a selector may go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A condition, at the start.
    Condition,
    /// A condition, after a comma.
    ConditionAfterComma,
    /// The key that is denied, after `!`.
    Key,
    /// An operator, after a key.
    Operator,
    /// One value, after a sign.
    Value,
    /// `(`, after `in` or `notin`.
    Open,
    /// The first value of a set, or its end.
    FirstOfSet,
    /// A further value of a set, after a comma.
    NextOfSet,
    /// What follows a value of a set.
    AfterValue,
    /// What follows a condition.
    AfterCondition,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Condition | Self::Key => "a label key or '!'",
            Self::ConditionAfterComma => "a label key after ','",
            Self::Operator => "one of in, notin, =, ==, !=, >, <",
            Self::Value => "a value",
            Self::Open => "'('",
            Self::FirstOfSet | Self::NextOfSet | Self::AfterValue => "',' or ')'",
            Self::AfterCondition => "',' or the end",
        })
    }
}

/// How a label and values relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `=`: there, with exactly this value.
    Equals,
    /// `==`: the same.
    DoubleEquals,
    /// `!=`: another value, or not there.
    NotEquals,
    /// `in`: there, with one of these values.
    In,
    /// `notin`: none of these values, or not there.
    NotIn,
    /// There.
    Exists,
    /// Not there.
    DoesNotExist,
    /// `>`: there, a whole number, and larger.
    Gt,
    /// `<`: there, a whole number, and smaller.
    Lt,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Exists => "exists",
            Self::DoesNotExist => "!",
            Self::Gt => ">",
            Self::Lt => "<",
        })
    }
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    op: Op,
    values: Vec<String>,
    /// The number to compare with, for `Gt` and `Lt`.
    bound: i64,
}

impl Requirement {
    /// A checked condition. Values keep their order; repeating one changes nothing.
    ///
    /// # Errors
    /// When the key or a value cannot be a label's, or the operator does not take that many values.
    pub fn new(key: impl Into<String>, op: Op, values: Vec<String>) -> Result<Self, Error> {
        let key = key.into();
        check_key(&key).map_err(|problem| Error::Key { key: key.clone(), problem })?;
        let (fine, expected) = match op {
            Op::In | Op::NotIn => (!values.is_empty(), "at least one value"),
            Op::Exists | Op::DoesNotExist => (values.is_empty(), "no value"),
            Op::Equals | Op::DoubleEquals | Op::NotEquals | Op::Gt | Op::Lt => {
                (values.len() == 1, "one value")
            }
        };
        if !fine {
            return Err(Error::Count { key, op, count: values.len(), expected });
        }
        let mut bound = 0;
        for (at, value) in values.iter().enumerate() {
            let error = |problem| Error::Value { key: key.clone(), op, values: values.clone(), at, problem };
            if matches!(op, Op::Gt | Op::Lt) {
                bound = value.parse().map_err(|_| error("must be a whole number of 64 bits"))?;
            }
            check_value(value).map_err(error)?;
        }
        Ok(Self { key, op, values, bound })
    }

    /// An unchecked `key = value`, as a pod's node selector is.
    #[must_use]
    pub fn equals(key: String, value: String) -> Self {
        Self { key, op: Op::Equals, values: vec![value], bound: 0 }
    }

    /// The label.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    #[must_use]
    #[inline]
    pub fn op(&self) -> Op {
        self.op
    }

    /// What it is compared with.
    #[must_use]
    #[inline]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Do these labels meet the condition?
    #[inline]
    pub fn matches<L: Lookup + ?Sized>(&self, labels: &L) -> bool {
        let value = labels.value(&self.key);
        let listed = |v: &str| self.values.iter().any(|have| have == v);
        let number = || value.and_then(|v| v.parse::<i64>().ok());
        match self.op {
            Op::Equals | Op::DoubleEquals | Op::In => value.is_some_and(listed),
            Op::NotEquals | Op::NotIn => !value.is_some_and(listed),
            Op::Exists => value.is_some(),
            Op::DoesNotExist => value.is_none(),
            Op::Gt => number().is_some_and(|n| n > self.bound),
            Op::Lt => number().is_some_and(|n| n < self.bound),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        match self.op {
            Op::Exists => write!(f, "{}", self.key),
            Op::DoesNotExist => write!(f, "!{}", self.key),
            Op::In | Op::NotIn => write!(f, "{} {} ({values})", self.key, self.op),
            op => write!(f, "{}{op}{values}", self.key),
        }
    }
}

/// All conditions must hold. None: everything matches; [`Selector::nothing`] matches nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    /// `None` matches nothing.
    all: Option<Vec<Requirement>>,
}

impl Selector {
    /// Matches everything.
    #[must_use]
    pub fn everything() -> Self {
        Self { all: Some(Vec::new()) }
    }

    /// Matches nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self { all: None }
    }

    /// Matches where all conditions hold.
    #[must_use]
    pub fn all(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { all: Some(requirements) }
    }

    /// The conditions; `None` if this matches nothing anyway.
    #[must_use]
    #[inline]
    pub fn requirements(&self) -> Option<&[Requirement]> {
        self.all.as_deref()
    }

    /// Do these labels meet every condition?
    #[inline]
    pub fn matches<L: Lookup + ?Sized>(&self, labels: &L) -> bool {
        self.all.as_ref().is_some_and(|all| all.iter().all(|r| r.matches(labels)))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.all.iter().flatten().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{r}")?;
        }
        Ok(())
    }
}

impl FromStr for Selector {
    type Err = Error;

    /// Reads `a=b,c!=d,e in (x,y),!f,g>1`.
    fn from_str(text: &str) -> Result<Self, Error> {
        parse::requirements(text).map(Self::all)
    }
}

/// A label selector as workloads carry it. Both parts must match; with neither, everything does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must be there with these values.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions that must hold.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Expression>,
}

/// A condition as the API writes it, for labels and (with more operators) for nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expression {
    /// The label, or the field.
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`; for nodes also `Gt` and `Lt`.
    #[serde(deserialize_with = "or_default")]
    pub operator: String,
    /// What to compare with.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl LabelSelector {
    /// Prepares an optional selector: none matches nothing, unlike an empty one.
    ///
    /// # Errors
    /// As [`LabelSelector::selector`].
    pub fn prepare(given: Option<&Self>) -> Result<Selector, Error> {
        given.map_or_else(|| Ok(Selector::nothing()), Self::selector)
    }

    /// Checks and prepares the selector.
    ///
    /// # Errors
    /// When a key, value or operator is not valid.
    pub fn selector(&self) -> Result<Selector, Error> {
        let equal = self.match_labels.iter().map(|(k, v)| Requirement::new(k, Op::Equals, vec![v.clone()]));
        let conditions = self.match_expressions.iter().map(|e| {
            let op = match e.operator.as_str() {
                "In" => Op::In,
                "NotIn" => Op::NotIn,
                "Exists" => Op::Exists,
                "DoesNotExist" => Op::DoesNotExist,
                _ => return Err(e.bad_operator("In, NotIn, Exists or DoesNotExist")),
            };
            Requirement::new(&e.key, op, e.values.clone())
        });
        equal.chain(conditions).collect::<Result<_, _>>().map(Selector::all)
    }
}

impl Expression {
    /// What is wrong when the operator is none of those expected.
    #[must_use]
    pub fn bad_operator(&self, expected: &'static str) -> Error {
        Error::Operator { op: self.operator.clone(), what: self.key.clone(), expected }
    }
}

/// Can this be the key of a label: a name, perhaps after a DNS domain and a slash?
///
/// # Errors
/// Says what is wrong.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    let name = match key.split_once('/') {
        None => key,
        Some((domain, name)) => {
            check_domain(domain)?;
            name
        }
    };
    match name {
        "" => Err("the name must not be empty"),
        _ if name.len() > 63 => Err("the name must be no longer than 63 characters"),
        _ if !is_name(name) => {
            Err("the name must be letters, digits, '-', '_' or '.', with a letter or digit at both ends")
        }
        _ => Ok(()),
    }
}

/// Can this be the value of a label?
///
/// # Errors
/// Says what is wrong.
pub fn check_value(value: &str) -> Result<(), &'static str> {
    match value {
        "" => Ok(()),
        _ if value.len() > 63 => Err("must be no longer than 63 characters"),
        _ if !is_name(value) => {
            Err("must be empty or letters, digits, '-', '_' or '.', with a letter or digit at both ends")
        }
        _ => Ok(()),
    }
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()].into_iter().all(|b| b.is_some_and(u8::is_ascii_alphanumeric));
    ends && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

fn check_domain(domain: &str) -> Result<(), &'static str> {
    let part = |p: &str| {
        let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
        !p.is_empty() && p.bytes().all(|b| inner(&b)) && !p.starts_with('-') && !p.ends_with('-')
    };
    if domain.len() > 253 {
        return Err("the part before '/' must be no longer than 253 characters");
    }
    if !domain.split('.').all(part) {
        return Err("the part before '/' must be a lower-case DNS domain");
    }
    Ok(())
}

#[cfg(test)]
mod tests;

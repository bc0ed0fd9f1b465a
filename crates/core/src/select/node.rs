//! Node selectors and node affinity: which nodes a pod demands, and which it likes better.
//!
//! Terms are alternatives; the conditions inside a term must all hold. A term without conditions matches no
//! node, and so does a selector without terms. A term that is not valid matches no node; its neighbours still
//! may.

use super::Lookup;
use super::label::{Error, Expression, Op, Requirement};
use crate::wire::or_default;
use fixedbitset::FixedBitSet;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Alternatives of which one must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelector {
    /// The alternatives.
    #[serde(deserialize_with = "or_default")]
    pub node_selector_terms: Vec<NodeTerm>,
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeTerm {
    /// On labels.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Expression>,
    /// On fields; nodes have one, `metadata.name`.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub match_fields: Vec<Expression>,
}

/// A term and how much it is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WeightedTerm {
    /// Added to the score of nodes that match; the API allows 1 to 100.
    #[serde(deserialize_with = "or_default")]
    pub weight: i32,
    /// What is liked.
    #[serde(deserialize_with = "or_default")]
    pub preference: NodeTerm,
}

/// The node part of a pod's affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    /// What is demanded. None demands nothing; an empty one cannot be met.
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "Option::is_none"
    )]
    pub required: Option<NodeSelector>,
    /// What is liked.
    #[serde(
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub preferred: Vec<WeightedTerm>,
}

/// A demand that cannot be checked because part of it is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node affinity is not valid: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Invalid(pub Vec<Error>);

/// A term, ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ready {
    labels: Vec<Requirement>,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    is_name: bool,
    equal: bool,
    value: String,
}

impl Ready {
    /// `None` for a term without conditions.
    fn new(term: &NodeTerm) -> Option<Result<Self, Vec<Error>>> {
        if term.match_expressions.is_empty() && term.match_fields.is_empty() {
            return None;
        }
        let mut errors = Vec::new();
        let mut keep = |e| errors.push(e);
        let labels =
            term.match_expressions.iter().filter_map(|e| on_label(e).map_err(&mut keep).ok()).collect();
        let fields = term.match_fields.iter().filter_map(|e| on_field(e).map_err(&mut keep).ok()).collect();
        Some(if errors.is_empty() { Ok(Self { labels, fields }) } else { Err(errors) })
    }

    fn matches<L: Lookup + ?Sized>(&self, name: &str, labels: &L) -> bool {
        // A node without a name has no fields, and conditions on fields do not apply to it.
        let by_field = |f: &Field| (f.value == if f.is_name { name } else { "" }) == f.equal;
        self.labels.iter().all(|r| r.matches(labels)) && (name.is_empty() || self.fields.iter().all(by_field))
    }
}

fn on_label(e: &Expression) -> Result<Requirement, Error> {
    let op = match e.operator.as_str() {
        "In" => Op::In,
        "NotIn" => Op::NotIn,
        "Exists" => Op::Exists,
        "DoesNotExist" => Op::DoesNotExist,
        "Gt" => Op::Gt,
        "Lt" => Op::Lt,
        _ => return Err(e.bad_operator("In, NotIn, Exists, DoesNotExist, Gt or Lt")),
    };
    Requirement::new(&e.key, op, e.values.clone())
}

fn on_field(e: &Expression) -> Result<Field, Error> {
    let (equal, op) = match e.operator.as_str() {
        "In" => (true, Op::In),
        "NotIn" => (false, Op::NotIn),
        _ => return Err(e.bad_operator("In or NotIn")),
    };
    match e.values.as_slice() {
        [value] => Ok(Field { is_name: e.key == "metadata.name", equal, value: value.clone() }),
        values => Err(Error::Count { key: e.key.clone(), op, count: values.len(), expected: "one value" }),
    }
}

/// Many nodes at once, by number. Answers for every node what a term would answer for one.
pub trait Sets {
    /// Every node.
    fn all(&self) -> FixedBitSet;
    /// The nodes whose labels meet a condition.
    fn having(&self, requirement: &Requirement) -> FixedBitSet;
    /// The node of that name.
    fn named(&self, name: &str) -> FixedBitSet;
}

impl Ready {
    fn nodes(&self, by: &impl Sets) -> FixedBitSet {
        let mut out: Option<FixedBitSet> = None;
        let mut narrow = |with: FixedBitSet| match &mut out {
            None => out = Some(with),
            Some(out) => out.intersect_with(&with),
        };
        for requirement in &self.labels {
            narrow(by.having(requirement));
        }
        for field in &self.fields {
            // A field no node has is empty everywhere.
            let equal = match (field.is_name, field.value.is_empty()) {
                (true, _) => by.named(&field.value),
                (false, true) => by.all(),
                (false, false) => FixedBitSet::new(),
            };
            if field.equal {
                narrow(equal);
            } else {
                let mut others = by.all();
                others.difference_with(&equal);
                narrow(others);
            }
        }
        out.unwrap_or_else(|| by.all())
    }
}

/// What a pod demands of its node: its node selector and its required affinity, both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Required {
    selector: Vec<Requirement>,
    /// None: no affinity demanded. Terms without conditions are gone.
    terms: Option<Vec<Ready>>,
    /// The nodes named, where every term names some.
    names: Option<BTreeSet<String>>,
    errors: Vec<Error>,
}

/// The nodes the terms name (`metadata.name In …`): those of any term, if each names some.
fn names(terms: &[NodeTerm]) -> Option<BTreeSet<String>> {
    let mut out = BTreeSet::new();
    for term in terms {
        let named = term.match_fields.iter().filter(|e| e.key == "metadata.name" && e.operator == "In");
        let lists = named.map(|e| e.values.iter().cloned().collect::<BTreeSet<_>>());
        out.extend(lists.reduce(|a, b| &a & &b)?);
    }
    (!terms.is_empty()).then_some(out)
}

impl Required {
    /// Prepares a pod's `nodeSelector` and the required part of its node affinity.
    #[must_use]
    pub fn new(selector: &BTreeMap<String, String>, affinity: Option<&NodeSelector>) -> Self {
        let selector = selector.iter().map(|(k, v)| Requirement::equals(k.clone(), v.clone())).collect();
        let mut errors = Vec::new();
        let terms = affinity.map(|a| {
            let ready = a.node_selector_terms.iter().filter_map(Ready::new);
            ready.filter_map(|r| r.map_err(|mut e| errors.append(&mut e)).ok()).collect()
        });
        Self { selector, terms, errors, names: affinity.and_then(|a| names(&a.node_selector_terms)) }
    }

    /// Is nothing demanded?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.selector.is_empty() && self.terms.is_none()
    }

    /// The only nodes it can be, where every term names its nodes; none of them if terms contradict themselves.
    /// Others need not be looked at.
    #[must_use]
    pub fn names(&self) -> Option<&BTreeSet<String>> {
        self.names.as_ref()
    }

    /// Does it speak of fields, which every node has its own of?
    #[must_use]
    pub fn has_fields(&self) -> bool {
        self.terms.iter().flatten().any(|term| !term.fields.is_empty())
    }

    /// The labels it speaks of; one may come more than once.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let terms = self.terms.iter().flatten().flat_map(|term| &term.labels);
        self.selector.iter().chain(terms).map(Requirement::key)
    }

    /// What is not valid about it; such terms match no node.
    #[must_use]
    pub fn errors(&self) -> &[Error] {
        &self.errors
    }

    /// Do the node's labels have everything in the pod's `nodeSelector`?
    pub fn matches_selector<L: Lookup + ?Sized>(&self, labels: &L) -> bool {
        self.selector.iter().all(|r| r.matches(labels))
    }

    /// Does one of the required affinity terms match?
    pub fn matches_affinity<L: Lookup + ?Sized>(&self, name: &str, labels: &L) -> bool {
        self.terms.as_ref().is_none_or(|terms| terms.iter().any(|t| t.matches(name, labels)))
    }

    /// The nodes that meet the demand; `None` when nothing is demanded.
    pub fn nodes(&self, by: &impl Sets) -> Option<FixedBitSet> {
        if self.is_empty() {
            return None;
        }
        let mut out = by.all();
        for requirement in &self.selector {
            out.intersect_with(&by.having(requirement));
        }
        if let Some(terms) = &self.terms {
            let mut any = FixedBitSet::with_capacity(out.len());
            for term in terms {
                any.union_with(&term.nodes(by));
            }
            out.intersect_with(&any);
        }
        Some(out)
    }

    /// Does this node meet the demand?
    pub fn matches<L: Lookup + ?Sized>(&self, name: &str, labels: &L) -> bool {
        self.matches_selector(labels) && self.matches_affinity(name, labels)
    }
}

/// What a pod likes about nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preferred {
    terms: Vec<(i64, Ready)>,
}

impl Preferred {
    /// Prepares the preferred part of a pod's node affinity. Terms without weight or conditions say nothing,
    /// not even when they are not valid.
    ///
    /// # Errors
    /// When a term that counts is not valid.
    pub fn new(terms: &[WeightedTerm]) -> Result<Self, Invalid> {
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        for term in terms.iter().filter(|t| t.weight != 0) {
            match Ready::new(&term.preference) {
                Some(Ok(ready)) => out.push((i64::from(term.weight), ready)),
                Some(Err(mut e)) => errors.append(&mut e),
                None => {}
            }
        }
        if errors.is_empty() { Ok(Self { terms: out }) } else { Err(Invalid(errors)) }
    }

    /// Is nothing liked?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Every term that counts: its weight, and the nodes it likes.
    pub fn nodes(&self, by: &impl Sets) -> impl Iterator<Item = (i64, FixedBitSet)> {
        self.terms.iter().map(|(weight, term)| (*weight, term.nodes(by)))
    }

    /// The weights of all terms that match this node, added up.
    pub fn score<L: Lookup + ?Sized>(&self, name: &str, labels: &L) -> i64 {
        self.terms.iter().filter(|(_, t)| t.matches(name, labels)).map(|(weight, _)| weight).sum()
    }
}

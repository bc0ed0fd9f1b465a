//! Which clusters are meant? By name, by label, by provider, region and zone.

use super::Member;
use crate::select::label::{Expression, Op};
use crate::select::{LabelSelector, Lookup, Requirement, Selector};
use std::collections::BTreeSet;

/// A description of clusters. All parts must match; an empty one matches every cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// By their labels.
    pub labels: Option<LabelSelector>,
    /// By `provider`, `region` and `zone`.
    pub fields: Option<Vec<Expression>>,
    /// One of these; empty for any.
    pub names: Vec<String>,
    /// None of these.
    pub exclude: Vec<String>,
}

/// An [`Affinity`] ready to be asked often. An invalid one matches nothing.
pub(super) struct Matcher<'a> {
    labels: Selector,
    fields: Selector,
    zones: Vec<&'a Expression>,
    names: BTreeSet<&'a str>,
    exclude: BTreeSet<&'a str>,
}

const ZONE: &str = "zone";

impl<'a> Matcher<'a> {
    pub fn new(affinity: &'a Affinity) -> Self {
        let all = |labels: &LabelSelector| labels.selector().unwrap_or_else(|_| Selector::nothing());
        let fields = affinity.fields.iter().flatten();
        let (zones, others): (Vec<_>, Vec<_>) = fields.partition(|expression| expression.key == ZONE);
        Self {
            labels: affinity.labels.as_ref().map_or_else(Selector::everything, all),
            fields: others
                .into_iter()
                .map(requirement)
                .collect::<Option<_>>()
                .map_or_else(Selector::nothing, Selector::all),
            zones,
            names: affinity.names.iter().map(String::as_str).collect(),
            exclude: affinity.exclude.iter().map(String::as_str).collect(),
        }
    }

    pub fn matches(&self, member: &Member) -> bool {
        !self.exclude.contains(&*member.name)
            && (self.names.is_empty() || self.names.contains(&*member.name))
            && self.labels.matches(&member.labels)
            && self.fields.matches(&Fields(member))
            && self.zones.iter().all(|expression| zone(expression, &member.zones))
    }
}

/// What can be asked of a cluster beside its labels. What is empty is not there.
struct Fields<'a>(&'a Member);

impl Lookup for Fields<'_> {
    fn value(&self, key: &str) -> Option<&str> {
        let value = match key {
            "provider" => &self.0.provider,
            "region" => &self.0.region,
            _ => return None,
        };
        Some(value.as_str()).filter(|value| !value.is_empty())
    }
}

fn requirement(expression: &Expression) -> Option<Requirement> {
    let op = match expression.operator.as_str() {
        "In" => Op::In,
        "NotIn" => Op::NotIn,
        "Exists" => Op::Exists,
        "DoesNotExist" => Op::DoesNotExist,
        "Gt" => Op::Gt,
        "Lt" => Op::Lt,
        _ => return None,
    };
    Requirement::new(&expression.key, op, expression.values.clone()).ok()
}

/// Zones are a list: one of them is enough to be in, none may be where not to be.
fn zone(expression: &Expression, zones: &[String]) -> bool {
    let overlap = || zones.iter().any(|zone| expression.values.contains(zone));
    match expression.operator.as_str() {
        "In" => overlap(),
        "NotIn" => !overlap(),
        "Exists" => !zones.is_empty(),
        "DoesNotExist" => zones.is_empty(),
        _ => false,
    }
}

//! Taints keep pods away from nodes; tolerations let them come, or stay, all the same.

use crate::wire::or_default;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a taint does to pods that do not tolerate it. Unknown effects are kept as they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Effect {
    /// They are not placed here.
    NoSchedule,
    /// They are placed here last.
    PreferNoSchedule,
    /// They are not placed here, and those here must go.
    NoExecute,
    /// An effect we do not know.
    Other(String),
}

impl Effect {
    /// The name in the API.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
            Self::Other(name) => name,
        }
    }

    /// Does it keep pods away, rather than only discourage them?
    #[must_use]
    pub fn repels(&self) -> bool {
        matches!(self, Self::NoSchedule | Self::NoExecute)
    }
}

impl From<String> for Effect {
    fn from(name: String) -> Self {
        match name.as_str() {
            "NoSchedule" => Self::NoSchedule,
            "PreferNoSchedule" => Self::PreferNoSchedule,
            "NoExecute" => Self::NoExecute,
            _ => Self::Other(name),
        }
    }
}

impl From<Effect> for String {
    fn from(effect: Effect) -> Self {
        effect.as_str().into()
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A mark on a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What it is about.
    pub key: String,
    /// More about it; may be empty.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What it does.
    pub effect: Effect,
    /// Since when; Kubernetes sets it for `NoExecute`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<jiff::Timestamp>,
}

impl fmt::Display for Taint {
    /// As kubectl writes it: `key=value:Effect`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{}", self.effect)
    }
}

/// How the value of a taint is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Operator {
    /// Must be the same; also what is meant by none.
    #[default]
    Equal,
    /// Does not matter.
    Exists,
    /// The taint's number must be smaller.
    Lt,
    /// The taint's number must be larger.
    Gt,
    /// An operator we do not know; it tolerates nothing.
    Other(String),
}

impl From<String> for Operator {
    fn from(name: String) -> Self {
        match name.as_str() {
            "" | "Equal" => Self::Equal,
            "Exists" => Self::Exists,
            "Lt" => Self::Lt,
            "Gt" => Self::Gt,
            _ => Self::Other(name),
        }
    }
}

impl From<Operator> for String {
    fn from(op: Operator) -> Self {
        match op {
            Operator::Equal => "Equal".into(),
            Operator::Exists => "Exists".into(),
            Operator::Lt => "Lt".into(),
            Operator::Gt => "Gt".into(),
            Operator::Other(name) => name,
        }
    }
}

/// Whether `Lt` and `Gt` count. Kubernetes has them since 1.35 behind the gate
/// `TaintTolerationComparisonOperators`, which is off unless someone turns it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compare {
    /// They tolerate nothing.
    #[default]
    Off,
    /// They compare numbers.
    On,
}

/// A pod's consent to taints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Toleration {
    /// Which key; empty for every key.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// How to compare the value.
    #[serde(deserialize_with = "or_default")]
    pub operator: Operator,
    /// What to compare with.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Which effect; none or empty for every effect.
    #[serde(deserialize_with = "some_effect", skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// For `NoExecute`: how long to stay; none for good, zero or less for not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

fn some_effect<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Effect>, D::Error> {
    let name: Option<String> = Option::deserialize(d)?;
    Ok(name.filter(|n| !n.is_empty()).map(Effect::from))
}

impl Toleration {
    /// Does this consent to that taint?
    #[must_use]
    pub fn tolerates(&self, taint: &Taint, compare: Compare) -> bool {
        let concerns = self.effect.as_ref().is_none_or(|e| *e == taint.effect)
            && (self.key.is_empty() || self.key == taint.key);
        let numbers =
            || Some((number(&taint.value)?, number(&self.value)?)).filter(|_| compare == Compare::On);
        concerns
            && match self.operator {
                Operator::Equal => self.value == taint.value,
                Operator::Exists => true,
                Operator::Lt => numbers().is_some_and(|(there, ours)| there < ours),
                Operator::Gt => numbers().is_some_and(|(there, ours)| there > ours),
                Operator::Other(_) => false,
            }
    }
}

/// A plain decimal number: no plus, no leading zeros, no minus zero.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|n: &i64| n.to_string() == text)
}

/// The first taint that keeps the pod away from the node.
#[must_use]
pub fn repelling<'a>(
    taints: &'a [Taint],
    tolerations: &'a [Toleration],
    compare: Compare,
) -> Option<&'a Taint> {
    all_repelling(taints, tolerations, compare).next()
}

/// The taints that keep the pod away from the node, in their order.
pub fn all_repelling<'a>(
    taints: &'a [Taint],
    tolerations: &'a [Toleration],
    compare: Compare,
) -> impl Iterator<Item = &'a Taint> {
    let tolerated = move |taint: &Taint| tolerations.iter().any(|one| one.tolerates(taint, compare));
    taints.iter().filter(move |taint| taint.effect.repels() && !tolerated(taint))
}

/// May the pod go to a cordoned node? Cordoning counts as a taint of a certain name.
#[must_use]
pub fn tolerates_cordon(tolerations: &[Toleration]) -> bool {
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        value: String::new(),
        effect: Effect::NoSchedule,
        time_added: None,
    };
    tolerations.iter().any(|t| t.tolerates(&cordon, Compare::Off))
}

/// How many taints discourage the pod without keeping it away. Fewer is better.
#[must_use]
pub fn discouraging(taints: &[Taint], tolerations: &[Toleration], compare: Compare) -> usize {
    // Consent to one other effect only does not help against this one, so each taint is simply asked.
    let unwanted = |t: &&Taint| {
        t.effect == Effect::PreferNoSchedule && !tolerations.iter().any(|c| c.tolerates(t, compare))
    };
    taints.iter().filter(unwanted).count()
}

/// How long a running pod may stay on a node with `NoExecute` taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// It must go.
    No,
    /// So many seconds after the taint came.
    Seconds(i64),
    /// For good.
    Forever,
}

/// How long the pod may stay: the shortest time among the first toleration of each `NoExecute` taint.
#[must_use]
pub fn stay(taints: &[Taint], tolerations: &[Toleration], compare: Compare) -> Stay {
    let mut shortest = Stay::Forever;
    for taint in taints.iter().filter(|t| t.effect == Effect::NoExecute) {
        let Some(consent) = tolerations.iter().find(|c| c.tolerates(taint, compare)) else { return Stay::No };
        shortest = match (consent.toleration_seconds, shortest) {
            (Some(..=0), _) => return Stay::No,
            (Some(s), Stay::Seconds(least)) => Stay::Seconds(s.min(least)),
            (Some(s), _) => Stay::Seconds(s),
            (None, _) => shortest,
        };
    }
    shortest
}

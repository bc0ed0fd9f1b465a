//! Which pods may which action touch? Scopes (`PodQOS`).

use super::pod::Pod;
use crate::select::label::Expression;
use crate::select::{LabelSelector, Selector};
use std::sync::Arc;

/// A scope as it is written. `key` of an expression is the name of what is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    pub name: Arc<str>,
    /// Which labels a pod must have.
    pub labels: LabelSelector,
    /// What else must hold: `Namespace`, `QOSClass` or `Priority`, `In` or `NotIn`, values.
    pub expressions: Vec<Expression>,
    /// What may be done to the pods.
    pub allowed: Vec<Arc<str>>,
}

/// A scope that reads.
#[derive(Clone, Debug)]
pub(super) struct Scoped {
    labels: Option<Selector>,
    terms: Vec<Term>,
    pub(super) allowed: Vec<Arc<str>>,
}

#[derive(Clone, Debug)]
struct Term {
    what: What,
    wanted: bool,
}

#[derive(Clone, Debug)]
enum What {
    Namespace(Vec<String>),
    Class(Vec<String>),
    Priority(Vec<(i64, i64)>),
}

impl Scoped {
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(scope: &Scope) -> Result<Self, String> {
        let has_labels = !scope.labels.match_labels.is_empty() || !scope.labels.match_expressions.is_empty();
        let labels = if has_labels {
            Some(scope.labels.selector().map_err(|problem| problem.to_string())?)
        } else {
            None
        };
        if labels.is_none() && scope.expressions.is_empty() {
            return Err("it has neither labels nor expressions".into());
        }
        let terms = scope.expressions.iter().map(term).collect::<Result<_, _>>()?;
        Ok(Self { labels, terms, allowed: scope.allowed.clone() })
    }

    pub(super) fn matches(&self, pod: &Pod) -> bool {
        self.terms.iter().all(|term| term.what.has(pod) == term.wanted)
            && self.labels.as_ref().is_none_or(|labels| labels.matches(&pod.labels))
    }
}

impl What {
    fn has(&self, pod: &Pod) -> bool {
        match self {
            Self::Namespace(names) => names.iter().any(|name| **name == *pod.key.namespace),
            Self::Class(names) => names.iter().any(|name| name == pod.class.as_str()),
            Self::Priority(ranges) => {
                let priority = i64::from(pod.priority);
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&priority))
            }
        }
    }
}

fn term(given: &Expression) -> Result<Term, String> {
    let wanted = match given.operator.as_str() {
        "In" => true,
        "NotIn" => false,
        other => return Err(format!("{other:?} is no operator for {}, expected In or NotIn", given.key)),
    };
    let values = given.values.clone();
    let what = match given.key.as_str() {
        "Namespace" => What::Namespace(values),
        "QOSClass" => What::Class(values),
        "Priority" => What::Priority(values.iter().map(|text| range(text)).collect::<Result<_, _>>()?),
        other => {
            return Err(format!("{other:?} is no scope, expected QOSClass, Priority or Namespace"));
        }
    };
    Ok(Term { what, wanted })
}

/// A number, or two with a dash between them, each of which may be negative: `5`, `-200--50`.
fn range(text: &str) -> Result<(i64, i64), String> {
    let wrong = || format!("{text:?} is no priority, expected a number or a range such as -1000-0");
    let number = |part: &str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| part.parse::<i64>().ok()).flatten()
    };
    if let Some(one) = number(text) {
        return Ok((one, one));
    }
    // The dash between the two is the first one that is not a sign.
    let dash = text.char_indices().skip(1).find(|(_, c)| *c == '-').map(|(i, _)| i).ok_or_else(wrong)?;
    let (low, high) =
        (number(&text[..dash]).ok_or_else(wrong)?, number(&text[dash + 1..]).ok_or_else(wrong)?);
    if low > high {
        return Err(format!("{text:?} is an empty range of priorities"));
    }
    Ok((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Key;
    use crate::qos::pod::Class;
    use crate::view::Labels;
    use std::collections::BTreeMap;

    fn expression(key: &str, operator: &str, values: &[&str]) -> Expression {
        Expression {
            key: key.into(),
            operator: operator.into(),
            values: values.iter().map(ToString::to_string).collect(),
        }
    }

    fn pod() -> Pod {
        Pod {
            key: Key::new("batch", "a"),
            priority: -100,
            class: Class::BestEffort,
            labels: Labels::plain(&BTreeMap::from([("app".into(), "a".into())])),
            ..Pod::default()
        }
    }

    // R17.
    #[test]
    fn all_conditions_must_hold_and_values_are_alternatives() {
        let scope = |expressions: Vec<Expression>| Scope { expressions, ..Scope::default() };
        for (expressions, matches, why) in [
            (vec![expression("Namespace", "In", &["x", "batch"])], true, "one of two"),
            (
                vec![expression("Namespace", "NotIn", &["batch", "x"])],
                false,
                "every value counts, not just the last",
            ),
            (vec![expression("QOSClass", "In", &["BestEffort"])], true, "the class"),
            (vec![expression("QOSClass", "NotIn", &["BestEffort"])], false, "not the class"),
            (vec![expression("Priority", "In", &["-100"])], true, "a negative number"),
            (vec![expression("Priority", "In", &["-200--50"])], true, "a negative range"),
            (vec![expression("Priority", "In", &["-100-0"])], true, "the end belongs to it"),
            (vec![expression("Priority", "NotIn", &["0", "-1000-0"])], false, "none may match"),
            (
                vec![expression("Priority", "In", &["-1000-0"]), expression("Namespace", "In", &["x"])],
                false,
                "both must hold",
            ),
        ] {
            let scoped = Scoped::new(&scope(expressions)).unwrap();
            assert_eq!(scoped.matches(&pod()), matches, "{why}");
        }
    }

    #[test]
    fn what_does_not_read_matches_nothing_and_says_why() {
        for (scope, expected) in [
            (Scope::default(), "neither labels nor expressions"),
            (
                Scope { expressions: vec![expression("Priority", "Exists", &[])], ..Scope::default() },
                "\"Exists\" is no operator for Priority",
            ),
            (
                Scope { expressions: vec![expression("Priority", "In", &["high"])], ..Scope::default() },
                "\"high\" is no priority",
            ),
            (
                Scope { expressions: vec![expression("Priority", "In", &["5-1"])], ..Scope::default() },
                "empty range",
            ),
            (
                Scope { expressions: vec![expression("Priority", "In", &["1-2-3"])], ..Scope::default() },
                "is no priority",
            ),
            (
                Scope { expressions: vec![expression("Node", "In", &["a"])], ..Scope::default() },
                "\"Node\" is no scope",
            ),
        ] {
            let problem = Scoped::new(&scope).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn an_absent_label_is_not_an_empty_one() {
        let labels = LabelSelector {
            match_labels: BTreeMap::from([("missing".into(), String::new())]),
            ..LabelSelector::default()
        };
        let scoped = Scoped::new(&Scope { labels, ..Scope::default() }).unwrap();
        assert!(!scoped.matches(&pod()));
    }
}

//! What do quotas leave?
//!
//! A `ResourceQuota` counts the pods all its scopes hold for. Of what it lists and its status reports,
//!
//! ```text
//! free   = max(0, hard − used) − what is assumed to be on its way
//! allows = min over requested r of floor( free(r) / request(r) )
//! ```
//!
//! The tightest quota of the namespace binds. `requests.cpu` and `cpu` are one resource, and the tighter entry of the
//! two counts. Limits and the number of pods count where the asker knows the whole template.

use super::view::{View, held};
use super::{Ask, Assumed, Component, UNCONSTRAINED};
use crate::object::Key;
use crate::quantity::Quantity;
use crate::resources::{List, is_extended};
use std::collections::BTreeMap;

/// A `ResourceQuota`, as far as it counts replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    pub key: Key,
    /// What may be used (`status.hard`).
    pub hard: List,
    /// What is used (`status.used`).
    pub used: List,
    /// Which pods it counts: those that every one of these holds for.
    pub scopes: Vec<Scope>,
}

/// One condition on the pods a quota counts. A plain `spec.scopes` entry is one with the operator `Exists`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// `PriorityClass`, `BestEffort`, `NotBestEffort`, …
    pub name: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// For `In` and `NotIn`.
    pub values: Vec<String>,
}

/// What the tightest quota leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The name of the quota.
    pub quota: String,
    /// The resource that ends first, as the quota names it.
    pub resource: String,
    /// How many replicas or sets.
    pub allows: i32,
}

/// What a quota can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted<'a> {
    Request(&'a str),
    Limit(&'a str),
    Pods,
}

impl<'a> Counted<'a> {
    /// `None` for what replicas do not use up: storage, objects.
    fn of(entry: &'a str) -> Option<Self> {
        let counted = |name: &str| {
            matches!(name, "cpu" | "memory" | "ephemeral-storage")
                || (is_extended(name) && !name.starts_with("count/"))
        };
        if matches!(entry, "pods" | "count/pods") {
            Some(Self::Pods)
        } else if let Some(name) = entry.strip_prefix("limits.") {
            counted(name).then_some(Self::Limit(name))
        } else {
            let name = entry.strip_prefix("requests.").unwrap_or(entry);
            counted(name).then_some(Self::Request(name))
        }
    }

    /// What one replica uses up, in thousandths of CPU or whole units.
    fn amount(self, ask: &Ask) -> i128 {
        let units = |name: &str, amount: &Quantity| {
            i128::from(if name == "cpu" { amount.milli_value() } else { amount.value() })
        };
        match self {
            Self::Request(name) => ask.requests.get(name).map_or(0, |amount| units(name, amount)),
            Self::Limit(name) => {
                ask.limits.as_ref().and_then(|limits| limits.get(name)).map_or(0, |n| units(name, n))
            }
            Self::Pods => i128::from(ask.limits.is_some()),
        }
        .max(0)
    }
}

impl Scope {
    fn holds(&self, ask: &Ask) -> bool {
        let names =
            |list: &List| ["cpu", "memory"].iter().any(|r| list.get(*r).is_some_and(|n| n.value() > 0));
        let best_effort = !names(&ask.requests) && !ask.limits.as_ref().is_some_and(names);
        let class = &ask.priority_class;
        match self.name.as_str() {
            "PriorityClass" => match self.operator.as_str() {
                "Exists" | "" => !class.is_empty(),
                "DoesNotExist" => class.is_empty(),
                "In" => self.values.contains(class),
                "NotIn" => !self.values.contains(class),
                _ => false,
            },
            "BestEffort" => best_effort,
            "NotBestEffort" => !best_effort,
            // Replicas have no deadline of their own.
            "NotTerminating" => true,
            _ => false,
        }
    }
}

impl Quota {
    fn counts(&self, ask: &Ask) -> bool {
        self.scopes.iter().all(|scope| scope.holds(ask))
    }

    /// What is left of everything it counts, with the name it has there.
    fn free<'a>(&'a self, assumed: &[(&Ask, i64)]) -> BTreeMap<Counted<'a>, (i128, &'a str)> {
        let mut out = BTreeMap::new();
        for (entry, hard) in &self.hard {
            let (Some(counted), Some(used)) = (Counted::of(entry), self.used.get(entry)) else { continue };
            let units = |amount: &Quantity| match counted {
                Counted::Request("cpu") | Counted::Limit("cpu") => i128::from(amount.milli_value()),
                _ => i128::from(amount.value()),
            };
            let coming: i128 = assumed
                .iter()
                .filter(|(ask, _)| self.counts(ask))
                .map(|(ask, count)| counted.amount(ask).saturating_mul(i128::from(*count)))
                .fold(0, i128::saturating_add);
            let free = (units(hard) - units(used)).max(0).saturating_sub(coming).max(0);
            let place = out.entry(counted).or_insert((free, entry.as_str()));
            if free < place.0 {
                *place = (free, entry);
            }
        }
        out
    }

    /// How often the sum of these asks fits, each so many times; `None` if nothing of it is counted.
    fn allows(&self, asks: &[(&Ask, i64)], assumed: &[(&Ask, i64)]) -> Option<Allowance> {
        let counted: Vec<_> = asks.iter().filter(|(ask, _)| self.counts(ask)).collect();
        if counted.is_empty() {
            return None;
        }
        let mut best: Option<(i128, &str)> = None;
        for (resource, (free, entry)) in self.free(assumed) {
            let asked: i128 = counted
                .iter()
                .map(|(ask, count)| resource.amount(ask).saturating_mul(i128::from(*count)))
                .fold(0, i128::saturating_add);
            if asked > 0 && best.is_none_or(|(count, _)| free / asked < count) {
                best = Some((free / asked, entry));
            }
        }
        let (count, resource) = best?;
        let allows = held(i64::try_from(count).unwrap_or(i64::MAX));
        (allows < UNCONSTRAINED).then(|| Allowance {
            quota: self.key.name.to_string(),
            resource: resource.to_owned(),
            allows,
        })
    }
}

/// What the quotas of a namespace leave for these asks, each so many times. No namespace, no bound.
fn tightest(view: &View, namespace: &str, asks: &[(&Ask, i64)], assumed: &[Assumed]) -> Option<Allowance> {
    let quotas = view.quotas.get(namespace).filter(|_| !namespace.is_empty())?;
    let mut coming: Vec<(&Ask, i64)> = Vec::new();
    for workload in assumed.iter().filter(|workload| workload.namespace == namespace) {
        // Pods that exist are in `used` already, wherever they are.
        let left = super::field::remaining(view, workload);
        coming.extend(workload.components.iter().map(|c| &c.ask).zip(left));
    }
    let bounds = quotas.iter().filter_map(|quota| quota.allows(asks, &coming));
    bounds.min_by_key(|bound| bound.allows)
}

/// What quotas leave for replicas.
pub(super) fn replicas(view: &View, ask: &Ask, assumed: &[Assumed]) -> Option<Allowance> {
    tightest(view, &ask.namespace, &[(ask, 1)], assumed)
}

/// What quotas leave for sets.
pub(super) fn sets(
    view: &View,
    namespace: &str,
    components: &[Component],
    assumed: &[Assumed],
) -> Option<Allowance> {
    let asks: Vec<_> = components.iter().map(|c| (&c.ask, i64::from(c.replicas.max(0)))).collect();
    tightest(view, namespace, &asks, assumed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::{ask, list};
    use crate::estimate::{Given, Index};
    use crate::view::build::node;

    fn quota(hard: &[(&str, &str)], used: &[(&str, &str)]) -> Quota {
        Quota { key: Key::new("default", "q"), hard: list(hard), used: list(used), scopes: vec![] }
    }

    fn index(quotas: Vec<Quota>) -> Index {
        let mut index = Index::new();
        index.set_node(&node("n").cpu("100").memory("100Gi").has("example.com/gpu", "100").facts());
        for quota in quotas {
            index.set_quota(quota);
        }
        index
    }

    fn bound(quotas: Vec<Quota>, ask: &Ask) -> Option<(String, i32)> {
        let answer = index(quotas).publish().replicas(ask, &Given::default()).expect("wanted");
        answer.by_quota.map(|bound| (bound.resource, bound.allows))
    }

    #[test]
    fn a_quota_leaves_what_is_not_used_yet() {
        for (hard, used, want, why) in [
            (&[("cpu", "10")][..], &[("cpu", "4")][..], Some(("cpu", 3)), "⌊6/2⌋"),
            (
                &[("requests.cpu", "10")],
                &[("requests.cpu", "4")],
                Some(("requests.cpu", 3)),
                "the same resource",
            ),
            (
                &[("cpu", "10"), ("requests.cpu", "7")],
                &[("cpu", "4"), ("requests.cpu", "4")],
                Some(("requests.cpu", 1)),
                "the tighter of the two",
            ),
            // Row 3: upstream's figure would be negative.
            (&[("cpu", "4")], &[("cpu", "10")], Some(("cpu", 0)), "used more than allowed"),
            (&[("cpu", "4")], &[], None, "nothing reported yet"),
            (&[("memory", "3Gi")], &[("memory", "0")], Some(("memory", 3)), "⌊3/1⌋"),
            (&[("limits.cpu", "1")], &[("limits.cpu", "1")], None, "limits are not known"),
            (&[("pods", "1")], &[("pods", "1")], None, "the whole template is not known"),
            (&[("requests.storage", "1")], &[("requests.storage", "1")], None, "not used by replicas"),
            (&[("count/deployments.apps", "1")], &[("count/deployments.apps", "1")], None, "objects"),
            (
                &[("requests.example.com/gpu", "1")],
                &[("requests.example.com/gpu", "0")],
                None,
                "not requested",
            ),
            (&[("cpu", "9P")], &[("cpu", "0")], None, "more than any answer"),
        ] {
            let got = bound(vec![quota(hard, used)], &ask(&[("cpu", "2"), ("memory", "1Gi")]));
            assert_eq!(got.as_ref().map(|(r, n)| (r.as_str(), *n)), want, "{hard:?} {used:?}: {why}");
        }
        let gpu = quota(&[("requests.example.com/gpu", "5")], &[("requests.example.com/gpu", "2")]);
        let got = bound(vec![gpu], &ask(&[("example.com/gpu", "2")]));
        assert_eq!(got, Some(("requests.example.com/gpu".into(), 1)), "⌊3/2⌋");
    }

    #[test]
    fn limits_and_pods_count_where_the_whole_template_is_known() {
        let known = Ask { limits: Some(list(&[("cpu", "4")])), ..ask(&[("cpu", "1")]) };
        let got = bound(vec![quota(&[("limits.cpu", "9")], &[("limits.cpu", "0")])], &known);
        assert_eq!(got, Some(("limits.cpu".into(), 2)), "⌊9/4⌋");
        let got = bound(vec![quota(&[("pods", "9")], &[("pods", "6")])], &known);
        assert_eq!(got, Some(("pods".into(), 3)), "9 − 6");
    }

    // Row 26: Kubernetes wants all scopes to hold, not one of them.
    #[test]
    fn a_quota_binds_only_if_all_its_scopes_hold() {
        let scope = |name: &str, operator: &str, values: &[&str]| Scope {
            name: name.into(),
            operator: operator.into(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        };
        let class = |operator: &str, values: &[&str]| scope("PriorityClass", operator, values);
        let plain = |name: &str| scope(name, "Exists", &[]);
        for (scopes, class, binds, why) in [
            (vec![], "", true, "no scopes"),
            (vec![class("Exists", &[])], "high", true, "has a class"),
            (vec![class("Exists", &[])], "", false, "has none"),
            (vec![class("In", &["high"])], "high", true, "listed"),
            (vec![class("In", &["high"])], "low", false, "not listed"),
            (vec![class("NotIn", &["high"])], "low", true, "not excluded"),
            (vec![class("DoesNotExist", &[])], "", true, "has none"),
            (vec![class("Smells", &[])], "high", false, "no such operator"),
            (vec![plain("NotBestEffort")], "", true, "it requests something"),
            (vec![plain("BestEffort")], "", false, "it requests something"),
            (vec![plain("NotTerminating")], "", true, "replicas have no deadline"),
            (vec![plain("Terminating")], "", false, "replicas have no deadline"),
            (vec![plain("CrossNamespacePodAffinity")], "", false, "not known"),
            (vec![plain("NotBestEffort"), class("In", &["high"])], "low", false, "one holds, one does not"),
            (vec![plain("NotBestEffort"), class("In", &["high"])], "high", true, "both hold"),
        ] {
            let quota = Quota { scopes: scopes.clone(), ..quota(&[("cpu", "1")], &[("cpu", "1")]) };
            let ask = Ask { priority_class: class.into(), ..ask(&[("cpu", "1")]) };
            assert_eq!(bound(vec![quota], &ask).is_some(), binds, "{scopes:?} {class:?}: {why}");
        }
    }

    // Row 27: upstream takes an empty namespace for all of them.
    #[test]
    fn without_a_namespace_no_quota_binds() {
        let full = quota(&[("cpu", "1")], &[("cpu", "1")]);
        let nowhere = Ask { namespace: String::new(), ..ask(&[("cpu", "1")]) };
        assert_eq!(bound(vec![full.clone()], &nowhere), None);
        assert_eq!(bound(vec![Quota { key: Key::new("", "q"), ..full.clone() }], &nowhere), None);
        let elsewhere = Ask { namespace: "other".into(), ..ask(&[("cpu", "1")]) };
        assert_eq!(bound(vec![full], &elsewhere), None);
    }

    #[test]
    fn the_tightest_quota_binds_and_is_named() {
        let named = |name: &str, hard: &str| Quota {
            key: Key::new("default", name),
            ..quota(&[("cpu", hard)], &[("cpu", "0")])
        };
        let index = index(vec![named("b", "3"), named("a", "7"), named("c", "3")]);
        let answer = index.publish().replicas(&ask(&[("cpu", "1")]), &Given::default()).expect("wanted");
        assert_eq!((answer.most, answer.by_nodes), (3, 100));
        assert_eq!(answer.by_quota.map(|b| b.quota).as_deref(), Some("b"), "of equals, the first by name");
        let without = Given { quotas: false, ..Given::default() };
        assert_eq!(index.publish().replicas(&ask(&[("cpu", "1")]), &without).map(|a| a.most), Ok(100));
    }

    #[test]
    fn what_is_assumed_uses_up_quota() {
        let index = index(vec![quota(&[("cpu", "10")], &[("cpu", "2")])]);
        let component =
            |replicas, cpu: &str| Component { name: "c".into(), replicas, ask: ask(&[("cpu", cpu)]) };
        let assume = |namespace: &str| Assumed {
            namespace: namespace.into(),
            workload: None,
            components: vec![component(3, "1"), component(1, "2")],
        };
        let most = |assumed: &[Assumed]| {
            let given = Given { assumed, ..Given::default() };
            index.publish().replicas(&ask(&[("cpu", "1")]), &given).expect("wanted").most
        };
        assert_eq!(most(&[assume("default")]), 3, "10 − 2 − 3×1 − 1×2");
        assert_eq!(most(&[assume("other")]), 8, "another namespace's");
        assert_eq!(most(&[assume("default"), assume("default")]), 0, "never below nothing");

        let sets = |components: &[Component]| {
            index.publish().sets("default", components, &Given::default()).expect("wanted").most
        };
        assert_eq!(sets(&[component(1, "1"), component(1, "2")]), 2, "⌊8/3⌋");
    }
}

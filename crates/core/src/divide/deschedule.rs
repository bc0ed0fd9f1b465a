//! Which replicas would be better off elsewhere? Those that a cluster was given and has found no node for.
//!
//! As Karmada's descheduler does it: a cluster's number goes down by what has waited there for too long, never below
//! what runs there. The sum is then too small, and the next division places the difference anew.

use super::due::Applied;
use super::{Binding, Division, Previous};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Is it divided by what fits, all of it, and of a kind whose waiting replicas can be counted?
#[must_use]
pub fn is_about(binding: &Binding, applied: &Applied) -> bool {
    let Applied::Placement(last) = applied else { return false };
    let dynamic = match &last.division {
        Division::Aggregated => true,
        Division::Weighted(Some(weights)) => weights.dynamic,
        _ => false,
    };
    // What the sum lacks is to be placed already, and clusters say that it waits until they hear of it: nobody is lowered twice.
    let placed: i64 = binding.clusters.iter().map(|known| i64::from(known.replicas)).sum();
    let kind = (binding.resource.api_version.as_str(), binding.resource.kind.as_str());
    dynamic && kind == ("apps/v1", "Deployment") && placed >= i64::from(binding.replicas)
}

/// Clusters that run fewer than they were given: only there is it worth asking who waits.
pub fn behind<'b>(
    clusters: &'b [Previous],
    ready: &'b BTreeMap<String, i32>,
) -> impl Iterator<Item = &'b Previous> {
    clusters.iter().filter(|known| ready.get(&known.name).is_none_or(|ready| *ready < known.replicas))
}

/// What to write, and how to tell of it. `None` if nothing is to be moved.
#[must_use]
pub fn lowered(
    clusters: &[Previous],
    ready: &BTreeMap<String, i32>,
    waiting: &BTreeMap<String, i32>,
) -> Option<(Vec<Previous>, String)> {
    let mut told = "Binding has been descheduled".to_owned();
    let mut sum = 0_i32;
    let lower = |known: &Previous| {
        let waiting = waiting.get(&known.name).copied().unwrap_or(0);
        let mut replicas = known.replicas;
        if waiting > 0 && waiting <= known.replicas {
            let runs = ready.get(&known.name).copied().unwrap_or(0);
            replicas -= waiting;
            // More than it should have may run for a while; that is no reason to give it more.
            if runs <= known.replicas {
                replicas = replicas.max(runs);
            }
        }
        let less = known.replicas - replicas;
        if less > 0 {
            sum = sum.saturating_add(less);
            let _ = write!(told, ", {less} replica(s) in cluster({})", known.name);
        }
        Previous { name: known.name.clone(), replicas }
    };
    let lowered = clusters.iter().map(lower).collect();
    let _ = write!(told, ", {sum} total descheduled replica(s)");
    (sum > 0).then_some((lowered, told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divide::{Placement, Weights};

    fn given(entries: &[(&str, i32)]) -> BTreeMap<String, i32> {
        entries.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    fn has(replicas: i32) -> Vec<Previous> {
        vec![Previous { name: "a".into(), replicas }]
    }

    #[test]
    fn a_number_goes_down_by_what_waits_and_never_below_what_runs() {
        for (target, ready, waiting, expected, why) in [
            (5, Some(2), Some(3), Some(2), "what waits goes"),
            (5, Some(4), Some(3), Some(4), "what runs stays"),
            (5, Some(5), Some(0), None, "nobody waits"),
            (5, Some(2), None, None, "nobody knows"),
            (5, None, Some(2), Some(3), "nothing is known of what runs"),
            (5, Some(1), Some(6), None, "more than it was given: the answer is about something else"),
            (5, Some(7), Some(3), Some(2), "too many run for the moment"),
            (5, Some(5), Some(2), None, "all run: others wait for what they do not need"),
        ] {
            let ready = given(&ready.map_or(vec![], |count| vec![("a", count)]));
            let waiting = given(&waiting.map_or(vec![], |count| vec![("a", count)]));
            let clusters = has(target);
            let found = lowered(&clusters, &ready, &waiting);
            assert_eq!(found.map(|(clusters, _)| clusters[0].replicas), expected, "{why}");
        }
    }

    #[test]
    fn it_is_told_in_karmadas_words() {
        let clusters = vec![
            Previous { name: "a".into(), replicas: 4 },
            Previous { name: "b".into(), replicas: 2 },
            Previous { name: "c".into(), replicas: 2 },
        ];
        let (_, told) =
            lowered(&clusters, &given(&[]), &given(&[("a", 3), ("c", 1)])).expect("something moves");
        let expected = "Binding has been descheduled, 3 replica(s) in cluster(a), 1 replica(s) in cluster(c), \
                        4 total descheduled replica(s)";
        assert_eq!(told, expected);
    }

    #[test]
    fn only_who_is_divided_by_what_fits_is_looked_at() {
        let mut binding = Binding::default();
        (binding.resource.api_version, binding.resource.kind) = ("apps/v1".into(), "Deployment".into());
        let by = |division| Applied::Placement(Box::new(Placement { division, ..Placement::default() }));
        assert!(is_about(&binding, &by(Division::Aggregated)));
        assert!(is_about(
            &binding,
            &by(Division::Weighted(Some(Weights { dynamic: true, ..Weights::default() })))
        ));
        assert!(!is_about(&binding, &by(Division::Weighted(Some(Weights::default())))));
        assert!(!is_about(&binding, &by(Division::Duplicated)));
        (binding.replicas, binding.clusters) = (4, vec![Previous { name: "a".into(), replicas: 3 }]);
        assert!(!is_about(&binding, &by(Division::Aggregated)), "one of them is to be placed already");
        binding.clusters[0].replicas = 4;
        assert!(is_about(&binding, &by(Division::Aggregated)));
        assert!(!is_about(&binding, &Applied::Never), "it was never divided");
        binding.resource.kind = "StatefulSet".into();
        assert!(!is_about(&binding, &by(Division::Aggregated)), "its pods cannot be counted");
    }

    #[test]
    fn clusters_that_are_behind_are_those_that_run_too_few() {
        let clusters = vec![
            Previous { name: "a".into(), replicas: 2 },
            Previous { name: "b".into(), replicas: 2 },
            Previous { name: "c".into(), replicas: 2 },
        ];
        let ready = given(&[("a", 2), ("b", 1)]);
        let names: Vec<_> = behind(&clusters, &ready).map(|known| known.name.as_str()).collect();
        assert_eq!(names, ["b", "c"], "c said nothing");
    }
}

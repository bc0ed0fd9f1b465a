//! Do accounts have the rights their components were seen to use, and no others?
//!
//! Components record what they ask of API servers when `LOADLINE_RECORD_CALLS` names a folder: one line of JSON for each kind of
//! request, one file for each process. [`check`] compares that with the roles we ship, as Helm renders them from the chart or as
//! they stand in files. What is used and not granted is a failure, what is granted and not used is one, too; what is so on
//! purpose stands in `deploy/privilege.txt`, with the reason, and has to be so.

mod exceptions;
mod grants;
mod recorded;
mod sources;

use crate::parts::Missing;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// One kind of request, as RBAC sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Right {
    pub verb: String,
    /// With its group and subresource: `nodes`, `nodes/status`, `leases.coordination.k8s.io`,
    /// `placements.cluster.open-cluster-management.io/status`.
    pub resource: String,
}

impl Right {
    fn new(verb: &str, group: &str, resource: &str, subresource: &str) -> Self {
        let mut name = resource.to_owned();
        for (before, part) in [('.', group), ('/', subresource)] {
            if !part.is_empty() {
                name.push(before);
                name.push_str(part);
            }
        }
        Self { verb: verb.to_owned(), resource: name }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)
    }
}

/// Why it could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    Missing(#[from] Missing),
    #[error("{}: {what}", path.display())]
    File { path: PathBuf, what: String },
    #[error("helm template: {0}")]
    Helm(String),
}

impl Problem {
    fn file(path: &Path, what: impl fmt::Display) -> Self {
        Self::File { path: path.to_owned(), what: what.to_string() }
    }
}

/// What is wrong, a line each, and how much was compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub wrong: Vec<String>,
    /// Components, and rights that are granted to them and were used.
    pub compared: (usize, usize),
}

/// What a component was seen to use: the whole cluster, or one namespace at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Used {
    cluster: BTreeSet<Right>,
    namespaced: BTreeSet<Right>,
}

/// What its account may do: everywhere, and in the namespace it runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Granted {
    cluster: BTreeSet<Right>,
    namespaced: BTreeSet<Right>,
}

/// Compares what stands in a folder of records with what we ship.
///
/// # Errors
/// When there is nothing to compare: no records, no Helm, a chart or a file that does not read.
pub fn check(folder: &Path) -> Result<Verdict, Problem> {
    let mut used = recorded::read(folder)?;
    used.retain(|component, _| !sources::PEOPLE.contains(&&**component));
    let granted = sources::read()?;
    let exceptions = exceptions::read(&sources::top().join(exceptions::FILE))?;
    Ok(compare(&used, &granted, &exceptions))
}

fn compare(
    used: &BTreeMap<String, Used>,
    granted: &BTreeMap<String, Granted>,
    exceptions: &[exceptions::Exception],
) -> Verdict {
    let (mut differences, mut agreed) = (BTreeSet::new(), 0);
    for (component, granted) in granted {
        let nothing = Used::default();
        let used = used.get(component).unwrap_or(&nothing);
        let everywhere = used.cluster.iter().filter(|right| !granted.cluster.contains(right));
        let somewhere = used
            .namespaced
            .iter()
            .filter(|right| !granted.cluster.contains(right) && !granted.namespaced.contains(right));
        for right in everywhere.chain(somewhere) {
            differences.insert((exceptions::Of::Used, component.clone(), right.clone()));
        }
        for right in granted.cluster.union(&granted.namespaced) {
            let cluster = granted.cluster.contains(right) && used.cluster.contains(right);
            if cluster || used.namespaced.contains(right) {
                agreed += 1;
            } else {
                differences.insert((exceptions::Of::Granted, component.clone(), right.clone()));
            }
        }
    }
    let strangers = used.keys().filter(|component| !granted.contains_key(*component));
    let mut wrong: Vec<String> =
        strangers.map(|component| format!("{component}: no role of ours is known for it")).collect();
    let (rare, always): (Vec<_>, Vec<_>) = exceptions
        .iter()
        .map(exceptions::Exception::difference)
        .partition(|(of, ..)| *of == exceptions::Of::Rarely);
    for (_, component, right) in rare {
        // It has to be granted, or there is nothing to except.
        let held = granted.get(&component);
        if held.is_some_and(|held| held.cluster.contains(&right) || held.namespaced.contains(&right)) {
            differences.remove(&(exceptions::Of::Granted, component, right));
        } else {
            wrong.push(format!("{component}: {right} stands in {} and is not granted", exceptions::FILE));
        }
    }
    let excepted: BTreeSet<_> = always.into_iter().collect();
    for (of, component, right) in differences.difference(&excepted) {
        wrong.push(match of {
            exceptions::Of::Used => format!("{component}: {right} is used and not granted"),
            _ => format!("{component}: {right} is granted and was never used"),
        });
    }
    for (_, component, right) in excepted.difference(&differences) {
        wrong.push(format!("{component}: {right} stands in {} and is as it should be", exceptions::FILE));
    }
    Verdict { wrong, compared: (granted.len(), agreed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exceptions::{Exception, Of};

    fn right(text: &str) -> Right {
        let (verb, resource) = text.split_once(' ').unwrap();
        Right { verb: verb.to_owned(), resource: resource.to_owned() }
    }

    fn rights(all: &[&str]) -> BTreeSet<Right> {
        all.iter().map(|text| right(text)).collect()
    }

    fn one<T>(of: T) -> BTreeMap<String, T> {
        BTreeMap::from([("c".to_owned(), of)])
    }

    #[test]
    fn what_is_used_and_not_granted_and_what_is_granted_and_not_used_are_told_apart() {
        for (used, granted, wrong, why) in [
            ((&["list nodes"][..], &[][..]), (&["list nodes"][..], &[][..]), &[][..], "equal"),
            (
                (&["list nodes", "watch nodes"], &[]),
                (&["list nodes"], &[]),
                &["c: watch nodes is used and not granted"],
                "one too few",
            ),
            (
                (&["list nodes"], &[]),
                (&["list nodes", "patch nodes"], &[]),
                &["c: patch nodes is granted and was never used"],
                "one too many",
            ),
            ((&[], &["create pods/eviction"]), (&["create pods/eviction"], &[]), &[], "in any namespace"),
            ((&[], &["get leases"]), (&[], &["get leases"]), &[], "in its own namespace"),
            (
                (&["list pods"], &[]),
                (&[], &["list pods"]),
                &["c: list pods is granted and was never used", "c: list pods is used and not granted"],
                "everywhere is more than in one namespace",
            ),
        ] {
            let used = Used { cluster: rights(used.0), namespaced: rights(used.1) };
            let granted = Granted { cluster: rights(granted.0), namespaced: rights(granted.1) };
            let mut found = compare(&one(used), &one(granted), &[]).wrong;
            found.sort();
            assert_eq!(found, wrong, "{why}");
        }
    }

    #[test]
    fn a_component_that_was_never_seen_uses_nothing() {
        let granted = Granted { cluster: rights(&["list nodes"]), ..Granted::default() };
        let verdict = compare(&BTreeMap::new(), &one(granted), &[]);
        assert_eq!(verdict.wrong, ["c: list nodes is granted and was never used"]);
    }

    #[test]
    fn a_component_without_a_role_is_told() {
        let used = Used { cluster: rights(&["list nodes"]), ..Used::default() };
        let verdict = compare(&one(used), &BTreeMap::new(), &[]);
        assert_eq!(verdict.wrong, ["c: no role of ours is known for it"]);
    }

    #[test]
    fn an_exception_counts_for_what_it_says_and_has_to_be_needed() {
        let exception = |of, text: &str| Exception {
            of,
            component: "c".to_owned(),
            right: right(text),
            why: String::new(),
        };
        let granted = Granted { cluster: rights(&["update a/finalizers"]), ..Granted::default() };
        let except = [exception(Of::Granted, "update a/finalizers")];
        assert_eq!(compare(&BTreeMap::new(), &one(granted.clone()), &except).wrong, [""; 0]);
        // Of the other kind it is no excuse, and is not needed itself.
        let except = [exception(Of::Used, "update a/finalizers")];
        assert_eq!(compare(&BTreeMap::new(), &one(granted.clone()), &except).wrong.len(), 2);
        let used = Used { cluster: rights(&["update a/finalizers"]), ..Used::default() };
        let except = [exception(Of::Granted, "update a/finalizers")];
        let verdict = compare(&one(used.clone()), &one(granted.clone()), &except);
        // What is seen in some runs only is fine in both.
        let rare = [exception(Of::Rarely, "update a/finalizers")];
        assert_eq!(compare(&one(used.clone()), &one(granted.clone()), &rare).wrong, [""; 0]);
        assert_eq!(compare(&BTreeMap::new(), &one(granted.clone()), &rare).wrong, [""; 0]);
        let other = [exception(Of::Rarely, "get b")];
        let told = "c: get b stands in deploy/privilege.txt and is not granted";
        assert_eq!(compare(&one(used.clone()), &one(granted.clone()), &other).wrong, [told]);
        let told = "c: update a/finalizers stands in deploy/privilege.txt and is as it should be";
        assert_eq!(verdict.wrong, [told]);
    }
}

//! Are the kinds there, served in the version that is read?

use super::facts::{Definition, Facts};
use super::permissions::Component;
use super::{Finding, few};
use rustc_hash::FxHashMap;

const CHECK: &str = "definitions";

/// A kind that components read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The name of its definition.
    pub name: &'static str,
    /// The version that is read.
    pub version: &'static str,
    /// Who cannot do without.
    needed_by: &'static [Component],
    /// Does it come with other software, so that nothing is missing where that is not?
    foreign: bool,
}

impl Kind {
    /// The API group.
    fn group(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(_, group)| group)
    }
}

/// Everything that is looked for.
pub const KINDS: [Kind; 12] = {
    const fn kind(name: &'static str, version: &'static str, needed_by: &'static [Component]) -> Kind {
        Kind { name, version, needed_by, foreign: false }
    }
    const fn foreign(name: &'static str, version: &'static str) -> Kind {
        Kind { foreign: true, ..kind(name, version, &[]) }
    }
    [
        kind("nodeqoss.ensurance.crane.io", "v1alpha1", &[Component::Agent]),
        kind("podqoss.ensurance.crane.io", "v1alpha1", &[Component::Agent]),
        kind("avoidanceactions.ensurance.crane.io", "v1alpha1", &[Component::Agent]),
        kind("recommendations.analysis.crane.io", "v1alpha1", &[Component::Recommender]),
        foreign("managedclusters.cluster.open-cluster-management.io", "v1"),
        foreign("managedclustersets.cluster.open-cluster-management.io", "v1beta2"),
        foreign("managedclustersetbindings.cluster.open-cluster-management.io", "v1beta2"),
        foreign("placements.cluster.open-cluster-management.io", "v1beta1"),
        foreign("placementdecisions.cluster.open-cluster-management.io", "v1beta1"),
        foreign("addonplacementscores.cluster.open-cluster-management.io", "v1alpha1"),
        foreign("clusters.cluster.karmada.io", "v1alpha1"),
        foreign("resourcebindings.work.karmada.io", "v1alpha2"),
    ]
};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Some(there) = facts.definitions.read() else { return Vec::new() };
    let by_name: FxHashMap<&str, &Definition> = there.iter().map(|one| (one.name.as_str(), one)).collect();
    let running = Component::running(facts);
    let (mut out, mut fine, mut absent) = (Vec::new(), Vec::new(), Vec::new());
    for kind in &KINDS {
        let show = format!("kubectl get customresourcedefinition {}", kind.name);
        let Some(found) = by_name.get(kind.name) else {
            if let Some(who) = kind.needed_by.iter().find(|one| running.contains(*one)) {
                let what = format!("the kind {} is not there, and `loadline {who}` runs", kind.name);
                out.push(
                    Finding::broken(CHECK, what)
                        .why("it waits for the kind, and does nothing until then")
                        .fix(apply(kind))
                        .show(show),
                );
            } else if !kind.foreign {
                absent.push(kind.name);
            }
            continue;
        };
        if !found.served.iter().any(|version| version == kind.version) {
            let what = format!(
                "{} is served as {}, but {} is what is read",
                kind.name,
                few(&found.served),
                kind.version
            );
            let fix = if kind.foreign {
                "use a version of that software that serves it".to_owned()
            } else {
                apply(kind)
            };
            out.push(
                Finding::broken(CHECK, what)
                    .why("objects of the kind cannot be read: it is as if there were none")
                    .fix(fix)
                    .show(format!("{show} -o jsonpath='{{.spec.versions[*].name}}'")),
            );
        } else if !found.established {
            let trouble = found.trouble.as_deref().unwrap_or("its conditions do not say why");
            out.push(
                Finding::broken(CHECK, format!("{} is not established: {trouble}", kind.name))
                    .why("the API server does not serve the kind yet, or cannot")
                    .fix("look at its conditions; names that another definition has taken must be given up there")
                    .show(format!("kubectl describe customresourcedefinition {}", kind.name)),
            );
        } else {
            fine.push(kind.name);
        }
    }
    let all = "kubectl get customresourcedefinitions";
    if !absent.is_empty() {
        let names: Vec<&str> =
            absent.iter().map(|name| name.split_once('.').map_or(*name, |(plural, _)| plural)).collect();
        let what = format!(
            "kinds that are not there: {}; needed only for the agent (NodeQOS, PodQOS, AvoidanceAction) and the recommender",
            names.join(", ")
        );
        out.push(Finding::ok(CHECK, what, all));
    }
    if !fine.is_empty() {
        out.push(Finding::ok(CHECK, format!("kinds as they should be: {}", fine.len()), all));
    }
    out
}

fn apply(kind: &Kind) -> String {
    let plural = kind.name.strip_suffix(kind.group()).unwrap_or(kind.name).trim_end_matches('.');
    format!("kubectl apply -f deploy/crds/{plural}.yaml")
}

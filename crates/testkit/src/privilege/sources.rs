//! Where do the roles of components stand?

use super::{Granted, Problem, grants};
use crate::{install, parts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a role of ours is to be found.
enum Source {
    /// In the chart, with these values.
    Chart(&'static [&'static str]),
    /// In a file; on a page, in its YAML.
    File(&'static str),
}

/// What a component calls itself, where its roles are, and what they are called.
type Row = (&'static str, Source, &'static [&'static str]);

const FLEET: &[&str] = &["loadline-fleet"];

/// What goes by the kubeconfig of whoever runs it, with whatever rights they have.
pub(super) const PEOPLE: [&str; 1] = ["loadline-explain"];

/// Every component with an account.
const ROWS: &[Row] = &[
    ("loadline-scheduler", Source::Chart(&["scheduler.mode=active"]), &["loadline-scheduler"]),
    ("loadline-scheduler", Source::Chart(&["scheduler.mode=extender"]), &["loadline-scheduler"]),
    ("loadline-scheduler", Source::File("deploy/scheduler/scheduler.yaml"), &["loadline-scheduler"]),
    ("loadline-shadow", Source::Chart(&["scheduler.mode=shadow"]), &["loadline-scheduler"]),
    ("loadline-annotator", Source::Chart(&["annotator.taints=true"]), &["loadline-annotator"]),
    ("loadline-recommender", Source::Chart(&[]), &["loadline-recommender"]),
    (
        "loadline-rebalance",
        Source::Chart(&["rebalance.enabled=true", "rebalance.act=true"]),
        &["loadline-rebalance"],
    ),
    ("loadline-rebalance", Source::File("deploy/rebalance/act.yaml"), &["loadline-rebalance"]),
    ("loadline-rebalance-preview", Source::Chart(&["rebalance.enabled=true"]), &["loadline-rebalance"]),
    ("loadline-rebalance-preview", Source::File("deploy/rebalance/rebalance.yaml"), &["loadline-rebalance"]),
    ("loadline-agent", Source::Chart(&["agent.act=true"]), &["loadline-agent"]),
    ("loadline-agent", Source::File("deploy/agent/act.yaml"), &["loadline-agent"]),
    ("loadline-agent-preview", Source::File("deploy/agent/agent.yaml"), &["loadline-agent"]),
    ("loadline-agent-preview", Source::Chart(&[]), &["loadline-agent"]),
    (
        "loadline-estimator",
        Source::Chart(&[
            "estimator.enabled=true",
            "estimator.clusterName=m1",
            "estimator.allowPlaintext=true",
            "estimator.load=true",
        ]),
        &["loadline-estimator"],
    ),
    ("loadline-dashboard", Source::Chart(&["dashboard.enabled=true"]), &["loadline-dashboard"]),
    ("loadline-dashboard", Source::File("deploy/dashboard/dashboard.yaml"), &["loadline-dashboard"]),
    ("loadline-placement", Source::Chart(&["fleet.enabled=true", "fleet.api=ocm"]), FLEET),
    ("loadline-placement", Source::File("deploy/fleet/ocm.yaml"), FLEET),
    ("loadline-fleet", Source::Chart(&["fleet.enabled=true", "fleet.api=karmada"]), FLEET),
    ("loadline-fleet", Source::File("docs/guide/fleet-karmada.md"), FLEET),
    ("loadline-publish", Source::File("docs/guide/fleet-publish.md"), &["loadline-publish-m1"]),
    (
        "loadline-publish-member",
        Source::Chart(&[
            "fleet.enabled=true",
            "fleet.api=publish",
            "fleet.clusterName=m1",
            "fleet.kubeconfigSecret=hub",
        ]),
        FLEET,
    ),
    ("loadline-doctor", Source::File("deploy/doctor/rbac.yaml"), &["loadline-doctor"]),
    ("loadline-cleanup", Source::Chart(&["cleanup.enabled=true"]), &["loadline-cleanup"]),
];

/// The folder of this repository.
pub(super) fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What every component may do. Where it is said in two places, both have to say the same.
///
/// # Errors
/// When Helm is not there, or something does not read.
pub(super) fn read() -> Result<BTreeMap<String, Granted>, Problem> {
    let helm = parts::find("helm")?;
    let mut out: BTreeMap<String, Granted> = BTreeMap::new();
    for (component, source, names) in ROWS {
        let granted = match source {
            Source::Chart(values) => {
                let objects = rendered(&helm, values)?;
                grants::of(&objects, names).map_err(|what| Problem::file(&install::chart(), what))?
            }
            Source::File(file) => {
                let path = top().join(file);
                let text = fs::read_to_string(&path).map_err(|error| Problem::file(&path, error))?;
                let is_page = path.extension().is_some_and(|kind| kind == "md");
                let text = if is_page { yaml(&text) } else { text };
                let objects = grants::objects(&text).map_err(|what| Problem::file(&path, what))?;
                grants::of(&objects, names).map_err(|what| Problem::file(&path, what))?
            }
        };
        match out.get(*component) {
            Some(other) if *other != granted => {
                let all =
                    |one: &Granted| one.cluster.union(&one.namespaced).cloned().collect::<BTreeSet<_>>();
                let (one, other) = (all(other), all(&granted));
                let more = one.symmetric_difference(&other).map(ToString::to_string);
                let more = more.collect::<Vec<_>>().join(", ");
                let what = format!("{component}: expected the same rights in the chart and in files: {more}");
                return Err(Problem::file(&top().join("deploy"), what));
            }
            _ => out.insert((*component).to_owned(), granted),
        };
    }
    Ok(out)
}

fn rendered(helm: &Path, values: &[&str]) -> Result<Vec<Value>, Problem> {
    let mut command = Command::new(helm);
    command.args(["template", "loadline"]).arg(install::chart());
    command.args(["--namespace", install::NAMESPACE, "--kube-version", "1.36"]);
    for value in values {
        command.args(["--set", value]);
    }
    let output = command.output().map_err(|error| Problem::Helm(error.to_string()))?;
    if !output.status.success() {
        return Err(Problem::Helm(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    grants::objects(&String::from_utf8_lossy(&output.stdout)).map_err(Problem::Helm)
}

/// What stands in the fences for YAML of a page.
fn yaml(page: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in page.lines() {
        match line.trim() {
            "```yaml" => {
                inside = true;
                out.push_str("\n---\n");
            }
            "```" => inside = false,
            _ if inside => {
                out.push_str(line);
                out.push('\n');
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_is_found_and_the_same_wherever_it_stands() {
        if parts::find_or_skip("helm").is_none() {
            return;
        }
        let all = read().unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(all.len(), 16);
        for (component, granted) in &all {
            assert!(granted.cluster.len() + granted.namespaced.len() > 3, "{component}: {granted:?}");
        }
        let evicts = |granted: &Granted| granted.cluster.iter().any(|one| one.resource == "pods/eviction");
        let who: Vec<&str> =
            all.iter().filter(|(_, granted)| evicts(granted)).map(|(name, _)| &**name).collect();
        assert_eq!(who, ["loadline-agent", "loadline-rebalance", "loadline-scheduler"]);
    }

    #[test]
    fn only_the_yaml_of_a_page_counts() {
        let page = "a: 1\n```yaml\nkind: A\n```\n```\nkind: B\n```\n```yaml\nkind: C\n```\n";
        assert_eq!(yaml(page), "\n---\nkind: A\n\n---\nkind: C\n");
    }
}

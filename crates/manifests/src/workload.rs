//! Which workload is a question about?

use crate::kind::Kind;
use crate::manifest::{Manifest, Manifests};
use crate::problem::Problem;
use serde_json::Value;

/// So many of too many workloads are named.
const NAMED: usize = 5;

impl Manifests {
    /// The one object a question is about: of those that are meant whenever they are there, else of these kinds. None
    /// and more than one are problems.
    pub(crate) fn workload(&mut self, meant: &[Kind], kinds: &[Kind]) -> Option<Manifest> {
        let mut found: Vec<&Manifest> =
            self.objects.iter().filter(|object| meant.contains(&object.kind)).collect();
        if found.is_empty() {
            let workloads = self.objects.iter().filter(|object| kinds.contains(&object.kind));
            found = workloads.filter(|object| !is_controlled(&object.value)).collect();
        }
        // The same object twice is the same.
        found.dedup_by(|a, b| a.value == b.value);
        let message = match found.as_slice() {
            [one] => return Some((*one).clone()),
            // It may be among what could not be read.
            [] if !self.problems.is_empty() => return None,
            [] => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
                format!("none: {}", names.join(", "))
            }
            many => listed(many),
        };
        self.problems.push(Problem::general(format!("expected one workload to ask about, found {message}")));
        None
    }
}

/// How many, and the first of them.
fn listed(many: &[&Manifest]) -> String {
    let name = |object: &&Manifest| format!("{} {} ({})", object.kind.name, object.key(), object.location);
    let first: Vec<String> = many.iter().take(NAMED).map(name).collect();
    let more = match many.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}: {}{more}", many.len(), first.join(", "))
}

/// Did another workload make it?
fn is_controlled(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.into_iter().any(|owner| owner["controller"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{EstimateInput, MEANT, WORKLOADS};

    fn found(text: &str) -> Result<String, String> {
        let mut manifests = Manifests::parse("-", text, EstimateInput::KINDS);
        let found = manifests.workload(&MEANT, &WORKLOADS).map(|object| listed(&[&object]));
        let ended = manifests.finish(found).map(|(found, _)| found.replacen("1: ", "", 1));
        ended.map(|text| text.replace("-: ", "")).map_err(|problems| problems.to_string().replace("-: ", ""))
    }

    fn object(version: &str, kind: &str, name: &str, more: &str) -> String {
        format!(
            "---\n{{apiVersion: {version}, kind: {kind}, metadata: {{name: {name}{more}}}, spec: {{selector: {{}}, template: {{}}}}}}\n"
        )
    }

    #[test]
    fn one_workload_is_the_question_and_others_only_own_pods() {
        let deployment = object("apps/v1", "Deployment", "web", "");
        let owned = object(
            "apps/v1",
            "ReplicaSet",
            "web-1",
            ", ownerReferences: [{controller: true, apiVersion: apps/v1, kind: Deployment, name: web, uid: u}]",
        );
        let alone = object("apps/v1", "ReplicaSet", "alone", ", namespace: shop");
        let daemons = object("apps/v1", "DaemonSet", "agent", "");
        let binding =
            "---\n{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: b}, spec: {replicas: 1}}\n"
                .to_owned();
        for (why, input, expected) in [
            ("the only one", deployment.clone(), Ok("Deployment web (document 1)")),
            (
                "what it made is not asked about",
                owned.clone() + &deployment,
                Ok("Deployment web (document 2)"),
            ),
            (
                "daemons are everywhere anyway",
                daemons.clone() + &alone,
                Ok("ReplicaSet shop/alone (document 2)"),
            ),
            (
                "a binding is meant",
                deployment.clone() + &alone + &binding,
                Ok("ResourceBinding b (document 3)"),
            ),
            ("the same twice", deployment.clone() + &deployment, Ok("Deployment web (document 1)")),
            (
                "two",
                deployment.clone() + &alone,
                Err(
                    "expected one workload to ask about, found 2: Deployment web (document 1), ReplicaSet shop/alone (document 2)",
                ),
            ),
            (
                "none",
                daemons + &owned,
                Err(
                    "expected one workload to ask about, found none: Deployment, StatefulSet, ReplicaSet, Job, PodTemplate, ResourceBinding, ClusterResourceBinding",
                ),
            ),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found(&input), expected, "{why}");
        }
    }
}

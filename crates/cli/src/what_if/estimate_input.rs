//! What is asked about, and under which circumstances? Of the objects given, one is the question.

use super::world::{self, Build};
use crate::documents::{Document, Documents, Kind};
use loadline_api::json::Tree;
use loadline_api::workload::{self, Question};
use loadline_api::{Context, quota};
use loadline_core::estimate::{Assumed, Index, Quota};
use serde_json::Value;
use std::fmt;

/// Workloads that are meant whenever they are there: nobody finds them in a cluster by chance.
const MEANT: [&str; 3] = ["PodTemplate", "ResourceBinding", "ClusterResourceBinding"];
/// So many of too many workloads are named.
const NAMED: usize = 5;

/// Every kind that is read: all that `schedule` does, so that one file serves both, and what is only asked here.
pub fn kinds() -> Vec<Kind> {
    let mut kinds = world::KINDS.to_vec();
    kinds.push(("v1", "ResourceQuota"));
    kinds.extend(workload::KINDS.iter().filter(|kind| MEANT.contains(&kind.1)));
    kinds.push(workload::ASSUMED);
    kinds
}

/// Why it is not clear what is asked. Displays as one line.
#[derive(Debug, PartialEq, Eq)]
pub enum Unclear {
    /// No workload; one of these kinds would do.
    None(Vec<&'static str>),
    /// More than one, by name and place.
    Several(Vec<String>),
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected one workload to ask about, found ")?;
        match self {
            Self::None(kinds) => write!(f, "none: {}", kinds.join(", ")),
            Self::Several(all) => {
                write!(
                    f,
                    "{}: {}",
                    all.len(),
                    all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ")
                )?;
                if all.len() > NAMED { write!(f, " and {} more", all.len() - NAMED) } else { Ok(()) }
            }
        }
    }
}

/// The objects that are not part of the cluster.
pub struct Input {
    question: Document,
    assumed: Vec<Document>,
    quotas: Vec<Document>,
}

/// Takes the question and its circumstances out of the objects; the rest is the cluster. Looked for the question are
/// only the first so many objects.
///
/// # Errors
/// When there is no question, or more than one.
pub fn split(read: &mut Documents, files: usize) -> Result<Input, Unclear> {
    let asked = &read.objects[..files.min(read.objects.len())];
    let question = find(asked, &MEANT, &workload::KINDS)?.clone();
    let mut take = |kinds: &[&str]| -> Vec<Document> {
        read.objects.extract_if(.., |object| kinds.contains(&object.kind)).collect()
    };
    let _ = take(&MEANT);
    Ok(Input { question, assumed: take(&[workload::ASSUMED.1]), quotas: take(&["ResourceQuota"]) })
}

/// The one object the question is about: of those that are meant whenever they are there, else of these kinds.
///
/// # Errors
/// When there is none, or more than one.
pub fn find<'d>(objects: &'d [Document], meant: &[&str], kinds: &[Kind]) -> Result<&'d Document, Unclear> {
    let is_workload = |object: &&Document| kinds.contains(&(object.api_version, object.kind));
    let meant = |object: &&Document| meant.contains(&object.kind);
    let mut found: Vec<&Document> = objects.iter().filter(meant).collect();
    if found.is_empty() {
        found = objects.iter().filter(is_workload).filter(|object| !is_controlled(&object.value)).collect();
    }
    // The same object twice is the same.
    found.dedup_by(|a, b| a.value == b.value);
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(Unclear::None(kinds.iter().map(|kind| kind.1).collect())),
        many => Err(Unclear::Several(many.iter().map(|object| name(object)).collect())),
    }
}

/// Did another workload make it?
fn is_controlled(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.into_iter().any(|owner| owner["controller"] == true)
}

fn name(object: &Document) -> String {
    let part = |key: &str| object.value["metadata"][key].as_str().unwrap_or_default();
    let slash = if part("namespace").is_empty() { "" } else { "/" };
    format!("{} {}{slash}{} ({})", object.kind, part("namespace"), part("name"), object.place)
}

impl Input {
    /// Reads the question; `None` if something is wrong with it, which is noted.
    pub fn question(&self, context: &Context, build: &mut Build) -> Option<Question> {
        let (question, warnings) =
            build.must(&self.question, workload::read(&Tree::from(&self.question.value), context))?;
        build.warn(&self.question, warnings);
        Some(question)
    }

    /// Reads what is on its way.
    pub fn assumed(&self, context: &Context, build: &mut Build) -> Vec<Assumed> {
        // Those without a name are all different.
        let is_named = |document: &Document| document.value["metadata"]["name"].as_str().is_some();
        let (named, others): (Vec<Document>, Vec<Document>) =
            self.assumed.iter().cloned().partition(is_named);
        let documents = build.once(named).into_iter().chain(others);
        let mut out = Vec::new();
        for document in documents {
            if let Some((assumed, warnings)) =
                build.must(&document, workload::assumed(&Tree::from(&document.value), context))
            {
                build.warn(&document, warnings);
                out.push(assumed);
            }
        }
        out
    }

    /// Tells the index of quotas.
    pub fn quotas(&self, index: &mut Index, build: &mut Build) {
        for document in build.once(self.quotas.clone()) {
            let read: Option<Quota> = build.must(&document, quota::quota(&Tree::from(&document.value)));
            let Some(quota) = read else { continue };
            if quota.hard.is_empty() {
                let odd =
                    document.problem("status.hard", "nobody has counted yet, so this quota binds nothing");
                build.warnings.push(odd.to_string());
            }
            index.set_quota(quota);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents;

    fn found(text: &str) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let read = documents::read(&[file.path().to_owned()], &kinds()).expect("it reads");
        let file = format!("{}: ", file.path().display());
        find(&read.objects, &MEANT, &workload::KINDS)
            .map(name)
            .map(|text| text.replace(&file, ""))
            .map_err(|unclear| unclear.to_string().replace(&file, ""))
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

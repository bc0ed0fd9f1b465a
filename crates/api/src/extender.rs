//! What does kube-scheduler ask its extenders, and how is it answered? The JSON of its extender API, version 1.
//!
//! Envelopes have the names of Go fields as keys, capitalised; pods and nodes in them look as everywhere. Candidates come
//! as names, or as whole nodes, and are answered in the same form. Names of nodes are read into one text: with hundreds
//! of them in every request, a string each would cost more than the answer.
//!
//! Both forms missing means "no node" in an answer, so every list is written, also an empty one.

use crate::json::Tree;
use crate::pod::{self, Pod};
use loadline_core::cluster::Verdict;
use loadline_core::cycle::among;
use loadline_core::object::{Key, Meta};
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// What is told of a node nobody here knows.
const UNKNOWN: &str = "node(s) were not known to the load rules yet";

/// Why a request cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the request cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Pod(#[from] crate::Error),
    #[error("the request lacks {0}")]
    Missing(&'static str),
}

/// Names, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    pub fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut from = 0;
        self.ends.iter().map(move |end| &self.text[std::mem::replace(&mut from, *end)..*end])
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of names")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Names, A::Error> {
                let mut names = Names::default();
                while let Some(name) = from.next_element::<Text<'de>>()? {
                    names.push(&name.0);
                }
                Ok(names)
            }
        }
        from.deserialize_seq(List)
    }
}

/// Text that is copied only if it has escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A pod, without what nobody reads of it.
#[derive(Default)]
struct Object<'a>(Tree<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        serde::de::DeserializeSeed::deserialize(pod::SKIP, from).map(Self)
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "Pod", borrow, default)]
    pod: Object<'a>,
    #[serde(rename = "Nodes", borrow, default)]
    nodes: Option<NodeList<'a>>,
    #[serde(rename = "NodeNames", default)]
    names: Option<Names>,
}

#[derive(Deserialize)]
struct NodeList<'a> {
    #[serde(borrow, default)]
    items: Option<Vec<Tree<'a>>>,
}

/// What `filter` and `prioritize` are asked.
#[derive(Debug)]
pub struct Args<'a> {
    pub pod: Pod,
    /// The candidates.
    pub names: Names,
    pub form: Form<'a>,
}

/// How candidates came, and are answered: as names, or as these nodes.
#[derive(Debug, Default)]
pub struct Form<'a>(Option<Vec<Tree<'a>>>);

/// Reads what `filter` and `prioritize` are asked.
///
/// # Errors
/// When it is not what kube-scheduler sends.
pub fn args(body: &[u8]) -> Result<Args<'_>, Error> {
    let Envelope { pod, nodes, names } = serde_json::from_slice(body)?;
    let pod = read(&pod.0)?;
    Ok(match (names, nodes) {
        (Some(names), _) => Args { pod, names, form: Form(None) },
        // Answered with an empty list, this would read as "no node will do".
        (None, None) => return Err(Error::Missing("candidates: NodeNames or Nodes")),
        (None, Some(list)) => {
            let nodes = list.items.unwrap_or_default();
            let mut names = Names::default();
            for node in &nodes {
                names.push(node["metadata"]["name"].as_str().unwrap_or_default());
            }
            Args { pod, names, form: Form(Some(nodes)) }
        }
    })
}

fn read(pod: &Tree<'_>) -> Result<Pod, Error> {
    if pod.is_null() {
        return Err(Error::Missing("a pod"));
    }
    Ok(pod::read(pod)?.0)
}

#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct FilterResult<'a> {
    nodes: Option<Listed<'a>>,
    node_names: Option<Vec<&'a str>>,
    failed_nodes: BTreeMap<&'a str, &'static str>,
    failed_and_unresolvable_nodes: BTreeMap<&'a str, &'static str>,
    error: &'a str,
}

#[derive(Serialize)]
struct Listed<'a> {
    metadata: Nothing,
    items: Vec<&'a Tree<'a>>,
}

/// `{}`.
#[derive(Serialize)]
struct Nothing {}

/// Answers `filter`, a verdict for each candidate.
///
/// Why a node failed is said in few different words: kube-scheduler counts nodes by them and writes the sum into the pod.
/// Nodes that are only worse than others are not mentioned: nobody would read it, and many names take time.
#[must_use]
pub fn filtered(form: &Form<'_>, names: &Names, verdicts: &[Verdict]) -> Vec<u8> {
    let mut out = FilterResult::default();
    for (name, verdict) in names.iter().zip(verdicts) {
        match verdict {
            Verdict::Passes | Verdict::Outranked => {}
            Verdict::Unknown => drop(out.failed_nodes.insert(name, UNKNOWN)),
            Verdict::Refused(rule) if rule.yields_to_eviction() => {
                out.failed_nodes.insert(name, among::words(*rule));
            }
            Verdict::Refused(rule) => {
                out.failed_and_unresolvable_nodes.insert(name, among::words(*rule));
            }
        }
    }
    let passes = |verdict: &Verdict| *verdict == Verdict::Passes;
    if let Some(nodes) = &form.0 {
        let items = nodes.iter().zip(verdicts).filter(|(_, v)| passes(v)).map(|(node, _)| node).collect();
        out.nodes = Some(Listed { metadata: Nothing {}, items });
    } else {
        let passing = names.iter().zip(verdicts).filter(|(_, v)| passes(v)).map(|(name, _)| name);
        out.node_names = Some(passing.collect());
    }
    text(&out)
}

/// Answers `filter` with why there is no answer: the pod is tried again later, or without us if we may be ignored.
#[must_use]
pub fn filter_error(error: &str) -> Vec<u8> {
    text(&FilterResult { error, ..FilterResult::default() })
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct HostPriority<'a> {
    host: &'a str,
    score: u8,
}

/// Answers `prioritize`, a level for each candidate.
#[must_use]
pub fn prioritized(names: &Names, levels: &[u8]) -> Vec<u8> {
    let scores = names.iter().zip(levels).map(|(host, score)| HostPriority { host, score: *score });
    text(&scores.collect::<Vec<_>>())
}

/// What `bind` is asked: this pod goes to that node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindArgs {
    pub pod: Meta,
    pub node: String,
}

/// Reads what `bind` is asked.
///
/// # Errors
/// When it is not what kube-scheduler sends.
pub fn bind_args(body: &[u8]) -> Result<BindArgs, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase", default)]
    #[derive(Default)]
    struct Binding {
        pod_name: String,
        pod_namespace: String,
        #[serde(rename = "PodUID")]
        pod_uid: String,
        node: String,
    }
    let Binding { pod_name, pod_namespace, pod_uid, node } = serde_json::from_slice(body)?;
    for (text, what) in [(&pod_name, "PodName"), (&pod_namespace, "PodNamespace"), (&node, "Node")] {
        if text.is_empty() {
            return Err(Error::Missing(what));
        }
    }
    let key = Key::new(pod_namespace, pod_name);
    Ok(BindArgs { pod: Meta { key, uid: pod_uid.into(), revision: None }, node })
}

/// Answers `bind`; nothing is well.
#[must_use]
pub fn bound(error: &str) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct BindingResult<'a> {
        error: &'a str,
    }
    text(&BindingResult { error })
}

/// Who would have to leave a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Victims {
    /// By uid.
    pub pods: Vec<String>,
    pub budget_violations: i64,
}

/// What `preempt` is asked: victims by node.
#[derive(Debug)]
pub struct PreemptArgs {
    pub pod: Pod,
    pub victims: BTreeMap<String, Victims>,
}

/// Reads what `preempt` is asked.
///
/// # Errors
/// When it is not what kube-scheduler sends.
pub fn preempt_args(body: &[u8]) -> Result<PreemptArgs, Error> {
    #[derive(Deserialize)]
    struct Asked<'a> {
        #[serde(rename = "Pod", borrow, default)]
        pod: Object<'a>,
        #[serde(rename = "NodeNameToVictims", default)]
        whole: Option<BTreeMap<String, Option<Of<Whole>>>>,
        #[serde(rename = "NodeNameToMetaVictims", default)]
        meta: Option<BTreeMap<String, Option<Of<MetaPod>>>>,
    }
    #[derive(Deserialize)]
    struct Of<P> {
        #[serde(rename = "Pods")]
        pods: Option<Vec<P>>,
        #[serde(rename = "NumPDBViolations", default)]
        budget_violations: i64,
    }
    #[derive(Deserialize)]
    struct Whole {
        metadata: WholeMeta,
    }
    #[derive(Deserialize)]
    struct WholeMeta {
        uid: String,
    }
    fn victims<P>(
        nodes: Option<BTreeMap<String, Option<Of<P>>>>,
        uid: impl Fn(P) -> String,
    ) -> impl Iterator<Item = (String, Victims)> {
        nodes.into_iter().flatten().map(move |(node, of)| {
            let mut out = Victims::default();
            if let Some(of) = of {
                out.pods = of.pods.into_iter().flatten().map(&uid).collect();
                out.budget_violations = of.budget_violations;
            }
            (node, out)
        })
    }
    let Asked { pod, whole, meta } = serde_json::from_slice(body)?;
    let mut all: BTreeMap<String, Victims> = victims(whole, |pod| pod.metadata.uid).collect();
    all.extend(victims(meta, |pod| pod.uid));
    Ok(PreemptArgs { pod: read(&pod.0)?, victims: all })
}

#[derive(Serialize, Deserialize)]
struct MetaPod<T = String> {
    #[serde(rename = "UID")]
    uid: T,
}

/// Answers `preempt` with the nodes that remain, and the victims that were asked about.
#[must_use]
pub fn preempted(victims: &BTreeMap<&str, &Victims>) -> Vec<u8> {
    #[derive(Serialize)]
    struct MetaVictims<'a> {
        #[serde(rename = "Pods")]
        pods: Vec<MetaPod<&'a str>>,
        #[serde(rename = "NumPDBViolations")]
        budget_violations: i64,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct PreemptionResult<'a> {
        node_name_to_meta_victims: BTreeMap<&'a str, MetaVictims<'a>>,
    }
    let all = victims.iter().map(|(node, Victims { pods, budget_violations })| {
        let pods = pods.iter().map(|uid| MetaPod { uid: uid.as_str() }).collect();
        (*node, MetaVictims { pods, budget_violations: *budget_violations })
    });
    text(&PreemptionResult { node_name_to_meta_victims: all.collect() })
}

/// Nothing written here can fail to be: keys are text.
fn text(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    match serde_json::to_writer(&mut out, value) {
        Ok(()) => out,
        Err(_) => b"null".to_vec(),
    }
}

#[cfg(test)]
mod tests;

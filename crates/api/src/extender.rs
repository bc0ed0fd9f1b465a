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
    /// Is one not written in JSON as it is, between quotes?
    escaped: bool,
}

impl Names {
    pub fn push(&mut self, name: &str) {
        self.escaped |= name.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\');
        self.push_as_it_is(name);
    }

    fn push_as_it_is(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    /// Those of them for which that is so; what is said of others is not looked at.
    #[must_use]
    pub fn only(self, is: impl Fn(usize) -> bool) -> Self {
        if (0..self.len()).all(&is) {
            return self;
        }
        let text = String::with_capacity(self.text.len());
        let mut out = Self { text, ends: Vec::with_capacity(self.len()), escaped: self.escaped };
        self.iter().enumerate().filter(|(at, _)| is(*at)).for_each(|(_, name)| out.push_as_it_is(name));
        out
    }

    /// How many bytes they are as a list in JSON without a space, if that needs no escapes.
    fn written(&self) -> Option<usize> {
        let (list, each) = ("[]".len(), "\"\",".len());
        (!self.escaped && !self.is_empty()).then(|| list + each * self.len() - 1 + self.text.len())
    }

    /// Writes one of them in JSON.
    fn write(&self, name: &str, to: &mut Vec<u8>) {
        if self.escaped {
            to.append(&mut text(&name));
            return;
        }
        to.push(b'"');
        to.extend_from_slice(name.as_bytes());
        to.push(b'"');
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
                while let Some(Text(name)) = from.next_element()? {
                    match name {
                        Cow::Borrowed(name) => names.push_as_it_is(name),
                        Cow::Owned(name) => names.push(&name),
                    }
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

/// A question whose names were told, and which of them: `prioritize` comes with the same pod and these, as kube-scheduler asks.
#[derive(Clone, Debug)]
pub struct Told {
    /// What comes before the names.
    head: Box<[u8]>,
    names: Names,
}

impl Told {
    /// Remembers a question that ends with these names, in which the pod is written as it is written the next time; of the names, those
    /// that were told. Nothing if it does not end so.
    #[must_use]
    pub fn new(body: &[u8], names: Names, is_told: impl Fn(usize) -> bool) -> Option<Self> {
        let head = body.len().checked_sub(names.written()? + "}".len())?;
        let (head, list) = body.split_at(head);
        (head.ends_with(b"\"NodeNames\":") && list.starts_with(b"[") && list.ends_with(b"]}"))
            .then_some(())?;
        Some(Self { head: head.into(), names: names.only(is_told) })
    }

    /// Does a question say the same of the pod, and name those that were told, in that order?
    #[must_use]
    pub fn is_asked_by(&self, body: &[u8]) -> bool {
        let Some(length) = self.names.written() else { return false };
        let Some(list) = body.strip_prefix(&*self.head).and_then(|rest| rest.strip_suffix(b"]}")) else {
            return false;
        };
        if list.len() != length - "]".len() || list[0] != b'[' {
            return false;
        }
        let mut rest = &list[1..];
        self.names.iter().enumerate().all(|(at, name)| {
            let after = if at == 0 { Some(rest) } else { rest.strip_prefix(b",") };
            let after = after.and_then(|rest| rest.strip_prefix(b"\""));
            let after = after.and_then(|rest| rest.strip_prefix(name.as_bytes()));
            let after = after.and_then(|rest| rest.strip_prefix(b"\""));
            after.is_some_and(|after| {
                rest = after;
                true
            })
        })
    }

    /// Those that were told.
    #[must_use]
    pub fn into_names(self) -> Names {
        self.names
    }
}

/// What comes behind the nodes that will do.
#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct FilterResult<'a> {
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
    let mut rest = FilterResult::default();
    for (name, verdict) in names.iter().zip(verdicts) {
        match verdict {
            Verdict::Passes | Verdict::Outranked => {}
            Verdict::Unknown => drop(rest.failed_nodes.insert(name, UNKNOWN)),
            Verdict::Refused(rule) if rule.yields_to_eviction() => {
                rest.failed_nodes.insert(name, among::words(*rule));
            }
            Verdict::Refused(rule) => {
                rest.failed_and_unresolvable_nodes.insert(name, among::words(*rule));
            }
        }
    }
    let passes = |verdict: &Verdict| *verdict == Verdict::Passes;
    let Some(nodes) = &form.0 else {
        let mut list = Vec::with_capacity(names.written().unwrap_or_default());
        let passing = names.iter().zip(verdicts).filter(|(_, v)| passes(v)).map(|(name, _)| name);
        each(&mut list, passing, |name, to| names.write(name, to));
        return filter_result(b"null", &list, &rest);
    };
    let items = nodes.iter().zip(verdicts).filter(|(_, v)| passes(v)).map(|(node, _)| node).collect();
    filter_result(&text(&Listed { metadata: Nothing {}, items }), b"null", &rest)
}

/// Answers `filter` with why there is no answer: the pod is tried again later, or without us if we may be ignored.
#[must_use]
pub fn filter_error(error: &str) -> Vec<u8> {
    filter_result(b"null", b"null", &FilterResult { error, ..FilterResult::default() })
}

fn filter_result(nodes: &[u8], names: &[u8], rest: &FilterResult<'_>) -> Vec<u8> {
    let rest = text(rest);
    // It goes on where the object of the rest begins.
    let rest = rest.strip_prefix(b"{").unwrap_or_default();
    [&b"{\"Nodes\":"[..], nodes, &b",\"NodeNames\":"[..], names, &b","[..], rest].concat()
}

/// Answers `prioritize`, a level for each candidate.
#[must_use]
pub fn prioritized(names: &Names, levels: &[u8]) -> Vec<u8> {
    let around = "{\"Host\":\"\",\"Score\":10},".len();
    let mut out = Vec::with_capacity(names.text.len() + around * names.len() + 2);
    each(&mut out, names.iter().zip(levels), |(name, level), to| {
        to.extend_from_slice(b"{\"Host\":");
        names.write(name, to);
        to.extend_from_slice(b",\"Score\":");
        // The best has two digits.
        if *level > 9 {
            to.push(b'0' + level / 10 % 10);
        }
        to.push(b'0' + level % 10);
        to.push(b'}');
    });
    out
}

/// A list in JSON.
fn each<T>(to: &mut Vec<u8>, items: impl Iterator<Item = T>, write: impl Fn(T, &mut Vec<u8>)) {
    to.push(b'[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            to.push(b',');
        }
        write(item, to);
    }
    to.push(b']');
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

//! Why is a pod where it is, or nowhere? What was decided of late is remembered; what every rule says of every node is
//! worked out when somebody asks, as things are then.
//!
//! Of a decision what it came to is kept and what that rested on, in a few hundred bytes: how good the node was and which
//! came next, what stood against its lines, and one node that each rule refused. How every other node stood is not.

use super::state::State;
use super::{Error, Options, WAITING, watches};
use crate::ask;
use crate::cluster::Connection;
use crate::ctx::Now;
use jiff::Timestamp;
use loadline_api::explain::{LinesResult, NodeResult, RecommendationResult, lines, node};
use loadline_core::cluster::{Grounds, NodeReport, Refusal};
use loadline_core::cycle::{Decision, Filter};
use loadline_core::load::estimate::Estimate;
use loadline_core::object::Key;
use loadline_core::rebalance::Moved;
use serde::Serialize;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Decisions that are remembered.
pub const REMEMBERED: usize = 4096;

/// What a decision came to. Field names are a promise.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Remembered {
    at: Timestamp,
    scheduler: String,
    /// Where it went; `null` if it had to wait.
    node: Option<String>,
    /// Why it had to, in the words of kube-scheduler.
    message: Option<String>,
    /// How many nodes would have done.
    feasible_nodes: u32,
    /// How good its node was, 0 to 100; `null` if it had to wait, or went where it hurt least.
    score: Option<i64>,
    /// Where it would have gone without that one; `null` if no other would have done.
    next: Option<Next>,
    /// What its node came to with it; `null` where no lines are drawn.
    load: Option<LinesResult>,
    /// How many nodes failed which rule first.
    refused_nodes: BTreeMap<String, u32>,
    /// One of those nodes for each rule.
    refusals: Vec<RefusalResult>,
}

/// The second best.
#[derive(Clone, Debug, Serialize)]
struct Next {
    node: String,
    score: i64,
}

/// Why a node was refused.
#[derive(Clone, Debug, Serialize)]
struct RefusalResult {
    rule: String,
    node: String,
    /// In a sentence; `null` where there is no more to say than the rule.
    reason: Option<String>,
}

/// The newest decisions.
#[derive(Debug, Default)]
pub(super) struct Decisions(VecDeque<(Key, Kept)>);

/// As little as possible.
#[derive(Clone, Debug)]
struct Kept {
    at: Timestamp,
    scheduler: Arc<str>,
    node: Option<Arc<str>>,
    message: Option<String>,
    feasible: u32,
    refused: [u32; Filter::ALL.len()],
    grounds: Grounds,
}

impl Decisions {
    pub fn keep(
        &mut self,
        pod: &Key,
        scheduler: &str,
        (decision, grounds): (&Decision, Grounds),
        end: Result<Arc<str>, String>,
        at: Timestamp,
    ) {
        // Replicas follow each other: their name is there already.
        let same = self.0.back().map(|(_, kept)| &kept.scheduler).filter(|held| ***held == *scheduler);
        let scheduler = same.cloned().unwrap_or_else(|| scheduler.into());
        let (node, message) = match end {
            Ok(node) => (Some(node), None),
            Err(message) => (None, Some(message)),
        };
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        let (feasible, refused) = (decision.feasible, decision.refused);
        self.0.push_back((pod.clone(), Kept { at, scheduler, node, message, feasible, refused, grounds }));
    }

    /// What was decided about a pod, the newest first.
    pub fn of(&self, pod: &Key) -> Vec<Remembered> {
        let about = self.0.iter().rev().filter(|(key, _)| key == pod);
        about.map(|(_, kept)| kept.document()).collect()
    }

    /// So many of all of them, the newest first, each with its pod.
    pub fn newest(&self, most: usize) -> Value {
        let about = self.0.iter().rev().take(most);
        let all = about.map(|(pod, kept)| Dumped { pod: pod.to_string(), decision: kept.document() });
        serde_json::to_value(all.collect::<Vec<_>>()).unwrap_or_default()
    }
}

/// A decision that stands for itself. Field names are a promise.
#[derive(Serialize)]
struct Dumped {
    pod: String,
    #[serde(flatten)]
    decision: Remembered,
}

impl Kept {
    fn document(&self) -> Remembered {
        let refused = Filter::ALL.iter().zip(self.refused).filter(|(_, count)| *count > 0);
        Remembered {
            at: self.at,
            scheduler: self.scheduler.to_string(),
            node: self.node.as_deref().map(str::to_owned),
            message: self.message.clone(),
            feasible_nodes: self.feasible,
            refused_nodes: refused.map(|(rule, count)| (name(*rule), count)).collect(),
            score: self.grounds.score,
            next: self
                .grounds
                .next
                .as_ref()
                .map(|(node, score)| Next { node: node.to_string(), score: *score }),
            load: self.grounds.lines.as_ref().map(lines),
            refusals: self.grounds.refused.iter().map(RefusalResult::of).collect(),
        }
    }
}

impl RefusalResult {
    fn of(one: &Refusal) -> Self {
        let reason = one.reason.as_ref().map(ToString::to_string);
        Self { rule: name(one.rule), node: one.node.to_string(), reason }
    }
}

/// As it is called in documents.
fn name(rule: Filter) -> String {
    serde_json::to_value(rule).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Everything there is to say. Field names are a promise.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation<'a> {
    api_version: &'static str,
    kind: &'static str,
    pod: String,
    /// Where it is.
    node: Option<&'a str>,
    /// What was decided of late, the newest first; empty if nothing is remembered.
    decisions: Vec<Remembered>,
    /// What was moved of late, the newest first: the pod itself, or one of its workload whose place it may have taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    moves: Vec<MoveResult>,
    /// Nothing of a pod that is not there any more.
    now: Option<Recomputed<'a>>,
}

/// A pod that was moved, as [`crate::rebalance`] says it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MoveResult {
    at: Timestamp,
    pod: String,
    from: String,
    to: String,
    /// In the words of the Event.
    message: String,
}

impl MoveResult {
    fn of(one: &Moved) -> Self {
        let Moved { at, pod, from, to, because, .. } = one;
        Self {
            at: *at,
            pod: pod.to_string(),
            from: from.to_string(),
            to: to.to_string(),
            message: format!("{}: {because}", goes(to)),
        }
    }
}

/// What is said of a pod that is moved.
pub(crate) fn goes(to: &str) -> String {
    format!("goes to {to}")
}

/// What there is to say about a pod that is not there any more, or is over.
pub(super) fn gone(pod: &Key, decisions: Vec<Remembered>, moves: &[Moved]) -> Value {
    let explanation = Explanation {
        api_version: "loadline.dev/v1alpha1",
        kind: "PodExplanation",
        pod: pod.to_string(),
        node: None,
        decisions,
        moves: moves.iter().map(MoveResult::of).collect(),
        now: None,
    };
    serde_json::to_value(explanation).unwrap_or_default()
}

/// What would be decided now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Recomputed<'a> {
    at: Timestamp,
    /// Is it about the pod itself, or, because that is on a node, about another one like it?
    another_like_it: bool,
    node: Option<&'a str>,
    message: Option<String>,
    /// What says how much it is expected to use; `null` if its requests do.
    recommendation: Option<&'a RecommendationResult>,
    /// By rank: those that would take it first, the best of them first.
    nodes: Vec<NodeResult<'a>>,
    /// How many more nodes there are.
    more_nodes: usize,
}

/// What is known of the pod somebody asks about.
pub(super) struct About {
    pub key: Key,
    pub on: Option<Arc<str>>,
    pub estimate: Estimate,
    pub recommendation: Option<RecommendationResult>,
    pub node: Option<Arc<str>>,
    pub message: Option<String>,
    pub nodes: Vec<NodeReport>,
    pub moves: Vec<Moved>,
}

impl About {
    /// The document, with so many nodes.
    pub fn document(mut self, decisions: Vec<Remembered>, most: usize, at: Timestamp) -> Value {
        // The node it is on is shown whatever its rank.
        let on = self.on.clone();
        self.nodes.sort_by_key(|n| (on.as_deref() != Some(&*n.name), !n.fits, Reverse(n.total)));
        let more_nodes = self.nodes.len().saturating_sub(most);
        let shown = self.nodes.iter().take(most);
        let explanation = Explanation {
            api_version: "loadline.dev/v1alpha1",
            kind: "PodExplanation",
            pod: self.key.to_string(),
            node: self.on.as_deref(),
            decisions,
            moves: self.moves.iter().map(MoveResult::of).collect(),
            now: Some(Recomputed {
                at,
                another_like_it: self.on.is_some(),
                node: self.node.as_deref(),
                message: self.message.clone(),
                recommendation: self.recommendation.as_ref(),
                nodes: shown.map(|found| node(found, &self.estimate)).collect(),
                more_nodes,
            }),
        };
        serde_json::to_value(explanation).unwrap_or_default()
    }
}

/// What somebody wants to know.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Why a pod is where it is; with how many nodes.
    Pod { pod: Key, most: usize },
    /// So many of the newest decisions, as a list.
    Decisions { most: usize },
}

/// Where a running scheduler is asked; nothing is answered if there is no such pod.
pub type Asker = ask::Asker<Subject, Option<Value>>;

/// Where it hears of that.
pub type Asked = ask::Asked<Subject, Option<Value>>;

/// Reads a cluster and says of a pod what would be decided now, with so many nodes; nothing if there is no such pod.
///
/// # Errors
/// When the cluster cannot be read in time.
pub async fn once(
    options: Options,
    pod: Key,
    most: usize,
    patience: Duration,
) -> Result<Option<Value>, Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error)?;
    let connection = Connection::new(client).named("loadline-explain");
    let (_watches, mut messages) = watches(&connection, &options);
    let loaded = match &options.configuration {
        crate::reload::Source::Fixed(fixed) => (**fixed).clone(),
        _ => return Err(Error("expected a configuration that does not change".to_owned())),
    };
    let mut state = State::new(&loaded, Now::read());
    let (mut measured, mut batch) = (false, Vec::new());
    let read = async {
        while !(state.is_ready() && measured) {
            if messages.recv_many(&mut batch, WAITING).await == 0 {
                break;
            }
            for message in batch.drain(..) {
                // Without measurements there is something to say as well.
                measured |= matches!(message, super::Message::Measured(_));
                state.take(message, Now::read());
            }
        }
    };
    if timeout(patience, read).await.is_err() {
        let why = state.troubles().first().map(|(_, why)| format!(": {why}")).unwrap_or_default();
        return Err(Error(format!("the cluster could not be read within {} s{why}", patience.as_secs())));
    }
    let now = Now::read();
    state.advance(now);
    Ok(state.explain(&pod, most, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(feasible: u32) -> Decision {
        Decision { feasible, ..Decision::default() }
    }

    fn kept(decision: &Decision) -> (&Decision, Grounds) {
        (decision, Grounds::default())
    }

    #[test]
    fn the_newest_decisions_are_remembered_and_no_more_than_so_many() {
        let mut decisions = Decisions::default();
        let pod = |number: usize| Key::new("default", format!("web-{number}"));
        let (extra, at) = (10, Timestamp::UNIX_EPOCH);
        for number in 0..REMEMBERED + extra {
            decisions.keep(&pod(number), "loadline", kept(&decision(3)), Ok("n1".into()), at);
        }
        assert_eq!(decisions.0.len(), REMEMBERED);
        assert!(decisions.of(&pod(extra - 1)).is_empty(), "the oldest had to go");
        for number in [extra, REMEMBERED + extra - 1] {
            assert_eq!(decisions.of(&pod(number)).len(), 1, "{number}");
        }
        let capacity = decisions.0.capacity();
        decisions.keep(&pod(0), "loadline", kept(&decision(3)), Err("no room".to_owned()), at);
        assert_eq!(decisions.0.capacity(), capacity, "it takes no more memory");
        // What is the same for all of them is there once.
        let names: Vec<&Arc<str>> = decisions.0.iter().map(|(_, kept)| &kept.scheduler).collect();
        assert!(names.iter().all(|name| Arc::ptr_eq(name, names[0])));
    }

    #[test]
    fn of_a_pod_that_was_decided_on_twice_the_newest_comes_first() {
        let (mut decisions, pod) = (Decisions::default(), Key::new("default", "web"));
        let second = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(5);
        decisions.keep(
            &pod,
            "loadline",
            kept(&decision(0)),
            Err("no room".to_owned()),
            Timestamp::UNIX_EPOCH,
        );
        decisions.keep(&Key::new("default", "other"), "batch", kept(&decision(1)), Ok("n2".into()), second);
        decisions.keep(&pod, "loadline", kept(&decision(2)), Ok("n1".into()), second);
        let told = decisions.of(&pod);
        let nodes: Vec<Option<&str>> = told.iter().map(|one| one.node.as_deref()).collect();
        assert_eq!(nodes, [Some("n1"), None]);
        assert_eq!(told[1].message.as_deref(), Some("no room"));
        assert_eq!((told[0].feasible_nodes, told[1].feasible_nodes), (2, 0));
    }
}

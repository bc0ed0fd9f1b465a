//! Where does a new pod go? Round-robin: the next node in turn that can take it.
//!
//! A node can take a pod when it is ready and not cordoned, the pod tolerates its taints, meets what the pod
//! demands of nodes, and has room for what the pod asks for. There is no score: the load-aware scheduler
//! takes this binder's place.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadline_core::resources::{Amounts, Names, Resource};
use loadline_core::select::taint::{Compare, repelling};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, Error, Key, Node, Patch, Pod};
use crate::tell::{About, Event, Teller};
use crate::work::{self, Queue};
use crate::world::Counts;

/// What this binder is called in output.
pub const NAME: &str = "round-robin";
/// Pods of these schedulers are bound.
const SCHEDULERS: [&str; 2] = ["default-scheduler", "loadline"];
/// How long a pod that fits nowhere waits if nothing changes.
const WAIT: Duration = Duration::from_secs(30);
const COMPONENT: &str = "loadline-round-robin";

/// Why a node cannot take a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It is cordoned.
    Unschedulable,
    /// It does not say it is ready.
    NotReady,
    /// It has a taint the pod does not tolerate.
    Taint(String),
    /// It is not what the pod demands.
    Selector,
    /// It has too little left of something.
    Lacks(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable => f.write_str("node(s) were unschedulable"),
            Self::NotReady => f.write_str("node(s) were not ready"),
            Self::Taint(taint) => write!(f, "node(s) had untolerated taint(s) {{{taint}}}"),
            Self::Selector => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Self::Lacks(resource) if resource == "pods" => f.write_str("Too many pods"),
            Self::Lacks(resource) => write!(f, "Insufficient {resource}"),
        }
    }
}

/// What is promised on which node.
#[derive(Debug, Default)]
pub struct Ledger {
    names: Names,
    /// By the identity of the pod.
    pods: HashMap<String, (String, Amounts)>,
    nodes: HashMap<String, Amounts>,
}

impl Ledger {
    /// Counts a pod on its node; counting it again changes nothing but the amounts.
    pub fn put(&mut self, pod: &Pod, node: &str) {
        self.drop(&pod.meta.uid);
        let amounts = self.names.amounts(&pod.requests).with(Resource::PODS, 1);
        self.nodes.entry(node.to_owned()).or_default().add(&amounts);
        self.pods.insert(pod.meta.uid.clone(), (node.to_owned(), amounts));
    }

    /// Forgets a pod. Says whether it was counted.
    pub fn drop(&mut self, uid: &str) -> bool {
        let Some((node, amounts)) = self.pods.remove(uid) else { return false };
        if let Some(total) = self.nodes.get_mut(&node) {
            total.sub(&amounts);
        }
        true
    }

    /// Why a node cannot take a pod, if it cannot.
    pub fn refusal(&mut self, node: &Node, pod: &Pod) -> Option<Refusal> {
        let (name, labels) = (&node.meta.key.name, &node.meta.labels);
        if node.unschedulable || node.meta.is_deleted() {
            return Some(Refusal::Unschedulable);
        }
        if let Some(taint) = repelling(&node.taints, &pod.tolerations, Compare::Off) {
            return Some(Refusal::Taint(format!("{}: {}", taint.key, taint.value)));
        }
        if !node.ready {
            return Some(Refusal::NotReady);
        }
        if !pod.required.matches(name, labels) {
            return Some(Refusal::Selector);
        }
        let wanted = self.names.amounts(&pod.requests).with(Resource::PODS, 1);
        let mut free = self.names.amounts(&node.allocatable);
        if let Some(taken) = self.nodes.get(name) {
            free.sub(taken);
        }
        let lack = wanted.lacking(&free).next()?;
        Some(Refusal::Lacks(self.names.name(lack.resource).to_owned()))
    }

    /// The first node from `turn` on, around, that can take the pod; or how many refuse for which reason.
    ///
    /// # Errors
    /// When no node can take it.
    pub fn pick(
        &mut self,
        nodes: &[Arc<Node>],
        pod: &Pod,
        turn: usize,
    ) -> Result<usize, BTreeMap<Refusal, usize>> {
        let mut refused = BTreeMap::new();
        for step in 0..nodes.len() {
            let index = (turn + step) % nodes.len();
            match self.refusal(&nodes[index], pod) {
                None => return Ok(index),
                Some(refusal) => *refused.entry(refusal).or_default() += 1,
            }
        }
        Err(refused)
    }
}

/// Says why a pod fits nowhere, the way Kubernetes does.
#[must_use]
pub fn explain(nodes: usize, refused: &BTreeMap<Refusal, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut reasons: Vec<String> = refused.iter().map(|(why, count)| format!("{count} {why}")).collect();
    reasons.sort();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}

#[derive(Debug)]
pub(crate) struct Binder {
    cluster: Arc<Cluster>,
    state: Mutex<State>,
    queue: Arc<Queue>,
    tell: Teller,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct State {
    ledger: Ledger,
    turn: usize,
    /// Pods that fit nowhere, to be looked at again when something changes.
    waiting: std::collections::HashSet<Key>,
}

impl Binder {
    pub fn new(cluster: Arc<Cluster>, tell: Teller, counts: Arc<Counts>) -> Arc<Self> {
        let binder = Arc::new(Self { cluster, state: Mutex::default(), queue: Arc::default(), tell, counts });
        binder.listen();
        binder
    }

    pub fn start(self: &Arc<Self>, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        let binder = self.clone();
        work::run("binder", &self.queue, 4, (tasks, stop), move |key| {
            let binder = binder.clone();
            async move { binder.look(&key).await }
        });
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn listen(self: &Arc<Self>) {
        let binder = Arc::downgrade(self);
        self.cluster.pods.listen(move |old, new| {
            let Some(binder) = binder.upgrade() else { return };
            match (old, new) {
                (_, Some(pod)) if pod.phase.is_over() => binder.freed(&pod.meta.uid),
                (_, Some(pod)) => match &pod.node {
                    Some(node) => binder.with(|state| state.ledger.put(pod, node)),
                    None if wants_binding(pod) => binder.queue.add(pod.meta.key.clone()),
                    None => {}
                },
                (Some(pod), None) => binder.freed(&pod.meta.uid),
                (None, None) => {}
            }
        });
        let binder = Arc::downgrade(self);
        self.cluster.nodes.listen(move |old, new| {
            let Some(binder) = binder.upgrade() else { return };
            if let Some(new) = new {
                let old = old.map(|old| old.unschedulable);
                match (old, new.unschedulable) {
                    (Some(false), true) => binder.tell.notice("node", &new.meta.key, "cordoned"),
                    (Some(true), false) => binder.tell.notice("node", &new.meta.key, "uncordoned"),
                    _ => {}
                }
            }
            binder.wake();
        });
    }

    fn freed(&self, uid: &str) {
        if self.with(|state| state.ledger.drop(uid)) {
            self.wake();
        }
    }

    /// Something changed for the better, perhaps: looks again at all that fit nowhere.
    fn wake(&self) {
        for key in self.with(|state| std::mem::take(&mut state.waiting)) {
            self.queue.add(key);
        }
    }

    async fn look(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let Some(pod) = self.cluster.pods.get(key).filter(|pod| wants_binding(pod)) else { return Ok(None) };
        let nodes = self.cluster.nodes.all();
        // Chosen and counted in one step, so that two workers never fill the same gap.
        let choice = self.with(|state| {
            // Bound a moment ago: the watch has not told yet.
            if state.ledger.pods.contains_key(&pod.meta.uid) {
                return None;
            }
            let turn = state.turn;
            Some(match state.ledger.pick(&nodes, &pod, turn) {
                Ok(index) => {
                    state.turn = (index + 1) % nodes.len();
                    let name = nodes[index].meta.key.name.clone();
                    state.ledger.put(&pod, &name);
                    Ok(name)
                }
                Err(refused) => {
                    state.waiting.insert(key.clone());
                    Err(refused)
                }
            })
        });
        match choice {
            None => Ok(None),
            Some(Ok(node)) => self.bind(&pod, &node).await,
            Some(Err(refused)) => self.unschedulable(&pod, &explain(nodes.len(), &refused)).await,
        }
    }

    async fn bind(&self, pod: &Pod, node: &str) -> Result<Option<Duration>, Error> {
        let key = &pod.meta.key;
        match self.cluster.write.bind(key, &pod.meta.uid, node).await {
            Ok(()) => {
                self.counts.bound.add();
                let message = format!("Successfully assigned {key} to {node}");
                self.event(pod, false, "Scheduled", message);
                Ok(None)
            }
            Err(error) => {
                self.freed(&pod.meta.uid);
                // Gone, or bound by somebody else: the watch will say which.
                if error.is_gone() || error.is_conflict() { Ok(None) } else { Err(error) }
            }
        }
    }

    async fn unschedulable(&self, pod: &Pod, why: &str) -> Result<Option<Duration>, Error> {
        if pod.unschedulable.as_deref() != Some(why) {
            if pod.unschedulable.is_none() {
                self.counts.unschedulable.add();
                self.tell.notice("pod", &pod.meta.key, format!("waits: {why}"));
            }
            self.event(pod, true, "FailedScheduling", why.to_owned());
            let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let patch = json!({"metadata": {"uid": pod.meta.uid}, "status": {"conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
                "lastProbeTime": null, "lastTransitionTime": now, "observedGeneration": pod.meta.generation,
            }]}});
            let key = &pod.meta.key;
            match self.cluster.write.patch_as::<Pod>(key, "/status", Patch::Strategic, &patch).await {
                Ok(answer) => self.cluster.pods.wrote(answer),
                Err(error) if error.is_gone() || error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(WAIT))
    }

    fn event(&self, pod: &Pod, warning: bool, reason: &'static str, message: String) {
        let about = About { api_version: "v1", kind: "Pod", meta: &pod.meta };
        self.tell.event(&about, &Event { component: COMPONENT, host: None, warning, reason, message });
    }
}

fn wants_binding(pod: &Pod) -> bool {
    pod.node.is_none() && pod.is_active() && !pod.gated && SCHEDULERS.contains(&pod.scheduler.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Meta;
    use loadline_core::quantity::Quantity;
    use loadline_core::select::node::Required;
    use loadline_core::select::taint::Effect;
    use loadline_core::select::{Taint, Toleration};

    fn node(name: &str, milli: i64) -> Node {
        let allocatable = [("cpu", milli), ("pods", 110_000)];
        let allocatable = allocatable.map(|(n, milli)| (n.to_owned(), Quantity::from_milli(milli)));
        Node {
            meta: Meta { key: Key::new("", name), ..Meta::default() },
            ready: true,
            allocatable: allocatable.into(),
            ..Node::default()
        }
    }

    fn pod(name: &str, milli: i64) -> Pod {
        Pod {
            meta: Meta { key: Key::new("default", name), uid: name.into(), ..Meta::default() },
            requests: [("cpu".to_owned(), Quantity::from_milli(milli))].into(),
            scheduler: "default-scheduler".into(),
            ..Pod::default()
        }
    }

    fn taint(effect: Effect) -> Taint {
        Taint { key: "k".into(), value: "v".into(), effect, time_added: None }
    }

    #[test]
    fn pods_go_to_nodes_in_turn_until_nothing_fits() {
        let nodes: Vec<_> = ["a", "b", "c"].map(|name| Arc::new(node(name, 200))).into();
        let (mut ledger, mut turn, mut went) = (Ledger::default(), 0, Vec::new());
        for i in 0..6 {
            let pod = pod(&format!("p{i}"), 100);
            let index = ledger.pick(&nodes, &pod, turn).unwrap();
            ledger.put(&pod, &nodes[index].meta.key.name);
            went.push(index);
            turn = index + 1;
        }
        assert_eq!(went, [0, 1, 2, 0, 1, 2]);
        let refused = ledger.pick(&nodes, &pod("p6", 100), turn).unwrap_err();
        assert_eq!(explain(3, &refused), "0/3 nodes are available: 3 Insufficient cpu.");
        assert!(ledger.drop("p1"));
        assert_eq!(ledger.pick(&nodes, &pod("p6", 100), turn), Ok(1), "the gap is found");
    }

    #[test]
    fn nodes_refuse_for_a_reason() {
        let plain = || node("a", 1000);
        let tolerating = |effect| {
            let toleration =
                Toleration { key: "k".into(), value: "v".into(), effect, ..Toleration::default() };
            Pod { tolerations: vec![toleration], ..pod("p", 1) }
        };
        let demanding = Pod {
            required: Required::new(&[("zone".to_owned(), "x".to_owned())].into(), None),
            ..pod("p", 1)
        };
        let labelled = Node {
            meta: Meta { labels: [("zone".to_owned(), "x".to_owned())].into(), ..plain().meta },
            ..plain()
        };
        let tainted = |effect| Node { taints: vec![taint(effect)], ..plain() };
        let refused = Some(Refusal::Taint("k: v".into()));
        let table = [
            (plain(), pod("p", 1), None, "an ordinary node takes an ordinary pod"),
            (Node { unschedulable: true, ..plain() }, pod("p", 1), Some(Refusal::Unschedulable), "cordoned"),
            (Node { ready: false, ..plain() }, pod("p", 1), Some(Refusal::NotReady), "not ready"),
            (tainted(Effect::NoSchedule), pod("p", 1), refused.clone(), "a taint"),
            (tainted(Effect::NoExecute), pod("p", 1), refused, "a stronger taint"),
            (tainted(Effect::PreferNoSchedule), pod("p", 1), None, "a mere wish of the node"),
            (tainted(Effect::NoSchedule), tolerating(Some(Effect::NoSchedule)), None, "a tolerated taint"),
            (plain(), demanding.clone(), Some(Refusal::Selector), "a label is missing"),
            (labelled, demanding, None, "the label is there"),
            (plain(), pod("p", 1001), Some(Refusal::Lacks("cpu".into())), "too large"),
        ];
        for (node, pod, expected, why) in table {
            assert_eq!(Ledger::default().refusal(&node, &pod), expected, "{why}");
        }
    }

    #[test]
    fn only_pods_that_are_free_and_ours_are_bound() {
        let table = [
            (pod("p", 1), true, "a new pod"),
            (Pod { scheduler: "loadline".into(), ..pod("p", 1) }, true, "a pod that asks for us"),
            (Pod { scheduler: "other".into(), ..pod("p", 1) }, false, "somebody else's"),
            (Pod { node: Some("a".into()), ..pod("p", 1) }, false, "bound already"),
            (Pod { gated: true, ..pod("p", 1) }, false, "held back"),
        ];
        for (pod, expected, why) in table {
            assert_eq!(wants_binding(&pod), expected, "{why}");
        }
    }
}

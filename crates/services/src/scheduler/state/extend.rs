//! What does another scheduler get to know? Its questions, answered from what is known now.

use super::State;
use crate::ctx::Now;
use crate::scheduler::extender::{Ask, NotReady, Reserved};
use crate::scheduler::queue::Helps;
use jiff::{SignedDuration, Timestamp};
use loadline_api::extender::Names;
use loadline_api::pod::Pod;
use loadline_core::cluster::{Cluster, Question, Wait};
use loadline_core::ledger::Uid;
use loadline_core::view::{NodeId, PodView};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a pod that waits without a word is taken to be on its way. After that time kube-scheduler asks about every pod again
/// that has no node, whatever happened to it.
const MOST: Duration = Duration::from_mins(5);
/// The same for one that was refused before: refused again in the same words, it looks like one that waits to be bound. Longer,
/// pods that others refuse each time would keep room that nobody uses.
const MOST_AGAIN: Duration = Duration::from_mins(1);

impl State {
    /// How many pods may be about to arrive by another scheduler's choice.
    pub fn tentative(&self) -> usize {
        self.cluster.tentative_count()
    }

    /// Answers a question; one that nobody waits for any more is answered in vain.
    pub(in crate::scheduler) fn answer(&mut self, ask: Ask, now: Now) {
        let ready = self.is_ready();
        match ask {
            Ask::Filter { pod, names, keep, reserve_for, reply } => {
                let answer = ready.then(|| {
                    let (verdicts, told) = self.asked(*pod, &names, reserve_for, now, |cluster, asked| {
                        (cluster.filter(asked, keep), cluster.told(&asked.pod.uid))
                    });
                    (names, verdicts, told)
                });
                let _ = reply.send(answer.ok_or(NotReady));
            }
            Ask::Prioritize { pod, names, reserve_for, reply } => {
                let answer = ready.then(|| {
                    let levels = self.asked(*pod, &names, reserve_for, now, Cluster::prioritize);
                    (names, levels)
                });
                let _ = reply.send(answer.ok_or(NotReady));
            }
            Ask::Again { pod, told, reply } => {
                let answer = ready.then(|| self.cluster.prioritize_told(&pod, told));
                let _ = reply.send(answer.ok_or(NotReady));
            }
            Ask::Preempt { pod, victims, reply } => {
                let answer = ready.then(|| self.remaining(*pod, victims));
                let _ = reply.send(answer.ok_or(NotReady));
            }
            Ask::Reserve { pod, object, node, reply } => {
                let answer = ready.then(|| {
                    let known = self.cluster.tentative(&pod.uid).cloned();
                    let Some(view) = known.or_else(|| object.map(|object| self.look_at(*object))) else {
                        return Reserved::UnknownPod;
                    };
                    let before = self.cluster.reserved_on(&pod.uid).cloned();
                    if !self.cluster.charge(&view, &node) {
                        return Reserved::UnknownNode;
                    }
                    if before.is_some_and(|before| *before != *node) {
                        self.queue.requeue(Helps::ANY, now.at);
                    }
                    Reserved::Charged
                });
                let _ = reply.send(answer.ok_or(NotReady));
            }
            Ask::Unreserve { pod } => self.give_back(&pod, now),
        }
    }

    /// What a pod looks like to decisions; it is not counted anywhere.
    fn look_at(&mut self, mut pod: Pod) -> Arc<PodView> {
        pod.resolve(&self.context);
        self.cluster.view(&pod.facts)
    }

    /// Asks the account about a pod and these nodes.
    fn asked<T>(
        &mut self,
        mut pod: Pod,
        names: &Names,
        reserve_for: Duration,
        now: Now,
        ask: impl FnOnce(&mut Cluster, Question<'_>) -> T,
    ) -> T {
        let profile = self.profile_of(&pod);
        let told = pod.unschedulable.take();
        let most = if told.is_some() { MOST_AGAIN } else { MOST };
        let view = self.look_at(pod);
        let wait = Wait {
            least: after(now, reserve_for),
            most: after(now, most),
            is_known: self.is_waiting(&view),
            told: told.as_deref(),
        };
        let pod = self.cluster.succeeding(&view);
        let nodes = self.cluster.candidates(names.iter());
        ask(&mut self.cluster, Question { profile, pod: &pod, nodes: &nodes, wait })
    }

    /// Is that pod there, without a node, as far as is known?
    fn is_waiting(&self, pod: &PodView) -> bool {
        let ours = self.queue.get(&pod.key).is_some_and(|held| held.meta.uid == pod.uid);
        ours || self.others.get(&pod.key).is_some_and(|(meta, _)| meta.uid == pod.uid)
    }

    /// By whose rules a pod is judged: those of the name it asks for, else the first.
    fn profile_of(&self, pod: &Pod) -> usize {
        self.profiles.find(&pod.scheduler).unwrap_or(0)
    }

    /// The nodes the pod could go to once the victims have left them.
    fn remaining(&mut self, pod: Pod, victims: BTreeMap<String, Vec<String>>) -> Vec<String> {
        let profile = self.profile_of(&pod);
        let view = self.look_at(pod);
        let pod = self.cluster.succeeding(&view);
        let nodes = self.cluster.candidates(victims.keys().map(String::as_str));
        let uids = victims.values().map(|uids| uids.iter().map(|uid| Uid::new(uid)).collect());
        let asked: Vec<(Option<NodeId>, Vec<Uid>)> = nodes.into_iter().zip(uids).collect();
        let allowed = self.cluster.allows_without(profile, &pod, &asked);
        victims.into_keys().zip(allowed).filter(|(_, allowed)| *allowed).map(|(node, _)| node).collect()
    }
}

fn after(now: Now, time: Duration) -> Timestamp {
    let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
    now.clock.checked_add(time).unwrap_or(Timestamp::MAX)
}

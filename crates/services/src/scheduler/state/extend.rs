//! What does another scheduler get to know? Its questions, answered from what is known now.

use super::State;
use crate::ctx::Now;
use crate::scheduler::extender::{Ask, NotReady, Reserved};
use crate::scheduler::queue::Helps;
use jiff::{SignedDuration, Timestamp};
use loadline_api::extender::Names;
use loadline_api::pod::Pod;
use loadline_core::cluster::Question;
use loadline_core::ledger::Uid;
use loadline_core::view::{NodeId, PodView};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

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
                    let profile = self.profile_of(&pod);
                    let (pod, nodes) = self.asked(*pod, &names);
                    let until = until(now, reserve_for);
                    let asked = Question { profile, pod: &pod, nodes: &nodes, until };
                    let verdicts = self.cluster.filter(asked, keep);
                    (names, verdicts)
                });
                let _ = reply.send(answer.ok_or(NotReady));
            }
            Ask::Prioritize { pod, names, reserve_for, reply } => {
                let answer = ready.then(|| {
                    let profile = self.profile_of(&pod);
                    let (pod, nodes) = self.asked(*pod, &names);
                    let until = until(now, reserve_for);
                    let asked = Question { profile, pod: &pod, nodes: &nodes, until };
                    let levels = self.cluster.prioritize(asked);
                    (names, levels)
                });
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

    fn asked(&mut self, pod: Pod, names: &Names) -> (Arc<PodView>, Vec<Option<NodeId>>) {
        let view = self.look_at(pod);
        (self.cluster.succeeding(&view), self.cluster.candidates(names.iter()))
    }

    /// By whose rules a pod is judged: those of the name it asks for, else the first.
    fn profile_of(&self, pod: &Pod) -> usize {
        self.profiles.find(&pod.scheduler).unwrap_or(0)
    }

    /// The nodes the pod could go to once the victims have left them.
    fn remaining(&mut self, pod: Pod, victims: BTreeMap<String, Vec<String>>) -> Vec<String> {
        let profile = self.profile_of(&pod);
        let pod = self.look_at(pod);
        let nodes = self.cluster.candidates(victims.keys().map(String::as_str));
        let uids = victims.values().map(|uids| uids.iter().map(|uid| Uid::new(uid)).collect());
        let asked: Vec<(Option<NodeId>, Vec<Uid>)> = nodes.into_iter().zip(uids).collect();
        let allowed = self.cluster.allows_without(profile, &pod, &asked);
        victims.into_keys().zip(allowed).filter(|(_, allowed)| *allowed).map(|(node, _)| node).collect()
    }
}

fn until(now: Now, reserve_for: Duration) -> Timestamp {
    let reserve_for = SignedDuration::try_from(reserve_for).unwrap_or(SignedDuration::MAX);
    now.clock.checked_add(reserve_for).unwrap_or(Timestamp::MAX)
}

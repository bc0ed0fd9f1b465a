//! What does another scheduler get to know? Its questions, answered from what is known now.

use super::State;
use crate::ctx::Now;
use crate::scheduler::extender::{Ask, NotReady, Reserved};
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
                    let (pod, nodes) = self.asked(*pod, &names);
                    let asked = Question { pod: &pod, nodes: &nodes, until: until(now, reserve_for) };
                    let verdicts = self.cluster.filter(asked, keep);
                    (names, verdicts)
                });
                let _ = reply.send(answer.ok_or(NotReady));
            }
            Ask::Prioritize { pod, names, reserve_for, reply } => {
                let answer = ready.then(|| {
                    let (pod, nodes) = self.asked(*pod, &names);
                    let asked = Question { pod: &pod, nodes: &nodes, until: until(now, reserve_for) };
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
                    match known.or_else(|| object.map(|object| self.look_at(*object))) {
                        None => Reserved::UnknownPod,
                        Some(view) if self.cluster.charge(&view, &node) => Reserved::Charged,
                        Some(_) => Reserved::UnknownNode,
                    }
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

    /// The nodes the pod could go to once the victims have left them.
    fn remaining(&mut self, pod: Pod, victims: BTreeMap<String, Vec<String>>) -> Vec<String> {
        let pod = self.look_at(pod);
        let nodes = self.cluster.candidates(victims.keys().map(String::as_str));
        let uids = victims.values().map(|uids| uids.iter().map(|uid| Uid::new(uid)).collect());
        let asked: Vec<(Option<NodeId>, Vec<Uid>)> = nodes.into_iter().zip(uids).collect();
        let allowed = self.cluster.allows_without(&pod, &asked);
        victims.into_keys().zip(allowed).filter(|(_, allowed)| *allowed).map(|(node, _)| node).collect()
    }
}

fn until(now: Now, reserve_for: Duration) -> Timestamp {
    let reserve_for = SignedDuration::try_from(reserve_for).unwrap_or(SignedDuration::MAX);
    now.clock.checked_add(reserve_for).unwrap_or(Timestamp::MAX)
}

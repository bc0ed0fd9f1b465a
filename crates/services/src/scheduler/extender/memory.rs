//! What was told just now? kube-scheduler asks about each pod twice: which nodes will do, then how good those are. The second
//! question says nothing that was not said or told in the first, so where it is the same text it is not read, and the nodes are
//! not looked for, again.

use loadline_api::extender::{Names, Told};
use loadline_core::cluster;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many answers are remembered. A scheduler asks about one pod after the other, and few schedulers ask.
const MOST: usize = 4;
/// The longest question that is remembered, in bytes.
const LONGEST: usize = 1 << 20;

/// The newest answers.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<VecDeque<Answer>>);

/// An answer, and for whom.
#[derive(Debug)]
struct Answer {
    asked: Told,
    pod: Arc<str>,
    told: cluster::Told,
}

impl Memory {
    /// These names of a question were told, for the pod of that uid.
    pub fn keep(
        &self,
        body: &[u8],
        pod: Arc<str>,
        told: cluster::Told,
        names: Names,
        is_told: impl Fn(usize) -> bool,
    ) {
        if body.len() > LONGEST {
            return;
        }
        let Some(asked) = Told::new(body, names, is_told) else { return };
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.truncate(MOST - 1);
        answers.push_front(Answer { asked, pod, told });
    }

    /// For which pod, and in which answer, the nodes of a question were told, and their names. It is forgotten with that.
    pub fn take(&self, body: &[u8]) -> Option<(Arc<str>, cluster::Told, Names)> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = answers.iter().position(|answer| answer.asked.is_asked_by(body))?;
        let Answer { asked, pod, told } = answers.remove(at)?;
        Some((pod, told, asked.into_names()))
    }
}

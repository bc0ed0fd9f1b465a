//! Has this been asked before, of the same state? Then the answer is the same.
//!
//! An answer follows from what is known of a cluster and from the question, and from nothing else: no clock, no chance.
//! A scheduler that divides many replicas of a few sizes asks the same of a cluster over and over. So answers are kept
//! beside the state they were made from, and go with it when the next event is published.

use loadline_core::estimate::Answer;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// So many answers are kept of a cluster; whoever comes later is computed every time.
const MOST: usize = 256;
/// Questions of more bytes are not kept.
const LONGEST: usize = 4 * 1024;

/// What was asked: replicas or sets, and the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    method: u8,
    message: Vec<u8>,
}

impl Question {
    pub(super) fn replicas(message: Vec<u8>) -> Self {
        Self { method: 0, message }
    }

    pub(super) fn sets(message: Vec<u8>) -> Self {
        Self { method: 1, message }
    }

    /// Its size as a message, in bytes.
    pub(super) fn len(&self) -> usize {
        self.message.len()
    }
}

/// Answers of one state.
#[derive(Clone, Debug, Default)]
pub struct Remembered(Arc<Mutex<HashMap<Question, Arc<Answer>>>>);

impl Remembered {
    pub(super) fn find(&self, question: &Question) -> Option<Arc<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(question).cloned()
    }

    pub(super) fn keep(&self, question: Question, answer: &Arc<Answer>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST && question.len() <= LONGEST {
            kept.insert(question, answer.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(most: i32) -> Arc<Answer> {
        Arc::new(Answer { most, by_nodes: most, by_quota: None, by_load: None, by_preempting: None })
    }

    #[test]
    fn replicas_and_sets_are_different_questions() {
        let kept = Remembered::default();
        kept.keep(Question::replicas(vec![1]), &answer(7));
        assert_eq!(kept.find(&Question::replicas(vec![1])).unwrap().most, 7);
        assert_eq!(kept.find(&Question::sets(vec![1])), None);
        assert_eq!(kept.find(&Question::replicas(vec![1, 2])), None);
    }

    #[test]
    fn neither_many_questions_nor_a_long_one_fill_the_memory() {
        let kept = Remembered::default();
        for n in 0..u32::try_from(MOST).unwrap() + 10 {
            kept.keep(Question::replicas(n.to_be_bytes().to_vec()), &answer(1));
        }
        assert_eq!(kept.0.lock().unwrap().len(), MOST);
        let kept = Remembered::default();
        kept.keep(Question::replicas(vec![0; LONGEST + 1]), &answer(1));
        assert!(kept.0.lock().unwrap().is_empty());
    }
}

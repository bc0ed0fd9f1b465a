//! What of the past of nodes is brought back, and what is kept?

use super::{Entry, State};
use crate::annotator::history;
use jiff::Timestamp;
use loadline_core::ledger::checkpoint::{self, Restored};
use std::collections::HashMap;
use std::sync::Arc;

/// What is kept of the past of nodes.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Is it known what was kept?
    read: bool,
    /// Of nodes that have not come yet.
    waiting: HashMap<String, Vec<u8>>,
    problem: Option<String>,
}

impl State {
    /// What is known of a node's past, for when it comes; those that are there have it at once.
    pub(super) fn take_history(&mut self, read: Result<Vec<Vec<u8>>, String>, now: Timestamp) {
        let parts = match read {
            Ok(parts) => parts,
            Err(problem) => return self.kept(Err(problem)),
        };
        self.history.read = true;
        for part in parts {
            match checkpoint::decode(&part) {
                Ok(nodes) => {
                    let nodes = nodes.into_iter().map(|(name, bytes)| (name, bytes.to_vec()));
                    self.history.waiting.extend(nodes);
                }
                Err(problem) => tracing::warn!(%problem, "history cannot be read; its nodes begin anew"),
            }
        }
        let here: Vec<Arc<str>> = self.entries.keys().cloned().collect();
        for name in here {
            self.recall(&name, now);
        }
    }

    pub(super) fn recall(&mut self, name: &str, now: Timestamp) {
        let Some(entry) = self.entries.get(name) else { return };
        let Some(bytes) = self.history.waiting.remove(name) else { return };
        match self.ledger.restore(entry.id, &bytes, now) {
            Ok(Restored::Done) => {}
            Ok(other) => tracing::debug!(node = name, ?other, "history of a node is of no use"),
            Err(problem) => tracing::warn!(node = name, %problem, "history of a node cannot be read"),
        }
    }

    /// The past of all nodes, to be kept; `None` as long as it is not known what is kept already.
    pub(in crate::annotator) fn history(&self) -> Option<Vec<Vec<u8>>> {
        let known = self.history.read && self.is_ready();
        let past =
            |(name, entry): (&Arc<str>, &Entry)| Some((name.clone(), self.ledger.checkpoint(entry.id)?));
        let encoded =
            known.then(|| checkpoint::encode(self.entries.iter().filter_map(past), history::PART))?;
        if encoded.left_out > 0 {
            tracing::warn!(nodes = encoded.left_out, "history of nodes is too large to be kept");
        }
        Some(encoded.parts).filter(|parts| !parts.is_empty())
    }

    /// What came of keeping or reading it; told once as long as it is the same.
    pub(in crate::annotator) fn kept(&mut self, result: Result<(), String>) {
        let problem = result.err();
        if problem != self.history.problem {
            if let Some(problem) = &problem {
                tracing::warn!(problem, "history is not kept");
            } else {
                tracing::info!("history is kept again");
            }
        }
        self.history.problem = problem;
    }

    /// Why the past is not kept, if it is not.
    pub(in crate::annotator) fn not_kept(&self) -> Option<&str> {
        self.history.problem.as_deref()
    }
}

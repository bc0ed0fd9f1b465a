//! What would the agents of nodes know that somebody looks at? Watched while they are looked at, and a little longer.

use super::protection;
use crate::agent::Onlooker;
use crate::cluster::Connection;
use futures::future::select_all;
use jiff::Timestamp;
use loadline_core::load::Load;
use loadline_core::object::Key;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tokio::time::Instant;

/// How many nodes are looked at at a time.
const MOST: usize = 8;
/// How long a node is looked at after somebody asked.
const LINGER: Duration = Duration::from_mins(1);

/// Those that are looked at.
pub(super) struct Agents {
    /// Without, none is.
    connection: Option<Connection>,
    known: BTreeMap<String, (Onlooker, Instant)>,
}

impl Agents {
    pub fn new(connection: Option<Connection>) -> Self {
        Self { connection, known: BTreeMap::new() }
    }

    /// Waits for what is new about any of them.
    pub async fn follow(&mut self) {
        if self.known.is_empty() {
            return std::future::pending().await;
        }
        select_all(self.known.values_mut().map(|(onlooker, _)| Box::pin(onlooker.follow()))).await;
    }

    /// Those nobody asks about are forgotten.
    pub fn tidy(&mut self) {
        self.known.retain(|_, (_, asked)| asked.elapsed() < LINGER);
    }

    /// What there is to say about a node, going by what was measured; nothing yet when it is asked about for the first time.
    pub fn protection(
        &mut self,
        node: &str,
        measured: Option<(Load, Timestamp)>,
        pods: &HashMap<Key, Load>,
        now: Timestamp,
    ) -> Option<Value> {
        let connection = self.connection.as_ref()?;
        if !self.known.contains_key(node) && self.known.len() >= MOST {
            let oldest = self.known.iter().min_by_key(|(_, (_, asked))| *asked).map(|(name, _)| name.clone());
            self.known.remove(&oldest?);
        }
        let start = || (Onlooker::new(connection, node), Instant::now());
        let (onlooker, asked) = self.known.entry(node.to_owned()).or_insert_with(start);
        *asked = Instant::now();
        onlooker.look(measured, pods, now).map(|look| protection::document(&look, protection::By::Metrics))
    }
}

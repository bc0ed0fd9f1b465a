//! What do placements look like to somebody who only looks on? The state is the controller's, and nothing is written.

use super::explain::Explanation;
use super::state::State;
use super::watched::{Cluster, Message, Wish};
use super::{Metrics, Subject, WAITING, watches};
use crate::cluster::watch::Watches;
use crate::cluster::{Connection, Event, Informer};
use crate::ctx::Now;
use jiff::Timestamp;
use loadline_core::object::Key;
use loadline_core::place::{self, ClusterFacts};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Somebody who looks on.
pub struct Onlooker {
    state: State,
    /// As they say themselves; the state keeps only what decides.
    clusters: Informer<Option<Arc<ClusterFacts>>>,
    messages: mpsc::Receiver<Message>,
    _watches: Watches<Message>,
}

/// A placement in a word.
pub struct Seen<'a> {
    pub key: &'a Key,
    /// Who is published as selected.
    pub selected: Vec<&'a str>,
    /// What was last said about it.
    pub status: &'a Value,
}

impl Onlooker {
    /// Begins to look.
    #[must_use]
    pub fn new(connection: &Connection, options: place::Options) -> Self {
        let (watches, messages) = watches(connection);
        let state = State::new(options, Metrics::default());
        Self { state, clusters: Informer::new("managedclusters"), messages, _watches: watches }
    }

    /// Waits for what is new, and takes it in. Nothing is lost if it is not waited for to the end.
    pub async fn follow(&mut self) {
        let mut batch = Vec::new();
        self.messages.recv_many(&mut batch, WAITING).await;
        let Now { clock: now, .. } = Now::read();
        for message in batch {
            if let Message::Cluster(event) = &message {
                self.see(event, now);
            }
            self.state.take(message, now);
        }
    }

    fn see(&mut self, event: &Event<Cluster>, now: Timestamp) {
        if let Some((meta, Some((facts, _)))) = self.clusters.apply(event.clone(), now).applied
            && let Some(value) = self.clusters.value_mut(&meta.key)
        {
            *value = Some(Arc::new(facts));
        }
    }

    /// How many there are of each kind, and what is wrong with reading it.
    #[must_use]
    pub fn kinds(&self) -> [(&'static str, usize, Option<&str>); 6] {
        self.state.kinds()
    }

    /// Has everything been read, or something been said about why not?
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.state.is_ready() || self.kinds().iter().any(|(.., trouble)| trouble.is_some())
    }

    pub fn clusters(&self) -> impl Iterator<Item = &Arc<ClusterFacts>> {
        self.clusters.store().iter().filter_map(|(.., facts)| facts.as_ref())
    }

    /// Placements that are there, by namespace and name.
    #[must_use]
    pub fn placements<'a>(&'a self) -> Vec<Seen<'a>> {
        let mut selected = self.state.selected();
        let seen = |wish: &'a Wish| {
            let key = &wish.placement.key;
            Seen { key, selected: selected.remove(key).unwrap_or_default(), status: &wish.status }
        };
        self.state.placements().map(seen).collect()
    }

    /// Whom a placement would get now, and why; nothing if there is no such placement.
    pub fn explain(&mut self, key: &Key, now: Timestamp) -> Option<Value> {
        let report = self.state.report(&Subject::There(key.clone()), now)?;
        let published = self.state.selected().remove(key).unwrap_or_default();
        serde_json::to_value(Explanation::of(key.to_string(), &report, published, now)).ok()
    }
}

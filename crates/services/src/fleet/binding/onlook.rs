//! What do bindings look like to somebody who only looks on? The state is the controller's; no estimator is asked, and nothing
//! is written.

use super::state::{Settings, State};
use super::watched::Message;
use super::{Metrics, WAITING, watches};
use crate::cluster::watch::Watches;
use crate::cluster::{Access, Connection};
use crate::ctx::Now;
use loadline_api::karmada::Scheduling;
use loadline_core::divide::Member;
use loadline_core::object::Key;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Reads a hub and says of a binding what would be decided now, by what clusters say of themselves; nothing if there is none.
///
/// # Errors
/// When the hub cannot be read in time, and why.
pub async fn once(hub: &Access, key: &Key, patience: Duration) -> Result<Option<Value>, String> {
    let (client, _) = hub.connect().await?;
    let connection = Connection::new(client).named("loadline-explain");
    let mut onlooker = Onlooker::new(&connection, hub.clone());
    let read = async {
        while !onlooker.is_settled() {
            onlooker.follow().await;
        }
    };
    let is_late = timeout(patience, read).await.is_err();
    if is_late || !onlooker.state.is_ready() {
        let why = onlooker.kinds().into_iter().find_map(|(kind, _, why)| Some(format!(": {kind}: {}", why?)));
        return Err(format!(
            "the hub could not be read within {} s{}",
            patience.as_secs(),
            why.unwrap_or_default()
        ));
    }
    Ok(onlooker.explain(key, Now::read()))
}

/// Somebody who looks on.
pub struct Onlooker {
    state: State,
    messages: mpsc::Receiver<Message>,
    _watches: Watches<Message>,
}

/// A binding in a word.
pub struct Seen<'a> {
    pub key: &'a Key,
    pub kind: &'static str,
    pub facts: &'a Scheduling,
}

impl Onlooker {
    /// Begins to look.
    #[must_use]
    pub fn new(connection: &Connection, hub: Access) -> Self {
        let (watches, messages) = watches(connection);
        let usual = super::Options::new(hub);
        let settings = Settings {
            scheduler: usual.scheduler,
            divide: usual.divide,
            estimators: false,
            pulling: usual.pulling,
            promise: usual.promise,
            patience: usual.patience,
        };
        Self { state: State::new(settings, Metrics::default()), messages, _watches: watches }
    }

    /// Waits for what is new, and takes it in. Nothing is lost if it is not waited for to the end.
    pub async fn follow(&mut self) {
        let mut batch = Vec::new();
        self.messages.recv_many(&mut batch, WAITING).await;
        let now = Now::read();
        for message in batch {
            self.state.take(message, now);
        }
        // Nobody is to be asked again, but what is new must not pile up.
        self.state.settle(now);
    }

    /// How many there are of each kind, and what is wrong with reading it.
    #[must_use]
    pub fn kinds(&self) -> [(&'static str, usize, Option<&str>); 3] {
        self.state.kinds()
    }

    /// Has everything been read, or something been said about why not?
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.state.is_ready() || self.kinds().iter().any(|(.., trouble)| trouble.is_some())
    }

    #[must_use]
    pub fn clusters(&mut self) -> Vec<Member> {
        self.state.fleet().members.clone()
    }

    /// Bindings that are there, whoever decides about them.
    pub fn bindings(&self) -> impl Iterator<Item = Seen<'_>> {
        self.state.all().map(|known| Seen { key: &known.meta.key, kind: known.of.kind, facts: &known.facts })
    }

    /// Which clusters a binding has, and what would be decided now by what clusters say of themselves.
    pub fn explain(&mut self, key: &Key, now: Now) -> Option<Value> {
        self.state.explain(key, now)
    }
}

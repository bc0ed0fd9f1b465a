//! How does the past of nodes survive a restart? In `ConfigMap`s, read at the start, written now and then and at the end.
//!
//! An hour's or a day's maximum is worth nothing after a restart that forgets it, for an hour or a day. Five thousand nodes
//! take about 600 KB, see [`loadline_core::ledger::checkpoint`]; more than half a mebibyte goes into further objects. Nothing is
//! written before it is known what is there, or a start at a bad moment would erase a day.

use super::watched::{ConfigMaps, Message};
use crate::cluster::connection::Cause;
use crate::cluster::resource::CONFIG_MAPS;
use crate::cluster::write::Patch;
use crate::cluster::{Connection, Writer};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use loadline_core::object::Key;
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

/// Bytes per object: as text a third more, and an object may have a mebibyte.
pub(super) const PART: usize = 512 << 10;
/// How many objects are read at most: a hundred thousand nodes.
const MOST: usize = 32;
/// How long after a failure it is read again.
const AGAIN: Duration = Duration::from_secs(10);
/// The entry with the bytes.
const BYTES: &str = "history";
/// The entry with the number of objects.
const PARTS: &str = "parts";

/// Where the past is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Namespace and beginning of the names of its objects.
    pub key: Key,
    /// How often it is written: so much may be lost.
    pub every: Duration,
}

impl Options {
    /// In that namespace.
    #[must_use]
    pub fn new(namespace: &str) -> Self {
        Self { key: Key::new(namespace, "loadline-load-history"), every: Duration::from_mins(5) }
    }

    fn part(&self, number: usize) -> Key {
        Key::new(&*self.key.namespace, &*format!("{}-{number}", self.key.name))
    }
}

/// Reads what there is, again and again until that is known.
pub(super) async fn read(connection: Connection, options: Options, events: mpsc::Sender<Message>) {
    let writer = Writer::new(connection, "");
    loop {
        let read = tokio::select! {
            () = events.closed() => return,
            read = parts(&writer, &options) => read,
        };
        let known = read.is_ok();
        if events.send(Message::History(read)).await.is_err() || known {
            return;
        }
        tokio::select! {
            () = events.closed() => return,
            () = sleep(AGAIN) => {}
        }
    }
}

async fn parts(writer: &Writer, options: &Options) -> Result<Vec<Vec<u8>>, String> {
    let (mut out, mut count) = (Vec::new(), 1);
    while out.len() < count.min(MOST) {
        let key = options.part(out.len());
        let map = match writer.get::<ConfigMaps>(&key).await {
            Ok((_, Ok(map))) => map,
            // What is missing or nonsense costs its own nodes their past, and nothing else.
            Ok((_, Err(problem))) => {
                tracing::warn!(config_map = %key, %problem, "history cannot be read");
                break;
            }
            Err(failure) if failure.cause == Cause::NotFound => break,
            Err(failure) => return Err(format!("history cannot be read: {}", failure.message)),
        };
        count = map.get(PARTS).and_then(|count| count.parse().ok()).unwrap_or(1);
        let text = map.get(BYTES).map(String::as_str).unwrap_or_default();
        out.push(BASE64_STANDARD.decode(text.trim()).unwrap_or_default());
    }
    Ok(out)
}

/// Writes all parts; says what went wrong.
async fn write(writer: Writer, options: Options, parts: Vec<Vec<u8>>) -> Result<(), String> {
    let count = parts.len().to_string();
    for (number, part) in parts.into_iter().enumerate() {
        let key = options.part(number);
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": &*key.name, "namespace": &*key.namespace,
                "labels": {"app.kubernetes.io/managed-by": "loadline"},
            },
            "data": {PARTS: count, BYTES: BASE64_STANDARD.encode(part)},
        });
        let written = writer.patch(CONFIG_MAPS.whole(), &key, Patch::Apply, &object).await;
        written.map_err(|failure| format!("history cannot be written: {}", failure.message))?;
    }
    Ok(())
}

/// What is to be done about the past.
#[derive(Debug)]
pub(super) enum Turn {
    /// It is time to write it.
    Due,
    /// It was written, or not.
    Kept(Result<(), String>),
}

/// Writes the past now and then, one write at a time.
#[derive(Debug)]
pub(super) struct Keeper {
    options: Option<Options>,
    ticks: Interval,
    writing: JoinSet<Result<(), String>>,
}

impl Keeper {
    pub fn new(options: Option<Options>) -> Self {
        let mut ticks = interval(options.as_ref().map_or(Duration::MAX, |options| options.every));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { options, ticks, writing: JoinSet::new() }
    }

    /// Waits for the next.
    pub async fn turn(&mut self) -> Turn {
        loop {
            tokio::select! {
                _ = self.ticks.tick() => return Turn::Due,
                Some(ended) = self.writing.join_next() => if let Ok(kept) = ended { return Turn::Kept(kept) },
            }
        }
    }

    /// Begins to write, unless it still writes.
    pub fn keep(&mut self, writer: &Writer, parts: Vec<Vec<u8>>) {
        if let Some(options) = self.options.clone().filter(|_| self.writing.is_empty()) {
            self.writing.spawn(write(writer.clone(), options, parts));
        }
    }

    /// Writes a last time.
    pub async fn finish(mut self, writer: &Writer, parts: Option<Vec<Vec<u8>>>) {
        while self.writing.join_next().await.is_some() {}
        if let (Some(options), Some(parts)) = (self.options, parts)
            && let Err(problem) = write(writer.clone(), options, parts).await
        {
            tracing::warn!(problem, "history is not kept");
        }
    }
}

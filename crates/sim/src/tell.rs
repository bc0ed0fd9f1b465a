//! Who is told what happened? Kubernetes, by events, and whoever looks at this process, by notices.
//!
//! Telling never holds up doing: both go through bounded channels, and what does not fit is dropped.

use crate::cluster::{Key, Meta, Writer};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const WAITING_EVENTS: usize = 4096;
const WAITING_NOTICES: usize = 256;

/// Something a person watching would want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Who says it, such as `deployment` or `scheduler`.
    pub from: &'static str,
    /// What it is about.
    pub about: String,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.from, self.about, self.what)
    }
}

/// What an event is about.
pub struct About<'a> {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub meta: &'a Meta,
}

/// What an event says.
pub struct Event<'a> {
    pub component: &'static str,
    /// The node that says it, for components that run on one.
    pub host: Option<&'a str>,
    pub warning: bool,
    pub reason: &'static str,
    pub message: String,
}

#[derive(Clone, Debug)]
pub struct Teller {
    events: mpsc::Sender<(String, Value)>,
    notices: mpsc::Sender<Notice>,
    serial: Arc<AtomicU64>,
}

impl Teller {
    pub fn start(
        write: Writer,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> (Self, mpsc::Receiver<Notice>) {
        let (events, mut waiting) = mpsc::channel::<(String, Value)>(WAITING_EVENTS);
        let (notices, seen) = mpsc::channel(WAITING_NOTICES);
        let stop = stop.clone();
        tasks.spawn(async move {
            loop {
                let next = tokio::select! {
                    () = stop.cancelled() => return,
                    next = waiting.recv() => next,
                };
                let Some((path, event)) = next else { return };
                if let Err(error) = write.create_at(&path, &event).await {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(error, "lost an event");
                }
            }
        });
        // Names of events must differ between runs against the same server.
        let serial = u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(0);
        (Self { events, notices, serial: Arc::new(AtomicU64::new(serial)) }, seen)
    }

    pub fn event(&self, about: &About<'_>, event: &Event<'_>) {
        let Key { namespace, name } = &about.meta.key;
        // Events about what is in no namespace live in this one.
        let home = if namespace.is_empty() { "default" } else { namespace };
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut involved = json!({
            "apiVersion": about.api_version, "kind": about.kind, "name": name, "uid": about.meta.uid,
        });
        if !namespace.is_empty() {
            involved["namespace"] = json!(namespace);
        }
        let mut source = json!({"component": event.component});
        if let Some(host) = event.host {
            source["host"] = json!(host);
        }
        let object = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"namespace": home, "name": format!("{name}.{serial:016x}")},
            "involvedObject": involved,
            "reason": event.reason, "message": event.message,
            "type": if event.warning { "Warning" } else { "Normal" },
            "source": source, "reportingComponent": event.component,
            "firstTimestamp": now, "lastTimestamp": now, "count": 1,
        });
        let _ = self.events.try_send((format!("/api/v1/namespaces/{home}/events"), object));
    }

    pub fn notice(&self, from: &'static str, about: impl fmt::Display, what: impl Into<String>) {
        let notice = Notice { from, about: about.to_string(), what: what.into() };
        tracing::info!("{notice}");
        let _ = self.notices.try_send(notice);
    }
}

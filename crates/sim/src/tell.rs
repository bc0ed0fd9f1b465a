//! Who is told what happened? Whoever looks at an object, by events, and whoever looks at this process, by notices.

use crate::cluster::ObjectMeta;
use jiff::Timestamp;
use loadline_services::cluster::events::{Happened, Regarding, Severity};
use loadline_services::cluster::{Recorder, Resource};
use loadline_services::ctx::Notices;
use std::fmt;

/// What an event is about.
pub struct About<'a> {
    pub resource: Resource,
    pub meta: &'a ObjectMeta,
}

/// What an event says.
pub struct Event<'a> {
    pub component: &'static str,
    /// The node that says it, for components that run on one.
    pub host: Option<&'a str>,
    pub severity: Severity,
    pub reason: &'static str,
    pub note: String,
}

#[derive(Clone, Debug)]
pub struct Teller {
    pub events: Recorder,
    pub notices: Notices,
}

impl Teller {
    pub fn event(&self, about: &About<'_>, event: Event<'_>) {
        let Event { component, host, severity, reason, note } = event;
        let recorder = self.events.reporting_as(component, host.unwrap_or(component));
        let happened = Happened { severity, reason, action: reason, note };
        recorder.record(Regarding::new(about.resource, &about.meta.id), happened, Timestamp::now());
    }

    pub fn notice(&self, from: &'static str, about: impl fmt::Display, what: impl Into<String>) {
        self.notices.tell(from, about, what);
    }
}

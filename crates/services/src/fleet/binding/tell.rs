//! Who is told? Whoever looks at the binding, or at what it binds: Events in Karmada's words.

use super::state::Known;
use crate::cluster::events::{Happened, Recorder, Regarding, Severity};
use crate::cluster::resource::{RESOURCE_BINDINGS, Resource};
use jiff::Timestamp;
use loadline_core::divide::{Answer, Condition};
use loadline_core::object::Key;
use std::collections::BTreeMap;

/// Kinds that are remembered by name for Events; there are some dozen in a fleet.
const KINDS: usize = 512;

/// Tells of bindings.
#[derive(Debug)]
pub(super) struct Teller {
    events: Recorder,
    /// Kinds of what is bound, by version and kind. They are made to last: an Event names its kind for ever.
    kinds: BTreeMap<(String, String), Resource>,
}

impl Teller {
    pub fn new(events: Recorder) -> Self {
        Self { events, kinds: BTreeMap::new() }
    }

    /// What was decided.
    pub fn decided(&mut self, known: &Known, answer: &Answer, condition: &Condition, at: Timestamp) {
        if condition.status {
            let pairs = answer.clusters.iter().map(|t| format!("{}:{}", t.name, t.replicas.unwrap_or(0)));
            let pairs = pairs.collect::<Vec<_>>().join(", ");
            let colon = if known.of == RESOURCE_BINDINGS { ":" } else { "" };
            let note = format!("{} Result{colon} {{{pairs}}}", condition.message);
            self.tell(known, Severity::Normal, "ScheduleBindingSucceed", "Schedule", &note, at);
        } else {
            self.failed(known, &condition.message, at);
        }
    }

    pub fn failed(&mut self, known: &Known, why: &str, at: Timestamp) {
        self.tell(known, Severity::Warning, "ScheduleBindingFailed", "Schedule", why, at);
    }

    pub fn descheduled(&mut self, known: &Known, outcome: Result<&str, &str>, at: Timestamp) {
        match outcome {
            Ok(note) => {
                self.tell(known, Severity::Normal, "DescheduleBindingSucceed", "Deschedule", note, at);
            }
            Err(why) => self.tell(known, Severity::Warning, "DescheduleBindingFailed", "Deschedule", why, at),
        }
    }

    fn tell(
        &mut self,
        known: &Known,
        severity: Severity,
        reason: &'static str,
        action: &'static str,
        note: &str,
        at: Timestamp,
    ) {
        let happened = Happened { severity, reason, action, note: note.to_owned() };
        self.events.record(Regarding::new(known.of, &known.meta), happened.clone(), at);
        if let Some(bound) = self.bound(known) {
            self.events.record(bound, happened, at);
        }
    }

    /// The object that is bound.
    fn bound(&mut self, known: &Known) -> Option<Regarding> {
        let bound = &known.facts.binding.as_ref().ok()?.resource;
        let name = (bound.api_version.clone(), bound.kind.clone());
        let resource = match self.kinds.get(&name) {
            Some(resource) => *resource,
            None if self.kinds.len() >= KINDS => return None,
            None => {
                let (group, version) = bound.api_version.split_once('/').unwrap_or(("", &bound.api_version));
                let lasting = |text: &str| -> &'static str { Box::leak(text.into()) };
                let made = Resource::new(lasting(group), lasting(version), "", lasting(&bound.kind));
                self.kinds.insert(name, made);
                made
            }
        };
        let key = Key::new(bound.key.namespace.clone(), bound.key.name.clone());
        Some(Regarding { resource, key, uid: bound.uid.as_str().into() })
    }
}

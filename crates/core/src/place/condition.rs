//! What is said about a placement: its two conditions, and the events.

use super::prepare::{PREDICATE, Problem, TAINTS};
use super::spec::Placement;
use super::write::{Action, Write};
use crate::object::Key;
use jiff::Timestamp;
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// Is everybody placed?
pub const SATISFIED: &str = "PlacementSatisfied";
/// Is the placement wrong?
pub const MISCONFIGURED: &str = "PlacementMisconfigured";

/// A condition of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// [`SATISFIED`] or [`MISCONFIGURED`].
    pub kind: &'static str,
    /// Does it hold?
    pub status: bool,
    /// One word.
    pub reason: &'static str,
    /// One sentence.
    pub message: String,
    /// Since when it holds or does not.
    pub since: Timestamp,
}

/// How a cycle went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Code {
    /// As it should.
    #[default]
    Success,
    /// Well, but something is worth knowing.
    Warning {
        /// Who says so.
        plugin: String,
        /// What.
        message: String,
    },
    /// It could not be decided: something else is broken.
    Error(String),
    /// It could not be decided: the placement is wrong. At least one problem, the first is told.
    Misconfigured(Vec<Problem>),
}

impl Code {
    /// Was it decided?
    #[must_use]
    pub fn decided(&self) -> bool {
        matches!(self, Self::Success | Self::Warning { .. })
    }
}

/// How many clusters came how far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Bindings to sets that exist.
    pub bindings: usize,
    /// The sets that may be used, by name.
    pub sets: Vec<String>,
    pub candidates: usize,
    pub matching: usize,
    pub survivors: usize,
    pub selected: usize,
    pub unscheduled: usize,
    /// Keys of taints that kept clusters away, by name.
    pub taints: Vec<String>,
    /// How many clusters are kept from before, since it could not be decided.
    pub kept: usize,
}

pub(super) fn conditions(
    placement: &Placement,
    code: &Code,
    tally: &Tally,
    now: Timestamp,
) -> Vec<Condition> {
    let (status, reason, message) = satisfied(placement, code, tally);
    let since = |kind: &str, status: bool| {
        let known = placement.status.conditions.iter().find(|(known, _, _)| known == kind);
        known.filter(|(_, was, _)| *was == status).map_or(now, |(_, _, since)| *since)
    };
    let satisfied = Condition { kind: SATISFIED, status, reason, message, since: since(SATISFIED, status) };
    let (status, reason, message) = match code {
        Code::Misconfigured(problems) => {
            (true, "Misconfigured", problems.first().map(ToString::to_string).unwrap_or_default())
        }
        _ => (false, "Succeedconfigured", "Placement configurations check pass".to_owned()),
    };
    let since = since(MISCONFIGURED, status);
    vec![satisfied, Condition { kind: MISCONFIGURED, status, reason, message, since }]
}

fn satisfied(placement: &Placement, code: &Code, tally: &Tally) -> (bool, &'static str, String) {
    if tally.bindings == 0 {
        let message = "No valid ManagedClusterSetBindings found in placement namespace".to_owned();
        return (false, "NoManagedClusterSetBindings", message);
    }
    if tally.sets.is_empty() {
        let sets = placement.cluster_sets.join(",");
        let message = format!("None of ManagedClusterSets [{sets}] is bound to placement namespace");
        return (false, "NoIntersection", message);
    }
    if tally.candidates == 0 && !matches!(code, Code::Error(_)) {
        let message =
            format!("All ManagedClusterSets [{}] have no member ManagedCluster", tally.sets.join(","));
        return (false, "AllManagedClusterSetsEmpty", message);
    }
    if let Code::Error(message) = code {
        return (false, "NotAllDecisionsScheduled", message.clone());
    }
    if tally.selected == 0 {
        return (false, "NoManagedClusterMatched", unmatched(placement, code, tally));
    }
    if tally.unscheduled == 0 {
        return (true, "AllDecisionsScheduled", "All cluster decisions scheduled".to_owned());
    }
    (false, "NotAllDecisionsScheduled", format!("{} cluster decisions unscheduled", tally.unscheduled))
}

/// Why nobody is selected. What everybody says first, then what it really was.
fn unmatched(placement: &Placement, code: &Code, tally: &Tally) -> String {
    let Tally { candidates, matching, survivors, kept, .. } = tally;
    if placement.count == Some(0) && code.decided() {
        return format!(
            "numberOfClusters is 0, so no cluster is selected; {survivors} of {candidates} match"
        );
    }
    let mut text = "No ManagedCluster matches any of the cluster predicate".to_owned();
    if let Code::Misconfigured(_) = code {
        if *kept > 0 {
            let _ = write!(text, "; not decided, {kept} clusters selected before are kept");
        }
        return text;
    }
    let mut parts = Vec::new();
    if candidates > matching {
        parts.push(format!("{} rejected by {PREDICATE}", candidates - matching));
    }
    if matching > survivors {
        let word = if parts.is_empty() { "rejected " } else { "" };
        let keys = tally.taints.join(", ");
        parts.push(format!("{} {word}by {TAINTS} ({keys})", matching - survivors));
    }
    if *survivors > 0 {
        parts.push(format!("{survivors} by the spread policy"));
    }
    let _ = write!(text, "; {candidates} candidates: {}", parts.join(", "));
    text
}

/// Something worth telling about a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Is it bad news?
    pub warning: bool,
    /// One word.
    pub reason: &'static str,
    /// What was done.
    pub action: &'static str,
    /// One sentence.
    pub note: Note,
    /// The name of the slice it is about, if any.
    pub slice: Option<Arc<str>>,
}

/// What is told. Where one cluster goes, every slice after it is written anew, of every placement: what was done with each is put
/// into words for who wants to hear it, and most of it is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The slice, and what was done with it.
    done: Option<(Arc<str>, &'static str)>,
    text: Arc<str>,
}

impl Note {
    fn text(text: Arc<str>) -> Self {
        Self { done: None, text }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.done {
            Some((slice, done)) => write!(f, "Decision {slice} is {done}{}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// The longest list of points in an event; notes of more than 1024 bytes are refused.
const NOTE: usize = 1000;

/// What is told about the steps.
pub(super) fn events<'a>(
    placement: &Placement,
    code: &Code,
    writes: &[Write],
    points: impl Iterator<Item = (&'a str, i64)>,
) -> Vec<Event> {
    let mut out = Vec::new();
    if let Code::Misconfigured(problems) = code
        && let Some(first) = problems.first()
    {
        let note = format!("Placement {} is not decided, what it had is kept: {first}", placement.key.name);
        let (reason, action) = ("Misconfigured", "DecisionKept");
        out.push(Event { warning: true, reason, action, note: Note::text(note.into()), slice: None });
    }
    let told = writes.iter().any(|write| write.status && !write.slice.entries.is_empty());
    let score: Option<Arc<str>> = if told { score(points).map(Into::into) } else { None };
    if writes.iter().all(|write| write.action == Action::None) {
        return out;
    }
    let Key { namespace, name } = &placement.key;
    let with = format!(" with placement {name} in namespace {namespace}");
    let (warning, more) = match code {
        Code::Warning { plugin, message } => (true, format!("{with}: {message} in plugin {plugin}")),
        _ => (false, with.clone()),
    };
    let (with, more): (Arc<str>, Arc<str>) = (with.into(), more.into());
    for Write { action, slice, status } in writes {
        let event = |warning, reason, action, done: &'static str, text: &Arc<str>| Event {
            warning,
            reason,
            action,
            note: Note { done: Some((slice.key.name.clone(), done)), text: text.clone() },
            slice: Some(slice.key.name.clone()),
        };
        match action {
            Action::None => continue,
            Action::Delete => {
                out.push(event(false, "DecisionDelete", "DecisionDeleted", "deleted", &with));
                continue;
            }
            Action::Create => out.push(event(false, "DecisionCreate", "DecisionCreated", "created", &with)),
            Action::Patch => {}
        }
        // A new slice without clusters has nothing to update.
        if !status || (*action == Action::Create && slice.entries.is_empty()) {
            continue;
        }
        out.push(event(warning, "DecisionUpdate", "DecisionUpdated", "updated", &more));
        if let Some(note) = &score {
            out.push(Event {
                warning: false,
                reason: "ScoreUpdate",
                action: "ScoreUpdated",
                note: Note::text(note.clone()),
                slice: Some(slice.key.name.clone()),
            });
        }
    }
    out
}

/// `a:1 b:2 `, cut where it gets too long.
fn score<'a>(points: impl Iterator<Item = (&'a str, i64)>) -> Option<String> {
    let mut text = String::new();
    for (cluster, total) in points {
        let next = format!("{cluster}:{total} ");
        if text.len() + next.len() > NOTE {
            text.push_str("......");
            break;
        }
        text.push_str(&next);
    }
    (!text.is_empty()).then_some(text)
}

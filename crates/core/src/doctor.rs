//! What is wrong with a cluster, or with how Loadline is set up in it, and what is to be done about that?
//!
//! [`Facts`] are everything that was read at one moment, or why it could not be read. [`examine`] looks at them and says what it
//! found: each [`Finding`] has what it is, why it matters, what to do and a command that shows it. Nothing is asked twice and
//! nothing is guessed: a check whose facts could not be read says nothing, and that they could not be read is itself a finding.
//!
//! Every check goes once over what it looks at, so that the whole is linear in nodes, series and leases. Of many nodes with the
//! same trouble one finding tells, with the names of all.
//!
//! | question | module |
//! |---|---|
//! | could everything be read? | `reads` |
//! | is the cluster recent enough, and who else does the same work there? | `preflight` |
//! | are measurements of nodes arriving? | `metrics` |
//! | which nodes match no series of Prometheus, and why? | `series` |
//! | is often enough scraped for the rules? | `scrape` |
//! | do clocks agree? | `clock` |
//! | is what nodes and workloads bear still true? | `stale` |
//! | are targets above waterlines? | `lines` |
//! | do certificates end soon? | `certificates` |
//! | may components do what they do? | `permissions` |
//! | are the kinds there, in the version that is read? | `definitions` |
//! | do two components say different things about a node? | `disagree` |

mod certificates;
mod clock;
mod definitions;
mod disagree;
mod facts;
mod lines;
mod metrics;
mod permissions;
mod preflight;
mod reads;
mod scrape;
mod series;
mod stale;
#[cfg(test)]
mod tests;

pub use definitions::{KINDS, Kind};
pub use facts::{
    Asked, Certificate, Definition, Facts, Failed, Known, Lease, Node, Prometheus, Ranged, Recorded, Server,
    Why, Workload,
};
pub use permissions::{Component, Need, Permission, needs};

use serde::Serialize;
use std::fmt;

/// How bad it is. The worst is the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It was looked at, and is as it should be.
    Ok,
    /// It works, but not as well as it could, or not for long.
    Warning,
    /// Something does not work.
    Broken,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Broken => "broken",
        })
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub severity: Severity,
    /// Which check found it, such as `metrics`.
    pub check: &'static str,
    pub what: String,
    /// Why it matters; empty if it is as it should be.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What to do; empty if it is as it should be.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
    /// A command that shows it.
    pub command: String,
    /// Everything it is about, such as nodes by name, where that is more than one thing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
}

impl Finding {
    /// It is as it should be.
    fn ok(check: &'static str, what: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            severity: Severity::Ok,
            check,
            what: what.into(),
            why: String::new(),
            fix: String::new(),
            command: command.into(),
            about: Vec::new(),
        }
    }

    fn warning(check: &'static str, what: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::ok(check, what, "") }
    }

    fn broken(check: &'static str, what: impl Into<String>) -> Self {
        Self { severity: Severity::Broken, ..Self::ok(check, what, "") }
    }

    fn why(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), ..self }
    }

    fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: fix.into(), ..self }
    }

    fn show(self, command: impl Into<String>) -> Self {
        Self { command: command.into(), ..self }
    }

    fn at_most(self, severity: Severity) -> Self {
        Self { severity: self.severity.min(severity), ..self }
    }

    fn about(self, about: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { about: about.into_iter().map(Into::into).collect(), ..self }
    }
}

/// What is found, the worst first, and else in the order of the checks.
#[must_use]
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let clocks = clock::check(facts);
    // How old something is, is a matter of the clocks it was stamped by; here may be a laptop whose own is wrong.
    let corrected = facts.by_server().map(|now| Facts { now, ..facts.clone() });
    let facts = corrected.as_ref().unwrap_or(facts);
    let mut out = reads::check(facts);
    out.extend(preflight::check(facts));
    out.extend(metrics::check(facts));
    let monitoring = series::check(facts).into_iter().chain(scrape::check(facts));
    // Rules may be loaded later: before anything is installed it is enough that somebody answers.
    let is_early = facts.preflight && facts.prometheus.read().is_some();
    out.extend(monitoring.map(|one| if is_early { one.at_most(Severity::Warning) } else { one }));
    out.extend(definitions::check(facts));
    out.extend(permissions::check(facts));
    out.extend(certificates::check(facts));
    out.extend(clocks);
    // What follows is about components at work; before anything is installed it says nothing.
    if !facts.preflight {
        out.extend(stale::check(facts));
        out.extend(lines::check(facts));
        out.extend(disagree::check(facts));
    }
    out.sort_by_key(|one| std::cmp::Reverse(one.severity));
    out
}

/// `one`, `one, two and 3 more`: the first few of many.
fn few(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 3;
    let first: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len() {
        0..=SHOWN => first.join(", "),
        more => format!("{} and {} more", first.join(", "), more - SHOWN),
    }
}

/// `1 node`, `7 nodes`.
fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// `has` for one, `have` for several: a verb in the form the number wants.
fn verb<'a>(number: usize, one: &'a str, several: &'a str) -> &'a str {
    if number == 1 { one } else { several }
}

/// A span as people say it: `45 s`, `12 min`, `3 h`, `8 days`. Parts of a unit are left out.
fn span(time: jiff::SignedDuration) -> String {
    let seconds = time.unsigned_abs().as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

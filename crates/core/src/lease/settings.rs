//! How long is a leader a leader, and which settings make sense?

use crate::object::Key;
use std::fmt;
use std::time::Duration;

/// The names of client-go's flags.
pub mod flag {
    /// Elect a leader at all?
    pub const ELECT: &str = "--leader-elect";
    /// How long others wait after a renewal.
    pub const LEASE_DURATION: &str = "--leader-elect-lease-duration";
    /// How long a leader tries to renew before it stops.
    pub const RENEW_DEADLINE: &str = "--leader-elect-renew-deadline";
    /// Pause between two tries.
    pub const RETRY_PERIOD: &str = "--leader-elect-retry-period";
    /// The kind of object, `leases`.
    pub const RESOURCE_LOCK: &str = "--leader-elect-resource-lock";
    /// The Lease's name.
    pub const RESOURCE_NAME: &str = "--leader-elect-resource-name";
    /// The Lease's namespace.
    pub const RESOURCE_NAMESPACE: &str = "--leader-elect-resource-namespace";
}

/// Candidates wait up to `1 + JITTER` retry periods, so that they do not all come at once.
pub(super) const JITTER: f64 = 1.2;

/// A shorter pause would only load the API server.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);

/// The spans of time of leader election. The defaults are client-go's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long others wait, after they have seen a renewal, before they take over.
    pub lease_duration: Duration,
    /// How long after sending its last renewal a leader may write.
    pub renew_deadline: Duration,
    /// Pause between two tries.
    pub retry_period: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl Settings {
    /// How long a request may take. Half of the renew deadline, as in client-go: one that hangs leaves time for another.
    pub(super) fn call_limit(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1)).min(self.renew_deadline)
    }

    /// As the record says it. What is too long was refused by [`check`].
    pub(super) fn lease_duration_seconds(&self) -> i32 {
        i32::try_from(self.lease_duration.as_secs()).unwrap_or(i32::MAX)
    }
}

/// Which Lease, and who wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub lease: Key,
    /// The candidate's name, different from everybody else's.
    pub identity: String,
}

/// One thing that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which flag is to be changed.
    pub flag: &'static str,
    /// What was given and what was expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.flag, self.message)
    }
}

/// Everything that is wrong.
#[must_use]
pub fn check(settings: &Settings, lock: &Lock) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_spans(settings, &mut problems);
    let mut expect = |flag, given: &str, fine: bool, expected: &str| {
        if !fine {
            problems.push(Problem { flag, message: format!("{given:?} given, expected {expected}") });
        }
    };
    let subdomain = "a DNS subdomain: lower-case letters, digits, '-' and '.', at most 253 characters";
    let Key { namespace, name } = &lock.lease;
    expect(flag::RESOURCE_NAME, name, is_subdomain(name), subdomain);
    let label = "a DNS label: lower-case letters, digits and '-', at most 63 characters";
    expect(flag::RESOURCE_NAMESPACE, namespace, is_label(namespace), label);
    expect("identity", &lock.identity, !lock.identity.is_empty(), "a name that no other candidate has");
    problems
}

fn check_spans(settings: &Settings, problems: &mut Vec<Problem>) {
    let Settings { lease_duration, renew_deadline, retry_period } = *settings;
    let mut expect = |flag, given: Duration, fine: bool, expected: String| {
        if !fine {
            problems.push(Problem { flag, message: format!("{given:?} given, expected {expected}") });
        }
    };
    // The record carries whole seconds: others would wait for less than was meant.
    let whole =
        lease_duration.subsec_nanos() == 0 && (1..=i32::MAX as u64).contains(&lease_duration.as_secs());
    expect(flag::LEASE_DURATION, lease_duration, whole, format!("whole seconds, from 1s to {}s", i32::MAX));
    expect(
        flag::RENEW_DEADLINE,
        renew_deadline,
        !renew_deadline.is_zero() && renew_deadline < lease_duration,
        format!("more than 0s and less than {} ({lease_duration:?})", flag::LEASE_DURATION),
    );
    let longest = retry_period.checked_mul(6).map(|six| six / 5);
    expect(
        flag::RETRY_PERIOD,
        retry_period,
        retry_period >= SHORTEST_RETRY && longest.is_some_and(|longest| longest < renew_deadline),
        format!(
            "at least {SHORTEST_RETRY:?}, and 1.2 times as much to be less than {} ({renew_deadline:?})",
            flag::RENEW_DEADLINE
        ),
    );
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

/// Unlike a label, a part may be longer than 63 characters: that is how the API server checks names.
fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let within = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(within)
}

#[cfg(test)]
mod tests;

//! Why was a request not carried out, and may it have been all the same?

use super::Call;
use std::time::Duration;

/// What kind of failure it was: enough to decide what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// 401: the credentials do not count (any more).
    Unauthorized,
    /// 403: the account may not do this.
    Forbidden,
    /// 404: the object, or its kind, is not there.
    NotFound,
    /// 409: there is an object of that name.
    AlreadyExists,
    /// 409: somebody else wrote first, or the object is another than was meant.
    Conflict,
    /// 410: the revision or the continuation is too old.
    Expired,
    /// 422: the server will never take this.
    Invalid,
    /// 429: later, perhaps after this time.
    TooManyRequests { retry_after: Option<Duration> },
    /// 429, for an eviction: a disruption budget does not allow it now.
    Budget,
    /// Another refusal.
    Rejected { code: u16 },
    /// 5xx: the server is in trouble.
    Server { code: u16, retry_after: Option<Duration> },
    /// It could not be reached, or went away before it answered.
    Unreachable,
    /// It did not answer in time.
    Timeout,
    /// What it answered cannot be read, or what was asked could not be written.
    Malformed,
    /// It was not sent: somebody else may be leading by now.
    NotLeading,
}

impl Cause {
    /// May it have been carried out? Refusals were not; of the rest nobody knows.
    #[must_use]
    pub fn may_have_arrived(self) -> bool {
        matches!(self, Self::Server { .. } | Self::Unreachable | Self::Timeout | Self::Malformed)
    }

    /// How long the server asks to be left alone.
    #[must_use]
    pub fn retry_after(self) -> Option<Duration> {
        match self {
            Self::TooManyRequests { retry_after } | Self::Server { retry_after, .. } => retry_after,
            _ => None,
        }
    }

    /// Is it the server that has too much to do? Then what was going on can go on later.
    #[must_use]
    pub fn is_overload(self) -> bool {
        matches!(self, Self::TooManyRequests { .. } | Self::Server { code: 503, .. })
    }
}

/// A request that was not carried out, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {} {path}: {message}", call.verb)]
pub struct Failure {
    pub call: Call,
    pub path: String,
    pub cause: Cause,
    /// What the server said, or what went wrong on the way.
    pub message: String,
}

impl Failure {
    /// Is the object not there (any more)?
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.cause == Cause::NotFound
    }

    /// Is the object another by now, or was it written by somebody else?
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self.cause, Cause::Conflict | Cause::AlreadyExists)
    }
}

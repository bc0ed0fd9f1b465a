//! Candidates that are wrong on purpose: a test that does not find them would not find mistakes either.
//!
//! Each is a mistake in what surrounds an elector, as somebody could make it who writes one.

use jiff::SignedDuration;
use loadline_core::lease::{Elector, Reading, Record, Request, Revision, Settings};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// The right counts from when a renewal was answered, not from when it was sent.
    RightFromAnswer,
    /// A record has expired when its own time says so, by the reader's clock.
    ExpiryByWallClock,
    /// Writes replace whatever is there.
    NoRevision,
    /// Nobody looks at the wall clock, which alone goes on while a machine is suspended.
    MonotonicOnly,
    /// A renewal without an answer is believed to have arrived.
    TrustsLostAnswers,
    /// The right is kept until the release is answered.
    WritesWhileReleasing,
    /// A record counts as seen from when it was asked for.
    SeenWhenAsked,
    /// A candidate waits for a third of the lease duration.
    Impatient,
    /// A candidate takes each look at the record for a change.
    NeverTakesOver,
    /// A leader that does not renew in time.
    Sleepy,
    /// A candidate that forgets what it knows instead of waiting.
    Restless,
    /// Every renewal counts as a change of holder.
    CountsRenewals,
}

impl Flaw {
    /// What is sent instead.
    pub fn sends(self, request: Request) -> Request {
        match request {
            Request::Update(record, revision) if self == Self::CountsRenewals => {
                let lease_transitions = record.lease_transitions.map(|count| count + 1);
                Request::Update(Record { lease_transitions, ..record }, revision)
            }
            request => request,
        }
    }

    /// What is seen instead.
    pub fn sees(
        self,
        found: Option<(Record, Revision)>,
        now: Reading,
        settings: Settings,
    ) -> Option<(Record, Revision)> {
        let (mut record, revision) = found?;
        match self {
            Self::ExpiryByWallClock => {
                let age = record.renew_time.map(|renewed| now.wall.duration_since(renewed));
                let limit = SignedDuration::try_from(settings.lease_duration).unwrap();
                if age.is_none_or(|age| age > limit) {
                    record.holder_identity = None;
                }
            }
            Self::Impatient => {
                record.lease_duration_seconds = record.lease_duration_seconds.map(|span| (span / 3).max(1));
            }
            Self::NeverTakesOver => record.preferred_holder = Some(now.wall.to_string()),
            _ => {}
        }
        Some((record, revision))
    }

    /// A request has no answer.
    pub fn gives_up(self, elector: &mut Elector, request: &Request, now: Reading) {
        match request {
            Request::Update(..) if self == Self::TrustsLostAnswers => {
                elector.confirm(Revision("unknown".into()), now);
            }
            _ => elector.fail(now),
        }
    }
}

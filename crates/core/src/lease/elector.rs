//! What do I do next? One candidate of an election, as a state machine.
//!
//! Whoever drives it calls [`Elector::step`], does what it says, and tells what came of it: [`Elector::observe`] for
//! what a read found, [`Elector::confirm`] for a write that was answered well, [`Elector::fail`] for anything else.
//! One request is on its way at a time; an answer that comes after the request was given up is thrown away.

use super::record::{Record, Revision, to_micros};
use super::right::{Reading, Right};
use super::settings::{JITTER, Settings};
use jiff::SignedDuration;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How many writes are remembered whose end is unknown.
const MOST_OPEN: usize = 64;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing, before this time of the monotonic clock.
    Wait(Duration),
    /// Send a request, and give it up at this time of the monotonic clock.
    Send(Request, Duration),
    /// Tell everybody: the right to write has ended. Said once.
    Lost(Loss),
    /// Nothing any more: the lease is released, or there was nothing to release, or it could not be done in time.
    Done,
}

/// What to ask the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read the Lease.
    Read,
    /// Make the Lease; to be refused if there is one.
    Create(Record),
    /// Replace the record; to be refused if the Lease has another revision by now.
    Update(Record, Revision),
    /// The same, to let go of the lease.
    Release(Record, Revision),
}

/// Why a leader is none any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// No renewal was answered in time.
    #[error("no renewal succeeded within the renew deadline")]
    Deadline,
    /// The wall clock has jumped, or the machine was suspended.
    #[error("the wall clock jumped, or this machine was suspended")]
    Clock,
    /// Somebody else wrote the record.
    #[error("{0:?} holds the lease")]
    Holder(String),
    /// Somebody emptied the record.
    #[error("somebody else released the lease")]
    Emptied,
    /// The Lease is not there any more.
    #[error("the Lease was deleted")]
    Deleted,
}

/// One candidate.
#[derive(Clone, Debug)]
pub struct Elector {
    settings: Settings,
    identity: String,
    /// State of the generator of jitter.
    dice: u64,
    /// What is known of the Lease.
    seen: Option<Seen>,
    /// May the next write build on `seen`, or has it to be read first?
    fresh: bool,
    /// Was there a read since the last pause?
    read: bool,
    /// And when it was sent.
    on_its_way: Option<(Request, Reading)>,
    right: Option<Right>,
    /// When the write was sent that gave the newest right, on the monotonic clock: none gives it twice.
    given: Option<Duration>,
    /// Was the right given, and its loss not yet told?
    leads: bool,
    loss: Option<Loss>,
    /// When to try next, on the monotonic clock.
    next: Duration,
    release: Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    No,
    /// Under way, and to be given up at this time of the monotonic clock.
    By(Duration),
    Done,
}

#[derive(Clone, Debug)]
struct Seen {
    /// None: the Lease is not there, and the record is of before.
    revision: Option<Revision>,
    record: Record,
    /// When the record was first seen like this, on the monotonic clock.
    since: Duration,
    /// When we sent it, if we did.
    ours: Option<Reading>,
    /// Writes that replace this revision and whose end is unknown. One of them may be found next.
    open: Vec<Write>,
}

#[derive(Clone, Debug)]
struct Write {
    record: Record,
    sent: Reading,
}

impl Elector {
    /// A candidate that has not looked yet. `settings` have passed [`super::check`]; `seed` spreads the pauses of many.
    #[must_use]
    pub fn new(settings: Settings, identity: impl Into<String>, seed: u64) -> Self {
        Self {
            settings,
            identity: identity.into(),
            dice: seed,
            seen: None,
            fresh: false,
            read: false,
            on_its_way: None,
            right: None,
            given: None,
            leads: false,
            loss: None,
            next: Duration::ZERO,
            release: Release::No,
        }
    }

    /// The right to write, as far as the elector knows. Ask [`Right::holds`] before each write.
    #[must_use]
    pub fn right(&self) -> Option<Right> {
        self.right
    }

    /// May the candidate write now? A right that is once found ended does not come back when a clock is set back.
    pub fn may_write(&mut self, now: Reading) -> bool {
        if let Some(right) = self.right.filter(|right| !right.holds(now)) {
            self.right = None;
            let deadline = now.monotonic >= right.until();
            self.loss = Some(if deadline { Loss::Deadline } else { Loss::Clock });
        }
        self.right.is_some()
    }

    /// The record as last known.
    #[must_use]
    pub fn record(&self) -> Option<&Record> {
        self.seen.as_ref().filter(|seen| seen.revision.is_some()).map(|seen| &seen.record)
    }

    /// What to do now.
    pub fn step(&mut self, now: Reading) -> Step {
        let may_write = self.may_write(now);
        if self.leads && !may_write {
            self.leads = false;
            let loss = self.loss.take().unwrap_or(Loss::Deadline);
            if loss == Loss::Clock {
                // Nothing has failed: a renewal may tell that nobody else has come.
                self.next = self.next.min(now.monotonic);
            }
            return Step::Lost(loss);
        }
        if let Some((_, sent)) = self.on_its_way {
            return Step::Wait(self.answer_by(sent));
        }
        match self.release {
            Release::No => {}
            Release::By(by) => return self.step_to_release(now, by),
            Release::Done => return Step::Done,
        }
        if now.monotonic < self.next {
            let end = self.right.map_or(Duration::MAX, |right| right.until());
            return Step::Wait(self.next.min(end));
        }
        if let Some(request) = self.wanted(now) {
            return self.send(request, now);
        }
        self.pause(now);
        Step::Wait(self.next)
    }

    /// What a try asks for now; none if the lease is somebody else's.
    fn wanted(&self, now: Reading) -> Option<Request> {
        let Some(seen) = self.seen.as_ref().filter(|_| self.fresh) else { return Some(Request::Read) };
        if self.is_held_by_another(seen, now) {
            return None;
        }
        Some(match &seen.revision {
            None => Request::Create(self.acquired(None, now)),
            Some(revision) if seen.ours.is_some() => {
                Request::Update(self.renewed(&seen.record, now), revision.clone())
            }
            Some(revision) => Request::Update(self.acquired(Some(&seen.record), now), revision.clone()),
        })
    }

    fn is_held_by_another(&self, seen: &Seen, now: Reading) -> bool {
        seen.ours.is_none() && seen.record.holder().is_some() && now.monotonic < self.expiry(seen)
    }

    /// When the record may be taken over, on our own clock.
    fn expiry(&self, seen: &Seen) -> Duration {
        seen.since.saturating_add(seen.record.lease_duration(self.settings.lease_duration))
    }

    fn acquired(&self, before: Option<&Record>, now: Reading) -> Record {
        let time = self.new_time(now);
        Record {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(self.settings.lease_duration_seconds()),
            acquire_time: Some(time),
            renew_time: Some(time),
            lease_transitions: Some(
                before.map_or(0, |record| record.lease_transitions.unwrap_or_default().saturating_add(1)),
            ),
            preferred_holder: before.and_then(|record| record.preferred_holder.clone()),
            strategy: before.and_then(|record| record.strategy.clone()),
        }
    }

    fn renewed(&self, before: &Record, now: Reading) -> Record {
        Record {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(self.settings.lease_duration_seconds()),
            renew_time: Some(self.new_time(now)),
            ..before.clone()
        }
    }

    fn emptied(&self, before: &Record, now: Reading) -> Record {
        let time = self.new_time(now);
        Record {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(time),
            renew_time: Some(time),
            ..before.clone()
        }
    }

    /// A time that tells this write from those before. One that changes nothing would not be stored, and two alike could
    /// not be told apart when one of them is read back.
    fn new_time(&self, now: Reading) -> jiff::Timestamp {
        let mut time = to_micros(now.wall);
        let taken = |time| {
            self.seen.as_ref().is_some_and(|seen| {
                let mut records = seen.open.iter().map(|write| &write.record).chain([&seen.record]);
                records.any(|record| record.renew_time == Some(time))
            })
        };
        while taken(time) {
            match time.checked_add(SignedDuration::from_micros(1)) {
                Ok(later) => time = later,
                // The end of the calendar.
                Err(_) => break,
            }
        }
        time
    }

    fn send(&mut self, request: Request, now: Reading) -> Step {
        self.on_its_way = Some((request.clone(), now));
        Step::Send(request, self.answer_by(now))
    }

    /// When a request sent then is given up. No later than the right ends: then everybody has to know.
    fn answer_by(&self, sent: Reading) -> Duration {
        let limit = sent.monotonic.saturating_add(self.settings.call_limit());
        let end = match self.release {
            Release::By(by) => by,
            Release::No | Release::Done => self.right.map_or(Duration::MAX, |right| right.until()),
        };
        limit.min(end)
    }

    /// What a read found: a record and its revision, or that there is no Lease.
    pub fn observe(&mut self, found: Option<(Record, Revision)>, now: Reading) {
        self.on_its_way = None;
        let before = self.seen.take();
        let seen = match found {
            Some((record, revision)) => Seen::recognize(before, record, revision, now),
            None => Seen::absent(before, now),
        };
        match seen.ours {
            Some(sent) => self.grant(sent, now),
            None => self.lose(&seen),
        }
        (self.seen, self.fresh, self.read) = (Some(seen), true, true);
    }

    /// A renewal sent then is known to have arrived.
    fn grant(&mut self, sent: Reading, now: Reading) {
        let right = Right::new(sent, self.settings.renew_deadline);
        let newer = self.given.is_none_or(|given| given < sent.monotonic);
        if self.release == Release::No && newer && right.holds(now) {
            (self.right, self.given, self.leads) = (Some(right), Some(sent.monotonic), true);
        }
    }

    fn lose(&mut self, seen: &Seen) {
        if self.right.take().is_some() {
            self.loss = Some(match (&seen.revision, seen.record.holder()) {
                (None, _) => Loss::Deleted,
                (Some(_), None) => Loss::Emptied,
                (Some(_), Some(holder)) => Loss::Holder(holder.to_owned()),
            });
        }
    }

    /// The write on its way was answered well; the Lease has this revision now.
    pub fn confirm(&mut self, revision: Revision, now: Reading) {
        let (record, sent, released) = match self.on_its_way.take() {
            Some((Request::Create(record) | Request::Update(record, _), sent)) => (record, sent, false),
            Some((Request::Release(record, _), sent)) => (record, sent, true),
            Some((Request::Read, _)) | None => return,
        };
        let (since, ours) = (now.monotonic, (!released).then_some(sent));
        self.seen = Some(Seen { revision: Some(revision), record, since, ours, open: Vec::new() });
        (self.fresh, self.read) = (true, false);
        self.next = sent.monotonic.saturating_add(self.settings.retry_period);
        if released {
            self.release = Release::Done;
        } else {
            self.grant(sent, now);
        }
    }

    /// The request on its way was refused, or has no answer. A write may have happened all the same: a refusal may be of
    /// a second copy. The record will tell.
    pub fn fail(&mut self, now: Reading) {
        let wrote = match self.on_its_way.take() {
            Some((Request::Create(record) | Request::Update(record, _), sent)) => {
                if let Some(seen) = &mut self.seen {
                    seen.open.push(Write { record, sent });
                    // What was sent so many tries ago gives no right any more. If it is found all the same, it is
                    // somebody else's.
                    let extra = seen.open.len().saturating_sub(MOST_OPEN);
                    seen.open.drain(..extra);
                }
                true
            }
            Some((Request::Release(..), _)) => true,
            Some((Request::Read, _)) | None => false,
        };
        self.fresh = false;
        if !wrote || self.read {
            self.pause(now);
        }
    }

    /// Ends a try.
    fn pause(&mut self, now: Reading) {
        (self.fresh, self.read) = (false, false);
        let period = self.settings.retry_period;
        let spread = if self.leads { 0.0 } else { JITTER * self.draw() * period.as_secs_f64() };
        let spread = Duration::try_from_secs_f64(spread).unwrap_or(period);
        let next = now.monotonic.saturating_add(period).saturating_add(spread);
        // Who waits for somebody's end looks again when it is due.
        let due = self
            .seen
            .as_ref()
            .filter(|seen| self.is_held_by_another(seen, now))
            .map(|seen| self.expiry(seen));
        self.next = due.map_or(next, |due| next.min(due));
    }

    /// From 0 to below 1.
    fn draw(&mut self) -> f64 {
        // splitmix64.
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.dice;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // The upper 32 bits are exact in an f64.
        f64::from(u32::try_from(z >> 32).unwrap_or_default()) / (f64::from(u32::MAX) + 1.0)
    }

    /// Gives up the right at once and lets go of the lease, so that the next candidate need not wait. Whatever was on its
    /// way is given up; follow [`Elector::step`] until it says [`Step::Done`].
    pub fn release(&mut self, now: Reading) {
        if self.on_its_way.is_some() {
            self.fail(now);
        }
        (self.right, self.leads, self.loss) = (None, false, None);
        self.release = Release::By(now.monotonic.saturating_add(self.settings.renew_deadline));
        self.next = now.monotonic;
    }

    fn step_to_release(&mut self, now: Reading, by: Duration) -> Step {
        let ours = |seen: &Seen| seen.ours.is_some() || (!seen.open.is_empty() && !self.fresh);
        let settled = !self.seen.as_ref().is_some_and(ours);
        if settled || now.monotonic >= by {
            self.release = Release::Done;
            return Step::Done;
        }
        if now.monotonic < self.next {
            return Step::Wait(self.next.min(by));
        }
        let request = match self.seen.as_ref().filter(|_| self.fresh) {
            Some(Seen { record, revision: Some(revision), .. }) => {
                Request::Release(self.emptied(record, now), revision.clone())
            }
            _ => Request::Read,
        };
        self.send(request, now)
    }
}

impl Seen {
    /// Is the record one we wrote, and if not, since when does it look like this?
    fn recognize(before: Option<Self>, record: Record, revision: Revision, now: Reading) -> Self {
        let Some(before) = before else {
            let since = now.monotonic;
            return Self { revision: Some(revision), record, since, ours: None, open: Vec::new() };
        };
        let open = before.open.iter().find(|write| record.is_writing_of(&write.record));
        let ours = match open {
            Some(write) => Some(write.sent),
            None => before.ours.filter(|_| record.is_writing_of(&before.record)),
        };
        let since = if before.record == record { before.since } else { now.monotonic };
        let revision = Some(revision);
        // Otherwise they replace what is no more.
        let open = if before.revision == revision { before.open } else { Vec::new() };
        Self { revision, record, since, ours, open }
    }

    /// There is no Lease. Another who held it may not know yet.
    fn absent(before: Option<Self>, now: Reading) -> Self {
        match before {
            // As before: what was sent to make it may still arrive.
            Some(before) if before.revision.is_none() => before,
            Some(before) if before.ours.is_none() => Self { revision: None, open: Vec::new(), ..before },
            _ => {
                let (record, since) = (Record::default(), now.monotonic);
                Self { revision: None, record, since, ours: None, open: Vec::new() }
            }
        }
    }
}

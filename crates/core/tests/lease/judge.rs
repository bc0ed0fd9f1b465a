//! Is it true what was promised? Judged by what was stored when, and by who says that it may write; nothing here knows
//! how a candidate decides.

use crate::plan::{DRIFT, Micros, ROUGH, SECOND, SLOWEST};
use crate::store::{Entry, Process};
use loadline_core::lease::Settings;
use std::time::Duration;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Two may write.
    TwoWriters,
    /// One may write whose last renewal was sent too long ago, or never stored.
    WriterWithoutRenewal,
    /// The holder changed though the one before had neither let go nor been silent for its lease duration.
    TakenTooEarly,
    /// A change of holder that was not counted, or a count without a change.
    Miscounted,
    /// Nobody leads long after everything is well again.
    NobodyLeads,
    /// The leader changed though nothing was wrong.
    Unstable,
    /// More requests than the retry period allows.
    TooManyRequests,
}

/// Who says that it may write.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    pub process: Process,
    pub settings: Settings,
}

#[derive(Debug)]
pub struct Judge {
    /// What was broken, each once, with how it showed first.
    pub broken: Vec<(Broken, String)>,
    read: usize,
    /// When somebody has to lead, and who did then.
    settled: Micros,
    leads: Option<Process>,
}

/// The longest a span can take in true time that a slow clock measures.
fn longest(span: Duration) -> Micros {
    micros(span) * 1_000_000 / (1_000_000 - DRIFT.unsigned_abs()) + 10
}

/// The shortest, on a fast clock.
fn shortest(span: Duration) -> Micros {
    (micros(span) * 1_000_000 / (1_000_000 + DRIFT.unsigned_abs())).saturating_sub(10)
}

fn micros(span: Duration) -> Micros {
    u64::try_from(span.as_micros()).unwrap()
}

impl Judge {
    pub fn new<'a>(settings: impl Iterator<Item = &'a Settings>) -> Self {
        // What was sent last may arrive late and be stored for one that is gone; then that lease has to run out; then a
        // few tries, a hanging request among them.
        let longest_of = |settings: &Settings| {
            longest(settings.lease_duration + settings.renew_deadline + 5 * settings.retry_period)
        };
        let settled = ROUGH + SLOWEST + settings.map(longest_of).max().unwrap_or_default() + SECOND;
        Self { broken: Vec::new(), read: 0, settled, leads: None }
    }

    /// When a world may end.
    pub fn end(&self) -> Micros {
        self.settled + 60 * SECOND
    }

    fn blame(&mut self, broken: Broken, why: String) {
        if self.broken.iter().all(|(known, _)| *known != broken) {
            self.broken.push((broken, why));
        }
    }

    /// After everything that happens: who may write, and what was stored so far.
    pub fn look(&mut self, at: Micros, writers: &[Writer], history: &[Entry]) {
        for index in self.read..history.len() {
            self.read_entry(index.checked_sub(1).map(|before| &history[before]), &history[index]);
        }
        self.read = history.len();
        if writers.len() > 1 {
            self.blame(Broken::TwoWriters, format!("at {at}: {writers:?}"));
        }
        for writer in writers {
            let renewed = history.iter().rev().find(|entry| entry.process == writer.process);
            let limit = longest(writer.settings.renew_deadline);
            if renewed.is_none_or(|entry| at > entry.sent + limit) {
                self.blame(Broken::WriterWithoutRenewal, format!("at {at}: {writer:?}, {renewed:?}"));
            }
        }
        if at >= self.settled {
            let leads = writers.first().map(|writer| writer.process);
            match (self.leads, leads) {
                (_, None) => self.blame(Broken::NobodyLeads, format!("at {at}")),
                (Some(before), Some(now)) if before != now => {
                    self.blame(Broken::Unstable, format!("at {at}: {now} after {before}"));
                }
                _ => self.leads = leads,
            }
        }
    }

    fn read_entry(&mut self, before: Option<&Entry>, entry: &Entry) {
        let count = entry.record.lease_transitions;
        let Some(before) = before else {
            if count != Some(0) {
                self.blame(Broken::Miscounted, format!("the first: {entry:?}"));
            }
            return;
        };
        let held = before.record.holder_identity.as_deref().is_some_and(|holder| !holder.is_empty());
        let empty = entry.record.holder_identity.as_deref() == Some("");
        let same = held && before.process == entry.process;
        let silent = u64::try_from(before.record.lease_duration_seconds.unwrap()).unwrap();
        if held && !same && entry.at - before.at < shortest(Duration::from_secs(silent)) {
            self.blame(Broken::TakenTooEarly, format!("{entry:?} after {before:?}"));
        }
        let more = i32::from(!same && !empty);
        let since = if same && !empty { before.record.acquire_time } else { entry.record.renew_time };
        let counted = count == before.record.lease_transitions.map(|count| count + more);
        if !counted || entry.record.acquire_time != since || (empty && !same) {
            self.blame(Broken::Miscounted, format!("{entry:?} after {before:?}"));
        }
    }

    /// A process that ran for so long sent so many requests.
    pub fn count(&mut self, settings: &Settings, ran: Micros, requests: u64, halts: u64) {
        // A try is at most a write, a read and another write.
        let tries = ran / shortest(settings.retry_period) + 2 + halts;
        if requests > 3 * tries {
            self.blame(Broken::TooManyRequests, format!("{requests} in {ran} µs, {settings:?}"));
        }
    }
}

//! One Lease, replaced by whoever has read its newest revision.

use crate::flaw::Flaw;
use crate::plan::Micros;
use loadline_core::lease::{Record, Request, Revision};

/// One process: no two starts are the same.
pub type Process = usize;

/// A request, and who sent it when.
#[derive(Clone, Debug)]
pub struct Call {
    pub process: Process,
    pub machine: usize,
    pub request: Request,
    pub sent: Micros,
}

/// What the server answers.
#[derive(Clone, Debug)]
pub enum Outcome {
    Found(Option<(Record, Revision)>),
    Written(Revision),
    Refused,
}

/// One write that was stored.
#[derive(Clone, Debug)]
pub struct Entry {
    pub at: Micros,
    /// When its request was sent.
    pub sent: Micros,
    pub process: Process,
    pub record: Record,
}

#[derive(Debug, Default)]
pub struct Store {
    revision: u64,
    current: Option<Record>,
    pub history: Vec<Entry>,
    /// A server that does not look at the revision.
    ignores_revisions: bool,
}

impl Store {
    pub fn new(flaw: Flaw) -> Self {
        Self { ignores_revisions: flaw == Flaw::NoRevision, ..Self::default() }
    }

    pub fn handle(&mut self, call: &Call, at: Micros) -> Outcome {
        match &call.request {
            Request::Read => Outcome::Found(self.current.clone().map(|record| (record, self.revision()))),
            Request::Create(record) if self.current.is_none() => self.put(record, call, at),
            Request::Create(_) => Outcome::Refused,
            Request::Update(record, revision) | Request::Release(record, revision) => {
                let known = *revision == self.revision() || self.ignores_revisions;
                match &self.current {
                    // A write that changes nothing is not stored.
                    Some(current) if known && current == record => Outcome::Written(self.revision()),
                    Some(_) if known => self.put(record, call, at),
                    _ => Outcome::Refused,
                }
            }
        }
    }

    fn put(&mut self, record: &Record, call: &Call, at: Micros) -> Outcome {
        self.current = Some(record.clone());
        self.history.push(Entry { at, sent: call.sent, process: call.process, record: record.clone() });
        self.label();
        Outcome::Written(self.revision())
    }

    /// Another revision, the same record.
    pub fn label(&mut self) {
        self.revision += 1;
    }

    fn revision(&self) -> Revision {
        Revision(self.revision.to_string())
    }
}

//! What is known of one kind of object, and how current is it? A [`Store`] fed by a watch.

use crate::cluster::store::{Applied, Store};
use crate::cluster::watch::Event;
use jiff::Timestamp;
use loadline_api::Error;
use loadline_core::object::{Key, Meta};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What an event changed.
#[derive(Debug)]
pub struct Change<F, T> {
    /// Objects that are not there any more, with what was remembered of them.
    pub deleted: Vec<(Meta, T)>,
    /// The object that is there; without facts if it cannot be read, which has been logged.
    pub applied: Option<(Meta, Option<F>)>,
}

impl<F, T> Change<F, T> {
    /// Is nothing different?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deleted.is_empty() && self.applied.is_none()
    }

    /// What is known of the object that is there.
    #[must_use]
    pub fn facts(self) -> Option<F> {
        self.applied?.1
    }
}

/// One kind of object, as its watch tells; of each, a value of the owner's is remembered.
#[expect(clippy::struct_excessive_bools, reason = "different events change each")]
#[derive(Debug)]
pub struct Informer<T> {
    /// What it is called in status and log, such as `pods`.
    name: &'static str,
    store: Store<T>,
    /// Has it been listed completely once?
    listed: bool,
    /// Is it being listed?
    listing: bool,
    /// Did listing fail, and has not begun again?
    stuck: bool,
    /// May it not be read?
    forbidden: bool,
    /// When it was last known to be current.
    heard: Option<Timestamp>,
    /// What is wrong, and since when.
    trouble: Option<(String, Timestamp)>,
    /// Objects that are there and cannot be read.
    unreadable: BTreeSet<(Key, Arc<str>)>,
}

/// How current is what is known of a kind?
#[derive(Clone, Copy, Debug)]
pub struct Freshness<'a> {
    pub name: &'static str,
    /// When it was last known to be; `None` until everything was read once.
    pub heard: Option<Timestamp>,
    /// What is wrong since.
    pub problem: Option<&'a str>,
}

impl<T> Informer<T> {
    #[must_use]
    pub fn freshness(&self) -> Freshness<'_> {
        let problem = self.trouble.as_ref().map(|(problem, _)| problem.as_str());
        Freshness { name: self.name, heard: self.heard, problem }
    }

    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            store: Store::default(),
            listed: false,
            listing: false,
            stuck: false,
            forbidden: false,
            heard: None,
            trouble: None,
            unreadable: BTreeSet::new(),
        }
    }

    /// How many objects there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.store.len()
    }

    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Everything that is there.
    #[must_use]
    pub fn store(&self) -> &Store<T> {
        &self.store
    }

    /// What is remembered of an object that is there.
    pub fn value_mut(&mut self, key: &Key) -> Option<&mut T> {
        self.store.get_mut(key)
    }

    /// Has everything been read once?
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// Is what is known being replaced at this moment?
    #[must_use]
    pub fn is_replacing(&self) -> bool {
        self.listed && self.listing && !self.stuck
    }

    /// May the account not read it, so that nothing of it was ever known?
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.forbidden && !self.listed
    }

    /// When it was last known to be current; `None` until everything was read once.
    #[must_use]
    pub fn heard(&self) -> Option<Timestamp> {
        self.heard
    }

    /// What is wrong, and since when.
    #[must_use]
    pub fn trouble(&self) -> Option<&(String, Timestamp)> {
        self.trouble.as_ref()
    }

    /// How many objects are there that cannot be read.
    #[must_use]
    pub fn unreadable(&self) -> usize {
        self.unreadable.len()
    }
}

impl<T: Default> Informer<T> {
    /// Takes an event in.
    pub fn apply<F>(&mut self, event: Event<F>, now: Timestamp) -> Change<F, T> {
        let mut deleted = Vec::new();
        let mut there = None;
        match event {
            Event::ListStarted => {
                (self.listing, self.stuck) = (true, false);
                self.store.list_started();
                return Change { deleted, applied: None };
            }
            Event::Failed(what) => {
                self.fail(what, now);
                return Change { deleted, applied: None };
            }
            Event::Forbidden(what) => {
                self.forbidden = true;
                self.fail(what, now);
                return Change { deleted, applied: None };
            }
            Event::Applied(meta, facts) => there = Some((meta, facts)),
            Event::Deleted(meta) => {
                if let Some(value) = self.store.delete(&meta) {
                    deleted.push((meta, value));
                }
            }
            Event::Listed(revision) => {
                deleted = self.store.listed(revision);
                (self.listed, self.listing, self.forbidden) = (true, false, false);
            }
            Event::Bookmark => {}
        }
        // A list is current only as a whole.
        if !self.listing {
            self.heard = Some(now);
            self.trouble = None;
        }
        for (meta, _) in &deleted {
            self.unreadable.remove(&(meta.key.clone(), meta.uid.clone()));
        }
        let Some((meta, facts)) = there else { return Change { deleted, applied: None } };
        let facts = self.readable(&meta, facts);
        match self.store.apply(&meta) {
            Applied::Kept { replaced, .. } => {
                if let Some((gone, _)) = &replaced {
                    self.unreadable.remove(&(gone.key.clone(), gone.uid.clone()));
                }
                deleted.extend(replaced);
                Change { deleted, applied: Some((meta, facts)) }
            }
            Applied::Stale => Change { deleted, applied: None },
        }
    }

    /// Takes in the answer to a write of our own, unless the watch is past it.
    pub fn wrote<F>(&mut self, meta: Meta, facts: Result<F, Error>) -> Change<F, T> {
        let facts = self.readable(&meta, facts);
        match self.store.wrote(&meta) {
            Applied::Kept { replaced, .. } => {
                Change { deleted: Vec::from_iter(replaced), applied: Some((meta, facts)) }
            }
            Applied::Stale => Change { deleted: Vec::new(), applied: None },
        }
    }

    fn fail(&mut self, what: String, now: Timestamp) {
        let since = self.trouble.take().map_or(now, |(_, since)| since);
        self.trouble = Some((what, since));
        self.stuck = true;
    }

    /// What was read, if it could be. Otherwise that is noted, and logged once.
    fn readable<F>(&mut self, meta: &Meta, read: Result<F, Error>) -> Option<F> {
        match read {
            Ok(read) => {
                if !self.unreadable.is_empty() {
                    self.unreadable.remove(&(meta.key.clone(), meta.uid.clone()));
                }
                Some(read)
            }
            Err(error) => {
                if self.unreadable.insert((meta.key.clone(), meta.uid.clone())) {
                    tracing::warn!(resource = self.name, object = %meta.key, %error, "object cannot be read");
                }
                None
            }
        }
    }
}

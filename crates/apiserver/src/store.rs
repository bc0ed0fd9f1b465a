//! Where objects live: tables of immutable objects, one revision counter, and a bounded log of events per table.
//!
//! Three properties carry everything above this module:
//! - a write either commits against the revision it read or reports that it raced; nothing is locked meanwhile;
//! - a watcher is a cursor into the log, not a queue: a watcher that stops reading costs nothing and finds, when it
//!   comes back, that the log no longer reaches back to its position (410);
//! - the log also undoes: a list can be read as of any revision the log still covers, which makes paging consistent.

mod bell;
mod object;

use bell::{Bell, News};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use object::{Key, Object, key};

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It came to be.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// One entry of a table's log.
#[derive(Debug)]
pub(crate) struct Event {
    /// Revision of the change.
    pub revision: u64,
    /// What happened.
    pub change: Change,
    /// Key of the object.
    pub key: Key,
    /// The object after the change; for a deletion, its last state stamped with the deletion's revision.
    pub object: Arc<Object>,
    /// The object before the change.
    pub before: Option<Arc<Object>>,
}

/// What a write expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Nothing under this key.
    Absent,
    /// The object at this revision.
    Revision(u64),
}

/// The write did not find what it expected: somebody else was faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raced;

/// The log no longer covers the revision asked for; the oldest that can be served follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// Oldest revision that can still be served.
    pub oldest: u64,
}

/// Identifies a table: group and plural name, for example `apps/deployments`.
pub(crate) type TableId = Arc<str>;

#[derive(Debug)]
struct Table {
    objects: BTreeMap<Key, Arc<Object>>,
    fields: Arc<[String]>,
    /// Keys by the value of the first selectable field: for pods, by node. Whoever runs on a node asks for little else.
    index: HashMap<Box<str>, BTreeSet<Key>>,
    log: VecDeque<Arc<Event>>,
    /// Everything up to this revision has left the log.
    forgotten: u64,
    news: News,
}

#[derive(Debug, Default)]
struct State {
    revision: u64,
    tables: HashMap<TableId, Table>,
    /// Dependents by the uid of their owner.
    dependents: HashMap<Box<str>, BTreeSet<(TableId, Key)>>,
}

/// All objects of one server.
#[derive(Debug)]
pub(crate) struct Store {
    state: RwLock<State>,
    log_capacity: usize,
}

/// Part of a table as of one revision.
#[derive(Debug)]
pub(crate) struct Page {
    /// The objects, in key order.
    pub objects: Vec<Arc<Object>>,
    /// Revision the page shows.
    pub revision: u64,
    /// Key of the last object when more follow.
    pub last: Option<Key>,
    /// How many matching objects follow; known only when nothing was filtered out.
    pub remaining: Option<usize>,
}

/// Which objects of a table to read; all of them by default.
#[derive(Clone, Copy, Default)]
pub(crate) struct Query<'a> {
    /// Only this namespace.
    pub namespace: Option<&'a str>,
    /// Only keys after this one.
    pub after: Option<&'a str>,
    /// As of this revision; `None` is now.
    pub at: Option<u64>,
    /// At most this many; 0 is no limit.
    pub limit: usize,
    /// Keeps an object; `None` keeps all.
    pub keep: Option<&'a dyn Fn(&Object) -> bool>,
    /// Only objects whose first selectable field has this value. `keep` must agree: this only makes it quick.
    pub indexed: Option<&'a str>,
}

impl Store {
    /// An empty store whose tables remember `log_capacity` events each.
    #[must_use]
    pub(crate) fn new(log_capacity: usize) -> Self {
        // Revision 0 means "any" on the wire, so counting starts above it.
        let state = State { revision: 1, ..State::default() };
        Self { state: RwLock::new(state), log_capacity: log_capacity.max(1) }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // A panic while holding the lock leaves whole objects behind, never torn ones.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a table, with the fields that field selectors may name. Does nothing if it is there.
    pub(crate) fn create_table(&self, id: &TableId, fields: &[String]) {
        let mut state = self.write();
        let revision = state.revision;
        state.tables.entry(id.clone()).or_insert_with(|| Table {
            objects: BTreeMap::new(),
            fields: fields.into(),
            index: HashMap::new(),
            log: VecDeque::new(),
            forgotten: revision,
            news: News::default(),
        });
    }

    /// The newest revision.
    #[must_use]
    pub(crate) fn revision(&self) -> u64 {
        self.read().revision
    }

    /// One object.
    #[must_use]
    pub(crate) fn get(&self, id: &str, key: &str) -> Option<Arc<Object>> {
        self.read().tables.get(id)?.objects.get(key).cloned()
    }

    /// Writes `value`, stamping `metadata.resourceVersion`, if the store still holds what is expected.
    ///
    /// # Errors
    /// [`Raced`] when it does not, or when the table is gone.
    pub(crate) fn put(
        &self,
        id: &TableId,
        key: &str,
        expect: Expect,
        mut value: Value,
    ) -> Result<Arc<Object>, Raced> {
        let mut guard = self.write();
        let state = &mut *guard;
        let table = state.tables.get_mut(id).ok_or(Raced)?;
        let before = table.objects.get(key).cloned();
        check(before.as_deref(), expect)?;
        state.revision += 1;
        stamp(&mut value, state.revision);
        let object = Arc::new(Object::freeze(&value, state.revision, &table.fields));
        table.objects.insert(key.into(), object.clone());
        table.reindex(key, before.as_deref(), Some(&object));
        reindex(&mut state.dependents, id, key, before.as_deref(), Some(&object));
        let change = if before.is_some() { Change::Modified } else { Change::Added };
        table.append(
            Event { revision: state.revision, change, key: key.into(), object: object.clone(), before },
            self.log_capacity,
        );
        Ok(object)
    }

    /// Removes an object if the store still holds the expected revision of it.
    ///
    /// # Errors
    /// [`Raced`] when it does not.
    pub(crate) fn remove(&self, id: &TableId, key: &str, revision: u64) -> Result<Arc<Object>, Raced> {
        let mut guard = self.write();
        let state = &mut *guard;
        let table = state.tables.get_mut(id).ok_or(Raced)?;
        check(table.objects.get(key).map(AsRef::as_ref), Expect::Revision(revision))?;
        let before = table.objects.remove(key).ok_or(Raced)?;
        state.revision += 1;
        let mut value = before.value();
        stamp(&mut value, state.revision);
        let object = Arc::new(Object::freeze(&value, state.revision, &table.fields));
        table.reindex(key, Some(&before), None);
        reindex(&mut state.dependents, id, key, Some(&before), None);
        table.append(
            Event {
                revision: state.revision,
                change: Change::Deleted,
                key: key.into(),
                object: object.clone(),
                before: Some(before),
            },
            self.log_capacity,
        );
        Ok(object)
    }

    /// Drops a whole table; its watchers see it end.
    pub(crate) fn drop_table(&self, id: &str) {
        self.write().tables.remove(id);
    }

    /// Forgets all events up to now: no older revision can be served any more.
    pub(crate) fn compact(&self) {
        let mut state = self.write();
        let revision = state.revision;
        for table in state.tables.values_mut() {
            table.log.clear();
            table.forgotten = revision;
        }
    }

    /// Objects that name this uid as an owner.
    #[must_use]
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(TableId, Key)> {
        self.read().dependents.get(uid).map(|set| set.iter().cloned().collect()).unwrap_or_default()
    }

    /// Ids of all tables that hold objects of a namespace, with the keys of those objects.
    #[must_use]
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<(TableId, Key)> {
        let prefix = format!("{namespace}/");
        let state = self.read();
        let mut found: Vec<(TableId, Key)> = Vec::new();
        for (id, table) in &state.tables {
            found.extend(table.within(Some(&prefix), None).map(|(k, _)| (id.clone(), k.clone())));
        }
        drop(state);
        found.sort();
        found
    }

    /// Reads part of a table.
    ///
    /// # Errors
    /// [`TooOld`] when the revision asked for is no longer covered by the log.
    pub(crate) fn list(&self, id: &str, query: &Query<'_>) -> Result<Page, TooOld> {
        let state = self.read();
        let Some(table) = state.tables.get(id) else {
            return Ok(Page { objects: Vec::new(), revision: state.revision, last: None, remaining: None });
        };
        let at = query.at.unwrap_or(state.revision);
        let undo = table.undo(at)?;
        let prefix = query.namespace.map(|n| format!("{n}/"));
        let prefix = prefix.as_deref();
        let current = table
            .reach(query.indexed, prefix, query.after)
            .filter(|(key, _)| !undo.contains_key(key.as_ref()))
            .map(|(key, object)| (key.as_ref(), object));
        let past = undo.iter().filter_map(|(key, object)| {
            let object = object.as_ref()?;
            let inside = prefix.is_none_or(|p| key.starts_with(p)) && query.after.is_none_or(|a| *key > a);
            inside.then_some((*key, object))
        });
        let mut page = Page { objects: Vec::new(), revision: at, last: None, remaining: None };
        let mut rest = 0;
        let mut last_key: Option<&str> = None;
        for (key, object) in merge(current, past) {
            if query.keep.is_some_and(|keep| !keep(object)) {
                continue;
            }
            if query.limit > 0 && page.objects.len() == query.limit {
                rest += 1;
                if query.keep.is_some() {
                    break;
                }
                continue;
            }
            last_key = Some(key);
            page.objects.push(object.clone());
        }
        if rest > 0 {
            page.last = last_key.map(Into::into);
            page.remaining = query.keep.is_none().then_some(rest);
        }
        Ok(page)
    }

    /// A cursor that sees every event of a table after `revision`.
    ///
    /// # Errors
    /// [`TooOld`] when the log no longer reaches back that far.
    pub(crate) fn cursor(self: &Arc<Self>, id: &TableId, revision: u64) -> Result<Cursor, TooOld> {
        let state = self.read();
        let Some(table) = state.tables.get(id) else { return Err(TooOld { oldest: state.revision }) };
        table.covers(revision)?;
        let (news, heard) = (table.news.bell(), table.news.bell().rung());
        Ok(Cursor { store: self.clone(), table: id.clone(), position: revision, news, heard })
    }
}

impl Table {
    fn append(&mut self, event: Event, capacity: usize) {
        while self.log.len() >= capacity {
            if let Some(old) = self.log.pop_front() {
                self.forgotten = old.revision;
            }
        }
        self.log.push_back(Arc::new(event));
        self.news.ring();
    }

    fn covers(&self, revision: u64) -> Result<(), TooOld> {
        if revision < self.forgotten { Err(TooOld { oldest: self.forgotten }) } else { Ok(()) }
    }

    fn since(&self, revision: u64) -> impl Iterator<Item = &Arc<Event>> {
        let start = self.log.partition_point(|e| e.revision <= revision);
        self.log.range(start..)
    }

    /// For every key that changed after `at`: what it was then, `None` if it was not there.
    fn undo(&self, at: u64) -> Result<BTreeMap<&str, Option<Arc<Object>>>, TooOld> {
        self.covers(at)?;
        let mut undo = BTreeMap::new();
        for event in self.since(at) {
            undo.entry(event.key.as_ref()).or_insert_with(|| event.before.clone());
        }
        Ok(undo)
    }

    /// Keeps the index true after a write.
    fn reindex(&mut self, key: &str, before: Option<&Object>, after: Option<&Object>) {
        let value = |object: &Object| object.fields.first().filter(|v| !v.is_empty()).cloned();
        let (old, new) = (before.and_then(value), after.and_then(value));
        if old == new {
            return;
        }
        if let Some(old) = old
            && let Some(keys) = self.index.get_mut(&old)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.index.remove(&old);
            }
        }
        if let Some(new) = new {
            self.index.entry(new).or_default().insert(key.into());
        }
    }

    /// As [`Table::within`], looking only at what the index has under a value if there is one.
    fn reach<'a>(
        &'a self,
        indexed: Option<&str>,
        prefix: Option<&'a str>,
        after: Option<&'a str>,
    ) -> Box<dyn Iterator<Item = (&'a Key, &'a Arc<Object>)> + 'a> {
        let Some(value) = indexed else { return Box::new(self.within(prefix, after)) };
        let keys = self.index.get(value);
        let inside = move |key: &&Key| {
            prefix.is_none_or(|p| key.starts_with(p)) && after.is_none_or(|a| key.as_ref() > a)
        };
        Box::new(keys.into_iter().flatten().filter(inside).filter_map(|key| self.objects.get_key_value(key)))
    }

    /// Objects whose key starts with `prefix` and follows `after`, in key order.
    fn within<'a>(
        &'a self,
        prefix: Option<&'a str>,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> {
        let start: Bound<&str> = match (prefix, after) {
            (Some(prefix), Some(after)) if after >= prefix => Bound::Excluded(after),
            (Some(prefix), _) => Bound::Included(prefix),
            (None, Some(after)) => Bound::Excluded(after),
            (None, None) => Bound::Unbounded,
        };
        let range = self.objects.range::<str, _>((start, Bound::Unbounded));
        range.take_while(move |(key, _)| prefix.is_none_or(|p| key.starts_with(p)))
    }
}

/// A watcher's position in the log of one table.
#[derive(Debug)]
pub(crate) struct Cursor {
    store: Arc<Store>,
    table: TableId,
    position: u64,
    news: Arc<Bell>,
    /// How often it had rung before the log was last read.
    heard: u64,
}

impl Cursor {
    /// Revision up to which events were read.
    #[must_use]
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Events not read yet, at most `most`; empty when there are none.
    ///
    /// # Errors
    /// [`TooOld`] when events were lost because the reader was too slow, or the table is gone.
    pub(crate) fn poll(&mut self, most: usize) -> Result<Vec<Arc<Event>>, TooOld> {
        // Marked before reading, so that an event between the two wakes the next wait.
        self.heard = self.news.rung();
        let state = self.store.read();
        let Some(table) = state.tables.get(&self.table) else {
            return Err(TooOld { oldest: state.revision });
        };
        table.covers(self.position)?;
        let events: Vec<Arc<Event>> = table.since(self.position).take(most).cloned().collect();
        // Revisions are global: with nothing left to read here, the cursor stands at the newest of all.
        let seen = if events.len() < most { state.revision } else { events.last().map_or(0, |e| e.revision) };
        // A watch may start in the future and then waits until that has come.
        self.position = self.position.max(seen);
        Ok(events)
    }

    /// Waits until there may be something to read; `false` when the table is gone.
    pub(crate) async fn changed(&mut self) -> bool {
        self.news.rings(self.heard).await
    }
}

/// Two sorted sequences with distinct keys, as one.
fn merge<'a, T>(
    left: impl Iterator<Item = (&'a str, T)>,
    right: impl Iterator<Item = (&'a str, T)>,
) -> impl Iterator<Item = (&'a str, T)> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some((l, _)), Some((r, _))) if r < l => right.next(),
        (None, _) => right.next(),
        _ => left.next(),
    })
}

fn check(found: Option<&Object>, expect: Expect) -> Result<(), Raced> {
    match (found, expect) {
        (None, Expect::Absent) => Ok(()),
        (Some(object), Expect::Revision(revision)) if object.revision == revision => Ok(()),
        _ => Err(Raced),
    }
}

fn stamp(value: &mut Value, revision: u64) {
    value["metadata"]["resourceVersion"] = Value::String(revision.to_string());
}

/// Keeps the index from owners to dependents true after a write.
fn reindex(
    dependents: &mut HashMap<Box<str>, BTreeSet<(TableId, Key)>>,
    id: &TableId,
    key: &str,
    before: Option<&Object>,
    after: Option<&Object>,
) {
    let (old, new) = (before.map_or(&[][..], |o| &o.owners), after.map_or(&[][..], |o| &o.owners));
    if old == new {
        return;
    }
    let entry = (id.clone(), Key::from(key));
    for uid in old {
        if let Some(set) = dependents.get_mut(uid) {
            set.remove(&entry);
            if set.is_empty() {
                dependents.remove(uid);
            }
        }
    }
    for uid in new {
        dependents.entry(uid.clone()).or_default().insert(entry.clone());
    }
}

#[cfg(test)]
mod tests;

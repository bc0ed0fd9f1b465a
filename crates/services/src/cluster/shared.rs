//! What is there now, for many who read at once? A store that is watched, with listeners.
//!
//! A controller that acts twice on old news makes two pods where one was wanted. So the answers to our own writes are put
//! into the store at once ([`SharedStore::wrote`]), unless the watch is already past them.

use crate::cluster::connection::Connection;
use crate::cluster::informer::{Change, Informer};
use crate::cluster::watch::{Event, Watched, watch};
use crate::cluster::write::Written;
use jiff::Timestamp;
use loadline_api::Error;
use loadline_core::object::{Key, Meta};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{mpsc, watch as signal};
use tokio_util::sync::CancellationToken;

/// Events waiting to be taken in.
const WAITING: usize = 256;

/// Told what was there before and what is there now.
type Listener<T> = Box<dyn Fn(Option<&Arc<T>>, Option<&Arc<T>>) + Send + Sync>;
/// What was there before and what is there now.
type Step<T> = (Option<Arc<T>>, Option<Arc<T>>);

/// All objects of one kind.
pub struct SharedStore<W: Watched> {
    inner: RwLock<Inner<W::Facts>>,
    listeners: RwLock<Vec<Listener<W::Facts>>>,
    ready: signal::Sender<bool>,
}

struct Inner<T> {
    informer: Informer<Option<Arc<T>>>,
    /// Under what else an object is found, if under anything.
    index_by: fn(&T) -> Option<&Arc<str>>,
    index: HashMap<Arc<str>, BTreeSet<Key>>,
}

impl<W: Watched> Default for SharedStore<W> {
    fn default() -> Self {
        Self::indexed(|_| None)
    }
}

impl<W: Watched> fmt::Debug for SharedStore<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedStore")
            .field("objects", &self.read().informer.store().len())
            .finish_non_exhaustive()
    }
}

impl<W: Watched> SharedStore<W> {
    /// Objects can also be found by what `by` says of them.
    #[must_use]
    pub fn indexed(by: fn(&W::Facts) -> Option<&Arc<str>>) -> Self {
        let inner =
            Inner { informer: Informer::new(W::RESOURCE.plural), index_by: by, index: HashMap::new() };
        Self { inner: RwLock::new(inner), listeners: RwLock::default(), ready: signal::Sender::new(false) }
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner<W::Facts>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner<W::Facts>> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `listener` after every change with what was there and what is there. It must not block.
    pub fn listen(
        &self,
        listener: impl Fn(Option<&Arc<W::Facts>>, Option<&Arc<W::Facts>>) + Send + Sync + 'static,
    ) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    /// Waits until the first list is complete.
    pub async fn ready(&self) {
        // The sender lives in self, so this can only end with true.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// One object.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<W::Facts>> {
        self.read().informer.store().get(key)?.clone()
    }

    /// Every object, by key.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<W::Facts>> {
        self.read().informer.store().iter().filter_map(|(.., object)| object.clone()).collect()
    }

    /// How many of them are like that.
    #[must_use]
    pub fn count(&self, keep: impl Fn(&W::Facts) -> bool) -> usize {
        let inner = self.read();
        inner.informer.store().iter().filter(|(.., object)| object.as_deref().is_some_and(&keep)).count()
    }

    /// The objects of one namespace, by name.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Vec<Arc<W::Facts>> {
        self.read().informer.store().within(namespace).filter_map(Clone::clone).collect()
    }

    /// The objects the index has under this, by key.
    #[must_use]
    pub fn under(&self, index: &str) -> Vec<Arc<W::Facts>> {
        let inner = self.read();
        let keys = inner.index.get(index).into_iter().flatten();
        keys.filter_map(|key| inner.informer.store().get(key)?.clone()).collect()
    }

    /// Takes in the answer to a write of our own, unless the watch already told something as new.
    pub fn wrote(&self, answer: &Written) {
        if let Some((meta, facts)) = answer.read::<W>() {
            self.take_written(meta, facts);
        }
    }

    /// The same, where the answer says less than we know.
    pub fn put(&self, meta: Meta, facts: W::Facts) {
        self.take_written(meta, Ok(facts));
    }

    fn take_written(&self, meta: Meta, facts: Result<W::Facts, Error>) {
        let steps = {
            let mut inner = self.write();
            let change = inner.informer.wrote(meta, facts);
            inner.take(change)
        };
        self.tell(&steps);
    }

    fn take(&self, event: Event<W::Facts>) {
        let listed = matches!(event, Event::Listed(_));
        let steps = {
            let mut inner = self.write();
            let change = inner.informer.apply(event, Timestamp::now());
            inner.take(change)
        };
        self.tell(&steps);
        if listed {
            self.ready.send_replace(true);
        }
    }

    fn tell(&self, steps: &[Step<W::Facts>]) {
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        for (old, new) in steps {
            for listener in listeners.iter() {
                listener(old.as_ref(), new.as_ref());
            }
        }
    }

    /// Keeps the store up to date until told to stop.
    pub async fn follow(self: Arc<Self>, connection: Connection, stop: CancellationToken) {
        let (send, mut events) = mpsc::channel(WAITING);
        let watching = watch::<W, Event<W::Facts>>(connection, send, |event| event, None);
        let taking = async {
            while let Some(event) = events.recv().await {
                if let Event::Failed(why) | Event::Forbidden(why) = &event {
                    tracing::debug!(resource = W::RESOURCE.plural, why, "watch failed");
                }
                self.take(event);
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = watching => {}
            () = taking => {}
        }
    }
}

impl<T> Inner<T> {
    /// What a change comes to for listeners, with store and index brought up to date.
    fn take(&mut self, change: Change<T, Option<Arc<T>>>) -> Vec<Step<T>> {
        let mut steps = Vec::new();
        for (meta, old) in change.deleted {
            if let Some(old) = old {
                self.unlist(&meta.key, &old);
                steps.push((Some(old), None));
            }
        }
        if let Some((meta, Some(facts))) = change.applied {
            let new = Arc::new(facts);
            let old = self.informer.value_mut(&meta.key).and_then(|value| value.replace(new.clone()));
            if let Some(old) = &old {
                self.unlist(&meta.key, old);
            }
            if let Some(under) = (self.index_by)(&new) {
                self.index.entry(under.clone()).or_default().insert(meta.key);
            }
            steps.push((old, Some(new)));
        }
        steps
    }

    fn unlist(&mut self, key: &Key, old: &T) {
        if let Some(under) = (self.index_by)(old)
            && let Some(keys) = self.index.get_mut(under)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.index.remove(under);
            }
        }
    }
}

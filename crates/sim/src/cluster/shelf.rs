//! Keeping one kind of object: what the watch said last, plus our own writes it has not caught up with.
//!
//! A controller that acts twice on old news makes two pods where one was wanted. So the answers to our own
//! writes are put on the shelf at once ([`Shelf::wrote`]), unless the watch is already past them; revisions
//! are counted by the server over all objects, which makes "past" a comparison of two numbers.

use super::{Key, Meta};
use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A kind of object that is kept in a lean form.
pub trait Kept: Send + Sync + fmt::Debug + 'static {
    /// Group, version, kind and plural.
    const KIND: (&'static str, &'static str, &'static str, &'static str);

    /// Takes what matters from an object.
    ///
    /// # Errors
    /// When a field is not what the API says it is.
    fn read(meta: Meta, data: Value) -> Result<Self, serde_json::Error>
    where
        Self: Sized;

    /// Its metadata.
    fn meta(&self) -> &Meta;

    /// How the client addresses it.
    #[must_use]
    fn resource() -> ApiResource {
        let (group, version, kind, plural) = Self::KIND;
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        ApiResource {
            group: group.into(),
            version: version.into(),
            api_version,
            kind: kind.into(),
            plural: plural.into(),
        }
    }
}

/// Told what was there before and what is there now.
type Listener<T> = Box<dyn Fn(Option<&Arc<T>>, Option<&Arc<T>>) + Send + Sync>;

/// All objects of one kind.
pub struct Shelf<T> {
    inner: RwLock<Inner<T>>,
    listeners: RwLock<Vec<Listener<T>>>,
    ready: watch::Sender<bool>,
}

struct Inner<T> {
    objects: BTreeMap<Key, Arc<T>>,
    /// By the identity of the controller they belong to.
    owned: HashMap<String, BTreeSet<Key>>,
    /// The watch has told everything up to here.
    seen: u64,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        let inner = Inner { objects: BTreeMap::new(), owned: HashMap::new(), seen: 0 };
        Self { inner: RwLock::new(inner), listeners: RwLock::default(), ready: watch::Sender::new(false) }
    }
}

impl<T> fmt::Debug for Shelf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").field("objects", &self.read().objects.len()).finish_non_exhaustive()
    }
}

impl<T> Shelf<T> {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Inner<T>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Inner<T>> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Kept> Shelf<T> {
    /// Calls `listener` after every change with what was there and what is there. It must not block.
    pub fn listen(&self, listener: impl Fn(Option<&Arc<T>>, Option<&Arc<T>>) + Send + Sync + 'static) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    /// Waits until the first list is complete.
    pub async fn ready(&self) {
        // The sender lives in self, so this can only end with true.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// One object.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<T>> {
        self.read().objects.get(key).cloned()
    }

    /// Every object, by key.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<T>> {
        self.read().objects.values().cloned().collect()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self, keep: impl Fn(&T) -> bool) -> usize {
        self.read().objects.values().filter(|object| keep(object)).count()
    }

    /// The objects of one namespace, by name.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Vec<Arc<T>> {
        let inner = self.read();
        let from = inner.objects.range(Key::new(namespace, "")..);
        from.take_while(|(key, _)| key.namespace == namespace).map(|(_, object)| object.clone()).collect()
    }

    /// The objects that belong to the controller with this identity, by key.
    #[must_use]
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<T>> {
        let inner = self.read();
        let keys = inner.owned.get(uid).into_iter().flatten();
        keys.filter_map(|key| inner.objects.get(key).cloned()).collect()
    }

    /// Keeps the answer to a write of our own, unless the watch already told something as new.
    pub fn wrote(&self, answer: Value) {
        let Some(object) = take::<T>(serde_json::from_value(answer)) else { return };
        let changed = {
            let mut inner = self.write();
            if object.meta().revision <= inner.seen {
                return;
            }
            inner.put(Arc::new(object))
        };
        self.tell(changed);
    }

    fn applied(&self, object: T) {
        let changed = {
            let mut inner = self.write();
            inner.seen = inner.seen.max(object.meta().revision);
            inner.put(Arc::new(object))
        };
        self.tell(changed);
    }

    fn deleted(&self, meta: &Meta) {
        let changed = {
            let mut inner = self.write();
            inner.seen = inner.seen.max(meta.revision);
            // A successor of the same name may be here already, by our own writing.
            let same = inner.objects.get(&meta.key).is_some_and(|held| held.meta().uid == meta.uid);
            if same { inner.drop_key(&meta.key) } else { None }
        };
        if let Some(old) = changed {
            self.tell(Some((Some(old), None)));
        }
    }

    fn replace(&self, fresh: BTreeMap<Key, T>) {
        let gone: Vec<Key> = {
            let inner = self.read();
            inner.objects.keys().filter(|key| !fresh.contains_key(*key)).cloned().collect()
        };
        for key in gone {
            let old = self.write().drop_key(&key);
            self.tell(old.map(|old| (Some(old), None)));
        }
        for object in fresh.into_values() {
            self.applied(object);
        }
        self.ready.send_replace(true);
    }

    #[expect(clippy::type_complexity, reason = "the pair every listener gets")]
    fn tell(&self, changed: Option<(Option<Arc<T>>, Option<Arc<T>>)>) {
        let Some((old, new)) = changed else { return };
        for listener in self.listeners.read().unwrap_or_else(PoisonError::into_inner).iter() {
            listener(old.as_ref(), new.as_ref());
        }
    }
}

impl<T: Kept> Inner<T> {
    /// Puts an object unless it is older than what is there.
    #[expect(clippy::type_complexity, reason = "the pair every listener gets")]
    fn put(&mut self, object: Arc<T>) -> Option<(Option<Arc<T>>, Option<Arc<T>>)> {
        let (key, uid) = (object.meta().key.clone(), object.meta().uid.clone());
        let held = self.objects.get(&key);
        if held.is_some_and(|held| held.meta().uid == uid && held.meta().revision > object.meta().revision) {
            return None;
        }
        let old = self.drop_key(&key);
        if let Some(owner) = &object.meta().owner {
            self.owned.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        self.objects.insert(key, object.clone());
        Some((old, Some(object)))
    }

    fn drop_key(&mut self, key: &Key) -> Option<Arc<T>> {
        let old = self.objects.remove(key)?;
        if let Some(owner) = &old.meta().owner
            && let Some(keys) = self.owned.get_mut(&owner.uid)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.owned.remove(&owner.uid);
            }
        }
        Some(old)
    }
}

/// Reads an object; one that cannot be read is left out, with a warning.
fn take<T: Kept>(object: Result<DynamicObject, serde_json::Error>) -> Option<T> {
    let read = object.and_then(|object| {
        let meta = Meta::from(object.metadata);
        T::read(meta, object.data)
    });
    read.inspect_err(|error| tracing::warn!(kind = T::KIND.2, %error, "left out an object")).ok()
}

/// Keeps a shelf up to date until told to stop.
pub(super) async fn follow<T: Kept>(client: Client, shelf: Arc<Shelf<T>>, stop: CancellationToken) {
    let api: Api<DynamicObject> = Api::all_with(client, &T::resource());
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    let mut fresh: BTreeMap<Key, T> = BTreeMap::new();
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            None => return,
            Some(Err(error)) => tracing::debug!(kind = T::KIND.2, %error, "watching again"),
            Some(Ok(watcher::Event::Init)) => fresh.clear(),
            Some(Ok(watcher::Event::InitApply(object))) => {
                if let Some(object) = take::<T>(Ok(object)) {
                    fresh.insert(object.meta().key.clone(), object);
                }
            }
            Some(Ok(watcher::Event::InitDone)) => shelf.replace(std::mem::take(&mut fresh)),
            Some(Ok(watcher::Event::Apply(object))) => {
                if let Some(object) = take::<T>(Ok(object)) {
                    shelf.applied(object);
                }
            }
            Some(Ok(watcher::Event::Delete(object))) => shelf.deleted(&Meta::from(object.metadata)),
        }
    }
}

//! What is there of one kind of object, and what changes? List and watch.
//!
//! [`watch`] lists page by page, then watches, and sends everything as [`Event`] through a channel that is bounded:
//! whoever is slow slows the reading down, and memory stays what it is. Objects are made into facts as they are decoded
//! ([`Watched::read`]), one by one; what nobody looks at ([`Watched::SKIP`]) is not even built.
//!
//! How old is what is known? Servers send a bookmark about once a minute even when nothing happens. The watcher of
//! `kube` keeps these to itself, so that a watch that is quiet and one that is dead look the same; here they are told
//! ([`Event::Bookmark`]), and where not even those come for [`IDLE`], everything is listed again. So a healthy watch is
//! never older than a bit more than a minute, and one older than that is not healthy.
//!
//! What goes wrong is told ([`Event::Failed`]) and tried again, with a backoff of at most 30 seconds, or after what the
//! server asks for:
//!
//! | what | then |
//! |---|---|
//! | the connection breaks, the server is away or overloaded | watch on from the last revision |
//! | the revision is gone (410), in the stream or as an answer | list again |
//! | the server refuses otherwise, or sends what does not read | list again |
//! | silence, without bookmarks | list again: a server restored from a backup is silent until it is where it was |

pub(super) mod decode;
mod frames;
mod object;

use crate::cluster::backoff::Backoff;
use crate::cluster::connection::{Ask, Cause, Connection, Failure, Verb};
use crate::cluster::resource::Resource;
use decode::{Change, Page};
use frames::Frames;
use kube::api::{ListParams, WatchParams};
use loadline_api::json::{Skip, Tree};
use loadline_api::{Error, Warning};
use loadline_core::object::Meta;
use object::Object;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// How many objects a page has. A page is what is in memory at once.
pub const PAGE: u32 = 500;
/// How long a list or the beginning of a watch may take.
const TIMEOUT: Duration = Duration::from_mins(1);
/// How long a watch may be silent, bookmarks included.
pub const IDLE: Duration = Duration::from_mins(3);
/// When the server is to end a watch, in seconds, as it does now and then anyway.
const TERM_SECONDS: u32 = 290;
/// A watch that ends sooner than this without having brought anything is not begun again at once.
const LIVED: Duration = Duration::from_secs(1);
/// The longest the server is left alone because it asked for it.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(1);

/// A kind of object that can be watched, and what is kept of it.
pub trait Watched: 'static {
    const RESOURCE: Resource;
    /// Which of them, by field selector.
    const FIELDS: Option<&'static str> = None;
    /// What is skipped when decoding.
    const SKIP: Skip = Skip::MANAGED_FIELDS;
    /// What is kept.
    type Facts: Clone + Send + 'static;

    /// What is kept of an object.
    ///
    /// # Errors
    /// What is wrong with it. That is told like any other change; it must not end the watch.
    fn read(object: &Tree<'_>) -> Result<Self::Facts, Error>;
}

/// A kind to watch in one line: its name, its resource, what of it is skipped, what is kept, how that is read.
macro_rules! watched {
    ($name:ident: $resource:ident, skip $skip:expr, $facts:ty, $read:expr) => {
        #[derive(Debug)]
        pub(super) struct $name;

        impl crate::cluster::Watched for $name {
            const RESOURCE: crate::cluster::Resource = $resource;
            const SKIP: loadline_api::json::Skip = $skip;
            type Facts = $facts;

            fn read(object: &loadline_api::json::Tree<'_>) -> Result<$facts, loadline_api::Error> {
                $read(object)
            }
        }
    };
}

pub(crate) use watched;

/// What was read; what is odd about it goes to the log.
pub(crate) fn logged<T>((read, warnings): (T, Vec<Warning>)) -> T {
    for warning in warnings {
        tracing::debug!(%warning, "object has a problem");
    }
    read
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// A list begins. What is not named until it is complete is not there any more.
    ListStarted,
    /// An object is there, as it is now, or cannot be read.
    Applied(Meta, Result<T, Error>),
    /// An object is gone.
    Deleted(Meta),
    /// The list is complete, as of that revision if it is a number.
    Listed(Option<u64>),
    /// Nothing changed, and that is certain: the server says so.
    Bookmark,
    /// Something went wrong; it is tried again.
    Failed(String),
    /// The account may not read this kind (403). It is tried again: somebody may allow it.
    Forbidden(String),
}

/// What an event is to somebody who follows a cluster, whatever it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Change,
    /// A list is complete.
    Listed,
    /// Something is wrong.
    Trouble,
}

impl<T> Event<T> {
    #[must_use]
    pub fn news(&self) -> News {
        match self {
            Self::Listed(_) => News::Listed,
            Self::Failed(_) | Self::Forbidden(_) => News::Trouble,
            _ => News::Change,
        }
    }
}

/// All watches of a component: their events come through one channel, each as a message of the component's own.
#[derive(Debug)]
pub struct Watches<M> {
    connection: Connection,
    events: mpsc::Sender<M>,
    tasks: JoinSet<()>,
}

impl<M: Send + 'static> Watches<M> {
    /// None yet, and where their events will come from; so many may wait there.
    #[must_use]
    pub fn new(connection: Connection, waiting: usize) -> (Self, mpsc::Receiver<M>) {
        let (events, receiver) = mpsc::channel(waiting);
        (Self { connection, events, tasks: JoinSet::new() }, receiver)
    }

    /// Watches a kind, until this is dropped.
    pub fn add<W: Watched>(&mut self, wrap: fn(Event<W::Facts>) -> M) {
        self.tasks.spawn(watch::<W, M>(self.connection.clone(), self.events.clone(), wrap, None));
    }

    /// Watches those that a field selector chooses.
    pub fn add_where<W: Watched>(&mut self, fields: String, wrap: fn(Event<W::Facts>) -> M) {
        self.tasks.spawn(watch::<W, M>(self.connection.clone(), self.events.clone(), wrap, Some(fields)));
    }

    /// Where messages are sent.
    #[must_use]
    pub fn events(&self) -> mpsc::Sender<M> {
        self.events.clone()
    }

    /// Runs something else that sends messages.
    pub fn spawn<F>(&mut self, task: impl FnOnce(Connection, mpsc::Sender<M>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(task(self.connection.clone(), self.events.clone()));
    }
}

/// What to do next.
enum Next {
    List,
    Watch(String),
}

/// Why something ended.
enum End {
    /// Nobody listens any more.
    Closed,
    /// It failed; this is what to tell, if it is worth telling, and to do next.
    Failed { why: Option<Why>, next: Next, backoff: bool, retry_after: Option<Duration> },
}

/// What went wrong.
struct Why {
    text: String,
    forbidden: bool,
}

impl From<Closed> for End {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

/// Nobody listens any more.
struct Closed;

/// Watches a kind until nobody listens to `events` any more; `wrap` makes a message of each.
pub async fn watch<W: Watched, M: Send + 'static>(
    connection: Connection,
    events: mpsc::Sender<M>,
    wrap: fn(Event<W::Facts>) -> M,
    fields: Option<String>,
) {
    let fields = fields.or_else(|| W::FIELDS.map(str::to_owned));
    let reflector = Reflector::<W, M> { connection, events, wrap, fields };
    let mut tries = Backoff::new(reflector.connection.seed(W::RESOURCE.plural));
    let mut next = Next::List;
    loop {
        let end = match next {
            Next::List => reflector.list().await.map(Next::Watch),
            Next::Watch(from) => reflector.watch(from).await,
        };
        next =
            match end {
                Ok(next) => next,
                Err(End::Closed) => return,
                Err(End::Failed { why, next, backoff, retry_after }) => {
                    let event = why.map(|why| {
                        if why.forbidden { Event::Forbidden(why.text) } else { Event::Failed(why.text) }
                    });
                    if let Some(event) = event
                        && reflector.send(event).await.is_err()
                    {
                        return;
                    }
                    if backoff {
                        let pause = tries.pause(Instant::now());
                        let asked = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
                        tokio::select! {
                            biased;
                            () = reflector.events.closed() => return,
                            () = tokio::time::sleep(pause.max(asked)) => {}
                        }
                    }
                    next
                }
            };
    }
}

/// From a server to a listener.
struct Reflector<W: Watched, M> {
    connection: Connection,
    events: mpsc::Sender<M>,
    wrap: fn(Event<W::Facts>) -> M,
    fields: Option<String>,
}

impl<W: Watched, M: Send + 'static> Reflector<W, M> {
    async fn send(&self, event: Event<W::Facts>) -> Result<(), Closed> {
        self.events.send((self.wrap)(event)).await.map_err(|_| Closed)
    }

    /// Lists everything; gives the revision it was at.
    async fn list(&self) -> Result<String, End> {
        self.send(Event::ListStarted).await?;
        let mut params =
            ListParams { limit: Some(PAGE), field_selector: self.fields.clone(), ..ListParams::default() };
        loop {
            let page = self.page(&params).await?;
            for Object { meta, facts, .. } in page.items {
                self.send(Event::Applied(meta, facts)).await?;
            }
            if page.next.is_some() {
                params.continue_token = page.next;
                continue;
            }
            let revision = Some(page.revision).filter(|revision| !revision.is_empty());
            self.send(Event::Listed(revision.as_deref().and_then(|r| r.parse().ok()))).await?;
            return revision.ok_or_else(|| {
                Self::failed("listing", &"the list has no revision to watch from", Next::List)
            });
        }
    }

    async fn page(&self, params: &ListParams) -> Result<Page<W>, End> {
        let request = kube::core::Request::new(W::RESOURCE.collection("")).list(params);
        let path = request.map_err(|error| Self::failed("listing", &error, Next::List))?.uri().to_string();
        let ask = Ask::read(Verb::List, W::RESOURCE, path).accept(decode::media::<W>());
        let text = match self.connection.call(ask, TIMEOUT).await {
            Ok(text) => text,
            // The pages so far are too old to go on from; nothing is wrong with the server.
            Err(failure) if failure.cause == Cause::Expired => {
                return Err(End::Failed { why: None, next: Next::List, backoff: true, retry_after: None });
            }
            Err(failure) => return Err(Self::refused("listing", &failure, Next::List)),
        };
        Page::read(&text).map_err(|error| Self::failed("listing", &error, Next::List))
    }

    /// Watches from a revision on until the server ends it.
    async fn watch(&self, from: String) -> Result<Next, End> {
        let params = WatchParams {
            field_selector: self.fields.clone(),
            timeout: Some(TERM_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        };
        let request = kube::core::Request::new(W::RESOURCE.collection("")).watch(&params, &from);
        let path = request.map_err(|error| Self::failed("watching", &error, Next::List))?.uri().to_string();
        let ask = Ask::read(Verb::Watch, W::RESOURCE, path).accept(decode::media::<W>());
        let (mut frames, media) = match self.connection.stream(ask, TIMEOUT).await {
            Ok((body, media)) => (Frames::new(body, media), media),
            Err(failure) => return Err(Self::broken(&failure, from, true)),
        };
        self.send(Event::Bookmark).await?;
        let (began, mut brought, mut revision) = (Instant::now(), false, from);
        loop {
            let frame = tokio::select! {
                biased;
                () = self.events.closed() => return Err(End::Closed),
                frame = timeout(IDLE, frames.next()) => frame,
            };
            let short = !brought && began.elapsed() < LIVED;
            let frame = match frame {
                Err(_) => {
                    let why = format!("silent for {} s, without a bookmark", IDLE.as_secs());
                    return Err(Self::failed("watching", &why, Next::List));
                }
                // Watches end; that is no news unless they end at once.
                Ok(None) if short => {
                    return Err(Self::failed("watching", &"ended at once", Next::Watch(revision)));
                }
                Ok(None) => return Ok(Next::Watch(revision)),
                Ok(Some(Err(error))) => {
                    return Err(Self::failed("watching", &error, Next::Watch(revision)));
                }
                Ok(Some(Ok(frame))) => frame,
            };
            let (seen, event) = match Change::<W>::read(&frame, media) {
                Err(error) => return Err(Self::failed("watching", &error, Next::List)),
                Ok(Change::Ended { code: 410, .. }) => return Err(Self::expired(short)),
                Ok(Change::Ended { code, why }) => {
                    let overloaded = matches!(code, 429 | 503);
                    let next = if overloaded { Next::Watch(revision) } else { Next::List };
                    return Err(Self::failed("watching", &why, next));
                }
                Ok(Change::Bookmark(seen)) => (seen, Event::Bookmark),
                Ok(Change::Applied(object)) => (object.revision, Event::Applied(object.meta, object.facts)),
                Ok(Change::Deleted(object)) => (object.revision, Event::Deleted(object.meta)),
            };
            if !seen.is_empty() {
                revision = seen;
            }
            brought = true;
            self.send(event).await?;
        }
    }

    fn expired(backoff: bool) -> End {
        tracing::debug!(resource = W::RESOURCE.plural, "the revision is gone, listing again");
        End::Failed { why: None, next: Next::List, backoff, retry_after: None }
    }

    /// A watch could not begin: list again where going on from the revision would not help.
    fn broken(failure: &Failure, revision: String, backoff: bool) -> End {
        if failure.cause == Cause::Expired {
            return Self::expired(backoff);
        }
        let goes_on =
            failure.cause.is_overload() || matches!(failure.cause, Cause::Unreachable | Cause::Timeout);
        let next = if goes_on { Next::Watch(revision) } else { Next::List };
        Self::refused("watching", failure, next)
    }

    /// The server, or the way to it, said so.
    fn refused(doing: &str, failure: &Failure, next: Next) -> End {
        let mut end = Self::failed(doing, &failure.message, next);
        if let End::Failed { why: Some(why), retry_after, .. } = &mut end {
            why.forbidden = failure.cause == Cause::Forbidden;
            *retry_after = failure.cause.retry_after();
        }
        end
    }

    fn failed(doing: &str, why: &(impl std::fmt::Display + ?Sized), next: Next) -> End {
        let why = Why { text: format!("{doing} {}: {why}", W::RESOURCE.plural), forbidden: false };
        End::Failed { why: Some(why), next, backoff: true, retry_after: None }
    }
}

//! What is there of one kind of object, and what changes? A cluster followed by list and watch.
//!
//! [`follow`] lists page by page, then watches, and tells everything as [`News`] through a channel that is bounded:
//! whoever is slow slows the reading down, and memory stays what it is. Objects are made into facts as they are
//! decoded ([`Kind::read`]), one by one; what nobody looks at ([`Kind::WITHOUT`]) is not even built.
//!
//! How old is what is known? Servers send a bookmark about once a minute even when nothing happens. The watcher of
//! `kube` keeps these to itself, so that a watch that is quiet and one that is dead look the same; here they are told
//! ([`News::Heard`]), and where not even those come for [`IDLE`], everything is listed again. So a healthy watch is never
//! older than a bit more than a minute, and one older than that is not healthy.
//!
//! What goes wrong is told ([`News::Trouble`]) and tried again, with growing pauses of at most 30 seconds:
//!
//! | what | then |
//! |---|---|
//! | the connection breaks, the server is away or overloaded | watch on from the last revision |
//! | the revision is gone (410), in the stream or as an answer | list again |
//! | the server refuses otherwise, or sends what does not read | list again |
//! | silence, without bookmarks | list again: a server restored from a backup is silent until it is where it was |
//!
//! After a list, [`Roster`] says what was there before and is no more.

mod object;
mod roster;

pub use object::{DROP, MANAGED, Meta, Without};
pub use roster::Roster;

use futures::StreamExt;
use kube::Client;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::{ObjectList, Request};
use kube::runtime::watcher::DefaultBackoff;
use object::Object;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// How many objects a page has. A page is what is in memory at once.
pub const PAGE: u32 = 500;
/// How long a list or the beginning of a watch may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a watch may be silent, bookmarks included.
pub const IDLE: Duration = Duration::from_mins(3);
/// When the server is to end a watch, in seconds, as it does now and then anyway.
const TERM: u32 = 290;
/// A watch that ends sooner than this without having brought anything is not begun again at once.
const LIVED: Duration = Duration::from_secs(1);

/// A kind of object that can be followed, and what is kept of it.
pub trait Kind: 'static {
    /// Where it is served, such as `/api/v1/pods`.
    const PATH: &'static str;
    /// Which of them, by field selector.
    const FIELDS: Option<&'static str> = None;
    /// What is skipped when decoding.
    const WITHOUT: Without = MANAGED;
    /// What is kept.
    type Facts: Clone + Send + 'static;

    /// What is kept of an object. What cannot be read is a fact, too: it must not end the watch.
    fn read(value: &Value) -> Self::Facts;
}

/// What is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News<T> {
    /// A list begins. What is not named until it is complete is not there any more.
    Restart,
    /// An object is there, as it is now.
    Set(Meta, T),
    /// An object is gone.
    Gone(Meta),
    /// The list is complete.
    Listed,
    /// Nothing is new, and that is certain: the server says so.
    Heard,
    /// Something went wrong; it is tried again.
    Trouble(String),
    /// The account may not read this kind (403). It is tried again: somebody may allow it.
    Forbidden(String),
}

/// What to do next.
enum Next {
    List,
    Watch(String),
}

/// Why something ended.
enum End {
    /// Nobody listens any more.
    Unheard,
    /// It failed; this is what to tell, if it is worth telling, and to do next.
    Failed { why: Option<Why>, next: Next, pause: bool },
}

/// What went wrong.
struct Why {
    text: String,
    forbidden: bool,
}

impl From<Unheard> for End {
    fn from(_: Unheard) -> Self {
        Self::Unheard
    }
}

/// Nobody listens any more.
struct Unheard;

/// Follows a kind until nobody listens to `news` any more; `wrap` makes a message of each.
pub async fn follow<K: Kind, M: Send + 'static>(
    client: Client,
    news: mpsc::Sender<M>,
    wrap: fn(News<K::Facts>) -> M,
) {
    let line = Line::<K, M> { client, news, wrap };
    let mut pauses = DefaultBackoff::default();
    let mut next = Next::List;
    loop {
        let end = match next {
            Next::List => line.list().await.map(Next::Watch),
            Next::Watch(from) => line.watch(from).await,
        };
        next = match end {
            Ok(next) => next,
            Err(End::Unheard) => return,
            Err(End::Failed { why, next, pause }) => {
                let news =
                    why.map(
                        |why| if why.forbidden { News::Forbidden(why.text) } else { News::Trouble(why.text) },
                    );
                if let Some(news) = news
                    && line.tell(news).await.is_err()
                {
                    return;
                }
                if pause {
                    let pause = pauses.next().unwrap_or(PATIENCE);
                    tokio::select! {
                        () = line.news.closed() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                next
            }
        };
    }
}

/// From a server to a listener.
struct Line<K: Kind, M> {
    client: Client,
    news: mpsc::Sender<M>,
    wrap: fn(News<K::Facts>) -> M,
}

impl<K: Kind, M: Send + 'static> Line<K, M> {
    async fn tell(&self, news: News<K::Facts>) -> Result<(), Unheard> {
        self.news.send((self.wrap)(news)).await.map_err(|_| Unheard)
    }

    /// Lists everything; gives the revision it was at.
    async fn list(&self) -> Result<String, End> {
        self.tell(News::Restart).await?;
        let mut params = ListParams {
            limit: Some(PAGE),
            field_selector: K::FIELDS.map(str::to_owned),
            ..ListParams::default()
        };
        loop {
            let request = Request::new(K::PATH).list(&params);
            let request = request.map_err(|error| Self::failed("listing", &error, Next::List))?;
            let page = timeout(PATIENCE, self.client.request::<ObjectList<Object<K>>>(request)).await;
            let page = match page {
                Ok(Ok(page)) => page,
                Ok(Err(error)) if is_gone(&error) => {
                    // The pages so far are too old to go on from; nothing is wrong with the server.
                    return Err(End::Failed { why: None, next: Next::List, pause: true });
                }
                Ok(Err(error)) => return Err(Self::refused("listing", &error, Next::List)),
                Err(_) => return Err(Self::failed("listing", &"no answer in time", Next::List)),
            };
            for Object { meta, facts, .. } in page.items {
                self.tell(News::Set(meta, facts)).await?;
            }
            let more = page.metadata.continue_.filter(|token| !token.is_empty());
            if more.is_some() {
                params.continue_token = more;
                continue;
            }
            self.tell(News::Listed).await?;
            return match page.metadata.resource_version.filter(|revision| !revision.is_empty()) {
                Some(revision) => Ok(revision),
                None => Err(Self::failed("listing", &"the list has no revision to watch from", Next::List)),
            };
        }
    }

    /// Watches from a revision on until the server ends it.
    async fn watch(&self, from: String) -> Result<Next, End> {
        let params = WatchParams {
            field_selector: K::FIELDS.map(str::to_owned),
            timeout: Some(TERM),
            bookmarks: true,
            ..WatchParams::default()
        };
        let request = Request::new(K::PATH).watch(&params, &from);
        let request = request.map_err(|error| Self::failed("watching", &error, Next::List))?;
        let mut events = match timeout(PATIENCE, self.client.request_events::<Object<K>>(request)).await {
            Ok(Ok(events)) => std::pin::pin!(events),
            Ok(Err(error)) => return Err(Self::broken(&error, from, true)),
            Err(_) => return Err(Self::failed("watching", &"no answer in time", Next::Watch(from))),
        };
        self.tell(News::Heard).await?;
        let (began, mut brought, mut revision) = (Instant::now(), false, from);
        loop {
            let event = tokio::select! {
                () = self.news.closed() => return Err(End::Unheard),
                event = timeout(IDLE, events.next()) => event,
            };
            let short = !brought && began.elapsed() < LIVED;
            let (seen, news) = match event {
                Err(_) => {
                    let why = format!("silent for {} s, without a bookmark", IDLE.as_secs());
                    return Err(Self::failed("watching", &why, Next::List));
                }
                // Watches end; that is no news unless they end at once.
                Ok(None) if short => {
                    return Err(Self::failed("watching", &"ended at once", Next::Watch(revision)));
                }
                Ok(None) => return Ok(Next::Watch(revision)),
                Ok(Some(Err(error))) => return Err(Self::broken(&error, revision, short)),
                Ok(Some(Ok(WatchEvent::Error(status)))) => {
                    return Err(Self::broken(&kube::Error::Api(status), revision, short));
                }
                Ok(Some(Ok(WatchEvent::Bookmark(mark)))) => (mark.metadata.resource_version, News::Heard),
                Ok(Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)))) => {
                    (object.revision, News::Set(object.meta, object.facts))
                }
                Ok(Some(Ok(WatchEvent::Deleted(object)))) => (object.revision, News::Gone(object.meta)),
            };
            if !seen.is_empty() {
                revision = seen;
            }
            brought = true;
            self.tell(news).await?;
        }
    }

    /// A watch broke: list again where going on from the revision would not help.
    fn broken(error: &kube::Error, revision: String, pause: bool) -> End {
        if is_gone(error) {
            tracing::debug!(path = K::PATH, "the revision is gone; listing again");
            return End::Failed { why: None, next: Next::List, pause };
        }
        let overloaded = |code: u16| matches!(code, 429 | 503);
        let next = match error {
            kube::Error::Api(status) if !overloaded(status.code) => Next::List,
            kube::Error::SerdeError(_) => Next::List,
            _ => Next::Watch(revision),
        };
        Self::refused("watching", error, next)
    }

    /// The server, or the way to it, said so.
    fn refused(doing: &str, error: &kube::Error, next: Next) -> End {
        let mut end = Self::failed(doing, error, next);
        if let End::Failed { why: Some(why), .. } = &mut end {
            why.forbidden = matches!(error, kube::Error::Api(status) if status.code == 403);
        }
        end
    }

    fn failed(doing: &str, why: &(impl std::fmt::Display + ?Sized), next: Next) -> End {
        let what = K::PATH.rsplit('/').next().unwrap_or(K::PATH);
        let why = Why { text: format!("{doing} {what}: {why}"), forbidden: false };
        End::Failed { why: Some(why), next, pause: true }
    }
}

/// Is the revision, or the continuation of a list, too old?
fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}

//! How long is waited for a peer? A connection is a place others want: for its first request, between requests, and
//! while the body of one arrives, there is an end to waiting.
//!
//! Reading heads and finding out which HTTP is spoken need no clock of their own: until there is a request, nothing is
//! [under way](UnderWay). Nor is an answer nobody takes: what was handed over and not asked for again is the peer's to fetch.

use axum::BoxError;
use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// How many requests of a connection wait for us, and when one last stopped doing so: with all of its answer, or with as much of it as
/// the peer takes for now. Looked at when patience may be over: a request wakes nobody.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay(Arc<Mutex<Requests>>);

#[derive(Debug, Default)]
struct Requests {
    now: usize,
    ended: Option<Instant>,
}

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Answering {
    under_way: UnderWay,
    /// Is it for us to go on?
    is_ours: bool,
}

impl UnderWay {
    pub(super) fn begin(&self) -> Answering {
        self.requests().now += 1;
        Answering { under_way: self.clone(), is_ours: true }
    }

    /// Ends when there is no request until then, or none for that long after one.
    pub(super) async fn none(&self, mut until: Instant, idle: Duration) {
        loop {
            sleep_until(until).await;
            let now = Instant::now();
            let requests = self.requests();
            until = match requests.ended {
                _ if requests.now > 0 => now + idle,
                Some(ended) if ended + idle > now => ended + idle,
                _ => return,
            };
        }
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answering {
    /// Something was handed over: whatever comes next, the peer has to make room for it first.
    fn handed_over(&mut self) {
        let mut requests = self.under_way.requests();
        requests.now -= usize::from(self.is_ours);
        requests.ended = Some(Instant::now());
        self.is_ours = false;
    }

    /// The peer would take more than there is.
    fn asked(&mut self) {
        self.under_way.requests().now += usize::from(!self.is_ours);
        self.is_ours = true;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.handed_over();
    }
}

/// An answer on its way: the request is under way until the last of it is handed over, and not while the peer takes nothing.
pub(super) struct Answer {
    body: Body,
    answering: Answering,
}

impl Answer {
    pub(super) fn new(body: Body, mut answering: Answering) -> Self {
        // Without room at the peer, the body is never asked for its first frame.
        answering.handed_over();
        Self { body, answering }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_ready() {
            self.answering.handed_over();
        } else {
            self.answering.asked();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request, which has to be there by a time.
pub(super) struct Timely<B> {
    body: B,
    by: Instant,
    /// Most bodies are there at once and need no timer.
    late: Option<Pin<Box<Sleep>>>,
}

impl<B> Timely<B> {
    pub(super) fn new(body: B, by: Instant) -> Self {
        Self { body, by, late: None }
    }
}

impl<B> http_body::Body for Timely<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)));
        }
        let by = this.by;
        let late = this.late.get_or_insert_with(|| Box::pin(sleep_until(by)));
        late.as_mut().poll(cx).map(|()| {
            let error =
                io::Error::new(io::ErrorKind::TimedOut, "the body of the request did not come in time");
            Some(Err(axum::Error::new(error)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_mins(1);

    /// How many seconds after the start patience ends, with requests from one second to another.
    async fn ends(requests: &[(u64, u64)]) -> u64 {
        let (begin, under_way) = (Instant::now(), UnderWay::default());
        let all = requests.iter().map(|(from, to)| {
            let under_way = under_way.clone();
            async move {
                sleep_until(begin + Duration::from_secs(*from)).await;
                let _answering = under_way.begin();
                sleep_until(begin + Duration::from_secs(*to)).await;
            }
        });
        let over = async {
            under_way.none(begin + Duration::from_secs(10), IDLE).await;
            begin.elapsed().as_secs()
        };
        futures::future::join(over, futures::future::join_all(all)).await.0
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_nobody_takes_is_not_under_way_and_one_we_owe_is() {
        use futures::{StreamExt as _, poll};
        use http_body_util::BodyExt as _;

        let (begin, under_way) = (Instant::now(), UnderWay::default());
        let over = || under_way.none(Instant::now(), IDLE);
        let (tell, told) = futures::channel::mpsc::unbounded::<Bytes>();
        let body = Body::from_stream(told.map(Ok::<_, std::io::Error>));
        let mut answer = Answer::new(body, under_way.begin());
        over().await;
        assert_eq!(begin.elapsed(), IDLE, "nobody asked for the first of it");

        assert!(poll!(answer.frame()).is_pending());
        let waiting = tokio::time::timeout(IDLE * 100, over()).await;
        waiting.expect_err("who waits for us is waited for");

        tell.unbounded_send("some".into()).unwrap();
        assert!(poll!(answer.frame()).is_ready());
        let handed_over = Instant::now();
        over().await;
        assert_eq!(handed_over.elapsed(), IDLE, "it was handed over, and nobody asked for more");
        assert!(poll!(answer.frame()).is_pending(), "then somebody did");
        drop(answer);
        let ended = Instant::now();
        over().await;
        assert_eq!(ended.elapsed(), IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn patience_is_counted_from_the_end_of_the_last_answer() {
        for (requests, seconds, why) in [
            (&[] as &[(u64, u64)], 10, "nobody asks"),
            (&[(1, 2)], 62, "one came and went before the first look"),
            (&[(1, 500)], 560, "nobody is late while an answer is on its way"),
            (&[(1, 2), (50, 55)], 115, "each begins it anew"),
            (&[(1, 30), (20, 90)], 150, "two at once: the later end counts"),
            (&[(20, 21)], 10, "the first came too late"),
        ] {
            assert_eq!(ends(requests).await, seconds, "{why}");
        }
    }
}

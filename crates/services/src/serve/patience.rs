//! How long is waited for a peer? A connection is a place others want: for its first request, between requests, and
//! while the body of one arrives, there is an end to waiting.
//!
//! Reading heads and finding out which HTTP is spoken need no clock of their own: until there is a request, nothing is
//! [under way](UnderWay).

use axum::BoxError;
use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// How many requests of a connection are being answered, and when the last answer ended. Looked at when patience may be over:
/// a request wakes nobody.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay(Arc<Mutex<Requests>>);

#[derive(Debug, Default)]
struct Requests {
    now: usize,
    ended: Option<Instant>,
}

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Answering(UnderWay);

impl UnderWay {
    pub(super) fn begin(&self) -> Answering {
        self.requests().now += 1;
        Answering(self.clone())
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

impl Drop for Answering {
    fn drop(&mut self) {
        let mut requests = self.0.requests();
        requests.now -= 1;
        requests.ended = Some(Instant::now());
    }
}

/// An answer on its way: the request is under way until the last of it is handed over.
pub(super) struct Answer {
    body: Body,
    _answering: Answering,
}

impl Answer {
    pub(super) fn new(body: Body, answering: Answering) -> Self {
        Self { body, _answering: answering }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
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

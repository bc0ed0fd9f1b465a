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
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

/// How many requests of a connection are being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay(Arc<watch::Sender<usize>>);

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Answering(UnderWay);

impl UnderWay {
    pub(super) fn begin(&self) -> Answering {
        self.0.send_modify(|requests| *requests += 1);
        Answering(self.clone())
    }

    /// Ends when there is no request until then, or none for that long after one.
    pub(super) async fn none(&self, mut until: Instant, idle: Duration) {
        let mut requests = self.0.subscribe();
        loop {
            if *requests.borrow_and_update() == 0 {
                // One that came and went meanwhile is a change, too.
                if timeout_at(until, requests.changed()).await.is_err() {
                    return;
                }
            } else {
                // The sender is in `self`.
                let _ = requests.changed().await;
            }
            until = Instant::now() + idle;
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.0.send_modify(|requests| *requests -= 1);
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

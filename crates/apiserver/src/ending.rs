//! Ends a response from outside: the stream of a watch has no end of its own.

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// What the reader sees at the end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// The response is complete.
    Close,
    /// The connection broke.
    Break,
}

/// The body, until the token is cancelled.
pub(crate) fn until(body: Body, token: &CancellationToken, end: End) -> Body {
    Body::new(Until { inner: body, cancelled: Box::pin(token.clone().cancelled_owned()), end, over: false })
}

struct Until {
    inner: Body,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    end: End,
    over: bool,
}

impl http_body::Body for Until {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.over {
            return Poll::Ready(None);
        }
        if self.cancelled.as_mut().poll(context).is_pending() {
            return Pin::new(&mut self.inner).poll_frame(context);
        }
        self.over = true;
        match self.end {
            End::Close => Poll::Ready(None),
            End::Break => Poll::Ready(Some(Err(axum::Error::new(std::io::Error::new(
                std::io::ErrorKind::ConnectionReset,
                "the connection was cut",
            ))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

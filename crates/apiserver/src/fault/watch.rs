//! How does a watch go wrong in the middle?

use super::{Action, EXPIRED};
use crate::status::Status;
use axum::body::Body;
use bytes::Bytes;
use http::Response;
use http_body::Frame;
use serde_json::json;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Lets so many events of a watch through and then does what `action` says. Events are lines.
pub(super) fn disturb(response: Response<Body>, action: Action) -> Response<Body> {
    let (after, end) = match action {
        Action::CutWatch { after } => (after, End::Close),
        Action::StallWatch { after } => (after, End::Silence),
        Action::ExpireWatch { after } => (after, End::Expire),
        _ => return response,
    };
    if !response.status().is_success() {
        return response;
    }
    response.map(|body| Body::new(Disturbed { inner: body, left: after, end }))
}

#[derive(Clone, Copy)]
enum End {
    Close,
    Silence,
    Expire,
    Closed,
}

struct Disturbed {
    /// Kept while silent: the server goes on believing that somebody listens.
    inner: Body,
    left: usize,
    end: End,
}

impl http_body::Body for Disturbed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.left == 0 {
            return match self.end {
                End::Silence => Poll::Pending,
                End::Close | End::Closed => Poll::Ready(None),
                End::Expire => {
                    self.end = End::Closed;
                    let event = json!({ "type": "ERROR", "object": Status::expired(EXPIRED).to_json() });
                    Poll::Ready(Some(Ok(Frame::data(Bytes::from(format!("{event}\n"))))))
                }
            };
        }
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        polled.map(|frame| frame.map(|frame| Ok(frame?.map_data(|data| self.let_through(data)))))
    }
}

impl Disturbed {
    /// The part of a chunk that still counts, up to the end of the last event allowed.
    fn let_through(&mut self, data: Bytes) -> Bytes {
        for (index, _) in data.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            self.left -= 1;
            if self.left == 0 {
                return data.slice(..=index);
            }
        }
        data
    }
}

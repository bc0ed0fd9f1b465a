//! Watching: a cursor into the log of a table, written out as a stream of events.

use super::encode::{Encoder, Form, to_bytes};
use super::options::invalid_options;
use super::read::{Selection, parse_revision, too_large};
use super::{Answer, ApiServer, Call, convert};
use crate::status::{FieldError, Status};
use crate::store::{Change, Cursor, Event, Object};
use crate::table::IncludeObject;
use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Events written in one piece: enough to keep a fast reader busy, little enough to hold for a slow one.
const BATCH: usize = 128;

impl ApiServer {
    pub(super) fn watch(&self, call: &Call) -> Result<Answer, Status> {
        let selection = call.selection()?;
        let initial = initial_events(call)?;
        let asked = parse_revision(call.query.get("resourceVersion").unwrap_or_default())
            .map_err(|why| Status::new(500, "", why))?;
        let newest = self.0.store.revision();
        if initial && asked > newest {
            return Ok(Answer::Stream(once(&error_event(&too_large(asked, newest)))));
        }
        let table = &call.resource.table;
        let namespace = call.namespace().map(str::to_owned);
        let mut encoder = self.encoder(call);
        let mut start = BytesMut::new();
        // The snapshot and the cursor agree: the cursor starts at the revision the snapshot shows.
        let from = if asked == 0 || initial {
            let page = self.matching(call, &selection)?;
            if initial || call.query.get("sendInitialEvents").is_none() {
                for object in &page.objects {
                    put_event(&mut start, "ADDED", &encoder.one(object));
                }
            }
            if initial && call.query.flag("allowWatchBookmarks") {
                put_event(&mut start, "BOOKMARK", &to_bytes(&bookmark(&encoder, page.revision, true)));
            }
            page.revision
        } else {
            asked
        };
        let cursor = match self.0.store.cursor(table, from) {
            Ok(cursor) => cursor,
            Err(too_old) => {
                let status =
                    Status::expired(format!("too old resource version: {asked} ({})", too_old.oldest));
                return Ok(Answer::Stream(once(&error_event(&status))));
            }
        };
        let seconds = call.query.number("timeoutSeconds")?.filter(|s| *s > 0);
        // Upstream ends an unlimited watch after 30 to 60 minutes.
        let lasts = Duration::from_secs(seconds.map_or(2700, i64::unsigned_abs));
        let stream = Stream {
            cursor,
            selection,
            namespace,
            encoder,
            bookmarks: call.query.flag("allowWatchBookmarks"),
            bookmark_every: self.0.config.bookmark_every,
            ends: Instant::now() + lasts,
            ended: self.watches().clone(),
            pending: Some(start.freeze()).filter(|b| !b.is_empty()),
            over: false,
        };
        let stream = futures::stream::unfold(stream, |mut s| async move {
            s.next().await.map(|bytes| (Ok::<_, std::convert::Infallible>(bytes), s))
        });
        Ok(Answer::Stream(Body::from_stream(stream)))
    }
}

/// Whether the client wants the current state as events, ended by a marked bookmark.
fn initial_events(call: &Call) -> Result<bool, Status> {
    let rule = call.query.get("resourceVersionMatch").unwrap_or_default();
    let asked = call.query.get("sendInitialEvents");
    let field = "resourceVersionMatch";
    let invalid = |error: FieldError| Err(invalid_options("ListOptions", &[error]));
    if call.query.get("continue").is_some() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        return invalid(FieldError::forbidden(field, why));
    }
    let required = FieldError::forbidden(
        field,
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    );
    match (asked, rule) {
        (None, "") => Ok(false),
        (None, _) => invalid(FieldError::forbidden(
            field,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        (Some(_), "") => invalid(required),
        (Some(_), "NotOlderThan") => Ok(call.query.flag("sendInitialEvents")),
        (Some(_), other) => {
            let unknown = FieldError::not_supported(field, &json!(other), &["NotOlderThan"]);
            Err(invalid_options("ListOptions", &[required, unknown]))
        }
    }
}

struct Stream {
    cursor: Cursor,
    selection: Selection,
    namespace: Option<String>,
    encoder: Encoder,
    bookmarks: bool,
    bookmark_every: Duration,
    ends: Instant,
    ended: CancellationToken,
    pending: Option<Bytes>,
    over: bool,
}

impl Stream {
    /// The next bytes; `None` ends the response.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.pending.take() {
            return Some(bytes);
        }
        let next_bookmark = Instant::now() + self.bookmark_every;
        loop {
            if self.over || self.ended.is_cancelled() {
                return None;
            }
            let mut out = BytesMut::new();
            let Ok(events) = self.cursor.poll(BATCH) else {
                // The reader was too slow, and what it missed is forgotten.
                self.over = true;
                let status = Status::expired("The resourceVersion for the provided watch is too old.");
                return Some(error_event(&status));
            };
            for event in &events {
                self.put(&mut out, event);
            }
            if !out.is_empty() {
                return Some(out.freeze());
            }
            if events.len() == BATCH {
                continue;
            }
            tokio::select! {
                biased;
                alive = self.cursor.changed() => self.over = !alive,
                () = self.ended.cancelled() => return None,
                () = tokio::time::sleep_until(self.ends) => self.over = true,
                () = tokio::time::sleep_until(next_bookmark), if self.bookmarks => {
                    let mut out = BytesMut::new();
                    let object = bookmark(&self.encoder, self.cursor.position(), false);
                    put_event(&mut out, "BOOKMARK", &to_bytes(&object));
                    return Some(out.freeze());
                }
            }
        }
    }

    /// Writes an event as this watcher sees it: an object that stops matching is gone for it.
    fn put(&mut self, out: &mut BytesMut, event: &Event) {
        let sees = |object: &Object| {
            self.namespace.as_deref().is_none_or(|n| object.namespace.as_deref() == Some(n))
                && self.selection.matches(object)
        };
        let after = event.change != Change::Deleted && sees(&event.object);
        let before = event.before.as_deref().is_some_and(sees);
        match (before, after) {
            (false, true) => put_event(out, "ADDED", &self.encoder.one(&event.object)),
            (true, true) => put_event(out, "MODIFIED", &self.encoder.one(&event.object)),
            (true, false) if event.change == Change::Deleted => {
                put_event(out, "DELETED", &self.encoder.one(&event.object));
            }
            (true, false) => {
                // The last state this watcher knew, at the revision of the change.
                let Some(old) = &event.before else { return };
                let mut value = convert::from_storage(&self.encoder.resource, old.value());
                value["metadata"]["resourceVersion"] = json!(event.revision.to_string());
                let shaped = self.encoder.shape(value);
                put_event(out, "DELETED", &to_bytes(&shaped));
            }
            (false, false) => {}
        }
    }
}

/// An otherwise empty object that tells how far the watch has come.
fn bookmark(encoder: &Encoder, revision: u64, initial_end: bool) -> Value {
    let resource: &Arc<crate::registry::Resource> = &encoder.resource;
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if initial_end {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    let object = json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata});
    let mut encoder = encoder.clone();
    if let Form::Table(IncludeObject::None) = encoder.form {
        // A bookmark is nothing but its metadata.
        encoder.form = Form::Table(IncludeObject::Metadata);
    }
    encoder.shape(object)
}

fn put_event(out: &mut BytesMut, kind: &str, object: &[u8]) {
    out.reserve(object.len() + kind.len() + 24);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
}

fn error_event(status: &Status) -> Bytes {
    let mut out = BytesMut::new();
    put_event(&mut out, "ERROR", &to_bytes(&status.to_json()));
    out.freeze()
}

fn once(bytes: &Bytes) -> Body {
    Body::from(bytes.clone())
}

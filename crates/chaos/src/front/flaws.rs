//! What misbehaves on purpose, for the checker's own test: between a component and the server, or in the server's place.

use super::Door;
use crate::check::told_not;
use crate::history::Entry;
use crate::plan::Flaw;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// What nodes that cool are marked with, and something else that is as long.
const MARK: (&[u8], &[u8]) = (b"loadline.dev/cooling-until", b"loadline.dev/cooling-never");

impl Door {
    fn has(&self, flaw: Flaw) -> bool {
        self.front.has(flaw)
    }

    fn is(&self, who: &str) -> bool {
        self.who.starts_with(who)
    }

    /// What is answered by nobody the others see.
    pub(super) async fn aside(
        &self,
        path: &str,
        request: Request<Body>,
    ) -> Result<Response<Body>, Request<Body>> {
        if !(self.has(Flaw::TwoLeaders) && &*self.who == "scheduler/1" && path.contains("/leases")) {
            return Err(request);
        }
        let Ok(response) = self.front.aside.clone().oneshot(request).await;
        Ok(response)
    }

    /// What is read, without what must not be seen.
    pub(super) fn blurred(&self, response: Response<Body>) -> Response<Body> {
        if !(self.has(Flaw::CoolingUnseen) && self.is("scheduler/")) {
            return response;
        }
        response.map(|body| Body::new(body.map_frame(|frame| frame.map_data(|data| unmarked(&data)))))
    }

    /// The answer to a write that is not carried out, though it says so, or says more than it should.
    pub(super) fn instead(&self, verb: &str, path: &str, item: &str, body: &[u8]) -> Option<Response<Body>> {
        let known = || self.front.known(item);
        let of = |flaw: Flaw, who: &str, part: &str| self.has(flaw) && self.is(who) && path.contains(part);
        let told = |kind: &str| told_not(&self.front.known(item), kind);
        let marked = |node: &Value| !node["metadata"]["annotations"]["loadline.dev/cooling-until"].is_null();
        let binds = verb == "create" && path.ends_with("/binding");
        if binds && of(Flaw::BindingForgotten, "scheduler/", "/pods/") && self.front.first_of(path) {
            let (before, mut after) = (known(), known());
            after["spec"]["nodeName"] = json!(target(body));
            let at = self.front.at();
            self.front.noted().history.push(Entry {
                at,
                sent: at,
                who: self.who.to_string(),
                identity: self.identity.to_string(),
                verb: "create",
                path: item.to_owned(),
                subresource: "binding".to_owned(),
                before,
                after,
            });
            return Some(answer(StatusCode::INTERNAL_SERVER_ERROR, &failed()));
        }
        if binds && of(Flaw::PodForgotten, "scheduler/", "/pods/") && told("PodScheduled") {
            return Some(answer(
                StatusCode::CREATED,
                &json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
            ));
        }
        let swallowed = verb == "patch"
            && ((of(Flaw::MarksStay, "agent/", "/nodes/") && marked(&known()))
                || (of(Flaw::WaitUnsaid, "scheduler/", "/pods/") && path.ends_with("/status"))
                || of(Flaw::PlacementUnsaid, "placement/", "/placements/")
                || (of(Flaw::BindingUnserved, "binding/", "/resourcebindings/") && told("Scheduled")));
        swallowed.then(|| answer(StatusCode::OK, &known()))
    }

    /// What goes before a write, and the write as it is then.
    pub(super) fn before(&self, path: &str, body: Bytes) -> (Option<Bytes>, Bytes) {
        let slice = path.contains("/placementdecisions/") && path.ends_with("/status");
        if !(slice && self.has(Flaw::SliceEmptied) && self.is("placement/")) {
            return (None, body);
        }
        let mut whole: Value = serde_json::from_slice(&body).unwrap_or_default();
        // It was another revision before.
        whole["metadata"] = json!({});
        let emptied = json!({"status": {"decisions": []}});
        (Some(emptied.to_string().into()), whole.to_string().into())
    }
}

/// The node that a binding in protobuf names, behind the kind of what it names.
fn target(body: &[u8]) -> Option<&str> {
    const KIND: &[u8] = b"\x0a\x04Node\x1a";
    let at = body.windows(KIND.len()).position(|part| part == KIND)? + KIND.len();
    let length = usize::from(*body.get(at)?);
    std::str::from_utf8(body.get(at + 1..at + 1 + length)?).ok()
}

fn failed() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "code": 500, "message": "forgotten"})
}

fn answer(status: StatusCode, object: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(object.to_string()));
    *response.status_mut() = status;
    response
}

/// The same without marks.
fn unmarked(data: &Bytes) -> Bytes {
    let mut bytes = data.to_vec();
    let mut at = 0;
    while at + MARK.0.len() <= bytes.len() {
        if bytes[at..].starts_with(MARK.0) {
            bytes[at..at + MARK.0.len()].copy_from_slice(MARK.1);
        }
        at += 1;
    }
    bytes.into()
}

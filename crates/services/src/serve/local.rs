//! Who is asking? The address of the other side is among the extensions of every request; some answers are for this machine alone.
//!
//! Ports for health and metrics are open to the cluster. What changes a process, or tells more than figures, is answered only to
//! whoever comes from the loopback: a shell on the machine, or `kubectl port-forward`, for which the API server asks who may.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use std::net::SocketAddr;

/// The other side of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

impl Peer {
    fn is_here(self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

/// The same, answered only to whoever is on this machine.
pub fn only(router: Router) -> Router {
    router.route_layer(from_fn(check))
}

async fn check(request: Request, next: Next) -> Response {
    // Who is not known is elsewhere.
    if request.extensions().get::<Peer>().is_some_and(|peer| peer.is_here()) {
        return next.run(request).await;
    }
    let said = "answered on this machine only: use kubectl port-forward\n";
    (StatusCode::FORBIDDEN, said).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt as _;

    #[tokio::test]
    async fn only_this_machine_is_answered_and_others_are_told_how() {
        let open = Router::new().route("/open", get(|| async { "open" }));
        let router = only(Router::new().route("/here", get(|| async { "here" }))).merge(open);
        for (peer, path, status, why) in [
            (Some("127.0.0.1:1"), "/here", 200, "the loopback"),
            (Some("127.8.9.1:1"), "/here", 200, "all of it"),
            (Some("[::1]:1"), "/here", 200, "of the newer protocol"),
            (Some("[::ffff:127.0.0.1]:1"), "/here", 200, "one seen through the other"),
            (Some("10.0.0.7:1"), "/here", 403, "another machine"),
            (Some("[::ffff:10.0.0.7]:1"), "/here", 403, "another machine"),
            (None, "/here", 403, "nobody knows who"),
            (Some("10.0.0.7:1"), "/open", 200, "for everybody"),
            (Some("10.0.0.7:1"), "/none", 404, "nothing is there"),
        ] {
            let mut request = Request::get(path).body(Body::empty()).unwrap();
            if let Some(peer) = peer {
                request.extensions_mut().insert(Peer(peer.parse().unwrap()));
            }
            assert_eq!(router.clone().oneshot(request).await.unwrap().status(), status, "{why}");
        }
    }
}

//! The bodies of the fuzz targets: what must hold for any bytes.
//!
//! They live here so that the fuzzer and the ordinary test over the committed corpus run the same code.

use crate::jsonpath::Path;
use crate::{ApiServer, Config};
use axum::body::Body;
use http::{Request, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

/// A path to a field, such as a printer column has: it is read and followed, or refused, but never panics or hangs.
pub fn fuzz_jsonpath(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(path) = Path::parse(&text) {
        let object = json!({
            "a": [{ "b": 1, "c": "x" }, { "b": 2.5, "c": null }, [true, ["deep"]]],
            "b": { "a.b": "dotted", "c": {} },
        });
        let _ = path.find(&object);
    }
}

/// A request as text: `METHOD PATH`, the content type, then the body.
///
/// # Panics
/// When the server panics, or a failure is not a `Status` that says what the HTTP code says: that is a finding.
pub fn fuzz_request(data: &[u8]) {
    let mut lines = data.splitn(3, |b| *b == b'\n');
    let mut text = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (first, media) = (text(), text());
    let (method, path) = first.split_once(' ').unwrap_or(("GET", &first));
    let body = lines.next().unwrap_or_default().to_vec();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, media)
        .header(header::USER_AGENT, "fuzz/1")
        .body(Body::from(body));
    // What HTTP itself refuses never reaches the server.
    let Ok(request) = request else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a current-thread runtime needs no resources");
    runtime.block_on(async {
        let server = world().await;
        let watch = request.uri().query().is_some_and(|q| q.contains("watch"));
        let response = server.respond(request).await;
        let code = response.status().as_u16();
        if watch && code == 200 {
            return;
        }
        let body = response.into_body().collect().await.expect("bodies of ours do not fail").to_bytes();
        if code >= 400 && body.first() == Some(&b'{') {
            let status: Value = serde_json::from_slice(&body).expect("a failure is JSON");
            assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{status}");
        }
        // Whatever it was, the server still works.
        assert_eq!(send(&server, "GET", "/api/v1/pods", "", &Value::Null).await, 200);
    });
}

/// A server with one object of each sort, so that requests find something.
async fn world() -> ApiServer {
    let server = ApiServer::new(Config { seed: Some(1), body_limit: 64 * 1024, ..Config::default() });
    let template = json!({
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let crd = json!({
        "metadata": {"name": "things.fuzz.example"},
        "spec": {
            "group": "fuzz.example", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "required": ["size"],
                    "properties": {
                        "size": {"type": "integer", "minimum": 1, "default": 1},
                        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    },
                }}}},
            }],
        },
    });
    for (path, object) in [
        ("/api/v1/nodes", json!({"metadata": {"name": "n"}})),
        (
            "/api/v1/namespaces/default/pods",
            json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        ),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd),
        (
            "/apis/fuzz.example/v1/namespaces/default/things",
            json!({"apiVersion": "fuzz.example/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 2}}),
        ),
    ] {
        assert_eq!(send(&server, "POST", path, "application/json", &object).await, 201, "{path}");
    }
    server
}

async fn send(server: &ApiServer, method: &str, path: &str, media: &str, body: &Value) -> u16 {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, media).body(body);
    server.respond(request.expect("written by us")).await.status().as_u16()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(target: &str, body: fn(&[u8])) {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let mut files: Vec<_> =
            std::fs::read_dir(folder).expect("committed").map(|f| f.unwrap().path()).collect();
        files.sort();
        assert!(files.len() >= 12, "the corpus is there");
        for file in files {
            body(&std::fs::read(&file).unwrap());
        }
    }

    #[test]
    fn every_request_of_the_corpus_is_answered_in_order() {
        run("request", fuzz_request);
    }

    #[test]
    fn every_path_of_the_corpus_is_followed_or_refused() {
        run("jsonpath", fuzz_jsonpath);
    }
}

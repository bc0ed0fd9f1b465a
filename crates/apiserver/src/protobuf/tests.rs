use super::*;
use crate::registry::Registry;
use loadline_machinery::protobuf::{Kind, MAGIC};

/// A body with a message that may be anything.
fn wrapped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut body = MAGIC.to_vec();
    let mut meta = Vec::new();
    put(&mut meta, 1, api_version.as_bytes());
    put(&mut meta, 2, kind.as_bytes());
    put(&mut body, 1, &meta);
    put(&mut body, 2, raw);
    body
}

fn put(into: &mut Vec<u8>, number: usize, bytes: &[u8]) {
    put_number(into, number << 3 | 2);
    put_number(into, bytes.len());
    into.extend_from_slice(bytes);
}

fn put_number(into: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        into.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    into.push(number.to_le_bytes()[0]);
}

#[test]
fn bad_bodies_are_refused_in_upstream_s_words() {
    let registry = Registry::default();
    let pods = registry.find("", "v1", "pods").unwrap();
    let refused = |method: &Method, below: Option<&str>, body: &[u8]| {
        body_text(MEDIA, method, pods, below, body).expect_err("refused").message
    };
    let pod = |raw: &[u8]| wrapped("v1", "Pod", raw);
    for (body, want) in [
        (Vec::new(), "the object provided is unrecognized (must be of type Pod): empty data (<empty>)"),
        (
            b"{}".to_vec(),
            "the object provided is unrecognized (must be of type Pod): provided data does not appear to be a \
             protobuf message, expected prefix [107 56 115 0] ({})",
        ),
        (
            b"k8s\0".to_vec(),
            "the object provided is unrecognized (must be of type Pod): empty body (6b387300)",
        ),
        (
            b"k8s\0\x0a\x09".to_vec(),
            "the object provided is unrecognized (must be of type Pod): unexpected EOF (6b3873000a09)",
        ),
        (pod(&[0x0a, 5]), "Pod in version \"v1\" cannot be handled as a Pod: unexpected EOF"),
        (
            pod(&[0x08, 5]),
            "Pod in version \"v1\" cannot be handled as a Pod: proto: wrong wireType = 0 for field ObjectMeta",
        ),
        (
            pod(&[0x02]),
            "Pod in version \"v1\" cannot be handled as a Pod: proto: Pod: illegal tag 0 (wire type 2)",
        ),
    ] {
        assert_eq!(refused(&Method::POST, None, &body), want);
    }
    assert_eq!(refused(&Method::DELETE, None, b"{}"), Error::Prefix.to_string());
    assert_eq!(
        refused(&Method::POST, Some("eviction"), &wrapped("policy/v1", "Eviction", &[4])),
        "Eviction in version \"v1\" cannot be handled as a Eviction: proto: Eviction: wiretype end group for non-group"
    );
}

#[test]
fn only_bodies_that_are_protobuf_of_built_in_kinds_are_turned_into_text() {
    let registry = Registry::default();
    let pods = registry.find("", "v1", "pods").unwrap();
    let body = wrapped("", "", b"");
    let text = |media: &str, method: &Method, below: Option<&str>, body: &[u8]| {
        body_text(media, method, pods, below, body)
            .unwrap()
            .map(|text| serde_json::from_slice(&text).unwrap())
    };
    for (media, method, below, body, want) in [
        (MEDIA, Method::POST, None, &body[..], Some(json!({"apiVersion": "v1", "kind": "Pod"}))),
        (
            "application/vnd.kubernetes.protobuf;x=y",
            Method::PUT,
            None,
            &body,
            Some(json!({"apiVersion": "v1", "kind": "Pod"})),
        ),
        (
            MEDIA,
            Method::POST,
            Some("eviction"),
            &body,
            Some(json!({"apiVersion": "policy/v1", "kind": "Eviction"})),
        ),
        (MEDIA, Method::POST, Some("binding"), &body, Some(json!({"apiVersion": "v1", "kind": "Binding"}))),
        (MEDIA, Method::DELETE, None, &body, Some(json!({"apiVersion": "v1", "kind": "DeleteOptions"}))),
        (MEDIA, Method::DELETE, None, b"", None),
        (MEDIA, Method::PATCH, None, &body, None),
        (MEDIA, Method::GET, None, b"", None),
        (MEDIA, Method::POST, Some("nothing"), &body, None),
        ("application/json", Method::POST, None, &body, None),
    ] {
        assert_eq!(text(media, &method, below, body), want, "{method} {media} {below:?}");
    }
    let other = wrapped("example.com/v1", "Thing", b"\xff");
    assert_eq!(
        text(MEDIA, &Method::POST, None, &other),
        Some(json!({"apiVersion": "example.com/v1", "kind": "Thing"}))
    );
}

#[tokio::test]
async fn requests_in_protobuf_are_answered_like_any_other() {
    let server = crate::ApiServer::default();
    let send = async |method: &str, path: &str, media: &str, body: Vec<u8>| {
        let request = http::Request::builder().method(method).uri(path).header("content-type", media);
        let request = request.body(axum::body::Body::from(body)).unwrap();
        server.respond(request).await.status().as_u16()
    };
    let named = |name: &str| {
        let (mut metadata, mut object) = (Vec::new(), Vec::new());
        put(&mut metadata, 1, name.as_bytes());
        put(&mut object, 1, &metadata);
        object
    };
    let json = |value: Value| value.to_string().into_bytes();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let crd = json!({"metadata": {"name": "things.a.example"}, "spec": {
        "group": "a.example", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    }});
    let (pods, things) = ("/api/v1/namespaces/default/pods", "/apis/a.example/v1/things");
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    // Binding: the target is field 2, its name field 3. DeleteOptions: gracePeriodSeconds is field 1.
    let binding = [named("p"), vec![0x12, 3, 0x1a, 1, b'n']].concat();
    let eviction = [named("p"), vec![0x12, 2, 0x08, 0]].concat();
    for (method, path, media, body, want) in [
        ("POST", "/api/v1/nodes", MEDIA, wrapped("v1", "Node", &named("n")), 201),
        ("PUT", "/api/v1/nodes/n", MEDIA, wrapped("v1", "Node", &named("n")), 200),
        ("PUT", "/api/v1/nodes/n", MEDIA, wrapped("v1", "Pod", &named("n")), 400),
        ("POST", pods, "application/json", json(pod), 201),
        ("POST", &format!("{pods}/p/binding"), MEDIA, wrapped("v1", "Binding", &binding), 201),
        ("POST", &format!("{pods}/p/eviction"), MEDIA, wrapped("policy/v1", "Eviction", &eviction), 201),
        ("GET", &format!("{pods}/p"), MEDIA, Vec::new(), 404),
        ("PATCH", "/api/v1/nodes/n", MEDIA, wrapped("v1", "Node", &named("n")), 415),
        ("DELETE", "/api/v1/nodes/n", MEDIA, wrapped("v1", "DeleteOptions", &[0x08]), 400),
        ("DELETE", "/api/v1/nodes/n", MEDIA, wrapped("v1", "DeleteOptions", &[0x08, 0]), 200),
        ("POST", crds, "application/json", json(crd), 201),
        // kube-apiserver fails on these and hangs up; nobody can want that.
        ("POST", things, MEDIA, wrapped("a.example/v1", "Thing", &named("t")), 415),
        ("DELETE", &format!("{things}/t"), MEDIA, wrapped("v1", "DeleteOptions", &[]), 404),
    ] {
        assert_eq!(send(method, path, media, body).await, want, "{method} {path}");
    }
}

#[test]
fn every_kind_a_client_can_write_is_known() {
    let known = |version: &str, kind: &str| assert!(Kind::find(version, kind).is_some(), "{version} {kind}");
    for resource in Registry::default().all() {
        if resource.allows("create") || resource.allows("update") {
            known(&resource.api_version(), &resource.kind);
        }
        for sub in resource.subresources.iter().filter(|s| s.verbs.iter().any(|v| v != "get")) {
            let group = if sub.version.is_empty() { &resource.group } else { &sub.group };
            let version = if sub.version.is_empty() { &resource.version } else { &sub.version };
            known(&group_version(group, version), &sub.kind);
        }
    }
}

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

/// An object as its writer would have written it in JSON.
fn to_json(body: &[u8]) -> Result<Value, Error> {
    let envelope = Envelope::read(body)?;
    let mut object = Value::from(&envelope.object(Skip::NOTHING)?);
    object["apiVersion"] = json!(envelope.api_version);
    object["kind"] = json!(envelope.kind);
    Ok(object)
}

/// A recorded object: what it shows, its protobuf and its JSON.
struct Vector {
    name: &'static str,
    body: Vec<u8>,
    json: Value,
}

fn vectors() -> Vec<Vector> {
    let read = |line: &'static str| {
        let mut parts = line.split('\t');
        let mut next = || parts.next().expect("three parts");
        let (name, body, json) = (next(), next(), next());
        let body = STANDARD.decode(body).expect("base64");
        Vector { name, body, json: serde_json::from_str(json).expect("JSON") }
    };
    include_str!("../../recorded/protobuf.txt").lines().map(read).collect()
}

/// Without nulls: Go prints lists and times that are not there when it may not leave them out.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, field| !field.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[test]
fn recorded_objects_are_read_as_their_writer_prints_them() {
    let vectors = vectors();
    assert!(vectors.len() > 100);
    for Vector { name, body, mut json } in vectors {
        let mut read = to_json(&body).unwrap_or_else(|error| panic!("{name}: {error}"));
        without_nulls(&mut read);
        without_nulls(&mut json);
        assert_eq!(read, json, "{name}");
    }
}

#[test]
fn no_beginning_of_a_body_is_a_reason_to_panic() {
    for Vector { name, body, .. } in vectors() {
        // Long ones in steps, to end in time.
        for end in (0..body.len()).step_by(body.len() / 500 + 1) {
            assert!(to_json(&body[..end]).is_err() || end > MAGIC.len(), "{name} up to {end}");
        }
    }
}

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
    put_number(into, number << 3 | usize::from(BYTES));
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
fn what_is_not_known_is_left_out() {
    let mut raw = vec![0xf8, 0x07, 1, 0xfb, 0x07, 8, 1, 0xfc, 0x07, 0xfd, 0x07, 1, 2, 3, 4];
    put(&mut raw, 1, b"\x0a\x01a");
    let read = to_json(&wrapped("v1", "Pod", &raw)).unwrap();
    assert_eq!(read, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}));
}

#[test]
fn a_message_that_comes_in_parts_is_put_together() {
    let mut raw = Vec::new();
    put(&mut raw, 1, b"\x0a\x01a\x1a\x01b");
    put(&mut raw, 1, b"\x0a\x01c");
    let read = to_json(&wrapped("v1", "Pod", &raw)).unwrap();
    assert_eq!(read["metadata"], json!({"name": "c", "namespace": "b"}));
    put(&mut raw, 1, b"\x0a\x00");
    let read = to_json(&wrapped("v1", "Pod", &raw)).unwrap();
    assert_eq!(read["metadata"], json!({"namespace": "b"}), "the last name is empty");
}

#[test]
fn numbers_of_a_list_may_be_packed_or_not() {
    // SecurityContext of a pod: supplementalGroups is a list of numbers.
    let pod = |groups: &[u8]| {
        let (mut spec, mut raw) = (Vec::new(), Vec::new());
        put(&mut spec, 14, groups);
        put(&mut raw, 2, &spec);
        to_json(&wrapped("v1", "Pod", &raw)).unwrap()["spec"]["securityContext"].clone()
    };
    assert_eq!(pod(&[0x20, 1, 0x20, 2]), json!({"supplementalGroups": [1, 2]}));
    assert_eq!(pod(&[0x22, 2, 1, 2, 0x20, 3]), json!({"supplementalGroups": [1, 2, 3]}));
}

#[test]
fn text_that_is_no_text_is_mended() {
    let mut raw = Vec::new();
    put(&mut raw, 1, b"\x0a\x01\xff");
    assert_eq!(to_json(&wrapped("v1", "Pod", &raw)).unwrap()["metadata"]["name"], "\u{fffd}");
}

#[test]
fn nesting_has_an_end() {
    // A schema in a schema: `not` is field 25.
    let mut schema = Vec::new();
    for _ in 0..1000 {
        let mut outer = Vec::new();
        put(&mut outer, 25, &schema);
        schema = outer;
    }
    let (mut version, mut validation, mut spec, mut raw) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    put(&mut validation, 1, &schema);
    put(&mut version, 4, &validation);
    put(&mut spec, 7, &version);
    put(&mut raw, 2, &spec);
    let body = wrapped("apiextensions.k8s.io/v1", "CustomResourceDefinition", &raw);
    assert_eq!(to_json(&body), Err(Error::Depth));
}

proptest! {
    #[test]
    fn arbitrary_messages_are_read_or_refused(raw in prop::collection::vec(any::<u8>(), 0..200), root in 0..1000_usize) {
        let roots: Vec<&str> = include_str!("../../recorded/messages.txt").lines().filter_map(|l| l.strip_prefix("root ")).collect();
        let (version, kind) = roots[root % roots.len()].split(' ').next().unwrap().rsplit_once('/').unwrap();
        let _ = to_json(&wrapped(version, kind, &raw));
        let _ = to_json(&raw);
        let _ = to_json(&[MAGIC, &raw].concat());
    }

    #[test]
    fn a_changed_byte_is_no_reason_to_panic(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte: u8) {
        let all = vectors();
        let mut body = which.get(&all).body.clone();
        let at = at.index(body.len());
        body[at] = byte;
        if let Ok(read) = to_json(&body) {
            prop_assert!(read.is_object());
        }
    }
}

/// A message with fields of bytes.
fn message(fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, bytes) in fields {
        put(&mut out, *number, bytes);
    }
    out
}

#[test]
fn what_is_skipped_is_what_would_be_skipped_of_the_text() {
    const SOME: Skip = Skip::fields(&["status"]).within(&[
        ("metadata", Skip::fields(&["managedFields", "uid"]).within(&[("labels", Skip::fields(&["key16"]))])),
        ("spec", Skip::fields(&["volumes"]).within(&[("containers", Skip::fields(&["env", "image"]))])),
    ]);
    let mut shorter = 0;
    for Vector { name, body, .. } in vectors() {
        let envelope = Envelope::read(&body).unwrap();
        let whole = envelope.object(Skip::NOTHING).unwrap().to_string();
        let expected = Tree::parse(whole.as_bytes(), SOME).unwrap();
        assert_eq!(envelope.object(SOME).unwrap(), expected, "{name}");
        shorter += usize::from(expected.to_string().len() < whole.len());
    }
    assert!(shorter > 50, "something was skipped of {shorter}");
}

#[test]
fn a_list_says_where_it_ends_and_what_is_in_it() {
    let meta = message(&[(1, b"link"), (2, b"41"), (3, b"more")]);
    let pod = |name: &[u8]| message(&[(1, &message(&[(1, name)]))]);
    let raw = message(&[(1, &meta), (2, &pod(b"a")), (2, &pod(b"b")), (9, b"new")]);
    let body = wrapped("v1", "PodList", &raw);
    let list = List::read(&body).unwrap();
    assert_eq!((&*list.revision, &*list.next), ("41", "more"));
    let names: Vec<Value> = list.items(Skip::NOTHING).map(|item| Value::from(&item.unwrap())).collect();
    assert_eq!(names, [json!({"metadata": {"name": "a"}}), json!({"metadata": {"name": "b"}})]);
    assert!(matches!(List::read(&wrapped("v1", "ThingList", &raw)), Err(Error::Kind { .. })));
    assert!(matches!(List::read(&wrapped("v1", "Pod", &raw)), Err(Error::Kind { .. })), "no list at all");
}

#[test]
fn an_event_carries_an_object_that_says_what_it_is() {
    let object = wrapped("v1", "Pod", &message(&[(1, &message(&[(1, b"a")]))]));
    let frame = message(&[(1, b"ADDED"), (2, &message(&[(1, &object)]))]);
    let event = Event::read(&frame).unwrap();
    assert_eq!((&*event.what, &*event.object.kind), ("ADDED", "Pod"));
    assert_eq!(event.object.object(Skip::NOTHING).unwrap()["metadata"]["name"].as_str(), Some("a"));
    for (frame, why) in [
        (message(&[(1, b"ADDED")]), Error::NoBody),
        (message(&[(1, b"ADDED"), (2, b"")]), Error::NoBody),
        (message(&[(2, &message(&[(1, b"{}")]))]), Error::Prefix),
        (vec![0x0a, 9], Error::Eof),
    ] {
        assert_eq!(Event::read(&frame).map(|event| event.what).unwrap_err(), why);
    }
}

#[test]
fn what_is_written_reads_back() {
    let metadata = Writer::default().text(1, &"long".repeat(100)).text(3, "shop");
    let body = Writer::body("v1", "Pod", &Writer::default().message(1, &metadata));
    assert_eq!(
        to_json(&body).unwrap(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "long".repeat(100), "namespace": "shop"}})
    );
}

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// What kubectl prints, and what people write, line by line.
fn line() -> impl Strategy<Value = String> {
    let indent = (0..4usize).prop_map(|depth| "  ".repeat(depth));
    let dash = prop::sample::select(vec!["", "", "", "- ", "-   ", "- - "]);
    let key = prop::sample::select(vec![
        "a", "b", "c", "d", "name", "\"k 1\"", "f:x", "k.io/x", "null", "true", "1", "~", "a b", "<<", "-a",
        "0x1", "",
    ]);
    let value = prop::sample::select(vec![
        "",
        " x",
        " 1",
        " -1",
        " 007",
        " 1.5",
        " 1e3",
        " 0x10",
        " 500m",
        " 1E",
        " 1e3m",
        " 10.0.0.1",
        " 1-2-3",
        " 1-2",
        " 12345678901234567890",
        " 2025-01-01T00:00:00Z",
        " true",
        " True",
        " yes",
        " Null",
        " ~",
        " null",
        " \"q\"",
        " \"a\\nb\"",
        " \"\\x41\"",
        " \"open",
        " 'it''s'",
        " 'q'",
        " ''",
        " {}",
        " []",
        " {a: 1}",
        " [1, 2]",
        " |",
        " |-",
        " |+",
        " >",
        " x # c",
        " # c",
        " x#c",
        " x: y",
        " x:",
        " a:b",
        " &a x",
        " *a",
        " !!str 1",
        " @x",
        " %x",
        " -",
        " - x",
        " -x",
        " --x",
        " --- x",
        " -inf",
        " .5",
        " .inf",
        " +1",
        " =",
        " /a",
        " _a",
        "  x ",
        " é",
        " a\tb",
        " x, y",
        " 1_000",
        " 0b1",
        " 0b1e-1-1",
        " 0o7",
    ]);
    (indent, dash, key, value).prop_map(|(indent, dash, key, value)| {
        if key.is_empty() {
            format!("{indent}{dash}{}", value.trim_start())
        } else {
            format!("{indent}{dash}{key}:{value}")
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The fast reader says nothing the complete one does not say.
    #[test]
    fn what_is_read_fast_is_read_right(lines in prop::collection::vec(prop_oneof![9 => line(), 1 => Just(String::new())], 1..7), end: bool) {
        let text = format!("{}{}", lines.join("\n"), if end { "\n" } else { "" });
        if let Some(fast) = block::parse(&text) {
            prop_assert_eq!(Ok(fast), yaml::complete(Piece { line: 1, depth: 0, text: &text }), "{}", text);
        }
    }

    /// Cutting a list apart changes nothing.
    #[test]
    fn items_read_apart_are_the_items(lines in prop::collection::vec(line(), 0..8)) {
        let text = format!("kind: List\nitems:\n- a: 1\n{}\n", lines.join("\n"));
        let whole = yaml::complete(Piece { line: 1, depth: 0, text: &text });
        if let [part] = documents(&text).as_slice() {
            prop_assert_eq!(part, &whole, "{}", text);
        }
    }
}

#[test]
fn objects_as_kubectl_prints_them_are_read_fast() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    a.b/c: \"1\"\n    text: |\n      one\n        two\n\n  labels: {}\n\
                \x20 name: web-1\n  ownerReferences:\n  - apiVersion: apps/v1\n    controller: true\n    kind: ReplicaSet\n  uid: 0b5d6b8e-1111-2222-3333-444444444444\n\
                spec:\n  containers:\n  - args:\n    - --port=80\n    - \"-v\"\n    name: main\n    resources:\n      requests:\n        cpu: 250m\n        memory: 512Mi\n\
                \x20 priority: 0\nstatus:\n  conditions:\n  - lastProbeTime: null\n    status: \"True\"\n  podIP: 10.0.0.5\n";
    assert_eq!(
        block::parse(text),
        Some(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "annotations": {"a.b/c": "1", "text": "one\n  two\n"},
                "labels": {},
                "name": "web-1",
                "ownerReferences": [{"apiVersion": "apps/v1", "controller": true, "kind": "ReplicaSet"}],
                "uid": "0b5d6b8e-1111-2222-3333-444444444444",
            },
            "spec": {
                "containers": [{
                    "args": ["--port=80", "-v"],
                    "name": "main",
                    "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
                }],
                "priority": 0,
            },
            "status": {"conditions": [{"lastProbeTime": null, "status": "True"}], "podIP": "10.0.0.5"},
        }))
    );
}

use super::*;
use proptest::prelude::*;
use serde_json::json;

const KINDS: [Kind; 5] = [
    ("v1", "Node"),
    ("v1", "Pod"),
    ("metrics.k8s.io/v1beta1", "NodeMetrics"),
    ("v1", "Event"),
    ("scheduler.policy.crane.io/v1alpha1", "DynamicSchedulerPolicy"),
];

fn read_texts(texts: &[&str]) -> Result<Documents, Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = |(index, text): (usize, &&str)| {
        let path = folder.path().join(format!("{}.yaml", ["a", "b"][index]));
        std::fs::write(&path, text).expect("a file can be written");
        path
    };
    let files: Vec<PathBuf> = texts.iter().enumerate().map(file).collect();
    let folder = format!("{}/", folder.path().display());
    read(&files, &KINDS)
        .map_err(|problems| problems.iter().map(|p| p.to_string().replace(&folder, "")).collect())
}

fn names(read: &Documents) -> Vec<String> {
    let name = |object: &Document| {
        format!(
            "{} {} {}",
            object.place,
            object.kind,
            object.value["metadata"]["name"].as_str().unwrap_or("-")
        )
    };
    read.objects
        .iter()
        .map(name)
        .map(|text| text[text.rfind('/').map_or(0, |at| at + 1)..].to_owned())
        .collect()
}

#[test]
fn every_form_kubectl_prints_is_read() {
    let yaml_list = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n1\n\
                     - apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p1\nkind: List\nmetadata:\n  resourceVersion: \"\"\n";
    for (why, text, expected) in [
        (
            "documents, empty ones skipped and not counted",
            "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\n# nothing\n---\n\
             apiVersion: v1\nkind: Pod\nmetadata:\n  name: p1\n",
            vec!["a.yaml: document 1 Node n1", "a.yaml: document 2 Pod p1"],
        ),
        (
            "a list",
            yaml_list,
            vec!["a.yaml: document 1, items[0] Node n1", "a.yaml: document 1, items[1] Pod p1"],
        ),
        (
            "a list of one kind whose items do not repeat it",
            r#"{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]}"#,
            vec!["a.yaml: document 1, items[0] Node n1"],
        ),
        ("an empty list", r#"{"apiVersion": "v1", "kind": "List", "items": []}"#, vec![]),
        (
            "JSON one after another",
            "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n1\"}}\n\
             {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p1\"}}",
            vec!["a.yaml: document 1 Node n1", "a.yaml: document 2 Pod p1"],
        ),
        (
            "JSON and YAML between markers",
            "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n1\"}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: p1}}",
            vec!["a.yaml: document 1 Node n1", "a.yaml: document 2 Pod p1"],
        ),
        (
            "an item that refers to another: the list is read as a whole",
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: &m\n    name: n1\n\
             - apiVersion: v1\n  kind: Pod\n  metadata: *m\n",
            vec!["a.yaml: document 1, items[0] Node n1", "a.yaml: document 1, items[1] Pod n1"],
        ),
    ] {
        assert_eq!(names(&read_texts(&[text]).unwrap()), expected, "{why}");
    }
}

#[test]
fn all_problems_are_told_at_once_with_place_path_and_expectation() {
    let wrong = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p1\nspec:\n  nodeName: 3\n  containers:\n\
                 - name: main\n  resources:\n    requests:\n      cpu: lots\n---\n\
                 apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: main\n    resources:\n      requests:\n        cpu: lots\n        memory: [1]\n\
                 \x20 priority: 3000000000\n  hostNetwork: \"yes\"\n  tolerations: {}\n";
    let second = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: v2\nkind: Pod\n";
    assert_eq!(
        read_texts(&[wrong, second]).unwrap_err(),
        [
            "a.yaml: document 1: line 8, column 3: while parsing a block mapping, did not find expected key",
            "a.yaml: document 2: spec.containers[0].resources.requests.cpu: expected an amount such as 500m or 1Gi, found \"lots\"",
            "a.yaml: document 2: spec.containers[0].resources.requests.memory: expected an amount such as 500m or 1Gi, found a list",
            "a.yaml: document 2: spec.hostNetwork: expected true or false, found \"yes\"",
            "a.yaml: document 2: spec.priority: expected a whole number of 32 bits, found the number 3000000000",
            "a.yaml: document 2: spec.tolerations: expected a list, found an object",
            "a.yaml: document 2: metadata.name: expected a name, found nothing",
            "b.yaml: document 1: kind: unknown kind Secret, expected one of Node, Pod, NodeMetrics, Event, DynamicSchedulerPolicy",
            "b.yaml: document 2: apiVersion: unknown API version \"v2\" of Pod, expected v1",
        ]
    );
}

#[test]
fn what_is_not_kubernetes_is_refused() {
    for (why, text, expected) in [
        ("a word", "hello\n", "a.yaml: document 1: expected a Kubernetes object, found \"hello\""),
        ("a list", "- a\n- b\n", "a.yaml: document 1: expected a Kubernetes object, found a list"),
        (
            "some other YAML",
            "name: x\n",
            "a.yaml: document 1: kind: expected a kind such as Pod, found nothing; is this a Kubernetes object?",
        ),
        (
            "no version",
            "kind: Pod\n",
            "a.yaml: document 1: apiVersion: expected an API version such as v1, found nothing; is this a Kubernetes object?",
        ),
        (
            "a kind that is no text",
            "kind: 3\n",
            "a.yaml: document 1: kind: expected a kind such as Pod, found the number 3",
        ),
        ("nothing", "# only a remark\n", "a.yaml: expected Kubernetes objects, found nothing"),
        (
            "a key twice",
            "apiVersion: v1\nkind: Pod\nkind: Node\n",
            "a.yaml: document 1: line 3, column 1: duplicate mapping key: kind",
        ),
        (
            "a key twice in JSON",
            "{\"kind\": \"Pod\",\n \"kind\": \"Node\"}",
            "a.yaml: document 1: line 2, column 16: the key \"kind\" is given twice",
        ),
        ("half of JSON", "{\"kind\": ", "a.yaml: document 1: line 1, column 9: EOF while parsing a value"),
        (
            "a list within a list",
            r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "List", "items": []}]}"#,
            "a.yaml: document 1, items[0]: kind: unknown kind List, expected one of Node, Pod, NodeMetrics, Event, DynamicSchedulerPolicy",
        ),
        (
            "items that are none",
            r#"{"apiVersion": "v1", "kind": "List", "items": {}}"#,
            "a.yaml: document 1: items: expected a list, found an object",
        ),
        (
            "a line number counts from the start of the file",
            "kind: Pod\napiVersion: v1\nmetadata: {name: p}\n---\na: b: c\n",
            "a.yaml: document 2: line 5, column 5: mapping values are not allowed in this context",
        ),
    ] {
        assert_eq!(read_texts(&[text]).unwrap_err(), [expected], "{why}");
    }
    let missing = read(&[PathBuf::from("missing.yaml"), PathBuf::from(".")], &KINDS).unwrap_err();
    let told: Vec<String> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "missing.yaml: cannot be read: No such file or directory (os error 2)",
            ".: expected a file, found a folder"
        ]
    );
}

/// Promise 1 of the design: what was observed may be broken, and is then unknown, not fatal and not zero.
#[test]
fn what_was_observed_is_left_out_with_a_warning() {
    let text = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  colour: blue\nstatus:\n  allocatable:\n    cpu: lots\n    memory: 1Gi\n\
                \x20 conditions: [7]\n---\napiVersion: metrics.k8s.io/v1beta1\nkind: NodeMetrics\nmetadata:\n  name: n1\ntimestamp: soon\nusage: 5\n";
    let read = read_texts(&[text]).unwrap();
    let told: Vec<String> = read
        .warnings
        .iter()
        .map(|w| format!("{}: {}: {}", w.place.number.unwrap_or(0), w.path, w.what))
        .collect();
    assert_eq!(
        told,
        [
            "1: metadata.colour: unknown field, overlooked",
            "1: status.allocatable.cpu: expected an amount such as 500m or 1Gi, found \"lots\"; left out",
            "1: status.conditions[0]: expected an object, found the number 7; left out",
        ]
    );
    assert_eq!(read.objects[0].value["status"], json!({"allocatable": {"memory": "1Gi"}, "conditions": []}));
    assert_eq!(
        read.objects[1].value["usage"],
        json!(5),
        "a measurement is judged as a whole, by who reads it"
    );
}

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
            prop_assert_eq!(Ok(fast), yaml::complete(Piece { line: 1, text: &text }), "{}", text);
        }
    }

    /// Cutting a list apart changes nothing.
    #[test]
    fn items_read_apart_are_the_items(lines in prop::collection::vec(line(), 0..8)) {
        let text = format!("kind: List\nitems:\n- a: 1\n{}\n", lines.join("\n"));
        let whole = yaml::complete(Piece { line: 1, text: &text });
        let parts = parse(&text);
        if let [part] = parts.as_slice() {
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

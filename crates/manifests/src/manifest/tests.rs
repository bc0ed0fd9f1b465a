use super::*;
use serde_json::json;

const KINDS: [Kind; 5] = [Kind::NODE, Kind::POD, Kind::NODE_METRICS, Kind::EVENT, Kind::LOAD_POLICY];

fn read_texts(texts: &[&str]) -> Result<Manifests, Vec<String>> {
    let mut all = Manifests::default();
    for (name, text) in ["a.yaml", "b.yaml"].iter().zip(texts) {
        all.extend(Manifests::parse(name, text, &KINDS));
    }
    match all.check() {
        Ok(()) => Ok(all),
        Err(problems) => Err(problems.iter().map(ToString::to_string).collect()),
    }
}

fn names(read: &Manifests) -> Vec<String> {
    let name = |object: &Manifest| {
        let name = object.value["metadata"]["name"].as_str().unwrap_or("-");
        format!("{} {} {name}", object.location, object.kind.name)
    };
    read.objects.iter().map(name).collect()
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
fn merge_keys_of_yaml_are_read() {
    let text = "apiVersion: scheduler.policy.crane.io/v1alpha1\nkind: DynamicSchedulerPolicy\nspec:\n  syncPolicy:\n\
                \x20 - &short {name: cpu_usage_avg_5m, period: 3m}\n  - {<<: *short, name: mem_usage_avg_5m}\n";
    let manifests = Manifests::parse("policy.yaml", text, &KINDS);
    let second = &manifests.objects()[0].value["spec"]["syncPolicy"][1];
    assert_eq!((&second["name"], &second["period"]), (&"mem_usage_avg_5m".into(), &"3m".into()));
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
}

#[test]
fn files_are_read_and_those_that_cannot_be_are_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "{apiVersion: v1, kind: Node, metadata: {name: n1}}").unwrap();
    let read = Manifests::read(&[file.path().to_owned()], &KINDS);
    assert_eq!(names(&read), [format!("{}: document 1 Node n1", file.path().display())]);
    std::fs::write(file.path(), b"kind: \xff").unwrap();
    let files = [file.path().to_owned(), PathBuf::from("missing.yaml"), PathBuf::from(".")];
    let told = Manifests::read(&files, &KINDS).check().unwrap_err().to_string();
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(
        told,
        [
            format!("{}: expected text in UTF-8, found something else at byte 6", file.path().display()),
            "missing.yaml: cannot be read: No such file or directory (os error 2)".to_owned(),
            ".: expected a file, found a folder".to_owned(),
        ]
    );
}

/// What everything is decided by must be right.
#[test]
fn what_a_node_has_for_pods_must_be_an_amount() {
    let node = |part: &str| {
        format!("apiVersion: v1\nkind: Node\nmetadata: {{name: n1}}\nstatus: {{{part}: {{cpu: lots}}}}\n")
    };
    assert_eq!(
        read_texts(&[&node("allocatable")]).unwrap_err(),
        [
            "a.yaml: document 1: status.allocatable.cpu: expected an amount such as 500m or 1Gi, found \"lots\""
        ]
    );
    assert!(read_texts(&[&node("capacity")]).is_ok());
}

/// Promise 1 of the design: what was observed may be broken, and is then unknown, not fatal and not zero.
#[test]
fn what_was_observed_is_left_out_with_a_warning() {
    let text = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  colour: blue\nstatus:\n  capacity:\n    cpu: lots\n    memory: 1Gi\n\
                \x20 conditions: [7]\n---\napiVersion: metrics.k8s.io/v1beta1\nkind: NodeMetrics\nmetadata:\n  name: n1\ntimestamp: soon\nusage: 5\n";
    let read = read_texts(&[text]).unwrap();
    let told: Vec<String> = read
        .warnings
        .iter()
        .map(|w| format!("{}: {}: {}", w.location.as_ref().unwrap().document.unwrap_or(0), w.path, w.message))
        .collect();
    assert_eq!(
        told,
        [
            "1: metadata.colour: unknown field, overlooked",
            "1: status.capacity.cpu: expected an amount such as 500m or 1Gi, found \"lots\"; left out",
            "1: status.conditions[0]: expected an object, found the number 7; left out",
        ]
    );
    assert_eq!(read.objects[0].value["status"], json!({"capacity": {"memory": "1Gi"}, "conditions": []}));
    assert_eq!(
        read.objects[1].value["usage"],
        json!(5),
        "a measurement is judged as a whole, by who reads it"
    );
}

use super::*;
use loadline_core::cycle::Filter;
use serde_json::{Value, json};

fn pod() -> Value {
    json!({"metadata": {"name": "p", "namespace": "shop", "uid": "u"}, "spec": {"containers": [
        {"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}})
}

fn answer(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

const VERDICTS: [Verdict; 5] = [
    Verdict::Passes,
    Verdict::Refused(Filter::Threshold),
    Verdict::Refused(Filter::Line),
    Verdict::Unknown,
    Verdict::Outranked,
];

#[test]
fn names_are_answered_by_names() {
    let body = json!({"Pod": pod(), "Nodes": null, "NodeNames": ["a", "b", "c", "d", "e\u{e9}\"", "f"]});
    let body = body.to_string();
    let args = args(body.as_bytes()).unwrap();
    assert_eq!(args.names.iter().collect::<Vec<_>>(), ["a", "b", "c", "d", "e\u{e9}\"", "f"]);
    assert_eq!((args.names.len(), args.names.is_empty()), (6, false));
    assert_eq!(&*args.pod.facts.uid, "u");
    let expected = json!({
        "Nodes": null, "NodeNames": ["a"], "Error": "",
        "FailedNodes": {"c": "node(s) would pass the load line", "d": UNKNOWN},
        "FailedAndUnresolvableNodes": {"b": "node(s) had a load over its threshold"},
    });
    assert_eq!(answer(&filtered(&args.form, &args.names, &VERDICTS)), expected);
    let none = filtered(&args.form, &args.names, &VERDICTS[1..3]);
    assert_eq!(answer(&none)["NodeNames"], json!([]), "no node is an empty list and never null");
    let scores = answer(&prioritized(&args.names, &[10, 0]));
    assert_eq!(scores, json!([{"Host": "a", "Score": 10}, {"Host": "b", "Score": 0}]));
}

#[test]
fn a_question_that_was_asked_before_is_known_by_its_text() {
    // As kube-scheduler writes it: names come last.
    let ordered =
        |pod: &Value, names: Value| format!("{{\"Pod\":{pod},\"Nodes\":null,\"NodeNames\":{names}}}");
    let asked = ordered(&pod(), json!(["a", "b", "cc"]));
    let names = args(asked.as_bytes()).unwrap().names;
    let told = Told::new(asked.as_bytes(), names.clone(), |at| at != 1).unwrap();
    assert_eq!(told.clone().into_names().iter().collect::<Vec<_>>(), ["a", "cc"]);
    assert!(told.is_asked_by(ordered(&pod(), json!(["a", "cc"])).as_bytes()));
    let mut other = pod();
    other["metadata"]["uid"] = json!("v");
    for (again, why) in [
        (ordered(&pod(), json!(["a", "b", "cc"])), "more than were told"),
        (ordered(&pod(), json!(["a"])), "fewer"),
        (ordered(&pod(), json!([])), "none"),
        (ordered(&pod(), json!(["cc", "a"])), "another order"),
        (ordered(&pod(), json!(["a,cc"])), "as long, and other names"),
        (ordered(&pod(), json!(["acc", ""])), "as long, and other names"),
        (ordered(&other, json!(["a", "cc"])), "another pod"),
        (ordered(&pod(), json!(["a", "cc"])) + " ", "more behind it"),
        (String::new(), "nothing"),
    ] {
        assert!(!told.is_asked_by(again.as_bytes()), "{why}: {again}");
    }
    for (unlike, why) in [
        (format!("{{\"NodeNames\":[\"a\"],\"Pod\":{}}}", pod()), "names do not come last"),
        (asked.replace(",\"b\"", ", \"b\""), "there is a space"),
        (ordered(&pod(), json!(["a", "b\"", "cc"])), "a name is written with an escape"),
        (ordered(&pod(), json!([])), "there is no name"),
        (ordered(&pod(), json!(["a"])).replace("]}", "],\"Foo\":[\"a\"]}"), "another list comes last"),
    ] {
        let names = args(unlike.as_bytes()).unwrap().names;
        assert!(Told::new(unlike.as_bytes(), names, |_| true).is_none(), "{why}: {unlike}");
    }
}

#[test]
fn every_name_is_written_as_json_writes_it() {
    for name in ["", "a", "ip-10-0-1-2.internal", "\"", "a\\b", "\u{1}", "\u{e9}\n", "\u{1f600}"] {
        let body = json!({"Pod": pod(), "NodeNames": [name, "b"]}).to_string();
        let args = args(body.as_bytes()).unwrap();
        let mut by_hand = Names::default();
        by_hand.push(name);
        by_hand.push("b");
        for names in [&args.names, &by_hand] {
            let told = answer(&filtered(&args.form, names, &[Verdict::Passes, Verdict::Outranked]));
            assert_eq!(told["NodeNames"], json!([name]));
            let told = answer(&prioritized(names, &[10, 7]));
            assert_eq!(told, json!([{"Host": name, "Score": 10}, {"Host": "b", "Score": 7}]));
        }
    }
}

#[test]
fn whole_nodes_are_answered_by_whole_nodes() {
    let node = |name: &str| json!({"metadata": {"name": name, "labels": {"a\n": "b"}}, "status": {"x": 1.5}});
    let body = json!({"Pod": pod(), "NodeNames": null,
        "Nodes": {"metadata": {}, "items": [node("a"), node("b"), {"spec": {}}]}});
    let body = body.to_string();
    let args = args(body.as_bytes()).unwrap();
    assert_eq!(args.names.iter().collect::<Vec<_>>(), ["a", "b", ""]);
    let answer = answer(&filtered(&args.form, &args.names, &VERDICTS[..2]));
    assert_eq!(answer["Nodes"], json!({"metadata": {}, "items": [node("a")]}));
    assert_eq!(answer["NodeNames"], Value::Null);
}

#[test]
fn what_cannot_be_read_is_told() {
    let bad = json!({"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "resources": {"requests": {"cpu": "much"}}}]}});
    for (body, why) in [
        (json!(null), "the request cannot be read: invalid type: null"),
        (json!([]), "the request"),
        (json!({}), "the request lacks a pod"),
        (json!({"Pod": null, "NodeNames": []}), "the request lacks a pod"),
        (json!({"Pod": pod(), "NodeNames": "a"}), "expected a list of names"),
        (json!({"Pod": pod(), "NodeNames": [1]}), "the request cannot be read: invalid type: integer"),
        (json!({"Pod": pod(), "Nodes": {"items": 7}}), "the request cannot be read: invalid type: integer"),
        (json!({"Pod": bad, "NodeNames": []}), "Pod p: spec.containers[0].resources.requests.cpu"),
        (json!({"Pod": "p"}), "Pod without a name"),
    ] {
        let text = body.to_string();
        let told = args(text.as_bytes()).map(drop).unwrap_err().to_string();
        assert!(told.contains(why), "{body}: {told:?} has no {why:?}");
    }
    assert!(args(b"").is_err() && args(b"{").is_err() && args(b"\xff").is_err());
    let answer = answer(&filter_error("no \"time\""));
    assert_eq!((&answer["Error"], &answer["NodeNames"]), (&json!("no \"time\""), &Value::Null));
}

#[test]
fn an_empty_list_is_no_candidates_and_no_list_is_a_mistake() {
    for (lists, told) in [
        (json!({"NodeNames": []}), None),
        (json!({"Nodes": {"items": []}}), None),
        (json!({"Nodes": {"items": null}}), None),
        (json!({}), Some("the request lacks candidates: NodeNames or Nodes")),
        (json!({"NodeNames": null, "Nodes": null}), Some("the request lacks candidates: NodeNames or Nodes")),
    ] {
        let mut body = lists;
        body["Pod"] = pod();
        let text = body.to_string();
        match (args(text.as_bytes()), told) {
            (Ok(read), None) => assert!(read.names.is_empty(), "{body}"),
            (read, told) => assert_eq!(read.err().map(|e| e.to_string()).as_deref(), told, "{body}"),
        }
    }
}

#[test]
fn a_binding_names_a_pod_and_a_node() {
    let body = br#"{"PodName":"p","PodNamespace":"shop","PodUID":"u","Node":"n"}"#;
    let BindArgs { pod, node } = bind_args(body).unwrap();
    assert_eq!((pod.key.to_string().as_str(), &*pod.uid, node.as_str()), ("shop/p", "u", "n"));
    for (body, why) in [
        (r#"{"PodName":"p","PodNamespace":"shop","PodUID":"u"}"#, "the request lacks Node"),
        (r#"{"PodNamespace":"shop","Node":"n"}"#, "the request lacks PodName"),
        (r#"{"PodName":1}"#, "the request cannot be read"),
        ("", "the request cannot be read"),
    ] {
        let told = bind_args(body.as_bytes()).unwrap_err().to_string();
        assert!(told.contains(why), "{body}: {told}");
    }
    assert_eq!(bound(""), br#"{"Error":""}"#);
}

#[test]
fn victims_come_in_two_forms_and_go_out_in_one() {
    let meta = json!({"Pod": pod(), "NodeNameToMetaVictims": {
        "a": {"Pods": [{"UID": "1"}, {"UID": "2"}], "NumPDBViolations": 3}, "b": null}});
    let whole = json!({"Pod": pod(), "NodeNameToVictims": {"a": {"Pods": [
        {"metadata": {"uid": "1"}}, {"metadata": {"uid": "2"}}], "NumPDBViolations": 3}, "b": {"Pods": null}}});
    for body in [meta, whole] {
        let args = preempt_args(body.to_string().as_bytes()).unwrap();
        let a = Victims { pods: vec!["1".into(), "2".into()], budget_violations: 3 };
        assert_eq!(args.victims, BTreeMap::from([("a".into(), a), ("b".into(), Victims::default())]));
        let kept = args.victims.iter().take(1).map(|(node, victims)| (node.as_str(), victims)).collect();
        let expected = json!({"NodeNameToMetaVictims": {
            "a": {"Pods": [{"UID": "1"}, {"UID": "2"}], "NumPDBViolations": 3}}});
        assert_eq!(answer(&preempted(&kept)), expected);
    }
    assert_eq!(preempted(&BTreeMap::new()), br#"{"NodeNameToMetaVictims":{}}"#);
    assert!(preempt_args(b"{}").is_err());
}

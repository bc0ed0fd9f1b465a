use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn request<'a>(group: &'a str, resource: &'a str) -> Request<'a> {
    Request {
        group,
        resource,
        custom: None,
        list_meta: None,
        include: IncludeObject::Metadata,
        headers: Headers::Show,
        now: at("2026-01-02T00:00:00Z"),
    }
}

/// Objects of every kind with the columns and cells kube-apiserver v1.36.3 made of them.
#[test]
fn columns_and_cells_are_those_of_a_real_server() {
    let recorded: Vec<Value> = serde_json::from_str(include_str!("../../recorded/tables.json")).unwrap();
    for case in &recorded {
        let (group, resource) = (case["group"].as_str().unwrap(), case["resource"].as_str().unwrap());
        let custom = case.get("version").map(CustomColumn::of_version);
        let table = render(
            &Request {
                custom: custom.as_deref(),
                now: at(case["now"].as_str().unwrap()),
                ..request(group, resource)
            },
            case["objects"].as_array().unwrap(),
        );
        let columns: Vec<Value> = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| json!([column["name"], column["type"], column["format"], column["priority"]]))
            .collect();
        assert_eq!(Value::Array(columns), case["columns"], "columns of {resource}.{group}");
        let rows = table["rows"].as_array();
        let cells = rows.map(|rows| rows.iter().map(|row| row["cells"].clone()).collect::<Vec<_>>());
        assert_eq!(json!(cells), case["rows"], "cells of {resource}.{group}");
        for (index, row) in rows.into_iter().flatten().enumerate() {
            let expected = case.pointer(&format!("/conditions/{index}")).unwrap_or(&Value::Null);
            let found = row.get("conditions").unwrap_or(&Value::Null);
            assert_eq!(found, expected, "conditions of {resource}.{group}");
        }
    }
}

#[test]
fn every_column_has_a_cell_even_when_an_object_is_empty_or_misshapen() {
    let misshapen = json!({
        "metadata": 7, "spec": [], "status": "x", "data": 1, "rules": {}, "subjects": "x", "usage": [],
        "involvedObject": null, "containers": [3],
    });
    let recorded: Vec<Value> = serde_json::from_str(include_str!("../../recorded/tables.json")).unwrap();
    let kinds = recorded.iter().map(|case| {
        (case["group"].as_str().unwrap().to_owned(), case["resource"].as_str().unwrap().to_owned())
    });
    let more = [("metrics.k8s.io", "pods"), ("resource.k8s.io", "resourceclaims"), ("x", "y")];
    for (group, resource) in kinds.chain(more.map(|(g, r)| (g.to_owned(), r.to_owned()))) {
        let table = render(&request(&group, &resource), &[json!({}), misshapen.clone(), json!(null)]);
        let columns = table["columnDefinitions"].as_array().unwrap().len();
        for row in table["rows"].as_array().unwrap() {
            assert_eq!(row["cells"].as_array().unwrap().len(), columns, "{resource}.{group}");
        }
    }
}

#[test]
fn rows_carry_what_was_asked_for() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {},
        "metadata": { "name": "a", "resourceVersion": "5" },
    });
    for (include, expected) in [
        (IncludeObject::None, json!(null)),
        (IncludeObject::Object, object.clone()),
        (
            IncludeObject::Metadata,
            json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            }),
        ),
    ] {
        let table = render(&Request { include, ..request("", "configmaps") }, [&object]);
        assert_eq!(table["rows"][0]["object"], expected);
        assert_eq!(table["metadata"], json!({ "resourceVersion": "5" }), "the object's own revision");
    }
    for (word, read) in [
        ("", Some(IncludeObject::Metadata)),
        ("None", Some(IncludeObject::None)),
        ("Object", Some(IncludeObject::Object)),
        ("object", None),
    ] {
        assert_eq!(IncludeObject::parse(word), read, "{word:?}");
    }
}

#[test]
fn a_list_keeps_its_metadata_and_may_leave_out_headers() {
    let meta = json!({ "resourceVersion": "9", "continue": "next", "remainingItemCount": 3 });
    let asked =
        Request { list_meta: Some(meta.clone()), headers: Headers::Omit, ..request("", "configmaps") };
    let table = render(&asked, &[]);
    assert_eq!(table["metadata"], meta);
    assert_eq!(table["columnDefinitions"], Value::Null);
    assert_eq!(table["rows"], json!([]));
}

#[test]
fn metadata_of_a_daemon_set_lacks_its_template_generation() {
    let key = "deprecated.daemonset.template.generation";
    for (annotations, expected) in [
        (json!({ key: "1" }), json!({})),
        (json!({ key: "1", "a": "b" }), json!({ "annotations": { "a": "b" } })),
    ] {
        let object = json!({ "metadata": { "annotations": annotations } });
        let table = render(&request("apps", "daemonsets"), [&object]);
        assert_eq!(table["rows"][0]["object"]["metadata"], expected);
    }
}

#[test]
fn usage_samples_have_a_column_per_resource() {
    let node =
        json!({ "metadata": { "name": "n" }, "window": "15s", "usage": { "memory": "2Ki", "cpu": "5m" } });
    let table = render(&request("metrics.k8s.io", "nodes"), [&node]);
    let names: Vec<&Value> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(json!(names), json!(["Name", "cpu", "memory", "Window"]));
    assert_eq!(table["rows"][0]["cells"], json!(["n", "5m", "2Ki", "15s"]));
    let pod = json!({ "metadata": { "name": "p" }, "window": "30s", "containers": [
        { "name": "a", "usage": { "cpu": "250000n", "memory": "512Ki" } },
        { "name": "b", "usage": { "cpu": "750000n", "memory": "512Ki" } },
    ] });
    let table = render(&request("metrics.k8s.io", "pods"), [&pod]);
    assert_eq!(
        table["rows"][0]["cells"],
        json!(["p", "1m", "1Mi", "30s"]),
        "a pod is the sum of its containers"
    );
    let empty = render(&request("metrics.k8s.io", "pods"), &[]);
    assert_eq!(
        (&empty["columnDefinitions"], &empty["rows"]),
        (&Value::Null, &Value::Null),
        "nothing is known"
    );
}

#[test]
fn pods_show_the_most_telling_word() {
    let ended = |exit: i64, reason: &str| json!({ "terminated": { "exitCode": exit, "reason": reason } });
    let waiting = |reason: &str| json!({ "waiting": { "reason": reason } });
    let deleted = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
    for (pod, ready, status, reason) in [
        (json!({ "status": { "phase": "Pending" } }), "0/0", "Pending", "the phase, if nothing says more"),
        (
            json!({ "status": { "phase": "Failed", "reason": "Evicted" } }),
            "0/0",
            "Evicted",
            "the pod's reason",
        ),
        (
            json!({ "status": { "phase": "Running", "containerStatuses": [
                { "state": waiting("CrashLoopBackOff") }, { "ready": true, "state": { "running": {} } },
            ] }, "spec": { "containers": [{}, {}] } }),
            "1/2",
            "CrashLoopBackOff",
            "a waiting container",
        ),
        (
            json!({ "status": { "phase": "Pending", "initContainerStatuses": [{ "state": ended(1, "") }] } }),
            "0/0",
            "Init:ExitCode:1",
            "a failed init container",
        ),
        (
            json!({ "metadata": deleted, "status": { "phase": "Running" } }),
            "0/0",
            "Terminating",
            "a deletion",
        ),
        (
            json!({ "metadata": deleted, "status": { "phase": "Succeeded", "containerStatuses": [
                { "state": ended(0, "Completed") },
            ] } }),
            "0/0",
            "Completed",
            "the deletion of a pod that has ended adds nothing",
        ),
    ] {
        let table = render(&request("", "pods"), [&pod]);
        assert_eq!(table["rows"][0]["cells"][1], ready, "{reason}");
        assert_eq!(table["rows"][0]["cells"][2], status, "{reason}");
    }
}

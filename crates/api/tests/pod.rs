//! Pods as facts.

use jiff::Timestamp;
use loadline_api::json::Tree;
use loadline_api::{Context, pod};
use loadline_core::load::Load;
use loadline_core::select::taint::Operator;
use loadline_core::view::images::{ImageName, Images};
use loadline_core::view::{Hold, HostPort, Phase, PodFacts, Wants};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const MI: i64 = 1 << 20;

fn facts(value: &Value) -> PodFacts {
    facts_in(value, &Context::new())
}

fn facts_in(value: &Value, context: &Context) -> PodFacts {
    let (facts, warnings) = pod::facts(&Tree::from(value), context).expect("a valid pod");
    assert!(warnings.is_empty(), "{warnings:?}");
    facts
}

/// The pod `default/web-1` with that spec.
fn with(spec: &Value) -> Value {
    json!({"metadata": {"namespace": "default", "name": "web-1", "uid": "u1",
        "labels": {"app": "web", "version": "7"}}, "spec": spec})
}

fn wants(spec: &Value) -> Arc<Wants> {
    facts(&with(spec)).wants
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("tests write valid times")
}

#[test]
fn a_running_pod_becomes_facts() {
    let facts = facts(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "shop", "name": "web-5d9-x", "uid": "u1", "labels": {"app": "web"},
            "creationTimestamp": "2025-01-01T00:00:00Z", "deletionTimestamp": "2025-01-02T00:00:00Z",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "o0"},
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9", "uid": "o1", "controller": true}]},
        "spec": {"nodeName": "n1", "priority": 100, "preemptionPolicy": "Never",
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}]},
        "status": {"phase": "Running", "nominatedNodeName": "n2", "startTime": "2025-01-01T00:00:03Z", "containerStatuses": [
            {"name": "main", "restartCount": 0, "state": {"running": {"startedAt": "2025-01-01T00:00:09Z"}}}]},
    }));
    assert_eq!((&*facts.key.namespace, &*facts.key.name, &*facts.uid), ("shop", "web-5d9-x", "u1"));
    assert_eq!(facts.labels, labels(&[("app", "web")]));
    assert_eq!(facts.requests["cpu"].milli_value(), 250);
    assert_eq!((facts.nonzero.cpu_milli, facts.nonzero.memory_bytes), (250, 1024 * MI));
    assert_eq!(facts.asks.effective, Load::new(250_000_000, 1024 * MI));
    assert_eq!((facts.priority, facts.preempts), (100, false));
    let owner = facts.owner.unwrap();
    assert_eq!(
        (&*owner.group, &*owner.kind, &*owner.name, &*owner.uid),
        ("apps", "ReplicaSet", "web-5d9", "o1")
    );
    assert!(!facts.daemon);
    assert_eq!(facts.phase, Phase::Running);
    assert!(facts.terminating);
    assert_eq!(facts.created, Some(time("2025-01-01T00:00:00Z")));
    assert_eq!(facts.accepted, Some(time("2025-01-01T00:00:03Z")));
    assert_eq!(facts.started, Some(time("2025-01-01T00:00:09Z")));
    assert_eq!((facts.node.as_deref(), facts.nominated.as_deref()), (Some("n1"), Some("n2")));
    assert_eq!(facts.wants.tolerations[0].operator, Operator::Exists);
    assert!(facts.wants.holds.is_empty());
}

#[test]
fn a_pod_from_a_file_needs_little() {
    let facts = facts(&json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main"}]}}));
    assert_eq!((&*facts.key.namespace, facts.phase), ("default", Phase::Pending));
    assert_eq!((facts.node, facts.started, facts.created, facts.owner), (None, None, None, None));
    assert_eq!((facts.priority, facts.preempts), (0, true));
    assert_eq!(*facts.wants, Wants::default());
    assert_eq!(
        (facts.nonzero.cpu_milli, facts.nonzero.memory_bytes),
        (100, 200 * MI),
        "assumed when scoring"
    );
    assert_eq!(facts.asks.effective, Load::ZERO);
}

#[test]
fn images_are_those_of_all_containers_and_of_volumes_until_it_has_a_node() {
    let spec = json!({
        "initContainers": [{"name": "i", "image": "init"}, {"name": "s", "image": "side:1", "restartPolicy": "Always"}],
        "containers": [{"name": "c", "image": "shop.example:5000/web"}, {"name": "d"}],
        "volumes": [{"name": "v", "image": {"reference": "data:3"}}, {"name": "e", "emptyDir": {}}],
    });
    let mut pod = json!({"metadata": {"name": "web"}, "spec": spec});
    let images = facts(&pod).wants.images.clone();
    let want = ["init:latest", "side:1", "shop.example:5000/web:latest", "data:3"];
    assert_eq!(*images.names, want.map(ImageName::held));
    assert_eq!(images.containers, 4, "the volume is none, and one that says no image is");
    pod["spec"]["nodeName"] = json!("n1");
    assert_eq!(facts(&pod).wants.images, Images::default(), "it is not going anywhere");
}

#[test]
fn any_daemon_set_among_the_owners_makes_a_daemon() {
    for (owners, daemon, owner) in [
        (
            json!([{"kind": "DaemonSet", "apiVersion": "apps/v1", "name": "d", "controller": true}]),
            true,
            Some("d"),
        ),
        (json!([{"kind": "DaemonSet", "apiVersion": "apps/v1", "name": "d"}]), true, None),
        (
            json!([{"kind": "Job", "apiVersion": "batch/v1", "name": "j", "controller": true}]),
            false,
            Some("j"),
        ),
        (json!(null), false, None),
    ] {
        let facts = facts(&json!({"metadata": {"name": "p", "ownerReferences": owners}}));
        assert_eq!(facts.daemon, daemon, "{owners}");
        assert_eq!(facts.owner.as_ref().map(|o| &*o.name), owner, "{owners}");
    }
}

#[test]
fn what_the_api_server_fills_in_is_filled_in() {
    for (why, spec, milli, mib) in [
        (
            "limits stand in for requests that are missing",
            json!({"containers": [{"name": "a", "resources":
                {"limits": {"cpu": "2", "memory": "64Mi"}, "requests": {"memory": "32Mi"}}}]}),
            2000,
            32,
        ),
        (
            "the pod as a whole replaces its containers",
            json!({"resources": {"requests": {"cpu": "3"}}, "containers": [
                {"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Mi"}}}]}),
            3000,
            1,
        ),
        (
            "limits of the whole: its containers ask for 1 CPU, nobody for memory",
            json!({"resources": {"limits": {"cpu": "3", "memory": "9Mi"}}, "containers": [
                {"name": "a", "resources": {"requests": {"cpu": "1"}}}]}),
            1000,
            9,
        ),
        (
            "sidecars add, init containers take turns, the sandbox costs: max(1 + 0.5, 2 + 0.5) + 0.1",
            json!({"overhead": {"cpu": "100m"},
                "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
                "initContainers": [
                    {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
                    {"name": "i", "resources": {"requests": {"cpu": "2"}}}]}),
            2600,
            0,
        ),
    ] {
        let facts = facts(&with(&spec));
        let asked = (facts.asks.effective.cpu_nano / 1_000_000, facts.asks.effective.memory_bytes / MI);
        assert_eq!(asked, (milli, mib), "{why}");
    }
}

#[test]
fn less_than_nothing_holds_the_pod_and_counts_as_nothing() {
    let facts =
        facts(&with(&json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "-1"}}}]})));
    let text = "spec.containers[0].resources.requests.cpu: quantity -1 must not be negative";
    assert_eq!(facts.wants.holds, [Hold::Invalid(text.into())]);
    assert!(facts.requests.is_empty());
}

#[test]
fn every_problem_is_told_at_once_with_its_path() {
    let pod = json!({"metadata": {"name": "p", "creationTimestamp": "yesterday"}, "spec": {
        "priority": 1e12, "containers": [{"name": "a"}, {"name": 7, "resources": {"requests": {"cpu": "1 core"}}}],
        "affinity": {"nodeAffinity": []}, "tolerations": [{"key": {}}]}});
    let error = pod::facts(&Tree::from(&pod), &Context::new()).unwrap_err();
    assert_eq!(error.object, "Pod p");
    let paths: Vec<&str> = error.problems.iter().map(|p| p.path.as_str()).collect();
    for path in [
        "metadata.creationTimestamp",
        "spec.priority",
        "spec.containers[1].name",
        "spec.containers[1].resources.requests.cpu",
        "spec.affinity.nodeAffinity",
        "spec.tolerations[0]",
    ] {
        assert!(paths.contains(&path), "{path}: {error}");
    }
}

#[test]
fn priority_is_written_or_that_of_the_class_or_the_default() {
    let mut context = Context::new();
    for class in [
        json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}),
        json!({"metadata": {"name": "usual"}, "value": 10, "globalDefault": true}),
        json!({"metadata": {"name": "usual-too"}, "value": 20, "globalDefault": true}),
    ] {
        context.priority_class(&Tree::from(&class)).unwrap();
    }
    for (why, spec, want) in [
        ("written", json!({"priority": 5, "priorityClassName": "high"}), (5, true)),
        ("by class", json!({"priorityClassName": "high"}), (1000, false)),
        (
            "by class, but it may",
            json!({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}),
            (1000, true),
        ),
        ("the lowest default", json!({}), (10, true)),
        ("always there", json!({"priorityClassName": "system-node-critical"}), (2_000_001_000, true)),
    ] {
        let facts = facts_in(&with(&spec), &context);
        assert_eq!((facts.priority, facts.preempts), want, "{why}");
        assert!(facts.wants.holds.is_empty(), "{why}");
    }
    let unknown = facts_in(&with(&json!({"priorityClassName": "hgih"})), &context);
    let text = r#"spec.priorityClassName: there is no PriorityClass "hgih""#;
    assert_eq!(unknown.wants.holds, [Hold::Invalid(text.into())]);
}

/// A2: a pod is measured only once all of it has started.
#[test]
fn a_pod_has_started_when_its_last_container_or_sidecar_has() {
    let started = |status: &Value| {
        let spec = json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [
            {"name": "once"}, {"name": "side", "restartPolicy": "Always"}]});
        facts(&json!({"metadata": {"name": "p"}, "spec": spec, "status": status})).started
    };
    let running = |name: &str, at: &str| json!({"name": name, "state": {"running": {"startedAt": at}}});
    let restarted = |name: &str| json!({"name": name, "restartCount": 3, "state": {"running": {"startedAt": "2025-01-01T09:00:00Z"}}});
    let (one, two, three) = ("2025-01-01T00:00:01Z", "2025-01-01T00:00:02Z", "2025-01-01T00:00:03Z");
    let side = || json!([running("side", one)]);
    for (why, containers, init, want) in [
        ("the latest", json!([running("a", two), running("b", three)]), side(), Some(time(three))),
        ("a restart is no start", json!([running("a", two), restarted("b")]), side(), Some(time(two))),
        (
            "all restarted",
            json!([restarted("a"), restarted("b")]),
            json!([restarted("side")]),
            Some(Timestamp::MIN),
        ),
        ("b is not reported", json!([running("a", two)]), side(), None),
        ("the sidecar is not there", json!([running("a", two), running("b", two)]), json!(null), None),
        (
            "b waits for its image",
            json!([running("a", two), {"name": "b", "state": {"waiting": {"reason": "ContainerCreating"}}}]),
            side(),
            None,
        ),
        (
            "b ran and ended",
            json!([running("a", one), {"name": "b", "state": {"terminated": {"startedAt": two, "finishedAt": three}}}]),
            side(),
            Some(time(two)),
        ),
        (
            "b ran before and waits to be restarted for the first time",
            json!([running("a", one), {"name": "b", "restartCount": 0, "state": {"waiting": {}},
                "lastState": {"terminated": {"startedAt": three}}}]),
            side(),
            Some(time(three)),
        ),
        (
            "b does not say when",
            json!([running("a", one), {"name": "b", "state": {"running": {}}}]),
            side(),
            None,
        ),
    ] {
        let status = json!({"containerStatuses": containers, "initContainerStatuses": init});
        assert_eq!(started(&status), want, "{why}");
    }
}

#[test]
fn node_selector_and_affinity_are_demands() {
    let wants = wants(&json!({"nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference":
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}}]}}}));
    assert!(wants.required.matches("n", &labels(&[("disk", "ssd"), ("zone", "a")])));
    assert!(!wants.required.matches("n", &labels(&[("zone", "a")])));
    assert!(!wants.required.matches("n", &labels(&[("disk", "ssd")])));
    assert_eq!(wants.preferred.score("n", &labels(&[("zone", "b")])), 5);
}

#[test]
fn a_term_about_pods_speaks_of_its_own_namespace_unless_it_names_others() {
    for (why, term, covered, not) in [
        ("none named", json!({}), &["default"][..], &["shop", "prod"][..]),
        ("named", json!({"namespaces": ["shop"]}), &["shop"], &["default"]),
        ("every one", json!({"namespaceSelector": {}}), &["default", "shop", "prod"], &[]),
        ("by label", json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}), &["prod"], &["default"]),
        (
            "both",
            json!({"namespaces": ["shop"], "namespaceSelector": {"matchLabels": {"env": "prod"}}}),
            &["shop", "prod"],
            &["default"],
        ),
        ("null selects nothing", json!({"namespaceSelector": null}), &["default"], &["prod"]),
    ] {
        let wants = wants(&json!({"affinity": {"podAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}));
        let term = &wants.affinity.required[0];
        let of = |n: &str| if n == "prod" { labels(&[("env", "prod")]) } else { labels(&[]) };
        assert!(covered.iter().all(|n| term.covers(n, &of(n))), "{why}");
        assert!(!not.iter().any(|n| term.covers(n, &of(n))), "{why}");
    }
}

#[test]
fn labels_of_the_pod_itself_join_the_selector_once() {
    let key = json!([{"key": "version", "operator": "In", "values": ["7"]}]);
    for (why, term, want) in [
        ("plain", json!({"labelSelector": {"matchLabels": {"app": "web"}}}), "app=web"),
        (
            "as mine",
            json!({"labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["version"]}),
            "app=web,version in (7)",
        ),
        ("unlike mine", json!({"labelSelector": {}, "mismatchLabelKeys": ["version"]}), "version notin (7)"),
        (
            "joined already",
            json!({"labelSelector": {"matchExpressions": key}, "matchLabelKeys": ["version"]}),
            "version in (7)",
        ),
        ("a label the pod lacks", json!({"labelSelector": {}, "matchLabelKeys": ["tier"]}), ""),
    ] {
        let wants = wants(&json!({"affinity": {"podAntiAffinity":
            {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "podAffinityTerm": term}]}}}));
        let (weight, term) = &wants.anti_affinity.preferred[0];
        assert_eq!((*weight, term.selector.to_string().as_str()), (7, want), "{why}");
    }
    let none = wants(&json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        [{"topologyKey": "zone", "matchLabelKeys": ["version"]}]}}}));
    let term = &none.affinity.required[0];
    assert!(!term.selector.matches(&labels(&[("version", "7")])), "no selector matches nothing");
    assert_eq!(&*term.topology_key, "zone");
}

#[test]
fn spread_has_its_defaults() {
    let wants = wants(&json!({"topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["version"], "minDomains": 3},
        {"maxSkew": 2, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway",
            "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}]}));
    let [hard, soft] = wants.spread.as_slice() else { panic!("{:?}", wants.spread) };
    assert_eq!((hard.max_skew, hard.hard, hard.min_domains), (1, true, Some(3)));
    assert_eq!((hard.honor_affinity, hard.honor_taints), (true, false));
    assert_eq!(hard.selector.to_string(), "app=web,version in (7)");
    assert_eq!((soft.max_skew, soft.hard, soft.min_domains), (2, false, None));
    assert_eq!((soft.honor_affinity, soft.honor_taints), (false, true));
    assert!(!soft.selector.matches(&labels(&[])), "no selector matches nothing");
}

#[test]
fn a_demand_that_is_not_valid_holds_the_pod() {
    let bad = json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}});
    for (spec, path) in [
        (
            json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [bad]}}}),
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: \"Near\"",
        ),
        (
            json!({"topologySpreadConstraints": [{"maxSkew": 0, "whenUnsatisfiable": "DoNotSchedule"}]}),
            "spec.topologySpreadConstraints[0].maxSkew: expected a number above zero",
        ),
        (
            json!({"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "Maybe"}]}),
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: expected DoNotSchedule or ScheduleAnyway",
        ),
        (
            json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]}}}),
            "spec.affinity.nodeAffinity: node affinity is not valid",
        ),
    ] {
        let holds = &wants(&spec).holds;
        let [Hold::Invalid(text)] = holds.as_slice() else { panic!("{holds:?}") };
        assert!(text.starts_with(path), "{text}");
    }
}

#[test]
fn ports_of_the_node_are_those_of_containers_and_sidecars() {
    let spec = |host: bool| {
        json!({"hostNetwork": host,
            "containers": [{"name": "a", "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"},
                {"containerPort": 53, "protocol": "UDP"}]}],
            "initContainers": [{"name": "once", "ports": [{"containerPort": 1, "hostPort": 1}]},
                {"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 9, "hostPort": 9}]}]})
    };
    let port = |ip: &str, protocol: &str, port| HostPort { ip: ip.into(), protocol: protocol.into(), port };
    let (side, main) = (port("", "TCP", 9), port("10.0.0.1", "TCP", 8080));
    assert_eq!(wants(&spec(false)).ports, [side.clone(), main.clone()]);
    assert_eq!(wants(&spec(true)).ports, [side, main, port("", "UDP", 53)], "every port is the node's");
}

#[test]
fn gates_and_what_we_cannot_do_hold_the_pod() {
    let wants = wants(&json!({"schedulingGates": [{"name": "quota"}, {"name": "budget"}],
        "resourceClaims": [{"name": "gpu"}], "schedulingGroup": {"podGroupName": "g"}}));
    assert_eq!(
        wants.holds,
        [
            Hold::Gate("quota".into()),
            Hold::Gate("budget".into()),
            Hold::Unsupported(r#"dynamic resource allocation (resource claim "gpu")"#.into()),
            Hold::Unsupported("scheduling pods as a group (spec.schedulingGroup)".into()),
        ]
    );
}

#[test]
fn what_only_some_kubelets_can_do_and_nodes_declare_holds_the_pod() {
    let restarts = |action: &str| {
        json!({"containers": [{"name": "c", "restartPolicy": "Never",
        "restartPolicyRules": [{"action": action, "exitCodes": {"operator": "In", "values": [3]}}]}]})
    };
    let first = json!({"initContainers": restarts("RestartAllContainers")["containers"]});
    let table = [
        (restarts("RestartAllContainers"), true, "all containers begin again"),
        (first, true, "those that come first have rules, too"),
        (restarts("Restart"), false, "every kubelet restarts one"),
        (json!({"hostNetwork": true, "hostUsers": false}), true, "users of its own in the host's network"),
        (json!({"hostNetwork": true, "hostUsers": true}), false, "the host's users"),
        (json!({"hostNetwork": true}), false, "the host's users unless it says otherwise"),
        (json!({"hostUsers": false}), false, "a network of its own"),
    ];
    for (spec, held, why) in table {
        let holds = wants(&spec).holds.clone();
        let declared =
            matches!(&*holds, [Hold::Unsupported(what)] if what.starts_with("nodes that declare "));
        assert_eq!((declared, holds.is_empty()), (held, !held), "{why}: {holds:?}");
    }
}

//! What is to be counted: workloads, bindings, and what is on its way.

use loadline_api::json::Tree;
use loadline_api::workload::{self, Of, Question};
use loadline_api::{Context, Error};
use loadline_core::estimate::{Ask, Component};
use serde_json::{Value, json};

fn context() -> Context {
    let mut context = Context::new();
    for (name, value, policy) in [("high", 1000, "PreemptLowerPriority"), ("meek", 500, "Never")] {
        let class = json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": policy});
        context.priority_class(&Tree::from(&class)).expect("the class is right");
    }
    context
}

fn deployment(pod: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": pod}}})
}

fn binding(spec: &Value) -> Value {
    json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment", "namespace": "shop"}, "spec": spec})
}

fn read(value: &Value) -> Question {
    workload::read(&Tree::from(value), &context()).expect("the workload is right").0
}

fn ask(question: Question) -> Ask {
    let ask = if let Of::Replicas(ask) = question.of { Some(*ask) } else { None };
    ask.expect("it is about replicas")
}

fn sets(question: Question) -> Vec<Component> {
    let sets = if let Of::Sets(sets) = question.of { Some(sets) } else { None };
    sets.expect("it is about sets")
}

fn amounts(list: &loadline_core::resources::List) -> Vec<String> {
    list.iter().map(|(name, amount)| format!("{name} {amount}")).collect()
}

fn problems(error: &Error) -> Vec<String> {
    error.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn templates_are_found_where_each_kind_keeps_them() {
    let pod = json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "2"}}}]});
    for (version, kind) in workload::KINDS.into_iter().filter(|(_, kind)| !kind.ends_with("Binding")) {
        let mut object = deployment(&pod);
        (object["apiVersion"], object["kind"]) = (json!(version), json!(kind));
        if kind == "PodTemplate" {
            object["template"] = object["spec"]["template"].take();
        }
        let question = read(&object);
        assert_eq!(question.target.to_string(), format!("{kind} shop/web"));
        assert_eq!(question.namespace, "shop");
        let owner = question.pod.as_ref().and_then(|pod| pod.owner.as_ref()).expect("it is the owner");
        assert_eq!((&*owner.kind, &*owner.name), (kind, "web"), "recommendations are found through it");
        assert_eq!(amounts(&ask(question).requests), ["cpu 2"], "{kind}");
    }
}

// Row 20: sidecars and resources of the pod as a whole count.
#[test]
fn a_replica_asks_for_what_its_pod_will_ask_for() {
    let container = |requests: Value, limits: Value| json!({"name": "a", "resources": {"requests": requests, "limits": limits}});
    for (why, pod, requests, limits) in [
        (
            "a limit stands in for a request",
            json!({"containers": [container(json!({"cpu": "1"}), json!({"cpu": "2", "memory": "1Gi"}))]}),
            vec!["cpu 1", "memory 1Gi"],
            vec!["cpu 2", "memory 1Gi"],
        ),
        (
            "an init container needs more than all others together: max(3, 1 + 1)",
            json!({"containers": [container(json!({"cpu": "1"}), json!({})), container(json!({"cpu": "1"}), json!({}))],
                "initContainers": [container(json!({"cpu": "3"}), json!({}))]}),
            vec!["cpu 3"],
            vec![],
        ),
        (
            "a sidecar stays: 1 + 500m",
            json!({"containers": [container(json!({"cpu": "1"}), json!({}))],
                "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}]}),
            vec!["cpu 1500m"],
            vec![],
        ),
        (
            "the pod as a whole says 4, and its sandbox costs 250m",
            json!({"containers": [container(json!({"cpu": "1"}), json!({}))],
                "resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "250m"}}),
            vec!["cpu 4250m"],
            vec![],
        ),
    ] {
        let ask = ask(read(&deployment(&pod)));
        assert_eq!(amounts(&ask.requests), requests, "{why}");
        assert_eq!(amounts(&ask.limits.unwrap_or_default()), limits, "{why}");
    }
}

#[test]
fn the_priority_is_that_of_the_class_if_anybody_is_evicted_for_it() {
    for (why, pod, class, priority) in [
        ("no class, no default: zero", json!({}), "", Some(0)),
        ("of its class", json!({"priorityClassName": "high"}), "high", Some(1000)),
        ("written", json!({"priorityClassName": "high", "priority": 7}), "high", Some(7)),
        ("the class evicts nobody", json!({"priorityClassName": "meek"}), "meek", None),
        ("the pod evicts nobody", json!({"priority": 7, "preemptionPolicy": "Never"}), "", None),
        ("nobody knows the class", json!({"priorityClassName": "lost"}), "lost", None),
    ] {
        let ask = ask(read(&deployment(&pod)));
        assert_eq!((ask.priority_class.as_str(), ask.priority), (class, priority), "{why}");
    }
}

#[test]
fn what_an_estimate_leaves_out_is_said() {
    let pod = json!({
        "containers": [{"name": "a", "ports": [{"containerPort": 80, "hostPort": 80}]}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "schedulingGates": [{"name": "wait"}],
    });
    let (_, warnings) = workload::read(&Tree::from(&deployment(&pod)), &context()).unwrap();
    let told: Vec<String> = warnings.iter().map(|warning| warning.problem.to_string()).collect();
    assert_eq!(
        told,
        [
            "spec.template: the scheduling gate wait is not looked at",
            "spec.template.spec: not counted: ports of the node, distance from other pods, even spreading, claimed volumes; fewer may fit",
        ]
    );
}

#[test]
fn a_binding_asks_for_its_requirements() {
    let claim = json!({"nodeSelector": {"disk": "ssd"},
        "hardNodeAffinity": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]},
        "tolerations": [{"key": "gpu", "operator": "Exists"}]});
    let wanted = json!({"nodeClaim": claim, "resourceRequest": {"cpu": "500m", "example.com/gpu": 1},
        "namespace": "elsewhere", "priorityClassName": "high"});
    let question = read(&binding(&json!({"replicas": 3, "replicaRequirements": wanted})));
    assert_eq!(question.target.to_string(), "ResourceBinding shop/web-deployment");
    let ask = ask(question);
    assert_eq!(amounts(&ask.requests), ["cpu 500m", "example.com/gpu 1"]);
    assert_eq!((ask.namespace.as_str(), ask.priority), ("elsewhere", Some(1000)));
    assert_eq!(ask.tolerations.len(), 1);
    assert!(ask.limits.is_none(), "a binding does not say");
    let labels = |disk: &str, zone: &str| -> std::collections::BTreeMap<String, String> {
        [("disk".to_owned(), disk.to_owned()), ("zone".to_owned(), zone.to_owned())].into()
    };
    for (disk, zone, matches) in [("ssd", "a", true), ("ssd", "b", false), ("hdd", "a", false)] {
        assert_eq!(ask.required.matches("n1", &labels(disk, zone)), matches, "{disk} {zone}");
    }
}

// Row 27: without a namespace no quota binds.
#[test]
fn a_binding_belongs_to_a_namespace_or_to_none() {
    let cluster = |spec: Value| {
        let mut object = binding(&spec);
        object["kind"] = json!("ClusterResourceBinding");
        object["metadata"] = json!({"name": "web"});
        object
    };
    for (why, object, namespace) in [
        ("its own", binding(&json!({"replicas": 1})), "shop"),
        (
            "that of what is bound",
            binding(&json!({"replicas": 1, "resource": {"namespace": "there"}})),
            "there",
        ),
        ("none", cluster(json!({"replicas": 1})), ""),
        ("of what is bound", cluster(json!({"replicas": 1, "resource": {"namespace": "there"}})), "there"),
    ] {
        assert_eq!(read(&object).namespace, namespace, "{why}");
    }
}

#[test]
fn components_win_over_requirements() {
    let spec = json!({"replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": "9"}}, "components": [
        {"name": "leader", "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": "1"}}},
        {"name": "worker", "replicas": 3}]});
    let sets = sets(read(&binding(&spec)));
    let shown: Vec<_> =
        sets.iter().map(|one| (one.name.as_str(), one.replicas, amounts(&one.ask.requests))).collect();
    assert_eq!(shown, [("leader", 1, vec!["cpu 1".to_owned()]), ("worker", 3, vec![])]);
    assert!(sets.iter().all(|one| one.ask.namespace == "shop"));
}

#[test]
fn what_is_wrong_is_told_at_once_with_its_path() {
    for (object, expected) in [
        (
            deployment(
                &json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "-1", "memory": "lots"}}}]}),
            ),
            vec![
                "spec.template.spec.containers[0].resources.requests.memory: quantity \"lots\" must be a number",
                "spec.template.spec.containers[0].resources.requests.cpu: quantity -1 must not be negative",
            ],
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}),
            vec!["spec.template: expected a pod template, found nothing"],
        ),
        (
            binding(&json!({"components": [
                {"name": "a", "replicas": -1, "replicaRequirements": {"resourceRequest": {"cpu": "-2", "memory": "much"}}},
                {"name": 7, "replicas": 3_000_000_000_i64}]})),
            vec![
                "spec.components[0].replicas: expected 0 or more, found -1",
                "spec.components[0].replicaRequirements.resourceRequest.cpu: quantity -2 must not be negative",
                "spec.components[0].replicaRequirements.resourceRequest.memory: ",
                "spec.components[1].replicas: expected a whole number of 32 bits",
                "spec.components[1].name: expected a string, found a number",
            ],
        ),
        (
            binding(&json!({"resource": {"kind": "ConfigMap"}})),
            vec!["spec: expected replicas, replicaRequirements or components, found none of them"],
        ),
    ] {
        let told = problems(&workload::read(&Tree::from(&object), &context()).unwrap_err());
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(expected), "{told}\n{expected}");
        }
    }
}

#[test]
fn what_is_on_its_way_says_what_it_is_and_consists_of() {
    let object = |spec: Value| {
        json!({"apiVersion": "loadline.dev/v1alpha1", "kind": "AssumedWorkload",
        "metadata": {"name": "coming", "namespace": "shop"}, "spec": spec})
    };
    let parts =
        json!([{"name": "a", "replicas": 2, "replicaRequirements": {"resourceRequest": {"cpu": "1"}}}]);
    let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec = json!({"cluster": "m1", "components": parts, "resource": resource});
    let (assumed, _) = workload::assumed(&Tree::from(&object(spec)), &context()).unwrap();
    assert_eq!(assumed.workload.map(|target| target.to_string()).as_deref(), Some("Deployment shop/web"));
    assert_eq!((assumed.namespace.as_str(), assumed.components[0].replicas), ("shop", 2));
    for (spec, expected) in [
        (
            json!({"component": []}),
            vec![
                "spec.component: unknown field, expected cluster, components, resource",
                "spec.components: expected at least one component, found none",
            ],
        ),
        (
            json!({"components": parts, "resource": {"kind": "Deployment"}}),
            vec!["spec.resource.name: must not be empty"],
        ),
    ] {
        assert_eq!(
            problems(&workload::assumed(&Tree::from(&object(spec)), &context()).unwrap_err()),
            expected
        );
    }
}

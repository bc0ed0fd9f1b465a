//! Does a real API server say the same in protobuf as in JSON, of every kind that is watched?

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use http::Method;
use loadline_api::json::{Skip, Tree};
use loadline_api::{Error, protobuf};
use loadline_core::object::{Key, Meta};
use loadline_services::cluster::connection::{Ask, Call, Media, Verb};
use loadline_services::cluster::resource::{self, NODES, PODS, Resource};
use loadline_services::cluster::watch::{Event, Watches};
use loadline_services::cluster::{Access, Cause, Connection, Watched, Writer};
use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);

/// Everything that is there of these is compared, besides what the server makes itself.
const BUILT_IN: [Resource; 19] = [
    NODES,
    PODS,
    resource::NAMESPACES,
    resource::SERVICES,
    resource::CLAIMS,
    resource::VOLUMES,
    resource::QUOTAS,
    resource::CONFIG_MAPS,
    resource::REPLICATION_CONTROLLERS,
    resource::DEPLOYMENTS,
    resource::REPLICA_SETS,
    resource::STATEFUL_SETS,
    resource::JOBS,
    resource::BUDGETS,
    resource::PRIORITY_CLASSES,
    resource::STORAGE_CLASSES,
    resource::CSI_NODES,
    resource::CSI_DRIVERS,
    resource::CSI_STORAGE_CAPACITIES,
];

/// The spec of a pod, with whatever a decision may look at.
fn pod() -> Value {
    json!({
        "nodeSelector": {"disk": "fast"}, "priorityClassName": "high", "schedulerName": "nobody",
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
        "schedulingGates": [{"name": "example.com/wait"}], "overhead": null,
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}}],
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 3, "preference": {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]}}]},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}},
        "initContainers": [{"name": "side", "image": "i", "restartPolicy": "Always",
            "resources": {"requests": {"cpu": "1500m"}}}],
        "containers": [{"name": "main", "image": "i:1", "ports": [{"containerPort": 80, "hostPort": 8080}],
            "env": [{"name": "A", "value": ""}], "livenessProbe": {"httpGet": {"port": "web"}},
            "resources": {"requests": {"cpu": "0.25", "memory": "1Gi", "example.com/gpu": "0"}, "limits": {"memory": "2Gi", "example.com/gpu": "0"}}}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "emptyDir": {}}],
    })
}

/// One of each kind.
fn objects() -> Vec<(Resource, &'static str, Value)> {
    let (selector, labels) = (json!({"matchLabels": {"app": "web"}}), json!({"labels": {"app": "web"}}));
    let plain = json!({"containers": [{"name": "main", "image": "i"}]});
    let template = json!({"metadata": labels, "spec": plain});
    let spec = |spec: Value| json!({"spec": spec});
    vec![
        (PODS, "default", spec(pod())),
        (
            resource::SERVICES,
            "default",
            spec(json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "web"}]})),
        ),
        (
            resource::CLAIMS,
            "default",
            spec(
                json!({"accessModes": ["ReadWriteOncePod"], "storageClassName": "s", "resources": {"requests": {"storage": "1.5Gi"}}}),
            ),
        ),
        (
            resource::VOLUMES,
            "",
            spec(
                json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}, "hostPath": {"path": "/x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}}),
            ),
        ),
        (resource::QUOTAS, "default", spec(json!({"hard": {"requests.cpu": "10", "pods": "0"}}))),
        (
            resource::CONFIG_MAPS,
            "default",
            json!({"data": {"a": "ä\n\"quoted\""}, "binaryData": {"b": "/wA="}}),
        ),
        (
            resource::REPLICATION_CONTROLLERS,
            "default",
            spec(json!({"replicas": 0, "selector": {"app": "web"}, "template": template})),
        ),
        (
            resource::DEPLOYMENTS,
            "default",
            spec(json!({"replicas": 2, "selector": selector, "template": template})),
        ),
        (
            resource::REPLICA_SETS,
            "default",
            spec(json!({"replicas": 0, "selector": selector, "template": template})),
        ),
        (
            resource::STATEFUL_SETS,
            "default",
            spec(json!({"serviceName": "s", "selector": selector, "template": template})),
        ),
        (
            resource::JOBS,
            "default",
            spec(
                json!({"template": {"spec": {"restartPolicy": "Never", "containers": plain["containers"]}}}),
            ),
        ),
        (resource::BUDGETS, "default", spec(json!({"maxUnavailable": "50%", "selector": selector}))),
        (
            resource::PRIORITY_CLASSES,
            "",
            json!({"value": -5, "globalDefault": false, "preemptionPolicy": "Never"}),
        ),
        (resource::PRIORITY_CLASSES, "", json!({"metadata": {"name": "high"}, "value": 1000})),
        (
            resource::STORAGE_CLASSES,
            "",
            json!({"provisioner": "p.example.com", "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]}),
        ),
        (
            resource::CSI_NODES,
            "",
            spec(
                json!({"drivers": [{"name": "d.example.com", "nodeID": "n", "allocatable": {"count": 0}, "topologyKeys": ["zone"]}]}),
            ),
        ),
        (
            resource::CSI_DRIVERS,
            "",
            json!({"metadata": {"name": "d.example.com"}, "spec": {"storageCapacity": true, "attachRequired": false}}),
        ),
        (
            resource::CSI_STORAGE_CAPACITIES,
            "default",
            json!({"storageClassName": "s", "capacity": "5Gi", "nodeTopology": selector}),
        ),
    ]
}

fn call(verb: Verb, resource: Resource, path: String, media: Media) -> Ask {
    Ask::read(verb, resource, path).accept(media)
}

/// Go prints lists and times that are not there when it may not leave them out; nothing reads them.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// The whole of a pod or node.
struct Whole<const NODE: bool>;

impl<const NODE: bool> Watched for Whole<NODE> {
    const RESOURCE: Resource = if NODE { NODES } else { PODS };
    const SKIP: Skip = Skip::NOTHING;
    type Facts = Value;

    fn read(object: &Tree<'_>) -> Result<Value, Error> {
        let mut value = Value::from(object);
        without_nulls(&mut value);
        Ok(value)
    }
}

async fn connection(plane: &ControlPlane) -> Connection {
    Connection::new(Access::Kubeconfig(plane.kubeconfig()).connect().await.unwrap().0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_says_the_same_of_every_kind_in_both() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let has = json!({"cpu": "7910m", "memory": "16Gi", "pods": "110", "example.com/gpu": "0"});
    plane.add_node("n1", &json!({"zone": "a", "disk": "fast"}), &has).unwrap();
    let connection = connection(&plane).await;
    let writer = Writer::new(connection.clone(), "test");
    // Priority classes first: pods name one.
    let mut all = objects();
    all.sort_by_key(|(resource, ..)| *resource != resource::PRIORITY_CLASSES);
    for (resource, namespace, mut object) in all {
        object["apiVersion"] = json!(if resource.group.is_empty() {
            resource.version.to_owned()
        } else {
            format!("{}/{}", resource.group, resource.version)
        });
        object["kind"] = json!(resource.kind);
        if object["metadata"]["name"].is_null() {
            object["metadata"] =
                json!({"name": "one", "labels": {"app": "web", "empty": ""}, "annotations": {"a": "ü"}});
        }
        writer.create(resource, namespace, &object).await.unwrap_or_else(|failure| panic!("{failure}"));
    }
    let mut compared = 0;
    for resource in BUILT_IN {
        let path = resource.collection("");
        let text =
            connection.call(call(Verb::List, resource, path.clone(), Media::Json), PATIENCE).await.unwrap();
        let mut expected: Value = serde_json::from_slice(&text).unwrap();
        let bytes =
            connection.call(call(Verb::List, resource, path, Media::Protobuf), PATIENCE).await.unwrap();
        assert!(bytes.starts_with(protobuf::MAGIC), "{} come in protobuf", resource.plural);
        let list = protobuf::List::read(&bytes).unwrap();
        let items: Vec<Value> = list.items(Skip::NOTHING).map(|item| Value::from(&item.unwrap())).collect();
        let mut items = Value::Array(items);
        without_nulls(&mut items);
        without_nulls(&mut expected);
        assert_eq!(items, expected["items"], "{}", resource.plural);
        assert!(!items.as_array().unwrap().is_empty(), "there are {}", resource.plural);
        compared += items.as_array().unwrap().len();
    }
    assert!(compared >= objects().len(), "{compared} were compared");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_in_protobuf_brings_what_a_question_in_json_says() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let has = json!({"cpu": "8", "memory": "16Gi", "pods": "110"});
    plane.add_node("n1", &json!({}), &has).unwrap();
    let connection = connection(&plane).await;
    let (mut watches, mut messages) = Watches::new(connection.clone(), 64);
    watches.add::<Whole<false>>(|event| (false, event));
    watches.add::<Whole<true>>(|event| (true, event));
    let writer = Writer::new(connection, "test");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let (mut seen, mut made): (BTreeMap<String, Value>, Option<Meta>) = (BTreeMap::new(), None);
    let mut listed = 0;
    // Listed, then created, bound, and deleted: everything comes as an event of its own.
    let mut bound = false;
    loop {
        let (_, event) = tokio::time::timeout(PATIENCE, messages.recv()).await.unwrap().unwrap();
        match event {
            Event::Listed(Some(_)) => listed += 1,
            Event::Applied(meta, facts) => {
                let facts = facts.unwrap();
                if facts["spec"]["nodeName"] == "n1" && !bound {
                    bound = true;
                    let mut now = plane.get("/api/v1/namespaces/default/pods/p").unwrap();
                    without_nulls(&mut now);
                    let fields = now.as_object_mut().unwrap();
                    fields.remove("apiVersion");
                    fields.remove("kind");
                    assert_eq!(facts, now);
                    writer.delete(PODS, &meta, Some(0)).await.unwrap();
                }
                seen.insert(meta.key.to_string(), facts);
            }
            Event::Deleted(meta) => {
                assert_eq!(Some(meta.uid), made.clone().map(|made| made.uid), "the one that was made");
                break;
            }
            Event::Failed(why) | Event::Forbidden(why) => panic!("{why}"),
            _ => {}
        }
        if listed == 2 && made.is_none() {
            assert_eq!(seen.len(), 1, "the node, from its list");
            let written = writer.create(PODS, "default", &pod).await.unwrap();
            let (meta, _) = written.read::<Whole<false>>().unwrap();
            writer.bind(&meta, "n1").await.unwrap();
            made = Some(meta);
        }
    }
    assert!(bound, "the binding in protobuf was understood");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_in_protobuf_says_why() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let connection = connection(&plane).await;
    let writer = Writer::new(connection.clone(), "test");
    let gone = Meta { key: Key::new("default", "nobody"), uid: "u".into(), revision: None };
    let failure = writer.bind(&gone, "n1").await.unwrap_err();
    assert_eq!((failure.cause, &*failure.message), (Cause::NotFound, "pods \"nobody\" not found"));
    let failure = writer.get::<Whole<false>>(&gone.key).await.unwrap_err();
    assert_eq!((failure.cause, &*failure.message), (Cause::NotFound, "pods \"nobody\" not found"));
    let verb = Call { verb: Verb::Create, resource: PODS, subresource: "binding" };
    let path = format!("{}/binding", PODS.object(&gone.key));
    let garbage = Ask {
        call: verb,
        method: Method::POST,
        path,
        content_type: protobuf::MEDIA,
        accept: Media::Protobuf,
        body: b"k8s\0\x0a\x09".to_vec(),
    };
    let failure = connection.call(garbage, PATIENCE).await.unwrap_err();
    assert!(failure.message.contains("unexpected EOF"), "{failure}");
}

//! Is the estimator's answer right over the wire, and is what is wrong told as agreed?

mod serving;

use jiff::{SignedDuration, Timestamp};
use loadline_api::estimator::service::estimator_client::EstimatorClient;
use loadline_api::estimator::{Replica, assumed_workload, pb, replicas_request, sets_request};
use loadline_core::estimate::waiting::{Deployment, ReplicaSet, Unplaced};
use loadline_core::estimate::{Index, Quota, UNCONSTRAINED, Waiting};
use loadline_core::load::recommend::WorkloadRef;
use loadline_core::object::Key;
use loadline_core::resources::List;
use loadline_core::select::LabelSelector;
use loadline_core::view::build;
use loadline_services::ctx;
use loadline_services::estimator::metrics::Metrics;
use loadline_services::estimator::server::{Options, routes};
use loadline_services::estimator::{Known, Members, Status, health};
use loadline_services::serve::Limits;
use prost::bytes::{Buf as _, BufMut as _};
use serving::{Serving, cluster, members, publish};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Request};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tower::ServiceExt as _;

const SERVICE: &str = "github.com.karmada_io.karmada.pkg.estimator.service.Estimator";

fn list(entries: &[(&str, &str)]) -> List {
    entries.iter().map(|(name, text)| ((*name).to_owned(), text.parse().expect("a quantity"))).collect()
}

fn asks(cpu: &str) -> Replica {
    Replica { requests: list(&[("cpu", cpu)]), ..Replica::default() }
}

fn in_namespace(cpu: &str, namespace: &str) -> Replica {
    Replica { namespace: namespace.into(), ..asks(cpu) }
}

/// One component of a set.
#[expect(clippy::needless_pass_by_value, reason = "made up where it is passed")]
fn part(replicas: i32, replica: Replica) -> pb::Component {
    replica.component("part", replicas)
}

/// `Quantity { string: text }`.
fn quantity(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("a short text");
    [&[0x0a, length], text.as_bytes()].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_nodes_of_eight_cores_take_no_replica_of_twelve() {
    // The two stories: totals would say 6 for A and 13 for the second A.
    let members = members(&["a", "b", "labelled", "bare"]);
    publish(&members, "a", &cluster(10, "8", &[]));
    publish(&members, "b", &cluster(2, "16", &[]));
    publish(&members, "bare", &cluster(10, "16", &[]));
    publish(&members, "labelled", &cluster(2, "16", &[("key", "value")]));
    let serving = Serving::start(&members, Options::default()).await;
    let mut client = serving.client().await;
    let labelled = Replica { selector: BTreeMap::from([("key".into(), "value".into())]), ..asks("12") };
    for (cluster, replica, expected, why) in [
        ("a", Some(asks("12")), 0, "10 × floor(8 / 12)"),
        ("b", Some(asks("12")), 2, "2 × floor(16 / 12)"),
        ("bare", Some(labelled.clone()), 0, "no node has the label"),
        ("labelled", Some(labelled), 2, "both have it"),
        ("a", Some(asks("1")), 80, "10 × floor(8 / 1)"),
        ("a", Some(asks("0")), 1100, "a request of zero is no bound: 10 × 110 places"),
        ("b", None, 220, "no requirements: 2 × 110 places"),
    ] {
        let mut request = Request::new(replicas_request(cluster, replica.as_ref(), &[]));
        request.metadata_mut().insert("object", "kind=Deployment, name=default/web".parse().unwrap());
        let answer = client.max_available_replicas(request).await.unwrap().into_inner();
        // Nothing but the figure unless more is asked for.
        let want = pb::MaxAvailableReplicasResponse { max_replicas: expected, ..Default::default() };
        assert_eq!(answer, want, "{cluster}: {why}");
    }
    let set = [part(2, asks("4")), part(1, asks("8"))];
    let answer = client.max_available_component_sets(sets_request("b", "", &set, &[])).await.unwrap();
    assert_eq!(answer.into_inner().max_sets, 2, "a set fills a node of 16 cores: 2 × 4 + 8");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_has_its_status_and_disturbs_nobody() {
    let members = members(&["a", "b", "unread"]);
    publish(&members, "a", &cluster(10, "8", &[]));
    publish(&members, "b", &cluster(1, "8", &[]));
    members["unread"]
        .tell(Status { progress: "nodes 12, pods 0 (still reading)".into(), ..Status::default() });
    let serving = Serving::start(&members, Options::default()).await;

    let raw = |field: &[u8]| pb::ReplicaRequirements {
        resource_request_bytes: BTreeMap::from([("cpu".to_owned(), field.to_vec())]),
        ..Default::default()
    };
    let claim = |node_claim| pb::ReplicaRequirements { node_claim: Some(node_claim), ..Default::default() };
    let request = |cluster: &str, required| pb::MaxAvailableReplicasRequest {
        cluster: cluster.into(),
        replica_requirements: Some(required),
        ..Default::default()
    };
    let truncated = vec![0x0a, 0x05, b'x'];
    let bad = vec![
        (
            request("x", raw(&[])),
            Code::InvalidArgument,
            r#""x" is not served here, expected "a" or "b" or "un"#,
        ),
        (request("", raw(&[])), Code::InvalidArgument, r#""" is not served here"#),
        (request("unread", raw(&[])), Code::Unavailable, "not ready: nodes 12, pods 0 (still reading)"),
        (
            request("a", raw(&quantity("1Q"))),
            Code::InvalidArgument,
            r#"resourceRequestBytes[cpu]: quantity "1Q""#,
        ),
        (request("a", raw(&quantity(""))), Code::InvalidArgument, "resourceRequestBytes[cpu]: quantity"),
        (request("a", raw(&quantity("-2"))), Code::InvalidArgument, "must not be negative"),
        (request("a", raw(&truncated)), Code::InvalidArgument, "expected a serialized Quantity"),
        (
            request(
                "a",
                claim(pb::NodeClaim { node_affinity_bytes: Some(truncated.clone()), ..Default::default() }),
            ),
            Code::InvalidArgument,
            "nodeClaim.nodeAffinityBytes: expected a serialized NodeSelector",
        ),
        (
            request("a", claim(pb::NodeClaim { tolerations: vec![truncated.clone()], ..Default::default() })),
            Code::InvalidArgument,
            "nodeClaim.tolerations[0]: expected a serialized Toleration",
        ),
    ];
    let good = tokio::spawn({
        let mut client = serving.client().await;
        async move {
            for _ in 0..200 {
                let answer =
                    client.max_available_replicas(replicas_request("a", Some(&asks("1")), &[])).await;
                assert_eq!(answer.unwrap().into_inner().max_replicas, 80);
            }
        }
    });
    let mut client = serving.client().await;
    for (request, code, text) in bad {
        let status = client.max_available_replicas(request).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(text), "{text}: {}", status.message());
    }
    let negative = sets_request("a", "", &[part(-1, asks("1"))], &[]);
    let status = client.max_available_component_sets(negative).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("components[0].replicas: must not be negative"), "{status}");
    good.await.unwrap();
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_operator_matches_no_node_and_is_no_error() {
    let members = members(&["a"]);
    publish(&members, "a", &cluster(3, "8", &[("key", "value")]));
    let serving = Serving::start(&members, Options::default()).await;
    // NodeSelector { terms: [{ match_expressions: [{ key: "key", operator: "~" }] }] }
    let selector = b"\x0a\x0a\x0a\x08\x0a\x03key\x12\x01~".to_vec();
    let node_claim = Some(pb::NodeClaim { node_affinity_bytes: Some(selector), ..Default::default() });
    let request = pb::MaxAvailableReplicasRequest {
        cluster: "a".into(),
        replica_requirements: Some(pb::ReplicaRequirements { node_claim, ..Default::default() }),
        ..Default::default()
    };
    let answer = serving.client().await.max_available_replicas(request).await.unwrap();
    assert_eq!(answer.into_inner().max_replicas, 0);
    serving.end().await;
}

/// Bytes as they are.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;
    fn encoder(&mut self) -> Self {
        *self
    }
    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = tonic::Status;
    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), tonic::Status> {
        buffer.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = tonic::Status;
    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, tonic::Status> {
        let mut out = vec![0; buffer.remaining()];
        buffer.copy_to_slice(&mut out);
        Ok(Some(out))
    }
}

async fn raw(serving: &Serving, method: &str, body: Vec<u8>) -> Result<Vec<u8>, tonic::Status> {
    let mut client = tonic::client::Grpc::new(serving.channel().await);
    client.ready().await.expect("a connection");
    let path = format!("/{SERVICE}/{method}").parse().expect("a path");
    client.unary(Request::new(body), path, Raw).await.map(tonic::Response::into_inner)
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_the_bytes_that_were_agreed() {
    let members = members(&["A", "B"]);
    publish(&members, "A", &cluster(10, "8", &[]));
    publish(&members, "B", &cluster(2, "16", &[]));
    let serving = Serving::start(&members, Options::default()).await;
    let entry = b"\x0a\x03cpu\x12\x04\x0a\x0212";
    let body = |cluster: u8, field: u8| [&[0x0a, 1, cluster, 0x12, 13, field, 11][..], entry].concat();
    for (field, why) in [(0x2a, "field 5, the form of today"), (0x12, "field 2, the form of old")] {
        let zero = raw(&serving, "MaxAvailableReplicas", body(b'A', field)).await.unwrap();
        assert!(zero.is_empty(), "{why}: zero is an empty message");
        let two = raw(&serving, "MaxAvailableReplicas", body(b'B', field)).await.unwrap();
        assert_eq!(two, [0x08, 0x02], "{why}");
    }
    let unknown = [&body(b'B', 0x2a)[..], &[0xf8, 0x3f, 0x01]].concat();
    let two = raw(&serving, "MaxAvailableReplicas", unknown).await.unwrap();
    assert_eq!(two, [0x08, 0x02], "fields nobody knows are skipped");

    let cut = body(b'A', 0x2a)[..10].to_vec();
    let status = raw(&serving, "MaxAvailableReplicas", cut).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal, "a message cut short: gRPC's own code for it");
    let status = raw(&serving, "MaxAvailableReplicas", vec![0; 4 * 1024 * 1024 + 1]).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "a message above 4 MiB");
    let status = raw(&serving, "MaxAvailableWishes", vec![]).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_components_are_refused_and_a_set_of_nothing_is_unconstrained() {
    let members = members(&["a"]);
    publish(&members, "a", &cluster(3, "8", &[]));
    let serving = Serving::start(&members, Options::default()).await;
    let mut client = serving.client().await;
    let request = pb::MaxAvailableComponentSetsRequest {
        cluster: "a".into(),
        components: vec![pb::Component::default(); 1_000_000],
        ..Default::default()
    };
    let status = client.max_available_component_sets(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("at most 100000 components"), "{status}");

    // Row 4: components whose replicas are all 0 bind nothing, and are not counted one by one up to 2³¹.
    let sets = |components: &[pb::Component]| sets_request("a", "", components, &[]);
    let zero = [part(0, asks("1")), part(0, asks("2"))];
    let answer = client.max_available_component_sets(sets(&zero)).await.unwrap();
    assert_eq!(answer.into_inner().max_sets, UNCONSTRAINED);
    let answer = client.max_available_component_sets(sets(&[])).await.unwrap();
    assert_eq!(answer.into_inner().max_sets, UNCONSTRAINED, "no components at all");
    let absurd = [part(i32::MAX, asks("1m")), part(i32::MAX, asks("1m"))];
    let answer = client.max_available_component_sets(sets(&absurd)).await.unwrap();
    assert_eq!(answer.into_inner().max_sets, 0);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_bind_as_far_as_they_are_switched_on() {
    let members = members(&["a"]);
    let mut index = cluster(10, "8", &[]);
    let quota = |name: &str, namespace: &str, hard: &[(&str, &str)], used: &[(&str, &str)]| Quota {
        key: Key::new(namespace, name),
        hard: list(hard),
        used: list(used),
        ..Quota::default()
    };
    index.set_quota(quota("some", "shop", &[("requests.cpu", "10")], &[("requests.cpu", "4")]));
    index.set_quota(quota("over", "over", &[("cpu", "10")], &[("cpu", "11")]));
    index.set_quota(quota("limits", "limits", &[("limits.cpu", "6")], &[("limits.cpu", "0")]));
    publish(&members, "a", &index);
    let serving = Serving::start(&members, Options::default()).await;
    let mut client = serving.client().await;
    let limited = Replica { limits: Some(list(&[("cpu", "2")])), ..in_namespace("1", "limits") };
    for (replica, expected, limited_by, why) in [
        (in_namespace("1", "shop"), 6, "some", "10 − 4 = 6 cores are left"),
        // Row 3: used > hard would be −1, which means "no opinion".
        (in_namespace("1", "over"), 0, "over", "more is used than allowed: nothing fits, never less"),
        // Row 27: without a namespace no quota binds.
        (asks("1"), 80, "", "10 × 8"),
        (in_namespace("1", "other"), 80, "", "a namespace without quotas"),
        // Row 26: limits bind where the caller sends them.
        (limited, 3, "limits", "floor(6 / 2)"),
    ] {
        let mut request = replicas_request("a", Some(&replica), &[]);
        request.details = true;
        let answer = client.max_available_replicas(request).await.unwrap().into_inner();
        assert_eq!((answer.max_replicas, answer.limited_by.as_str()), (expected, limited_by), "{why}");
        assert_eq!(answer.by_nodes, Some(80), "{why}");
    }
    serving.end().await;

    let serving = Serving::start(&members, Options { quotas: false, ..Options::default() }).await;
    let request = replicas_request("a", Some(&in_namespace("1", "over")), &[]);
    let answer = serving.client().await.max_available_replicas(request).await.unwrap();
    assert_eq!(answer.into_inner().max_replicas, 80, "quotas are switched off");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_on_its_way_takes_room_once() {
    let members = members(&["a"]);
    let mut index = cluster(2, "8", &[]);
    let target =
        WorkloadRef { group: "apps".into(), kind: "ReplicaSet".into(), key: Key::new("default", "web") };
    for (i, node) in ["n0", "n1"].into_iter().enumerate() {
        let pod = build::pod(&format!("web-{i}")).cpu("2").owner("ReplicaSet", "web").on(node);
        let mut facts = pod.facts();
        if let Some(owner) = &mut facts.owner {
            owner.group = "apps".into();
        }
        index.set_pod(&facts);
    }
    publish(&members, "a", &index);
    let assumed = |workload| vec![assumed_workload("default", workload, vec![part(3, asks("2"))])];
    // Of 2 × 8 cores, 2 × 2 are taken: 12 are free, 6 replicas of 2.
    let cases = [
        (true, vec![], 6, "nothing is on its way"),
        (true, assumed(None), 3, "three are on their way, and nobody says whose they are"),
        // Row 22: two of the three are there already.
        (true, assumed(Some(&target)), 5, "one of three is still to come"),
        (false, assumed(Some(&target)), 6, "switched off"),
    ];
    for (on, assumed, expected, why) in cases {
        let serving = Serving::start(&members, Options { assumed: on, ..Options::default() }).await;
        let mut client = serving.client().await;
        let request = replicas_request("a", Some(&asks("2")), &assumed);
        let answer = client.max_available_replicas(request).await.unwrap();
        assert_eq!(answer.into_inner().max_replicas, expected, "{why}");
        let request = sets_request("a", "", &[part(1, asks("2"))], &assumed);
        let answer = client.max_available_component_sets(request).await.unwrap();
        assert_eq!(answer.into_inner().max_sets, expected, "in sets: {why}");
        serving.end().await;
    }
    // What is not looked at is not read, either.
    let serving = Serving::start(&members, Options { assumed: false, ..Options::default() }).await;
    let request = pb::MaxAvailableReplicasRequest {
        assumed_workloads: vec![pb::AssumedWorkload {
            components: vec![pb::Component { replicas: -1, ..Default::default() }],
            ..Default::default()
        }],
        ..replicas_request("a", Some(&asks("2")), &[])
    };
    let answer = serving.client().await.max_available_replicas(request).await.unwrap();
    assert_eq!(answer.into_inner().max_replicas, 6);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn preemption_pending_pods_and_early_ends_count_when_asked_for() {
    let members = members(&["a"]);
    let mut index = cluster(2, "8", &[]);
    index.set_pod(&build::pod("low").cpu("6").priority(-10).on("n0").facts());
    index.set_pod(&build::pod("pending").cpu("4").facts());
    publish(&members, "a", &index);
    let serving = Serving::start(&members, Options::default()).await;
    let mut client = serving.client().await;
    let mut request = replicas_request("a", Some(&Replica { priority: Some(0), ..asks("2") }), &[]);
    request.details = true;
    let answer = client.max_available_replicas(request).await.unwrap().into_inner();
    assert_eq!(answer.max_replicas, 5, "(8 − 6) / 2 + 8 / 2");
    assert_eq!(answer.by_preempting, Some(8), "without the pod of lower priority, 2 × 8 / 2");
    assert_eq!(answer.by_load, None, "not asked for");
    let mut request = sets_request("a", "", &[part(1, asks("2"))], &[]);
    request.enough = Some(2);
    let answer = client.max_available_component_sets(request.clone()).await.unwrap().into_inner();
    assert!(answer.max_sets >= 2, "two were enough, and there is room for five: {answer:?}");
    request.enough = Some(-1);
    let status = client.max_available_component_sets(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    serving.end().await;

    let serving = Serving::start(&members, Options { pending: true, ..Options::default() }).await;
    let request = replicas_request("a", Some(&asks("2")), &[]);
    let answer = serving.client().await.max_available_replicas(request).await.unwrap();
    assert_eq!(answer.into_inner().max_replicas, 3, "the pod without a node takes 4 cores: 1 + 2");
    serving.end().await;
}

fn waiting() -> Waiting {
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    let selector = LabelSelector { match_labels: labels.clone(), ..LabelSelector::default() };
    let mut waiting = Waiting::new();
    waiting.set_deployment(Deployment {
        key: Key::new("shop", "web"),
        uid: "d".into(),
        selector: selector.selector().expect("a selector"),
        template: 7,
    });
    waiting.set_replica_set(ReplicaSet {
        key: Key::new("shop", "web-1"),
        uid: "rs".into(),
        owner: Some("d".into()),
        created: None,
        template: 7,
    });
    for (uid, minutes) in [("p1", 10), ("p2", 6), ("p3", 1)] {
        waiting.set_pod(Unplaced {
            namespace: "shop".into(),
            uid: uid.into(),
            owner: "rs".into(),
            labels: labels.clone(),
            since: Some(Timestamp::now() - SignedDuration::from_mins(minutes)),
        });
    }
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_wait_in_vain_are_counted() {
    let members = members(&["a"]);
    members["a"].publish(Known { waiting: waiting(), ..Known::default() });
    let serving = Serving::start(&members, Options::default()).await;
    let mut client = serving.client().await;
    let request =
        |api_version: &str, kind: &str, name: &str, minutes: i64| pb::UnschedulableReplicasRequest {
            cluster: "a".into(),
            resource: Some(pb::ObjectReference {
                api_version: api_version.into(),
                kind: kind.into(),
                namespace: "shop".into(),
                name: name.into(),
            }),
            unschedulable_threshold: minutes * 60 * 1_000_000_000,
        };
    for (minutes, expected) in [(5, 2), (0, 3), (-5, 3), (30, 0)] {
        let answer =
            client.get_unschedulable_replicas(request("apps/v1", "Deployment", "web", minutes)).await;
        assert_eq!(answer.unwrap().into_inner().unschedulable_replicas, expected, "{minutes} min");
    }
    let nothing = pb::UnschedulableReplicasRequest { cluster: "a".into(), ..Default::default() };
    let elsewhere = pb::UnschedulableReplicasRequest {
        cluster: "b".into(),
        ..request("apps/v1", "Deployment", "web", 0)
    };
    for (request, code, text) in [
        (
            request("apps/v1", "Deployment", "gone", 0),
            Code::NotFound,
            "Deployment shop/gone is not in cluster",
        ),
        (request("apps/v1", "StatefulSet", "web", 0), Code::Unimplemented, "expected an apps Deployment"),
        (
            request("example.com/v1", "Deployment", "web", 0),
            Code::Unimplemented,
            "expected an apps Deployment",
        ),
        (request("apps/v1", "Deployment", "", 0), Code::InvalidArgument, "resource.name: must not be empty"),
        (nothing, Code::InvalidArgument, "resource: must be set"),
        (elsewhere, Code::InvalidArgument, "not served here"),
    ] {
        let status = client.get_unschedulable_replicas(request).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(text), "{text}: {status}");
    }
    serving.end().await;
}

/// An estimator in this process, without a socket: nothing between us and the server looks at deadlines.
fn here(members: &Arc<Members>, options: Options) -> EstimatorClient<axum::Router> {
    let metrics = Metrics::new(members, &ctx::Metrics::default());
    EstimatorClient::new(routes(members.clone(), options, metrics))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_what_is_being_computed() {
    // Row 24: no partial sums.
    let members = members(&["a"]);
    publish(&members, "a", &cluster(10, "8", &[]));
    let mut client = here(&members, Options::default());
    let with_timeout = |text: &str| {
        let mut request = Request::new(replicas_request("a", Some(&asks("1")), &[]));
        request.metadata_mut().insert("grpc-timeout", text.parse().unwrap());
        request
    };
    let status = client.max_available_replicas(with_timeout("0n")).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    let answer = client.max_available_replicas(with_timeout("1H")).await.unwrap();
    assert_eq!(answer.into_inner().max_replicas, 80);

    // Every component looks at five thousand nodes in vain before it comes to the one that takes it: more work than
    // there is time for.
    let mut index = Index::new();
    for i in 0..5_000 {
        index.set_node(&build::node(&format!("n{i}")).cpu("1").facts());
    }
    index.set_node(&build::node("z").cpu("1M").has("pods", "1M").facts());
    publish(&members, "a", &index);
    let endless: Vec<pb::Component> =
        (0..20_000).map(|i| part(1, asks(&format!("{}m", 2_000 + i)))).collect();
    let mut client = here(&members, Options { longest: Duration::from_millis(200), ..Options::default() });
    let status = client.max_available_component_sets(sets_request("a", "", &endless, &[])).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    let short = sets_request("a", "", &[part(1, asks("1"))], &[]);
    let answer = client.max_available_component_sets(short).await.unwrap();
    assert!(answer.into_inner().max_sets > 0, "others are answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_at_once_than_allowed_is_refused() {
    let members = members(&["a"]);
    publish(&members, "a", &cluster(1, "8", &[]));
    let serving = Serving::start(&members, Options { concurrency: 0, ..Options::default() }).await;
    let request = replicas_request("a", Some(&asks("1")), &[]);
    let status = serving.client().await.max_available_replicas(request).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert_eq!(checked(&serving, "").await.unwrap(), ServingStatus::Serving, "health is not counted");
    serving.end().await;
}

async fn checked(serving: &Serving, service: &str) -> Result<ServingStatus, tonic::Status> {
    let mut client = HealthClient::new(serving.channel().await);
    let request = HealthCheckRequest { service: service.into() };
    client.check(request).await.map(|response| response.into_inner().status())
}

#[tokio::test(flavor = "multi_thread")]
async fn health_follows_readiness_and_ends_with_the_server() {
    // Row 28: ready only when everything has been read.
    let members = members(&["a", "b"]);
    let limits = Limits { grace: Duration::from_hours(1), ..Limits::default() };
    let serving = Serving::with(&members, Options::default(), None, limits).await;
    let mut client = HealthClient::new(serving.channel().await);
    let request = HealthCheckRequest { service: SERVICE.into() };
    let mut watch = client.watch(request).await.unwrap().into_inner();
    let mut next =
        async || watch.message().await.unwrap().map(|response: HealthCheckResponse| response.status());
    assert_eq!(next().await, Some(ServingStatus::NotServing), "nothing is known");
    assert_eq!(checked(&serving, "").await.unwrap(), ServingStatus::NotServing);

    publish(&members, "a", &cluster(1, "8", &[]));
    assert_eq!(checked(&serving, SERVICE).await.unwrap(), ServingStatus::NotServing, "b is still being read");
    assert_eq!(checked(&serving, &format!("{SERVICE}/a")).await.unwrap(), ServingStatus::Serving);
    assert_eq!(checked(&serving, &format!("{SERVICE}/b")).await.unwrap(), ServingStatus::NotServing);

    // One that is broken does not keep the others from being asked.
    members["b"].tell(Status { problem: Some("no route to host".into()), ..Status::default() });
    assert_eq!(next().await, Some(ServingStatus::Serving));
    assert_eq!(checked(&serving, "").await.unwrap(), ServingStatus::Serving);
    let status = serving.client().await.max_available_replicas(replicas_request("b", None, &[])).await;
    let status = status.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().ends_with("nothing read yet; no route to host"), "{status}");

    for unknown in ["other", &format!("{SERVICE}/c"), &format!("{SERVICE}a")] {
        assert_eq!(checked(&serving, unknown).await.unwrap_err().code(), Code::NotFound, "{unknown}");
    }
    // The watch would go on forever; it must not hold up the end, for which there is an hour.
    serving.stop.cancel();
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    assert_eq!(next().await, None);
    serving.task.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_tells_what_it_can_do() {
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    use tonic_reflection::pb::v1::{ServerReflectionRequest, ServiceResponse};
    let members = members(&["a"]);
    let serving = Serving::start(&members, Options::default()).await;
    let mut client = ServerReflectionClient::new(serving.channel().await);
    let ask = async |client: &mut ServerReflectionClient<_>, question| {
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
        let mut answers =
            client.server_reflection_info(tokio_stream::once(request)).await.unwrap().into_inner();
        answers.message().await.unwrap().unwrap().message_response.unwrap()
    };
    let listed = ask(&mut client, MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(listed) = listed else { panic!("{listed:?}") };
    let names: Vec<String> = listed.service.into_iter().map(|ServiceResponse { name }| name).collect();
    assert!(names.iter().any(|name| name == SERVICE), "{names:?}");
    assert!(names.iter().any(|name| name == "grpc.health.v1.Health"), "{names:?}");
    let found = ask(&mut client, MessageRequest::FileContainingSymbol(SERVICE.into())).await;
    assert!(matches!(found, MessageResponse::FileDescriptorResponse(_)), "{found:?}");
    serving.end().await;
}

async fn get(router: &axum::Router, path: &str) -> (u16, String) {
    let request = http::Request::get(path).body(axum::body::Body::empty()).expect("a request");
    let response = router.clone().oneshot(request).await.expect("an answer");
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
    (status, String::from_utf8(body.to_vec()).expect("a text"))
}

#[tokio::test]
async fn readiness_says_how_far_each_cluster_is() {
    let members = members(&["a", "b"]);
    let router = health::router(members.clone(), ctx::Metrics::default(), CancellationToken::new());
    assert_eq!(get(&router, "/healthz").await, (200, "ok\n".to_owned()), "alive from the start");
    members["a"].tell(Status { progress: "nodes 3, pods 0 (still reading)".into(), ..Status::default() });
    let (status, body) = get(&router, "/readyz").await;
    assert_eq!(
        (status, body.as_str()),
        (503, "a: not ready, nodes 3, pods 0 (still reading)\nb: not ready\n")
    );
    publish(&members, "a", &cluster(3, "8", &[]));
    members["b"].tell(Status { problem: Some("no route to host".into()), ..Status::default() });
    let (status, body) = get(&router, "/readyz").await;
    assert_eq!(status, 200, "what can be read has been read");
    assert!(body.ends_with("b: not ready, no route to host\n"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_given_again_until_the_next_event_and_to_the_same_question_only() {
    let members = members(&["a", "b"]);
    publish(&members, "a", &cluster(10, "8", &[]));
    publish(&members, "b", &cluster(10, "8", &[]));
    let serving = Serving::start(&members, Options::default()).await;
    let mut client = serving.client().await;
    let mut detailed = replicas_request("a", Some(&asks("2")), &[]);
    detailed.details = true;
    let mut seen = Vec::new();
    for (request, most, reused, why) in [
        (replicas_request("a", Some(&asks("2")), &[]), 40, 0, "10 × floor(8 / 2), computed"),
        (replicas_request("a", Some(&asks("2")), &[]), 40, 1, "the same, given again"),
        (replicas_request("b", Some(&asks("2")), &[]), 40, 1, "of another cluster: computed"),
        (replicas_request("a", Some(&asks("4")), &[]), 20, 1, "10 × floor(8 / 4): another question"),
        (detailed.clone(), 40, 1, "with details: another question"),
        (detailed, 40, 2, "given again, details and all"),
    ] {
        let answer = client.max_available_replicas(request).await.unwrap().into_inner();
        seen.push(answer.by_nodes);
        let text = serving.metrics.text().unwrap();
        let line = format!("loadline_estimator_reused_answers_total {reused}");
        assert!(text.lines().any(|found| found == line), "{why}: {line}\nis not in\n{text}");
        assert_eq!(answer.max_replicas, most, "{why}");
    }
    assert_eq!(seen[4..], [Some(40), Some(40)]);
    // An event: half of the nodes are gone.
    publish(&members, "a", &cluster(5, "8", &[]));
    let again = replicas_request("a", Some(&asks("2")), &[]);
    let answer = client.max_available_replicas(again).await.unwrap().into_inner();
    assert_eq!(answer.max_replicas, 20, "5 × floor(8 / 2)");
    let sets = || sets_request("a", "", &[part(1, asks("8"))], &[]);
    for _ in 0..2 {
        let answer = client.max_available_component_sets(sets()).await.unwrap().into_inner();
        assert_eq!(answer.max_sets, 5);
    }
    let text = serving.metrics.text().unwrap();
    assert!(text.contains("loadline_estimator_reused_answers_total 3"), "{text}");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_their_names() {
    let members = members(&["a", "unread"]);
    let mut index = cluster(10, "8", &[]);
    index.set_pod(&build::pod("web").cpu("1").on("n0").facts());
    publish(&members, "a", &index);
    members["a"].tell(Status { heard: Some(Timestamp::now()), ..Status::default() });
    let serving = Serving::start(&members, Options::default()).await;
    let mut client = serving.client().await;
    client.max_available_replicas(replicas_request("a", Some(&asks("1")), &[])).await.unwrap();
    client.max_available_replicas(replicas_request("unread", None, &[])).await.unwrap_err();
    let sets = sets_request("a", "", &[part(1, asks("1"))], &[]);
    client.max_available_component_sets(sets).await.unwrap();
    raw(&serving, "MaxAvailableReplicas", vec![0xff]).await.unwrap_err();
    raw(&serving, "MaxAvailableWishes", vec![]).await.unwrap_err();
    let router = health::router(members.clone(), serving.metrics.clone(), CancellationToken::new());
    let (status, text) = get(&router, "/metrics").await;
    assert_eq!(status, 200);
    let theirs = "karmada_scheduler_estimator_estimating";
    for line in [
        format!(r#"{theirs}_request_total{{result="success",type="MaxAvailableReplicas"}} 1"#),
        format!(r#"{theirs}_request_total{{result="error",type="MaxAvailableReplicas"}} 2"#),
        format!(r#"{theirs}_request_total{{result="success",type="MaxAvailableComponentSets"}} 1"#),
        format!(r#"{theirs}_request_total{{result="error",type="Unknown"}} 1"#),
        format!(
            r#"{theirs}_algorithm_duration_seconds_bucket{{le="0.512",result="success",type="MaxAvailableReplicas",step="Total"}} 1"#
        ),
        format!(
            r#"{theirs}_plugin_extension_point_duration_seconds_count{{estimating_plugin_extension_point="estimate_replicas"}} 1"#
        ),
        format!(
            r#"{theirs}_plugin_execution_duration_seconds_count{{estimating_plugin="NodeResourceEstimator",estimating_plugin_extension_point="estimate_components"}} 1"#
        ),
        r#"loadline_estimator_nodes{cluster="a"} 10"#.to_owned(),
        r#"loadline_estimator_pods{cluster="a"} 1"#.to_owned(),
        r#"loadline_estimator_node_kinds{cluster="a"} 1"#.to_owned(),
        r#"loadline_estimator_node_classes{cluster="a"} 2"#.to_owned(),
        r#"loadline_estimator_ready{cluster="a"} 1"#.to_owned(),
        r#"loadline_estimator_ready{cluster="unread"} 0"#.to_owned(),
        r#"loadline_estimator_last_replicas{cluster="a",by="requests"} 79"#.to_owned(),
        r#"loadline_estimator_certificate_reloads_total{result="success"} 0"#.to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
    }
    assert!(text.contains(r#"loadline_estimator_age_seconds{cluster="a"} "#), "{text}");
    serving.end().await;
}

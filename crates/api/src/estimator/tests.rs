use super::generated::kubernetes as k8s;
use super::*;
use loadline_core::estimate::{Ask, Assumed, Component};
use loadline_core::load::recommend::WorkloadRef;
use loadline_core::object::Key;
use loadline_core::quantity::Quantity;
use loadline_core::resources::List;
use loadline_core::select::Toleration;
use loadline_core::select::label::Expression;
use loadline_core::select::node::{NodeSelector, NodeTerm, Required};
use loadline_core::select::taint::{Effect, Operator};
use proptest::prelude::*;
use prost::Message as _;
use std::collections::BTreeMap;

fn quantity(text: &str) -> Vec<u8> {
    k8s::Quantity { string: Some(text.into()) }.encode_to_vec()
}

fn list(entries: &[(&str, &str)]) -> List {
    entries.iter().map(|(name, text)| ((*name).into(), text.parse().expect("a quantity"))).collect()
}

/// A request for replicas of that, and nothing else.
fn asking(required: pb::ReplicaRequirements) -> pb::MaxAvailableReplicasRequest {
    pb::MaxAvailableReplicasRequest { replica_requirements: Some(required), ..Default::default() }
}

/// Every problem of a request, as told.
fn told<T: std::fmt::Debug>(read: Result<T, Error>) -> String {
    read.expect_err("a malformed request").to_string()
}

#[test]
fn a_request_reads_as_the_bytes_say() {
    // The request of the first story: cluster A, 12 cores. Tag 0x0a is field 1 of length-delimited type, and so on.
    let cpu = [0x0a, 0x02, 0x31, 0x32]; // Quantity { string: "12" }
    let entry = [&[0x0a, 0x03, b'c', b'p', b'u', 0x12, 0x04][..], &cpu].concat(); // key, value
    let requirements = |tag: u8| [&[tag, 11][..], &entry].concat();
    let body = |required: &[u8]| {
        [&[0x0a, 0x01, b'A', 0x12, u8::try_from(required.len()).unwrap()], required].concat()
    };
    // Row by row: what is sent, what is requested.
    let unknown = [0xf8, 0x3f, 0x01]; // field 1023, a number: nobody's
    let cases = [
        ("the form of today, field 5", body(&requirements(0x2a))),
        ("the form of old, field 2", body(&requirements(0x12))),
        ("both", body(&[requirements(0x12), requirements(0x2a)].concat())),
        ("with empty texts, as old writers write them", {
            body(&[&requirements(0x12)[..], &[0x1a, 0x00, 0x22, 0x00]].concat())
        }),
        ("with fields nobody knows", body(&[&requirements(0x2a)[..], &unknown].concat())),
    ];
    for (why, bytes) in cases {
        let request = pb::MaxAvailableReplicasRequest::decode(&bytes[..]).expect(why);
        assert_eq!(request.cluster, "A", "{why}");
        let (ask, assumed) = replicas(&request).expect(why);
        assert_eq!(ask, Ask { requests: list(&[("cpu", "12")]), ..Ask::default() }, "{why}");
        assert!(assumed.is_empty(), "{why}");
    }
}

#[test]
fn our_requests_have_the_same_bytes_under_both_numbers() {
    let replica = Replica { requests: list(&[("cpu", "12")]), ..Replica::default() };
    let written = replicas_request("A", Some(&replica), &[]);
    let required = written.replica_requirements.clone().unwrap();
    assert_eq!(required.resource_request_bytes["cpu"], [0x0a, 0x02, 0x31, 0x32]);
    assert_eq!(required.resource_request, required.resource_request_bytes);
    let entry = b"\x0a\x03cpu\x12\x04\x0a\x0212";
    let body = [b"\x0a\x01A\x12\x1a\x12\x0b", &entry[..], b"\x2a\x0b", &entry[..]].concat();
    assert_eq!(written.encode_to_vec(), body);
}

#[test]
fn amounts_are_written_in_their_canonical_form() {
    let requests = list(&[("cpu", "1000m"), ("memory", "2048Mi")]);
    let written = pb::ReplicaRequirements::from(&Replica { requests, ..Replica::default() });
    assert_eq!(written.resource_request_bytes["cpu"], quantity("1"));
    assert_eq!(written.resource_request_bytes["memory"], quantity("2Gi"));
}

#[test]
fn a_toleration_is_written_with_its_empty_texts() {
    let toleration = Toleration { operator: Operator::Exists, ..Toleration::default() };
    let replica = Replica { tolerations: vec![toleration], ..Replica::default() };
    let claim = pb::ReplicaRequirements::from(&replica).node_claim.unwrap();
    assert_eq!(claim.tolerations_bytes, [b"\x0a\x00\x12\x06Exists\x1a\x00\x22\x00"]);
}

#[test]
fn a_zero_answer_is_an_empty_body() {
    assert!(pb::MaxAvailableReplicasResponse::default().encode_to_vec().is_empty());
    assert!(pb::MaxAvailableComponentSetsResponse::default().encode_to_vec().is_empty());
    assert!(pb::UnschedulableReplicasResponse::default().encode_to_vec().is_empty());
}

#[test]
fn no_requirements_are_none() {
    let (ask, assumed) = replicas(&pb::MaxAvailableReplicasRequest::default()).unwrap();
    assert_eq!((ask, assumed), (Ask::default(), vec![]));
    let request = pb::MaxAvailableComponentSetsRequest {
        namespace: "shop".into(),
        components: vec![pb::Component { name: "web".into(), replicas: 2, ..Default::default() }],
        ..Default::default()
    };
    let (components, _) = sets(&request).unwrap();
    let ask = Ask { namespace: "shop".into(), ..Ask::default() };
    assert_eq!(components, [Component { name: "web".into(), replicas: 2, ask }]);
}

#[test]
fn a_quantity_of_no_bytes_is_zero_and_one_of_an_empty_text_is_an_error() {
    let of = |bytes: &[u8]| {
        let resource_request_bytes = BTreeMap::from([("cpu".to_owned(), bytes.to_vec())]);
        replicas(&asking(pb::ReplicaRequirements { resource_request_bytes, ..Default::default() }))
    };
    assert_eq!(of(&[]).unwrap().0.requests["cpu"], Quantity::ZERO);
    assert!(told(of(&[0x0a, 0x00])).contains(r#"[cpu]: quantity "" must be a number"#));
}

#[test]
fn an_empty_affinity_is_not_the_same_as_none() {
    let none = pb::NodeClaim::default();
    let old = pb::NodeClaim { node_affinity: Some(vec![]), ..Default::default() };
    let both = pb::NodeClaim { node_affinity_bytes: Some(vec![]), ..old.clone() };
    for (claim, matches, why) in [
        (none, true, "nothing is demanded"),
        (old, false, "an affinity without terms matches nothing"),
        (both, false, "the form of today carries nothing, the old one is there"),
    ] {
        let required = pb::ReplicaRequirements { node_claim: Some(claim), ..Default::default() };
        let (ask, _) = replicas(&asking(required)).unwrap();
        assert_eq!(ask.required.matches("n1", &BTreeMap::new()), matches, "{why}");
    }
}

#[test]
fn an_unknown_operator_matches_nothing_and_is_no_error() {
    let term = |operator: &str| k8s::NodeSelectorTerm {
        match_expressions: vec![k8s::NodeSelectorRequirement {
            key: "key".into(),
            operator: operator.into(),
            values: vec!["value".into()],
        }],
        match_fields: vec![],
    };
    let ask = |terms: Vec<k8s::NodeSelectorTerm>| {
        let selector = k8s::NodeSelector { node_selector_terms: terms }.encode_to_vec();
        let claim = pb::NodeClaim { node_affinity_bytes: Some(selector), ..Default::default() };
        let required = pb::ReplicaRequirements { node_claim: Some(claim), ..Default::default() };
        replicas(&asking(required)).unwrap().0
    };
    let labels = BTreeMap::from([("key".to_owned(), "value".to_owned())]);
    assert!(!ask(vec![term("Near")]).required.matches("n1", &labels));
    assert!(ask(vec![term("Near"), term("In")]).required.matches("n1", &labels), "its neighbour still may");
}

#[test]
fn everything_malformed_is_told_at_once_with_its_path() {
    let required = pb::ReplicaRequirements {
        node_claim: Some(pb::NodeClaim {
            node_affinity_bytes: Some(vec![0x0a, 0x05]),
            tolerations: vec![vec![], vec![0x0a]],
            ..Default::default()
        }),
        resource_request_bytes: BTreeMap::from([
            ("cpu".to_owned(), quantity("-1")),
            ("example.com/gpu".to_owned(), quantity("two")),
            ("memory".to_owned(), quantity("1Gi")),
        ]),
        limits_bytes: BTreeMap::from([("cpu".to_owned(), quantity("1X"))]),
        ..Default::default()
    };
    let request = pb::MaxAvailableReplicasRequest {
        assumed_workloads: vec![pb::AssumedWorkload {
            components: vec![pb::Component { replicas: -1, ..Default::default() }],
            workload: Some(Box::default()),
            ..Default::default()
        }],
        ..asking(required)
    };
    let error = replicas(&request).unwrap_err();
    assert_eq!(error.object, "MaxAvailableReplicasRequest");
    let starts = [
        "replicaRequirements.resourceRequestBytes[cpu]: quantity -1 must not be negative",
        "replicaRequirements.resourceRequestBytes[example.com/gpu]: quantity \"two\"",
        "replicaRequirements.limitsBytes[cpu]: quantity \"1X\" must be a number",
        "replicaRequirements.nodeClaim.nodeAffinityBytes: expected a serialized NodeSelector",
        "replicaRequirements.nodeClaim.tolerations[1]: expected a serialized Toleration",
        "assumedWorkloads[0].workload.kind: must not be empty",
        "assumedWorkloads[0].workload.name: must not be empty",
        "assumedWorkloads[0].components[0].replicas: must not be negative, found -1",
    ];
    assert_eq!(error.problems.len(), starts.len(), "{error}");
    for (problem, start) in error.problems.iter().zip(starts) {
        assert!(problem.to_string().starts_with(start), "{problem}\n{start}");
    }
}

#[test]
fn the_text_of_an_error_stays_short_whatever_was_sent() {
    let component = |text: &str| pb::Component {
        replica_requirements: Some(Box::new(pb::ComponentReplicaRequirements {
            resource_request_bytes: BTreeMap::from([(text.to_owned(), quantity(text))]),
            ..Default::default()
        })),
        ..Default::default()
    };
    let components = vec![component(&"ä".repeat(100_000)); 50];
    let request = pb::MaxAvailableComponentSetsRequest { components, ..Default::default() };
    let told = told(sets(&request));
    assert!(told.len() < 8 * 1024, "{} bytes", told.len());
    assert!(told.ends_with("; and 40 more"), "ten are told, the others counted: {told}");
}

#[test]
fn more_components_than_anybody_has_are_refused() {
    let components = |count| pb::MaxAvailableComponentSetsRequest {
        components: vec![pb::Component::default(); count],
        ..Default::default()
    };
    assert_eq!(sets(&components(MOST_COMPONENTS)).unwrap().0.len(), MOST_COMPONENTS);
    let want = "MaxAvailableComponentSetsRequest: expected at most 100000 components and assumed workloads, \
                found 1000000";
    assert_eq!(told(sets(&components(1_000_000))), want);
    let assumed = pb::MaxAvailableReplicasRequest {
        assumed_workloads: vec![pb::AssumedWorkload::default(); MOST_COMPONENTS + 1],
        ..Default::default()
    };
    assert!(told(replicas(&assumed)).contains("found 100001"), "empty ones count, too");
}

#[test]
fn a_workload_is_named_by_group_kind_namespace_and_name() {
    let request = |api_version: &str, kind: &str, name: &str, threshold| pb::UnschedulableReplicasRequest {
        resource: Some(pb::ObjectReference {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: "shop".into(),
            name: name.into(),
        }),
        unschedulable_threshold: threshold,
        ..Default::default()
    };
    let (target, waited) = unschedulable(&request("apps/v1", "Deployment", "web", 300_000_000_000)).unwrap();
    assert_eq!((target.to_string().as_str(), &*target.group), ("Deployment shop/web", "apps"));
    assert_eq!(waited.as_secs(), 300);
    let (_, waited) = unschedulable(&request("apps/v1", "Deployment", "web", -5)).unwrap();
    assert_eq!(waited.as_nanos(), 0, "below zero is zero");
    let nameless = told(unschedulable(&request("v1", "", "", 0)));
    assert!(nameless.contains("resource.kind: must not be empty; resource.name: must not"), "{nameless}");
    let none = pb::UnschedulableReplicasRequest::default();
    assert_eq!(told(unschedulable(&none)), "UnschedulableReplicasRequest: resource: must be set");
}

fn text() -> impl Strategy<Value = String> {
    "[a-z./]{0,6}"
}

fn any_list() -> impl Strategy<Value = List> {
    let amount = (0_i64..100_000, any::<bool>())
        .prop_map(|(n, milli)| if milli { Quantity::from_milli(n) } else { Quantity::from_bytes(n << 10) });
    proptest::collection::btree_map("[a-z]{1,8}", amount, 0..4)
}

fn any_expressions() -> impl Strategy<Value = Vec<Expression>> {
    let operator = prop_oneof!["In", "NotIn", "Exists", "Gt", "Near", ""];
    let values = proptest::collection::vec(text(), 0..3);
    let one = (text(), operator, values);
    proptest::collection::vec(
        one.prop_map(|(key, operator, values)| Expression { key, operator, values }),
        0..3,
    )
}

fn any_toleration() -> impl Strategy<Value = Toleration> {
    let effect = proptest::option::of("[A-Z]{1,4}|NoSchedule").prop_map(|e| e.map(Effect::from));
    let fields = (text(), "|Exists|Equal|Lt|Else", text(), effect, any::<Option<i64>>());
    fields.prop_map(|(key, operator, value, effect, toleration_seconds)| Toleration {
        key,
        operator: operator.into(),
        value,
        effect,
        toleration_seconds,
    })
}

fn any_replica() -> impl Strategy<Value = Replica> {
    let term = (any_expressions(), any_expressions())
        .prop_map(|(match_expressions, match_fields)| NodeTerm { match_expressions, match_fields });
    // One without terms cannot be written in the newest dialect.
    let affinity = proptest::option::of(proptest::collection::vec(term, 1..3));
    let claim = (
        proptest::collection::btree_map(text(), text(), 0..3),
        affinity.prop_map(|a| a.map(|node_selector_terms| NodeSelector { node_selector_terms })),
        proptest::collection::vec(any_toleration(), 0..3),
    );
    let limits = any_list().prop_map(|list| (!list.is_empty()).then_some(list));
    (claim, any_list(), limits, text(), text(), any::<Option<i32>>()).prop_map(
        |((selector, affinity, tolerations), requests, limits, namespace, priority_class, priority)| {
            Replica { selector, affinity, tolerations, requests, limits, namespace, priority_class, priority }
        },
    )
}

/// What is to be understood.
fn meant(replica: &Replica) -> Ask {
    Ask {
        required: Required::new(&replica.selector, replica.affinity.as_ref()),
        tolerations: replica.tolerations.clone(),
        requests: replica.requests.clone(),
        limits: replica.limits.clone(),
        namespace: replica.namespace.clone(),
        priority_class: replica.priority_class.clone(),
        priority: replica.priority,
        load: None,
    }
}

/// Who writes.
#[derive(Clone, Copy, Debug)]
enum Dialect {
    Old,
    Both,
    Today,
}

impl Dialect {
    fn claim(self, claim: &mut pb::NodeClaim) {
        match self {
            Self::Old => (claim.node_affinity_bytes, claim.tolerations_bytes) = Default::default(),
            Self::Both => {}
            Self::Today => (claim.node_affinity, claim.tolerations) = Default::default(),
        }
    }

    fn requests(self, old: &mut BTreeMap<String, Vec<u8>>, new: &mut BTreeMap<String, Vec<u8>>) {
        match self {
            Self::Old => new.clear(),
            Self::Both => {}
            Self::Today => old.clear(),
        }
    }

    fn component(self, component: &mut pb::Component) {
        if let Some(required) = &mut component.replica_requirements {
            self.requests(&mut required.resource_request, &mut required.resource_request_bytes);
            self.claim(required.node_claim.get_or_insert_default());
        }
    }
}

fn through_the_wire<M: prost::Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).expect("what was written can be read")
}

proptest! {
    #[test]
    fn every_dialect_means_the_same(
        replica in any_replica(),
        part in any_replica(),
        count in 0..i32::MAX,
        known in any::<bool>(),
    ) {
        let parts = |namespace: &str| {
            let ask = Ask { namespace: namespace.into(), ..meant(&part) };
            vec![Component { name: "part".into(), replicas: count, ask }]
        };
        let workload = WorkloadRef {
            group: "apps".into(), kind: "Deployment".into(), key: Key::new("shop", "web"),
        };
        let workload = known.then_some(workload);
        let written = [part.component("part", count)];
        let coming = [assumed_workload("shop", workload.as_ref(), written.to_vec())];
        let assumed = vec![Assumed { namespace: "shop".into(), workload, components: parts("shop") }];
        for dialect in [Dialect::Old, Dialect::Both, Dialect::Today] {
            let mut request = replicas_request("A", Some(&replica), &coming);
            let required = request.replica_requirements.as_mut().unwrap();
            dialect.requests(&mut required.resource_request, &mut required.resource_request_bytes);
            dialect.claim(required.node_claim.get_or_insert_default());
            dialect.component(&mut request.assumed_workloads[0].components[0]);
            let read = replicas(&through_the_wire(&request)).unwrap();
            prop_assert_eq!(read, (meant(&replica), assumed.clone()), "{:?}", dialect);

            let mut request = sets_request("A", "other", &written, &coming);
            dialect.component(&mut request.components[0]);
            dialect.component(&mut request.assumed_workloads[0].components[0]);
            let read = sets(&through_the_wire(&request)).unwrap();
            prop_assert_eq!(read, (parts("other"), assumed.clone()), "{:?}", dialect);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let claim = pb::NodeClaim {
            node_affinity: Some(bytes.clone()), tolerations_bytes: vec![bytes.clone()], ..Default::default()
        };
        let required = pb::ReplicaRequirements {
            node_claim: Some(claim),
            resource_request: BTreeMap::from([("cpu".to_owned(), bytes.clone())]),
            ..Default::default()
        };
        let _ = replicas(&asking(required));
        let _ = pb::MaxAvailableComponentSetsRequest::decode(&bytes[..]).map(|request| sets(&request));
    }
}

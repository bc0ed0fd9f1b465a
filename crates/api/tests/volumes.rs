//! The volumes of pods.

use loadline_api::json::Tree;
use loadline_api::{Context, pod};
use loadline_core::view::{Hold, Volume, Wants};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn wants(volumes: &Value, context: &Context) -> Arc<Wants> {
    let pod =
        json!({"metadata": {"namespace": "shop", "name": "db-0", "uid": "u1"}, "spec": {"volumes": volumes}});
    pod::facts(&Tree::from(&pod), context).expect("a valid pod").0.wants
}

/// The claim `shop/data`, bound to the volume `pv1`.
fn claim() -> Value {
    json!({"metadata": {"namespace": "shop", "name": "data",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "pv1", "storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}})
}

fn context(claim: &Value, volume: &Value) -> Context {
    let mut context = Context::new();
    context.claim(&Tree::from(claim)).expect("a valid claim");
    context.volume(&Tree::from(volume)).expect("a valid volume");
    context
}

fn disk(labels: &Value, affinity: &Value) -> Value {
    json!({"metadata": {"name": "pv1", "labels": labels}, "spec": {"nodeAffinity": {"required": affinity},
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}})
}

fn data() -> Value {
    json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
}

#[test]
fn volumes_made_on_the_node_need_nothing() {
    let kinds =
        ["emptyDir", "configMap", "secret", "projected", "hostPath", "downwardAPI", "image", "csi", "nfs"];
    let all: Vec<Value> = kinds.iter().map(|kind| json!({"name": kind, *kind: {"driver": "x"}})).collect();
    let wants = wants(&json!(all), &Context::new());
    assert_eq!((wants.volumes.len(), wants.holds.len()), (0, 0));
}

#[test]
fn a_bound_claim_brings_its_volume() {
    let mut once = claim();
    once["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    for (claim, exclusive) in [(claim(), false), (once, true)] {
        let wants = wants(&data(), &context(&claim, &disk(&json!({}), &json!(null))));
        let [volume] = wants.volumes.as_slice() else { panic!("{wants:?}") };
        assert_eq!(
            (&*volume.id, volume.driver.as_deref()),
            ("ebs.csi.aws.com/vol-1", Some("ebs.csi.aws.com"))
        );
        assert_eq!(!wants.exclusive.is_empty(), exclusive);
        assert!(volume.reachable.is_empty());
    }
}

#[test]
fn disks_once_built_in_are_counted_by_the_driver_that_attaches_them_now() {
    for (source, id) in [
        (json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}), "ebs.csi.aws.com/vol-1"),
        (json!({"nfs": {"server": "s", "path": "/"}}), "pv1"),
    ] {
        let volume = json!({"metadata": {"name": "pv1"}, "spec": source});
        assert_eq!(&*wants(&data(), &context(&claim(), &volume)).volumes[0].id, id);
    }
}

#[test]
fn what_is_wrong_with_a_claim_holds_the_pod_in_the_words_of_kube_scheduler() {
    let volume = disk(&json!({}), &json!(null));
    let change = |path: &str, value: Value| {
        let mut changed = claim();
        *changed.pointer_mut(path).expect("a field of the claim") = value;
        changed
    };
    let mut lost = claim();
    lost["status"] = json!({"phase": "Lost"});
    let mut leaving = claim();
    leaving["metadata"]["deletionTimestamp"] = json!("2025-01-01T00:00:00Z");
    let not_found = r#"persistentvolumeclaim "data" not found"#;
    for (claim, want) in [
        (change("/metadata/name", json!("other")), not_found),
        (change("/metadata/namespace", json!("x")), not_found),
        (lost, r#"persistentvolumeclaim "data" bound to non-existent persistentvolume "pv1""#),
        (leaving, r#"persistentvolumeclaim "data" is being deleted"#),
        (change("/spec/volumeName", json!("pv2")), r#"persistentvolume "pv2" not found"#),
        // A volume was named, but nobody has tied the two together.
        (change("/metadata/annotations", json!(null)), "pod has unbound immediate PersistentVolumeClaims"),
    ] {
        let mut context = context(&claim, &volume);
        let class = json!({"metadata": {"name": "fast"}, "volumeBindingMode": "WaitForFirstConsumer"});
        context.storage_class(&Tree::from(&class)).unwrap();
        assert_eq!(wants(&data(), &context).holds, [Hold::Claim(want.into())]);
    }
}

#[test]
fn what_kube_scheduler_finds_first_is_told_first() {
    let mut leaving = claim();
    leaving["metadata"]["deletionTimestamp"] = json!("2025-01-01T00:00:00Z");
    let volumes = json!([
        {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "e", "persistentVolumeClaim": {"claimName": "missing"}},
    ]);
    let wants = wants(&volumes, &context(&leaving, &disk(&json!({}), &json!(null))));
    assert_eq!(wants.holds[0], Hold::Claim(r#"persistentvolumeclaim "missing" not found"#.into()));
    assert_eq!(wants.holds.len(), 2);
}

#[test]
fn a_claim_that_waits_for_its_pod_is_handed_on_and_counted_by_who_will_make_its_volume() {
    let mut unbound = claim();
    unbound["metadata"]["annotations"] = json!({"volume.kubernetes.io/selected-node": "n1"});
    unbound["spec"]["volumeName"] = json!(null);
    unbound["spec"]["resources"] = json!({"requests": {"storage": "5Gi"}});
    for (provisioner, counted) in [("ebs.csi.aws.com", 1), ("kubernetes.io/no-provisioner", 0)] {
        let mut context = context(&unbound, &disk(&json!({}), &json!(null)));
        let class = json!({"metadata": {"name": "fast"}, "volumeBindingMode": "WaitForFirstConsumer",
            "provisioner": provisioner});
        context.storage_class(&Tree::from(&class)).unwrap();
        // Twice is once.
        let twice = json!([data()[0], {"name": "e", "persistentVolumeClaim": {"claimName": "data"}}]);
        let wants = wants(&twice, &context);
        assert!(wants.holds.is_empty(), "{:?}", wants.holds);
        let [claim] = wants.claims.as_slice() else { panic!("{wants:?}") };
        assert_eq!((claim.node.as_deref(), &*claim.class), (Some("n1"), "fast"));
        assert_eq!(claim.request.map(|r| r.value()), Some(5 << 30));
        let ids: std::collections::BTreeSet<_> = wants.volumes.iter().map(|v| v.id.clone()).collect();
        assert_eq!(ids.len(), counted, "{provisioner}");
    }
}

#[test]
fn a_claim_made_for_the_pod_must_be_its_own() {
    let made = |owner: &str| {
        let mut claim = claim();
        claim["metadata"]["name"] = json!("db-0-scratch");
        claim["metadata"]["ownerReferences"] =
            json!([{"kind": "Pod", "name": "db-0", "uid": owner, "controller": true}]);
        context(&claim, &disk(&json!({}), &json!(null)))
    };
    let volumes = json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]);
    assert_eq!(wants(&volumes, &made("u1")).volumes.len(), 1);
    for (context, text) in [
        (made("u2"), "PVC shop/db-0-scratch was not created for pod shop/db-0 (pod is not owner)"),
        (
            Context::new(),
            r#"waiting for ephemeral volume controller to create the persistentvolumeclaim "db-0-scratch""#,
        ),
    ] {
        assert_eq!(wants(&volumes, &context).holds, [Hold::Claim(text.into())]);
    }
}

#[test]
fn disks_with_rules_of_their_own_conflict_as_they_always_did() {
    let read = |volume: Value| {
        let wants = wants(&json!([volume]), &Context::new());
        assert!(wants.holds.is_empty());
        wants.disks[0].clone()
    };
    let gce = |name: &str, ro: bool| {
        read(json!({"name": "d", "gcePersistentDisk": {"pdName": name, "readOnly": ro}}))
    };
    let aws =
        |name: &str| read(json!({"name": "d", "awsElasticBlockStore": {"volumeID": name, "readOnly": true}}));
    let iscsi = |name: &str, ro: bool| read(json!({"name": "d", "iscsi": {"iqn": name, "readOnly": ro}}));
    let rbd = |monitors: &[&str], image: &str, ro: bool| {
        read(json!({"name": "d", "rbd": {"monitors": monitors, "image": image, "readOnly": ro}}))
    };
    for (one, other, want, why) in [
        (gce("a", false), gce("a", true), true, "one writes"),
        (gce("a", true), gce("a", true), false, "both read"),
        (gce("a", false), gce("b", false), false, "another disk"),
        (gce("a", false), aws("a"), false, "another kind"),
        (aws("a"), aws("a"), true, "nobody shares these"),
        (iscsi("a", false), iscsi("a", false), true, "the same target"),
        (iscsi("a", true), iscsi("a", true), false, "both read"),
        (rbd(&["x", "y"], "i", false), rbd(&["y"], "i", true), true, "a monitor in common"),
        (rbd(&["x"], "i", false), rbd(&["y"], "i", false), false, "another cluster"),
        (rbd(&["x"], "i", false), rbd(&["x"], "j", false), false, "another image"),
        (rbd(&["x"], "i", true), rbd(&["x"], "i", true), false, "both read"),
    ] {
        assert_eq!(one.conflicts(&other), want, "{why}");
        assert_eq!(other.conflicts(&one), want, "{why}, the other way round");
    }
}

#[test]
fn a_volume_is_reached_where_its_affinity_and_its_zone_say() {
    const OLD: &str = "failure-domain.beta.kubernetes.io/zone";
    const NEW: &str = "topology.kubernetes.io/zone";
    const REGION: &str = "topology.kubernetes.io/region";
    let on = |host: &str| {
        json!({"nodeSelectorTerms": [{"matchExpressions":
        [{"key": "host", "operator": "In", "values": [host]}]}]})
    };
    let none = json!(null);
    for (why, volume, affinity, node, want) in [
        ("its host", json!({}), on("n1"), &[("host", "n1")][..], true),
        ("another host", json!({}), on("n1"), &[("host", "n2")], false),
        ("no terms", json!({}), json!({"nodeSelectorTerms": []}), &[("host", "n1")], false),
        ("its zone", json!({NEW: "a"}), none.clone(), &[(NEW, "a")], true),
        ("another zone", json!({NEW: "a"}), none.clone(), &[(NEW, "b")], false),
        ("one of several", json!({NEW: "a__b"}), none.clone(), &[(NEW, "b")], true),
        ("a cluster without zones", json!({NEW: "a"}), none.clone(), &[], true),
        ("a node with a region only", json!({NEW: "a"}), none.clone(), &[(REGION, "r")], false),
        ("zone and region", json!({NEW: "a", REGION: "r"}), none.clone(), &[(NEW, "a"), (REGION, "r")], true),
        ("zone without region", json!({NEW: "a", REGION: "r"}), none.clone(), &[(NEW, "a")], false),
        ("an old label, a new node", json!({OLD: "a"}), none.clone(), &[(NEW, "a")], true),
        ("an old label, an old node", json!({OLD: "a"}), none.clone(), &[(OLD, "a")], true),
        (
            "the old label of the node counts first",
            json!({OLD: "a"}),
            none.clone(),
            &[(OLD, "b"), (NEW, "a")],
            false,
        ),
        ("a new label, an old node", json!({NEW: "a"}), none.clone(), &[(OLD, "a")], false),
        ("nonsense is passed over", json!({NEW: "a____b"}), none.clone(), &[(NEW, "c")], true),
        ("both", json!({NEW: "a"}), on("n1"), &[(NEW, "a"), ("host", "n1")], true),
        ("zone but not host", json!({NEW: "a"}), on("n1"), &[(NEW, "a")], false),
        ("host but not zone", json!({NEW: "a"}), on("n1"), &[(NEW, "b"), ("host", "n1")], false),
        (
            "an empty term stays empty",
            json!({NEW: "a"}),
            json!({"nodeSelectorTerms": [{}]}),
            &[(NEW, "a")],
            false,
        ),
    ] {
        let wants = wants(&data(), &context(&claim(), &disk(&volume, &affinity)));
        assert_eq!(is_reached(&wants.volumes[0], &labels(node)), want, "{why}");
    }
}

fn is_reached(volume: &Volume, node: &BTreeMap<String, String>) -> bool {
    volume.reachable.matches("node", node) && volume.zones.matches("node", node)
}

const KEYS: [&str; 5] = [
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "host",
];

/// The rule, label by label.
fn reaches(volume: &BTreeMap<String, String>, host: Option<&str>, node: &BTreeMap<String, String>) -> bool {
    let (zones, host_key) = KEYS.split_at(4);
    let located = zones.iter().any(|key| node.contains_key(*key));
    let fits = |key: &str| {
        let Some(value) = volume.get(key) else { return true };
        let values: Vec<&str> = value.split("__").collect();
        let now = key.replace("failure-domain.beta", "topology");
        let there = node.get(key).or_else(|| node.get(&now));
        values.contains(&"") || there.is_some_and(|v| values.contains(&v.as_str()))
    };
    (!located || zones.iter().all(|key| fits(key)))
        && host.is_none_or(|host| node.get(host_key[0]).is_some_and(|v| v == host))
}

fn some_labels(values: &'static [&'static str]) -> impl Strategy<Value = BTreeMap<String, String>> {
    let key = proptest::sample::select(&KEYS).prop_map(str::to_owned);
    proptest::collection::btree_map(key, proptest::sample::select(values).prop_map(str::to_owned), 0..5)
}

proptest! {
    #[test]
    fn reach_is_what_the_rule_says_label_by_label(
        volume in some_labels(&["a", "b", "a__b", "b__", "-x"]),
        node in some_labels(&["a", "b", "c"]),
        host in proptest::option::of(proptest::sample::select(&["a", "b"][..])),
    ) {
        let affinity = host.map(|host| json!({"nodeSelectorTerms": [{}, {"matchExpressions":
            [{"key": "host", "operator": "In", "values": [host]}]}]}));
        let wants = wants(&data(), &context(&claim(), &disk(&json!(volume), &json!(affinity))));
        let got = is_reached(&wants.volumes[0], &node);
        prop_assert_eq!(got, reaches(&volume, host, &node));
    }
}

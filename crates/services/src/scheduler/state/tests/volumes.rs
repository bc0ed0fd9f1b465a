use super::*;
use crate::scheduler::extender::Ask;
use crate::scheduler::volumes::Provided;
use crate::scheduler::watched::{Claims, StorageClasses, Volumes};
use loadline_api::extender::Names;
use loadline_core::cluster::{Keep, Verdict};
use tokio::sync::oneshot;

const SELECTED: &str = "volume.kubernetes.io/selected-node";

pub(super) fn set_claim(value: &Value) -> Message {
    Message::Storage(StorageMessage::Claim(Event::Applied(meta(value), Claims::read(&Tree::from(value)))))
}

pub(super) fn set_volume(value: &Value) -> Message {
    Message::Storage(StorageMessage::Volume(Event::Applied(meta(value), Volumes::read(&Tree::from(value)))))
}

fn class(name: &str, provisioner: &str) -> Message {
    let value = json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    let read = StorageClasses::read(&Tree::from(&value));
    Message::Storage(StorageMessage::Class(Event::Applied(meta(&value), read)))
}

fn claim(name: &str, class: &str, revision: u64, more: Value) -> Value {
    let mut claim = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"),
            "resourceVersion": revision.to_string()},
        "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}},
    });
    merge(&mut claim, more);
    claim
}

fn volume(revision: u64, more: Value) -> Value {
    let mut volume = json!({
        "metadata": {"name": "v", "uid": "v", "resourceVersion": revision.to_string()},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}},
        "status": {"phase": "Available"},
    });
    merge(&mut volume, more);
    volume
}

fn uses(claim: &str) -> Value {
    json!({"spec": {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]}})
}

fn bound() -> Value {
    json!({"spec": {"volumeName": "v"}, "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}})
}

fn given(to: &str) -> Value {
    json!({"spec": {"claimRef": {"namespace": "default", "name": to, "uid": format!("uid-{to}")}}})
}

/// Two pods, each with a claim of its own, one volume and somebody who makes others.
fn two() -> State {
    let pods = [pod("a", 1, uses("ca")), pod("b", 2, uses("cb"))];
    let mut state = state_that(None, &[node("n1", "8"), node("n2", "4")], &pods);
    state.take_all(vec![
        class("local", "kubernetes.io/no-provisioner"),
        class("made", "disk.example.com"),
        set_claim(&claim("ca", "local", 3, json!({}))),
        set_claim(&claim("cb", "local", 4, json!({}))),
        set_volume(&volume(5, json!({}))),
    ]);
    state
}

fn provided(pod: Arc<Pending>, value: &Value) -> Outcome {
    let read = Volumes::read(&Tree::from(value));
    Outcome::Provided { pod, written: vec![Provided::Volume(meta(value), read)], failed: None }
}

fn taken(mut found: Vec<(String, Action)>) -> Arc<Pending> {
    match found.swap_remove(0).1 {
        Action::Provide { pod, .. } => pod,
        other => panic!("{other:?}"),
    }
}

const NONE: &str = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.";

#[tokio::test(start_paused = true)]
async fn one_volume_goes_to_one_pod_which_is_bound_once_the_claim_is() {
    let mut state = two();
    let found = actions(&mut state);
    let said: Vec<&str> = found.iter().map(|(words, _)| words.as_str()).collect();
    assert_eq!(said, ["a: 1 writes", &format!("b: {NONE}")]);
    let a = taken(found);
    state.done(provided(a, &volume(6, given("ca"))), now(1));
    assert!(words(&mut state).is_empty(), "the claim is not bound yet");
    state.take(set_claim(&claim("ca", "local", 7, bound())), now(2));
    assert_eq!(words(&mut state), ["a to n1"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_gives_the_volume_back() {
    let mut state = two();
    let a = taken(actions(&mut state));
    let failed = Some("v: conflict".to_owned());
    state.done(Outcome::Provided { pod: a, written: Vec::new(), failed }, now(1));
    tokio::time::advance(Duration::from_mins(1)).await;
    assert!(words(&mut state).contains(&"a: 1 writes".to_owned()), "it is tried again");
}

/// One pod waits for its volume, and was reserved the only one; the other was refused a second ago.
async fn one_refused() -> (State, Arc<Pending>) {
    let mut state = two();
    let mut found = actions(&mut state);
    let Some((_, Action::Refuse { pod, helps, .. })) = found.pop() else { panic!("{found:?}") };
    state.done(Outcome::Refused { pod, helps }, now(0));
    tokio::time::advance(Duration::from_secs(1)).await;
    (state, taken(found))
}

#[tokio::test(start_paused = true)]
async fn what_was_kept_for_a_pod_whose_volumes_do_not_come_is_anothers_at_once() {
    let (mut state, a) = one_refused().await;
    state.done(Outcome::Provided { pod: a, written: Vec::new(), failed: Some("v: conflict".into()) }, now(1));
    assert_eq!(words(&mut state), ["b: 1 writes"], "could not be written");

    let (mut state, a) = one_refused().await;
    state.done(Outcome::Provided { pod: a, written: Vec::new(), failed: None }, now(1));
    tokio::time::advance(Duration::from_secs(1)).await;
    state.take(Message::Node(Event::Deleted(meta(&node("n1", "8")))), now(2));
    let said = words(&mut state);
    assert!(said.contains(&"a: binding volumes: node \"n1\" is gone".to_owned()), "{said:?}");
    let told = |said: &[String]| said.iter().any(|words| words == "b: 1 writes");
    assert!(told(&said) || told(&words(&mut state)), "{said:?}");

    let (mut state, _) = one_refused().await;
    let mut going = pod("a", 9, uses("ca"));
    merge(&mut going, json!({"metadata": {"deletionTimestamp": stamp(1)}}));
    state.take(set_pod(&going), now(1));
    state.advance(now(1));
    assert_eq!(words(&mut state), ["b: 1 writes"], "on its way out");
}

#[tokio::test(start_paused = true)]
async fn volumes_that_do_not_come_are_not_waited_for_forever() {
    let mut state = two();
    let a = taken(actions(&mut state));
    state.done(provided(a, &volume(6, given("ca"))), now(1));
    tokio::time::advance(Duration::from_secs(599)).await;
    state.advance(now(599));
    assert!(!words(&mut state).iter().any(|w| w.starts_with("a:")));
    assert!(state.due(now(599)).is_some());
    tokio::time::advance(Duration::from_secs(2)).await;
    state.advance(now(601));
    assert!(
        words(&mut state).contains(&"a: binding volumes: timed out waiting for the condition".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_provisioner_that_gives_up_makes_the_pod_look_for_another_node() {
    let mut state = two();
    state.take(set_pod(&pod("c", 8, uses("cc"))), now(0));
    state.take(set_claim(&claim("cc", "made", 9, json!({}))), now(0));
    let mut found = actions(&mut state);
    let at = found.iter().position(|(words, _)| words == "c: 1 writes").expect("it has to be written");
    let Action::Provide { pod, .. } = found.swap_remove(at).1 else { panic!("it says so") };
    let chosen = claim("cc", "made", 10, json!({"metadata": {"annotations": {SELECTED: "n1"}}}));
    let read = Claims::read(&Tree::from(&chosen)).map(Box::new);
    let written = vec![Provided::Claim(meta(&chosen), read)];
    state.done(Outcome::Provided { pod, written, failed: None }, now(1));
    assert!(!words(&mut state).iter().any(|w| w.starts_with('c')));
    state.take(set_claim(&claim("cc", "made", 11, json!({}))), now(2));
    let said = words(&mut state);
    assert!(said.contains(&"c: binding volumes: provisioning failed for PVC \"cc\"".to_owned()), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_the_least_bad_node_is_still_known_when_the_volumes_have_come() {
    let mut profile = SchedulerProfile::new("patient", Some(line(0.6)));
    profile.when_overloaded = WhenOverloaded::LeastBad { after: SignedDuration::from_secs(20) };
    let mut asks = asking("a", "patient");
    merge(&mut asks, uses("ca"));
    let mut state = half_used(vec![profile], &[]);
    state.take_all(vec![
        class("local", "kubernetes.io/no-provisioner"),
        set_claim(&claim("ca", "local", 3, json!({}))),
        set_volume(&volume(5, json!({}))),
        set_pod(&asks),
    ]);
    let Some((_, Action::Refuse { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("5 + 2 is over 6, and it has not waited yet")
    };
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    tokio::time::advance(Duration::from_secs(20)).await;
    let Some(Action::Provide { pod, writes, .. }) = state.next(now(20)) else { panic!("volumes first") };
    assert_eq!(writes.len(), 1);
    state.done(provided(pod, &volume(6, given("ca"))), now(21));
    state.take(set_claim(&claim("ca", "local", 7, bound())), now(22));
    let Some(Action::Bind { node, remark, .. }) = state.next(now(22)) else { panic!("it has its volume") };
    assert_eq!(&*node, "n1");
    assert_eq!(
        remark.as_deref(),
        Some("every node was over its load limits for 20 s; this one is over by least, 10% of it"),
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_goes_while_it_waits_gives_its_volume_back() {
    let mut state = two();
    taken(actions(&mut state));
    state.take(delete_pod(&pod("a", 1, uses("ca"))), now(1));
    state.advance(now(1));
    state.take(set_pod(&pod("d", 12, uses("cb"))), now(2));
    assert_eq!(words(&mut state), ["d: 1 writes"]);
}

/// Does another scheduler hear that the pod may go to a node? It is taken to be on its way for ten seconds.
fn may_go(state: &mut State, value: &Value, to: &str, second: i64) -> bool {
    let (reply, mut answer) = oneshot::channel();
    let mut names = Names::default();
    names.push(to);
    let (pod, _) = loadline_api::pod::read(&Tree::from(value)).unwrap();
    let (pod, keep, reserve_for) = (Box::new(pod), Keep::All, Duration::from_secs(10));
    state.answer(Ask::Filter { pod, names, keep, reserve_for, reply }, now(second));
    let (_, verdicts, _) = answer.try_recv().unwrap().unwrap();
    verdicts == [Verdict::Passes]
}

#[tokio::test(start_paused = true)]
async fn a_pod_another_scheduler_has_volumes_made_for_is_on_its_way_for_as_long_as_that_takes() {
    let chosen = json!({"metadata": {"annotations": {SELECTED: "n1"}}});
    let elsewhere = json!({"metadata": {"annotations": {SELECTED: "n2"}}});
    let table = [
        (json!({}), 0, "nobody has said where it goes"),
        (chosen.clone(), 1, "its volume is being made for the node"),
        (elsewhere, 0, "nobody was told that it may go there"),
    ];
    for (more, expected, why) in table {
        // Of 8 CPUs under the line 5 are used: room for one pod of two.
        let mut state = half_used(vec![SchedulerProfile::new("ours", Some(line(0.8)))], &[]);
        state.take_all(vec![
            set_node(&node("n2", "10")),
            class("made", "disk.example.com"),
            set_claim(&claim("ca", "made", 3, json!({}))),
        ]);
        let mut a = asking("a", "another");
        merge(&mut a, uses("ca"));
        let b = asking("b", "another");
        assert!(may_go(&mut state, &a, "n1", 0));
        state.take(set_claim(&claim("ca", "made", 4, more)), now(1));
        state.advance(now(11));
        assert_eq!(state.tentative(), expected, "{why}");
        assert_eq!(may_go(&mut state, &b, "n1", 11), expected == 0, "{why}");
        if expected == 1 {
            assert!(may_go(&mut state, &a, "n1", 12), "asked again, its own charge is not in its way");
            state.take(set_claim(&claim("ca", "made", 5, chosen.clone())), now(13));
            state.advance(now(612));
            assert_eq!(state.tentative(), 1);
            state.advance(now(614));
            assert_eq!(state.tentative(), 0, "nobody waits longer than kube-scheduler does");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pods_on_nodes_count_with_volumes_that_are_heard_of_later() {
    let limit = |count: i64| {
        let value = json!({"metadata": {"name": "n1", "uid": "n1", "resourceVersion": count.to_string()},
            "spec": {"drivers": [{"name": "disk", "allocatable": {"count": count}}]}});
        let read = crate::scheduler::watched::CsiNodes::read(&Tree::from(&value));
        Message::CsiNode(Event::Applied(meta(&value), read))
    };
    let there =
        pod("there", 1, json!({"spec": {"nodeName": "n1", "volumes": uses("ca")["spec"]["volumes"]}}));
    let mut state = state_that(None, &[], &[there]);
    let source = |of: &str, handle: &str| {
        json!({"spec": {"csi": {"driver": "disk", "volumeHandle": handle},
        "claimRef": given(of)["spec"]["claimRef"]}})
    };
    let mut second = volume(7, source("cb", "2"));
    second["metadata"] = json!({"name": "w", "uid": "w", "resourceVersion": "7"});
    let mut other = claim("cb", "local", 8, bound());
    other["spec"]["volumeName"] = json!("w");
    state.take_all(vec![
        set_node(&node("n1", "8")),
        limit(1),
        set_volume(&volume(5, source("ca", "1"))),
        set_claim(&claim("ca", "local", 6, bound())),
        set_volume(&second),
        set_claim(&other),
        set_pod(&pod("b", 9, uses("cb"))),
    ]);
    assert_eq!(words(&mut state), ["b: 0/1 nodes are available: 1 node(s) exceed max volume count."]);
    state.take(set_pod(&pod("c", 10, uses("cb"))), now(1));
    state.take(limit(2), now(1));
    assert_eq!(words(&mut state), ["c to n1"], "the driver can attach more by now");
}

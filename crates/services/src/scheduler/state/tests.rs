mod lines;
mod moved;
mod room;
mod volumes;

use super::*;
use crate::cluster::testing::meta;
use crate::cluster::{Event, Watched};
use crate::scheduler::execute::Outcome;
use crate::scheduler::watched::{
    AdviceMessage, Budgets, Message, Nodes, Pods, ReplicaSets, Services, StorageMessage,
};
use crate::sources::metrics_api::Measured;
use jiff::SignedDuration;
use loadline_api::json::Tree;
use loadline_api::node::COOLING;
use loadline_api::owners::Workload;
use loadline_api::scheduler::{SchedulerProfile, WhenOverloaded};
use loadline_core::ledger::Sample;
use loadline_core::load::policy::Policy;
use loadline_core::load::publish;
use loadline_core::load::ratio::Ratio;
use loadline_core::load::settings::Settings;
use loadline_core::load::{Both, Load};
use serde_json::{Value, json};

fn now(second: i64) -> Now {
    Now { clock: Timestamp::from_second(1_700_000_000 + second).expect("small"), at: Instant::now() }
}

fn stamp(second: i64) -> String {
    now(second).clock.to_string()
}

fn set_node(value: &Value) -> Message {
    Message::Node(Event::Applied(meta(value), Nodes::read(&Tree::from(value))))
}

fn set_pod(value: &Value) -> Message {
    Message::Pod(Event::Applied(meta(value), Pods::read(&Tree::from(value))))
}

fn delete_pod(value: &Value) -> Message {
    Message::Pod(Event::Deleted(meta(value)))
}

fn node(name: &str, cpu: &str) -> Value {
    let has = json!({"cpu": cpu, "memory": "64Gi", "pods": "110"});
    json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "status": {"allocatable": has, "capacity": has},
    })
}

/// A pod as its creator wrote it; `more` is put on top.
fn pod(name: &str, revision: u64, more: Value) -> Value {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"), "generation": 1,
            "resourceVersion": revision.to_string(), "creationTimestamp": stamp(0),
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        },
        "status": {"phase": "Pending"},
    });
    merge(&mut pod, more);
    pod
}

fn merge(to: &mut Value, from: Value) {
    match (to, from) {
        (Value::Object(to), Value::Object(from)) => {
            for (key, value) in from {
                merge(to.entry(key).or_insert(Value::Null), value);
            }
        }
        (to, from) => *to = from,
    }
}

fn on(node: &str) -> Value {
    json!({"spec": {"nodeName": node}})
}

fn measured(second: i64, nodes: &[(&str, &str)]) -> Message {
    let sample = |(name, cpu): &(&str, &str)| {
        let value = json!({
            "metadata": {"name": name}, "timestamp": stamp(second), "window": "5s",
            "usage": {"cpu": cpu, "memory": "1Gi"},
        });
        loadline_api::metrics::node(&Tree::from(&value)).expect("a measurement")
    };
    Message::Measured(Ok(Measured {
        nodes: nodes.iter().map(sample).collect(),
        pods: Vec::new(),
        ..Measured::default()
    }))
}

/// A list of one kind.
fn list<T>(wrap: fn(Event<T>) -> Message, items: Vec<Message>) -> Vec<Message> {
    let mut all = vec![wrap(Event::ListStarted)];
    all.extend(items);
    all.push(wrap(Event::Listed(None)));
    all
}

/// The first list of everything but nodes and pods, which there is none of.
fn others() -> Vec<Message> {
    [
        list(Message::Namespace, Vec::new()),
        list(Message::PriorityClass, Vec::new()),
        list(|event| Message::Storage(StorageMessage::Claim(event)), Vec::new()),
        list(|event| Message::Storage(StorageMessage::Volume(event)), Vec::new()),
        list(|event| Message::Storage(StorageMessage::Class(event)), Vec::new()),
        list(Message::CsiNode, Vec::new()),
        list(|event| Message::Storage(StorageMessage::Driver(event)), Vec::new()),
        list(|event| Message::Storage(StorageMessage::Capacity(event)), Vec::new()),
        list(Message::Budget, Vec::new()),
        list(Message::Service, Vec::new()),
        list(controllers, Vec::new()),
        list(replica_sets, Vec::new()),
        list(stateful_sets, Vec::new()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn controllers(event: Event<Workload>) -> Message {
    Message::Advice(AdviceMessage::ReplicationController(event))
}

fn replica_sets(event: Event<Workload>) -> Message {
    Message::Advice(AdviceMessage::ReplicaSet(event))
}

fn stateful_sets(event: Event<Workload>) -> Message {
    Message::Advice(AdviceMessage::StatefulSet(event))
}

impl State {
    fn take_all(&mut self, messages: Vec<Message>) {
        for message in messages {
            self.take(message, now(0));
        }
    }
}

fn empty(rules: Option<&Rules>) -> State {
    let profiles = ["default-scheduler", "loadline"].map(|name| SchedulerProfile::new(name, rules.cloned()));
    State::new(&Configuration { profiles: profiles.into(), ..Configuration::default() }, now(0))
}

/// A state that has taken in the first list of everything; these are there.
fn state(nodes: &[Value], pods: &[Value]) -> State {
    state_that(Some(&Rules::default()), nodes, pods)
}

/// The same; looks at load if there are rules.
fn state_that(rules: Option<&Rules>, nodes: &[Value], pods: &[Value]) -> State {
    let mut state = empty(rules);
    state.take_all(others());
    state.take_all(list(Message::Node, nodes.iter().map(set_node).collect()));
    state.take_all(list(Message::Pod, pods.iter().map(set_pod).collect()));
    state
}

/// Every action there is now, in short: `a to n1`, `a: why not`.
fn actions(state: &mut State) -> Vec<(String, Action)> {
    let short = |action: &Action| match action {
        Action::Bind { pod, node, .. } => format!("{} to {node}", pod.meta.key.name),
        Action::Provide { pod, writes, .. } => format!("{}: {} writes", pod.meta.key.name, writes.len()),
        Action::Refuse { pod, why, .. } => format!("{}: {}", pod.meta.key.name, why.text),
        Action::Preempt { pod, node, victims, .. } => {
            let victims: Vec<&str> = victims.iter().map(|victim| &*victim.key.name).collect();
            format!("{} in place of {} on {node}", pod.meta.key.name, victims.join(", "))
        }
    };
    std::iter::from_fn(|| state.next(now(0))).map(|action| (short(&action), action)).collect()
}

fn words(state: &mut State) -> Vec<String> {
    actions(state).into_iter().map(|(words, _)| words).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_decided_before_everything_is_known() {
    let mut state = empty(Some(&Rules::default()));
    state.take_all(list(Message::Node, vec![set_node(&node("n1", "8"))]));
    state.take_all(list(Message::Pod, vec![set_pod(&pod("a", 1, json!({})))]));
    assert!(words(&mut state).is_empty());
    state.take_all(others());
    assert_eq!(words(&mut state), ["a to n1"]);
    // Nor while a list replaces what is known.
    state.take(set_pod(&pod("b", 2, json!({}))), now(0));
    state.take(Message::Node(Event::ListStarted), now(0));
    assert!(words(&mut state).is_empty(), "n1 may be gone");
    state.take(Message::Node(Event::Failed("listing nodes: away".into())), now(0));
    assert_eq!(words(&mut state), ["b to n1"], "a list that does not get on holds nothing back");
}

/// Two nodes; by what is free a pod would go to n1, where another one like it is already.
fn uneven() -> (State, Value) {
    let named = |name: &str, cpu: &str| {
        let mut node = node(name, cpu);
        merge(&mut node, json!({"metadata": {"labels": {"kubernetes.io/hostname": name}}}));
        node
    };
    let web = json!({"metadata": {"labels": {"app": "web"}}});
    let mut there = pod("there", 1, web.clone());
    merge(&mut there, on("n1"));
    (state_that(None, &[named("n1", "32"), named("n2", "16")], &[there]), web)
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_service_are_spread_while_it_is_there() {
    let (mut state, web) = uneven();
    let service = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "s", "resourceVersion": "5"},
        "spec": {"selector": {"app": "web"}},
    });
    let set = Message::Service(Event::Applied(meta(&service), Services::read(&Tree::from(&service))));
    state.take(set, now(0));
    state.take(set_pod(&pod("a", 6, web.clone())), now(0));
    assert_eq!(words(&mut state), ["a to n2"]);
    let (mut state, web) = uneven();
    state.take(
        Message::Service(Event::Applied(meta(&service), Services::read(&Tree::from(&service)))),
        now(0),
    );
    state.take(Message::Service(Event::Deleted(meta(&service))), now(0));
    state.take(set_pod(&pod("a", 6, web)), now(0));
    assert_eq!(words(&mut state), ["a to n1"]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_replica_set_are_spread_while_it_is_there() {
    let set = json!({
        "metadata": {"name": "web-1", "namespace": "default", "uid": "r", "resourceVersion": "5"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": true});
    for (gone, want, why) in [(false, "a to n2", "spread"), (true, "a to n1", "by what is free")] {
        let (mut state, web) = uneven();
        state.take(replica_sets(Event::Applied(meta(&set), ReplicaSets::read(&Tree::from(&set)))), now(0));
        if gone {
            state.take(replica_sets(Event::Deleted(meta(&set))), now(0));
        }
        let mut pod = pod("a", 6, web);
        pod["metadata"]["ownerReferences"] = json!([owner]);
        state.take(set_pod(&pod), now(0));
        assert_eq!(words(&mut state), [want], "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_the_image_is_preferred() {
    let (mut state, _) = uneven();
    let mut second = node("n2", "16");
    merge(
        &mut second,
        json!({"metadata": {"resourceVersion": "2"},
            "status": {"images": [{"names": ["db:2"], "sizeBytes": 3_000_000_000i64}]}}),
    );
    state.take(set_node(&second), now(0));
    let image = json!({"spec": {"containers": [{"name": "c", "image": "db:2"}]}});
    state.take(set_pod(&pod("a", 3, image)), now(0));
    assert_eq!(words(&mut state), ["a to n2"]);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_read_services_and_workloads_schedules_without() {
    let mut state = empty(None);
    let [services, workloads] = ["services", "replicationcontrollers"];
    let needed =
        others().into_iter().filter(|message| !matches!(message, Message::Service(_) | Message::Advice(_)));
    state.take_all(needed.collect());
    state.take_all(list(Message::Node, vec![set_node(&node("n1", "8"))]));
    state.take_all(list(Message::Pod, vec![set_pod(&pod("a", 1, json!({})))]));
    state.take(Message::Service(Event::Failed(services.into())), now(0));
    for kind in [controllers, replica_sets, stateful_sets] {
        assert!(words(&mut state).is_empty(), "they may come yet");
        state.take(kind(Event::Forbidden(workloads.into())), now(0));
    }
    assert!(words(&mut state).is_empty(), "services may come yet");
    state.take(Message::Service(Event::Forbidden(services.into())), now(0));
    assert_eq!(words(&mut state), ["a to n1"]);
}

#[tokio::test(start_paused = true)]
async fn only_pods_that_are_free_and_ours_are_given_a_node() {
    let table = [
        (json!({}), true, "a new pod"),
        (json!({"spec": {"schedulerName": "loadline"}}), true, "a pod that asks for us"),
        (json!({"spec": {"schedulerName": "other"}}), false, "somebody else's"),
        (on("n1"), false, "it has one already"),
        (json!({"spec": {"schedulingGates": [{"name": "g"}]}}), false, "held back"),
        (json!({"status": {"phase": "Failed"}}), false, "over"),
        (json!({"metadata": {"deletionTimestamp": stamp(0)}}), false, "on its way out"),
    ];
    for (more, expected, why) in table {
        let mut state = state(&[node("n1", "8")], &[pod("a", 1, more)]);
        assert_eq!(!words(&mut state).is_empty(), expected, "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn gated_pods_are_counted_until_they_are_let_go_or_gone_and_only_ours() {
    let gated = |name: &str, revision, scheduler: &str| {
        let gates = json!({"spec": {"schedulerName": scheduler, "schedulingGates": [{"name": "g"}]}});
        pod(name, revision, gates)
    };
    let pods = [gated("a", 1, "loadline"), gated("b", 1, "loadline"), gated("c", 1, "another")];
    let mut state = state(&[node("n1", "8")], &pods);
    assert_eq!(state.queues(), [0, 0, 0, 2]);
    state.take(set_pod(&pods[0]), now(0));
    assert_eq!(state.queues(), [0, 0, 0, 2], "told again, counted once");
    state.take(set_pod(&pod("a", 2, json!({"spec": {"schedulerName": "loadline"}}))), now(0));
    assert_eq!(state.queues(), [1, 0, 0, 1]);
    state.take(delete_pod(&pods[1]), now(0));
    assert_eq!(state.queues(), [1, 0, 0, 0]);
    state.configure(&configuration(vec![SchedulerProfile::new("another", None)]), now(1));
    assert_eq!(state.queues(), [0, 0, 0, 1], "now it is ours, and a is not");
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_goes_lets_those_try_again_who_wait_for_a_victim() {
    let budget = json!({"metadata": {"name": "keep", "namespace": "default", "uid": "keep", "resourceVersion": "1"},
        "spec": {"selector": {}}, "status": {"disruptionsAllowed": 0}});
    let set =
        |budget: &Value| Message::Budget(Event::Applied(meta(budget), Budgets::read(&Tree::from(budget))));
    let important = json!({"spec": {"priority": 1000}});
    let pods = vec![pod("lesser", 1, on("n1")), pod("important", 2, important)];
    let mut state = state_that(None, &[node("n1", "1")], &pods);
    state.take(set(&budget), now(0));
    let Some((_, Action::Preempt { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("with nobody else to go, it is asked for all the same")
    };
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    tokio::time::advance(Duration::from_secs(1)).await;
    state.take(set(&budget), now(1));
    assert_eq!(words(&mut state), Vec::<String>::new(), "the same again is no news");
    state.take(Message::Budget(Event::Deleted(meta(&budget))), now(1));
    assert_eq!(words(&mut state), ["important in place of lesser on n1"]);
}

#[tokio::test(start_paused = true)]
async fn a_hot_node_is_avoided_though_it_has_the_most_free_requests() {
    let mut state = state(&[node("large", "32"), node("small", "8")], &[]);
    state.take(measured(0, &[("large", "24"), ("small", "100m")]), now(0));
    state.take(set_pod(&pod("a", 1, json!({}))), now(0));
    assert_eq!(words(&mut state), ["a to small"], "24 of 32 CPUs are over 65 %");
    let notices = state.notices();
    let told = |from: &str| notices.iter().find(|(who, ..)| *who == from).map(|(.., what)| what.clone());
    assert_eq!(told("node").as_deref(), Some("hot, 75% cpu over its target 65%"));
    let words = told("scheduler").unwrap();
    assert!(words.starts_with("to small, load score ") && words.contains("large avoided: "), "{words}");

    let mut blind = state_that(None, &[node("large", "32"), node("small", "8")], &[pod("b", 2, json!({}))]);
    blind.take(measured(0, &[("large", "24"), ("small", "100m")]), now(0));
    assert_eq!(self::words(&mut blind), ["b to large"], "by requests alone it would be taken");
}

#[tokio::test(start_paused = true)]
async fn a_bind_that_failed_leaves_no_charge_and_loses_no_pod() {
    // 65 % of 2 CPUs is room for one pod of 1 CPU.
    let mut state = state(&[node("n1", "2")], &[pod("a", 1, json!({}))]);
    let (first, act) = actions(&mut state).pop().unwrap();
    assert_eq!(first, "a to n1");
    let Action::Bind { pod: held, .. } = act else { panic!("bound") };
    state.take(set_pod(&pod("b", 2, json!({}))), now(0));
    assert_eq!(words(&mut state), ["b: 0/1 nodes are available: 1 node(s) would pass the load line."]);
    state.done(Outcome::Unbound { pod: held.clone(), now: None }, now(0));
    state.take(set_pod(&pod("c", 3, json!({}))), now(0));
    assert_eq!(words(&mut state), ["c to n1"], "the room is free again");
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    assert_eq!(words(&mut state).len(), 1, "the first is tried again");
}

#[tokio::test(start_paused = true)]
async fn a_bind_whose_answer_was_lost_counts_once() {
    let mut state = state(&[node("n1", "4")], &[pod("a", 1, json!({}))]);
    let Some((_, Action::Bind { pod: held, .. })) = actions(&mut state).pop() else { panic!("bound") };
    // Somebody else was faster, as the server says.
    let bound = pod("a", 5, on("n1"));
    let answer = Some(Box::new((meta(&bound), Pods::read(&Tree::from(&bound)))));
    state.done(Outcome::Unbound { pod: held, now: answer }, now(0));
    // What the watch still has to say about the time before changes nothing.
    state.take(set_pod(&pod("a", 2, json!({}))), now(0));
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    assert!(words(&mut state).is_empty(), "it has a node");
    // 65 % of 4 CPUs are 2.6: room for one more pod, not for two.
    for name in ["b", "c"] {
        state.take(set_pod(&pod(name, 6, json!({}))), now(0));
    }
    let words = words(&mut state);
    assert!(words[0] == "b to n1" && words[1].starts_with("c: "), "{words:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_after_a_lost_watch_sets_everything_right() {
    let mut state = state(&[node("n1", "2")], &[pod("gone", 1, on("n1")), pod("waits", 2, json!({}))]);
    let Some((_, Action::Refuse { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("refused")
    };
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    assert_eq!(state.unschedulable(), 1);
    state.take_all(list(Message::Pod, vec![set_pod(&pod("waits", 2, json!({})))]));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(words(&mut state), ["waits to n1"], "who is not in the list is gone");
    state.take_all(list(Message::Pod, vec![set_pod(&pod("waits", 9, on("n1")))]));
    assert_eq!(state.unschedulable(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_its_claim_and_is_read_again_when_that_comes() {
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    let mut state = state(&[node("n1", "8")], &[pod("a", 1, json!({"spec": {"volumes": volumes}}))]);
    let Some((words, Action::Refuse { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("refused")
    };
    assert!(words.contains("data"), "{words}");
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    let disk = json!({"metadata": {"name": "disk"}, "spec": {}});
    state.take(volumes::set_volume(&disk), now(0));
    let claim = json!({
        "metadata": {"name": "data", "namespace": "default", "uid": "data"},
        "spec": {"volumeName": "disk"}, "status": {"phase": "Bound"},
    });
    state.take(volumes::set_claim(&claim), now(0));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(self::words(&mut state), ["a to n1"]);
}

#[tokio::test(start_paused = true)]
async fn a_more_important_pod_takes_the_place_of_a_lesser_one_if_nothing_else_helps() {
    let important = |revision, more| {
        let mut important = json!({"spec": {"priority": 1000}});
        merge(&mut important, more);
        pod("important", revision, important)
    };
    // Requests fill the node; nothing measured says that its load would not fit.
    let pods = vec![pod("lesser", 1, on("n1")), important(2, json!({}))];
    let mut state = state_that(None, &[node("n1", "1")], &pods);
    let Some((words, Action::Preempt { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("preempts")
    };
    assert_eq!(words, "important in place of lesser on n1");
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    let nominated = important(3, json!({"status": {"nominatedNodeName": "n1"}}));
    state.take(set_pod(&nominated), now(0));
    state.take(delete_pod(&pod("lesser", 4, json!({}))), now(0));
    state.take(set_pod(&pod("late", 5, json!({}))), now(0));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let words = self::words(&mut state);
    assert!(words[0] == "important to n1" && words[1].starts_with("late: "), "{words:?}");
}

#[tokio::test(start_paused = true)]
async fn a_victim_is_not_sent_back_while_its_node_cools_and_may_be_after() {
    let cools = |revision: u64, until: Value| {
        let mut value = node("n1", "32");
        value["metadata"]["annotations"] = json!({COOLING: until});
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        value
    };
    let mut state = state(&[node("n1", "32"), node("n2", "4")], &[pod("victim", 1, on("n1"))]);
    // The mark is there before the victim goes, and its successor comes at once.
    state.take(set_node(&cools(2, json!(stamp(60)))), now(0));
    state.take(delete_pod(&pod("victim", 3, json!({}))), now(0));
    state.take(set_pod(&pod("successor", 4, json!({}))), now(0));
    assert_eq!(words(&mut state), ["successor to n2"], "n1 has more room, but cools");
    let (.., told) = state.notices().remove(0);
    assert!(told.starts_with("to n2, ") && told.contains("n1 avoided: "), "{told}");

    let only = json!({"spec": {"nodeSelector": {"only": "n1"}}});
    let mut marked = cools(5, json!(stamp(60)));
    marked["metadata"]["labels"] = json!({"only": "n1"});
    state.take(set_node(&marked), now(0));
    state.take(set_pod(&pod("stubborn", 6, only)), now(0));
    let (words, Action::Refuse { pod: held, helps, .. }) = actions(&mut state).remove(0) else {
        panic!("refused")
    };
    assert!(words.contains("1 node(s) were cooling down"), "{words}");
    state.done(Outcome::Refused { pod: held, helps }, now(0));

    tokio::time::advance(std::time::Duration::from_secs(59)).await;
    state.advance(now(59));
    let Some(Action::Refuse { pod: held, helps, .. }) = state.next(now(59)) else { panic!("it still cools") };
    state.done(Outcome::Refused { pod: held, helps }, now(59));
    assert!(helps.load, "time alone will help");
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    state.advance(now(61));
    let Some(Action::Bind { pod: bound, node, .. }) = state.next(now(61)) else { panic!("bound") };
    assert_eq!((&*bound.meta.key.name, &*node), ("stubborn", "n1"), "it has cooled");
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_is_no_time_or_is_over_keeps_nobody_away() {
    for mark in [json!("soon"), json!(""), json!(stamp(-1))] {
        let mut marked = node("n1", "8");
        marked["metadata"]["annotations"] = json!({COOLING: mark});
        let mut state = state(&[marked], &[pod("a", 1, json!({}))]);
        assert_eq!(words(&mut state), ["a to n1"], "{mark}");
    }
}

#[test]
fn annotations_of_another_policy_are_noticed() {
    let mut state = empty(Some(&Rules::default()));
    let ours = publish::fingerprint(&Rules::default());
    let annotated = |name: &str, revision: u64, policy: Option<&str>| {
        let mut node = node(name, "4");
        node["metadata"]["resourceVersion"] = json!(revision.to_string());
        node["metadata"]["annotations"] = json!(policy.map(|text| json!({publish::POLICY: text})));
        node
    };
    for (step, (value, foreign)) in [
        (annotated("a", 1, None), 0),
        (annotated("a", 2, Some(&ours)), 0),
        (annotated("a", 3, Some("another")), 1),
        (annotated("b", 4, Some("another")), 2),
        (annotated("b", 5, Some("another")), 2),
        (annotated("a", 6, Some(&ours)), 1),
    ]
    .into_iter()
    .enumerate()
    {
        state.take(set_node(&value), now(1));
        assert_eq!(state.foreign(), foreign, "step {step}");
    }
    state.take(Message::Node(Event::Deleted(meta(&annotated("b", 7, None)))), now(2));
    assert_eq!(state.foreign(), 0, "it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_only_annotated_wakes_nobody_but_those_who_wait_for_load() {
    // Too large for the node, whatever its load.
    let large = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}});
    let mut state = state(&[node("n", "1")], &[pod("large", 5, large)]);
    let Some((_, Action::Refuse { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("refused")
    };
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let mut annotated = node("n", "1");
    annotated["metadata"]["resourceVersion"] = json!("6");
    annotated["metadata"]["annotations"] = json!({"cpu_usage_avg_5m": "0.10000,2023-11-14T22:13:20Z"});
    state.take(set_node(&annotated), now(1));
    assert!(words(&mut state).is_empty(), "an annotation makes no room");
    let mut larger = node("n", "8");
    larger["metadata"]["resourceVersion"] = json!("7");
    state.take(set_node(&larger), now(2));
    assert_eq!(words(&mut state), ["large to n"], "more CPUs do");
}

#[tokio::test(start_paused = true)]
async fn load_that_fell_as_an_annotation_says_wakes_who_waits_for_it() {
    let annotated = |revision: u64, used: &str| {
        let mut node = node("n", "8");
        node["metadata"]["resourceVersion"] = json!(revision.to_string());
        node["metadata"]["annotations"] = json!({"cpu_usage_avg_5m": format!("{used},{}", stamp(0))});
        node
    };
    for (used, expected, why) in
        [("0.10000", true, "it fell"), ("0.80000", false, "it is over its limit still")]
    {
        let mut state = state(&[annotated(1, "0.90000")], &[pod("a", 5, json!({}))]);
        let (held, helps) = refused(&mut state);
        assert!(helps.load);
        state.done(Outcome::Refused { pod: held, helps }, now(0));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(words(&mut state).is_empty(), "nothing has happened");
        state.take(set_node(&annotated(6, used)), now(1));
        assert_eq!(words(&mut state).contains(&"a to n".to_owned()), expected, "{why}");
    }
}

/// Rules with a line of that share of CPU.
fn line(cpu: f64) -> Rules {
    let targets = Both { cpu: Ratio::from_f64(cpu), memory: None };
    let settings = Settings { targets, ..Settings::default() };
    Rules::new(Policy::default(), settings).expect("good rules").0
}

fn configuration(profiles: Vec<SchedulerProfile>) -> Configuration {
    Configuration { profiles, ..Configuration::default() }
}

fn sample(node: &str, second: i64, cpu_milli: i64) -> (String, Sample) {
    let (at, window) = (now(second).clock, SignedDuration::from_secs(15));
    (node.to_owned(), Sample { at, window, usage: Load::new(cpu_milli * 1_000_000, 1 << 30) })
}

/// One node of ten CPUs of which five are used, and these profiles.
fn half_used(profiles: Vec<SchedulerProfile>, pods: &[Value]) -> State {
    let mut state = State::new(&configuration(profiles), now(0));
    state.take_all(others());
    state.take_all(list(Message::Node, vec![set_node(&node("n1", "10"))]));
    let measured = Measured { nodes: vec![sample("n1", 0, 5000)], ..Measured::default() };
    state.take(Message::Measured(Ok(measured)), now(0));
    state.take_all(list(Message::Pod, pods.iter().map(set_pod).collect()));
    state
}

/// A pod that asks for two CPUs from a scheduler.
fn asking(name: &str, scheduler: &str) -> Value {
    let asks = json!([{"name": "c", "resources": {"requests": {"cpu": "2"}}}]);
    pod(name, 1, json!({"spec": {"schedulerName": scheduler, "containers": asks}}))
}

#[tokio::test(start_paused = true)]
async fn each_name_has_rules_of_its_own_and_strangers_are_left_alone() {
    let profiles = vec![
        SchedulerProfile::new("strict", Some(line(0.6))),
        SchedulerProfile::new("lenient", Some(line(0.8))),
    ];
    let pods = [asking("a", "strict"), asking("b", "lenient"), asking("c", "another")];
    let mut state = half_used(profiles, &pods);
    assert_eq!(
        words(&mut state),
        ["a: 0/1 nodes are available: 1 node(s) would pass the load line.", "b to n1"],
        "5 + 2 is over 6 and not over 8; c is none of ours"
    );
}

#[tokio::test(start_paused = true)]
async fn another_configuration_holds_for_pods_that_wait_already() {
    let mut state = half_used(
        vec![SchedulerProfile::new("strict", Some(line(0.6)))],
        &[asking("a", "strict"), asking("b", "lenient")],
    );
    let Some((_, Action::Refuse { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("5 + 2 is over 6")
    };
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    assert!(words(&mut state).is_empty(), "b is nobody's");
    tokio::time::advance(Duration::from_secs(1)).await;
    state.configure(&configuration(vec![SchedulerProfile::new("lenient", Some(line(0.8)))]), now(1));
    assert_eq!(words(&mut state), ["b to n1"], "now b is ours and a is not");
    state.configure(&configuration(vec![SchedulerProfile::new("strict", None)]), now(1));
    assert_eq!(words(&mut state), ["a to n1"], "and by requests alone there is room");
}

#[tokio::test(start_paused = true)]
async fn which_nodes_are_hot_is_said_by_the_targets_in_force_at_once() {
    let profile = |share: Option<f64>| configuration(vec![SchedulerProfile::new("ours", share.map(line))]);
    let mut state = half_used(profile(Some(0.4)).profiles, &[]);
    let hot = |state: &State| state.heat().map(|heat| (heat.hot(), heat.node_seconds()));
    assert_eq!(hot(&state), Some((1, 15)), "5 of 10 are over 0.4");
    state.configure(&profile(Some(0.9)), now(1));
    assert_eq!(hot(&state), Some((0, 15)), "and not over 0.9; what was is not undone");
    state.configure(&profile(None), now(2));
    assert_eq!(hot(&state), None, "nobody looks");
    state.configure(&profile(Some(0.4)), now(3));
    let measured = Measured { nodes: vec![sample("n1", 15, 5000)], ..Measured::default() };
    state.take(Message::Measured(Ok(measured)), now(15));
    assert_eq!(hot(&state), Some((1, 15)), "nodes that were known before are looked at");
}

#[tokio::test(start_paused = true)]
async fn when_every_node_is_over_its_line_the_least_bad_is_taken_after_a_while_if_that_is_wanted() {
    let after = SignedDuration::from_secs(20);
    let mut profile = SchedulerProfile::new("patient", Some(line(0.6)));
    profile.when_overloaded = WhenOverloaded::LeastBad { after };
    let mut state = half_used(vec![profile], &[asking("a", "patient")]);
    let Some((_, Action::Refuse { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("5 + 2 is over 6, and it has not waited yet")
    };
    let start = Instant::now();
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    assert_eq!(state.due(now(0)).map(|due| due - start), Some(Duration::from_secs(20)), "not after 30 s");
    tokio::time::advance(Duration::from_secs(19)).await;
    assert!(words(&mut state).is_empty());
    tokio::time::advance(Duration::from_secs(1)).await;
    let Some(Action::Bind { node, remark, .. }) = state.next(now(20)) else { panic!("it goes somewhere") };
    assert_eq!(&*node, "n1");
    assert_eq!(
        remark.as_deref(),
        Some("every node was over its load limits for 20 s; this one is over by least, 10% of it"),
        "5 + 2 − 6 is one CPU of ten"
    );
}

#[tokio::test(start_paused = true)]
async fn many_that_wait_are_not_all_told_again_whenever_the_words_change() {
    let told = |words: Option<&str>| {
        let condition =
            words.map(|message| json!({"type": "PodScheduled", "status": "False", "message": message}));
        json!({"spec": {"nodeSelector": {"there": "is none"}}, "status": {"conditions": Vec::from_iter(condition)}})
    };
    let now = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
    for (before, expected, why) in [
        (None, 150, "the first time all are told"),
        (Some(now), 0, "the same words are no news"),
        (Some("0/2 nodes are available"), 100, "others are, for so many at a time"),
    ] {
        let pods: Vec<Value> = (0..150).map(|i| pod(&format!("p{i}"), 1, told(before))).collect();
        let all = actions(&mut state(&[node("n1", "8")], &pods));
        assert!(all.len() == 150 && all.iter().all(|(words, _)| words.ends_with(now)), "{:?}", all.first());
        assert_eq!(all.iter().filter(|(_, action)| action.is_news()).count(), expected, "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_gated_has_not_been_told_that_it_fits_nowhere() {
    let told = |reason: &str| {
        let condition =
            json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": "it waits"});
        json!({"status": {"conditions": [condition]}})
    };
    for (reason, waited) in [("SchedulingGated", false), ("Unschedulable", true)] {
        let mut state = state_that(None, &[node("n1", "8")], &[pod("a", 1, told(reason))]);
        assert_eq!(words(&mut state), ["a to n1"]);
        let notices = state.notices();
        assert_eq!(notices.iter().any(|(.., what)| what.contains("after")), waited, "{reason}: {notices:?}");
        // Told at once, whatever many others are told.
        let mut nowhere = told(reason);
        merge(&mut nowhere, json!({"spec": {"nodeSelector": {"there": "is none"}}}));
        let mut state = state_that(None, &[node("n1", "8")], &[pod("a", 1, nowhere)]);
        let (_, action) = actions(&mut state).remove(0);
        assert_eq!(action.pod().pod.unschedulable.is_some(), waited, "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_tried_is_counted_from_when_the_pod_came() {
    let mut state =
        half_used(vec![SchedulerProfile::new("strict", Some(line(0.6)))], &[asking("a", "strict")]);
    assert_eq!(state.queues(), [1, 0, 0, 0]);
    tokio::time::advance(Duration::from_secs(3)).await;
    let action = state.next(now(3)).expect("refused");
    let (action, attempt) = state.attempt(action, now(3));
    assert_eq!((&*attempt.profile, attempt.number), ("strict", 1));
    assert_eq!(attempt.began - attempt.queued, Duration::from_secs(3));
    let Action::Refuse { pod, helps, .. } = action else { panic!("5 + 2 is over 6") };
    state.done(Outcome::Refused { pod, helps }, now(3));
    assert_eq!((state.queues(), state.held()), ([0, 0, 1, 0], [1, 1, 0]));
    state.queue.requeue(Helps::ANY, Instant::now());
    assert_eq!(state.queues(), [0, 1, 0, 0], "helped, and in its pause still: in one queue only");
}

#[tokio::test(start_paused = true)]
async fn what_was_decided_is_remembered_and_what_would_be_now_is_worked_out() {
    let profiles = vec![SchedulerProfile::new("strict", Some(line(0.6)))];
    let mut state = half_used(profiles, &[asking("a", "strict"), asking("c", "another")]);
    assert_eq!(words(&mut state).len(), 1);
    let key = |name: &str| Key::new("default", name);
    let said = state.explain(&key("a"), 10, now(1)).expect("it is there");
    assert_eq!(said["node"], json!(null));
    let [decision] = &said["decisions"].as_array().expect("a list")[..] else { panic!("one decision") };
    let message = "0/1 nodes are available: 1 node(s) would pass the load line.";
    assert_eq!((&decision["message"], &decision["scheduler"]), (&json!(message), &json!("strict")));
    assert_eq!(decision["refusedNodes"], json!({"line": 1}));
    let anew = &said["now"];
    assert_eq!((&anew["anotherLikeIt"], &anew["message"]), (&json!(false), &json!(message)));
    let reason = anew["nodes"][0]["reasons"][0].as_str().expect("a sentence");
    assert_eq!(reason, "cpu would pass the line: 5 measured + 0 pending + 2 incoming is over 6 (0.6 of 10)");
    assert_eq!(anew["nodes"][0]["counterfactual"], json!("would fit if the cpu target were 0.70"));
    // Of every node every rule that refuses it, and what it would be worth.
    let mut cordoned = node("n1", "10");
    merge(&mut cordoned, json!({"metadata": {"resourceVersion": "2"}, "spec": {"unschedulable": true}}));
    state.take(set_node(&cordoned), now(1));
    state.take(set_node(&node("n2", "10")), now(1));
    let said = state.explain(&key("a"), 10, now(1)).expect("it is there");
    let [first, second] = &said["now"]["nodes"].as_array().expect("a list")[..] else {
        panic!("two: {said}")
    };
    assert_eq!((&first["node"], &first["fits"]), (&json!("n2"), &json!(true)));
    for part in ["load", "leastAllocated", "balancedAllocation"] {
        assert!(!first["scores"][part].is_null(), "{part}: {first}");
    }
    assert_eq!(second["reasons"].as_array().map(Vec::len), Some(2), "cordoned, and over the line: {second}");
    state.take(Message::Node(Event::Deleted(meta(&node("n2", "10")))), now(1));
    state.take(set_node(&node("n1", "10")), now(1));

    let other = state.explain(&key("c"), 10, now(1)).expect("pods of other schedulers can be asked about");
    assert_eq!(other["decisions"], json!([]));
    assert_eq!(state.explain(&key("nobody"), 10, now(1)), None);

    let mut placed = asking("b", "strict");
    placed["spec"]["nodeName"] = json!("n1");
    state.take(set_pod(&placed), now(1));
    let said = state.explain(&key("b"), 0, now(1)).expect("it is there");
    assert_eq!((&said["node"], &said["now"]["anotherLikeIt"]), (&json!("n1"), &json!(true)));
    assert_eq!(
        (&said["now"]["nodes"], &said["now"]["moreNodes"]),
        (&json!([]), &json!(1)),
        "none was asked for"
    );

    // By the rules of the scheduler it asks for, also when it is on a node: 5 + 2 + 2 is over 6 and not over 9.5.
    let lenient = SchedulerProfile::new("lenient", Some(line(0.95)));
    let profiles = vec![SchedulerProfile::new("strict", Some(line(0.6))), lenient];
    for (scheduler, another) in [("strict", json!(null)), ("lenient", json!("n1"))] {
        let mut placed = asking("b", scheduler);
        placed["spec"]["nodeName"] = json!("n1");
        let mut state = half_used(profiles.clone(), &[placed]);
        let said = state.explain(&key("b"), 10, now(1)).expect("it is there");
        assert_eq!(said["now"]["node"], another, "{scheduler}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_needs_what_is_not_done_here_is_told_so_and_who_does_it() {
    let device = json!({"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}});
    let mut state = state(&[node("n1", "8")], &[pod("a", 1, device)]);
    assert_eq!(
        words(&mut state),
        [
            "a: not scheduled, because it needs dynamic resource allocation (resource claim \"gpu\"); kube-scheduler does \
          that (schedulerName: default-scheduler)"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_no_node_has_may_be_a_device_and_the_pod_is_told_who_gives_it() {
    let asks = |cpu: &str, gpu: &str| {
        json!({"spec": {"containers": [{"name": "c",
            "resources": {"requests": {"cpu": cpu, "example.com/gpu": gpu}}}]}})
    };
    let hint = "No node has example.com/gpu; if a DeviceClass offers it, kube-scheduler does that (schedulerName: \
                default-scheduler).";
    let mut with = node("n1", "8");
    for list in ["allocatable", "capacity"] {
        with["status"][list]["example.com/gpu"] = json!("1");
    }
    let table = [
        (node("n1", "8"), asks("1", "1"), true, "nobody has any"),
        (with.clone(), asks("1", "2"), false, "there is one, and that is too few"),
        (with, asks("9", "1"), false, "it is the CPU"),
    ];
    for (node, pod_asks, hinted, why) in table {
        let mut state = state(&[node], &[pod("a", 1, pod_asks)]);
        let said = words(&mut state);
        assert!(said[0].starts_with("a: 0/1 nodes are available: 1 Insufficient "), "{why}: {said:?}");
        assert_eq!(said[0].ends_with(hint), hinted, "{why}: {said:?}");
    }
}

/// The only action there is: a pod goes nowhere.
fn refused(state: &mut State) -> (Arc<Pending>, Helps) {
    let mut all = actions(state);
    assert_eq!(all.len(), 1, "{all:?}");
    match all.remove(0) {
        (_, Action::Refuse { pod, helps, .. }) => (pod, helps),
        (words, _) => panic!("{words}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_load_refused_is_tried_again_as_soon_as_load_falls_and_not_before() {
    let rules = Some(line(0.6));
    for (cpu, bound, why) in [("1", true, "less is used"), ("7", false, "more is used")] {
        let mut state = state_that(rules.as_ref(), &[node("n1", "10")], &[]);
        state.take(measured(1, &[("n1", "6")]), now(1));
        state.advance(now(1));
        state.take(set_pod(&pod("a", 1, json!({}))), now(1));
        let (pod, helps) = refused(&mut state);
        assert!(helps.load, "{why}");
        state.done(Outcome::Refused { pod, helps }, now(1));
        assert!(words(&mut state).is_empty(), "nothing has happened");
        // Long before all that wait are tried again whatever happened.
        tokio::time::advance(Duration::from_secs(2)).await;
        state.take(measured(3, &[("n1", cpu)]), now(3));
        state.advance(now(3));
        let after: Vec<String> =
            std::iter::from_fn(|| state.next(now(3))).map(|action| format!("{action:?}")).collect();
        assert_eq!(after.iter().any(|action| action.starts_with("Bind")), bound, "{why}: {after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_nowhere_is_tried_again_as_soon_as_a_node_comes() {
    let mut state = state_that(None, &[node("n1", "500m")], &[pod("a", 1, json!({}))]);
    let (pod, helps) = refused(&mut state);
    state.done(Outcome::Refused { pod, helps }, now(0));
    assert!(words(&mut state).is_empty(), "nothing has happened");
    tokio::time::advance(Duration::from_secs(2)).await;
    state.take(set_node(&node("n2", "8")), now(2));
    assert_eq!(words(&mut state), ["a to n2"]);
}

/// How often memory is asked for to decide on a pod, with so many nodes, after another one like it.
fn allocations(nodes: usize) -> u64 {
    let nodes: Vec<Value> = (0..nodes).map(|number| node(&format!("n{number}"), "8")).collect();
    let mut state = state(&nodes, &[pod("a", 1, json!({})), pod("b", 1, json!({}))]);
    assert!(matches!(state.next(now(0)), Some(Action::Bind { .. })));
    let mut action = None;
    let counted = allocation_counter::measure(|| action = state.next(now(0)));
    assert!(matches!(action, Some(Action::Bind { .. })));
    counted.count_total
}

#[tokio::test(start_paused = true)]
async fn nothing_is_worked_out_about_each_node_for_people_while_nobody_asks() {
    let (few, many) = (allocations(20), allocations(400));
    assert!(many <= few + 10, "{few} with 20 nodes, {many} with 400: a report has several for each node");
}

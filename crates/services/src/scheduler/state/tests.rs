mod extend;
mod lines;
mod load;
mod moved;
mod preempt;
mod profiles;
mod room;
mod spread;
mod told;
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

/// Every action there is now, in short: `a to n1`, `a: why not`.
fn actions(state: &mut State) -> Vec<(String, Action)> {
    let short = |action: &Action| match action {
        Action::Bind { pod, node, .. } => format!("{} to {node}", pod.meta.key.name),
        Action::Provide { pod, writes, .. } => format!("{}: {} writes", pod.meta.key.name, writes.len()),
        Action::Refuse { pod, why, .. } => {
            // What is said of preemption where it helps nowhere is a matter of its own.
            let places = why.text.split(" preemption: 0/").next().unwrap_or_default();
            format!("{}: {places}", pod.meta.key.name)
        }
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

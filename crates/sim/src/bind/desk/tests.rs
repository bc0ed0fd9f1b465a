use super::*;
use serde_json::json;

fn now(second: i64) -> Now {
    Now { clock: Timestamp::from_second(1_700_000_000 + second).expect("small"), at: Instant::now() }
}

fn stamp(second: i64) -> String {
    now(second).clock.to_string()
}

fn object(value: Value) -> Object {
    Object::read(value).expect("an object")
}

fn node(name: &str, cpu: &str) -> Object {
    let has = json!({"cpu": cpu, "memory": "64Gi", "pods": "110"});
    object(json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "status": {"allocatable": has, "capacity": has},
    }))
}

/// A pod as its creator wrote it; `more` is put on top.
fn pod(name: &str, revision: u64, more: Value) -> Object {
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
    object(pod)
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

fn figures(second: i64, nodes: &[(&str, &str)]) -> News {
    let nodes = nodes.iter().map(|(name, cpu)| {
        json!({
            "metadata": {"name": name}, "timestamp": stamp(second), "window": "5s",
            "usage": {"cpu": cpu, "memory": "1Gi"},
        })
    });
    News::Figures { nodes: nodes.collect(), pods: Vec::new() }
}

/// A desk that has heard the first list of everything; these are there.
fn desk(nodes: Vec<Object>, pods: Vec<Object>) -> Desk {
    desk_that(true, nodes, pods)
}

/// The same; looks at load if `aware`.
fn desk_that(aware: bool, nodes: Vec<Object>, pods: Vec<Object>) -> Desk {
    let mut desk = Desk::new(Rules::default(), aware, now(0));
    for kind in Kind::ALL {
        desk.hear(News::All(kind, Vec::new()), now(0));
    }
    desk.hear(News::All(Kind::Node, nodes), now(0));
    desk.hear(News::All(Kind::Pod, pods), now(0));
    desk
}

/// Every act there is now, in short: `a to n1`, `a: why not`.
fn acts(desk: &mut Desk) -> Vec<(String, Act)> {
    let short = |act: &Act| match act {
        Act::Bind { pod, node } => format!("{} to {node}", pod.meta.key.name),
        Act::Refuse { pod, why, .. } => format!("{}: {why}", pod.meta.key.name),
        Act::Preempt { pod, node, victims, .. } => {
            let victims: Vec<&str> = victims.iter().map(|(key, _)| key.name.as_str()).collect();
            format!("{} in place of {} on {node}", pod.meta.key.name, victims.join(", "))
        }
    };
    std::iter::from_fn(|| desk.next(now(0))).map(|act| (short(&act), act)).collect()
}

fn words(desk: &mut Desk) -> Vec<String> {
    acts(desk).into_iter().map(|(words, _)| words).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_decided_before_everything_is_known() {
    let mut desk = Desk::new(Rules::default(), true, now(0));
    desk.hear(News::All(Kind::Node, vec![node("n1", "8")]), now(0));
    desk.hear(News::All(Kind::Pod, vec![pod("a", 1, json!({}))]), now(0));
    assert!(words(&mut desk).is_empty());
    for kind in Kind::ALL {
        if kind != Kind::Node && kind != Kind::Pod {
            desk.hear(News::All(kind, Vec::new()), now(0));
        }
    }
    assert_eq!(words(&mut desk), ["a to n1"]);
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
        let mut desk = desk(vec![node("n1", "8")], vec![pod("a", 1, more)]);
        assert_eq!(!words(&mut desk).is_empty(), expected, "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hot_node_is_avoided_though_it_has_the_most_free_requests() {
    let mut desk = desk(vec![node("large", "32"), node("small", "8")], Vec::new());
    desk.hear(figures(0, &[("large", "24"), ("small", "100m")]), now(0));
    desk.hear(News::Set(Kind::Pod, pod("a", 1, json!({}))), now(0));
    assert_eq!(words(&mut desk), ["a to small"], "24 of 32 CPUs are over 65 %");
    let said = desk.said();
    let told = |from: &str| said.iter().find(|(who, ..)| *who == from).map(|(.., what)| what.clone());
    assert_eq!(told("node").as_deref(), Some("hot, 75% cpu over its target 65%"));
    let words = told("scheduler").unwrap();
    assert!(words.starts_with("to small, load score ") && words.contains("large avoided: "), "{words}");

    let mut blind = Desk { cluster: Cluster::new(Options::default(), now(0).clock), ..desk };
    blind.hear(News::Set(Kind::Node, node("large", "32")), now(0));
    blind.hear(News::Set(Kind::Pod, pod("b", 2, json!({}))), now(0));
    assert_eq!(self::words(&mut blind), ["b to large"], "by requests alone it would be taken");
    assert_eq!(blind.tally().onto_hot, 1);
}

#[tokio::test(start_paused = true)]
async fn a_bind_that_failed_leaves_no_charge_and_loses_no_pod() {
    // 65 % of 2 CPUs is room for one pod of 1 CPU.
    let mut desk = desk(vec![node("n1", "2")], vec![pod("a", 1, json!({}))]);
    let (first, act) = acts(&mut desk).pop().unwrap();
    assert_eq!(first, "a to n1");
    let Act::Bind { pod: held, .. } = act else { panic!("bound") };
    desk.hear(News::Set(Kind::Pod, pod("b", 2, json!({}))), now(0));
    assert_eq!(words(&mut desk), ["b: 0/1 nodes are available: 1 node(s) would pass the load line."]);
    desk.done(&Done::Unbound { pod: held.clone(), now: None }, now(0));
    desk.hear(News::Set(Kind::Pod, pod("c", 3, json!({}))), now(0));
    assert_eq!(words(&mut desk), ["c to n1"], "the room is free again");
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    assert_eq!(words(&mut desk).len(), 1, "the first is tried again");
}

#[tokio::test(start_paused = true)]
async fn a_bind_whose_answer_was_lost_counts_once() {
    let mut desk = desk(vec![node("n1", "4")], vec![pod("a", 1, json!({}))]);
    let Some((_, Act::Bind { pod: held, .. })) = acts(&mut desk).pop() else { panic!("bound") };
    // Somebody else was faster, as the server says.
    let answer = Some(Box::new(pod("a", 5, on("n1"))));
    desk.done(&Done::Unbound { pod: held, now: answer }, now(0));
    // What the watch still has to say about the time before changes nothing.
    desk.hear(News::Set(Kind::Pod, pod("a", 2, json!({}))), now(0));
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    assert!(words(&mut desk).is_empty(), "it has a node");
    // 65 % of 4 CPUs are 2.6: room for one more pod, not for two.
    for name in ["b", "c"] {
        desk.hear(News::Set(Kind::Pod, pod(name, 6, json!({}))), now(0));
    }
    let words = words(&mut desk);
    assert!(words[0] == "b to n1" && words[1].starts_with("c: "), "{words:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_after_a_lost_watch_sets_everything_right() {
    let mut desk = desk(vec![node("n1", "2")], vec![pod("gone", 1, on("n1")), pod("waits", 2, json!({}))]);
    let Some((_, Act::Refuse { pod: held, help, .. })) = acts(&mut desk).pop() else { panic!("refused") };
    desk.done(&Done::Refused { pod: held, help, evicted: 0 }, now(0));
    assert_eq!((desk.tally().pending, desk.tally().pending_most), (1, 1));
    desk.hear(News::All(Kind::Pod, vec![pod("waits", 2, json!({}))]), now(0));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(words(&mut desk), ["waits to n1"], "who is not in the list is gone");
    desk.hear(News::All(Kind::Pod, vec![pod("waits", 9, on("n1"))]), now(0));
    assert_eq!((desk.tally().pending, desk.tally().pending_most), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_its_claim_and_is_read_again_when_that_comes() {
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    let mut desk = desk(vec![node("n1", "8")], vec![pod("a", 1, json!({"spec": {"volumes": volumes}}))]);
    let Some((words, Act::Refuse { pod: held, help, .. })) = acts(&mut desk).pop() else { panic!("refused") };
    assert!(words.contains("data"), "{words}");
    desk.done(&Done::Refused { pod: held, help, evicted: 0 }, now(0));
    desk.hear(News::Set(Kind::Volume, object(json!({"metadata": {"name": "disk"}, "spec": {}}))), now(0));
    let claim = json!({
        "metadata": {"name": "data", "namespace": "default", "uid": "data"},
        "spec": {"volumeName": "disk"}, "status": {"phase": "Bound"},
    });
    desk.hear(News::Set(Kind::Claim, object(claim)), now(0));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(self::words(&mut desk), ["a to n1"]);
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
    let mut desk = desk_that(false, vec![node("n1", "1")], pods);
    let Some((words, Act::Preempt { pod: held, help, .. })) = acts(&mut desk).pop() else {
        panic!("preempts")
    };
    assert_eq!(words, "important in place of lesser on n1");
    desk.done(&Done::Refused { pod: held, help, evicted: 0 }, now(0));
    let nominated = important(3, json!({"status": {"nominatedNodeName": "n1"}}));
    desk.hear(News::Set(Kind::Pod, nominated), now(0));
    desk.hear(News::Gone(Kind::Pod, pod("lesser", 4, json!({})).meta), now(0));
    desk.hear(News::Set(Kind::Pod, pod("late", 5, json!({}))), now(0));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let words = self::words(&mut desk);
    assert!(words[0] == "important to n1" && words[1].starts_with("late: "), "{words:?}");
}

#[tokio::test(start_paused = true)]
async fn a_victim_is_not_sent_back_while_its_node_cools_and_may_be_after() {
    let cools = |revision: u64, until: Value| {
        let Object { mut value, .. } = node("n1", "32");
        value["metadata"]["annotations"] = json!({COOLING: until});
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        object(value)
    };
    let mut desk = desk(vec![node("n1", "32"), node("n2", "4")], vec![pod("victim", 1, on("n1"))]);
    // The mark is there before the victim goes, and its successor comes at once.
    desk.hear(News::Set(Kind::Node, cools(2, json!(stamp(60)))), now(0));
    desk.hear(News::Gone(Kind::Pod, pod("victim", 3, json!({})).meta), now(0));
    desk.hear(News::Set(Kind::Pod, pod("successor", 4, json!({}))), now(0));
    assert_eq!(words(&mut desk), ["successor to n2"], "n1 has more room, but cools");
    let (.., told) = desk.said().remove(0);
    assert!(told.starts_with("to n2, ") && told.contains("n1 avoided: "), "{told}");

    let only = json!({"spec": {"nodeSelector": {"only": "n1"}}});
    let mut marked = cools(5, json!(stamp(60)));
    marked.value["metadata"]["labels"] = json!({"only": "n1"});
    desk.hear(News::Set(Kind::Node, marked), now(0));
    desk.hear(News::Set(Kind::Pod, pod("stubborn", 6, only)), now(0));
    let (words, Act::Refuse { pod: held, help, .. }) = acts(&mut desk).remove(0) else { panic!("refused") };
    assert!(words.contains("1 node(s) were cooling down"), "{words}");
    desk.done(&Done::Refused { pod: held, help, evicted: 0 }, now(0));

    tokio::time::advance(std::time::Duration::from_secs(59)).await;
    desk.advance(now(59));
    let Some(Act::Refuse { pod: held, help, .. }) = desk.next(now(59)) else { panic!("it still cools") };
    desk.done(&Done::Refused { pod: held, help, evicted: 0 }, now(59));
    assert!(help.load, "time alone will help");
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    desk.advance(now(61));
    let Some(Act::Bind { pod: bound, node }) = desk.next(now(61)) else { panic!("bound") };
    assert_eq!((bound.meta.key.name.as_str(), &*node), ("stubborn", "n1"), "it has cooled");
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_is_no_time_or_is_over_keeps_nobody_away() {
    for mark in [json!("soon"), json!(""), json!(stamp(-1))] {
        let mut marked = node("n1", "8");
        marked.value["metadata"]["annotations"] = json!({COOLING: mark});
        let mut desk = desk(vec![marked], vec![pod("a", 1, json!({}))]);
        assert_eq!(words(&mut desk), ["a to n1"], "{mark}");
    }
}

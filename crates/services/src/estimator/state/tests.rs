use super::*;
use loadline_api::json::Tree;
use loadline_core::estimate::{Ask, Given};
use loadline_core::object::{Key, Meta};
use serde_json::{Value, json};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("a second in range")
}

fn meta(value: &Value) -> Meta {
    let text = |key: &str| value["metadata"][key].as_str().unwrap_or_default();
    Meta { key: Key::new(text("namespace"), text("name")), uid: text("uid").into(), revision: None }
}

/// A node with room for so many pods, each a core.
fn node(name: &str, cores: u32) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "status": {"allocatable": {"cpu": cores.to_string(), "memory": "64Gi", "pods": "110"}},
    })
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    })
}

fn set_node(value: &Value) -> Message {
    Message::Node(Event::Applied(meta(value), Nodes::read(&Tree::from(value))))
}

fn set_pod(value: &Value) -> Message {
    Message::Pod(Event::Applied(meta(value), Pods::read(&Tree::from(value))))
}

/// A fold and its readers' side; news are published one by one.
struct Stage {
    state: State,
    member: Member,
    now: Timestamp,
}

impl Stage {
    fn new() -> Self {
        Self { state: State::new("m", &Options::default(), at(0)), member: Member::default(), now: at(0) }
    }

    fn hear(&mut self, item: Message) -> &mut Self {
        self.state.take(item, self.now);
        self.state.publish(&self.member, self.now);
        self.state.tell(&self.member);
        self
    }

    /// Replica sets and Deployments are there, of which there are none.
    fn others(&mut self) -> &mut Self {
        self.hear(Message::ReplicaSet(Event::ListStarted)).hear(Message::ReplicaSet(Event::Listed(None)));
        self.hear(Message::Deployment(Event::ListStarted)).hear(Message::Deployment(Event::Listed(None)))
    }

    /// How many more pods of one core fit, as readers see it.
    fn room(&self) -> Option<i32> {
        let known = self.member.known()?;
        let requests = [("cpu".to_owned(), "1".parse().expect("a quantity"))].into();
        let ask = Ask { requests, ..Ask::default() };
        Some(known.view.replicas(&ask, &Given::default()).expect("wanted").most)
    }
}

/// Two nodes of four cores, one pod: seven fit.
fn ready() -> Stage {
    let mut stage = Stage::new();
    stage.others();
    stage.hear(Message::Node(Event::ListStarted)).hear(set_node(&node("a", 4))).hear(set_node(&node("b", 4)));
    stage
        .hear(Message::Node(Event::Listed(None)))
        .hear(Message::Pod(Event::ListStarted))
        .hear(set_pod(&pod("p", "a")));
    stage.hear(Message::Pod(Event::Listed(None)));
    assert_eq!(stage.room(), Some(7));
    stage
}

// Row 28: ready before the cache is filled.
#[test]
fn nothing_is_answered_before_everything_was_read() {
    let mut stage = Stage::new();
    stage
        .hear(Message::Node(Event::ListStarted))
        .hear(set_node(&node("a", 4)))
        .hear(Message::Node(Event::Listed(None)));
    assert_eq!(stage.room(), None, "without its pods the node looks emptier than it is");
    stage.hear(Message::Pod(Event::ListStarted)).hear(set_pod(&pod("p", "a")));
    assert_eq!(stage.room(), None);
    stage.hear(Message::Pod(Event::Listed(None)));
    assert_eq!(stage.room(), None);
    assert_eq!(stage.member.status().progress, "nodes 1, pods 1 (still reading replicasets, deployments)");
    assert_eq!(stage.member.status().heard, None);
    stage.others();
    assert_eq!(stage.room(), Some(3), "4 − 1");
    assert_eq!(stage.member.status().progress, "nodes 1, pods 1");
    assert_eq!(stage.member.status().heard, Some(at(0)));
}

#[test]
fn an_empty_cluster_is_known_to_be_empty() {
    let mut stage = Stage::new();
    stage.others();
    for item in [
        Message::Node(Event::ListStarted),
        Message::Node(Event::Listed(None)),
        Message::Pod(Event::ListStarted),
    ] {
        stage.hear(item);
    }
    assert_eq!(stage.room(), None);
    stage.hear(Message::Pod(Event::Listed(None)));
    assert_eq!(stage.room(), Some(0));
}

#[test]
fn a_list_replaces_everything_at_once() {
    let mut stage = ready();
    // While nobody watched: p went, q and r came, node b went and c came. 4 + 8 − 2 = 10.
    stage.hear(Message::Pod(Event::ListStarted));
    assert_eq!(stage.room(), Some(7), "nothing is absent while it is read");
    stage.hear(set_pod(&pod("q", "a")));
    stage.hear(set_pod(&pod("r", "a")));
    assert_eq!(stage.room(), Some(7), "neither half of it is shown");
    stage.hear(Message::Node(Event::ListStarted)).hear(Message::Pod(Event::Listed(None)));
    assert_eq!(stage.room(), Some(7), "nodes are being read now");
    stage.hear(set_node(&node("a", 4))).hear(set_node(&node("c", 8)));
    assert_eq!(stage.room(), Some(7));
    stage.hear(Message::Node(Event::Listed(None)));
    assert_eq!(stage.room(), Some(10));
}

#[test]
fn a_list_that_does_not_get_on_holds_nothing_else_back_and_loses_nothing() {
    let mut stage = ready();
    stage.now = at(60);
    stage
        .hear(Message::Pod(Event::ListStarted))
        .hear(Message::Pod(Event::Failed("listing pods: refused".into())));
    stage.now = at(70);
    stage
        .hear(Message::Pod(Event::ListStarted))
        .hear(Message::Pod(Event::Failed("listing pods: again".into())));
    stage.hear(set_node(&node("b", 2)));
    assert_eq!(stage.room(), Some(5), "b has two cores less, and p is still counted");
    let status = stage.member.status();
    assert_eq!(status.problem.as_deref(), Some("listing pods: again"));
    assert_eq!(status.since, Some(at(60)), "since it began");
    assert_eq!(status.heard, Some(at(0)), "as old as what is known of pods");
    stage.hear(Message::Pod(Event::ListStarted)).hear(Message::Pod(Event::Listed(None)));
    assert_eq!(stage.room(), Some(6), "p went meanwhile");
    let status = stage.member.status();
    assert_eq!((&status.problem, status.since), (&None, None));
}

#[test]
fn silence_ages_and_bookmarks_do_not() {
    let mut stage = ready();
    stage.now = at(100);
    for item in [
        Message::Node(Event::Bookmark),
        Message::ReplicaSet(Event::Bookmark),
        Message::Deployment(Event::Bookmark),
    ] {
        stage.hear(item);
    }
    assert_eq!(stage.member.status().heard, Some(at(0)), "pods have not been heard of");
    stage.hear(Message::Pod(Event::Bookmark));
    assert_eq!(stage.member.status().heard, Some(at(100)));
    stage.now = at(200);
    stage.hear(Message::Pod(Event::ListStarted)).hear(set_pod(&pod("p", "a")));
    assert_eq!(stage.member.status().heard, Some(at(100)), "half a list is not news of the whole");
}

#[test]
fn a_node_that_cannot_be_read_is_full_and_a_pod_that_cannot_counts_as_it_did() {
    let mut stage = ready();
    let mut odd = node("b", 4);
    odd["spec"] = json!({"taints": "none"});
    stage.hear(set_node(&odd));
    assert_eq!(stage.room(), Some(3), "only a: what b is like nobody knows");
    assert_eq!(stage.member.status().unreadable, 1);
    let mut odd = pod("p", "a");
    odd["metadata"]["labels"] = json!(["none"]);
    stage.hear(set_pod(&odd));
    assert_eq!(stage.room(), Some(3), "p is as it was");
    let mut new = pod("q", "a");
    new["spec"]["containers"] = json!("none");
    stage.hear(set_pod(&new));
    assert_eq!(stage.member.status().unreadable, 3);
    stage.hear(set_node(&node("b", 4))).hear(set_pod(&pod("p", "b")));
    stage.hear(Message::Pod(Event::Deleted(meta(&new))));
    assert_eq!((stage.room(), stage.member.status().unreadable), (Some(7), 0), "all is readable again");
}

#[test]
fn a_pod_that_came_back_under_its_name_counts_once() {
    let mut stage = ready();
    let mut again = pod("p", "b");
    again["metadata"]["uid"] = json!("another");
    stage.hear(set_pod(&again));
    assert_eq!(stage.room(), Some(7), "the first p is gone: 4 + 3");
    stage.hear(Message::Pod(Event::Deleted(meta(&pod("p", "a")))));
    assert_eq!(stage.room(), Some(7), "late news of it change nothing");
    stage.hear(Message::Pod(Event::Deleted(meta(&again))));
    assert_eq!(stage.room(), Some(8));
}

#[test]
fn many_problems_are_named_and_counted_and_without_a_client_that_comes_first() {
    let mut stage = ready();
    stage.hear(Message::Node(Event::Failed("watching nodes: away".into())));
    stage.hear(Message::Pod(Event::Failed("watching pods: away".into())));
    stage.hear(Message::Deployment(Event::Failed("watching deployments: away".into())));
    let problem = stage.member.status().problem.clone();
    assert_eq!(problem.as_deref(), Some("watching nodes: away; watching pods: away; and 1 more"));
    stage.state.unreachable("kubeconfig x: no such file".into(), at(1));
    stage.state.tell(&stage.member);
    assert!(stage.member.status().problem.as_deref().is_some_and(|p| p.starts_with("kubeconfig x")));
    assert_eq!(stage.room(), Some(7), "answers go on");
}

#[test]
fn what_may_not_be_read_is_done_without_unless_it_is_nodes_or_pods() {
    let options = Options { quotas: true, ..Options::default() };
    let mut stage = Stage { state: State::new("m", &options, at(0)), ..Stage::new() };
    stage
        .hear(Message::Node(Event::ListStarted))
        .hear(set_node(&node("n", 4)))
        .hear(Message::Node(Event::Listed(None)));
    stage.others().hear(Message::Quota(Event::ListStarted));
    stage.hear(Message::Quota(Event::Forbidden("listing resourcequotas: forbidden".into())));
    assert!(stage.member.known().is_none(), "pods have not been read");
    stage
        .hear(Message::Pod(Event::ListStarted))
        .hear(Message::Pod(Event::Forbidden("listing pods: forbidden".into())));
    assert!(stage.member.known().is_none(), "without pods every node would look empty");
    stage.hear(Message::Pod(Event::ListStarted)).hear(Message::Pod(Event::Listed(None)));
    assert!(stage.member.known().is_some(), "quotas may not be read, so they do not bind");
    let status = stage.member.status();
    assert_eq!(status.problem.as_deref(), Some("listing resourcequotas: forbidden"), "but that is told");
    assert!(status.heard.is_some(), "the rest is current");
    stage.hear(Message::Quota(Event::ListStarted)).hear(Message::Quota(Event::Listed(None)));
    assert_eq!(stage.member.status().problem, None, "somebody allowed it");
}

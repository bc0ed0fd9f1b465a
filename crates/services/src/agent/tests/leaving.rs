//! What is left when rules change, and when an agent ends.

use super::*;
use loadline_apiserver::fault::{Action, Rule};
use loadline_core::object::Meta;
use loadline_core::select::taint::Effect;

#[tokio::test]
async fn a_taint_that_is_not_as_it_should_be_is_replaced() {
    let mut stage = Stage::new().await;
    stage.ask_for(only_evict()).await;
    stage.run("shop", 95, false).await;
    stage.cycle().await;
    let nodes: Api<core::Node> = Api::all(stage.client.clone());
    let taints = async || {
        let node = nodes.get(NODE).await.expect("the node is there");
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let said =
            |taint: core::Taint| (taint.key, taint.effect, taint.value.filter(|text| !text.is_empty()));
        taints.into_iter().map(said).collect::<Vec<_>>()
    };
    let ours = |effect: &str| vec![(KEY.to_owned(), effect.to_owned(), None)];
    assert_eq!(taints().await, ours("PreferNoSchedule"));
    // Another agent comes, that is to write another effect.
    stage.agent.planning.taint = Effect::NoSchedule;
    stage.cycle().await;
    assert_eq!(taints().await, ours("NoSchedule"));
    // Somebody else writes a value to it.
    let patch = json!({"spec": {"taints": [{"key": KEY, "value": "old", "effect": "NoSchedule"}]}});
    let key = Key::new("", NODE);
    stage.writer.patch(NODES.whole(), &key, Patch::Merge, &patch).await.expect("the node is there");
    let is_known = |state: &State| {
        let value =
            |(_, node): &(Meta, Arc<watched::Node>)| node.taints.iter().any(|taint| taint.value.is_some());
        state.node(&key).is_some_and(value)
    };
    stage.until("it is known", is_known).await;
    stage.cycle().await;
    assert_eq!(taints().await, ours("NoSchedule"));
}

#[tokio::test]
async fn an_agent_beside_another_waits_and_touches_nothing_at_its_end_either() {
    let mut stage = Stage::new().await;
    stage.ask_for(only_evict()).await;
    stage.run("shop", 95, false).await;
    stage.cycle().await;
    assert!(stage.says().await.0, "another agent has closed the node");
    stage.host.is_taken.store(true, Relaxed);
    let folder = tempfile::tempdir().expect("a folder");
    let host = stage.host.clone();
    let mut options = Options::new(Access::Client(stage.client.clone()), Nodes::One(NODE.to_owned()), host);
    (options.every, options.restore_on_exit) = (Duration::from_millis(20), true);
    options.journal = Some(folder.path().to_owned());
    let (metrics, status) = (options.metrics.clone(), options.status.clone());
    let stop = CancellationToken::new();
    let running = tokio::spawn(run(Ctx::new("test", stop.clone()), options));
    let waits = async {
        while !status.readiness().progress.contains("standby: another agent is at work") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.expect("it waits");
    assert_eq!(metrics.cycles.get(), 0);
    stop.cancel();
    running.await.expect("it ends").expect("it could start");
    assert!(stage.says().await.0, "it is not its node to open");
}

#[tokio::test]
async fn rules_that_are_gone_are_not_explained_any_more() {
    let mut stage = Stage::new().await;
    stage.ask_for(rules()).await;
    stage.run("shop", 25, false).await;
    stage.cycle().await;
    assert!(stage.agent.looked.last().is_some());
    for (resource, object) in rules() {
        let key = Key::new("", object["metadata"]["name"].as_str().expect("a name"));
        let all = format!("/apis/ensurance.crane.io/v1alpha1/{}/{}", resource.plural, key.name);
        let request = http::Request::delete(all).body(Vec::new()).expect("well-formed");
        stage.client.request::<Value>(request).await.expect("it is there");
    }
    stage.until("they are gone", |state| state.rule_counts() == (0, 0, 0)).await;
    stage.cycle().await;
    assert!(stage.agent.looked.last().is_none());
}

#[tokio::test]
async fn a_runtime_that_hangs_is_waited_for_once_when_everything_is_given_back() {
    let mut stage = Stage::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    stage.restart_from(folder.path()).await;
    stage.ask_for(rules()).await;
    stage.run("shop", 72, false).await;
    for name in ["a", "b", "c"] {
        stage.run(name, 8, true).await;
    }
    for _ in 0..3 {
        stage.cycle().await;
    }
    assert_eq!(stage.state.throttled(), 3);
    stage.host.is_mute.store(true, Relaxed);
    stage.agent.restore(&mut stage.state, stage.now).await;
    assert_eq!(stage.host.on_the_way.lock().expect("nobody panicked").len(), 1, "one is asked");
    stage.restart_from(folder.path()).await;
    assert_eq!(stage.state.throttled(), 3, "the next agent knows of all of them");
}

/// One pod is slowed down on a closed node, and an agent comes after the one that did it, which keeps its journal there.
async fn slowed_down(folder: &std::path::Path) -> Stage {
    let mut stage = Stage::new().await;
    stage.restart_from(folder).await;
    stage.ask_for(rules()).await;
    stage.run("shop", 72, false).await;
    stage.run("a", 10, true).await;
    for _ in 0..2 {
        stage.cycle().await;
    }
    assert_eq!((stage.quotas().await["a"], stage.says().await.0), (Some(6), true));
    stage
}

#[tokio::test]
async fn an_agent_that_ends_before_it_knows_its_pods_leaves_what_was_taken_to_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut stage = slowed_down(folder.path()).await;
    let uid = stage.uid("a");
    stage.faults.add(Rule::new(Action::Delay(Duration::from_hours(1))).path("/api/v1/pods"));
    stage.agent.journal = None;
    (stage.agent, stage.notices) = agent(&stage.through, stage.host.clone());
    (stage.watches, stage.messages) = watches(&stage.through);
    stage.state = State::new();
    stage.until("nodes and rules are read", |state| state.is_ready(false)).await;
    stage.take_over(folder.path());
    assert!(!stage.state.knows_pods());
    stage.agent.restore(&mut stage.state, stage.now).await;
    assert_eq!(stage.host.lock()[&uid].quota, CpuQuota::Us(60_000), "whose it is cannot be told");
    assert!(stage.says().await.0, "a node where something is taken is not open");

    stage.faults.clear();
    stage.restart_from(folder.path()).await;
    assert_eq!(stage.state.throttled(), 1, "the next agent knows of it");
    stage.agent.restore(&mut stage.state, stage.now).await;
    assert_eq!((stage.quotas().await["a"], stage.says().await.0), (Some(10), false));
    stage.restart_from(folder.path()).await;
    assert_eq!(stage.state.throttled(), 0);
}

// R26.
#[tokio::test]
async fn what_somebody_else_wrote_since_is_theirs_at_the_end_too() {
    for (now_us, left_us, why) in [
        (60_000, 100_000, "as it was written: all of it comes back"),
        (70_000, 70_000, "resized while no agent ran"),
        (100_000, 100_000, "given back already"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut stage = slowed_down(folder.path()).await;
        let uid = stage.uid("a");
        stage.host.lock().get_mut(&uid).expect("it runs").quota = CpuQuota::Us(now_us);
        stage.restart_from(folder.path()).await;
        stage.agent.restore(&mut stage.state, stage.now).await;
        assert_eq!(stage.host.lock()[&uid].quota, CpuQuota::Us(left_us), "{why}");
        stage.restart_from(folder.path()).await;
        assert_eq!((stage.state.throttled(), stage.says().await.0), (0, false), "{why}");
    }
}

#[tokio::test]
async fn what_was_taken_by_an_agent_whose_journal_is_lost_comes_back_at_the_end_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut stage = slowed_down(folder.path()).await;
    std::fs::write(folder.path().join("journal.json"), "{").expect("it is there");
    stage.restart_from(folder.path()).await;
    stage.agent.restore(&mut stage.state, stage.now).await;
    assert_eq!(stage.quotas().await["a"], Some(10));
}

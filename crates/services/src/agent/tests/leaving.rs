//! What is left when rules change, and when an agent ends.

use super::*;
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

//! Who goes when somebody may not, and when nobody does.

use super::faults::overrun;
use super::*;
use loadline_apiserver::fault::{Action, Answer, Rule};

/// A budget that keeps pods from going.
async fn keep(stage: &Stage, name: &str) {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
    });
    stage.writer.create(BUDGETS, "default", &budget).await.expect("the budget is well-formed");
}

#[tokio::test]
async fn no_more_go_in_a_cycle_than_may_though_it_is_planned_again_for_those_who_may_not() {
    let mut stage = Stage::new().await;
    let mut objects = only_evict();
    objects[3].1["spec"]["rules"][0]["metricRule"]["value"] = json!("20");
    stage.ask_for(objects).await;
    stage.run("shop", 15, false).await;
    let names: Vec<String> = (1..=15).map(|number| format!("p{number:02}")).collect();
    for name in &names {
        stage.run(name, 5, true).await;
    }
    // Of those who are asked at first, and of those who are asked instead, the first may not go.
    for name in ["p01", "p06"] {
        keep(&stage, name).await;
    }
    for _ in 0..3 {
        stage.cycle().await;
    }
    assert_eq!(stage.asked(), [], "the agent has just started");
    // 91 % is so far above 20 % that all have to go; five may in a cycle.
    stage.cycle().await;
    let asked = stage.asked();
    let with = |wanted: Reply| {
        let of = asked.iter().filter(|(_, reply)| *reply == wanted);
        of.map(|(pod, _)| pod.trim_start_matches("default/")).collect::<Vec<_>>()
    };
    assert_eq!(with(Reply::Granted), ["p02", "p03", "p04", "p05", "p07"]);
    assert_eq!(with(Reply::Refused), ["p01", "p06"]);
}

#[tokio::test]
async fn who_goes_instead_is_written_down_before_being_asked() {
    let mut stage = Stage::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    stage.agent.journal = Journal::open(folder.path(), NODE);
    overrun(&mut stage).await;
    keep(&stage, "a").await;
    let b = "/api/v1/namespaces/*/pods/b/eviction";
    stage.faults.add(Rule::new(Action::Delay(Duration::from_hours(1))).path(b));
    stage.now += SignedDuration::from_secs(2);
    let faults = stage.faults.clone();
    let asks = async {
        while faults.log().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = stage.agent.cycle(&mut stage.state, stage.now) => panic!("it cannot end"),
        asked = tokio::time::timeout(PATIENCE, asks) => asked.expect("it asks"),
    }
    stage.faults.clear();
    // What it had sent gets there after its end.
    let (meta, _) = stage.state.pod(&Key::new("default", "b")).expect("it runs").clone();
    stage.writer.evict(&meta, Some(5)).await.expect("there is no budget for it");
    stage.restart_from(folder.path()).await;
    let written_down = [("default/a".to_owned(), Reply::Refused), ("default/b".to_owned(), Reply::Granted)];
    assert_eq!(stage.asked(), written_down);
    for _ in 0..5 {
        stage.cycle().await;
    }
    assert_eq!(stage.leaving().await, ["b"], "nobody goes instead of who goes");
}

#[tokio::test]
async fn a_server_that_has_too_much_to_do_says_nothing_about_the_pod() {
    let mut stage = Stage::new().await;
    overrun(&mut stage).await;
    let busy = Action::Answer(Answer::TooManyRequests { retry_after: 1 });
    stage.faults.add(Rule::new(busy).path("/api/v1/namespaces/*/pods/*/eviction").first(1));
    stage.cycle().await;
    assert_eq!((stage.leaving().await, stage.asked()), (vec![], vec![]), "nobody is asked instead");
    stage.cycle().await;
    assert_eq!(stage.leaving().await, ["a"], "it is asked again at the next look");
}

#[tokio::test]
async fn nobody_is_sent_away_from_a_node_that_cannot_be_marked() {
    let mut stage = Stage::new().await;
    overrun(&mut stage).await;
    // The account may not write nodes.
    stage.faults.add(Rule::new(Action::Answer(Answer::Forbidden)).path("/api/v1/nodes/*"));
    for _ in 0..3 {
        let told = stage.cycle().await;
        assert!(!told.iter().any(|line| line.contains("evicted")), "{told:?}");
    }
    assert_eq!((stage.leaving().await, stage.asked()), (vec![], vec![]));
    assert_eq!(stage.agent.metrics.unmarked_nodes.get(), 1);
    stage.faults.clear();
    let told = stage.cycle().await;
    assert!(stage.says().await.0 && told.iter().any(|line| line.contains("evicted")), "{told:?}");
    assert_eq!((stage.leaving().await, stage.agent.metrics.unmarked_nodes.get()), (vec!["a".to_owned()], 0));
}

#[tokio::test]
async fn a_node_that_cannot_be_marked_is_slowed_down_all_the_same() {
    let mut stage = Stage::new().await;
    stage.ask_for(rules()).await;
    stage.run("shop", 72, false).await;
    stage.run("a", 10, true).await;
    stage.faults.add(Rule::new(Action::Answer(Answer::Forbidden)).path("/api/v1/nodes/*"));
    for _ in 0..3 {
        stage.cycle().await;
    }
    assert!(!stage.says().await.0);
    assert!(stage.quotas().await["a"] < Some(10));
}

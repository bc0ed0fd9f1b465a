//! What gets in the way of an agent: an API server that is away or loses answers, a runtime that answers late, the agent's own end.

use super::*;
use crate::node::local::{self, Actuator, Local};
use loadline_apiserver::fault::{Action, Rule};
use std::path::Path;

const EVICTIONS: &str = "/api/v1/namespaces/*/pods/*/eviction";

/// 62 %; then 92 % and daemons, which is over 85 % by so much that one pod has to go: `a`, which uses most.
pub(super) async fn overrun(stage: &mut Stage) {
    stage.ask_for(only_evict()).await;
    stage.run("shop", 29, false).await;
    for (name, percent) in [("a", 12), ("b", 11), ("c", 10)] {
        stage.run(name, percent, true).await;
    }
    for _ in 0..4 {
        assert!(stage.cycle().await.is_empty(), "62 %; the agent has just started");
    }
    stage.wants("shop", 59);
}

impl Stage {
    /// Pods that were told to go, and are still there.
    pub(super) async fn leaving(&self) -> Vec<String> {
        let pods: Api<core::Pod> = Api::default_namespaced(self.client.clone());
        let all = pods.list(&ListParams::default()).await.expect("pods are listed").items;
        let leaving = all.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_some());
        leaving.filter_map(|pod| pod.metadata.name).collect()
    }

    /// Waits until it is known that a pod was told to go.
    async fn until_leaving(&mut self, name: &str) {
        let key = Key::new("default", name);
        self.until("it is told to go", |state| {
            state.pod(&key).is_none_or(|(_, pod)| pod.pod.deleted.is_some())
        })
        .await;
    }

    /// Another agent comes, and finds the journal in that folder.
    pub(super) async fn restart_from(&mut self, folder: &std::path::Path) {
        // The lock of the one that is gone goes with it.
        self.agent.journal = None;
        self.restart().await;
        self.take_over(folder);
    }

    /// The agent finds the journal in that folder.
    pub(super) fn take_over(&mut self, folder: &std::path::Path) {
        let mut journal = Journal::open(folder, NODE).expect("nobody has it");
        let left = journal.read().unwrap_or_default();
        self.state.remember(NODE, left.state, self.now);
        self.agent.adopting = left.adopting;
        self.agent.journal = Some(journal);
    }
}

#[tokio::test]
async fn while_the_api_server_is_away_throttling_goes_on_and_evictions_wait() {
    let mut stage = Stage::new().await;
    stage.ask_for(rules()).await;
    stage.run("shop", 25, false).await;
    for name in ["a", "b", "c"] {
        stage.run(name, 10, true).await;
    }
    for _ in 0..4 {
        assert!(stage.cycle().await.is_empty());
    }
    stage.faults.disconnect();
    stage.wants("shop", 72);
    let mut told = Vec::new();
    for _ in 0..8 {
        told.extend(stage.cycle().await);
    }
    assert_eq!(stage.quotas().await["a"], Some(5), "down to what it requests: {told:?}");
    assert!(!told.iter().any(|line| line.contains("evicted") || line.contains("closed")), "{told:?}");
    assert_eq!(stage.asked(), [], "who could not be asked is not remembered as gone");
    assert_eq!(stage.agent.metrics.evicted.get(), 0);

    stage.faults.reconnect();
    let told = stage.cycle().await;
    assert_eq!(told.iter().filter(|line| line.contains("evicted")).count(), 1, "5 % are enough: {told:?}");
    assert!(stage.says().await.0, "and the node is marked");
}

#[tokio::test]
async fn an_eviction_whose_answer_is_lost_is_not_asked_for_of_another() {
    let mut stage = Stage::new().await;
    overrun(&mut stage).await;
    stage.faults.add(Rule::new(Action::DropAnswer).path(EVICTIONS).first(1));
    stage.cycle().await;
    assert_eq!(
        (stage.leaving().await, stage.asked()),
        (vec!["a".to_owned()], vec![]),
        "it goes, unknown to us"
    );
    stage.until_leaving("a").await;
    for _ in 0..5 {
        let told = stage.cycle().await;
        assert!(!told.iter().any(|line| line.contains("evicted")), "{told:?}");
    }
    assert_eq!(stage.leaving().await, ["a"], "nobody went instead");
}

#[tokio::test]
async fn an_agent_killed_while_it_evicts_asks_nobody_twice_and_nobody_instead() {
    for arrives in [false, true] {
        let mut stage = Stage::new().await;
        let folder = tempfile::tempdir().expect("a folder");
        stage.agent.journal = Journal::open(folder.path(), NODE);
        overrun(&mut stage).await;
        stage.faults.add(Rule::new(Action::Delay(Duration::from_hours(1))).path(EVICTIONS));
        stage.now += SignedDuration::from_secs(2);
        let faults = stage.faults.clone();
        let asks = async {
            while !faults.log().iter().any(|fault| fault.path.ends_with("/eviction")) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = stage.agent.cycle(&mut stage.state, stage.now) => panic!("it cannot end"),
            asked = tokio::time::timeout(PATIENCE, asks) => asked.expect("it asks"),
        }
        stage.faults.clear();
        if arrives {
            // What it had sent gets there after its end.
            let (meta, _) = stage.state.pod(&Key::new("default", "a")).expect("it runs").clone();
            stage.writer.evict(&meta, Some(5)).await.expect("there is no budget");
        }
        stage.restart_from(folder.path()).await;
        let written_down = [("default/a".to_owned(), Reply::Granted)];
        assert_eq!(stage.asked(), written_down, "before it was asked, as if it had been granted");
        // 5 s of its own and 30 s more: so long it counts as on its way out. If it was told, the API server's time counts.
        let cycles = if arrives { 10 } else { 17 };
        for _ in 0..cycles {
            let told = stage.cycle().await;
            assert!(!told.iter().any(|line| line.contains("evicted")), "arrives: {arrives}: {told:?}");
        }
        assert_eq!(stage.leaving().await.len(), usize::from(arrives));
        if !arrives {
            stage.cycle().await;
            assert_eq!(stage.leaving().await, ["a"], "it was never asked, so it is now");
        }
    }
}

#[tokio::test]
async fn a_write_that_arrives_after_everything_was_given_back_is_undone() {
    let mut stage = Stage::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    stage.agent.journal = Journal::open(folder.path(), NODE);
    stage.ask_for(rules()).await;
    stage.run("shop", 72, false).await;
    stage.run("a", 10, true).await;
    stage.host.is_mute.store(true, Relaxed);
    stage.cycle().await;
    stage.cycle().await;
    assert_eq!(stage.host.on_the_way.lock().expect("nobody panicked").len(), 1, "asked, and not answered");
    stage.wants("shop", 20);
    stage.host.is_mute.store(false, Relaxed);
    for _ in 0..3 {
        stage.cycle().await;
    }
    assert_eq!((stage.quotas().await["a"], stage.state.throttled()), (Some(10), 0), "it has everything");

    // An hour of load and another agent later it would be too late; a few seconds are not.
    stage.restart_from(folder.path()).await;
    assert_eq!(stage.state.throttled(), 0, "nothing is taken");
    stage.host.arrive();
    assert_eq!(stage.quotas().await["a"], Some(6), "what was asked for long ago is done now");
    for _ in 0..3 {
        stage.cycle().await;
    }
    assert_eq!((stage.quotas().await["a"], stage.state.throttled()), (Some(10), 0), "and undone, in steps");
    for _ in 0..62 {
        stage.cycle().await;
    }
    assert!(!stage.state.remembers(), "two minutes later it is forgotten");
}

#[tokio::test]
async fn what_is_taken_beyond_the_gap_follows_what_acts_released_if_asked_for() {
    for tune in [false, true] {
        let mut stage = Stage::new().await;
        stage.agent.tune = tune;
        stage.ask_for(rules()).await;
        stage.run("shop", 66, false).await;
        stage.run("a", 10, true).await;
        let uid = stage.uid("a");
        stage.host.lock().get_mut(&uid).expect("it runs").is_free = true;
        let before = stage.agent.planning.excess;
        for _ in 0..4 {
            stage.cycle().await;
        }
        assert_eq!(stage.agent.planning.excess > before, tune, "nothing was released of what was expected");
        let of = Release { act: "throttled", resource: "cpu" };
        let figure = |family: &Family<Release, Gauge<f64, AtomicU64>>| family.get_or_create(&of).get();
        let metrics = &stage.agent.metrics;
        let (predicted, released) = (figure(&metrics.predicted), figure(&metrics.released));
        assert!(predicted > 0.0 && released == 0.0, "{predicted}, {released}");
        assert!((figure(&metrics.off) - predicted).abs() < 1e-9, "all of it was off");
    }
}

/// What the kernel says of a machine of ten cores: so many ticks busy, so many idle, since it started.
fn ticks(root: &Path, busy: u64, idle: u64) {
    std::fs::write(root.join("proc/stat"), format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\n")).expect("written");
}

#[tokio::test]
async fn files_that_lie_make_nobody_act_and_honest_ones_do() {
    let mut stage = Stage::new().await;
    stage.ask_for(only_evict()).await;
    for name in ["a", "b"] {
        stage.run(name, 10, true).await;
    }
    let root = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(root.path().join("proc")).expect("a folder");
    stage.agent.host = Arc::new(Local::new(local::Options {
        node: NODE.into(),
        root: root.path().to_owned(),
        cgroup_root: String::new(),
        interfaces: Vec::new(),
        count_iowait: false,
        longest: Duration::from_mins(1),
        actuator: Actuator::Cgroup,
    }));
    // Half busy, so that every lie has something to be compared with.
    let (mut busy, mut idle) = (1_000, 1_000);
    let mut doubts = Vec::new();
    for lie in [
        "cpu  NaN 0 0 1000 0 0 0 0 0 0\n",
        "cpu  -1 0 0 1000 0 0 0 0 0 0\n",
        "cpu  18446744073709551615 0 0 1000 0 0 0 0 0 0\n",
        "cpu  18446744073709551616 0 0 1000 0 0 0 0 0 0\n",
        "cpu  1 0 0 1 0 0 0 0 0 0\n",
        "cpu  99999999999999",
        "",
        "\u{0}\u{1}\u{fffd}",
    ] {
        ticks(root.path(), busy, idle);
        let before = stage.cycle().await;
        std::fs::write(root.path().join("proc/stat"), lie).expect("written");
        let mut told = before;
        for _ in 0..3 {
            told.extend(stage.cycle().await);
        }
        (busy, idle) = (busy + 100, idle + 100);
        let (of_rules, acts): (Vec<_>, Vec<_>) =
            told.into_iter().partition(|line| line.contains("rule overload/full is"));
        doubts.extend(of_rules);
        assert_eq!(acts, Vec::<String>::new(), "{lie:?}");
        assert_eq!((stage.leaving().await, stage.says().await.0), (vec![], false), "{lie:?}");
    }
    assert_eq!(stage.agent.metrics.evicted.get(), 0);
    let in_error =
        "rule overload/full is in error: cpu_total_utilization is no number that could be measured";
    assert!(doubts[0].ends_with(in_error), "why is told: {doubts:?}");
    let times = doubts.iter().filter(|line| line.ends_with(in_error)).count();
    assert!(times <= 8, "when it begins, and not at every one of 32 looks: {doubts:?}");
    assert_eq!(stage.agent.metrics.rules_in_error.get(), 1);
    stage.told(&[("Node", "RuleInError")]).await;
    // 96 % busy, and nothing is wrong with it: the very same agent closes the node. Who would have to go is not known.
    ticks(root.path(), busy, idle);
    stage.cycle().await;
    for _ in 0..3 {
        (busy, idle) = (busy + 960, idle + 40);
        ticks(root.path(), busy, idle);
        stage.cycle().await;
    }
    assert!(stage.says().await.0, "the node is closed");
    assert_eq!(stage.agent.metrics.rules_in_error.get(), 0);
    assert_eq!(stage.leaving().await, Vec::<String>::new(), "of no pod it is known what it uses");
}

#[tokio::test]
async fn what_is_wrong_with_rules_is_told_on_the_node() {
    let mut stage = Stage::new().await;
    let mut objects = rules();
    objects[3].1["spec"]["rules"][0]["actionName"] = json!("vanished");
    stage.ask_for(objects).await;
    let told = stage.cycle().await;
    let words = "rule overload/busy can only close the node: there is no AvoidanceAction \"vanished\"";
    assert!(told.iter().any(|line| line.contains(words)), "{told:?}");
    let events: Api<k8s_openapi::api::events::v1::Event> = Api::all(stage.client.clone());
    let find = async {
        loop {
            let all = events.list(&ListParams::default()).await.expect("events are listed").items;
            let doubt = all.into_iter().find(|event| event.reason.as_deref() == Some("DoubtfulRule"));
            if let Some(event) = doubt {
                return event;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let event = tokio::time::timeout(PATIENCE, find).await.expect("an Event");
    assert_eq!(event.note.as_deref(), Some(words));
    let on = event.regarding.expect("an object");
    assert_eq!((on.kind.as_deref(), on.name.as_deref()), (Some("Node"), Some(NODE)));
    assert!(stage.cycle().await.is_empty(), "told once");
}

#[tokio::test]
async fn what_cannot_be_done_as_asked_is_told_when_it_begins() {
    let mut stage = Stage::new().await;
    stage.ask_for(rules()).await;
    stage.run("shop", 72, false).await;
    stage.run("a", 10, true).await;
    for _ in 0..2 {
        stage.cycle().await;
    }
    let uid = stage.uid("a");
    stage.host.lock().get_mut(&uid).expect("it runs").quota = CpuQuota::Us(77_000);
    stage.wants("shop", 20);
    let (mut times, words) = (0, "somebody else has changed it, it stays");
    for _ in 0..4 {
        times += stage.cycle().await.iter().filter(|line| line.contains(words)).count();
    }
    assert_eq!((times, stage.quotas().await["a"]), (1, Some(7)));
}

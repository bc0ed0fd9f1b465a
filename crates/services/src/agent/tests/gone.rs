//! What is gone when it is to be acted on: a pod, a container runtime, the agent itself.

use super::faults::overrun;
use super::metric::{local, network, receiving};
use super::*;
use crate::node::Runtime;
use crate::node::local::Actuator;
use loadline_apiserver::fault::{Action, Rule};
use std::os::unix::net::UnixListener;

#[tokio::test]
async fn who_is_gone_between_the_plan_and_the_eviction_sends_nobody_else_away() {
    let mut stage = Stage::new().await;
    overrun(&mut stage).await;
    let uid = stage.uid("a");
    let pods: Api<core::Pod> = Api::default_namespaced(stage.client.clone());
    pods.delete("a", &DeleteParams::default().grace_period(0)).await.expect("it ends");
    // Its end is not known yet.
    stage.now += SignedDuration::from_secs(2);
    stage.agent.cycle(&mut stage.state, stage.now).await;
    assert_eq!(stage.asked(), [("default/a".to_owned(), Reply::Gone)]);
    assert_eq!(stage.leaving().await, Vec::<String>::new(), "what it used counts as released");
    assert_eq!(stage.agent.metrics.evicted.get(), 0, "and nobody was evicted");
    stage.host.lock().remove(&uid);
    let key = Key::new("default", "a");
    stage.until("the pod is gone", |state| state.pod(&key).is_none()).await;
    for _ in 0..4 {
        stage.cycle().await;
    }
    assert_eq!((stage.asked().len(), stage.leaving().await.len()), (1, 0), "nobody goes instead");
}

#[tokio::test]
async fn an_agent_killed_while_it_marks_its_node_leaves_no_mark_behind() {
    for (path, condition) in [("/api/v1/nodes/*/status", None), ("/api/v1/nodes/*", Some("True".to_owned()))]
    {
        for is_over in [false, true] {
            let mut stage = Stage::new().await;
            let folder = tempfile::tempdir().expect("a folder");
            stage.restart_from(folder.path()).await;
            overrun(&mut stage).await;
            stage.faults.add(Rule::new(Action::Delay(Duration::from_hours(1))).path(path));
            stage.now += SignedDuration::from_secs(2);
            let faults = stage.faults.clone();
            let asks = async {
                while faults.log().is_empty() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                () = stage.agent.cycle(&mut stage.state, stage.now) => panic!("{path}: it cannot end"),
                asked = tokio::time::timeout(PATIENCE, asks) => asked.expect("it asks"),
            }
            stage.faults.clear();
            assert_eq!(stage.says().await, (false, condition.clone(), false), "{path}");
            assert_eq!(stage.leaving().await, Vec::<String>::new(), "{path}: first the mark");
            if is_over {
                stage.wants("shop", 20);
            }
            stage.restart_from(folder.path()).await;
            let mut cycles = 0;
            while !is_over && !stage.says().await.0 {
                stage.cycle().await;
                cycles += 1;
                assert!(cycles < 20, "{path}: the next agent closes the node");
            }
            stage.wants("shop", 20);
            let open = Some("False".to_owned());
            while stage.says().await.0
                || stage.says().await.1.as_ref().is_some_and(|said| Some(said) != open.as_ref())
            {
                stage.cycle().await;
                cycles += 1;
                assert!(cycles < 60, "{path}, over: {is_over}: and opens it again");
            }
            assert!(!stage.says().await.2, "{path}, over: {is_over}");
        }
    }
}

#[tokio::test]
async fn a_runtime_that_was_killed_changes_no_quota_and_why_is_said() {
    let (mut stage, root) = (Stage::new().await, tempfile::tempdir().expect("a folder"));
    stage.state.catalogue.register(network(Some("cpu")));
    let folder = tempfile::tempdir().expect("a folder");
    stage.agent.journal = Journal::open(folder.path(), NODE);
    let mut objects = rules();
    let rules = &mut objects[3].1["spec"]["rules"];
    rules[0]["metricRule"] = json!({"name": super::metric::NAME, "value": 1000});
    rules.as_array_mut().expect("a list").truncate(1);
    receiving(&mut stage, objects, root.path()).await;
    // One that has ended leaves its socket behind, and nobody listens.
    let socket = root.path().join("cri.sock");
    drop(UnixListener::bind(&socket).expect("a socket"));
    let runtime = Runtime::at(&socket, PATIENCE).expect("a path");
    stage.agent.host = local(root.path(), Actuator::Runtime(Box::new(runtime)));
    for _ in 0..3 {
        let told = stage.cycle().await;
        assert!(!told.iter().any(|line| line.contains("throttled")), "nothing is pretended: {told:?}");
    }
    let failure = stage.agent.failure.clone().expect("it failed");
    assert!(failure.contains("no container runtime answers at") && failure.contains("cri.sock"), "{failure}");
    let mut left = Journal::open(folder.path(), NODE);
    assert!(left.is_none(), "the agent has it");
    stage.agent.journal = None;
    left = Journal::open(folder.path(), NODE);
    let left = left.expect("nobody has it").read().expect("it was written");
    let unsure: Vec<_> =
        left.state.throttled.iter().map(|one| (one.original_us, one.written_us, &*one.unsure_us)).collect();
    assert_eq!(unsure, [(-1, -1, &[20_000][..])], "of one it was asked, and nobody knows");
    for name in ["a", "b"] {
        let quota = super::metric::quota_file(&stage, root.path(), name);
        assert_eq!(std::fs::read_to_string(quota).expect("it is there"), "max 100000\n", "{name}");
    }
}

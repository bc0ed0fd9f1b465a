use super::*;
use crate::scheduler::extender::Ask;
use loadline_api::extender::Names;
use loadline_core::cluster::{Keep, Verdict};
use tokio::sync::oneshot;

/// Does kube-scheduler hear that the pod may go to `n1`? It is taken to be on its way for ten seconds at least.
fn may_go(state: &mut State, value: &Value, second: i64) -> bool {
    let (reply, mut answer) = oneshot::channel();
    let mut names = Names::default();
    names.push("n1");
    let (pod, _) = loadline_api::pod::read(&Tree::from(value)).unwrap();
    let (pod, keep, reserve_for) = (Box::new(pod), Keep::All, Duration::from_secs(10));
    state.answer(Ask::Filter { pod, names, keep, reserve_for, reply }, now(second));
    let (_, verdicts, _) = answer.try_recv().unwrap().unwrap();
    verdicts == [Verdict::Passes]
}

/// Of 8 CPUs under the line 5 are used: room for one pod of two.
fn room_for_one() -> State {
    half_used(vec![SchedulerProfile::new("ours", Some(line(0.8)))], &[])
}

/// As its condition says when it fits nowhere.
fn refused(why: &str) -> Value {
    let condition =
        json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why});
    json!({"metadata": {"resourceVersion": "9"}, "status": {"conditions": [condition]}})
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_bound_after_fifteen_seconds_has_kept_its_room() {
    for scheduler in ["another", "ours"] {
        let mut state = room_for_one();
        let (a, b) = (asking("a", scheduler), asking("b", "another"));
        // Whether it is seen before it is asked about, or after.
        let heard = set_pod(&a);
        let seen_first = scheduler == "ours";
        if seen_first {
            state.take(set_pod(&a), now(0));
        }
        assert!(may_go(&mut state, &a, 0));
        if !seen_first {
            state.take(heard, now(0));
        }
        state.advance(now(14));
        assert!(!may_go(&mut state, &b, 14), "it waits in the line of bindings");
        let mut bound = a.clone();
        merge(&mut bound, json!({"metadata": {"resourceVersion": "9"}, "spec": {"nodeName": "n1"}}));
        state.take(set_pod(&bound), now(15));
        assert!(!may_go(&mut state, &b, 15), "it is there");
        assert_eq!(state.tentative(), 0);
    }
}

/// What is heard of a pod.
type Heard = fn(&Value) -> Vec<Message>;

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_or_refused_or_unknown_gives_its_room_back_and_nobody_keeps_it_for_ever() {
    let mut before = asking("a", "another");
    merge(&mut before, refused("0/1 nodes are available: 1 Insufficient cpu."));
    merge(&mut before, json!({"metadata": {"resourceVersion": "1"}}));
    let news = "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s).";
    let refuse: Heard = |pod| {
        let mut now = pod.clone();
        merge(&mut now, refused("0/1 nodes are available: 1 node(s) didn't satisfy plugin(s)."));
        vec![set_pod(pod), set_pod(&now)]
    };
    let table: [(_, Heard, _, _); 7] = [
        (asking("a", "another"), |_| Vec::new(), 10, "nobody has seen it"),
        (asking("a", "another"), |pod| vec![set_pod(pod)], 300, "it waits"),
        (asking("a", "another"), |pod| vec![set_pod(pod), delete_pod(pod)], 1, "it is gone"),
        (asking("a", "another"), refuse, 10, news),
        (before.clone(), |pod| vec![set_pod(pod)], 60, "refused before, it may have been again"),
        (before.clone(), refuse, 10, news),
        (before, |pod| vec![set_pod(pod), delete_pod(pod)], 1, "it is gone"),
    ];
    for (pod, heard, second, why) in table {
        let mut state = room_for_one();
        assert!(may_go(&mut state, &pod, 0));
        for message in heard(&pod) {
            state.take(message, now(1));
        }
        state.advance(now(second - 1));
        assert_eq!(state.tentative(), usize::from(second > 1), "{why}: until second {second}");
        state.advance(now(second));
        assert_eq!(state.tentative(), 0, "{why}: in second {second}");
        assert!(may_go(&mut state, &asking("b", "another"), second), "{why}");
    }
}

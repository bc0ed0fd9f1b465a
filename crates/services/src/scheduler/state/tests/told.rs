//! What is told of pods that wait and of what was decided.

use super::*;

#[tokio::test(start_paused = true)]
async fn many_that_wait_are_not_all_told_again_whenever_the_words_change() {
    let told = |words: Option<&str>| {
        let condition =
            words.map(|message| json!({"type": "PodScheduled", "status": "False", "message": message}));
        json!({"spec": {"nodeSelector": {"there": "is none"}}, "status": {"conditions": Vec::from_iter(condition)}})
    };
    let now = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
    let vain = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    for (before, expected, why) in [
        (None, 150, "the first time all are told"),
        (Some(&*format!("{now} {vain}")), 0, "the same words are no news"),
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
    let message = "0/1 nodes are available: 1 node(s) would pass the load line. preemption: 0/1 nodes are available: 1 No preemption \
        victims found for incoming pod.";
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
async fn what_a_decision_rested_on_is_told_as_it_was_then_also_of_a_pod_that_is_gone() {
    let mut state = half_used(vec![SchedulerProfile::new("strict", Some(line(0.8)))], &[]);
    let mut closed = node("n0", "10");
    merge(&mut closed, json!({"spec": {"unschedulable": true}}));
    for other in [&node("n2", "10"), &closed] {
        state.take(set_node(other), now(0));
    }
    state.take(measured(0, &[("n2", "6")]), now(0));
    let pod = asking("a", "strict");
    state.take(set_pod(&pod), now(0));
    assert_eq!(words(&mut state), ["a to n1"]);
    let key = Key::new("default", "a");
    let decision = |said: &Value| said["decisions"][0].clone();
    let then = decision(&state.explain(&key, 10, now(1)).expect("it is there"));
    assert_eq!((&then["node"], &then["next"]["node"]), (&json!("n1"), &json!("n2")), "{then}");
    let (score, next) = (then["score"].as_i64(), then["next"]["score"].as_i64());
    assert!(score > next && next > Some(0), "{then}");
    let cpu = &then["load"]["cpu"];
    assert_eq!(
        [&cpu["measured"], &cpu["pending"], &cpu["incoming"], &cpu["limit"], &cpu["basis"]],
        [&json!("5"), &json!("0"), &json!("2"), &json!("8"), &json!("measured")]
    );
    assert_eq!(then["refusals"], json!([{"rule": "cordon", "node": "n0", "reason": "the node is cordoned"}]));
    // Whatever is measured later, it stays what it was.
    state.take(measured(5, &[("n1", "9"), ("n2", "1")]), now(5));
    assert_eq!(decision(&state.explain(&key, 10, now(6)).expect("it is there")), then);
    state.take(delete_pod(&pod), now(7));
    let gone = state.explain(&key, 10, now(8)).expect("what was decided is remembered");
    assert_eq!((&gone["node"], &gone["now"]), (&json!(null), &json!(null)));
    assert_eq!(decision(&gone), then);
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

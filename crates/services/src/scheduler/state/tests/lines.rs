//! Targets of ours above the lines of agents: who is told, and how often.

use super::*;
use crate::scheduler::watched::{Actions, LinesMessage, NodeRules};

fn node_rules(event: Event<loadline_core::qos::policy::NodeQos>) -> Message {
    Message::Lines(LinesMessage::NodeRules(event))
}

fn action(event: Event<loadline_core::qos::policy::Action>) -> Message {
    Message::Lines(LinesMessage::Action(event))
}

fn drop_action() -> Message {
    let object =
        json!({"metadata": {"name": "drop", "uid": "d", "resourceVersion": "1"}, "spec": {"eviction": {}}});
    action(Event::Applied(meta(&object), Actions::read(&Tree::from(&object))))
}

/// A line through the CPU of all nodes, in percent.
fn line(name: &str, revision: u64, percent: u32) -> Message {
    let object = json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": revision.to_string()},
        "spec": {"rules": [{
            "name": "cpu", "actionName": "drop",
            "metricRule": {"name": "cpu_total_utilization", "value": percent},
        }]},
    });
    node_rules(Event::Applied(meta(&object), NodeRules::read(&Tree::from(&object))))
}

fn told(state: &mut State) -> Vec<String> {
    state.advance(now(0));
    state.disagreements().into_iter().map(|(meta, what)| format!("{}: {what}", meta.key.name)).collect()
}

// By crane's policy the target is 0.65: 6500m of 10 CPUs, 5200m of 8.
#[test]
fn a_line_below_the_target_is_told_once_with_the_worst_node() {
    let mut state = state(&[node("a", "10"), node("b", "8")], &[]);
    state.take_all(list(node_rules, vec![line("all", 1, 60)]));
    assert_eq!(told(&mut state), [""; 0], "actions are not known yet");
    state.take_all(list(action, vec![drop_action()]));
    let text = "on a, pods come until 6500m of cpu are used (target 0.65), but rule all/cpu acts above 6 (60%): 500m too many";
    assert_eq!(told(&mut state), [format!("all: {text}; so on one more node")]);
    assert_eq!(state.disagreeing(), 2);

    assert_eq!(told(&mut state), [""; 0], "told once");
    state.take_all(vec![set_node(&node("c", "16"))]);
    assert_eq!(told(&mut state), [""; 0], "one more node is no news");
    assert_eq!(state.disagreeing(), 3);

    state.take_all(vec![line("all", 2, 64)]);
    assert_eq!(told(&mut state).len(), 1, "another line that is too low is");
    state.take_all(vec![line("all", 3, 65)]);
    assert_eq!(told(&mut state), [""; 0], "equal is agreement");
    assert_eq!(state.disagreeing(), 0);
}

#[test]
fn a_node_that_gets_a_target_of_its_own_or_goes_changes_the_count() {
    let mut state = state(&[node("a", "10")], &[]);
    state.take_all(list(action, vec![drop_action()]));
    state.take_all(list(node_rules, vec![line("all", 1, 70)]));
    assert_eq!(told(&mut state), [""; 0], "0.65 is below 70 %");
    let mut own = node("a", "10");
    own["metadata"]["resourceVersion"] = json!("2");
    own["metadata"]["annotations"] = json!({"loadline.dev/target-cpu": "0.9"});
    state.take_all(vec![set_node(&own)]);
    let text = "all: on a, pods come until 9 of cpu are used (target 0.9), but rule all/cpu acts above 7 (70%): 2 too many";
    assert_eq!(told(&mut state), [text]);
    assert_eq!(state.disagreeing(), 1);
    state.take_all(vec![Message::Node(Event::Deleted(meta(&own)))]);
    assert_eq!((told(&mut state).len(), state.disagreeing()), (0, 0));
}

#[test]
fn whoever_may_not_read_lines_places_pods_without() {
    let mut state = state(&[node("a", "10")], &[pod("p", 1, json!({}))]);
    state.take_all(vec![
        node_rules(Event::Forbidden("no".into())),
        action(Event::Failed("the server could not find the requested resource".into())),
    ]);
    assert_eq!(told(&mut state), [""; 0]);
    assert!(state.is_ready());
    assert!(matches!(state.next(now(0)), Some(Action::Bind { .. })));
}

#[test]
fn other_targets_are_held_against_the_same_lines() {
    let mut state = state(&[node("a", "10")], &[]);
    state.take_all(list(action, vec![drop_action()]));
    state.take_all(list(node_rules, vec![line("all", 1, 70)]));
    assert_eq!(told(&mut state), [""; 0]);
    let most = Ratio::from_nano(800_000_000);
    let targets = Settings { targets: Both { cpu: Some(most), memory: None }, ..Settings::default() };
    let rules = Rules::new(Policy::default(), targets).expect("well-formed").0;
    let profiles = vec![
        SchedulerProfile::new("loadline", Some(Rules::default())),
        SchedulerProfile::new("batch", Some(rules)),
    ];
    state.configure(&Configuration { profiles, ..Configuration::default() }, now(0));
    let told = told(&mut state);
    assert!(told[0].contains("8 of cpu are used (target 0.8)"), "whoever fills it most counts: {told:?}");
}

use super::*;
use crate::select::{Op, Requirement};
use proptest::prelude::*;

const NOW: i64 = 1_000_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a second in range")
}

fn app(value: &str) -> Selector {
    let is = Requirement::new("app", Op::Equals, vec![value.to_owned()]).expect("a valid label");
    Selector::all(vec![is])
}

fn key(name: &str) -> Key {
    Key::new("shop", name)
}

fn deployment(name: &str, template: u64) -> Deployment {
    let uid = format!("d-{name}").into();
    Deployment { key: key(name), uid, selector: app(name), template }
}

fn replica_set(name: &str, owner: &str, created: i64, template: u64) -> ReplicaSet {
    ReplicaSet {
        key: key(name),
        uid: format!("rs-{name}").into(),
        owner: Some(format!("d-{owner}").into()),
        created: Some(at(created)),
        template,
    }
}

fn pod(uid: &str, set: &str, label: &str, since: i64) -> Unplaced {
    Unplaced {
        namespace: "shop".into(),
        uid: uid.into(),
        owner: format!("rs-{set}").into(),
        labels: BTreeMap::from([("app".to_owned(), label.to_owned())]),
        since: Some(at(since)),
    }
}

/// One Deployment after a rollout: `old` is left behind, `new` has its template.
fn rolled_out() -> Waiting {
    let mut waiting = Waiting::new();
    waiting.set_deployment(deployment("web", 2));
    waiting.set_replica_set(replica_set("old", "web", 10, 1));
    waiting.set_replica_set(replica_set("new", "web", 20, 2));
    waiting
}

fn ask(waiting: &Waiting, threshold: i64) -> Option<i32> {
    waiting.unschedulable(&key("web"), SignedDuration::from_secs(threshold), at(NOW))
}

#[test]
fn pods_of_the_newest_replica_set_count_once_they_waited_longer_than_the_threshold() {
    for (pod, threshold, expected, why) in [
        (pod("a", "new", "web", NOW - 301), 300, 1, "301 s is longer than 300 s"),
        (pod("a", "new", "web", NOW - 300), 300, 0, "exactly as long is not longer"),
        (pod("a", "new", "web", NOW - 1), 0, 1, "any wait"),
        (pod("a", "new", "web", NOW - 1), -60, 1, "a negative threshold is none"),
        (pod("a", "new", "web", NOW), -60, 0, "and not one that reaches into the future"),
        (pod("a", "old", "web", NOW - 900), 300, 0, "what a rollout left behind is not wanted any more"),
        (pod("a", "new", "other", NOW - 900), 300, 0, "its selector does not match"),
        (pod("a", "lost", "web", NOW - 900), 300, 0, "somebody else's replica set"),
        (Unplaced { since: None, ..pod("a", "new", "web", 0) }, 300, 1, "no time given: always"),
    ] {
        let mut waiting = rolled_out();
        waiting.set_pod(pod);
        assert_eq!(ask(&waiting, threshold), Some(expected), "{why}");
    }
}

#[test]
fn the_oldest_replica_set_with_the_template_is_the_newest_generation() {
    let mut waiting = rolled_out();
    waiting.set_pod(pod("a", "new", "web", 0));
    waiting.set_pod(pod("b", "twin", "web", 0));
    waiting.set_replica_set(replica_set("twin", "web", 30, 2));
    assert_eq!(ask(&waiting, 0), Some(1), "new is older than twin");
    waiting.set_replica_set(replica_set("twin", "web", 20, 2));
    assert_eq!(ask(&waiting, 0), Some(1), "of the same age, the first by name");
    waiting.remove_replica_set(&key("new"));
    assert_eq!(ask(&waiting, 0), Some(1), "only twin is left, with pod b");
    waiting.set_replica_set(replica_set("twin", "stranger", 20, 2));
    assert_eq!(ask(&waiting, 0), Some(0), "controlled by another");
}

#[test]
fn no_such_deployment_is_none_and_one_without_replica_sets_is_zero() {
    let mut waiting = Waiting::new();
    assert_eq!(ask(&waiting, 0), None);
    waiting.set_deployment(deployment("web", 1));
    assert_eq!(ask(&waiting, 0), Some(0));
    assert_eq!(waiting.unschedulable(&Key::new("other", "web"), SignedDuration::ZERO, at(NOW)), None);
    waiting.remove_deployment(&key("web"));
    assert_eq!(ask(&waiting, 0), None);
}

#[test]
fn thresholds_beyond_the_end_of_time_are_never_passed() {
    let mut waiting = rolled_out();
    waiting.set_pod(pod("a", "new", "web", 0));
    let answer = waiting.unschedulable(&key("web"), SignedDuration::MAX, Timestamp::MAX);
    assert_eq!(answer, Some(0));
}

#[test]
fn a_clone_stays_as_it_is_and_shares_what_did_not_change() {
    let mut waiting = rolled_out();
    let before = waiting.clone();
    waiting.set_pod(Unplaced { namespace: "elsewhere".into(), ..pod("x", "new", "web", 0) });
    assert!(Arc::ptr_eq(&before.spaces["shop"], &waiting.spaces["shop"]), "another namespace changed");
    waiting.set_pod(pod("a", "new", "web", 0));
    assert_eq!((ask(&before, 0), ask(&waiting, 0)), (Some(0), Some(1)));
    let same = waiting.clone();
    waiting.set_pod(pod("a", "new", "web", 0));
    waiting.remove_pod("shop", "never there");
    assert!(Arc::ptr_eq(&same.spaces, &waiting.spaces), "nothing changed");
}

#[test]
fn nothing_is_kept_of_a_namespace_that_is_empty_again() {
    let mut waiting = rolled_out();
    waiting.set_pod(pod("a", "new", "web", 0));
    assert_eq!(waiting.pod_count(), 1);
    waiting.remove_pod("shop", "a");
    waiting.remove_deployment(&key("web"));
    waiting.remove_replica_set(&key("old"));
    waiting.remove_replica_set(&key("new"));
    assert!(waiting.spaces.is_empty());
}

#[derive(Clone, Debug)]
enum Event {
    Deployment(Deployment),
    NoDeployment(String),
    Set(ReplicaSet),
    NoSet(String),
    Pod(Unplaced),
    NoPod(String),
}

fn event() -> impl Strategy<Value = Event> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let uid = || "[p-s]";
    prop_oneof![
        (name(), 0..3_u64).prop_map(|(n, t)| Event::Deployment(deployment(n, t))),
        name().prop_map(|n| Event::NoDeployment(n.to_owned())),
        (uid(), name(), 0..4_i64, 0..3_u64).prop_map(|(n, o, c, t)| Event::Set(replica_set(&n, o, c, t))),
        uid().prop_map(Event::NoSet),
        (uid(), uid(), name(), 0..20_i64).prop_map(|(u, s, l, t)| Event::Pod(pod(&u, &s, l, t))),
        uid().prop_map(Event::NoPod),
    ]
}

/// What is there after some events, as plain lists.
#[derive(Default)]
struct Plain {
    deployments: Vec<Deployment>,
    sets: Vec<ReplicaSet>,
    pods: Vec<Unplaced>,
}

impl Plain {
    fn hear(&mut self, event: &Event) {
        match event.clone() {
            Event::Deployment(new) => {
                self.deployments.retain(|d| d.key != new.key);
                self.deployments.push(new);
            }
            Event::NoDeployment(name) => self.deployments.retain(|d| *d.key.name != *name),
            Event::Set(new) => {
                self.sets.retain(|s| s.key != new.key);
                self.sets.push(new);
            }
            Event::NoSet(name) => self.sets.retain(|s| *s.key.name != *name),
            Event::Pod(new) => {
                self.pods.retain(|p| p.uid != new.uid);
                self.pods.push(new);
            }
            Event::NoPod(uid) => self.pods.retain(|p| *p.uid != *uid),
        }
    }

    /// Step by step, as the rule is told.
    fn unschedulable(&self, name: &str, threshold: i64, now: i64) -> Option<i32> {
        let deployment = self.deployments.iter().find(|d| &*d.key.name == name)?;
        let mut sets: Vec<&ReplicaSet> = self.sets.iter().collect();
        sets.sort_by_key(|set| (set.created, set.key.name.clone()));
        sets.retain(|set| set.owner.as_deref() == Some(&*deployment.uid));
        sets.retain(|set| set.template == deployment.template);
        let mut count = 0;
        for pod in &self.pods {
            let controlled = sets.first().is_some_and(|set| set.uid == pod.owner);
            let selected = pod.labels.get("app").map(String::as_str) == Some(name);
            let since = pod.since.expect("given").as_second();
            if controlled && selected && since + threshold.max(0) < now {
                count += 1;
            }
        }
        Some(count)
    }
}

proptest! {
    #[test]
    fn after_any_events_the_answer_is_that_of_the_plain_lists(
        events in prop::collection::vec(event(), 0..40),
        threshold in -2..10_i64,
        now in 0..25_i64,
    ) {
        let (mut waiting, mut plain) = (Waiting::new(), Plain::default());
        for event in &events {
            plain.hear(event);
            match event.clone() {
                Event::Deployment(new) => waiting.set_deployment(new),
                Event::NoDeployment(name) => waiting.remove_deployment(&key(&name)),
                Event::Set(new) => waiting.set_replica_set(new),
                Event::NoSet(name) => waiting.remove_replica_set(&key(&name)),
                Event::Pod(new) => waiting.set_pod(new),
                Event::NoPod(uid) => waiting.remove_pod("shop", &uid),
            }
        }
        for name in ["a", "b", "c"] {
            let threshold_time = SignedDuration::from_secs(threshold);
            prop_assert_eq!(
                waiting.unschedulable(&key(name), threshold_time, at(now)),
                plain.unschedulable(name, threshold, now)
            );
        }
        prop_assert_eq!(waiting.pod_count(), plain.pods.len());
    }
}

use super::*;
use crate::cluster::{Amount, Meta, ObjectMeta, ReplicaSetStatus};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn deployment(replicas: i64, image: &str, surge: i64, missing: i64) -> Deployment {
    Deployment {
        meta: ObjectMeta {
            id: Meta { key: Key::new("default", "web"), uid: "d".into(), revision: None },
            generation: 1,
            ..ObjectMeta::default()
        },
        replicas,
        selector: json!({"matchLabels": {"app": "web"}}),
        template: template(image),
        strategy: Strategy::Rolling { surge: Amount::Count(surge), unavailable: Amount::Count(missing) },
        history: 2,
        progress_deadline: 600,
        ..Deployment::default()
    }
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

/// A replica set that has caught up with its size, with some pods not available.
fn set(image: &str, revision: i64, size: i64, broken: i64) -> ReplicaSet {
    let annotations = [(REVISION, revision.to_string())];
    let annotations = annotations.map(|(name, value)| (name.to_owned(), value)).into();
    ReplicaSet {
        meta: ObjectMeta {
            id: Meta { key: Key::new("default", format!("web-{image}")), uid: image.into(), revision: None },
            created: Some(at(revision)),
            annotations,
            ..ObjectMeta::default()
        },
        replicas: size,
        template: template(image),
        status: ReplicaSetStatus {
            replicas: size,
            ready_replicas: size - broken,
            available_replicas: size - broken,
            ..ReplicaSetStatus::default()
        },
        ..ReplicaSet::default()
    }
}

fn sizes(plan: &Plan) -> Vec<(&str, i64)> {
    let sized = plan.changes.iter().filter_map(|(key, change)| Some((key, change.replicas?)));
    sized.map(|(key, size)| (key.name.strip_prefix("web-").unwrap(), size)).collect()
}

fn plan_of(d: &Deployment, sets: &[ReplicaSet]) -> Plan {
    let sets: Vec<_> = sets.iter().cloned().map(Arc::new).collect();
    plan(d, &sets, false, at(1000))
}

#[test]
fn the_first_step_makes_a_replica_set_of_full_size_with_revision_one() {
    let plan = plan_of(&deployment(3, "a", 1, 1), &[]);
    let set = plan.create.unwrap();
    assert_eq!(set["spec"]["replicas"], 3);
    assert_eq!(set["metadata"]["annotations"][REVISION], "1");
    let hash = &set["spec"]["selector"]["matchLabels"]["pod-template-hash"];
    assert_eq!(hash, &set["spec"]["template"]["metadata"]["labels"]["pod-template-hash"]);
    assert_eq!(plan.revision.as_deref(), Some("1"));
    assert_eq!(plan.status.conditions[1].reason, "NewReplicaSetCreated");
}

#[test]
fn rolling_steps_keep_within_surge_and_availability() {
    let table = [
        ((1, 0), vec![set("a", 1, 4, 0)], None, vec![], "a new set starts with the surge"),
        (
            (1, 0),
            vec![set("a", 1, 4, 0), set("b", 2, 1, 1)],
            Some("b"),
            vec![],
            "nothing moves until it is up",
        ),
        ((1, 0), vec![set("a", 1, 4, 0), set("b", 2, 1, 0)], Some("b"), vec![("a", 3)], "one up, one down"),
        ((1, 0), vec![set("a", 1, 3, 0), set("b", 2, 1, 0)], Some("b"), vec![("b", 2)], "and the next up"),
        (
            (0, 1),
            vec![set("a", 1, 4, 0), set("b", 2, 0, 0)],
            Some("b"),
            vec![("a", 3)],
            "without surge, down first",
        ),
        (
            (0, 1),
            vec![set("a", 1, 4, 3), set("b", 2, 0, 0)],
            Some("b"),
            vec![("a", 3)],
            "broken ones go first",
        ),
        (
            (0, 0),
            vec![set("a", 1, 4, 0), set("b", 2, 0, 0)],
            Some("b"),
            vec![("a", 3)],
            "no slack is one missing",
        ),
        (
            (2, 2),
            vec![set("a", 1, 4, 0), set("b", 2, 2, 0)],
            Some("b"),
            vec![("a", 0)],
            "all that can be missed go",
        ),
        ((1, 1), vec![set("b", 2, 6, 0)], Some("b"), vec![("b", 4)], "too large a set shrinks"),
        ((1, 1), vec![set("b", 2, 4, 0)], Some("b"), vec![], "done"),
    ];
    for ((surge, missing), sets, new, expected, why) in table {
        let plan = plan_of(&deployment(4, "b", surge, missing), &sets);
        assert_eq!(plan.create.is_some(), new.is_none(), "{why}");
        assert_eq!(sizes(&plan), expected, "{why}");
    }
}

#[test]
fn any_rollout_ends_within_its_limits() {
    for (replicas, surge, missing) in
        [(1, 1, 0), (4, 1, 0), (4, 0, 1), (10, 3, 2), (40, 10, 10), (3, 5, 3), (5, 0, 0)]
    {
        let d = deployment(replicas, "b", surge, missing);
        let (least, most) = (replicas - missing.max(i64::from(surge == 0)), replicas + surge);
        let mut sets = vec![set("a", 1, replicas, 0), set("b", 2, 0, 0)];
        let mut steps = 0;
        loop {
            let plan = plan_of(&d, &sets);
            if sizes(&plan).is_empty() {
                break;
            }
            for set in &mut sets {
                let change = plan.changes.get(&set.meta.id.key).and_then(|c| c.replicas);
                set.replicas = change.unwrap_or(set.replicas);
                set.status.replicas = set.replicas;
                set.status.ready_replicas = set.replicas;
                set.status.available_replicas = set.replicas;
            }
            let total: i64 = sets.iter().map(|set| set.replicas).sum();
            assert!((least..=most).contains(&total), "{replicas} {surge} {missing}: {total}");
            steps += 1;
            assert!(steps < 500, "{replicas} {surge} {missing} never ends");
        }
        let end: Vec<_> = sets.iter().map(|set| set.replicas).collect();
        assert_eq!(end, [0, replicas]);
    }
}

#[test]
fn recreate_waits_for_old_pods() {
    let d = Deployment { strategy: Strategy::Recreate, ..deployment(3, "b", 0, 0) };
    let up = [Arc::new(set("a", 1, 3, 0))];
    assert_eq!(sizes(&plan(&d, &up, true, at(0))), [("a", 0)]);
    let down = [Arc::new(set("a", 1, 0, 0))];
    assert!(plan(&d, &down, true, at(0)).create.is_none(), "old pods are still there");
    let create = plan(&d, &down, false, at(0)).create.unwrap();
    assert_eq!(create["spec"]["replicas"], 3);
}

fn noted(mut set: ReplicaSet, desired: i64, max: i64) -> ReplicaSet {
    set.meta.annotations.insert(DESIRED.into(), desired.to_string());
    set.meta.annotations.insert(MAX.into(), max.to_string());
    set
}

#[test]
fn a_new_number_is_spread_in_proportion() {
    let d = |replicas| deployment(replicas, "b", 2, 1);
    let both = |a, b| vec![noted(set("a", 1, a, 0), 10, 12), noted(set("b", 2, b, 0), 10, 12)];
    let table = [
        (d(20), vec![noted(set("b", 2, 10, 0), 10, 12)], vec![("b", 20)], "one set takes all"),
        (d(20), both(8, 4), vec![("a", 15), ("b", 7)], "both grow, 2 to 1"),
        (d(5), both(8, 4), vec![("a", 5), ("b", 2)], "both shrink"),
        (d(0), both(8, 4), vec![("a", 0), ("b", 0)], "down to nothing"),
    ];
    for (d, sets, expected, why) in table {
        let plan = plan_of(&d, &sets);
        assert_eq!(sizes(&plan), expected, "{why}");
        let total: i64 = expected.iter().map(|(_, n)| n).sum();
        assert!(total <= d.replicas + 2, "{why}");
    }
}

#[test]
fn paused_deployments_scale_and_do_not_roll() {
    let d = Deployment { paused: true, ..deployment(6, "b", 1, 1) };
    let plan = plan_of(&d, &[noted(set("a", 1, 4, 0), 4, 5)]);
    assert!(plan.create.is_none());
    assert_eq!(sizes(&plan), [("a", 6)]);
    assert_eq!(plan.status.conditions.last().unwrap().reason, "DeploymentPaused");
}

#[test]
fn going_back_gives_the_old_set_a_new_revision() {
    let plan = plan_of(&deployment(2, "a", 1, 0), &[set("a", 1, 0, 0), set("b", 2, 2, 0)]);
    let change = &plan.changes[&Key::new("default", "web-a")];
    assert_eq!(change.annotations[REVISION], "3");
    assert_eq!(plan.revision.as_deref(), Some("3"));
}

#[test]
fn a_finished_rollout_says_so_and_drops_old_history() {
    let d = deployment(2, "d", 1, 0);
    let sets = [set("a", 1, 0, 0), set("b", 2, 0, 0), set("c", 3, 0, 0), set("d", 4, 2, 0)];
    let plan = plan_of(&d, &sets);
    let reasons: Vec<_> = plan.status.conditions.iter().map(|c| c.reason.as_str()).collect();
    assert_eq!(reasons, ["MinimumReplicasAvailable", "NewReplicaSetAvailable"]);
    let gone: Vec<_> = plan.delete.iter().map(|set| &*set.meta.id.uid).collect();
    assert_eq!(gone, ["a"], "two are kept");
}

#[test]
fn lack_of_progress_is_told_after_the_deadline() {
    let mut d = deployment(2, "b", 1, 0);
    let sets = [set("b", 1, 2, 2)];
    d.status = plan_of(&d, &sets).status;
    let sets: Vec<_> = sets.into_iter().map(Arc::new).collect();
    let before = plan(&d, &sets, false, at(1500));
    assert_eq!(before.look_again, Some(101));
    let after = plan(&d, &sets, false, at(1601));
    let progressing = after.status.conditions.iter().find(|c| c.r#type == "Progressing").unwrap();
    assert_eq!(
        (progressing.status.as_str(), progressing.reason.as_str()),
        ("False", "ProgressDeadlineExceeded")
    );
    assert_eq!(after.look_again, None);
}

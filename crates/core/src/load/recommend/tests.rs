use super::*;

fn target(group: &str, kind: &str, name: &str) -> WorkloadRef {
    WorkloadRef { group: group.into(), kind: kind.into(), key: Key::new("shop", name) }
}

fn owner(group: &str, kind: &str, name: &str) -> Owner {
    Owner { group: group.into(), kind: kind.into(), name: name.into(), uid: "u".into() }
}

fn advice(name: &str, target: WorkloadRef) -> Recommendation {
    Recommendation { target, success: true, name: name.into(), ..Recommendation::default() }
}

fn index(all: impl IntoIterator<Item = Recommendation>) -> Index {
    let mut index = Index::default();
    all.into_iter().for_each(|one| index.add(one));
    index
}

fn hash(value: &str) -> BTreeMap<String, String> {
    [("pod-template-hash".to_owned(), value.to_owned())].into()
}

fn found<'a>(index: &'a Index, namespace: &str, owner: &Owner) -> Option<&'a str> {
    index.find(&namespace.into(), Some(owner), &hash("5d9")).map(|r| &*r.name)
}

// A4
#[test]
fn the_nearest_controller_with_a_recommendation_wins() {
    let mut index = index([
        advice("for-job", target("batch", "Job", "night-1")),
        advice("for-cron", target("batch", "CronJob", "night")),
        advice("for-app", target("example.com", "App", "app")),
    ]);
    let cron = owner("batch", "CronJob", "night");
    index.controlled(target("batch", "Job", "night-1"), Some(cron.clone()));
    index.controlled(target("batch", "Job", "night-2"), Some(cron));
    index.controlled(target("apps", "ReplicaSet", "web-1"), Some(owner("apps", "Deployment", "web")));
    index.controlled(target("apps", "Deployment", "web"), Some(owner("example.com", "App", "app")));
    for (why, from, want) in [
        ("its own", owner("batch", "Job", "night-1"), Some("for-job")),
        ("one above", owner("batch", "Job", "night-2"), Some("for-cron")),
        ("a job nobody has seen is not guessed at", owner("batch", "Job", "night-3"), None),
        ("two above", owner("apps", "ReplicaSet", "web-1"), Some("for-app")),
        ("by hash, then one above", owner("apps", "ReplicaSet", "web-5d9"), Some("for-app")),
        ("another group", owner("example.com", "Job", "night-1"), None),
        ("another kind", owner("batch", "Work", "night-1"), None),
    ] {
        assert_eq!(found(&index, "shop", &from), want, "{why}");
    }
    assert_eq!(found(&index, "other", &owner("batch", "Job", "night-1")), None, "another namespace");
    assert!(index.find(&"shop".into(), None, &hash("5d9")).is_none(), "nobody made it");
    index.controlled(target("batch", "Job", "night-2"), None);
    assert_eq!(found(&index, "shop", &owner("batch", "Job", "night-2")), None, "the job is gone");
}

// A4
#[test]
fn five_controllers_are_climbed_and_no_more() {
    for (levels, want) in [(1, Some("top")), (5, Some("top")), (6, None)] {
        let name = |level: usize| format!("level-{level}");
        let mut index = index([advice("top", target("x", "App", &name(levels)))]);
        for level in 1..levels {
            index.controlled(target("x", "App", &name(level)), Some(owner("x", "App", &name(level + 1))));
        }
        assert_eq!(found(&index, "shop", &owner("x", "App", &name(1))), want, "{levels}");
    }
    let mut circle = index([advice("other", target("x", "App", "other"))]);
    circle.controlled(target("x", "App", "a"), Some(owner("x", "App", "a")));
    assert_eq!(found(&circle, "shop", &owner("x", "App", "a")), None, "a circle ends");
}

// A4
#[test]
fn workloads_that_moved_to_apps_are_the_same() {
    for kind in ["Deployment", "DaemonSet", "ReplicaSet"] {
        for (one, other) in [("apps", "extensions"), ("extensions", "apps"), ("extensions", "extensions")] {
            let index = index([advice("a", target(one, kind, "web"))]);
            assert_eq!(found(&index, "shop", &owner(other, kind, "web")), Some("a"), "{kind} {one} {other}");
        }
    }
    let index = index([advice("a", target("extensions", "StatefulSet", "web"))]);
    assert_eq!(found(&index, "shop", &owner("apps", "StatefulSet", "web")), None, "this one never moved");
}

// A4
#[test]
fn a_template_hash_leads_from_the_set_to_its_maker() {
    for (why, group, kind, set, want) in [
        ("a Deployment", "apps", "Deployment", "web-5d9", Some("a")),
        ("a Rollout", "argoproj.io", "Rollout", "web-5d9", Some("a")),
        ("another hash", "apps", "Deployment", "web-77c", None),
        ("no dash", "apps", "Deployment", "web5d9", None),
        ("another kind", "apps", "StatefulSet", "web-5d9", None),
    ] {
        let index = index([advice("a", target(group, kind, "web"))]);
        assert_eq!(found(&index, "shop", &owner("apps", "ReplicaSet", set)), want, "{why}");
    }
    let index = index([advice("a", target("apps", "Deployment", "web"))]);
    let no_label = BTreeMap::<String, String>::new();
    assert!(index.find(&"shop".into(), Some(&owner("apps", "ReplicaSet", "web-5d9")), &no_label).is_none());
    assert_eq!(found(&index, "shop", &owner("apps", "StatefulSet", "web-5d9")), None, "only for such sets");
}

#[test]
fn of_several_the_successful_the_newest_the_first_by_name_counts() {
    let web = || target("apps", "Deployment", "web");
    let one = |name: &str, success: bool, second: Option<i64>, shape: Form| Recommendation {
        success,
        updated: second.map(|s| Timestamp::from_second(s).expect("a small number")),
        shape,
        ..advice(name, web())
    };
    let (object, copy) = (Form::Value, Form::Annotation);
    let ranked = [
        one("b/new", true, Some(9), object),
        one("a/old", true, Some(5), object),
        one("b/old", true, Some(5), object),
        one("a/undated", true, None, object),
        one("a/failed", false, Some(99), Form::Patch),
        one("Deployment shop/web", true, None, copy),
    ];
    for first in 0..ranked.len() {
        let rest = || ranked[first..].iter().cloned();
        for all in [rest().collect::<Vec<_>>(), rest().rev().collect()] {
            assert_eq!(index(all).get(&web()), Some(&ranked[first]), "{}", ranked[first].name);
        }
    }
}

#[test]
fn a_recommendation_is_replaced_and_forgotten_by_name() {
    let (web, db) = (target("apps", "Deployment", "web"), target("apps", "StatefulSet", "db"));
    let mut index = index([advice("shop/a", web.clone())]);
    let own = Recommendation { shape: Form::Annotation, ..advice(&web.to_string(), web.clone()) };
    assert_eq!(&*own.name, "Deployment shop/web");
    index.add(own.clone());
    index.add(advice("shop/a", db.clone()));
    assert_eq!(index.get(&web), Some(&own), "the object is for another workload now");
    assert!(index.get(&db).is_some());
    index.remove(&own.name);
    index.remove(&own.name);
    assert_eq!(index.get(&web), None);
    index.remove("shop/a");
    assert_eq!(index.get(&db), None);
    assert!(index.advice.is_empty() && index.names.is_empty());
}

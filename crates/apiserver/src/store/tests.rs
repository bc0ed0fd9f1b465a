use super::*;
use loadline_machinery::label::Lookup;
use proptest::prelude::*;
use serde_json::json;

fn table() -> TableId {
    "pods".into()
}

fn store(capacity: usize) -> Arc<Store> {
    let store = Arc::new(Store::new(capacity));
    store.create_table(&table(), &["spec.nodeName".to_owned()]);
    store
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "a", "labels": {"app": name}}, "spec": {"nodeName": "n1"}})
}

fn add(store: &Store, name: &str) -> Arc<Object> {
    store.put(&table(), &format!("a/{name}"), Expect::Absent, pod(name)).expect("absent before")
}

fn all() -> Query<'static> {
    Query::default()
}

fn names(page: &Page) -> Vec<&str> {
    page.objects.iter().map(|o| o.name.as_ref()).collect()
}

#[test]
fn a_write_against_an_old_revision_reports_that_it_raced() {
    let store = store(10);
    let first = add(&store, "x");
    let second = store.put(&table(), "a/x", Expect::Revision(first.revision), pod("x")).expect("current");
    assert_eq!(
        store.put(&table(), "a/x", Expect::Revision(first.revision), pod("x")).err(),
        Some(Raced),
        "the revision moved on"
    );
    assert_eq!(store.remove(&table(), "a/x", first.revision).err(), Some(Raced), "for deletion too");
    assert_eq!(store.put(&table(), "a/x", Expect::Absent, pod("x")).err(), Some(Raced), "it exists");
    assert!(store.remove(&table(), "a/x", second.revision).is_ok());
}

#[test]
fn an_object_keeps_what_selectors_ask_for() {
    let object = add(&store(10), "x");
    assert_eq!(Lookup::value(&*object, "app"), Some("x"));
    assert_eq!(Lookup::value(&*object, "other"), None);
    assert_eq!(object.fields[0].as_ref(), "n1");
}

#[test]
fn pages_show_one_revision_although_writes_go_on() {
    let store = store(100);
    for name in ["a", "b", "c", "d"] {
        add(&store, name);
    }
    let first = store.list("pods", &Query { limit: 2, ..all() }).expect("covered");
    assert_eq!((names(&first), first.remaining), (vec!["a", "b"], Some(2)));
    let gone = store.get("pods", "a/c").expect("there").revision;
    store.remove(&table(), "a/c", gone).expect("current");
    add(&store, "bb");
    let rest = Query { after: first.last.as_deref(), at: Some(first.revision), ..all() };
    let second = store.list("pods", &rest).expect("covered");
    assert_eq!(names(&second), ["c", "d"], "the page shows what was there at the first page's revision");
}

#[test]
fn a_reader_that_falls_behind_the_log_is_told_so() {
    let store = store(3);
    let start = store.revision();
    let mut slow = store.cursor(&table(), start).expect("now is always covered");
    for name in ["a", "b", "c", "d"] {
        add(&store, name);
    }
    assert!(slow.poll(10).is_err(), "four events do not fit a log of three");
    assert!(store.cursor(&table(), start).is_err());
    assert!(store.list("pods", &Query { at: Some(start), ..all() }).is_err());
}

#[tokio::test]
async fn a_cursor_wakes_for_events_and_reads_each_once() {
    let store = store(10);
    let mut cursor = store.cursor(&table(), store.revision()).expect("covered");
    assert!(cursor.poll(10).expect("covered").is_empty());
    let writer = store.clone();
    let wrote = tokio::spawn(async move { add(&writer, "x").revision });
    assert!(cursor.changed().await);
    let events = cursor.poll(10).expect("covered");
    assert_eq!(events.iter().map(|e| e.revision).collect::<Vec<_>>(), [wrote.await.expect("ran")]);
    assert!(cursor.poll(10).expect("covered").is_empty());
}

#[test]
fn dependents_are_found_by_the_uid_of_their_owner_until_they_go() {
    let store = store(10);
    let mut child = pod("child");
    child["metadata"]["ownerReferences"] = json!([{"uid": "u1"}]);
    let object = store.put(&table(), "a/child", Expect::Absent, child).expect("absent");
    assert_eq!(store.dependents("u1"), [(table(), Key::from("a/child"))]);
    store.remove(&table(), "a/child", object.revision).expect("current");
    assert!(store.dependents("u1").is_empty());
}

proptest! {
    /// Now and at any earlier revision, the index finds what a scan finds.
    #[test]
    fn the_index_finds_what_a_scan_finds(writes in prop::collection::vec((0u8..8, 0u8..4), 1..40)) {
        let store = store(1000);
        let mut revisions = vec![store.revision()];
        for (slot, node) in writes {
            let (name, key) = (format!("p{slot}"), format!("a/p{slot}"));
            let mut pod = pod(&name);
            pod["spec"]["nodeName"] = if node == 3 { Value::Null } else { json!(format!("n{node}")) };
            let expect = store.get("pods", &key).map_or(Expect::Absent, |o| Expect::Revision(o.revision));
            match expect {
                Expect::Revision(revision) if node == 2 => { store.remove(&table(), &key, revision).expect("current"); }
                _ => { store.put(&table(), &key, expect, pod).expect("current"); }
            }
            revisions.push(store.revision());
        }
        for at in revisions {
            for node in ["n0", "n1", "n2"] {
                let keep = |object: &Object| object.fields[0].as_ref() == node;
                let scan = Query { at: Some(at), keep: Some(&keep), ..all() };
                let quick = Query { indexed: Some(node), ..scan };
                let found = store.list("pods", &quick).expect("covered");
                let want = store.list("pods", &scan).expect("covered");
                prop_assert_eq!(names(&found), names(&want));
            }
        }
    }


    /// Whatever was written, a list as of an earlier revision equals the list taken at that revision.
    #[test]
    fn a_past_revision_lists_exactly_what_was_there(writes in prop::collection::vec((0u8..8, prop::bool::ANY), 1..40)) {
        let store = store(1000);
        let mut history: Vec<(u64, Vec<(String, u64)>)> = Vec::new();
        let look = |page: &Page| page.objects.iter().map(|o| (o.name.to_string(), o.revision)).collect::<Vec<_>>();
        for (slot, delete) in writes {
            let name = format!("p{slot}");
            let key = format!("a/{name}");
            match (store.get("pods", &key), delete) {
                (Some(old), true) => { store.remove(&table(), &key, old.revision).expect("current"); }
                (Some(old), false) => { store.put(&table(), &key, Expect::Revision(old.revision), pod(&name)).expect("current"); }
                (None, _) => { add(&store, &name); }
            }
            let page = store.list("pods", &all()).expect("now");
            history.push((page.revision, look(&page)));
        }
        for (revision, then) in history {
            let page = store.list("pods", &Query { at: Some(revision), ..all() }).expect("covered");
            prop_assert_eq!(look(&page), then);
        }
    }
}

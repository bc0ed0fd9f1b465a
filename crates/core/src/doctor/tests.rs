//! Each finding is found where it should be, and not in the case next to it.

mod cluster;
mod monitoring;
mod nodes;

use super::*;
use crate::ledger::Sample;
use crate::load::Load;
use crate::object::Key;
use crate::view::build;
use jiff::{SignedDuration, Timestamp};

const GIB: i64 = 1 << 30;

fn now() -> Timestamp {
    "2025-01-01T12:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

/// A node of 8 cores and 32 GiB that has been there for long.
fn node(name: &str, address: &str) -> Node {
    let mut facts = build::node(name).cpu("8").memory("32Gi").facts();
    facts.capacity = facts.allocatable.clone();
    Node {
        facts,
        addresses: vec![address.into()],
        ready: Some(true),
        created: Some(ago(86_400)),
        ..Node::default()
    }
}

fn nodes() -> Vec<Node> {
    vec![node("n1", "10.0.0.1"), node("n2", "10.0.0.2")]
}

fn sample(at: Timestamp, cores: i64) -> Sample {
    Sample { at, window: SignedDuration::from_secs(15), usage: Load::new(cores * 1_000_000_000, 4 * GIB) }
}

fn lease(namespace: &str, name: &str, holder: &str, renewed: Timestamp) -> Lease {
    Lease {
        key: Key::new(namespace, name),
        holder: Some(holder.to_owned()),
        renewed: Some(renewed),
        seconds: Some(15),
    }
}

/// A cluster of which nothing bad can be said.
fn healthy() -> Facts {
    Facts {
        now: now(),
        server: Known::Read(Server {
            version: "v1.34.1".to_owned(),
            number: Some((1, 34)),
            clock: Some((now(), now())),
        }),
        nodes: Known::Read(nodes()),
        metrics: Known::Read(vec![
            ("n1".to_owned(), sample(ago(14), 1)),
            ("n2".to_owned(), sample(ago(9), 1)),
        ]),
        leases: Known::Read(vec![
            lease("kube-node-lease", "n1", "n1", ago(3)),
            lease("kube-node-lease", "n2", "n2", ago(8)),
        ]),
        definitions: Known::Read(
            KINDS[..4]
                .iter()
                .map(|kind| Definition {
                    name: kind.name.to_owned(),
                    served: vec![kind.version.to_owned()],
                    established: true,
                    trouble: None,
                })
                .collect(),
        ),
        ..Facts::default()
    }
}

/// The findings that say something bad.
fn bad(facts: &Facts) -> Vec<Finding> {
    examine(facts).into_iter().filter(|one| one.severity != Severity::Ok).collect()
}

/// What a change to a healthy cluster is expected to bring: nothing bad, or just this one finding.
type Expected = Option<(Severity, &'static str, &'static str)>;

/// Why, what is changed, and what that brings.
type Case<'a> = (&'a str, &'a dyn Fn(&mut Facts), Expected);

/// Holds each case against what is found. A finding says why it matters, what to do and what shows it.
fn table<const N: usize>(cases: [Case<'_>; N]) {
    for (why, change, expected) in cases {
        let mut facts = healthy();
        change(&mut facts);
        let found = bad(&facts);
        match (&found[..], expected) {
            ([], None) => {}
            ([one], Some((severity, check, words))) => {
                assert_eq!((one.severity, one.check), (severity, check), "{why}: {one:#?}");
                assert!(one.what.contains(words), "{why}: {}", one.what);
                let complete = [&one.why, &one.fix, &one.command].iter().all(|text| !text.is_empty());
                assert!(complete, "{why}: {one:#?}");
            }
            (found, expected) => panic!("{why}: expected {expected:?}, found {found:#?}"),
        }
    }
}

fn read<T>(known: &mut Known<T>) -> &mut T {
    match known {
        Known::Read(value) => value,
        _ => panic!("it was read"),
    }
}

fn failed(why: Why) -> Failed {
    Failed { why, message: "the server said so".to_owned() }
}

#[test]
fn nothing_bad_is_said_of_a_healthy_cluster_and_what_was_looked_at_is_told() {
    let all = examine(&healthy());
    assert!(all.iter().all(|one| one.severity == Severity::Ok), "{all:#?}");
    let checks: Vec<&str> = all.iter().map(|one| one.check).collect();
    assert_eq!(checks, ["version", "metrics", "definitions", "clock", "annotations"]);
}

#[test]
fn the_worst_comes_first() {
    let mut facts = healthy();
    facts.leases = Known::Failed(failed(Why::Denied));
    facts.metrics = Known::Failed(failed(Why::Missing));
    let severities: Vec<Severity> = examine(&facts).iter().map(|one| one.severity).collect();
    assert!(severities.is_sorted_by(|a, b| a >= b), "{severities:?}");
    assert_eq!(severities[..2], [Severity::Broken, Severity::Warning]);
}

#[test]
fn many_nodes_are_one_finding_with_the_names_of_all() {
    let mut facts = healthy();
    *read(&mut facts.nodes) =
        (0..5_000).map(|i| node(&format!("n{i}"), &format!("10.0.{}.{}", i / 250, i % 250))).collect();
    let found = bad(&facts);
    let [one] = &found[..] else { panic!("{}", found.len()) };
    assert_eq!(one.about.len(), 4_998);
    assert!(
        one.what.starts_with("4998 of 5000 nodes have no measurement: n0, n3, n4 and 4995 more"),
        "{}",
        one.what
    );
}

#[test]
fn amounts_read_as_people_say_them() {
    for (seconds, text) in
        [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "119 min"), (7_200, "2 h"), (172_800, "2 days")]
    {
        assert_eq!(span(SignedDuration::from_secs(seconds)), text);
        assert_eq!(span(SignedDuration::from_secs(-seconds)), text);
    }
    assert_eq!((count(1, "node"), count(2, "node")), ("1 node".to_owned(), "2 nodes".to_owned()));
    assert_eq!(few(&["a", "b", "c"]), "a, b, c");
    assert_eq!(few(&["a", "b", "c", "d"]), "a, b, c and 1 more");
}

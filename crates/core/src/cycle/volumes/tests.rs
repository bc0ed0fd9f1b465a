use super::*;
use crate::cycle::{Input, Memo, decide, message};
use crate::object::Key;
use crate::select::label::Expression;
use crate::select::node::{NodeSelector, NodeTerm, Required};
use crate::view::build::{node, pod, world};
use crate::view::volumes::{Capacity, StorageClass};
use crate::view::{Live, PodFacts, PodView, Wants};
use proptest::prelude::*;

fn on(key: &str, values: &[&str]) -> Required {
    let values = values.iter().map(|v| (*v).to_owned()).collect();
    let one = Expression { key: key.into(), operator: "In".into(), values };
    let term = NodeTerm { match_expressions: vec![one], match_fields: Vec::new() };
    Required::new(&BTreeMap::new(), Some(&NodeSelector { node_selector_terms: vec![term] }))
}

fn claim(name: &str, request: &str) -> Claim {
    Claim {
        key: Key::new("default", name),
        uid: format!("uid-{name}").into(),
        class: "local".into(),
        request: Some(request.parse().unwrap()),
        modes: vec!["ReadWriteOnce".into()],
        ..Claim::default()
    }
}

fn volume(name: &str, capacity: &str, host: &str) -> PersistentVolume {
    PersistentVolume {
        name: name.into(),
        class: "local".into(),
        capacity: capacity.parse().unwrap(),
        modes: vec!["ReadWriteOnce".into()],
        reachable: on("host", &[host]),
        available: true,
        ..PersistentVolume::default()
    }
}

/// Nodes `n1` and `n2`, each with its name as the label `host`.
fn two() -> Live {
    let named = |name: &str| node(name).label("host", name).cpu("4").memory("8Gi");
    world().node(named("n1")).node(named("n2")).0
}

fn view(live: &mut Live, claims: &[Claim]) -> Arc<PodView> {
    let claims = claims.iter().cloned().map(Arc::new).collect();
    let wants = Arc::new(Wants { claims, ..Wants::default() });
    let facts = PodFacts { wants, ..pod("p").facts() };
    Arc::new(live.view(&facts, crate::load::Load::ZERO))
}

/// The node and what each claim gets there, or why not.
fn answer(live: &mut Live, claims: &[Claim]) -> Result<(String, Vec<Option<String>>), String> {
    let view = view(live, claims);
    let at = live.snapshot().clone();
    let input = Input::new(&at);
    let decision = decide(&input, &view, &mut Memo::default());
    let Some(id) = decision.node else { return Err(message(&input, &view, &decision)) };
    let given = planned(&at, &view, id);
    let of =
        |claim: &Claim| given.iter().find(|p| p.claim.key == claim.key)?.volume.as_deref().map(str::to_owned);
    Ok((at[id].name.to_string(), claims.iter().map(of).collect()))
}

const NONE: &str = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.";

#[test]
fn a_claim_gets_the_smallest_volume_that_is_large_enough_where_that_is() {
    let mut live = two();
    assert_eq!(answer(&mut live, &[claim("a", "1Gi")]), Err(NONE.into()));
    live.storage_mut().set_volume(volume("small", "2Gi", "n1"));
    live.storage_mut().set_volume(volume("mid", "9Gi", "n2"));
    live.storage_mut().set_volume(volume("big", "10Gi", "n2"));
    let got = |volume: &str, node: &str| Ok((node.to_owned(), vec![Some(volume.to_owned())]));
    assert_eq!(answer(&mut live, &[claim("a", "5Gi")]), got("mid", "n2"));
    assert_eq!(answer(&mut live, &[claim("a", "11Gi")]), Err(NONE.into()));
    // Two need two, and only one node has them.
    let both = Ok(("n2".to_owned(), vec![Some("big".to_owned()), Some("mid".to_owned())]));
    assert_eq!(answer(&mut live, &[claim("a", "4Gi"), claim("b", "3Gi")]), both);
    assert_eq!(
        answer(&mut live, &[claim("a", "4Gi"), claim("b", "3Gi"), claim("c", "1Gi")]),
        Err(NONE.into())
    );
}

#[test]
fn everything_a_claim_asks_of_a_volume_must_be_so() {
    type Change = fn(&mut Claim, &mut PersistentVolume);
    let table: [(&str, bool, Change); 12] = [
        ("as it is", true, |_, _| {}),
        ("of another class", false, |_, v| v.class = "other".into()),
        ("not allowed to be used so", false, |c, _| c.modes.push("ReadWriteMany".into())),
        ("allowed more than is asked", true, |_, v| v.modes.push("ReadWriteMany".into())),
        ("a block device", false, |_, v| v.block = true),
        ("other attributes", false, |_, v| v.attributes = "gold".into()),
        ("not selected", false, |c, _| c.selector = Some("kind=fast".parse().unwrap())),
        ("not available", false, |_, v| v.available = false),
        ("going", false, |_, v| v.terminating = true),
        ("another's", false, |_, v| v.claimed = Some((Key::new("default", "other"), "".into()))),
        ("a namesake's", false, |_, v| v.claimed = Some((Key::new("default", "a"), "old".into()))),
        ("meant for it, though nobody calls it available", true, |_, v| {
            v.claimed = Some((Key::new("default", "a"), "".into()));
            v.available = false;
        }),
    ];
    for (what, fits, change) in table {
        let (mut claim, mut volume) = (claim("a", "1Gi"), volume("v", "1Gi", "n1"));
        change(&mut claim, &mut volume);
        let mut live = two();
        live.storage_mut().set_volume(volume);
        assert_eq!(answer(&mut live, &[claim]).is_ok(), fits, "{what}");
    }
}

#[test]
fn a_volume_meant_for_a_claim_is_the_only_one_for_it() {
    let mut live = two();
    live.storage_mut().set_volume(volume("small", "1Gi", "n1"));
    let meant = PersistentVolume {
        claimed: Some((Key::new("default", "a"), "uid-a".into())),
        ..volume("meant", "50Gi", "n2")
    };
    live.storage_mut().set_volume(meant);
    let want = Ok(("n2".to_owned(), vec![Some("meant".to_owned())]));
    assert_eq!(answer(&mut live, &[claim("a", "1Gi")]), want);
}

#[test]
fn what_is_not_there_is_made_where_the_class_allows_and_has_room() {
    let made = |allowed: Required| StorageClass {
        name: "local".into(),
        provisioner: Some("disk.example.com".into()),
        reachable: allowed,
    };
    let mut live = two();
    live.storage_mut().set_class(made(on("host", &["n2"])));
    let here = |node: &str| Ok((node.to_owned(), vec![None]));
    assert_eq!(answer(&mut live, &[claim("a", "5Gi")]), here("n2"));
    live.storage_mut().set_class(made(Required::default()));
    assert_eq!(answer(&mut live, &[claim("a", "5Gi")]), here("n1"));

    live.storage_mut().track("disk.example.com".into());
    let full = "0/2 nodes are available: 2 node(s) did not have enough free storage.";
    assert_eq!(answer(&mut live, &[claim("a", "5Gi")]), Err(full.into()));
    let room = |gib: i64, host: &str| Capacity {
        class: "local".into(),
        nodes: Some(format!("host={host}").parse().unwrap()),
        limit: Some(gib << 30),
    };
    live.storage_mut().set_capacity(Key::new("x", "1"), room(4, "n1"));
    live.storage_mut().set_capacity(Key::new("x", "2"), room(5, "n2"));
    assert_eq!(answer(&mut live, &[claim("a", "5Gi")]), here("n2"));
    // One that is there needs no room.
    live.storage_mut().set_volume(volume("v", "9Gi", "n1"));
    let tied = Claim { node: Some("n1".into()), ..claim("a", "3Gi") };
    assert_eq!(answer(&mut live, &[tied]), here("n1"), "its volume is being made already");
    let lost = Claim { node: Some("n9".into()), ..claim("a", "3Gi") };
    assert_eq!(answer(&mut live, &[lost]), Err(NONE.into()));
}

#[test]
fn what_was_decided_counts_until_it_is_written_or_taken_back() {
    use crate::cluster::{Cluster, Options};
    let mut cluster = Cluster::new(Options::default(), jiff::Timestamp::UNIX_EPOCH);
    for name in ["n1", "n2"] {
        cluster.set_node(&node(name).label("host", name).cpu("4").memory("8Gi").facts());
    }
    cluster.storage_mut().set_volume(volume("v", "9Gi", "n1"));
    let with = |name: &str, claim: Claim| {
        let wants = Arc::new(Wants { claims: vec![Arc::new(claim)], ..Wants::default() });
        PodFacts { wants, ..pod(name).facts() }
    };
    let first = cluster.view(&with("p1", claim("a", "1Gi")));
    let mut decided = cluster.decide(&first);
    let [one] = &decided.volumes()[..] else { panic!("one claim gets one volume") };
    assert_eq!(one.volume.as_deref(), Some("v"));
    assert!(decided.reserve().node.is_some());

    let second = cluster.view(&with("p2", claim("b", "1Gi")));
    assert_eq!(cluster.decide(&second).message(), NONE);
    // Another pod of the same claim gets the same volume.
    let same = cluster.view(&with("p3", claim("a", "1Gi")));
    assert!(cluster.decide(&same).node().is_some_and(|n| &*n.name == "n1"));
    cluster.unreserve("uid-p1");
    assert!(cluster.decide(&second).node().is_some());
}

/// Gibibytes asked for, of which class, with which modes, block or not, and which label is asked for.
type Asked = (u8, bool, u8, bool, Option<bool>);
/// Gibibytes, class, modes, block, label, nodes that reach it (a mask; all of them is none said), whose.
type Had = (u8, bool, u8, bool, bool, u8, Option<u8>);

/// A small world of claims and volumes, for the oracle.
#[derive(Clone, Debug)]
struct Case {
    claims: Vec<Asked>,
    volumes: Vec<Had>,
}

fn cases() -> impl Strategy<Value = Case> {
    let claim = (
        1..6u8,
        any::<bool>(),
        0..4u8,
        prop::bool::weighted(0.1),
        prop::option::weighted(0.2, any::<bool>()),
    );
    let volume = (
        1..8u8,
        any::<bool>(),
        0..4u8,
        prop::bool::weighted(0.1),
        any::<bool>(),
        0..8u8,
        prop::option::weighted(0.2, 0..5u8),
    );
    let volumes = prop::collection::vec(volume, 0..9);
    (prop::collection::vec(claim, 1..4), volumes).prop_map(|(claims, volumes)| Case { claims, volumes })
}

const MODES: [&str; 2] = ["ReadWriteOnce", "ReadOnlyMany"];

fn modes(mask: u8) -> Vec<Arc<str>> {
    (0..2).filter(|bit| mask & (1 << bit) != 0).map(|bit| MODES[bit].into()).collect()
}

/// For every node, volume by claim, worked out step by step on the numbers of the case.
fn oracle(case: &Case, node: u8) -> Option<Vec<usize>> {
    let mut turn: Vec<usize> = (0..case.claims.len()).collect();
    turn.sort_by_key(|i| case.claims[*i].0);
    let mut out = vec![usize::MAX; case.claims.len()];
    for i in turn {
        let (size, class, wanted, block, label) = case.claims[i];
        let reached = |mask: u8| mask == 7 || mask & (1 << node) != 0;
        let mut pick: Option<usize> = None;
        let mut meant: Vec<usize> = Vec::new();
        for (v, (has, of, allowed, is_block, marked, mask, whose)) in case.volumes.iter().enumerate() {
            if *has < size || *of != class || *is_block != block {
                continue;
            }
            match whose {
                Some(by) if usize::from(*by) == i => meant.push(v),
                Some(_) => {}
                None => {
                    let ok = wanted & !allowed == 0 && label.is_none_or(|l| l == *marked) && reached(*mask);
                    let smaller = pick.is_none_or(|p: usize| case.volumes[p].0 > *has);
                    if ok && smaller && !out.contains(&v) {
                        pick = Some(v);
                    }
                }
            }
        }
        out[i] =
            if meant.is_empty() { pick? } else { meant.into_iter().find(|v| reached(case.volumes[*v].5))? };
    }
    Some(out)
}

proptest! {
    #[test]
    fn volumes_are_given_as_a_slow_search_gives_them(case in cases()) {
        let named = |name: &str| node(name).label("host", name).cpu("4").memory("8Gi");
        let mut live = world().node(named("n0")).node(named("n1")).node(named("n2")).0;
        let class = |of: bool| if of { "one" } else { "two" };
        for (v, (has, of, allowed, block, marked, mask, whose)) in case.volumes.iter().enumerate() {
            let hosts: Vec<String> = (0..3).filter(|n| mask & (1 << n) != 0).map(|n| format!("n{n}")).collect();
            let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
            live.storage_mut().set_volume(PersistentVolume {
                class: class(*of).into(),
                modes: modes(*allowed),
                block: *block,
                labels: BTreeMap::from([("mark".to_owned(), marked.to_string())]),
                reachable: if *mask == 7 { Required::default() } else { on("host", &hosts) },
                claimed: whose.map(|by| (Key::new("default", format!("c{by}")), "".into())),
                ..volume(&format!("v{v}"), &format!("{has}Gi"), "")
            });
        }
        let asked = |(i, (size, of, wanted, block, label)): (usize, &Asked)| {
            Arc::new(Claim {
                class: class(*of).into(),
                modes: modes(*wanted),
                block: *block,
                selector: label.map(|label| format!("mark={label}").parse().unwrap()),
                ..claim(&format!("c{i}"), &format!("{size}Gi"))
            })
        };
        let claims: Vec<Arc<Claim>> = case.claims.iter().enumerate().map(asked).collect();
        let at = live.snapshot().clone();
        let ready = Claims::new(&at, &claims).unwrap();
        for n in 0..3u8 {
            let id = at.find_node(&format!("n{n}")).unwrap().id;
            let ours = ready.plan(id.index()).ok().map(|given| {
                let volume = |c: &Arc<Claim>| given.iter().find(|p| p.claim.key == c.key)?.volume.clone();
                claims.iter().filter_map(volume).map(|v| v.to_string()).collect::<Vec<_>>()
            });
            let slow = oracle(&case, n).map(|all| all.iter().map(|v| format!("v{v}")).collect::<Vec<_>>());
            prop_assert_eq!(ours, slow, "node {}", n);
        }
    }
}

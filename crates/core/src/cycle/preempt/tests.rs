use super::*;
use crate::cycle::memo::Places;
use crate::cycle::prepare::prepare;
use crate::cycle::{Changes, decide};
use crate::load::board::Closed;
use crate::object::Key;
use crate::select::Selector;
use crate::view::build::{self, World, node, pod, world};
use crate::view::{Hold, HostPort, Live, PodAffinity, PodFacts, PodTerm, Spread, Volume, Wants};

mod random;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("tests write small numbers")
}

fn selector(text: &str) -> Selector {
    text.parse().expect("tests write valid selectors")
}

fn facts(pod: build::Pod, wants: impl FnOnce(&mut Wants)) -> PodFacts {
    let mut facts = pod.facts();
    wants(Arc::make_mut(&mut facts.wants));
    facts
}

fn add(mut world: World, facts: &PodFacts) -> World {
    let view = world.0.view(facts, facts.asks.effective);
    world.0.set_pod(view, facts.node.as_deref());
    world
}

fn budget(selects: Selector, allowed: i64) -> Budget {
    Budget { key: Key::new("default", "budget"), selector: selects, allowed, disrupted: Vec::new() }
}

fn term(selects: &str, key: &str) -> PodTerm {
    PodTerm {
        namespaces: vec!["default".into()],
        namespace_selector: None,
        selector: selector(selects),
        topology_key: key.into(),
    }
}

/// A plan in names: the node, the victims in order, how many overdraw a budget, how many nodes would have done.
type Named = Option<(String, Vec<String>, u32, u32)>;

fn named(cluster: &Snapshot, plan: Option<Preemption>) -> Named {
    plan.map(|p| {
        let victims = p.victims.iter().map(|v| v.key.name.to_string()).collect();
        (cluster[p.node].name.to_string(), victims, p.budget_violations, p.considered)
    })
}

fn plan(world: World, new: &PodFacts, budgets: &[Budget]) -> Named {
    let mut live = world.0;
    let new = Arc::new(live.view(new, new.asks.effective));
    let cluster = live.snapshot();
    named(cluster, preempt(&Input::new(cluster), &new, budgets, None, &mut Memo::default()))
}

fn goes(world: World, new: &PodFacts) -> Vec<String> {
    plan(world, new, &[]).map(|(_, victims, ..)| victims).unwrap_or_default()
}

/// A pod of one node: its node and name, thousandths of a core, priority, second of its start.
type Row = (&'static str, &'static str, u32, i32, i64);

fn there((on, name, milli, priority, started): Row) -> PodFacts {
    let app = if name.starts_with("guarded") { "guarded" } else { "free" };
    let pod = pod(name).cpu(&format!("{milli}m")).priority(priority).label("app", app).on(on);
    PodFacts { accepted: Some(at(started)), ..pod.facts() }
}

/// Why, who is there, the node chosen, who goes from it, how many overdraw a budget.
type Choice = (&'static str, &'static [Row], &'static str, &'static [&'static str], u32);

/// Why, who is there, which budgets there are, who goes, how many overdraw a budget.
type Sparing = (&'static str, &'static [Row], Vec<Budget>, &'static [&'static str], u32);

#[test]
fn the_node_whose_victims_are_missed_least_is_chosen() {
    // Each node has 4 cores, all of them taken; the new pod asks for 3, so all pods of a node must go.
    const LOWEST: i32 = i32::MIN;
    let cases: [Choice; 9] = [
        (
            "1. no budget is overdrawn on b, though the victim is more important",
            &[("a", "guarded", 4000, 0, 1), ("b", "y", 4000, 50, 1)],
            "b",
            &["y"],
            0,
        ),
        (
            "1. everywhere a budget is overdrawn: 2 on a, 1 on b",
            &[
                ("a", "guarded-1", 2000, 0, 1),
                ("a", "guarded-2", 2000, 0, 1),
                ("b", "guarded-3", 2000, 50, 1),
                ("b", "y", 2000, 50, 1),
            ],
            "b",
            &["y", "guarded-3"],
            1,
        ),
        (
            "2. 10 < 20 at most, though there are two of them",
            &[("a", "x", 4000, 20, 1), ("b", "y1", 2000, 10, 1), ("b", "y2", 2000, 10, 2)],
            "b",
            &["y2", "y1"],
            0,
        ),
        (
            "3. 10 + 4 < 10 + 5",
            &[
                ("a", "x1", 2000, 10, 1),
                ("a", "x2", 2000, 5, 1),
                ("b", "y1", 2000, 10, 1),
                ("b", "y2", 2000, 4, 1),
            ],
            "b",
            &["y2", "y1"],
            0,
        ),
        (
            "3. -10 - 20 is no less than -10: from the lowest, 2^31 - 10 < 2 × 2^31 - 30",
            &[("a", "x1", 2000, -10, 1), ("a", "x2", 2000, -20, 1), ("b", "y", 4000, -10, 1)],
            "b",
            &["y"],
            0,
        ),
        (
            "4. the lowest priority adds nothing to the sum, but it is one more",
            &[("a", "x1", 2000, 0, 1), ("a", "x2", 2000, LOWEST, 1), ("b", "y", 4000, 0, 1)],
            "b",
            &["y"],
            0,
        ),
        (
            "5. 200 is later than 100; that x2 is the youngest of all does not count",
            &[
                ("a", "x1", 2000, 10, 100),
                ("a", "x2", 2000, 10, 300),
                ("b", "y1", 2000, 10, 200),
                ("b", "y2", 2000, 10, 200),
            ],
            "b",
            &["y2", "y1"],
            0,
        ),
        (
            "5. only the most important victim's start counts: 100 on both, then the first name",
            &[
                ("b", "y1", 2000, 10, 100),
                ("b", "y2", 2000, 5, 900),
                ("a", "x1", 2000, 10, 100),
                ("a", "x2", 2000, 5, 50),
            ],
            "a",
            &["x2", "x1"],
            0,
        ),
        ("6. the first name", &[("b", "y", 4000, 0, 1), ("a", "x", 4000, 0, 1)], "a", &["x"], 0),
    ];
    for (why, rows, on, victims, violations) in cases {
        let empty = world().node(node("b").cpu("4")).node(node("a").cpu("4")).node(node("small").cpu("2"));
        let world = rows.iter().fold(empty, |w, row| add(w, &there(*row)));
        let new = pod("new").cpu("3").priority(100).facts();
        let victims = victims.iter().map(ToString::to_string).collect();
        let want = Some((on.to_owned(), victims, violations, 2));
        assert_eq!(plan(world, &new, &[budget(selector("app=guarded"), 0)]), want, "{why}");
    }
}

#[test]
fn who_can_stay_stays_the_budgeted_first_then_the_important() {
    // One node of 4 cores; the new pod asks for 2.
    let guard = |allowed| vec![budget(selector("app=guarded"), allowed)];
    let leaving = vec![Budget { disrupted: vec!["guarded".into()], ..budget(selector("app=guarded"), 0) }];
    let elsewhere = vec![Budget { key: Key::new("other", "budget"), ..budget(Selector::everything(), 0) }];
    let cases: [Sparing; 12] = [
        (
            "4 - 2 fits beside one: the more important stays",
            &[("n", "low", 2000, 1, 1), ("n", "high", 2000, 2, 1)],
            vec![],
            &["low"],
            0,
        ),
        (
            "of equals the older stays",
            &[("n", "young", 2000, 1, 9), ("n", "old", 2000, 1, 1)],
            vec![],
            &["young"],
            0,
        ),
        (
            "of equals of one age the first name stays",
            &[("n", "y", 2000, 1, 1), ("n", "x", 2000, 1, 1)],
            vec![],
            &["y"],
            0,
        ),
        (
            "the most important of 1 stays first, so both others go: 4 - 1 - 2 = 1 < 1.5",
            &[("n", "high", 1000, 3, 1), ("n", "mid", 1500, 2, 1), ("n", "low", 1500, 1, 1)],
            vec![],
            &["low", "mid"],
            0,
        ),
        (
            "3 do not stay, but 1 after it does: 4 - 2 = 2 < 3, 2 ≥ 1",
            &[("n", "high", 3000, 3, 1), ("n", "low", 1000, 1, 1)],
            vec![],
            &["high"],
            0,
        ),
        (
            "who takes nothing need not go",
            &[("n", "idle", 0, 0, 1), ("n", "busy", 4000, 1, 1)],
            vec![],
            &["busy"],
            0,
        ),
        (
            "whose eviction overdraws a budget stays before the more important",
            &[("n", "guarded", 2000, 1, 1), ("n", "high", 2000, 5, 1)],
            guard(0),
            &["high"],
            0,
        ),
        (
            "a budget of one allows the more important of two to go, so the other is the one to keep",
            &[("n", "guarded-high", 2000, 5, 1), ("n", "guarded-low", 2000, 1, 1)],
            guard(1),
            &["guarded-high"],
            0,
        ),
        (
            "a budget is overdrawn where nothing else helps",
            &[("n", "guarded", 4000, 1, 1)],
            guard(0),
            &["guarded"],
            1,
        ),
        (
            "who is on the way out by the budget's count does not overdraw it",
            &[("n", "guarded", 2000, 1, 1), ("n", "high", 2000, 5, 1)],
            leaving,
            &["guarded"],
            0,
        ),
        (
            "a budget of another namespace says nothing",
            &[("n", "low", 2000, 1, 1), ("n", "high", 2000, 5, 1)],
            elsewhere,
            &["low"],
            0,
        ),
        (
            "a budget without conditions covers all of its namespace",
            &[("n", "x", 4000, 1, 1)],
            vec![budget(Selector::everything(), 0)],
            &["x"],
            1,
        ),
    ];
    for (why, rows, budgets, victims, violations) in cases {
        let world = rows.iter().fold(world().node(node("n").cpu("4")), |w, row| add(w, &there(*row)));
        let new = pod("new").cpu("2").priority(100).facts();
        let victims = victims.iter().map(ToString::to_string).collect();
        assert_eq!(plan(world, &new, &budgets), Some(("n".to_owned(), victims, violations, 1)), "{why}");
    }
}

#[test]
fn age_counts_from_when_the_node_accepted_the_pod() {
    let aged = |name: &str, accepted: Option<i64>, created: Option<i64>| {
        let facts = pod(name).cpu("2").on("n").facts();
        PodFacts { accepted: accepted.map(at), created: created.map(at), ..facts }
    };
    let restarted = PodFacts { started: Some(Timestamp::MIN), ..aged("a", Some(8), Some(1)) };
    for (why, one, two, goes_first) in [
        ("accepted at 5, then at 7", aged("a", Some(7), Some(1)), aged("b", Some(5), Some(2)), "a"),
        ("a restart makes nobody older", restarted, aged("b", Some(7), Some(2)), "a"),
        ("who waited long has not run long", aged("a", None, Some(1)), aged("b", Some(7), Some(2)), "a"),
        ("neither accepted, created at 1 and 2", aged("a", None, Some(2)), aged("b", None, Some(1)), "a"),
        ("without any time the youngest", aged("a", None, None), aged("b", None, Some(7)), "a"),
    ] {
        let world = add(add(world().node(node("n").cpu("4")), &one), &two);
        assert_eq!(goes(world, &pod("new").cpu("2").priority(1).facts()), [goes_first], "{why}");
    }
}

#[test]
fn pods_are_evicted_for_whatever_rule_that_helps() {
    let full = || world().node(node("n").cpu("4").label("host", "n").label("zone", "z"));
    let low = |wants: &dyn Fn(&mut Wants)| facts(pod("low").label("app", "a").on("n"), wants);
    let new = |wants: &dyn Fn(&mut Wants)| facts(pod("new").label("app", "b").priority(1), wants);
    let port = |w: &mut Wants| {
        w.ports.push(HostPort { ip: String::new(), protocol: "TCP".to_owned(), port: 80 });
    };
    let exclusive = |w: &mut Wants| w.exclusive.push("default/v".into());
    let volume = |id: &'static str| {
        move |w: &mut Wants| {
            let driver = Some("disk".into());
            w.volumes.push(Volume { id: id.into(), driver, ..Volume::default() });
        }
    };
    let away = |from: &'static str| {
        move |w: &mut Wants| w.anti_affinity.required.push(term(&format!("app={from}"), "zone"))
    };
    let even = |w: &mut Wants| {
        w.spread.push(Spread {
            max_skew: 1,
            topology_key: "host".into(),
            hard: true,
            selector: selector("app"),
            min_domains: Some(2),
            honor_affinity: true,
            honor_taints: false,
        });
    };
    let mut limited = node("n").cpu("4").facts();
    limited.attach_limits.insert("disk".to_owned(), 1);
    let mut attach = world();
    attach.0.set_node(&limited);

    let ask = |w: World, low: &PodFacts, new: &PodFacts| goes(add(w, low), new);
    assert_eq!(ask(full(), &low(&port), &new(&port)), ["low"], "the port");
    assert_eq!(ask(full(), &low(&exclusive), &new(&exclusive)), ["low"], "the volume only one may use");
    assert_eq!(ask(attach.clone(), &low(&volume("v1")), &new(&volume("v2"))), ["low"], "1 + 1 > 1 attached");
    assert_eq!(goes(add(attach, &low(&volume("v"))), &new(&volume("v"))), [""; 0], "the same volume fits");
    assert_eq!(ask(full(), &low(&|_| ()), &new(&away("a"))), ["low"], "the new pod keeps away");
    assert_eq!(ask(full(), &low(&away("b")), &new(&|_| ())), ["low"], "the other keeps it away");
    assert_eq!(
        ask(full(), &low(&|_| ()), &new(&even)),
        ["low"],
        "1 + 1 - 0 > 1, as one place of two is known"
    );

    // Elsewhere in the zone the same pod cannot be evicted for this node.
    let two = || full().node(node("m").cpu("4").label("host", "m").label("zone", "z").cordoned());
    let mut far = low(&|_| ());
    far.node = Some("m".to_owned());
    assert_eq!(plan(add(two(), &far), &new(&away("a")), &[]), None, "its node is cordoned");
}

#[test]
fn nobody_is_evicted_where_it_does_not_help() {
    let near = |w: &mut Wants| {
        w.affinity = PodAffinity { required: vec![term("app=a", "host")], preferred: Vec::new() };
    };
    let new = |cpu: &str| pod("new").cpu(cpu).priority(1);
    let full = |n: build::Node| world().node(n.cpu("4")).pod(pod("low").cpu("4").label("app", "a").on("n"));
    let n = || node("n").label("host", "n");
    let cases = [
        ("cordoned", full(n().cordoned()), new("2").facts()),
        ("not the node it selects", full(n()), new("2").selects(&[("disk", "ssd")]).facts()),
        ("5 > 4 in all", full(n()), new("5").facts()),
        ("the victim is the pod it must be near", full(n()), facts(new("2"), near)),
        ("equal priority", full(n()), pod("new").cpu("2").facts()),
        ("nobody need go for nothing", full(n()), new("0").facts()),
        ("another node has room", full(n()).node(node("m").cpu("2")), new("2").facts()),
        (
            "the others are of higher priority: 4 - 3 < 2",
            world()
                .node(n().cpu("4"))
                .pod(pod("low").cpu("1").on("n"))
                .pod(pod("high").cpu("3").priority(2).on("n")),
            new("2").facts(),
        ),
        ("no node", world(), new("2").facts()),
    ];
    for (why, world, new) in cases {
        assert_eq!(plan(world, &new, &[]), None, "{why}");
    }
    assert_eq!(goes(full(n()), &new("2").facts()), ["low"], "else it would");
}

#[test]
fn a_pod_that_must_not_push_others_away_or_is_held_gets_no_plan() {
    let full = || world().node(node("n").cpu("4")).pod(pod("low").cpu("4").on("n"));
    let new = pod("new").cpu("2").priority(1).facts();
    assert!(plan(full(), &new, &[]).is_some());
    let never = PodFacts { preempts: false, ..new };
    assert_eq!(plan(full(), &never, &[]), None, "preemptionPolicy: Never");
    for hold in [
        Hold::Gate("wait".to_owned()),
        Hold::Unsupported("a claim".to_owned()),
        Hold::Invalid("no such volume".to_owned()),
    ] {
        let held = facts(pod("new").cpu("2").priority(1), |w| w.holds.push(hold.clone()));
        assert_eq!(plan(full(), &held, &[]), None, "{hold:?}");
    }
}

#[test]
fn nobody_else_goes_while_victims_are_still_leaving() {
    let mut new = pod("new").cpu("2").priority(5).facts();
    new.nominated = Some("n".to_owned());
    let full = |n: build::Node, leaving: build::Pod| {
        world()
            .node(n.cpu("4"))
            .node(node("m").cpu("4"))
            .pod(leaving.cpu("4").on("n"))
            .pod(pod("other").cpu("4").priority(1).on("m"))
    };
    let leaving = || pod("leaving").terminating();
    assert_eq!(plan(full(node("n"), leaving()), &new, &[]), None, "it leaves for the new pod");
    let on = |plan: Named| plan.map(|(on, ..)| on);
    assert_eq!(
        on(plan(full(node("n").cordoned(), leaving()), &new, &[])).as_deref(),
        Some("m"),
        "the node cannot be had any more"
    );
    assert_eq!(
        on(plan(full(node("n"), leaving().priority(9)), &new, &[])).as_deref(),
        Some("m"),
        "it leaves, but not for the new pod"
    );
    assert_eq!(
        on(plan(full(node("n"), pod("staying")), &new, &[])).as_deref(),
        Some("n"),
        "nobody leaves: the plan came to nothing and is made again"
    );
    new.nominated = None;
    assert_eq!(
        on(plan(full(node("n"), leaving()), &new, &[])).as_deref(),
        Some("n"),
        "nobody was told to go for it; who leaves anyway costs least"
    );
}

#[test]
fn what_was_cleared_for_another_pod_is_not_counted_twice() {
    // 4 cores, 2 of them promised to a pod of the same priority: 2 are left if all go, 3 are not.
    let mut waiting = pod("waiting").cpu("2").priority(5).facts();
    waiting.nominated = Some("n".to_owned());
    let full = || add(world().node(node("n").cpu("4")).pod(pod("low").cpu("4").on("n")), &waiting);
    assert_eq!(goes(full(), &pod("new").cpu("2").priority(5).facts()), ["low"]);
    assert_eq!(plan(full(), &pod("new").cpu("3").priority(5).facts(), &[]), None);
    assert_eq!(
        goes(full(), &pod("new").cpu("3").priority(6).facts()),
        ["low"],
        "it goes before the waiting one"
    );
    assert_eq!(goes(full(), &waiting), ["low"], "nobody's own promise is in the way");
}

/// Plans with a board that gives every node so much more CPU, in cores, before the line.
fn loaded(world: World, closed: Closed, head: i64, releases: Option<Releases<'_>>) -> Named {
    let mut live = world.0;
    let new = pod("new").cpu("2").priority(1).facts();
    let new = Arc::new(live.view(&new, new.asks.effective));
    let cluster = live.snapshot();
    let mut board = Board::default();
    board.grow(cluster.width());
    board.closed.fill(closed);
    board.head[0].fill(head);
    let input = Input { board: Some(&board), ..Input::new(cluster) };
    named(cluster, preempt(&input, &new, &[], releases, &mut Memo::default()))
}

// D10: victims do not change measured load, so evicting them for its sake would be futile.
#[test]
fn load_is_made_room_for_only_as_far_as_it_surely_goes_away() {
    const CORE: i64 = 1_000_000_000;
    // 16 cores, 3 asked for; 1 of load more stays under the line and the new pod brings 2.
    let busy = || {
        world()
            .node(node("n").cpu("16"))
            .pod(pod("x").cpu("2").priority(-1).on("n"))
            .pod(pod("y").cpu("1").priority(-2).on("n"))
    };
    let pending = |pod: &PodView, _: NodeId| pod.estimate;
    let half = |pod: &PodView, _: NodeId| Load::new(pod.estimate.cpu_nano / 2, 0);
    let odd = |_: &PodView, _: NodeId| Load::new(-CORE, i64::MIN);
    let victims = |plan: Named| plan.map(|(_, victims, ..)| victims);
    let names = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let cases: [(&str, Closed, i64, Option<Releases<'_>>, _); 8] = [
        ("nothing is known to go", Closed::No, CORE, None, None),
        ("1 + 1 ≥ 2: the less important is enough", Closed::No, CORE, Some(&pending), names(&["y"])),
        ("-1 + 2 + 1 ≥ 2: both", Closed::No, -CORE, Some(&pending), names(&["y", "x"])),
        ("-2 + 2 + 1 < 2", Closed::No, -2 * CORE, Some(&pending), None),
        ("1 + 1 ≥ 2, half of x; y's half is not enough", Closed::No, CORE, Some(&half), names(&["x"])),
        ("less than nothing is nothing", Closed::No, CORE, Some(&odd), None),
        ("a measured load over its threshold stays", Closed::Threshold, 9 * CORE, Some(&pending), None),
        ("an unknown load stays unknown", Closed::Unknown, 9 * CORE, Some(&pending), None),
    ];
    for (why, closed, head, releases, want) in cases {
        assert_eq!(victims(loaded(busy(), closed, head, releases)), want, "{why}");
    }
    let full = world().node(node("n").cpu("2")).pod(pod("x").cpu("2").priority(-1).on("n"));
    let plan = loaded(full.clone(), Closed::No, CORE, None);
    assert_eq!(victims(plan), None, "there would be room, but the line would be passed");
    let plan = loaded(full, Closed::No, i64::MAX, Some(&pending));
    assert_eq!(victims(plan), names(&["x"]), "where there is no line there is none after, either");
}

#[test]
fn a_memo_of_replicas_does_not_hold_a_pods_own_promise_against_it() {
    let mut first = pod("first").cpu("3").priority(5).facts();
    first.nominated = Some("n".to_owned());
    let mut live = add(world().node(node("n").cpu("4")), &first).0;
    let first = Arc::new(live.view(&first, first.asks.effective));
    let second = pod("second").cpu("3").priority(5).facts();
    let second = Arc::new(live.view(&second, second.asks.effective));
    let changes = Changes::default();
    let input = Input { changes: Some(&changes), ..Input::new(live.snapshot()) };
    let mut memo = Memo::default();
    assert_eq!(decide(&input, &second, &mut memo).node, None, "3 are promised to the first: 4 - 3 < 3");
    assert!(decide(&input, &first, &mut memo).node.is_some());
    assert_eq!(decide(&input, &second, &mut memo).node, None);
}

#[test]
fn a_pod_taken_off_in_thought_counts_nowhere() {
    // One pod on each of two hosts: 1 + 1 - 1 on both. With the first gone: 0 + 1 - 0, and 1 + 1 - 0 on the other.
    let host = |name: &str| node(name).cpu("4").label("host", name);
    let there = |name: &str, on: &str| pod(name).label("app", "a").on(on);
    let world = world().node(host("n")).node(host("m")).pod(there("x", "n")).pod(there("y", "m"));
    let new = facts(pod("new").label("app", "a"), |w| {
        w.spread.push(Spread {
            max_skew: 1,
            topology_key: "host".into(),
            hard: true,
            selector: selector("app=a"),
            min_domains: None,
            honor_affinity: true,
            honor_taints: false,
        });
    });
    let mut live = world.0;
    let new = live.view(&new, new.asks.effective);
    let cluster = live.snapshot();
    let input = Input::new(cluster);
    let ready = prepare(&input, &new);
    let mut hard = spread::Hard::new(&input, &new, &ready, &mut Places::default());
    let [n, m] = ["n", "m"].map(|name| cluster.find_node(name).unwrap());
    let both = |hard: &spread::Hard| [n, m].map(|node| hard.check(node.id.index()));
    assert_eq!(both(&hard), [None, None]);
    hard.shift(&input, &new, &ready, &n.pods[0], n.id.index(), -1);
    assert_eq!(both(&hard), [None, Some(Filter::Spread)]);
    hard.shift(&input, &new, &ready, &n.pods[0], n.id.index(), 1);
    assert_eq!(both(&hard), [None, None]);
}

#[test]
fn the_api_would_keep_who_overdraws_a_budget_unless_it_is_leaving_or_has_not_begun_to_run() {
    type Case = (&'static str, [Phase; 2], [bool; 2], i64, u32);
    let new = pod("new").cpu("4").priority(1000).facts();
    let cases: [Case; 6] = [
        ("nobody may go", [Phase::Running; 2], [false; 2], 0, 2),
        ("one of two may go", [Phase::Running; 2], [false; 2], 1, 1),
        ("both may go", [Phase::Running; 2], [false; 2], 2, 0),
        ("the API does not ask about the first", [Phase::Pending, Phase::Running], [false; 2], 1, 0),
        ("nor about who is leaving", [Phase::Running; 2], [true, false], 1, 0),
        ("its node does not say", [Phase::Unknown; 2], [false; 2], 0, 2),
    ];
    for (why, phases, leaving, allowed, kept) in cases {
        let mut all = world().node(node("n").cpu("4"));
        for (at, name) in ["guarded-1", "guarded-2"].into_iter().enumerate() {
            let facts = there(("n", name, 2000, 0, 1));
            all = add(all, &PodFacts { phase: phases[at], terminating: leaving[at], ..facts });
        }
        let mut live = all.0;
        let new = Arc::new(live.view(&new, new.asks.effective));
        let budgets = [budget(selector("app=guarded"), allowed)];
        let plan = preempt(&Input::new(live.snapshot()), &new, &budgets, None, &mut Memo::default());
        assert_eq!(plan.expect("both go").kept, kept, "{why}");
    }
}

#[test]
fn why_nobody_goes_is_counted_node_by_node_in_the_words_of_kube_scheduler() {
    let port = |w: &mut Wants| {
        w.ports.push(HostPort { ip: String::new(), protocol: "TCP".to_owned(), port: 80 });
    };
    let all = world()
        .node(node("cordoned").cpu("4").cordoned())
        .node(node("small").cpu("1"))
        .node(node("taken").cpu("4"))
        .node(node("port").cpu("4"))
        .node(node("crowd").cpu("4").has("pods", "0"))
        .node(node("most").cpu("4"))
        .pod(pod("equal").cpu("4").priority(5).on("taken"))
        .pod(pod("heavy").cpu("3").priority(5).on("most"))
        .pod(pod("light").cpu("1").on("most"))
        .pod(pod("lesser").cpu("1").on("port"));
    let all = add(all, &facts(pod("holder").priority(5).on("port"), port));
    let mut live = all.0;
    let new = facts(pod("new").cpu("2").priority(5), port);
    let new = Arc::new(live.view(&new, new.asks.effective));
    let ask = |new: &Arc<PodView>, live: &mut Live, is_any_lesser: bool| {
        let input = Input::new(live.snapshot());
        let found = make_room(&input, new, is_any_lesser, &[], None, &mut Memo::default());
        found.expect_err("nobody's going helps")
    };
    let vain = ask(&new, &mut live, true);
    assert!(vain.forfeits());
    assert_eq!(
        vain.words().as_deref(),
        Some(
            "preemption: 0/6 nodes are available: 1 Insufficient cpu, 1 node(s) didn't have free ports for the requested pod \
            ports, 2 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
        ),
        "the cordoned and the small one; the taken one, and the one without a place for pods; all but 1 of 4 stays taken"
    );
    let humble = pod("humble").cpu("5").facts();
    let humble = Arc::new(live.view(&humble, humble.asks.effective));
    let vain = ask(&humble, &mut live, false);
    assert!(vain.words().is_some_and(|words| words.contains("6 Preemption is not helpful")), "{vain:?}");
    let never = Arc::new(PodView { preempts: false, ..PodView::clone(&new) });
    let vain = ask(&never, &mut live, true);
    assert!(!vain.forfeits(), "what was promised to it was not by us");
    assert_eq!(vain.words().as_deref(), Some("preemption: not eligible due to preemptionPolicy=Never."));
}

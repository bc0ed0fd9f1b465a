//! Deciding only what a change touches comes to the same as deciding everything.

use super::*;
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::Arc;

const CLUSTERS: [&str; 5] = ["a", "b", "c", "d", "e"];
const SETS: [&str; 3] = ["blue", "gold", "global"];

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    Cluster(Shape),
    /// Only the object of a cluster is another.
    Word(usize, usize),
    NoCluster(usize),
    Set(usize, bool),
    NoSet(usize),
    Bind(usize, usize),
    Unbind(usize, usize),
    Score {
        cluster: usize,
        object: usize,
        value: i32,
        until: Option<i64>,
    },
    NoScore(usize, usize),
    /// A slice of a placement, or of one that is not there, as somebody wrote it.
    Slice {
        of: usize,
        number: usize,
        clusters: Vec<usize>,
    },
    NoSlice(usize, usize),
    /// A placement asks for another number.
    Count(usize, Option<i32>),
    NoPlacement(usize),
    Time(i64),
}

/// A cluster as it may be.
#[derive(Clone, Debug)]
struct Shape {
    name: usize,
    set: usize,
    tier: usize,
    claim: usize,
    cpu: u8,
    memory: Option<u8>,
    taint: Option<(usize, bool)>,
    load: Option<(i64, u8)>,
    leaving: bool,
    /// What only the judge knows of it.
    word: usize,
}

fn shape() -> impl Strategy<Value = Shape> {
    let labels = (0..5_usize, 0..3_usize, 0..3_usize, 0..3_usize);
    let amounts = (0..4_u8, proptest::option::of(0..3_u8));
    let taint = proptest::option::weighted(0.4, (0..3_usize, any::<bool>()));
    let load = proptest::option::of((-40..10_i64, 0..4_u8));
    (labels, amounts, taint, load, prop::bool::weighted(0.1), 0..WORDS.len()).prop_map(
        |((name, set, tier, claim), (cpu, memory), taint, load, leaving, word)| Shape {
            name,
            set,
            tier,
            claim,
            cpu,
            memory,
            taint,
            load,
            leaving,
            word,
        },
    )
}

impl Shape {
    fn cluster(&self, now: i64) -> ClusterFacts {
        let mut of = ClusterFacts {
            labels: texts(&[
                (SET_LABEL, ["blue", "red", "none"][self.set]),
                ("tier", ["gold", "tin", "none"][self.tier]),
            ]),
            claims: texts(&[("zone", ["1", "2", "3"][self.claim])]),
            leaving: self.leaving,
            fingerprint: self.word as u64,
            allocatable: amounts(&[("cpu", &self.cpu.to_string())]),
            capacity: amounts(&[("cpu", "4"), ("memory", "2")]),
            ..cluster(CLUSTERS[self.name])
        };
        if let Some(memory) = self.memory {
            of.allocatable.extend(amounts(&[("memory", &memory.to_string())]));
        }
        if let Some((effect, dated)) = self.taint {
            let effect = [Effect::NoSelect, Effect::NoSelectIfNew, Effect::PreferNoSelect][effect].clone();
            of.taints.push(taint("x", effect, dated.then(|| at(now))));
        }
        if let Some((ago, cpu)) = self.load {
            let requested = amounts(&[("cpu", &cpu.to_string())]);
            of.load = Some(ClusterLoad { at: at(now + ago), requested, measured: Resources::new() });
        }
        of
    }
}

fn event() -> impl Strategy<Value = Event> {
    let clusters = proptest::collection::vec(0..5_usize, 0..4);
    let placement = || 0..wishes().len();
    prop_oneof![
        8 => shape().prop_map(Event::Cluster),
        3 => (0..5_usize, 0..WORDS.len()).prop_map(|(name, word)| Event::Word(name, word)),
        1 => (0..5_usize).prop_map(Event::NoCluster),
        1 => (0..3_usize, any::<bool>()).prop_map(|(set, bad)| Event::Set(set, bad)),
        1 => (0..3_usize).prop_map(Event::NoSet),
        2 => (0..2_usize, 0..3_usize).prop_map(|(namespace, set)| Event::Bind(namespace, set)),
        1 => (0..2_usize, 0..3_usize).prop_map(|(namespace, set)| Event::Unbind(namespace, set)),
        3 => (0..5_usize, 0..2_usize, -100..=100, proptest::option::of(0..200_i64))
            .prop_map(|(cluster, object, value, until)| Event::Score { cluster, object, value, until }),
        1 => (0..5_usize, 0..2_usize).prop_map(|(cluster, object)| Event::NoScore(cluster, object)),
        2 => (0..=wishes().len(), 1..3_usize, clusters)
            .prop_map(|(of, number, clusters)| Event::Slice { of, number, clusters }),
        1 => (0..=wishes().len(), 1..3_usize).prop_map(|(of, number)| Event::NoSlice(of, number)),
        1 => (placement(), proptest::option::of(-1..4)).prop_map(|(of, count)| Event::Count(of, count)),
        1 => placement().prop_map(Event::NoPlacement),
        4 => (1..60_i64).prop_map(Event::Time),
    ]
}

fn namespace(number: usize) -> &'static str {
    ["ns1", "ns2"][number]
}

fn set(number: usize, bad: bool) -> Members {
    match (SETS[number], bad) {
        (_, true) => Members::Unknown("Magic".into()),
        ("blue", _) => Members::Exclusive,
        ("gold", _) => Members::Labels(Some(labels(&[("tier", "gold")]))),
        _ => Members::Labels(Some(LabelSelector::default())),
    }
}

/// Whose slice it is; past the last one, nobody's we know.
fn owner(of: usize) -> Key {
    wishes().get(of).map_or_else(|| Key::new("ns3", "other"), |wish| wish.key.clone())
}

fn apply(fleet: &mut Fleet, judge: &mut Words, event: &Event, now: &mut i64) {
    match event {
        Event::Cluster(shape) => {
            judge.objects.insert(CLUSTERS[shape.name], WORDS[shape.word]);
            fleet.set_cluster(shape.cluster(*now));
        }
        // As if nothing else about it were different.
        Event::Word(name, word) => {
            let known = fleet.index.find(CLUSTERS[*name]).and_then(|id| fleet.index.row(id).cloned());
            if let Some(known) = known {
                judge.objects.insert(CLUSTERS[*name], WORDS[*word]);
                fleet.set_cluster(ClusterFacts { fingerprint: *word as u64, ..ClusterFacts::clone(&known) });
            }
        }
        Event::NoCluster(name) => fleet.remove_cluster(CLUSTERS[*name]),
        Event::Set(number, bad) => fleet.set_set(SETS[*number], set(*number, *bad)),
        Event::NoSet(number) => fleet.remove_set(SETS[*number]),
        Event::Bind(number, set) => fleet.bind(namespace(*number), SETS[*set]),
        Event::Unbind(number, set) => fleet.unbind(namespace(*number), SETS[*set]),
        Event::Score { cluster, object, value, until } => {
            let valid_until = until.map(at);
            let values = [("x".to_owned(), *value)].into();
            fleet.set_scores(CLUSTERS[*cluster], ["one", "two"][*object], Scores { values, valid_until });
        }
        Event::NoScore(cluster, object) => fleet.remove_scores(CLUSTERS[*cluster], ["one", "two"][*object]),
        Event::Slice { of, number, clusters } => {
            let Key { namespace, name } = owner(*of);
            let names: Vec<&str> = clusters.iter().map(|name| CLUSTERS[*name]).collect();
            let mut slice = slice(&name, *number, &names);
            slice.key.namespace = namespace;
            fleet.set_slice(slice);
        }
        Event::NoSlice(of, number) => {
            let Key { namespace, name } = owner(*of);
            fleet.remove_slice(&Key::new(namespace, format!("{name}-decision-{number}")));
        }
        Event::Count(of, count) => {
            fleet.set_placement(Placement { count: *count, ..wishes().swap_remove(*of) });
        }
        Event::NoPlacement(of) => fleet.remove_placement(&owner(*of)),
        Event::Time(more) => *now += more,
    }
}

const WORDS: [&str; 3] = ["yes", "no", "perhaps"];

/// Knows three expressions: a tier's name, that a score is above nothing, and that the object says yes.
#[derive(Default)]
struct Words {
    asked: Cell<usize>,
    objects: BTreeMap<&'static str, &'static str>,
}

impl Judge for Words {
    fn problem(&self, _: &str) -> Option<String> {
        None
    }

    fn judge(&self, expressions: &[String], cluster: &ClusterFacts, scores: &Book<'_>) -> Ruling {
        self.asked.set(self.asked.get() + 1);
        let holds = |expression: &String| match expression.as_str() {
            "yes" => self.objects.get(&*cluster.name) == Some(&"yes"),
            "scored" => scores.get("one").is_some_and(|scores| scores.values["x"] > 0),
            tier => cluster.labels.get("tier").is_some_and(|known| known == tier),
        };
        if expressions.iter().all(holds) { Ruling::Holds } else { Ruling::Fails("no".to_owned()) }
    }
}

fn cel(expressions: &[&str]) -> Predicate {
    Predicate { cel: expressions.iter().map(|one| (*one).to_owned()).collect(), ..Predicate::default() }
}

/// Placements that read different things; only `balanced` looks at what others have.
fn wishes() -> Vec<Placement> {
    let no_balance = || built_in("Balance", 0);
    let gold = Predicate { labels: labels(&[("tier", "gold")]), ..Predicate::default() };
    let tolerant =
        Toleration { key: "x".into(), operator: "Exists".into(), seconds: Some(60), ..Default::default() };
    let in_second = |wish: Placement| Placement { key: Key::new("ns2", wish.key.name.clone()), ..wish };
    let term = Constraint { key: "zone".into(), kind: TopologyKind::Claim, max_skew: 1, required: true };
    let wish = |name: &str, count: Option<i32>, more: &[Configuration]| {
        placement(name, count, &[&[no_balance()], more].concat())
    };
    let live = Extra {
        source: Source::Requested,
        max_age: SignedDuration::from_secs(45),
        margin: Some(20),
        ..Extra::default()
    };
    let slow = Extra { dwell: Some(SignedDuration::from_secs(30)), sticky: true, ..Extra::default() };
    vec![
        wish("all", None, &[]),
        Placement { predicates: vec![gold.clone()], ..wish("gold", Some(2), &[]) },
        wish("cpu", Some(2), &[built_in("ResourceAllocatableCPU", 2)]),
        Placement { tolerations: vec![tolerant.clone()], ..wish("tolerant", Some(3), &[]) },
        in_second(wish("scored", Some(1), &[add_on("one", "x", 2)])),
        in_second(Placement { spread: vec![term], ..wish("spread", Some(3), &[]) }),
        in_second(Placement { cluster_sets: vec!["blue".into()], ..wish("blue", None, &[]) }),
        Placement {
            extra: live,
            ..wish("live", Some(2), &[built_in("ResourceRatioCPU", 1), built_in("ResourceAllocatableCPU", 1)])
        },
        Placement { extra: slow, ..wish("slow", Some(2), &[built_in("ResourceRatioMemory", 2)]) },
        Placement {
            predicates: vec![cel(&["scored"])],
            tolerations: vec![tolerant],
            ..wish("judged", Some(2), &[built_in("TaintPreference", 1)])
        },
        Placement { predicates: vec![cel(&["yes"])], ..wish("agreed", Some(2), &[]) },
        in_second(Placement {
            predicates: vec![Predicate { cel: cel(&["scored"]).cel, ..gold }, cel(&["tin", "scored"])],
            ..wish("either", None, &[])
        }),
        placement(BALANCED, Some(2), &[built_in("ResourceAllocatableMemory", 1)]),
    ]
}

const BALANCED: &str = "balanced";

/// Without what only says when it was decided.
fn timeless(outcome: &Outcome) -> Outcome {
    let mut outcome = outcome.clone();
    outcome.last_score_update = None;
    outcome.conditions.iter_mut().for_each(|condition| condition.since = noon());
    // As long as nobody has written since when clusters are selected, that counts from when it was decided.
    if outcome.writes.iter().any(|step| step.status && !step.slice.since.is_empty()) {
        outcome.requeue_at = None;
    }
    outcome.writes.iter_mut().for_each(|step| Arc::make_mut(&mut step.slice).since.clear());
    outcome
}

proptest! {
    #[test]
    fn deciding_what_is_touched_is_deciding_everything(
        events in proptest::collection::vec(event(), 1..40),
        published in any::<bool>(),
    ) {
        let mut judge = Words::default();
        let mut fleet = Fleet::new(Options { publish_scores: false, ..Options::default() });
        for wish in wishes() {
            fleet.set_placement(wish);
        }
        for (number, name) in SETS.iter().enumerate() {
            fleet.set_set(name, set(number, false));
        }
        fleet.bind("ns1", "global");
        fleet.bind("ns2", "gold");
        let mut now = 0;
        for event in events {
            apply(&mut fleet, &mut judge, &event, &mut now);
            let outcomes = fleet.decide(&judge, at(now));
            for outcome in &outcomes {
                let fresh = fleet.report(&outcome.placement, &judge, at(now)).unwrap().outcome;
                prop_assert_eq!(&**outcome, &fresh, "{} after {:?}", outcome.placement, event);
            }
            if published {
                for outcome in &outcomes {
                    write(&mut fleet, outcome);
                }
            }
            // What was written comes back and is looked at once more.
            fleet.decide(&judge, at(now));
            prop_assert_eq!(fleet.due(at(now)).count(), 0);
            let known: Vec<Key> = fleet.placements().map(|placement| placement.key.clone()).collect();
            // What others have is no reason to decide anew.
            for key in known.into_iter().filter(|key| &*key.name != BALANCED) {
                let fresh = fleet.report(&key, &judge, at(now)).unwrap().outcome;
                let kept = fleet.outcome(&key).unwrap();
                prop_assert_eq!(timeless(kept), timeless(&fresh), "{} after {:?}", key, event);
            }
        }
    }
}

#[test]
fn a_judge_is_asked_once_per_cluster_and_change() {
    let gold = |name: &str| labelled(name, &[("tier", "gold")]);
    let mut fleet = fleet([gold("a"), gold("b"), gold("c")]);
    for name in ["one", "two"] {
        let wish = placement(name, None, &[built_in("Balance", 0)]);
        fleet.set_placement(Placement { predicates: vec![cel(&["scored"])], ..wish });
    }
    let judge = Words::default();
    let asked = |fleet: &mut Fleet, now: i64| {
        judge.asked.set(0);
        let selected = fleet.decide(&judge, at(now)).iter().map(|outcome| outcome.selected.len()).max();
        (judge.asked.get(), selected)
    };
    assert_eq!(asked(&mut fleet, 0), (3, Some(0)), "for both placements together");
    let score =
        |value, until| Scores { values: [("x".to_owned(), value)].into(), valid_until: Some(at(until)) };
    fleet.set_scores("a", "one", score(1, 10));
    assert_eq!(asked(&mut fleet, 1), (1, Some(1)), "only that cluster has other scores");
    fleet.set_cluster(ClusterFacts { claims: texts(&[("zone", "1")]), ..gold("b") });
    assert_eq!(asked(&mut fleet, 1), (0, None), "nobody reads claims");
    fleet.set_cluster(ClusterFacts { taints: vec![taint("x", Effect::NoSelect, None)], ..gold("c") });
    assert_eq!(asked(&mut fleet, 2), (2, Some(1)), "the two clusters that are others");
    assert_eq!(asked(&mut fleet, 10), (0, Some(1)), "the score still holds");
    assert_eq!(asked(&mut fleet, 11), (1, Some(0)), "and no longer");
    assert_eq!(asked(&mut fleet, 12), (0, None));
}

#[test]
fn a_cluster_no_predicate_matches_touches_nobody() {
    let sized = |name: &str, tier: &str, cpu: &str| ClusterFacts {
        labels: texts(&[("tier", tier)]),
        ..sized(name, [cpu, "4"], ["1", "1"])
    };
    let mut fleet = fleet([sized("a", "gold", "4"), sized("b", "tin", "4")]);
    let gold = Predicate { labels: labels(&[("tier", "gold")]), ..Predicate::default() };
    let wish = placement("p", Some(1), &[built_in("ResourceAllocatableCPU", 1)]);
    fleet.set_placement(Placement { predicates: vec![gold], ..wish });
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(sized("b", "tin", "3"))), [""; 0]);
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(sized("a", "gold", "3"))), ["p"]);
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(sized("b", "gold", "3"))), ["p"], "it comes");
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(sized("b", "tin", "3"))), ["p"], "it goes");
}

/// The placements a change touches.
fn touched(fleet: &mut Fleet, change: impl FnOnce(&mut Fleet)) -> Vec<String> {
    fleet.decide(&NoCel, noon());
    change(fleet);
    fleet.due(noon()).map(|key| key.name.to_string()).collect()
}

#[test]
fn a_change_touches_only_who_reads_it() {
    let full = || ClusterFacts { claims: texts(&[("zone", "1")]), ..sized("a", ["4", "4"], ["1", "1"]) };
    let mut fleet =
        fleet([ClusterFacts { labels: texts(&[("tier", "gold"), (SET_LABEL, "blue")]), ..full() }]);
    for wish in wishes() {
        fleet.set_placement(wish);
    }
    for (number, name) in SETS.iter().enumerate() {
        fleet.set_set(name, set(number, false));
    }
    fleet.bind("ns2", "gold");
    let known = || ClusterFacts { labels: texts(&[("tier", "gold"), (SET_LABEL, "blue")]), ..full() };
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_cluster(known())),
        [""; 0],
        "a heartbeat touches nobody"
    );
    // Row A24: exactly the resources that are weighed.
    let more = |resource: &str, amount: &str| {
        let mut of = known();
        of.allocatable.extend(amounts(&[(resource, amount)]));
        of
    };
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(more("cpu", "3"))), ["cpu", "live"]);
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_cluster(more("nvidia.com/gpu", "3"))),
        ["cpu", "live"],
        "cpu is back to 4"
    );
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(more("nvidia.com/gpu", "2"))), [""; 0]);
    let zone = ClusterFacts { claims: texts(&[("zone", "2")]), ..more("nvidia.com/gpu", "2") };
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(zone.clone())), ["spread"]);
    let written = ClusterFacts { fingerprint: 1, ..zone };
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_cluster(written)),
        ["agreed", "judged", "either"],
        "who may read anything of the object"
    );
    let scores = Scores { values: [("x".to_owned(), 1)].into(), valid_until: None };
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_scores("a", "one", scores.clone())),
        ["agreed", "judged", "either", "scored"]
    );
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_scores("a", "two", scores.clone())),
        ["agreed", "judged", "either"]
    );
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_slice(slice("cpu", 1, &["a"]))),
        ["cpu"],
        "its own only"
    );
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.bind("ns2", "blue")),
        ["blue", "either", "scored", "spread"]
    );
    assert_eq!(touched(&mut fleet, |fleet| fleet.remove_set("gold")), ["blue", "either", "scored", "spread"]);
}

#[test]
fn time_alone_is_a_reason_once() {
    let mut fleet = fleet([cluster("a")]);
    fleet.set_scores("a", "demo", Scores { valid_until: Some(at(10)), ..Scores::default() });
    fleet.set_placement(placement("p", None, &[add_on("demo", "x", 1)]));
    assert_eq!(fleet.decide(&NoCel, noon()).len(), 1);
    assert_eq!((fleet.wake(), fleet.due(at(9)).count()), (Some(at(10)), 0));
    assert_eq!(fleet.decide(&NoCel, at(10)).len(), 1, "still valid, and looked at");
    assert_eq!(fleet.decide(&NoCel, at(10)).len(), 0, "but not again in the same moment");
    assert_eq!(fleet.decide(&NoCel, at(11)).len(), 1, "now it is over");
    assert_eq!(fleet.decide(&NoCel, at(12)).len(), 0);
}

#[test]
fn who_is_decided_next_sees_what_is_being_written() {
    let balance = || [built_in("Balance", 1)];
    let exact = |name: &str| Placement { mode: "Exact".into(), ..placement(name, Some(1), &balance()) };
    let mut fleet = fleet(["a", "b", "c"].map(cluster));
    let mut chosen = Vec::new();
    for name in ["p", "q", "r"] {
        fleet.set_placement(exact(name));
        let outcome = fleet.decide_one(&exact(name).key, &NoCel, noon()).unwrap();
        fleet.assume(&outcome);
        chosen.push(selected(&outcome).concat());
    }
    assert_eq!(chosen, ["a", "b", "c"], "each takes one nobody has");
    assert_eq!(fleet.due(noon()).count(), 0, "what is one's own is no reason to decide");
    // What was meant arrives as it was meant; then it does not.
    let meant = fleet.outcome(&exact("q").key).unwrap().writes[0].slice.clone();
    fleet.set_slice((*meant).clone());
    assert_eq!(fleet.due(noon()).count(), 0);
    fleet.remove_slice(&meant.key);
    assert_eq!(fleet.due(noon()).map(|key| &*key.name).collect::<Vec<_>>(), ["q"]);
    // Nobody has it now: whoever comes may.
    let outcome = fleet.decide_one(&exact("q").key, &NoCel, noon()).unwrap();
    assert_eq!(selected(&outcome), ["b"]);
    // A write that failed is a reason, though nothing is different.
    assert_eq!(fleet.due(noon()).count(), 0);
    fleet.again(&exact("q").key);
    assert_eq!(fleet.due(noon()).count(), 1);
}

//! A fleet to live through: events, the objects they leave behind, placements that read different things of them.

use super::*;
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::Arc;

pub(super) const CLUSTERS: [&str; 5] = ["a", "b", "c", "d", "e"];
pub(super) const SETS: [&str; 3] = ["blue", "gold", "global"];

/// Something that happens.
#[derive(Clone, Debug)]
pub(super) enum Event {
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
pub(super) struct Shape {
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

pub(super) fn shape() -> impl Strategy<Value = Shape> {
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
    pub(super) fn cluster(&self, now: i64) -> ClusterFacts {
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

pub(super) fn event() -> impl Strategy<Value = Event> {
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

pub(super) fn namespace(number: usize) -> &'static str {
    ["ns1", "ns2"][number]
}

pub(super) fn set(number: usize, bad: bool) -> Members {
    match (SETS[number], bad) {
        (_, true) => Members::Unknown("Magic".into()),
        ("blue", _) => Members::Exclusive,
        ("gold", _) => Members::Labels(Some(labels(&[("tier", "gold")]))),
        _ => Members::Labels(Some(LabelSelector::default())),
    }
}

/// Whose slice it is; past the last one, nobody's we know.
pub(super) fn owner(of: usize) -> Key {
    wishes().get(of).map_or_else(|| Key::new("ns3", "other"), |wish| wish.key.clone())
}

/// An object of the fleet, as somebody tells of it.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Cluster(ClusterFacts),
    Set(&'static str, Members),
    Bound(&'static str, &'static str),
    Scores(&'static str, &'static str, Scores),
    Slice(Arc<Slice>),
    Placement(Placement),
}

impl Told {
    pub(super) fn object(&self) -> String {
        match self {
            Self::Cluster(cluster) => format!("cluster {}", cluster.name),
            Self::Set(name, _) => format!("set {name}"),
            Self::Bound(namespace, set) => format!("binding {namespace}/{set}"),
            Self::Scores(cluster, object, _) => format!("scores {cluster}/{object}"),
            Self::Slice(slice) => format!("slice {}", slice.key),
            Self::Placement(wish) => format!("placement {}", wish.key),
        }
    }

    pub(super) fn set(self, fleet: &mut Fleet) {
        match self {
            Self::Cluster(cluster) => fleet.set_cluster(cluster),
            Self::Set(name, members) => fleet.set_set(name, members),
            Self::Bound(namespace, set) => fleet.bind(namespace, set),
            Self::Scores(cluster, object, scores) => fleet.set_scores(cluster, object, scores),
            Self::Slice(slice) => fleet.set_slice(slice),
            Self::Placement(wish) => fleet.set_placement(wish),
        }
    }

    pub(super) fn remove(&self, fleet: &mut Fleet) {
        match self {
            Self::Cluster(cluster) => fleet.remove_cluster(&cluster.name),
            Self::Set(name, _) => fleet.remove_set(name),
            Self::Bound(namespace, set) => fleet.unbind(namespace, set),
            Self::Scores(cluster, object, _) => fleet.remove_scores(cluster, object),
            Self::Slice(slice) => fleet.remove_slice(&slice.key),
            Self::Placement(wish) => fleet.remove_placement(&wish.key),
        }
    }
}

/// A fleet that is told of every change, and the objects as they are, by name.
pub(super) struct World {
    pub(super) fleet: Fleet,
    pub(super) judge: Words,
    pub(super) objects: BTreeMap<String, Told>,
    pub(super) now: i64,
}

impl World {
    pub(super) fn new() -> Self {
        let fleet = Fleet::new(Options { publish_scores: false, ..Options::default() });
        let mut world = Self { fleet, judge: Words::default(), objects: BTreeMap::new(), now: 0 };
        for wish in wishes() {
            world.set(Told::Placement(wish));
        }
        for (number, name) in SETS.iter().enumerate() {
            world.set(Told::Set(name, set(number, false)));
        }
        world.set(Told::Bound("ns1", "global"));
        world.set(Told::Bound("ns2", "gold"));
        world
    }

    pub(super) fn set(&mut self, told: Told) {
        self.objects.insert(told.object(), told.clone());
        told.set(&mut self.fleet);
    }

    pub(super) fn remove(&mut self, told: &Told) {
        self.objects.remove(&told.object());
        told.remove(&mut self.fleet);
    }

    pub(super) fn apply(&mut self, event: &Event) {
        let slice_of = |of: usize, number: usize, clusters: &[usize]| {
            let Key { namespace, name } = owner(of);
            let names: Vec<&str> = clusters.iter().map(|name| CLUSTERS[*name]).collect();
            let mut slice = slice(&name, number, &names);
            slice.key.namespace = namespace;
            Told::Slice(Arc::new(slice))
        };
        let scores = |cluster: usize, object: usize, scores: Scores| {
            Told::Scores(CLUSTERS[cluster], ["one", "two"][object], scores)
        };
        match event {
            Event::Cluster(shape) => {
                self.judge.objects.insert(CLUSTERS[shape.name], WORDS[shape.word]);
                self.set(Told::Cluster(shape.cluster(self.now)));
            }
            // As if nothing else about it were different.
            Event::Word(name, word) => {
                let known = self.objects.get(&format!("cluster {}", CLUSTERS[*name]));
                if let Some(Told::Cluster(known)) = known.cloned() {
                    self.judge.objects.insert(CLUSTERS[*name], WORDS[*word]);
                    self.set(Told::Cluster(ClusterFacts { fingerprint: *word as u64, ..known }));
                }
            }
            Event::NoCluster(name) => self.remove(&Told::Cluster(cluster(CLUSTERS[*name]))),
            Event::Set(number, bad) => self.set(Told::Set(SETS[*number], set(*number, *bad))),
            Event::NoSet(number) => self.remove(&Told::Set(SETS[*number], set(*number, false))),
            Event::Bind(number, set) => self.set(Told::Bound(namespace(*number), SETS[*set])),
            Event::Unbind(number, set) => self.remove(&Told::Bound(namespace(*number), SETS[*set])),
            Event::Score { cluster, object, value, until } => {
                let values = [("x".to_owned(), *value)].into();
                self.set(scores(*cluster, *object, Scores { values, valid_until: until.map(at) }));
            }
            Event::NoScore(cluster, object) => self.remove(&scores(*cluster, *object, Scores::default())),
            Event::Slice { of, number, clusters } => self.set(slice_of(*of, *number, clusters)),
            Event::NoSlice(of, number) => self.remove(&slice_of(*of, *number, &[])),
            Event::Count(of, count) => {
                self.set(Told::Placement(Placement { count: *count, ..wishes().swap_remove(*of) }));
            }
            Event::NoPlacement(of) => self.remove(&Told::Placement(wishes().swap_remove(*of))),
            Event::Time(more) => self.now += more,
        }
    }

    /// Writes what was decided, as it comes back from a cluster.
    pub(super) fn write(&mut self, outcome: &Outcome) {
        for step in &outcome.writes {
            let told = Told::Slice(step.slice.clone());
            match step.action {
                Action::Create | Action::Patch => self.set(told),
                Action::Delete => self.remove(&told),
                Action::None => {}
            }
        }
    }

    /// One that is told of the end alone, from behind.
    pub(super) fn rebuilt(&self) -> Fleet {
        let mut fleet = Fleet::new(Options { publish_scores: false, ..Options::default() });
        self.objects.values().rev().cloned().for_each(|told| told.set(&mut fleet));
        fleet
    }
}

pub(super) const WORDS: [&str; 3] = ["yes", "no", "perhaps"];

/// Knows three expressions: a tier's name, that a score is above nothing, and that the object says yes.
#[derive(Default)]
pub(super) struct Words {
    pub(super) asked: Cell<usize>,
    pub(super) objects: BTreeMap<&'static str, &'static str>,
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

pub(super) fn cel(expressions: &[&str]) -> Predicate {
    Predicate { cel: expressions.iter().map(|one| (*one).to_owned()).collect(), ..Predicate::default() }
}

/// Placements that read different things; only `balanced` looks at what others have.
pub(super) fn wishes() -> Vec<Placement> {
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

pub(super) const BALANCED: &str = "balanced";

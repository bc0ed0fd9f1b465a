use super::*;
use crate::cluster::Options;
use crate::cycle::Filter;
use crate::ledger::{Sample, Uid};
use crate::load::Both;
use crate::load::policy::{Policy, Rules};
use crate::load::settings::Settings as LoadSettings;
use crate::select::{Requirement, Selector};
use crate::view::build::{Node, Pod, node, pod};
use crate::view::{Budget, NodeId, PodFacts};
use jiff::{SignedDuration, Timestamp};

mod limits;
mod random;
mod remembering;
mod staying;

const GI: i64 = 1 << 30;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).expect("a second in range")
}

fn milli(cpu: i64) -> Load {
    Load::new(cpu * 1_000_000, 0)
}

fn sample(seconds: i64, window: i64, usage: Load) -> Sample {
    Sample { at: at(seconds), window: SignedDuration::from_secs(window), usage }
}

/// Nodes of ten cores and 32 GiB, of which 6.5 cores and 28.8 GiB may be used.
struct World {
    cluster: Cluster,
    recent: Recent,
    moves: Moves,
    off: Off,
    settings: Settings,
}

impl World {
    fn new() -> Self {
        let targets = Both { cpu: Ratio::from_f64(0.65), memory: Ratio::from_f64(0.9) };
        let (rules, _) = Rules::new(Policy::default(), LoadSettings { targets, ..LoadSettings::default() })
            .expect("good rules");
        Self::by(Some(rules))
    }

    fn by(rules: Option<Rules>) -> Self {
        // So that lines are those of the rules; what slack does is a test of its own.
        let settings = Settings { slack: Ratio::ZERO, ..Settings::default() };
        Self {
            cluster: Cluster::new(Options { rules, ..Options::default() }, at(0)),
            recent: Recent::new(&settings),
            moves: Moves::default(),
            off: Off::default(),
            settings,
        }
    }

    /// With a node that has used so many thousandths of a core for ten minutes.
    fn node(self, name: &str, cpu: i64) -> Self {
        self.node_as(node(name).cpu("10").memory("32Gi"), cpu)
    }

    fn node_as(mut self, node: Node, cpu: i64) -> Self {
        let facts = node.facts();
        self.cluster.set_node(&facts);
        for minute in -10..=0 {
            self.measure(&facts.name, minute * 60, cpu);
        }
        self
    }

    fn measure(&mut self, node: &str, seconds: i64, cpu: i64) {
        let id = self.id(node);
        let sample = sample(seconds, 60, milli(cpu).plus(Load::new(0, 4 * GI)));
        self.cluster.sample(node, sample);
        self.recent.node(id, sample);
    }

    fn id(&self, node: &str) -> NodeId {
        self.cluster.find_node(node).expect("the test made it").id
    }

    /// With a replica of a workload of its name's first part, there for an hour, that uses so much now.
    fn pod(self, name: &str, node: &str, cpu: i64) -> Self {
        self.pod_as(replica(name), node, cpu)
    }

    fn pod_as(mut self, pod: Pod, node: &str, cpu: i64) -> Self {
        let mut facts = pod.on(node).facts();
        facts.accepted = facts.accepted.or(Some(at(-3600)));
        facts.started = facts.accepted;
        self.cluster.set_pod(&facts);
        self.uses(&facts.key.name, -60, cpu);
        self
    }

    fn uses(&mut self, pod: &str, seconds: i64, cpu: i64) {
        let sample = sample(seconds, 60, milli(cpu));
        self.cluster.pod_sample(&Key::new("default", pod), sample);
        self.recent.pod(Uid::new(&format!("uid-{pod}")), sample);
    }

    fn plan(&mut self) -> Plan {
        let Self { cluster, recent, moves, off, settings } = self;
        plan(cluster, &Input { settings, recent, moves, off, soon: None })
    }

    /// Who goes where.
    fn moves(&mut self) -> Vec<(String, String)> {
        self.plan().moves.iter().map(|m| (m.pod.name.to_string(), m.to.to_string())).collect()
    }

    /// Why a pod stays.
    fn stay(&mut self, pod: &str) -> Option<Stay> {
        let plan = self.plan();
        let mut stays = plan.nodes.into_iter().flat_map(|over| over.stays);
        stays.find(|(key, _)| &*key.name == pod).map(|(_, stay)| stay)
    }

    fn wait(&mut self, node: &str) -> Option<Wait> {
        self.plan().nodes.into_iter().find(|over| &*over.node == node).expect("it is over its line").wait
    }

    /// As if that had been done.
    fn moved(&mut self, seconds: i64, pod: &str, from: &str, to: &str) {
        self.moves.note(Moved {
            at: at(seconds),
            pod: Key::new("default", pod),
            uid: format!("uid-{pod}-{seconds}").into(),
            workload: format!("default/ReplicaSet/{}", workload_of(pod)).into(),
            from: from.into(),
            to: to.into(),
            high: milli(1000),
            because: "".into(),
        });
    }
}

/// A pod that asks for 100m, of the workload its name begins with.
fn replica(name: &str) -> Pod {
    pod(name)
        .cpu("100m")
        .memory("64Mi")
        .label("app", workload_of(name))
        .owner("ReplicaSet", workload_of(name))
}

fn workload_of(pod: &str) -> &str {
    pod.split('-').next().unwrap_or(pod)
}

/// Pods of that workload.
fn labelled(app: &str) -> Selector {
    Selector::all(vec![Requirement::equals("app".to_owned(), app.to_owned())])
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn the_smallest_pod_that_closes_the_gap_alone_goes() {
    let world = World::new().node("n1", 8000).node("n2", 2000);
    let mut world = world.pod("a-1", "n1", 1000).pod("b-1", "n1", 1600).pod("c-1", "n1", 3000);
    let plan = world.plan();
    let [one] = &plan.moves[..] else { panic!("one move: {:?}", plan.moves) };
    assert_eq!((&*one.pod.name, &*one.from, &*one.to), ("b-1", "n1", "n2"));
    assert_eq!(one.gap.cpu_nano, 1_500_000_000, "8 − 10 × 0.65");
    assert_eq!(one.gap_after.cpu_nano, 0, "1.5 − 1.6, and no gap is negative");
    assert_eq!(one.there, 3_600_000_000, "2 + 1.6");
    assert_eq!(one.margin, Ratio::from_f64(0.29).expect("a ratio"), "(6.5 − 3.6) ÷ 10");
    let over = &plan.nodes[0];
    assert_eq!((&*over.node, over.expected, over.limit), ("n1", 8_000_000_000, 6_500_000_000));
    assert_eq!(over.since, at(-660), "the window of the first sample began then");
    let stays: Vec<_> = over.stays.iter().map(|(key, stay)| (&*key.name, stay.clone())).collect();
    assert_eq!(stays, [("a-1", Stay::NotNeeded), ("c-1", Stay::NotNeeded)]);
}

#[test]
fn when_none_closes_the_gap_alone_the_largest_goes_first_and_then_what_is_left_is_looked_at() {
    let world = World::new().node("n1", 9000).node("n2", 1000);
    let world = world.pod("a-1", "n1", 900).pod("b-1", "n1", 1500).pod("c-1", "n1", 1200);
    let mut world = world.pod("d-1", "n1", 2000);
    let plan = world.plan();
    let gone: Vec<_> = plan.moves.iter().map(|m| (&*m.pod.name, m.gap_after.cpu_nano / 1_000_000)).collect();
    assert_eq!(gone, [("d-1", 500), ("a-1", 0)], "9 − 6.5 = 2.5; − 2 = 0.5; 0.9 is the smallest over 0.5");
}

#[test]
fn importance_comes_before_fit_and_the_only_replica_goes_last() {
    let world = World::new().node("n1", 8000).node("n2", 1000);
    let world = world.pod_as(replica("a-1").priority(10), "n1", 1500).pod("b-1", "n1", 1500);
    let mut world = world.pod("c-1", "n1", 1700).pod("c-2", "n2", 100);
    assert_eq!(world.moves(), pairs(&[("c-1", "n2")]), "a is more important, b the only one of its kind");
}

#[test]
fn what_one_move_brings_counts_before_the_next_is_decided() {
    let world = World::new().node("n1", 10_000).node("n2", 2600).node("n3", 2700);
    let mut world = world.pod("a-1", "n1", 2000).pod("b-1", "n1", 2000);
    world.settings.landing = Landing::Scheduled;
    // n2 takes one (2.6 + 2 ≤ 10 × (0.65 − 0.05)), and then no second: 4.6 + 2 > 6.
    assert_eq!(world.moves(), pairs(&[("a-1", "n2")]));
    let stay = world.stay("b-1");
    assert!(
        matches!(stay, Some(Stay::OverThere { expected: 4_600_000_000, .. })),
        "a scheduler that expects 100m of it would send it there, too: {stay:?}"
    );
    world.settings.landing = Landing::default();
    assert_eq!(world.moves(), pairs(&[("a-1", "n2"), ("b-1", "n3")]), "one that expects 2 cores would not");
}

/// Where the scheduler puts what takes the place of the pod that the plan moves.
fn successor(world: &mut World) -> (String, Option<String>) {
    let plan = world.plan();
    let [one] = &plan.moves[..] else { panic!("one move: {plan:?}") };
    let asks = world.cluster.snapshot().nodes().flat_map(|node| &node.pods).find(|pod| pod.key == one.pod);
    let cores = asks.expect("it is there").nonzero.cpu_milli;
    let cluster = &mut world.cluster;
    cluster.cool(&one.from, at(600));
    cluster.await_moved(&one.moved(at(1)), at(120));
    cluster.remove_pod(&one.uid);
    let heir = replica("a-9").cpu(&format!("{cores}m")).facts();
    let heir = cluster.view(&PodFacts { created: Some(at(1)), ..heir });
    let heir = cluster.succeeding(&heir);
    let node = cluster.decide(&heir).node().map(|node| node.name.to_string());
    (one.to.to_string(), node)
}

#[test]
fn our_scheduler_puts_what_takes_its_place_where_the_plan_says_whatever_it_asks_for() {
    // By what it asks for, the pod goes to n2, where it would be too much; by what it uses, to n3.
    let world = World::new().node("n1", 8000).node("n2", 4900).node("n3", 3500);
    let little = replica("a-1").cpu("100m");
    let mut world = world.pod_as(pod("b-1").cpu("100m").memory("64Mi").owner("ReplicaSet", "b"), "n3", 100);
    world = world.pod_as(little, "n1", 2000);
    assert_eq!(successor(&mut world), ("n3".to_owned(), Some("n3".to_owned())), "uses more than it asks for");

    // It asks for more than there is below any line, and uses less than that.
    let world = World::new().node("n1", 8000).node("n2", 4000);
    let mut world = world.pod_as(replica("a-1").cpu("3"), "n1", 1600);
    assert_eq!(successor(&mut world), ("n2".to_owned(), Some("n2".to_owned())), "uses less than it asks for");
}

#[test]
fn by_requests_alone_it_is_the_same_who_puts_what_takes_its_place() {
    let world = World::by(None).node("n1", 8000).node("n2", 2000).node("n3", 1000);
    let world = world.pod_as(replica("a-1").cpu("6"), "n1", 2000).pod_as(replica("b-1").cpu("2"), "n3", 100);
    let mut world = world.pod_as(replica("c-1").cpu("7"), "n1", 0);
    world.settings.targets.cpu = Ratio::from_f64(0.65);
    let [scheduled, planned] = [Landing::Scheduled, Landing::Planned].map(|landing| {
        world.settings.landing = landing;
        world.plan()
    });
    assert_eq!(scheduled.moves.len(), 1, "{scheduled:?}");
    assert_eq!(scheduled, planned);
}

#[test]
fn asking_changes_nothing_and_the_same_question_has_the_same_answer() {
    let world = World::new().node("n1", 9000).node("n2", 1000).node("n3", 1500);
    let mut world = world.pod("a-1", "n1", 900).pod("b-1", "n1", 1500).pod("c-1", "n1", 1200);
    let before: Vec<_> = ["n1", "n2", "n3"].map(|n| world.cluster.figures(world.id(n))).into();
    let generation = world.cluster.snapshot().generation;
    let first = world.plan();
    assert!(!first.moves.is_empty());
    assert_eq!(world.plan(), first);
    let after: Vec<_> = ["n1", "n2", "n3"].map(|n| world.cluster.figures(world.id(n))).into();
    assert_eq!(before, after);
    assert_eq!(world.cluster.snapshot().generation, generation);
    assert_eq!(world.cluster.assumed(), 0);
}

#[test]
fn nothing_moves_without_history_without_a_line_or_when_switched_off() {
    let mut world = World::new();
    assert_eq!(world.plan().pause, Some(Pause::NoHistory));
    let mut world = World::new().node("n1", 9000).node("n2", 0).pod("a-1", "n1", 3000);
    assert_eq!(world.plan().pause, None);
    assert_eq!(world.moves().len(), 1);
    world.cluster.advance(at(299));
    assert_eq!(world.plan().pause, None, "the last sample is young enough");
    world.cluster.advance(at(301));
    assert_eq!(world.plan().pause, Some(Pause::Stale), "it is not any more: calm would be too much to say");
    world.settings.enabled = false;
    assert_eq!(world.plan().pause, Some(Pause::Off));
    let mut world = World::new().node_as(node("n1").memory("32Gi"), 9000);
    world.cluster.set_node(&node("n1").facts());
    assert_eq!(world.plan().pause, Some(Pause::NoLine), "a node that does not say what it has");
}

#[test]
fn the_settings_draw_the_line_where_they_say_so() {
    let mut world = World::new().node("n1", 5000).node("n2", 0).pod("a-1", "n1", 1500);
    assert_eq!(world.moves(), [], "5 of 6.5");
    world.settings.targets.cpu = Ratio::from_f64(0.4);
    assert_eq!(world.moves(), pairs(&[("a-1", "n2")]), "5 of 4");
}

#[test]
fn memory_is_a_reason_as_well() {
    let mut world = World::new().node("n1", 1000).node("n2", 1000);
    let world_pod = |world: World, name: &str, gibibytes: i64| {
        let mut world = world.pod(name, "n1", 100);
        let sample = sample(0, 60, Load::new(100_000_000, gibibytes * GI));
        world.recent.pod(Uid::new(&format!("uid-{name}")), sample);
        world
    };
    let id = world.id("n1");
    for minute in 1..=11 {
        world.cluster.advance(at(minute * 60));
        for name in ["n1", "n2"] {
            let memory = if name == "n1" { 31 } else { 4 };
            let one = sample(minute * 60, 60, Load::new(1_000_000_000, memory * GI));
            world.cluster.sample(name, one);
            world.recent.node(if name == "n1" { id } else { world.id("n2") }, one);
        }
    }
    let mut world = world_pod(world_pod(world, "a-1", 3), "b-1", 5);
    for pod in ["a-1", "b-1"] {
        let gibibytes = if pod == "a-1" { 3 } else { 5 };
        let one = sample(660, 60, Load::new(100_000_000, gibibytes * GI));
        world.recent.pod(Uid::new(&format!("uid-{pod}")), one);
    }
    let plan = world.plan();
    let [one] = &plan.moves[..] else { panic!("one move: {plan:?}") };
    assert_eq!((&*one.pod.name, one.resource), ("a-1", Metered::Memory), "31 − 28.8 = 2.2: three suffice");
}

#[test]
fn amounts_are_told_to_the_thousandth_of_a_core_and_a_little_is_never_nothing() {
    let cpu = |nano: i64| Metered::Cpu.rounded(nano).to_string();
    let memory = |bytes: i64| Metered::Memory.rounded(bytes).to_string();
    // 1.175195515 and 1.1755 cores: the nearest thousandth.
    assert_eq!([cpu(1_175_195_515), cpu(1_175_500_000), cpu(-1_175_500_000)], ["1175m", "1176m", "-1176m"]);
    assert_eq!([cpu(2_000_000_000), cpu(9_999_999), cpu(3), cpu(0)], ["2", "9999999n", "3n", "0"]);
    // 700 MiB and a bit, exactly 2 GiB, less than ten mebibytes.
    assert_eq!([memory((700 << 20) + 1234), memory(2 << 30), memory(1234)], ["700Mi", "2Gi", "1234"]);
    assert_eq!(cpu(i64::MAX), Metered::Cpu.quantity(i64::MAX).to_string(), "never past what can be told");
}

//! The ledger against books that are added up anew each time, and against the truth.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const NODES: u32 = 3;

#[derive(Clone, Copy, Debug)]
enum Event {
    Node(u32),
    RemoveNode(u32),
    Assign(u128, Assigned),
    Reserve(u128, Assigned, i64),
    Unreserve(u128),
    Remove(u128, i64),
    Sample(u32, Sample),
    PodSample(u128, Sample),
    Cool(u32, i64),
    Advance(i64),
}

fn apply(ledger: &mut Ledger, event: Event) {
    match event {
        Event::Node(n) => ledger.node(NodeId(n)),
        Event::RemoveNode(n) => ledger.remove_node(NodeId(n)),
        Event::Assign(uid, pod) => ledger.assign(Uid(uid), pod),
        Event::Reserve(uid, pod, now) => {
            ledger.reserve(Uid(uid), pod, t(now));
        }
        Event::Unreserve(uid) => ledger.unreserve(Uid(uid)),
        Event::Remove(uid, at) => ledger.remove(Uid(uid), t(at)),
        Event::Sample(n, sample) => {
            ledger.sample(NodeId(n), sample);
        }
        Event::PodSample(uid, sample) => ledger.pod_sample(Uid(uid), sample),
        Event::Cool(n, until) => ledger.cool(NodeId(n), t(until)),
        Event::Advance(now) => ledger.advance(t(now)),
    }
}

struct Pod {
    on: Assigned,
    expiry: Option<Timestamp>,
    sample: Option<Sample>,
}

/// The slow obvious version: facts as they are, everything added up when asked.
struct Books {
    rules: Options,
    nodes: BTreeSet<u32>,
    newest: BTreeMap<u32, Sample>,
    cooling: BTreeMap<u32, Timestamp>,
    pods: BTreeMap<u128, Pod>,
    /// Node, start, end, usage.
    gone: Vec<(u32, Timestamp, Timestamp, Load)>,
}

impl Books {
    fn new(rules: Options) -> Self {
        Self {
            rules,
            nodes: BTreeSet::new(),
            newest: BTreeMap::new(),
            cooling: BTreeMap::new(),
            pods: BTreeMap::new(),
            gone: Vec::new(),
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Node(n) => {
                self.nodes.insert(n);
            }
            Event::RemoveNode(n) => {
                self.nodes.remove(&n);
                self.newest.remove(&n);
                self.cooling.remove(&n);
                self.gone.retain(|(on, ..)| *on != n);
            }
            Event::Assign(uid, on) => {
                let sample = self.pods.get(&uid).filter(|p| p.on.node == on.node).and_then(|p| p.sample);
                self.pods.insert(uid, Pod { on, expiry: None, sample });
            }
            Event::Reserve(uid, on, now) => {
                let held = self.pods.get(&uid);
                if held.is_none_or(|p| p.expiry.is_some()) {
                    let sample = held.filter(|p| p.on.node == on.node).and_then(|p| p.sample);
                    let expiry = Some(t(now) + self.rules.reservation);
                    self.pods.insert(uid, Pod { on: Assigned { started: None, ..on }, expiry, sample });
                }
            }
            Event::Unreserve(uid) => self.pods.retain(|u, p| *u != uid || p.expiry.is_none()),
            Event::Remove(uid, at) => {
                let Some(pod) = self.pods.remove(&uid) else { return };
                let proof = pod.sample.filter(|s| s.at >= t(at) - secs(300));
                if let (Some(start), Some(proof), true) =
                    (pod.on.started, proof, self.nodes.contains(&pod.on.node.0))
                {
                    self.gone.push((pod.on.node.0, start, t(at), proof.usage));
                }
            }
            Event::Sample(n, sample) => {
                if self.nodes.contains(&n) && self.newest.get(&n).is_none_or(|held| held.at < sample.at) {
                    self.newest.insert(n, sample);
                }
            }
            Event::PodSample(uid, sample) => {
                if let Some(pod) = self.pods.get_mut(&uid)
                    && pod.sample.is_none_or(|held| held.at < sample.at)
                {
                    pod.sample = Some(sample);
                }
            }
            Event::Cool(n, until) => {
                if self.nodes.contains(&n) {
                    let held = self.cooling.entry(n).or_insert(t(until));
                    *held = (*held).max(t(until));
                }
            }
            Event::Advance(now) => {
                self.pods.retain(|_, p| p.expiry.is_none_or(|e| e > t(now)));
                self.cooling.retain(|_, until| *until > t(now));
            }
        }
    }

    fn pending(&self, n: u32) -> Vec<(Uid, Load)> {
        let newest = self.newest.get(&n);
        let mut out = Vec::new();
        for (uid, pod) in self.pods.iter().filter(|(_, p)| p.on.node.0 == n) {
            let settled =
                pod.on.started.zip(newest).is_some_and(|(s, n)| s + self.rules.settle <= n.at - n.window);
            if settled {
                continue;
            }
            let fresh = pod.sample.zip(newest).filter(|(s, n)| s.at >= n.at).map(|(s, _)| s.usage);
            let used = fresh.filter(|_| self.rules.pods == PodMetrics::Used).unwrap_or(Load::ZERO);
            out.push((Uid(*uid), pod.on.estimate.minus(used).max(Load::ZERO)));
        }
        out
    }

    fn departed(&self, n: u32) -> Load {
        let Some(newest) = self.newest.get(&n) else { return Load::ZERO };
        let (at, began) = (newest.at, newest.at - newest.window);
        let mut sum = Load::ZERO;
        for (_, start, end, usage) in self.gone.iter().filter(|(on, ..)| *on == n) {
            let (start, end) = (*start, *end);
            if end <= at - secs(300) {
                continue;
            }
            let whole = newest.window.as_secs();
            let ran = end.min(at).duration_since(start.max(began)).as_secs().max(0);
            let there = start <= at && end >= at;
            let cpu = match (whole, there) {
                (0, true) => usage.cpu_nano,
                (0, false) => 0,
                _ => usage.cpu_nano * ran / whole,
            };
            sum = sum.plus(Load::new(cpu, if there { usage.memory_bytes } else { 0 }));
        }
        sum.zip(newest.usage, i64::min)
    }

    fn figures(&self, n: u32) -> Figures {
        let pods: Vec<&Pod> = self.pods.values().filter(|p| p.on.node.0 == n).collect();
        let pending = self.pending(n);
        let count = |n: usize| u32::try_from(n).expect("few");
        Figures {
            newest: self.newest.get(&n).copied(),
            pending: pending.iter().fold(Load::ZERO, |sum, (_, l)| sum.plus(*l)),
            departed: self.departed(n),
            assigned: pods.iter().fold(Load::ZERO, |sum, p| sum.plus(p.on.estimate)),
            pods: count(pods.len()),
            pending_pods: count(pending.len()),
            cooling_until: self.cooling.get(&n).copied(),
        }
    }

    fn next_expiry(&self) -> Option<Timestamp> {
        self.pods.values().filter_map(|p| p.expiry).chain(self.cooling.values().copied()).min()
    }
}

fn amounts() -> impl Strategy<Value = Load> {
    (0..1000_i64, 0..1000_i64).prop_map(|(cpu, memory)| Load::new(cpu, memory))
}

fn assigned() -> impl Strategy<Value = Assigned> {
    (0..NODES, amounts(), prop::option::of(0..600_i64))
        .prop_map(|(n, estimate, started)| on(NodeId(n), estimate, started))
}

fn samples() -> impl Strategy<Value = Sample> {
    (0..900_i64, 0..120_i64, amounts()).prop_map(|(at, window, usage)| sample(at, window, usage))
}

fn event() -> impl Strategy<Value = Event> {
    let (node, uid) = (0..NODES, 0..8_u128);
    prop_oneof![
        2 => node.clone().prop_map(Event::Node),
        1 => node.clone().prop_map(Event::RemoveNode),
        6 => (uid.clone(), assigned()).prop_map(|(u, a)| Event::Assign(u, a)),
        3 => (uid.clone(), assigned(), 0..900_i64).prop_map(|(u, a, now)| Event::Reserve(u, a, now)),
        1 => uid.clone().prop_map(Event::Unreserve),
        // Ends less than five minutes apart: which are forgotten before the first sample depends on the order.
        3 => (uid.clone(), 300..600_i64).prop_map(|(u, at)| Event::Remove(u, at)),
        6 => (node.clone(), samples()).prop_map(|(n, s)| Event::Sample(n, s)),
        4 => (uid, samples()).prop_map(|(u, s)| Event::PodSample(u, s)),
        1 => (node, 0..2000_i64).prop_map(|(n, until)| Event::Cool(n, until)),
        1 => (0..2000_i64).prop_map(Event::Advance),
    ]
}

fn rules() -> impl Strategy<Value = Options> {
    (0..40_i64, any::<bool>()).prop_map(|(settle, used)| Options {
        settle: secs(settle),
        pods: if used { PodMetrics::Used } else { PodMetrics::Unused },
        ..Options::default()
    })
}

/// A pod's life in the order it is told: when it started and ended, and how often each thing is repeated.
#[derive(Clone, Debug)]
struct Life {
    at_first: Assigned,
    at_last: Assigned,
    samples: Vec<Sample>,
    end: Option<i64>,
    repeats: usize,
}

impl Life {
    fn events(&self, uid: u128) -> Vec<Event> {
        let mut out = vec![Event::Assign(uid, Assigned { node: self.at_last.node, ..self.at_first })];
        out.extend(self.samples.iter().map(|s| Event::PodSample(uid, *s)));
        for _ in 0..=self.repeats {
            out.push(Event::Assign(uid, self.at_last));
            out.extend(self.samples.iter().map(|s| Event::PodSample(uid, *s)));
        }
        out.extend(
            self.end.map(|at| Event::Remove(uid, at)).into_iter().cycle().take(self.repeats.min(2) * 2),
        );
        out
    }
}

fn lives() -> impl Strategy<Value = Vec<Life>> {
    let life = (assigned(), assigned(), vec(samples(), 0..3), prop::option::of(300..600_i64), 1..3_usize);
    vec(
        life.prop_map(|(at_first, at_last, samples, end, repeats)| Life {
            at_first,
            at_last,
            samples,
            end,
            repeats,
        }),
        0..8,
    )
}

/// Samples of each node, by distinct moments: of equal ones the first counts, so their order would matter.
fn measurements() -> impl Strategy<Value = Vec<Event>> {
    let one = (0..NODES, 0..900_i64, 0..120_i64, amounts());
    vec(one, 0..30).prop_map(|all| {
        let by_moment: BTreeMap<_, _> = all.into_iter().map(|(n, at, w, u)| ((n, at), (w, u))).collect();
        by_moment.into_iter().map(|((n, at), (w, u))| Event::Sample(n, sample(at, w, u))).collect()
    })
}

proptest! {
    /// Sums do not drift and nothing is missed: after every event the figures are those added up anew.
    #[test]
    fn the_figures_are_always_those_added_up_anew(rules in rules(), events in vec(event(), 1..120)) {
        let (mut ledger, mut books) = (Ledger::new(rules), Books::new(rules));
        let mut seen = vec![Figures::default(); NODES as usize];
        for event in events {
            apply(&mut ledger, event);
            books.apply(event);
            let changed: Vec<NodeId> = ledger.changed().collect();
            for n in 0..NODES {
                let (got, want) = (ledger.figures(NodeId(n)), books.figures(n));
                prop_assert_eq!(got, want, "node {} after {:?}", n, event);
                prop_assert_eq!(ledger.pending(NodeId(n)).collect::<Vec<_>>(), books.pending(n));
                prop_assert!(got == seen[n as usize] || changed.contains(&NodeId(n)), "node {} is not told", n);
                seen[n as usize] = got;
            }
            prop_assert_eq!(ledger.pods(), books.pods.len());
            prop_assert_eq!(ledger.next_expiry(), books.next_expiry());
        }
    }

    /// A snapshot is what it was, whatever happens next.
    #[test]
    fn snapshots_never_change(rules in rules(), before in vec(event(), 0..40), after in vec(event(), 0..40)) {
        let mut ledger = Ledger::new(rules);
        for event in before {
            apply(&mut ledger, event);
        }
        let (snapshot, copy) = (ledger.snapshot(), ledger.clone());
        for event in after {
            apply(&mut ledger, event);
        }
        for n in 0..NODES {
            prop_assert_eq!(snapshot.figures(NodeId(n)), copy.figures(NodeId(n)));
        }
    }

    /// Told in any order and more than once, the same facts give the same figures. What is told of one pod
    /// keeps its order, as a watch does; nodes come first, since of one that is not there nothing is kept.
    /// A restart loses only departures, so it can only expect more.
    #[test]
    fn the_order_of_events_does_not_matter(
        rules in rules(),
        lives in lives(),
        measurements in measurements(),
        keys in vec(any::<u16>(), 400),
    ) {
        let mut keys = keys.into_iter().cycle();
        let mut key = || keys.next().expect("they go round");
        let mut told: Vec<(u16, usize, Event)> = Vec::new();
        for (life, uid) in lives.iter().zip(0..) {
            let events = life.events(uid);
            let mut order: Vec<u16> = events.iter().map(|_| key()).collect();
            order.sort_unstable();
            told.extend(order.into_iter().zip(events).map(|(k, e)| (k, 0, e)));
        }
        for event in measurements.iter().chain(&measurements) {
            told.push((key(), 1, *event));
        }
        told.sort_by_key(|(k, kind, _)| (*k, *kind));

        let mut mixed = Ledger::new(rules);
        let mut plain = Ledger::new(rules);
        let mut again = Ledger::new(rules);
        for n in 0..NODES {
            for ledger in [&mut mixed, &mut plain, &mut again] {
                ledger.node(NodeId(n));
            }
        }
        for (_, _, event) in told {
            apply(&mut mixed, event);
        }
        for event in measurements {
            apply(&mut plain, event);
            apply(&mut again, event);
        }
        for (life, uid) in lives.iter().zip(0..) {
            apply(&mut plain, Event::Assign(uid, life.at_last));
            for sample in &life.samples {
                apply(&mut plain, Event::PodSample(uid, *sample));
            }
            if let Some(end) = life.end {
                apply(&mut plain, Event::Remove(uid, end));
            } else {
                apply(&mut again, Event::Assign(uid, life.at_last));
                for sample in &life.samples {
                    apply(&mut again, Event::PodSample(uid, *sample));
                }
            }
        }
        for n in (0..NODES).map(NodeId) {
            let figures = mixed.figures(n);
            prop_assert_eq!(figures, plain.figures(n));
            prop_assert_eq!(mixed.history(n).map(|h| h.mean_5m), plain.history(n).map(|h| h.mean_5m));
            prop_assert_eq!(Figures { departed: Load::ZERO, ..figures }, again.figures(n));
        }
    }

    /// D6, A2: where estimates and samples are right, a node is never expected to use less than its pods do,
    /// whatever came or went since it was measured.
    #[test]
    fn expected_is_never_below_what_the_pods_really_use(
        pods in vec((amounts(), 0..200_i64, prop::option::of(100..260_i64)), 0..10),
        at in 100..200_i64,
        window in 0..60_i64,
    ) {
        // Each uses the same from its start to its end; the node is measured once.
        let mut ledger = ledger(Options::default());
        let (mut cpu, mut memory, mut alive) = (0, 0, Load::ZERO);
        for (uid, (usage, start, end)) in (0..).zip(&pods) {
            ledger.assign(Uid(uid), on(N, *usage, Some(*start)));
            ledger.pod_sample(Uid(uid), sample(100, 15, *usage));
            let last = end.map_or(at, |end| end.min(at));
            let there = *start <= at && end.is_none_or(|end| end >= at);
            cpu += match window {
                0 => if there { usage.cpu_nano } else { 0 },
                _ => usage.cpu_nano * (last - start.max(&(at - window))).max(0),
            };
            memory += if there { usage.memory_bytes } else { 0 };
            match end {
                Some(end) => ledger.remove(Uid(uid), t(*end)),
                None => alive = alive.plus(*usage),
            }
        }
        ledger.sample(N, sample(at, window, Load::new(cpu / window.max(1), memory)));
        let expected = ledger.figures(N).expected().expect("measured");
        prop_assert!(expected.cpu_nano >= alive.cpu_nano, "{} < {}", expected.cpu_nano, alive.cpu_nano);
        prop_assert!(expected.memory_bytes >= alive.memory_bytes);
    }
}

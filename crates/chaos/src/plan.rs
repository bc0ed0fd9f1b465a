//! What follows from a seed: the cluster, the pods that arrive, and everything that goes wrong. A plan is data, so a failing
//! one can be made smaller: the same, with less of it.

use crate::check::{Conditions, Promise};
use crate::dice::Dice;
use std::time::Duration;

/// Faults begin and end within this time.
pub const TROUBLE: Duration = Duration::from_secs(90);
/// Then everything works again, and this is how long it may take until nothing is left to do.
pub const QUIET: Duration = Duration::from_mins(4);

/// Who can be in trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// One of two, which share a lease.
    Scheduler(usize),
    /// The one of this node.
    Agent(usize),
    /// One of two, which share a lease.
    Placement(usize),
    /// One of two, which share a lease.
    Binding(usize),
}

impl Who {
    /// As it is called in the history.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Scheduler(one) => format!("scheduler/{one}"),
            Self::Agent(node) => format!("agent/n{node}"),
            Self::Placement(one) => format!("placement/{one}"),
            Self::Binding(one) => format!("binding/{one}"),
        }
    }
}

/// What happens to requests for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Delay(u64),
    DropRequest,
    DropAnswer,
    /// It is carried out at once, and the answer comes so many milliseconds later.
    DelayAnswer(u64),
    /// It is carried out, and nobody ever hears of it.
    Hang,
    Conflict,
    Expired,
    TooMany,
    Internal,
    Unavailable,
    CutWatch(usize),
    StallWatch(usize),
    ExpireWatch(usize),
    /// Writes arrive twice, and either answer is heard.
    Double,
    /// Writes arrive so many milliseconds late, whether or not somebody waits for the answer or is there at all.
    Late(u64),
}

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// When, in milliseconds.
    pub at: u64,
    pub what: What,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Some requests of one component, in so many of a hundred cases, for so many milliseconds.
    Requests { who: Who, fault: Fault, percent: u64, lasts: u64 },
    /// It reaches the server no more.
    CutOff { who: Who, lasts: u64 },
    /// It is killed wherever it is, and started again.
    Kill { who: Who, back_after: u64 },
    /// It is killed around its next write: before the server sees it, or before it sees the answer.
    KillAtWrite { who: Who, after: bool, back_after: u64 },
    /// The same, of writes that are no lease: what it writes most often is that it still leads.
    KillAtAct { who: Who, after: bool, back_after: u64 },
    /// It is asked to end, and is given some seconds for it.
    Stop { who: Who, back_after: u64 },
    /// Its clock is set.
    ClockSet { who: Who, by_ms: i64 },
    /// All watches end, and what happened before is forgotten.
    ServerRestarts,
    /// A node is gone, with what ran on it, and comes back.
    NodeGone { node: usize, back_after: u64 },
    /// Nothing is measured any more.
    MetricsStop { lasts: u64 },
    /// Figures are so many hundredths of what they should be.
    MetricsLie { percent: u64, lasts: u64 },
    /// The pods on a node use so many hundredths of what they asked for.
    Hot { node: usize, percent: u64, lasts: u64 },
    /// A cluster of the fleet goes away and comes back.
    ClusterAway { cluster: usize, lasts: u64 },
    /// A placement is published in groups of another size.
    Regroup { placement: usize, per_group: u64 },
}

/// A pod that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub at: u64,
    pub cpu_milli: u64,
    pub memory_mib: u64,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    pub nodes: usize,
    pub pods: Vec<Arrival>,
    /// May pods be slowed down, or do they have to go?
    pub slows: bool,
    pub troubles: Vec<Trouble>,
    /// By how much clocks differ from the server's, in milliseconds: schedulers, agents, then who decides about the fleet.
    pub skews: Vec<i64>,
    pub fleet: Fleet,
    /// What is wrong all the time; no seed has any.
    pub flaws: Vec<Flaw>,
}

/// Something between the components and the server that breaks a promise, for the checker's own test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The second scheduler has a lease of its own, so both lead.
    TwoLeaders,
    /// Nodes are always measured as idle.
    MeasuredIdle,
    /// Nodes keep the marks that agents take away.
    MarksStay,
    /// Why pods wait is not kept.
    WaitUnsaid,
    /// How many clusters a placement selects is not kept.
    PlacementUnsaid,
    /// The first scheduler, until it is started again, looks at the time for ever and never waits.
    Restless,
    /// The first scheduler ends by itself after a while.
    Ends,
    /// Something in the first scheduler panics, and it goes on.
    Panics,
    /// The server takes a pod's first binding, answers that it failed, and has forgotten it.
    BindingForgotten,
    /// A pod that once was told why it waits is bound no more.
    PodForgotten,
    /// Schedulers see no marks of nodes that cool.
    CoolingUnseen,
    /// Pods are slowed down for ever.
    SlowStays,
    /// A slice is emptied before it is written.
    SliceEmptied,
    /// Nothing is promised to clusters: their room is what they say of themselves.
    RoomUnpromised,
    /// A binding that once was told why it gets no clusters gets none.
    BindingUnserved,
}

impl Flaw {
    /// All of them, and what each breaks.
    pub const ALL: [(Self, Promise); 15] = [
        (Self::BindingForgotten, Promise::BoundOnce),
        (Self::WaitUnsaid, Promise::BoundOnce),
        (Self::MeasuredIdle, Promise::Line),
        (Self::CoolingUnseen, Promise::Cooling),
        (Self::MarksStay, Promise::LeftBehind),
        (Self::SlowStays, Promise::LeftBehind),
        (Self::SliceEmptied, Promise::PublishedSet),
        (Self::RoomUnpromised, Promise::Estimate),
        (Self::TwoLeaders, Promise::Leader),
        (Self::PodForgotten, Promise::NothingLost),
        (Self::BindingUnserved, Promise::NothingLost),
        (Self::PlacementUnsaid, Promise::NothingLost),
        (Self::Restless, Promise::Rest),
        (Self::Ends, Promise::Alive),
        (Self::Panics, Promise::Alive),
    ];

    /// The one that is called so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().map(|(flaw, _)| flaw).find(|flaw| format!("{flaw:?}") == name)
    }
}

/// Clusters, and what is placed on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    pub clusters: usize,
    pub placements: Vec<Placed>,
    /// When each binding comes, and how many replicas it has.
    pub bindings: Vec<(u64, u64)>,
}

/// A placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// How many clusters it selects.
    pub count: u64,
    /// How many of them are published in one group; all of them if none are.
    pub per_group: u64,
}

impl Plan {
    /// The plan of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let nodes = usize::try_from(dice.between(2, 4)).unwrap_or(2);
        let mut pods = Vec::new();
        for _ in 0..dice.between(2, 6) {
            // A burst of the same.
            let at = dice.between(0, TROUBLE.as_secs()) * 1000;
            let (cpu_milli, memory_mib) = (dice.between(1, 12) * 100, dice.between(1, 8) * 128);
            for _ in 0..dice.between(1, 5) {
                pods.push(Arrival { at: at + dice.between(0, 400), cpu_milli, memory_mib });
            }
        }
        pods.sort_by_key(|pod| pod.at);
        let skews = (0..2 + nodes + 4).map(|_| dice.between(0, 4000).cast_signed() - 2000).collect();
        let mut slows = dice.once_in(2);
        let fleet = if dice.once_in(2) {
            let clusters = dice.between(2, 8);
            let placed =
                |dice: &mut Dice| Placed { count: dice.between(1, clusters), per_group: per_group(dice) };
            Fleet {
                clusters: usize::try_from(clusters).unwrap_or(2),
                placements: (0..dice.between(1, 2)).map(|_| placed(&mut dice)).collect(),
                bindings: (0..dice.between(1, 4))
                    .map(|_| (dice.between(0, 60) * 1000, dice.between(1, 12)))
                    .collect(),
            }
        } else {
            Fleet::default()
        };
        let mut troubles: Vec<Trouble> = (0..dice.between(0, 10))
            .map(|_| Trouble {
                at: dice.between(0, TROUBLE.as_secs() * 1000 - 1),
                what: what(&mut dice, nodes, &fleet),
            })
            .collect();
        for _ in 0..dice.between(0, 3) {
            let at = dice.between(0, TROUBLE.as_secs() * 1000 - 1);
            troubles.push(Trouble { at, what: more(&mut dice, nodes, &fleet) });
        }
        if dice.once_in(4) {
            // Nodes that are filled evenly, of which one becomes so hot that somebody has to go: else victims are rare.
            slows = false;
            let at = dice.between(2, 40) * 1000;
            let one =
                |dice: &mut Dice| Arrival { at: at + dice.between(0, 400), cpu_milli: 700, memory_mib: 128 };
            pods.extend((0..2 * nodes).map(|_| one(&mut dice)).collect::<Vec<_>>());
            pods.sort_by_key(|pod| pod.at);
            let node = node(&mut dice, nodes);
            let hot = What::Hot { node, percent: dice.between(260, 400), lasts: 60_000 };
            // What comes back then is judged only where schedulers hear of the mark, and clocks agree.
            let unjudged =
                |what: &What| what.deafens() || matches!(what, What::ClockSet { .. } | What::ServerRestarts);
            troubles.retain(|trouble| !unjudged(&trouble.what));
            troubles.push(Trouble { at: at + 15_000, what: hot });
        }
        troubles.sort_by_key(|trouble| trouble.at);
        Self { seed, nodes, pods, slows, troubles, skews, fleet, flaws: Vec::new() }
    }

    /// What of the conditions of promises is given.
    #[must_use]
    pub fn conditions(&self) -> Conditions {
        let until = |ends: fn(&What) -> bool| {
            let ended = self.troubles.iter().filter(|trouble| ends(&trouble.what));
            ended.map(|trouble| trouble.at).min().unwrap_or(u64::MAX)
        };
        Conditions {
            honest: until(|what| {
                matches!(what, What::MetricsLie { .. } | What::MetricsStop { .. } | What::Hot { .. })
            }),
            clocks_agree: until(|what| matches!(what, What::ClockSet { .. })),
            hears: until(What::deafens).min(self.lists_late()),
        }
    }

    /// When the server ended all watches while requests of a scheduler went wrong: then what it knows is read anew late, for it
    /// waits longer after each attempt that failed.
    fn lists_late(&self) -> u64 {
        let fails = |at: u64| {
            self.troubles.iter().any(|trouble| match trouble.what {
                What::Requests { who: Who::Scheduler(_), lasts, .. } => {
                    (trouble.at..trouble.at + lasts).contains(&at)
                }
                _ => false,
            })
        };
        let restarts = self.troubles.iter().filter(|trouble| matches!(trouble.what, What::ServerRestarts));
        restarts.map(|trouble| trouble.at).filter(|at| fails(*at)).min().unwrap_or(u64::MAX)
    }
}

impl What {
    /// Does a scheduler's watch deliver less than it should?
    fn deafens(&self) -> bool {
        match self {
            Self::CutOff { who: Who::Scheduler(_), .. } => true,
            Self::Requests { who: Who::Scheduler(_), fault, .. } => {
                // A watch that is answered late or never delivers as little. What arrives when nobody waits for it any more
                // was not decided then.
                matches!(
                    fault,
                    Fault::CutWatch(_)
                        | Fault::StallWatch(_)
                        | Fault::ExpireWatch(_)
                        | Fault::DelayAnswer(_)
                        | Fault::Hang
                        | Fault::Late(_)
                )
            }
            _ => false,
        }
    }
}

/// Small groups: then what is published is several objects.
fn per_group(dice: &mut Dice) -> u64 {
    *dice.pick(&[0, 1, 1, 2, 3])
}

fn node(dice: &mut Dice, nodes: usize) -> usize {
    usize::try_from(dice.between(0, nodes as u64 - 1)).unwrap_or(0)
}

fn who(dice: &mut Dice, nodes: usize, fleet: &Fleet) -> Who {
    let one = usize::try_from(dice.between(0, 1)).unwrap_or(0);
    match dice.between(0, if fleet.clusters > 0 { 8 } else { 5 }) {
        0..=3 => Who::Scheduler(one),
        4 | 5 => Who::Agent(node(dice, nodes)),
        6 => Who::Placement(one),
        _ => Who::Binding(one),
    }
}

/// What else goes wrong: of requests whose answers are late, and of ends.
fn more(dice: &mut Dice, nodes: usize, fleet: &Fleet) -> What {
    let who = who(dice, nodes, fleet);
    let lasts = dice.between(1, 45) * 1000;
    let (after, back_after) = (dice.once_in(2), dice.between(0, 20) * 500);
    let percent = *dice.pick(&[10, 30, 60, 100]);
    let fault = match dice.between(0, 9) {
        0..=2 => Fault::DelayAnswer(dice.between(1, 400) * 100),
        3 => Fault::Hang,
        4 | 5 => Fault::Late(dice.between(1, 200) * 100),
        6 | 7 => return What::Stop { who, back_after },
        _ => return What::KillAtAct { who, after, back_after },
    };
    What::Requests { who, fault, percent, lasts }
}

fn what(dice: &mut Dice, nodes: usize, fleet: &Fleet) -> What {
    let who = who(dice, nodes, fleet);
    let lasts = dice.between(1, 45) * 1000;
    let back_after = dice.between(0, 20) * 500;
    match dice.between(0, 16) {
        0..=4 => What::Requests { who, fault: fault(dice), percent: *dice.pick(&[10, 30, 60, 100]), lasts },
        5 => What::CutOff { who, lasts },
        6 => What::Kill { who, back_after },
        7..=9 => What::KillAtWrite { who, after: dice.once_in(2), back_after },
        10 => What::ClockSet {
            who,
            by_ms: *dice.pick(&[-3_600_000, -30_000, -5_000, 5_000, 30_000, 3_600_000]),
        },
        11 => What::ServerRestarts,
        12 => What::NodeGone { node: node(dice, nodes), back_after: lasts },
        13 => match dice.between(0, 1) {
            0 => What::MetricsStop { lasts },
            _ => What::MetricsLie { percent: *dice.pick(&[0, 10, 50, 200]), lasts },
        },
        14 | 15 if fleet.clusters > 0 && dice.once_in(2) => What::Regroup {
            placement: usize::try_from(dice.roll() % fleet.placements.len().max(1) as u64).unwrap_or(0),
            per_group: per_group(dice),
        },
        14 | 15 if fleet.clusters > 0 => What::ClusterAway {
            cluster: usize::try_from(dice.roll() % fleet.clusters as u64).unwrap_or(0),
            lasts,
        },
        _ => What::Hot { node: node(dice, nodes), percent: dice.between(110, 400), lasts: lasts + 20_000 },
    }
}

fn fault(dice: &mut Dice) -> Fault {
    let after = usize::try_from(dice.between(0, 5)).unwrap_or(0);
    match dice.between(0, 12) {
        12 => Fault::Double,
        0 | 1 => Fault::Delay(dice.between(1, 30) * 100),
        2 => Fault::DropRequest,
        3 | 4 => Fault::DropAnswer,
        5 => Fault::Conflict,
        6 => Fault::Expired,
        7 => Fault::TooMany,
        8 => Fault::Internal,
        9 => Fault::Unavailable,
        10 => Fault::CutWatch(after),
        _ => *dice.pick(&[Fault::StallWatch(after), Fault::ExpireWatch(after)]),
    }
}

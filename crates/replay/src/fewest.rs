//! With how few nodes would it have been good enough?

use crate::policy::Policy;
use crate::run::{Options, Outcome, run};
use crate::world::World;

/// What is good enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enough {
    /// The largest share of nodes' time that may be over 100 %.
    pub over_full: f64,
}

/// The share of pods that may have had to wait. Not none: one that asks for a whole node by mistake waits for an empty one,
/// however many there are.
const WAITING: f64 = 0.01;

impl Enough {
    fn holds(self, outcome: &Outcome) -> bool {
        let figures = &outcome.figures;
        figures.over_full <= self.over_full && figures.pods_pending as f64 <= WAITING * figures.pods as f64
    }
}

/// The fewest nodes of that size that are enough, up to `most`, and what happens on them; `None` if `most` are not enough.
///
/// More nodes are taken to be better, so the number is halved, not counted down; where that is not quite so, another number
/// close by might do.
pub fn fewest(
    world: &World,
    node_milli: i64,
    most: usize,
    policy: Policy,
    (options, enough): (Options, Enough),
    mut told: impl FnMut(f64),
) -> Option<Outcome> {
    let mut with = |nodes: usize, done: f64| {
        told(done);
        let world = World { nodes: vec![node_milli; nodes], ..world.clone() };
        run(&world, policy, options, |_| {})
    };
    let rounds = f64::from(usize::BITS - most.leading_zeros() + 1);
    let mut best = Some(with(most, 0.0)).filter(|outcome| enough.holds(outcome))?;
    // Too few, enough.
    let (mut low, mut high, mut round) = (0, most, 1.0);
    while high - low > 1 {
        let middle = low.midpoint(high);
        let outcome = with(middle, round / rounds);
        round += 1.0;
        if enough.holds(&outcome) {
            (high, best) = (middle, outcome);
        } else {
            low = middle;
        }
    }
    told(1.0);
    Some(best)
}

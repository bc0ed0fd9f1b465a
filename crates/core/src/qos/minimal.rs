//! The fewest pods that close all gaps together, none more important than needed.
//!
//! Among the sets that close every open line, the best has, in this order: no pod of a higher tier than needed, the
//! fewest pods, the least released beyond the gaps (each as a share of its gap), the least work lost (age × usage), and
//! then the pods that come first. A pod is in it only if its own rule needs it. Up to [`EXACT`] candidates this is found
//! exactly, within [`NODES`] steps; past that, pods are taken in order and then spared again, the most important first.

use super::gap::Gap;
use super::level::Level;
use super::order::{Tier, sorted, tier};
use super::plan::Work;

/// Up to how many candidates the best set is looked for.
const EXACT: usize = 24;
/// Bounds the search: as many as all pairs of halves of twenty candidates.
const NODES: usize = 200_000;

/// To what part of a gap what is released beyond it is compared, in billionths.
const MILLIONTH: i128 = 1_000;

/// A line that has to be closed.
struct Need {
    /// The place of its target.
    target: usize,
    left: Level,
}

/// What a pod brings.
struct Offer {
    c: usize,
    tier: Tier,
    /// What it releases of each target.
    release: Vec<Level>,
    /// The lines that may ask for it.
    serves: Vec<usize>,
    /// Age × usage.
    work: i128,
}

struct Search<'a> {
    needs: &'a [Need],
    offers: &'a [Offer],
    /// How many are to be taken.
    size: usize,
    taken: Vec<usize>,
    sums: Vec<Level>,
    best: Option<(Cost, Vec<usize>)>,
    nodes: usize,
}

type Cost = (i128, i128);

impl Work<'_> {
    /// The set to evict, in the order of the first target; none if there is no set that closes every line within the limit.
    pub(super) fn fewest(
        &self,
        free: &[usize],
        targets: &[usize],
        limit: Option<usize>,
    ) -> Option<Vec<usize>> {
        let chosen: Vec<&Gap> = targets.iter().map(|t| &self.lines.targets[*t]).collect();
        let needs = needs(&chosen);
        let first = chosen.first()?;
        if needs.is_empty() {
            return None;
        }
        let pods: Vec<_> = free.iter().map(|c| self.candidates[*c].pod).collect();
        let order = sorted(&pods, Some(&first.metric), self.snapshot.options.order);
        let offers: Vec<Offer> = order.iter().map(|at| self.offer(free[*at], &chosen, &needs)).collect();
        let offers = prefix(offers, &needs)?;
        let found = if offers.len() <= EXACT { exact(&needs, &offers, limit) } else { None };
        let found = found.or_else(|| spared(&needs, &offers))?;
        (limit.is_none_or(|limit| found.len() <= limit))
            .then(|| found.into_iter().map(|at| offers[at].c).collect())
    }

    fn offer(&self, c: usize, targets: &[&Gap], needs: &[Need]) -> Offer {
        let candidate = &self.candidates[c];
        let release: Vec<Level> =
            targets.iter().map(|t| candidate.release(&t.metric).unwrap_or_default()).collect();
        let serves = (0..needs.len())
            .filter(|n| {
                let need = &needs[*n];
                let target = targets[need.target];
                let own = target.bound_for(&candidate.allowed).and_then(|bound| target.left(bound));
                own.is_some_and(|own| own >= need.left) && release[need.target] > Level::ZERO
            })
            .collect();
        let pod = candidate.pod;
        let age = pod.started.map_or(0, |at| self.snapshot.now.duration_since(at).as_secs().max(0));
        let work = i128::from(age).saturating_mul(release.first().map_or(0, |level| level.nano()));
        let tier = tier(pod, targets.first().map(|t| &*t.metric), self.snapshot.options.order);
        Offer { c, tier, release, serves, work }
    }
}

/// Every open line.
fn needs(targets: &[&Gap]) -> Vec<Need> {
    let of = |(at, target): (usize, &&Gap)| {
        let open = target.bounds.iter().filter_map(|bound| target.left(bound)).filter(|left| left.is_open());
        open.map(|left| Need { target: at, left }).collect::<Vec<_>>()
    };
    targets.iter().enumerate().flat_map(of).collect()
}

fn closes(need: &Need, released: Level) -> bool {
    !(need.left - released).is_open()
}

fn released(offers: &[Offer], of: impl Iterator<Item = usize> + Clone, target: usize) -> Level {
    of.map(|at| offers[at].release[target]).sum()
}

/// The pods of the lowest tiers that can close every line among them, by those each line may ask for. None if not even
/// all can.
fn prefix(offers: Vec<Offer>, needs: &[Need]) -> Option<Vec<Offer>> {
    let enough = |upto: usize| {
        needs.iter().enumerate().all(|(n, need)| {
            let asked = offers[..upto].iter().filter(|offer| offer.serves.contains(&n));
            closes(need, asked.map(|offer| offer.release[need.target]).sum())
        })
    };
    let ends = (1..=offers.len()).filter(|at| *at == offers.len() || offers[*at].tier != offers[at - 1].tier);
    let end = ends.into_iter().find(|at| enough(*at))?;
    Some(offers.into_iter().take(end).collect())
}

/// Does every line close, and does each pod's own rule need it?
fn fits(needs: &[Need], offers: &[Offer], taken: &[usize]) -> bool {
    let sum = |target: usize| released(offers, taken.iter().copied(), target);
    needs.iter().all(|need| closes(need, sum(need.target)))
        && taken.iter().all(|at| {
            let offer = &offers[*at];
            let needed =
                |n: &usize| !closes(&needs[*n], sum(needs[*n].target) - offer.release[needs[*n].target]);
            offer.serves.iter().any(needed)
        })
}

/// What is released beyond the gaps, as shares of them, and the work lost.
fn cost(needs: &[Need], offers: &[Offer], taken: &[usize]) -> Cost {
    // Of several lines of one metric the lowest is the gap.
    let mut gaps: Vec<Level> = vec![Level::ZERO; offers.first().map_or(0, |offer| offer.release.len())];
    for need in needs {
        gaps[need.target] = gaps[need.target].max(need.left);
    }
    let excess = |(target, gap): (usize, &Level)| {
        let beyond = (released(offers, taken.iter().copied(), target) - *gap).at_least_zero();
        if *gap > Level::ZERO { beyond.times(1_000_000_000, gap.nano()).nano() } else { 0 }
    };
    // Shares that add up to the same must be the same.
    let excess: i128 = gaps.iter().enumerate().map(excess).sum();
    ((excess + MILLIONTH / 2) / MILLIONTH, taken.iter().map(|at| offers[*at].work).sum())
}

fn exact(needs: &[Need], offers: &[Offer], limit: Option<usize>) -> Option<Vec<usize>> {
    let mut nodes = 0;
    for size in 1..=limit.unwrap_or(offers.len()).min(offers.len()) {
        let sums = vec![Level::ZERO; offers.first()?.release.len()];
        let mut search = Search { needs, offers, size, taken: Vec::new(), sums, best: None, nodes };
        search.go(0);
        nodes = search.nodes;
        if search.best.is_some() || nodes >= NODES {
            return search.best.map(|(_, taken)| taken);
        }
    }
    None
}

impl Search<'_> {
    fn go(&mut self, from: usize) {
        self.nodes += 1;
        let missing = self.size - self.taken.len();
        if missing == 0 {
            if fits(self.needs, self.offers, &self.taken) {
                let cost = cost(self.needs, self.offers, &self.taken);
                // Equal costs keep the first found: the pods that come first.
                if self.best.as_ref().is_none_or(|(known, _)| cost < *known) {
                    self.best = Some((cost, self.taken.clone()));
                }
            }
            return;
        }
        if self.nodes >= NODES || from + missing > self.offers.len() || !self.can_close(from, missing) {
            return;
        }
        for at in from..=self.offers.len() - missing {
            self.taken.push(at);
            for (sum, release) in self.sums.iter_mut().zip(&self.offers[at].release) {
                *sum += *release;
            }
            self.go(at + 1);
            for (sum, release) in self.sums.iter_mut().zip(&self.offers[at].release) {
                *sum -= *release;
            }
            self.taken.pop();
        }
    }

    /// Could that many of the rest close every line, were each the largest?
    fn can_close(&self, from: usize, missing: usize) -> bool {
        let count = i128::try_from(missing).unwrap_or(i128::MAX);
        self.needs.iter().all(|need| {
            let largest = self.offers[from..].iter().map(|offer| offer.release[need.target]).max();
            closes(need, self.sums[need.target] + largest.unwrap_or_default().times(count, 1))
        })
    }
}

/// In order until everything closes; then whoever turns out not to be needed stays, the most important first.
fn spared(needs: &[Need], offers: &[Offer]) -> Option<Vec<usize>> {
    let mut taken: Vec<usize> = Vec::new();
    for (n, need) in needs.iter().enumerate() {
        for (at, offer) in offers.iter().enumerate() {
            if closes(need, released(offers, taken.iter().copied(), need.target)) {
                break;
            }
            if offer.serves.contains(&n) && !taken.contains(&at) {
                taken.push(at);
            }
        }
    }
    taken.sort_unstable();
    for at in taken.clone().into_iter().rev() {
        let rest: Vec<usize> = taken.iter().copied().filter(|other| *other != at).collect();
        if needs.iter().all(|need| closes(need, released(offers, rest.iter().copied(), need.target))) {
            taken = rest;
        }
    }
    fits(needs, offers, &taken).then_some(taken)
}

//! Who goes, and where to? Node by node, on a copy of the account that each move is charged to.
//!
//! Copying is what costs most, so it waits until a pod is really put somewhere else: often nobody may go, or is worth it.

use super::moves::workload;
use super::over::{Lines, Over, SWITCH, fresh};
use super::reason::{Refused, Stay, Wait};
use super::recent::Use;
use super::settings::{Closing, Landing, Level};
use super::{Input, Move, Plan};
use crate::cluster::Cluster;
use crate::cycle::Filter;
use crate::ledger::Uid;
use crate::load::ratio::Ratio;
use crate::load::{Load, Metered};
use crate::select::Lookup;
use crate::view::{NodeId, Phase, PodView};
use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;

/// From here on priorities belong to what the cluster itself depends on.
const CRITICAL: i32 = 2_000_000_000;
/// A pod measured for less is expected to use what its workload was learned to use, if that is more. Chosen among 10 minutes, one hour
/// and two on the worlds of `docs/quality.md`.
const YOUNG: SignedDuration = SignedDuration::from_hours(1);

/// A pod that may go, as far as it alone is concerned.
struct Candidate {
    pod: Arc<PodView>,
    workload: Arc<str>,
    uses: Load,
    high: Load,
    alone: bool,
}

/// The copy, and what was decided on it.
struct Trial<'a> {
    input: &'a Input<'a>,
    /// What is asked until there is a copy.
    cluster: &'a mut Cluster,
    copy: Option<Cluster>,
    /// The nodes that give up pods and take none.
    giving: Vec<(NodeId, Arc<str>)>,
    now: Timestamp,
    /// How many more pods each budget lets go.
    allowed: Vec<i64>,
    /// How many pods each workload has.
    replicas: FxHashMap<Arc<str>, u32>,
    moves: Vec<Move>,
}

/// Where a pod goes.
struct Place {
    node: NodeId,
    name: Arc<str>,
    /// What is used there with it, of the resource it is moved for.
    there: i64,
    margin: Ratio,
}

pub(super) fn relieve(cluster: &mut Cluster, input: &Input<'_>, mut nodes: Vec<Over>) -> Plan {
    let now = cluster.now();
    let limit = input.settings.per_hour;
    if count(input.moves.last_hour(now)) >= limit {
        for over in nodes.iter_mut().filter(|over| over.wait.is_none()) {
            over.wait = Some(Wait::HourLimit { limit });
        }
    }
    if nodes.iter().all(|over| over.wait.is_some()) {
        return Plan { pause: None, nodes, moves: Vec::new() };
    }
    // Whoever asks need not have looked where everybody is by now.
    let mut moves = input.moves.clone();
    moves.follow(cluster.snapshot());
    let input = &Input { moves: &moves, ..*input };
    let giving = nodes.iter().filter(|over| over.wait.is_none());
    let mut trial = Trial {
        input,
        copy: None,
        giving: giving.map(|over| (over.id, over.node.clone())).collect(),
        now,
        allowed: cluster.budgets().iter().map(|budget| budget.allowed).collect(),
        replicas: count_replicas(cluster),
        cluster,
        moves: Vec::new(),
    };
    for over in nodes.iter_mut().filter(|over| over.wait.is_none()) {
        trial.node(over);
    }
    Plan { pause: None, nodes, moves: trial.moves }
}

/// How many pods each owner has.
fn count_replicas(cluster: &mut Cluster) -> FxHashMap<Arc<str>, u32> {
    let mut replicas = FxHashMap::default();
    let owners = cluster.snapshot().nodes().flat_map(|node| &node.pods).filter_map(|pod| pod.owner.as_ref());
    for owner in owners {
        *replicas.entry(owner.uid.clone()).or_default() += 1;
    }
    replicas
}

impl Trial<'_> {
    /// What is known, with the moves so far.
    fn account(&self) -> &Cluster {
        self.copy.as_ref().unwrap_or(self.cluster)
    }

    fn account_mut(&mut self) -> &mut Cluster {
        self.copy.as_mut().unwrap_or(self.cluster)
    }

    /// The copy, in which nodes that give up pods take none.
    fn copy(&mut self) -> &mut Cluster {
        let Self { input, cluster, copy, giving, now, .. } = self;
        copy.get_or_insert_with(|| {
            let mut copy = cluster.clone();
            let until = now.checked_add(SignedDuration::from_hours(1)).unwrap_or(Timestamp::MAX);
            for (id, name) in giving {
                copy.cool(name, until);
                if input.settings.closing == Closing::Taint {
                    copy.close(*id);
                }
            }
            copy
        })
    }

    /// Takes pods off one node until it is not over its line any more.
    fn node(&mut self, over: &mut Over) {
        let pods = self.account().node(over.id).pods.clone();
        let settings = self.input.settings;
        let lines = Lines::of(self.account_mut(), settings, over.id);
        let mut left = Vec::new();
        for pod in pods {
            match self.screen(&pod, over) {
                Ok(candidate) => left.push(candidate),
                Err(stay) => over.stays.push((pod.key.clone(), stay)),
            }
        }
        while !left.is_empty() {
            // Whichever resource is over by the largest share.
            let share = |r: Metered| Ratio::of(over.left.get(r), lines.allocatable.get(r));
            let resource = Metered::ALL.into_iter().max_by_key(|r| (share(*r), Reverse(*r)));
            let resource = resource.unwrap_or(Metered::Cpu);
            let gap = over.left.get(resource);
            if let Some(stay) = self.enough(over, gap) {
                over.stays.extend(left.drain(..).map(|one| (one.pod.key.clone(), stay.clone())));
                break;
            }
            let worth = self.input.settings.worth.floor_of(gap).max(1);
            let best = left
                .iter()
                .enumerate()
                .filter(|(_, one)| one.uses.get(resource) >= worth)
                .min_by(|(_, a), (_, b)| order(a, resource, gap).cmp(&order(b, resource, gap)));
            let Some((at, _)) = best else {
                let little = |one: &Candidate| {
                    let stay = Stay::UsesLittle { resource, uses: one.uses.get(resource), worth };
                    (one.pod.key.clone(), stay)
                };
                over.stays.extend(left.iter().map(little));
                break;
            };
            let candidate = left.swap_remove(at);
            match self.place(&candidate, over, resource) {
                Ok(place) => self.make(&candidate, &place, over, resource),
                Err(stay) => over.stays.push((candidate.pod.key.clone(), stay)),
            }
        }
        over.stays.sort_by(|a, b| a.0.cmp(&b.0));
    }

    /// Is there nothing more to do for a node, or nothing more allowed?
    fn enough(&self, over: &Over, gap: i64) -> Option<Stay> {
        let settings = self.input.settings;
        let from_here = |from: &Arc<str>| *from == over.node;
        let before = self.input.moves.last_hour(self.now);
        let node = count(before.filter(|one| from_here(&one.from)))
            .saturating_add(count(self.moves.iter().filter(|one| from_here(&one.from))));
        let all = count(self.input.moves.last_hour(self.now)).saturating_add(count(self.moves.iter()));
        if gap <= 0 {
            Some(Stay::NotNeeded)
        } else if node >= settings.per_node {
            Some(Stay::NodeLimit { limit: settings.per_node })
        } else if all >= settings.per_hour {
            Some(Stay::HourLimit { limit: settings.per_hour })
        } else {
            None
        }
    }

    /// May this pod go, as far as it alone is concerned?
    fn screen(&self, pod: &Arc<PodView>, over: &Over) -> Result<Candidate, Stay> {
        let Input { settings, recent, moves, off, .. } = self.input;
        let owner = pod.owner.as_ref();
        if pod.terminating {
            return Err(Stay::Leaving);
        }
        if pod.daemon {
            return Err(Stay::Daemon);
        }
        if owner.is_some_and(|owner| &*owner.kind == "Node") {
            return Err(Stay::Mirror);
        }
        let (Some(owner), Some(workload)) = (owner, workload(pod)) else { return Err(Stay::Bare) };
        if pod.priority >= CRITICAL {
            return Err(Stay::Critical { priority: pod.priority });
        }
        let exempt = settings.exempt.covers(&pod.key.namespace, &pod.labels)
            || off.namespaces.contains(&pod.key.namespace)
            || off.pods.contains(&pod.uid)
            || pod.labels.value(SWITCH) == Some("off")
            || self.account().is_exempt(pod);
        if exempt {
            return Err(Stay::Exempt);
        }
        if pod.phase != Phase::Running || pod.started.is_none() {
            return Err(Stay::NotRunning);
        }
        // Restarts make it look as if it started far back; its node knows since when it is there.
        let Some(since) = pod.accepted.or(pod.created) else { return Err(Stay::AgeUnknown) };
        let until = |from: Timestamp, length| from.checked_add(length).unwrap_or(Timestamp::MAX);
        let warm = until(since, settings.warm_up);
        if warm > self.now {
            return Err(Stay::WarmUp { until: warm });
        }
        if let Some(moved) = moves.brought(pod, &over.node)
            && until(moved.at, settings.dwell) > self.now
        {
            return Err(Stay::Dwells { until: until(moved.at, settings.dwell) });
        }
        let Some(Use { now, high, since: measured, .. }) = recent.of(Uid::new(&pod.uid), self.now) else {
            return Err(Stay::UseUnknown);
        };
        // What was recommended holds for every pod of the workload, with a margin: for one that is known better it is too much.
        let learned = || self.account().learned(pod).unwrap_or(Load::ZERO);
        let high = if self.now.duration_since(measured) < YOUNG { high.max(learned()) } else { high };
        let alone = self.replicas.get(&owner.uid).is_none_or(|count| *count <= 1);
        Ok(Candidate { pod: pod.clone(), workload, uses: now, high, alone })
    }

    /// Where a pod would go, if that is a better place and it may go at all.
    fn place(&mut self, one: &Candidate, over: &Over, resource: Metered) -> Result<Place, Stay> {
        let settings = self.input.settings;
        let same = |workload: &Arc<str>| *workload == one.workload;
        let before = count(self.input.moves.last_hour(self.now).filter(|m| same(&m.workload)));
        let here = count(self.moves.iter().filter(|m| same(&m.workload)));
        if before.saturating_add(here) >= settings.per_workload {
            return Err(Stay::WorkloadLimit { limit: settings.per_workload });
        }
        self.budget(&one.pod)?;
        self.copy().lift(&one.pod);
        let found = self.destination(one, over, resource);
        if found.is_err() {
            self.copy().put_back(&one.pod, over.id);
        }
        found
    }

    /// Do the disruption budgets let it go?
    fn budget(&self, pod: &PodView) -> Result<(), Stay> {
        let covering = self.covering(pod);
        let name = |at: &usize| self.account().budgets()[*at].key.to_string();
        if covering.len() > 1 {
            return Err(Stay::Budgets { budgets: covering.iter().map(name).collect() });
        }
        match covering.iter().find(|at| self.allowed[**at] <= 0) {
            Some(at) => Err(Stay::Budget { budget: name(at) }),
            None => Ok(()),
        }
    }

    /// The budgets that cover a pod, by position.
    fn covering(&self, pod: &PodView) -> Vec<usize> {
        let budgets = self.account().budgets().iter().enumerate();
        let covers = budgets.filter(|(_, budget)| {
            budget.key.namespace == pod.key.namespace && budget.selector.matches(&pod.labels)
        });
        covers.map(|(at, _)| at).collect()
    }

    /// Where the engine puts a pod that was lifted, if it stays far enough under the line there.
    fn destination(&mut self, one: &Candidate, over: &Over, resource: Metered) -> Result<Place, Stay> {
        let settings = self.input.settings;
        let pod = match settings.landing {
            Landing::Scheduled => one.pod.clone(),
            Landing::Planned => Arc::new(PodView { estimate: one.high, ..PodView::clone(&one.pod) }),
        };
        let now = self.now;
        let input = self.input;
        let copy = self.copy();
        let decided = copy.decide(&pod);
        let decision = decided.decision();
        if let Some(hold) = &decision.hold {
            return Err(Stay::Held { hold: hold.clone() });
        }
        let Some(node) = decision.node else {
            let counts = Filter::ALL.into_iter().zip(decision.refused).filter(|(_, nodes)| *nodes > 0);
            return Err(Stay::NoNode {
                refused: counts.map(|(rule, nodes)| Refused { rule, nodes }).collect(),
            });
        };
        if node == over.id {
            return Err(Stay::Returns);
        }
        let name = copy.node(node).name.clone();
        let since = now.checked_sub(settings.dwell).unwrap_or(Timestamp::MIN);
        if let Some(came) = input.moves.to(&over.node, since).find(|m| m.from == name) {
            return Err(Stay::Swap { node: name.to_string(), pod: came.pod.to_string() });
        }
        let figures = copy.figures(node);
        let (Some(newest), Some(mut expected)) = (fresh(&figures, now), figures.expected()) else {
            return Err(Stay::UnknownThere { node: name.to_string() });
        };
        if settings.level == Level::Hour
            && let Some(history) = copy.history(node)
        {
            expected = expected.max(history.max_1h);
        }
        // What is on its way there by an earlier plan may not be seen yet.
        let unseen = newest.at.checked_sub(newest.window).unwrap_or(newest.at);
        let coming = input.moves.to(&name, unseen);
        let expected = coming.fold(expected, |sum, m| sum.plus(m.high));
        let with_it = expected.plus(one.high);
        let lines = Lines::of(copy, settings, node);
        let mut margin: Option<Ratio> = None;
        for r in Metered::ALL {
            let (Some(line), Some(limit)) = (lines.limit(r, Ratio::ZERO), lines.limit(r, settings.margin))
            else {
                continue;
            };
            if with_it.get(r) > limit {
                let (expected, high) = (expected.get(r), one.high.get(r));
                return Err(Stay::OverThere { node: name.to_string(), resource: r, expected, high, limit });
            }
            let room = Ratio::of(line.saturating_sub(with_it.get(r)), lines.allocatable.get(r));
            margin = [margin, room].into_iter().flatten().min();
        }
        // Without a line nobody can say that it is better there.
        let Some(margin) = margin else { return Err(Stay::UnknownThere { node: name.to_string() }) };
        Ok(Place { node, name, there: with_it.get(resource), margin })
    }

    /// Charges a move, and notes it.
    fn make(&mut self, one: &Candidate, place: &Place, over: &mut Over, resource: Metered) {
        for at in self.covering(&one.pod) {
            self.allowed[at] -= 1;
        }
        self.copy().land(&one.pod, one.pod.estimate.max(one.high), place.node);
        let gap = over.left;
        over.left = gap.minus(one.uses).max(Load::ZERO);
        self.moves.push(Move {
            pod: one.pod.key.clone(),
            uid: one.pod.uid.clone(),
            workload: one.workload.clone(),
            from: over.node.clone(),
            to: place.name.clone(),
            resource,
            uses: one.uses,
            high: one.high,
            gap,
            gap_after: over.left,
            there: place.there,
            margin: place.margin,
        });
    }
}

/// Least harm first.
fn order(one: &Candidate, resource: Metered, gap: i64) -> impl Ord + use<'_> {
    let uses = one.uses.get(resource);
    let fit = if uses >= gap { (false, uses) } else { (true, uses.saturating_neg()) };
    (one.pod.priority, one.alone, fit, &one.pod.key)
}

fn count<T>(all: impl Iterator<Item = T>) -> u32 {
    u32::try_from(all.count()).unwrap_or(u32::MAX)
}

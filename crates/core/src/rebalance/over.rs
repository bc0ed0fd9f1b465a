//! Which nodes are over their line, by how much, and is it more than a moment?

use super::Input;
use super::reason::{Pause, Wait};
use super::settings::Settings;
use crate::cluster::Cluster;
use crate::ledger::{Figures, Sample, Uid};
use crate::load::ratio::Ratio;
use crate::load::{Both, Load, Metered, admit};
use crate::object::Key;
use crate::select::Lookup;
use crate::view::NodeId;
use jiff::Timestamp;
use std::sync::Arc;

/// A node that is to be left alone has this annotation, with the value `off`; so has a namespace, and a pod this label.
pub const SWITCH: &str = "loadline.dev/rebalance";

/// A node that is over its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    pub node: Arc<str>,
    pub(super) id: NodeId,
    /// Where it is over by the largest share of what it has.
    pub resource: Metered,
    /// How much of that may be used: CPU in billionths of a core, memory in bytes.
    pub limit: i64,
    /// What is expected to be used when everything on its way there has come, and what is on its way out has gone.
    pub expected: i64,
    /// What the node has of it.
    pub allocatable: i64,
    /// Since when, without a break.
    pub since: Timestamp,
    /// What has to go; never negative.
    pub gap: Load,
    /// What of that is left after the moves of the plan.
    pub left: Load,
    /// Why it gives up nothing.
    pub wait: Option<Wait>,
    /// Why its pods stay, those that were looked at, by name.
    pub stays: Vec<(Key, super::Stay)>,
}

impl Over {
    /// How much of what the node has is to go.
    #[must_use]
    pub fn excess(&self) -> Ratio {
        Ratio::of(self.expected.saturating_sub(self.limit), self.allocatable).unwrap_or(Ratio::ZERO)
    }
}

/// The lines of a node: how much may be used of what it has, where both are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    pub allocatable: Both<i64>,
    pub targets: Both<Option<Ratio>>,
}

impl Lines {
    pub fn of(cluster: &mut Cluster, settings: &Settings, id: NodeId) -> Self {
        let [cpu, memory] = cluster.node(id).allocatable_load;
        let mut targets = cluster.load(id).map(|load| load.rules.targets).unwrap_or_default();
        for (resource, has) in Metered::ALL.into_iter().zip([cpu, memory]) {
            let by_rules = targets.get(resource).map(|target| settings.line(resource, target));
            let target = settings.targets.get(resource).or(by_rules);
            targets.set(resource, target.filter(|_| has.is_some_and(|has| has > 0)));
        }
        Self { allocatable: Both { cpu: cpu.unwrap_or(0), memory: memory.unwrap_or(0) }, targets }
    }

    /// The most that may be used, that share taken off; `None` where there is no line.
    pub fn limit(&self, resource: Metered, margin: Ratio) -> Option<i64> {
        let target = self.targets.get(resource)?;
        let share = Ratio::from_nano(target.nano().saturating_sub(margin.nano()));
        Some(share.floor_of(self.allocatable.get(resource)))
    }
}

/// The newest sample of a node, if it is to be believed.
pub(super) fn fresh(figures: &Figures, now: Timestamp) -> Option<Sample> {
    figures.newest.filter(|sample| admit::judge(sample, now).0.is_some())
}

/// All nodes that are over their line, the one by the largest share first.
///
/// # Errors
/// Why that cannot be said of any node.
pub(super) fn look(cluster: &mut Cluster, input: &Input<'_>) -> Result<Vec<Over>, Pause> {
    let ids: Vec<NodeId> = cluster.snapshot().nodes().map(|node| node.id).collect();
    let mut out = Vec::new();
    let (mut any, mut measured) = (false, false);
    for id in ids {
        let lines = Lines::of(cluster, input.settings, id);
        any |= lines.targets != Both::default();
        let figures = cluster.figures(id);
        let Some(newest) = fresh(&figures, cluster.now()) else { continue };
        measured = true;
        let is_over =
            |r: Metered| lines.limit(r, Ratio::ZERO).is_some_and(|limit| newest.usage.get(r) > limit);
        if Metered::ALL.into_iter().any(is_over) {
            out.push(judge(cluster, input, id, &lines, &figures, &newest));
        }
    }
    out.sort_by(|a, b| b.excess().cmp(&a.excess()).then_with(|| a.node.cmp(&b.node)));
    match (any, measured) {
        (false, _) => Err(Pause::NoLine),
        (true, false) => Err(Pause::Stale),
        (true, true) => Ok(out),
    }
}

/// A node that was measured to be over a line.
fn judge(
    cluster: &Cluster,
    input: &Input<'_>,
    id: NodeId,
    lines: &Lines,
    figures: &Figures,
    newest: &Sample,
) -> Over {
    let (node, now) = (cluster.node(id), cluster.now());
    let uses = |pod: &crate::view::PodView| input.recent.of(Uid::new(&pod.uid), now).map(|of| of.now);
    let leaving = node.pods.iter().filter(|pod| pod.terminating);
    let leaving = leaving.filter_map(|pod| uses(pod)).fold(Load::ZERO, Load::plus);
    let all = figures.expected().unwrap_or(newest.usage);
    let expected = all.minus(leaving).max(Load::ZERO);
    // What its pods will stop using, as far as that is known.
    let ebb = input.soon.map_or(Load::ZERO, |soon| {
        let here = node.pods.iter().filter(|pod| !pod.terminating);
        here.filter_map(|pod| Some(uses(pod)?.minus(soon(pod)?).max(Load::ZERO))).fold(Load::ZERO, Load::plus)
    });

    let mut found: Option<(Ratio, Metered, i64)> = None;
    let (mut gap, mut run) = (Load::ZERO, None);
    for resource in Metered::ALL {
        let Some(limit) = lines.limit(resource, Ratio::ZERO) else { continue };
        let over = newest.usage.get(resource).saturating_sub(limit);
        if over <= 0 {
            continue;
        }
        let share = Ratio::of(over, lines.allocatable.get(resource)).unwrap_or(Ratio::ZERO);
        if found.is_none_or(|(most, ..)| share > most) {
            found = Some((share, resource, limit));
        }
        let seen = input.recent.over(id, resource, limit);
        let is_long = |one: &super::Run| one.length() >= input.settings.over_for && one.samples >= 2;
        if let Some(seen) = seen.filter(is_long) {
            gap = gap.with(resource, expected.get(resource).saturating_sub(limit).max(0));
            run = run.or(Some(seen));
        }
    }
    let (_, resource, limit) = found.unwrap_or((Ratio::ZERO, Metered::Cpu, 0));
    let brief = run.is_none();
    let run = run.or_else(|| input.recent.over(id, resource, limit));
    let since = run.map_or(newest.at, |run| run.since);

    let window_from = newest.at.checked_sub(newest.window).unwrap_or(newest.at);
    let last = input.moves.iter().rev().find(|one| one.from == node.name).map(|one| one.at);
    let from_here = input.moves.last_hour(now).filter(|one| one.from == node.name).count();
    let wait = if node.annotations.value(SWITCH) == Some("off") {
        Some(Wait::Off)
    } else if let Some(at) = last.filter(|at| window_from < *at) {
        Some(Wait::Settling { since: at })
    } else if brief {
        let samples = run.map_or(0, |run| run.samples);
        Some(Wait::Brief { since, samples, needed_seconds: input.settings.over_for.as_secs() })
    } else if gap == Load::ZERO {
        Some(Wait::Leaving)
    } else if gap.minus(ebb).max(Load::ZERO) == Load::ZERO {
        Some(Wait::Passing { resource, soon: expected.minus(ebb).max(Load::ZERO).get(resource) })
    } else if from_here >= usize::try_from(input.settings.per_node).unwrap_or(usize::MAX) {
        Some(Wait::NodeLimit { limit: input.settings.per_node })
    } else {
        None
    };
    Over {
        node: node.name.clone(),
        id,
        resource,
        limit,
        expected: expected.get(resource),
        allocatable: lines.allocatable.get(resource),
        since,
        gap,
        left: gap,
        wait,
        stays: Vec::new(),
    }
}

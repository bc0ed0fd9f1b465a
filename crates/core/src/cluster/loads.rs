//! What do the load rules say of one node? Worked out when something about it changed, then read many times.

use super::Cluster;
use super::profile::Judge;
use super::tentative::Tentative;
use crate::ledger::{Figures, History, Uid};
use crate::load::admit::{self, Basis, Line};
use crate::load::board::Closed;
use crate::load::filter::{Filtered, filter};
use crate::load::hot::Bindings;
use crate::load::policy::{NodeRules, Rules};
use crate::load::ratio::Ratio;
use crate::load::score::{Hot, LoadScore, score};
use crate::load::settings::{Missing, Mode};
use crate::load::term::{self, Derived, Seen, Source, Terms, Unknown};
use crate::load::{Both, Load, Metered};
use crate::view::{NodeId, NodeView};
use jiff::{SignedDuration, Timestamp};

/// What the load rules know and say of a node.
#[derive(Clone, Debug)]
pub struct NodeLoad {
    /// What holds there.
    pub rules: NodeRules,
    /// What is worth a warning about its annotations.
    pub warnings: Vec<String>,
    /// What its annotations say.
    pub seen: Seen,
    /// What is known of each metric.
    pub terms: Terms,
    /// The limits.
    pub filtered: Filtered,
    pub score: LoadScore,
    /// The hot value; `None` where one is written that cannot be used.
    pub hot: Option<Hot>,
    /// Why the written one cannot be used.
    pub hot_unknown: Option<Unknown>,
    /// Each resource, held against its line.
    pub lines: Both<Line>,
    /// Is it not to be used because nothing is known of its load?
    pub unknown: bool,
    /// Until when it is left alone.
    pub cooling_until: Option<Timestamp>,
    valid_until: Option<Timestamp>,
}

impl NodeLoad {
    fn nothing(rules: &Rules) -> Self {
        Self {
            rules: NodeRules::default(),
            warnings: Vec::new(),
            seen: Seen::new(rules, &std::collections::BTreeMap::<String, String>::new(), None),
            terms: Terms { terms: Vec::new(), valid_until: None },
            filtered: Filtered::default(),
            score: LoadScore { base: 0, hot_penalty: 0, r#final: 0 },
            hot: None,
            hot_unknown: None,
            lines: Both::default(),
            unknown: false,
            cooling_until: None,
            valid_until: None,
        }
    }
}

impl Cluster {
    /// What the load rules of the first profile know and say of a node.
    pub fn load(&mut self, id: NodeId) -> Option<&NodeLoad> {
        self.refresh();
        self.judges[0].loads.get(id.index())
    }

    /// Reads what a node's labels and annotations say; they change seldom.
    pub(super) fn reread(&mut self, id: NodeId) {
        let node = self.live.node(id);
        self.judges.iter_mut().for_each(|judge| judge.reread(id, node));
    }

    /// Brings the answers for nodes that changed up to date.
    pub(super) fn refresh(&mut self) {
        self.stale.extend(self.ledger.changed());
        if self.stale.is_empty() {
            return;
        }
        let mut stale = std::mem::take(&mut self.stale);
        stale.sort_unstable();
        stale.dedup();
        let width = self.live.snapshot().width();
        self.judges.iter_mut().for_each(|judge| judge.board.grow(width));
        self.changes.limit(width);
        for id in stale.drain(..) {
            if id.index() >= width {
                continue;
            }
            if self.live.snapshot()[id].present {
                self.judge(id);
            }
            self.changes.note(id);
        }
        self.stale = stale;
    }

    /// Works out anew what is said of every node: what holds until something changes holds, but how old it is has changed.
    pub(super) fn look_again(&mut self) {
        self.refresh();
        if std::mem::replace(&mut self.aged, self.now) == self.now {
            return;
        }
        let ids: Vec<NodeId> = self.live.snapshot().nodes().map(|node| node.id).collect();
        for id in ids {
            self.judge(id);
        }
    }

    /// Works out anew what is said of one node.
    pub(super) fn judge(&mut self, id: NodeId) {
        let Self { judges, live, ledger, bindings, ahead, due, tentative, .. } = self;
        let node = &live.snapshot()[id];
        let (mut figures, mut history) = (None, None);
        for i in 0..judges.len() {
            let Some(judge) = judges.get_mut(i).filter(|judge| judge.profile.rules.is_some()) else {
                continue;
            };
            let before = judge.loads[id.index()].valid_until.take();
            // Another profile may wait for the same moment.
            if let Some(at) = before.filter(|at| judges.iter().all(|j| j.valid_until(id) != Some(*at))) {
                due.remove(&(at, id));
            }
            let figures = figures.get_or_insert_with(|| ledger.figures(id));
            // With nothing else, what is from the future is at least a reason.
            let ahead =
                || ahead.iter().find(|((_, node), _)| *node == id).map(|(_, sample)| History::of(sample));
            let history = history.get_or_insert_with(|| ledger.history(id).or_else(ahead)).as_ref();
            let known =
                Facts { node, figures, history, bindings, told_bindings: self.told_bindings, tentative };
            let after = judges[i].look(id, &known, self.now);
            due.extend(after.map(|at| (at, id)));
        }
    }
}

/// What is known of a node, whatever the rules.
struct Facts<'a> {
    node: &'a NodeView,
    figures: &'a Figures,
    history: Option<&'a History>,
    bindings: &'a Bindings<Uid>,
    told_bindings: bool,
    tentative: &'a Tentative,
}

impl Judge {
    fn valid_until(&self, id: NodeId) -> Option<Timestamp> {
        self.loads.get(id.index())?.valid_until
    }

    fn reread(&mut self, id: NodeId, node: &NodeView) {
        while self.loads.len() <= id.index() {
            self.loads.push(NodeLoad::nothing(&self.rules));
        }
        let (rules, warnings) = self.rules.node(&node.labels, &node.annotations);
        let load = &mut self.loads[id.index()];
        (load.rules, load.warnings) = (rules, warnings);
        load.seen = Seen::new(&self.rules, &node.annotations, None);
    }

    /// Works out what is said of a node now; says until when that holds by itself.
    fn look(&mut self, id: NodeId, known: &Facts<'_>, now: Timestamp) -> Option<Timestamp> {
        let Facts { node, figures, history, bindings, .. } = *known;
        let load = &mut self.loads[id.index()];
        load.seen.derived = history
            .map(|h| Derived::new(h, Both { cpu: node.capacity_load[0], memory: node.capacity_load[1] }));
        load.terms = term::evaluate(&self.rules, &load.rules, &load.seen, now);
        load.filtered = filter(&self.rules, &node.name, &load.rules, &load.terms);

        let buckets = &self.rules.policy().hot;
        let counted = bindings.hot(id, now, buckets);
        let written = (!known.told_bindings).then(|| term::written_hot(&self.rules, &load.seen, now));
        let written_until = written.and_then(|written| written.changes);
        // One that is absent or over says that nothing was bound of late; one that does not read says nothing.
        load.hot_unknown = written
            .and_then(|written| written.value.err())
            .filter(|why| !matches!(why, Unknown::Missing | Unknown::Expired));
        let hot = written.and_then(|written| written.value.ok()).unwrap_or(Hot::Count(0)).plus(counted);
        load.hot = (load.hot_unknown.is_none() || counted > 0).then_some(hot);
        load.score = score(&self.rules, &load.terms, hot);

        let (lines, line_until) = lines(&self.rules, load, node, figures, now);
        load.lines = lines;
        load.cooling_until = figures.cooling_until.filter(|until| *until > now);

        load.valid_until = [
            load.terms.valid_until,
            written_until,
            bindings.next_change(id, now, buckets),
            line_until,
            load.cooling_until,
        ]
        .into_iter()
        .flatten()
        .filter(|at| *at > now)
        .min();

        load.unknown = self.rules.settings().missing == Missing::Deny
            && self.rules.mode() == Mode::Default
            && Metered::ALL.iter().any(|r| {
                let line = lines.get(*r);
                line.limit().is_some() && line.basis == Basis::Nothing
            });
        let at = id.index();
        self.board.closed[at] = if load.cooling_until.is_some() {
            Closed::Cooling
        } else if !load.filtered.reasons.is_empty() {
            Closed::Threshold
        } else if load.unknown {
            Closed::Unknown
        } else {
            Closed::No
        };
        self.board.score[at] = load.score.r#final;
        for (i, resource) in Metered::ALL.into_iter().enumerate() {
            self.board.head[i][at] = known.tentative.left(lines.get(resource).head(), i, at);
        }
        self.loads[at].valid_until
    }
}

/// Each resource held against its line, and when that changes by itself.
fn lines(
    rules: &Rules,
    load: &NodeLoad,
    node: &NodeView,
    figures: &Figures,
    now: Timestamp,
) -> (Both<Line>, Option<Timestamp>) {
    let mut out = Both::<Line>::default();
    if rules.mode() == Mode::Upstream {
        return (out, None);
    }
    let (sampled, until) = figures.newest.as_ref().map_or((None, None), |s| admit::judge(s, now));
    for (i, resource) in Metered::ALL.into_iter().enumerate() {
        let mut line = Line {
            allocatable: node.allocatable_load[i],
            target: load.rules.targets.get(resource),
            ..Line::default()
        };
        if let (Some(basis), Some(sample)) = (sampled, &figures.newest) {
            line.measured = Some(sample.usage.get(resource));
            line.pending = figures.pending.get(resource);
            line.departed = figures.departed.get(resource);
            line.basis = basis;
        } else if let Some((ratio, at)) = annotated(load, resource)
            && let Some(capacity) = node.capacity_load[i]
        {
            line.measured = Some(ceil_of(ratio, capacity));
            line.pending = started_after(node, at, rules.settings().settle).get(resource);
            line.basis = Basis::Annotation;
        } else {
            line.pending = figures.assigned.get(resource);
            line.basis = admit::without_data(rules.settings().missing);
        }
        out.set(resource, line);
    }
    (out, until)
}

/// A fresh five-minute mean from an annotation.
fn annotated(load: &NodeLoad, resource: Metered) -> Option<(Ratio, Timestamp)> {
    let name = match resource {
        Metered::Cpu => "cpu_usage_avg_5m",
        Metered::Memory => "mem_usage_avg_5m",
    };
    let term = load.terms.terms.iter().find(|t| &*t.metric == name)?;
    (term.source == Some(Source::Annotation)).then_some(())?;
    Some((term.value?.ratio()?, term.at?))
}

/// What pods will use that a five-minute mean of that time cannot contain in full.
fn started_after(node: &NodeView, at: Timestamp, settle: SignedDuration) -> Load {
    let from = at.checked_sub(SignedDuration::from_secs(300)).unwrap_or(Timestamp::MIN);
    let settled =
        |p: &crate::view::PodView| p.started.is_some_and(|s| s.checked_add(settle).is_ok_and(|s| s <= from));
    let gone = |p: &crate::view::PodView| p.terminating && p.started.is_none();
    node.pods.iter().filter(|p| !settled(p) && !gone(p)).fold(Load::ZERO, |sum, p| sum.plus(p.estimate))
}

/// A share of a whole, rounded up.
pub(super) fn ceil_of(ratio: Ratio, whole: i64) -> i64 {
    let exact = i128::from(whole) * i128::from(ratio.nano());
    let one = i128::from(Ratio::ONE.nano());
    i64::try_from(exact.div_euclid(one) + i128::from(exact.rem_euclid(one) != 0)).unwrap_or(i64::MAX)
}

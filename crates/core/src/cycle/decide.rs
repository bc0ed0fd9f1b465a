//! The cycle itself: check every node, score those that pass, take the best.

use super::memo::{Changes, Known, Look, Memo};
use super::prepare::{Prepared, prepare};
use super::report::by_itself;
use super::{Filter, Parts, Weights, apart, local, score, spread};
use crate::explain::Reason;
use crate::load::board::Board;
use crate::view::{Hold, NodeId, PodView, Snapshot};
use std::sync::Arc;

/// What a decision rests on.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub cluster: &'a Snapshot,
    /// What the load rules say; `None` leaves them out.
    pub board: Option<&'a Board>,
    /// Do the load rules not govern this pod? It is scored by load all the same.
    pub exempt: bool,
    /// How much each score weighs.
    pub weights: Weights,
    /// Which nodes changed, for a memo that lives from decision to decision.
    pub changes: Option<&'a Changes>,
}

impl<'a> Input<'a> {
    /// Without load rules.
    #[must_use]
    pub fn new(cluster: &'a Snapshot) -> Self {
        Self { cluster, board: None, exempt: false, weights: Weights::default(), changes: None }
    }
}

/// Where a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The node; `None` if none will do.
    pub node: Option<NodeId>,
    pub score: i64,
    /// The same as people read it: the weighted mean of the scores that say something, 0 to 100.
    pub mean: i64,
    /// The node that would have been taken without that one, and its mean.
    pub next: Option<(NodeId, i64)>,
    /// How many nodes would do.
    pub feasible: u32,
    /// How many nodes fail which rule first, by [`Filter::index`].
    pub refused: [u32; Filter::ALL.len()],
    /// One of those nodes, where there are any.
    pub example: [NodeId; Filter::ALL.len()],
    /// Why no node was looked at at all.
    pub hold: Option<Hold>,
}

impl Default for Decision {
    /// Nothing was looked at.
    fn default() -> Self {
        Self {
            node: None,
            score: 0,
            mean: 0,
            next: None,
            feasible: 0,
            refused: [0; Filter::ALL.len()],
            example: [NodeId(0); Filter::ALL.len()],
            hold: None,
        }
    }
}

impl Decision {
    /// Which rules nodes failed first: how many, and one of them.
    pub fn refusals(&self) -> impl Iterator<Item = (Filter, u32, NodeId)> {
        let all = Filter::ALL.iter().zip(self.refused).zip(self.example);
        all.map(|((rule, count), node)| (*rule, count, node)).filter(|(_, count, _)| *count > 0)
    }
}

/// Where does this pod go? The same answer for the same input, with any memo.
#[must_use]
pub fn decide(input: &Input<'_>, pod: &Arc<PodView>, memo: &mut Memo) -> Decision {
    if let Some(hold) = pod.wants.holds.first() {
        return Decision { hold: Some(hold.clone()), ..Decision::default() };
    }
    let shape = answers(input, pod, memo);
    memo.last = shape;
    let mut out = Decision::default();
    let Memo { places, shapes, feasible, .. } = memo;
    let shape = &shapes[shape];
    let ready = &shape.ready;

    let spread = spread::Hard::new(input, pod, ready, places);
    let apart = apart::Hard::new(input, pod, ready, places);
    let plain = spread.is_empty() && apart.is_empty();
    feasible.clear();
    for node in input.cluster.labels().present().ones() {
        let refused = shape.refused[node]
            .or_else(|| if plain { None } else { spread.check(node).or_else(|| apart.check(node)) });
        match refused {
            Some(rule) => {
                out.refused[rule.index()] += 1;
                out.example[rule.index()] = NodeId::at(node);
            }
            // There are never more nodes than a u32 holds.
            None => feasible.push(u32::try_from(node).unwrap_or(u32::MAX)),
        }
    }
    out.feasible = u32::try_from(feasible.len()).unwrap_or(u32::MAX);

    let together = Together::new(input, pod, ready, places, feasible);
    let images = &shape.images;
    // Others were evicted from a node for it: if that one does, no other is compared with it.
    let own = pod.nominated.as_deref().and_then(|name| input.cluster.find_node(name)).map(|node| node.id.0);
    let own = feasible.iter().position(|node| Some(*node) == own);
    let among = own.map_or(&feasible[..], |at| &feasible[at..=at]);
    let (best, next) = if together.is_none() && images.is_empty() {
        best(input.cluster, among, |at| shape.alone[at])
    } else {
        best(input.cluster, among, |at| {
            let more = together.as_ref().map_or(0, |t| t.total(input, ready, at));
            shape.alone[at] + more + images.score(at).unwrap_or(0) * input.weights.images
        })
    };
    let mean = |found: Best| {
        let at = found.node.index();
        let says = Parts { images: images.score(at), ..alone(input, pod, at) };
        let of = says.weight(&input.weights) + together.as_ref().map_or(0, |t| t.weight(&input.weights));
        if of == 0 { 0 } else { found.total / of }
    };
    if let Some(best) = best {
        out.node = Some(best.node);
        out.score = best.total;
        out.mean = mean(best);
        out.next = next.map(|next| (next.node, mean(next)));
    }
    out
}

/// One reason why a node failed a rule in the decision just made with this memo; `None` where the rule says it all.
pub(crate) fn reason(
    input: &Input<'_>,
    pod: &PodView,
    memo: &Memo,
    rule: Filter,
    node: NodeId,
) -> Option<Reason> {
    match rule {
        Filter::Affinity => Some(Reason::NotNear),
        Filter::AntiAffinity => Some(Reason::TooNear),
        Filter::ExistingAntiAffinity => Some(Reason::KeptAway),
        // What nodes are counted against each other by would have to be counted again.
        Filter::Spread | Filter::SpreadLabel => None,
        _ => {
            let ready = &memo.shapes.get(memo.last)?.ready;
            by_itself(input, pod, ready, &input.cluster[node]).into_iter().next()
        }
    }
}

/// The nodes that would do for the decision just made with this memo, in no order that means anything.
pub fn candidates(memo: &Memo) -> impl Iterator<Item = NodeId> {
    memo.feasible.iter().map(|node| NodeId(*node))
}

/// A node and what it is compared by.
#[derive(Clone, Copy)]
struct Best {
    total: i64,
    rank: u32,
    node: NodeId,
}

/// The best of these nodes by their totals, among equals the first by name; and the best of the others.
fn best(at: &Snapshot, nodes: &[u32], total: impl Fn(usize) -> i64) -> (Option<Best>, Option<Best>) {
    let (mut best, mut next): (Option<Best>, Option<Best>) = (None, None);
    // What a node must have to be looked at closely: of many nodes few do.
    let mut least = i64::MIN;
    for node in nodes {
        let total = total(*node as usize);
        if total < least {
            continue;
        }
        let node = NodeId(*node);
        let found = Best { total, rank: at.rank(node), node };
        let before = |than: &Best| total > than.total || (total == than.total && found.rank < than.rank);
        if best.as_ref().is_none_or(before) {
            next = best.replace(found);
        } else if next.as_ref().is_none_or(before) {
            next = Some(found);
        }
        least = next.map_or(i64::MIN, |next| next.total);
    }
    (best, next)
}

/// Brings the answers every node gives alone up to date; says where in the memo they are.
pub(super) fn answers(input: &Input<'_>, pod: &Arc<PodView>, memo: &mut Memo) -> usize {
    let look = Look { cluster: input.cluster, pod, exempt: input.exempt, with_load: input.board.is_some() };
    let present = input.cluster.labels().present();
    let at = match memo.find(&look, input.changes) {
        Known::Changed(at, changed) => {
            for node in changed.iter().map(|n| n.index()).filter(|n| present.contains(*n)) {
                let shape = &mut memo.shapes[at];
                let (refused, alone) = ask(input, pod, &shape.ready, node);
                shape.refused[node] = refused;
                shape.alone[node] = alone;
            }
            at
        }
        Known::New => {
            let ready = prepare(input, pod);
            let seen = input.changes.map_or(0, Changes::count);
            let at = memo.keep(&look, seen, ready, input.cluster.width());
            let shape = &mut memo.shapes[at];
            for node in present.ones() {
                let (refused, alone) = ask(input, pod, &shape.ready, node);
                shape.refused[node] = refused;
                shape.alone[node] = alone;
            }
            at
        }
    };
    memo.shapes[at].images.refresh(input.cluster, pod);
    at
}

fn ask(input: &Input<'_>, pod: &PodView, ready: &Prepared, node: usize) -> (Option<Filter>, i64) {
    match local::check(input, pod, ready, node) {
        Some(rule) => (Some(rule), 0),
        None => (None, alone(input, pod, node).total(&input.weights)),
    }
}

/// The scores a node can compute alone.
pub(super) fn alone(input: &Input<'_>, pod: &PodView, node: usize) -> Parts {
    Parts {
        load: input.board.map(|b| b.score[node]),
        least: score::least(input, pod, node),
        balanced: score::balanced(input, pod, node),
        ..Parts::default()
    }
}

/// The scores that need all nodes that pass: each is put in relation to the best and the worst of them.
pub(super) struct Together {
    discouraging: Option<u32>,
    liking: Option<i64>,
    affinity: Option<(apart::Soft, i64, i64)>,
    spread: Option<Spread>,
}

/// The soft constraints and what nodes that pass have by them.
struct Spread {
    soft: spread::Soft,
    /// By node; nothing where the node does not pass, or is no place at all.
    raw: Vec<Option<i64>>,
    least: i64,
    most: i64,
}

impl Together {
    pub fn new(
        input: &Input<'_>,
        pod: &PodView,
        ready: &Prepared,
        places: &mut super::memo::Places,
        feasible: &[u32],
    ) -> Option<Self> {
        let nodes = || feasible.iter().map(|n| *n as usize);
        let class = |n: usize| input.cluster.columns().taints[n] as usize;
        let most = |discouraged: bool| {
            discouraged.then(|| nodes().map(|n| ready.discouraging[class(n)]).max().unwrap_or(0))
        };
        let affinity = apart::Soft::new(input, pod, places).map(|soft| {
            let (least, most) = bounds(nodes().map(|n| soft.raw(n)));
            (soft, least, most)
        });
        let spread = spread::Soft::new(input, pod, ready, places, feasible).map(|soft| {
            let mut raw = vec![None; input.cluster.width()];
            nodes().for_each(|n| raw[n] = soft.raw(n));
            let (least, most) = bounds(nodes().filter_map(|n| raw[n]));
            Spread { soft, raw, least, most: most.max(0) }
        });
        let liking = (!ready.liking.is_empty()).then(|| nodes().map(|n| ready.liking[n]).max().unwrap_or(0));
        let out = Self { discouraging: most(ready.discouraged), liking, affinity, spread };
        let nothing = out.discouraging.is_none()
            && out.liking.is_none()
            && out.affinity.is_none()
            && out.spread.is_none();
        (!nothing).then_some(out)
    }

    /// Each score of any node, for people.
    pub fn parts(&self, input: &Input<'_>, ready: &Prepared, node: usize) -> Parts {
        Parts {
            taints: self.discouraging.map(|most| taints(input, ready, most, node)),
            liking: self.liking.map(|most| share(ready.liking[node], most)),
            affinity: self
                .affinity
                .as_ref()
                .map(|(s, least, most)| apart::normal(s.raw(node), *least, *most)),
            spread: self.spread.as_ref().map(|s| spread::normal(s.soft.raw(node), s.least, s.most)),
            ..Parts::default()
        }
    }

    /// How much those weigh that say something.
    fn weight(&self, weights: &Weights) -> i64 {
        [
            (self.discouraging.is_some(), weights.taints),
            (self.liking.is_some(), weights.liking),
            (self.affinity.is_some(), weights.affinity),
            (self.spread.is_some(), weights.spread),
        ]
        .into_iter()
        .filter_map(|(says, weight)| says.then_some(weight))
        .sum()
    }

    /// The weighted sum of the same, of a node that passes. Asked of every one, so it is added up as it comes.
    fn total(&self, input: &Input<'_>, ready: &Prepared, node: usize) -> i64 {
        let weights = &input.weights;
        let mut sum = 0;
        if let Some(most) = self.discouraging {
            sum += taints(input, ready, most, node) * weights.taints;
        }
        if let Some(most) = self.liking {
            sum += share(ready.liking[node], most) * weights.liking;
        }
        if let Some((soft, least, most)) = &self.affinity {
            sum += apart::normal(soft.raw(node), *least, *most) * weights.affinity;
        }
        if let Some(s) = &self.spread {
            sum += spread::normal(s.raw[node], s.least, s.most) * weights.spread;
        }
        sum
    }
}

/// `100 × part ÷ most`, cut.
fn share(part: i64, most: i64) -> i64 {
    if most == 0 { 0 } else { 100 * part / most }
}

fn taints(input: &Input<'_>, ready: &Prepared, most: u32, node: usize) -> i64 {
    let class = input.cluster.columns().taints[node] as usize;
    100 - share(ready.discouraging[class].into(), most.into())
}

fn bounds(values: impl Iterator<Item = i64>) -> (i64, i64) {
    values.fold((i64::MAX, i64::MIN), |(least, most), v| (least.min(v), most.max(v)))
}

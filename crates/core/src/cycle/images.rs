//! Who has the pod's images already?
//!
//! Every image counts on a node that has it with `size × nodes that have it ÷ all nodes`, cut to a byte: one that is
//! on few nodes only must not draw every pod there. Up to 23 MB in all are fetched quickly and worth nothing; from
//! there the score grows evenly to 100 at 1000 MB for each container. Say an image of 300 MB is on 2 of 4 nodes, and
//! the pod has one container: `300 × 2 ÷ 4 = 150`, and `100 × (150 - 23) ÷ (1000 - 23)` is 12, cut.

use crate::view::{PodView, Snapshot};

const MB: i64 = 1 << 20;
/// What is fetched quickly.
const LITTLE: i64 = 23 * MB;
/// More than that of one container is no better.
const MUCH: i64 = 1000 * MB;

/// The scores of all nodes for the images of one pod, and what they rest on.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// By node; empty if every node would have zero.
    scores: Vec<u8>,
    /// When each image that is somewhere was last different.
    seen: Vec<u64>,
    nodes: usize,
}

impl Held {
    pub fn new(at: &Snapshot, pod: &PodView) -> Self {
        let mut out = Self::default();
        out.refresh(at, pod);
        out
    }

    /// Brings the scores up to date; costs as much as there are nodes that have the images, or nothing if nothing changed.
    pub fn refresh(&mut self, at: &Snapshot, pod: &PodView) {
        let wanted = &pod.wants.images;
        let found = || wanted.names.iter().filter_map(|name| at.images().get(*name));
        let nodes = at.nodes().len();
        let same = found().map(crate::view::images::Image::changed).eq(self.seen.iter().copied());
        if same && (self.nodes == nodes || self.seen.is_empty()) {
            return;
        }
        self.nodes = nodes;
        self.seen.clear();
        self.seen.extend(found().map(crate::view::images::Image::changed));
        self.scores.clear();
        if wanted.containers == 0 {
            return;
        }
        let mut sums = vec![0i64; if self.seen.is_empty() { 0 } else { at.width() }];
        for image in found() {
            let share = fraction(image.nodes().len(), nodes);
            for (node, size) in image.nodes() {
                sums[node] = sums[node].saturating_add(part(size, share));
            }
        }
        if sums.iter().any(|sum| score(*sum, wanted.containers) > 0) {
            self.scores.extend(sums.into_iter().map(|sum| score(sum, wanted.containers)));
        }
    }

    /// Does it say nothing about any node?
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// 0 to 100; `None` if it says nothing about any node.
    pub fn score(&self, node: usize) -> Option<i64> {
        self.scores.get(node).map(|score| i64::from(*score))
    }
}

fn score(sum: i64, containers: u32) -> u8 {
    let most = MUCH * i64::from(containers);
    let over = sum.clamp(LITTLE, most) - LITTLE;
    u8::try_from(100 * over / (most - LITTLE)).unwrap_or(100)
}

#[expect(clippy::cast_precision_loss, reason = "there are not that many nodes")]
fn fraction(part: usize, of: usize) -> f64 {
    part as f64 / of as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "kube-scheduler cuts the same float"
)]
fn part(size: i64, share: f64) -> i64 {
    (size as f64 * share) as i64
}

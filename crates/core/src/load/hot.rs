//! Where did pods just go? Bindings per node, counted at once and exactly.
//!
//! ```text
//! hot(node) = Σ over buckets of  ⌊ bindings of the last `range` / count ⌋      in whole seconds, strictly younger
//! ```
//!
//! Each pod counts once, however often its binding is told: bindings are kept by pod, not by event, and nothing is
//! dropped but what is older than every range. A pod that went elsewhere after all counts there.

use super::policy::Bucket;
use crate::view::NodeId;
use jiff::{SignedDuration, Timestamp};
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Recent bindings. `K` identifies a pod.
#[derive(Clone, Debug)]
pub struct Bindings<K> {
    /// Per node, which are dense numbers: second and pod, the oldest first.
    nodes: Vec<VecDeque<(i64, K)>>,
    /// Where each pod went, and when. Only ever looked up.
    pods: HashMap<K, (NodeId, i64)>,
}

impl<K> Default for Bindings<K> {
    fn default() -> Self {
        Self { nodes: Vec::new(), pods: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash> Bindings<K> {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Is none kept?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// A pod went to a node. Told again, nothing changes; told of another node at no earlier time, the pod moves.
    /// A time ahead of `now` counts as now, or it would stay hot for too long. Returns whether something changed.
    pub fn bind(&mut self, node: NodeId, pod: K, at: Timestamp, now: Timestamp) -> bool {
        let at = at.min(now).as_second();
        match self.pods.get(&pod) {
            Some((known, _)) if *known == node => return false,
            Some((_, time)) if at < *time => return false,
            Some(_) => {
                self.forget(pod);
            }
            None => {}
        }
        if self.nodes.len() <= node.index() {
            self.nodes.resize_with(node.index() + 1, VecDeque::new);
        }
        let records = &mut self.nodes[node.index()];
        // News come nearly in order: the place is at or near the end.
        let from_end = records.iter().rev().take_while(|(time, _)| *time > at).count();
        records.insert(records.len() - from_end, (at, pod));
        self.pods.insert(pod, (node, at));
        true
    }

    /// A pod did not go anywhere after all. Returns whether it was known.
    pub fn forget(&mut self, pod: K) -> bool {
        let Some((node, at)) = self.pods.remove(&pod) else { return false };
        if let Some(records) = self.nodes.get_mut(node.index()) {
            let first = records.partition_point(|(time, _)| *time < at);
            if let Some(place) = records.range(first..).position(|(_, p)| *p == pod) {
                records.remove(first + place);
            }
        }
        true
    }

    /// Forgets everything about a node: its number is another's now.
    pub fn clear(&mut self, node: NodeId) {
        for (_, pod) in self.nodes.get_mut(node.index()).into_iter().flat_map(std::mem::take) {
            self.pods.remove(&pod);
        }
    }

    /// Drops what is older than every range.
    pub fn prune<'b>(&mut self, now: Timestamp, buckets: impl IntoIterator<Item = &'b Bucket>) {
        let range = buckets.into_iter().map(|b| b.range.as_secs()).max().unwrap_or_default();
        let end = now.as_second().saturating_sub(range);
        for records in &mut self.nodes {
            while let Some((_, pod)) = records.pop_front_if(|(time, _)| *time <= end) {
                self.pods.remove(&pod);
            }
        }
    }

    /// How hot the node is. A bucket with a count below one adds nothing.
    #[must_use]
    pub fn hot(&self, node: NodeId, now: Timestamp, buckets: &[Bucket]) -> i64 {
        self.recent(node, now, buckets).map(|(_, bucket, recent)| floor(recent, bucket.count)).sum()
    }

    /// When the node cools down by itself, if it is hot: the first instant with a lower value.
    #[must_use]
    pub fn next_change(&self, node: NodeId, now: Timestamp, buckets: &[Bucket]) -> Option<Timestamp> {
        let changes = self.recent(node, now, buckets).filter_map(|(records, bucket, recent)| {
            let hot = floor(recent, bucket.count);
            // With n = hot × count + spare bindings the value drops when spare + 1 of them are too old.
            let spare = i64::try_from(recent).ok()? - hot.checked_mul(bucket.count)?;
            let place = records.len() - recent + usize::try_from(spare).ok()?;
            let (time, _) = (hot > 0).then(|| records.get(place))??;
            let end = SignedDuration::from_secs(bucket.range.as_secs());
            Timestamp::from_second(*time).ok()?.checked_add(end).ok()
        });
        changes.min()
    }

    /// Per bucket that counts: the records of the node and how many of them, at the end, are recent.
    fn recent<'a>(
        &'a self,
        node: NodeId,
        now: Timestamp,
        buckets: &'a [Bucket],
    ) -> impl Iterator<Item = (&'a VecDeque<(i64, K)>, &'a Bucket, usize)> {
        let records = self.nodes.get(node.index());
        let now = now.as_second();
        buckets.iter().filter(|bucket| bucket.count > 0).filter_map(move |bucket| {
            let records = records?;
            let end = now.saturating_sub(bucket.range.as_secs());
            Some((records, bucket, records.len() - records.partition_point(|(time, _)| *time <= end)))
        })
    }
}

fn floor(recent: usize, count: i64) -> i64 {
    i64::try_from(recent).unwrap_or(i64::MAX) / count
}

#[cfg(test)]
mod tests;

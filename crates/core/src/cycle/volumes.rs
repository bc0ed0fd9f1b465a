//! Where can the claims of a pod get their volumes, and which?
//!
//! A claim without a volume gets one on the node its pod goes to. There, claims are served from the smallest to the
//! largest: each gets the smallest volume that is large enough, of its class, and can be reached; one that was meant for
//! it comes before all others, and if none such can be reached, nothing else will do. What is left over is made to order,
//! where the class has a provisioner, allows the node, and has enough room. A claim a volume is being made for already
//! ties its pod to that node.

use super::Filter;
use crate::select::Selector;
use crate::select::node::{Required, Sets};
use crate::view::volumes::{Claim, Disk, PersistentVolume, Planned, Storage};
use crate::view::{NodeId, NodeView, PodView, Snapshot, Volume, Wants};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The volumes of a pod, ready to be held against nodes.
#[derive(Clone, Debug)]
pub(super) struct Volumes {
    /// The nodes all that are there can be reached from; `None` for all.
    pub reachable: Option<FixedBitSet>,
    /// The nodes in the zones all of them are in; `None` for all.
    zoned: Option<FixedBitSet>,
    /// Claims that have no volume yet.
    pub claims: Option<Claims>,
    /// Has another pod one of its claims for itself?
    pub in_use: bool,
}

impl Volumes {
    /// `None` if it has none that matter for where it can go.
    pub fn new(at: &Snapshot, wants: &Wants) -> Option<Self> {
        let mut out = wants.has_volumes().then(|| Self {
            reachable: common(at, wants.volumes.iter().map(|v| &v.reachable)),
            zoned: common(at, wants.volumes.iter().map(|v| &v.zones)),
            claims: Claims::new(at, &wants.claims),
            in_use: false,
        })?;
        out.refresh(at, wants);
        Some(out)
    }

    /// Looks again at what other pods have for themselves.
    pub fn refresh(&mut self, at: &Snapshot, wants: &Wants) {
        self.in_use = wants.exclusive.iter().any(|claim| at.users(claim) > 0);
    }

    /// The first rule the node fails.
    /// These pods go there first.
    pub fn refused(&self, node: &NodeView, first: &[Arc<PodView>], pod: &PodView) -> Option<Filter> {
        let at = node.id.index();
        let outside = |nodes: &Option<FixedBitSet>| nodes.as_ref().is_some_and(|nodes| !nodes.contains(at));
        if disk_in_use(node, first, pod).is_some() {
            return Some(Filter::DiskInUse);
        }
        if self.in_use || pod.wants.exclusive.iter().any(|claim| is_used(claim, first)) {
            return Some(Filter::VolumeInUse);
        }
        if over_attach_limit(node, first, &pod.wants.volumes).is_some() {
            return Some(Filter::AttachLimit);
        }
        if outside(&self.reachable) {
            return Some(Filter::VolumeReach);
        }
        let refused = self.claims.as_ref().and_then(|claims| claims.refused(at));
        refused.or_else(|| outside(&self.zoned).then_some(Filter::VolumeZone))
    }
}

/// The nodes that meet every demand; `None` when nothing is demanded.
fn common<'a>(at: &Snapshot, demands: impl Iterator<Item = &'a Required>) -> Option<FixedBitSet> {
    let mut out: Option<FixedBitSet> = None;
    for nodes in demands.filter_map(|demand| demand.nodes(at.labels())) {
        match &mut out {
            None => out = Some(nodes),
            Some(out) => out.intersect_with(&nodes),
        }
    }
    out
}

/// Is a pod tied to a node by claims whose volumes are being made?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tied {
    No,
    To(usize),
    /// The node is not there, or there are two.
    Nowhere,
}

/// The claims of a pod, ready to be held against nodes.
#[derive(Clone, Debug)]
pub(super) struct Claims {
    tied: Tied,
    /// Claims that are tied, in the order of the pod.
    ordered: Vec<(Arc<Claim>, Provision)>,
    /// The others, the smallest first.
    open: Vec<(Arc<Claim>, Offers, Provision)>,
}

/// Volumes a claim could get, as far as the node does not matter.
#[derive(Clone, Debug, Default)]
struct Offers {
    /// Volumes that were meant for it, by name, and the nodes that reach each.
    meant: Vec<(Arc<PersistentVolume>, Option<FixedBitSet>)>,
    /// The best first.
    volumes: Vec<Arc<PersistentVolume>>,
    /// Which of them every node reaches.
    anywhere: Vec<u32>,
    /// Which of them only some nodes reach, by node.
    somewhere: FxHashMap<usize, Vec<u32>>,
}

/// Where a volume can be made for a claim.
#[derive(Clone, Debug, Default)]
struct Provision {
    /// Does anybody make volumes of that class?
    possible: bool,
    /// The nodes the class allows; `None` for all.
    allowed: Option<FixedBitSet>,
    /// The nodes with enough room; `None` if nobody counts.
    roomy: Option<FixedBitSet>,
}

impl Provision {
    fn new(at: &Snapshot, claim: &Claim) -> Self {
        let storage = at.storage();
        let Some(class) = storage.class(&claim.class) else { return Self::default() };
        let Some(provisioner) = &class.provisioner else { return Self::default() };
        let counted = claim.request.filter(|_| storage.is_tracked(provisioner));
        let roomy = counted.map(|request| {
            let mut out = FixedBitSet::with_capacity(at.width());
            for capacity in storage.capacities(&claim.class) {
                let enough = capacity.limit.is_some_and(|limit| limit >= request.value());
                if let Some(selector) = capacity.nodes.as_ref().filter(|_| enough) {
                    out.union_with(&selected(at, selector));
                }
            }
            out
        });
        Self { possible: true, allowed: class.reachable.nodes(at.labels()), roomy }
    }

    fn refuses(&self, node: usize) -> Option<Filter> {
        let outside = |nodes: &Option<FixedBitSet>| nodes.as_ref().is_some_and(|n| !n.contains(node));
        if !self.possible || outside(&self.allowed) {
            Some(Filter::NoVolume)
        } else {
            outside(&self.roomy).then_some(Filter::NoStorage)
        }
    }
}

/// The nodes with such labels.
fn selected(at: &Snapshot, selector: &Selector) -> FixedBitSet {
    let Some(requirements) = selector.requirements() else { return FixedBitSet::with_capacity(at.width()) };
    let mut out = at.labels().all();
    for requirement in requirements {
        out.intersect_with(&at.labels().having(requirement));
    }
    out
}

impl Offers {
    /// `wanted` is how many claims ask: of more volumes a node never has to choose.
    fn new(at: &Snapshot, claim: &Claim, taken: &BTreeMap<&str, &Claim>, wanted: usize) -> Self {
        let mut out = Self::default();
        for volume in at.storage().of_class(&claim.class) {
            let by = taken.get(&*volume.name);
            let theirs = by.is_some_and(|by| by.key == claim.key && by.uid == claim.uid);
            if (by.is_some() && !theirs)
                || (volume.claimed.is_some() && !volume.is_for(claim))
                || claim.request.is_some_and(|request| volume.capacity < request)
                || volume.block != claim.block
                || volume.attributes != claim.attributes
                || volume.terminating
            {
                continue;
            }
            if theirs || volume.is_for(claim) {
                out.meant.push((volume.clone(), volume.reachable.nodes(at.labels())));
            } else if volume.available
                && claim.selector.as_ref().is_none_or(|s| s.matches(&volume.labels))
                && claim.modes.iter().all(|mode| volume.modes.contains(mode))
            {
                out.volumes.push(volume.clone());
            }
        }
        if out.meant.is_empty() {
            out.sort(at, wanted);
        }
        out
    }

    fn sort(&mut self, at: &Snapshot, wanted: usize) {
        // They come by name, which stays the order of equals.
        self.volumes.sort_by_key(|volume| volume.capacity);
        for (volume, place) in self.volumes.iter().zip(0..) {
            match volume.reachable.nodes(at.labels()) {
                None => self.anywhere.push(place),
                Some(nodes) => {
                    for node in nodes.ones() {
                        let here = self.somewhere.entry(node).or_default();
                        if here.len() < wanted {
                            here.push(place);
                        }
                    }
                }
            }
            if self.anywhere.len() >= wanted {
                break;
            }
        }
    }

    /// The best volume the node reaches, of those not given to another claim of the pod.
    fn best(&self, node: usize, given: &[Planned]) -> Option<&Arc<PersistentVolume>> {
        let free = |volume: &PersistentVolume| {
            given.iter().all(|planned| planned.volume.as_ref().is_none_or(|name| *name != volume.name))
        };
        if !self.meant.is_empty() {
            let reached = |nodes: &Option<FixedBitSet>| nodes.as_ref().is_none_or(|n| n.contains(node));
            let mut meant = self.meant.iter();
            return meant.find(|(volume, nodes)| reached(nodes) && free(volume)).map(|(volume, _)| volume);
        }
        let first =
            |places: &[u32]| places.iter().copied().find(|place| free(&self.volumes[*place as usize]));
        let here = self.somewhere.get(&node).and_then(|places| first(places));
        let place = [here, first(&self.anywhere)].into_iter().flatten().min()?;
        self.volumes.get(place as usize)
    }
}

impl Claims {
    /// `None` for pods that have no such claims.
    pub fn new(at: &Snapshot, claims: &[Arc<Claim>]) -> Option<Self> {
        if claims.is_empty() {
            return None;
        }
        let storage: &Storage = at.storage();
        let taken = storage.taken();
        let mut out = Self { tied: Tied::No, ordered: Vec::new(), open: Vec::new() };
        for claim in claims {
            let provision = Provision::new(at, claim);
            if let Some(name) = storage.node_of(claim) {
                let here = at.find_node(name).map_or(Tied::Nowhere, |node| Tied::To(node.id.index()));
                out.tied = if out.tied == Tied::No || out.tied == here { here } else { Tied::Nowhere };
                out.ordered.push((claim.clone(), provision));
            } else {
                out.open.push((claim.clone(), Offers::new(at, claim, &taken, claims.len()), provision));
            }
        }
        out.open.sort_by_key(|(claim, ..)| claim.request);
        Some(out)
    }

    /// Gives claims the volumes there are; says whose have to be made, in order.
    fn given(&self, node: usize) -> (Vec<Planned>, Vec<(&Arc<Claim>, &Provision)>) {
        let mut given = Vec::with_capacity(self.ordered.len() + self.open.len());
        let mut rest: Vec<_> = self.ordered.iter().map(|(claim, provision)| (claim, provision)).collect();
        for (claim, offers, provision) in &self.open {
            match offers.best(node, &given) {
                Some(volume) => {
                    given.push(Planned { claim: claim.clone(), volume: Some(volume.name.clone()) });
                }
                None => rest.push((claim, provision)),
            }
        }
        (given, rest)
    }

    /// What every claim gets on that node, or which one gets nothing and why.
    pub fn plan(&self, node: usize) -> Result<Vec<Planned>, (Filter, &Claim)> {
        if self.tied != Tied::No
            && self.tied != Tied::To(node)
            && let Some((claim, _)) = self.ordered.first()
        {
            return Err((Filter::NoVolume, claim));
        }
        let (mut out, rest) = self.given(node);
        for (claim, provision) in rest {
            if let Some(rule) = provision.refuses(node) {
                return Err((rule, claim));
            }
            out.push(Planned { claim: claim.clone(), volume: None });
        }
        Ok(out)
    }

    /// Why claims get no volume on that node.
    pub fn refused(&self, node: usize) -> Option<Filter> {
        self.plan(node).err().map(|(rule, _)| rule)
    }
}

/// Does one of these use a claim that only one may use?
pub(super) fn is_used(claim: &str, by: &[Arc<PodView>]) -> bool {
    by.iter().any(|other| other.wants.exclusive.iter().any(|used| **used == *claim))
}

/// The disk that a pod there, or one that goes there first, does not share.
pub(super) fn disk_in_use<'a>(node: &NodeView, first: &[Arc<PodView>], pod: &'a PodView) -> Option<&'a Disk> {
    let others = || node.pods.iter().chain(first);
    let taken = |disk: &&Disk| others().flat_map(|p| &p.wants.disks).any(|d| d.conflicts(disk));
    pod.wants.disks.iter().find(taken)
}

/// The driver that would have to attach more volumes than it can, and its limit. Some pods go there first.
pub(super) fn over_attach_limit<'a>(
    node: &'a NodeView,
    first: &'a [Arc<PodView>],
    new: &'a [Volume],
) -> Option<(&'a str, i64)> {
    if node.attach_limits.is_empty() {
        return None;
    }
    // A volume several pods share is attached once.
    let mut attached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut attach = |volume: &'a Volume| {
        let Some(driver) = volume.driver.as_deref() else { return false };
        attached.entry(driver).or_default().insert(&volume.id)
    };
    for volume in node.pods.iter().chain(first).flat_map(|p| &p.wants.volumes) {
        attach(volume);
    }
    // Who brings nothing new may come, however many there are.
    let more: BTreeSet<&str> = new.iter().filter(|v| attach(v)).filter_map(|v| v.driver.as_deref()).collect();
    more.into_iter().find_map(|driver| {
        let limit = *node.attach_limits.get(driver)?;
        let count = attached.get(driver).map_or(0, BTreeSet::len);
        (i64::try_from(count).unwrap_or(i64::MAX) > limit).then_some((driver, limit))
    })
}

/// What the claims of a pod that have no volume get on a node; nothing if it would not do.
#[must_use]
pub fn planned(at: &Snapshot, pod: &PodView, node: NodeId) -> Vec<Planned> {
    let claims = Claims::new(at, &pod.wants.claims);
    claims.and_then(|claims| claims.plan(node.index()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;

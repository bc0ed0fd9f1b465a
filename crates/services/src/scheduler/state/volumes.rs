//! Volumes: what there is of them, and pods that have a node and wait for theirs.
//!
//! A pod whose claims get their volumes together with its node is reserved there, and what was decided is written. Then
//! it waits, without holding up others, until its claims are bound; then it is bound, too. If the volumes do not come, it
//! is taken back and looks for a node again.

use super::State;
use super::take::logged;
use crate::cluster::Change;
use crate::ctx::Now;
use crate::scheduler::execute::Action;
use crate::scheduler::queue::{Helps, Pending};
use crate::scheduler::volumes::{Provided, Provision};
use crate::scheduler::watched::StorageMessage;
use jiff::{SignedDuration, Timestamp};
use loadline_api::Context;
use loadline_api::context::{Claim, PersistentVolume, Standing};
use loadline_api::pod::Pod;
use loadline_core::object::{Key, Meta};
use loadline_core::view::NodeView;
use loadline_core::view::volumes::Planned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long volumes may take, as kube-scheduler has it.
const PATIENCE: Duration = Duration::from_mins(10);

/// A pod whose volumes are on their way.
#[derive(Debug)]
struct Waiting {
    pod: Arc<Pending>,
    node: Arc<str>,
    /// What there is to say about its node.
    remark: Option<String>,
    planned: Vec<Planned>,
    /// Has everything been written?
    written: bool,
    until: Instant,
}

/// Pods whose volumes are on their way.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// By uid.
    pods: BTreeMap<Arc<str>, Waiting>,
    /// May some have come, or be lost, since they were last looked at?
    pub changed: bool,
}

impl Waits {
    /// When the first has waited too long.
    pub fn due(&self) -> Option<Instant> {
        self.pods.values().map(|waiting| waiting.until).min()
    }
}

/// Pods on nodes by the claims they use.
#[derive(Debug, Default)]
pub(super) struct Claimants {
    pods: BTreeMap<Key, Pod>,
    users: BTreeMap<Key, BTreeSet<Key>>,
}

impl Claimants {
    /// A pod is on a node, or is not.
    pub fn set(&mut self, meta: &Meta, placed: Option<&Pod>) {
        self.remove(&meta.key);
        let Some(pod) = placed.filter(|pod| pod.claims().next().is_some()) else { return };
        for claim in pod.claims() {
            let claim = Key::new(&*meta.key.namespace, claim);
            self.users.entry(claim).or_default().insert(meta.key.clone());
        }
        self.pods.insert(meta.key.clone(), pod.clone());
    }

    /// A pod is gone.
    pub fn remove(&mut self, pod: &Key) {
        let Some(known) = self.pods.remove(pod) else { return };
        for claim in known.claims() {
            let claim = Key::new(&*pod.namespace, claim);
            if let Some(users) = self.users.get_mut(&claim) {
                users.remove(pod);
                if users.is_empty() {
                    self.users.remove(&claim);
                }
            }
        }
    }
}

/// What has become of the volumes of a pod.
enum Progress {
    Waiting,
    Bound,
    Failed(String),
}

impl State {
    /// What there is of storage. Says whether something is there that was not so before.
    pub(super) fn take_storage(&mut self, message: StorageMessage, now: Now) -> bool {
        let Self { informers: i, context, cluster, .. } = self;
        match message {
            StorageMessage::Claim(event) => {
                let change = i.claims.apply(logged("persistentvolumeclaims", event), now.clock);
                self.take_claim(change, now)
            }
            StorageMessage::Volume(event) => {
                let change = i.volumes.apply(logged("persistentvolumes", event), now.clock);
                self.take_volume(change)
            }
            StorageMessage::Class(event) => {
                let change = i.storage_classes.apply(logged("storageclasses", event), now.clock);
                for (meta, ()) in &change.deleted {
                    context.remove_storage_class(&meta.key.name);
                    cluster.storage_mut().remove_class(&meta.key.name);
                }
                change
                    .facts()
                    .map(|class| {
                        cluster.storage_mut().set_class(class.offer.clone());
                        context.set_storage_class(class);
                    })
                    .is_some()
            }
            StorageMessage::Driver(event) => {
                let change = i.csi_drivers.apply(logged("csidrivers", event), now.clock);
                let storage = cluster.storage_mut();
                change.deleted.iter().for_each(|(meta, ())| storage.untrack(&meta.key.name));
                let Some(driver) = change.facts() else { return false };
                if driver.tracked {
                    storage.track(driver.name.into());
                } else {
                    storage.untrack(&driver.name);
                }
                true
            }
            StorageMessage::Capacity(event) => {
                let change = i.capacities.apply(logged("csistoragecapacities", event), now.clock);
                let storage = cluster.storage_mut();
                change.deleted.iter().for_each(|(meta, ())| storage.remove_capacity(&meta.key));
                change.facts().map(|one| storage.set_capacity(one.key, one.capacity)).is_some()
            }
        }
    }

    fn take_claim(&mut self, change: Change<Claim, Option<u64>>, now: Now) -> bool {
        self.waits.changed |= !change.deleted.is_empty();
        for (Meta { key, .. }, _) in &change.deleted {
            self.context.remove_claim(&key.namespace, &key.name);
        }
        let Some((meta, facts)) = change.applied else { return false };
        if let Some(known) = self.informers.claims.value_mut(&meta.key) {
            *known = meta.revision;
        }
        self.waits.changed = true;
        let Some(claim) = facts else { return false };
        if let Some(node) = claim.asks.node.as_ref().filter(|_| claim.standing != Standing::Bound) {
            let patience = SignedDuration::try_from(PATIENCE).unwrap_or(SignedDuration::MAX);
            let until = now.clock.checked_add(patience).unwrap_or(Timestamp::MAX);
            self.cluster.await_volume(&meta.key, node, until);
        }
        self.context.set_claim(claim);
        self.resolve_users(&meta.key);
        true
    }

    fn take_volume(&mut self, change: Change<Box<PersistentVolume>, Option<u64>>) -> bool {
        self.waits.changed |= !change.deleted.is_empty();
        for (meta, _) in &change.deleted {
            self.context.remove_volume(&meta.key.name);
            self.cluster.storage_mut().remove_volume(&meta.key.name);
        }
        let Some((meta, facts)) = change.applied else { return false };
        if let Some(known) = self.informers.volumes.value_mut(&meta.key) {
            *known = meta.revision;
        }
        self.waits.changed = true;
        let Some(volume) = facts else { return false };
        self.cluster.storage_mut().set_volume(volume.offer.clone());
        let claim = volume.offer.claimed.as_ref().map(|(claim, _)| claim.clone());
        self.context.set_volume(*volume);
        if let Some(claim) = claim {
            self.resolve_users(&claim);
        }
        true
    }

    /// Pods on nodes that use a claim count with what is behind it now.
    fn resolve_users(&mut self, claim: &Key) {
        let Self { claimants: Claimants { pods, users }, context, cluster, .. } = self;
        for key in users.get(claim).into_iter().flatten() {
            let Some(pod) = pods.get_mut(key) else { continue };
            let before = pod.facts.wants.clone();
            pod.resolve(context);
            if pod.facts.wants != before {
                cluster.set_pod(&pod.facts);
            }
        }
    }

    /// A pod with what its claims are now.
    pub(super) fn resolved(&mut self, pod: Arc<Pending>) -> Arc<Pending> {
        if pod.pod.claims().next().is_none() {
            return pod;
        }
        let mut new = Pending::clone(&pod);
        new.pod.resolve(&self.context);
        if new.pod.facts.wants == pod.pod.facts.wants {
            return pod;
        }
        new.view = self.cluster.view(&new.pod.facts);
        Arc::new(new)
    }

    /// What has to be written so that the claims of a pod get what was decided. The pod waits from now on.
    pub(super) fn provide(
        &mut self,
        pod: Arc<Pending>,
        (node, remark): (Arc<str>, Option<String>),
        planned: Vec<Planned>,
        now: Now,
    ) -> Action {
        let writes = planned.iter().filter_map(|planned| self.provision(planned, &node)).collect();
        let waiting = Waiting {
            pod: pod.clone(),
            node: node.clone(),
            remark,
            planned,
            written: false,
            until: now.at + PATIENCE,
        };
        self.waits.pods.insert(pod.meta.uid.clone(), waiting);
        Action::Provide { pod, node, writes }
    }

    /// Nothing if it says so already.
    fn provision(&self, planned: &Planned, node: &Arc<str>) -> Option<Provision> {
        let Planned { claim, volume } = planned;
        let known = |key: &Key| self.informers.claims.store().get(key).copied().flatten();
        let meta = Meta { key: claim.key.clone(), uid: claim.uid.clone(), revision: known(&claim.key) };
        let Some(name) = volume else {
            let make = claim.node.as_ref() != Some(node);
            return make.then(|| Provision::Make { claim: meta, node: node.clone() });
        };
        let volume = &self.context.find_volume(name)?.offer;
        if volume.claimed.as_ref().is_some_and(|(key, uid)| *key == claim.key && *uid == claim.uid) {
            return None;
        }
        let key = Key::new("", &**name);
        let revision = self.informers.volumes.store().get(&key).copied().flatten();
        let is_for = volume.is_for(claim);
        Some(Provision::Give {
            volume: Meta { key, uid: Arc::default(), revision },
            claim: meta,
            meant: is_for,
        })
    }

    /// What became of the writes.
    pub(super) fn provided(
        &mut self,
        pod: &Pending,
        written: Vec<Provided>,
        failed: Option<String>,
        now: Now,
    ) {
        for one in written {
            match one {
                Provided::Volume(meta, read) => {
                    let change = self.informers.volumes.wrote(meta, read);
                    self.take_volume(change);
                }
                Provided::Claim(meta, read) => {
                    let change = self.informers.claims.wrote(meta, read.map(|claim| *claim));
                    self.take_claim(change, now);
                }
            }
        }
        match failed {
            None => {
                if let Some(waiting) = self.waits.pods.get_mut(&pod.meta.uid) {
                    waiting.written = true;
                    self.waits.changed = true;
                }
            }
            // Most likely somebody else changed it: what is decided next time takes that into account.
            Some(why) => {
                tracing::warn!(pod = %pod.meta.key, why, "volumes not bound");
                self.waits.pods.remove(&pod.meta.uid);
                self.give_back(&pod.meta, now);
                self.backoff(pod, now);
            }
        }
    }

    /// Pods that do not want their volumes any more do not wait for them.
    pub(super) fn look_after_volumes(&mut self, now: Now) {
        let Self { waits, queue, .. } = self;
        waits.changed |= waits.due().is_some_and(|due| due <= now.at);
        let gone = waits.pods.extract_if(.., |uid, waiting| !queue.is_in_flight(&waiting.pod.meta.key, uid));
        for (_, waiting) in gone.collect::<Vec<_>>() {
            self.give_back(&waiting.pod.meta, now);
        }
    }

    /// A pod whose volumes have come, or will not.
    pub(super) fn volumes_done(&mut self, now: Now) -> Option<Action> {
        if !self.waits.changed {
            return None;
        }
        let found =
            self.waits.pods.iter().filter(|(_, waiting)| waiting.written).find_map(|(uid, waiting)| {
                let node = self.cluster.find_node(&waiting.node);
                let progress = match node {
                    None => Progress::Failed(format!("node {:?} is gone", waiting.node)),
                    Some(node) => progress(waiting, node, &self.context),
                };
                match progress {
                    Progress::Waiting if waiting.until <= now.at => {
                        Some((uid.clone(), Some("timed out waiting for the condition".to_owned())))
                    }
                    Progress::Waiting => None,
                    Progress::Bound => Some((uid.clone(), None)),
                    Progress::Failed(why) => Some((uid.clone(), Some(why))),
                }
            });
        let Some((uid, failed)) = found else {
            self.waits.changed = false;
            return None;
        };
        let Waiting { pod, node, remark, .. } = self.waits.pods.remove(&uid)?;
        let Some(why) = failed else {
            self.cluster.renew(&uid, now.clock);
            return Some(Action::Bind { pod, node, remark });
        };
        tracing::warn!(pod = %pod.meta.key, %node, why, "volumes did not come");
        self.give_back(&pod.meta, now);
        let why = self.retellings.why(&pod, format!("binding volumes: {why}"), now);
        Some(Action::Refuse { pod, why, helps: Helps::ANY, forfeits: true })
    }
}

/// How far are the volumes of a pod?
fn progress(waiting: &Waiting, node: &NodeView, context: &Context) -> Progress {
    let mut all = true;
    for Planned { claim, volume } in &waiting.planned {
        let name = &claim.key.name;
        let Some(known) = context.find_claim(&claim.key).filter(|known| known.asks.uid == claim.uid) else {
            return Progress::Failed(format!("persistentvolumeclaim {name:?} not found"));
        };
        let bound = known.volume.as_ref().filter(|_| known.standing == Standing::Bound);
        if volume.is_none() && bound.is_none() && known.asks.node.as_ref() != Some(&waiting.node) {
            // That is how a provisioner says that it cannot, and that another node is to be tried.
            return Progress::Failed(format!("provisioning failed for PVC {name:?}"));
        }
        let found = volume.as_deref().or(known.volume.as_deref()).and_then(|name| context.find_volume(name));
        match (found, volume) {
            (None, Some(gone)) => return Progress::Failed(format!("persistentvolume {gone:?} not found")),
            (Some(found), _) if !found.offer.reachable.matches(&node.name, &node.labels) => {
                let (volume, node) = (&found.name, &node.name);
                return Progress::Failed(format!("pv {volume:?} node affinity doesn't match node {node:?}"));
            }
            (Some(found), _) if !found.offer.is_for(&known.asks) => {
                return Progress::Failed(format!("ClaimRef got reset for pv {:?}", found.name));
            }
            // It may not have been heard of yet.
            (None, None) => all = false,
            (Some(_), _) => all &= bound.is_some(),
        }
    }
    if all { Progress::Bound } else { Progress::Waiting }
}

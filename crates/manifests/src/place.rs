//! Which fleet do the objects describe, and which placements are asked about?

use crate::definition::Definitions;
use crate::kind::Kind;
use crate::manifest::{Manifest, Manifests};
use crate::problem::{Problem, Problems};
use loadline_api::ocm::cel::CelJudge;
use loadline_api::ocm::{DEFINITIONS, decision, fleet, placement};
use loadline_core::object::Key;
use loadline_core::place::{Fleet, Options};
use serde_json::Value;
use std::collections::BTreeMap;

/// A fleet with its placements.
#[derive(Debug)]
pub struct PlaceInput {
    pub fleet: Fleet,
    /// Who knows what expressions about its clusters come to.
    pub judge: CelJudge,
    /// Each published `PlacementDecision`, as it was written.
    pub decisions: BTreeMap<Key, Value>,
    /// What is odd about each placement.
    pub notes: BTreeMap<Key, Vec<String>>,
    /// What is odd about everything else.
    pub warnings: Vec<Problem>,
}

impl PlaceInput {
    /// Every kind that is read.
    pub const KINDS: &[Kind] = &[
        Kind::PLACEMENT,
        Kind::MANAGED_CLUSTER,
        Kind::MANAGED_CLUSTER_SET,
        Kind::MANAGED_CLUSTER_SET_BINDING,
        Kind::PLACEMENT_DECISION,
        Kind::ADD_ON_PLACEMENT_SCORE,
    ];

    /// Makes of the objects the fleet they describe.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(mut manifests: Manifests, options: Options) -> Result<Self, Problems> {
        manifests.validate(&Definitions::new(&DEFINITIONS));
        Self::gather(manifests, options, |_| {})
    }

    /// The same of a hub, to explain one placement. Its objects are what its server has taken and completed, so they are read as the
    /// controller reads them; and what somebody else has written there is left out if it makes no sense, with a warning.
    ///
    /// # Errors
    /// What is wrong with that placement.
    pub fn of_hub(mut manifests: Manifests, options: Options, about: &Key) -> Result<Self, Problems> {
        let meant = |object: &&Manifest| object.kind == Kind::PLACEMENT && object.full_key() == *about;
        let meant = manifests.objects().iter().find(meant).map(|object| object.location.clone());
        // Problems so far are of what could not even be identified.
        manifests.forgive(|_| true);
        Self::gather(manifests, options, |manifests| {
            manifests.forgive(|problem| meant.is_none() || problem.location != meant);
        })
    }

    fn gather(
        mut manifests: Manifests,
        options: Options,
        settle: impl FnOnce(&mut Manifests),
    ) -> Result<Self, Problems> {
        let mut fleet = Fleet::new(options);
        let judge = clusters(&mut manifests, &mut fleet);
        sets(&mut manifests, &mut fleet);
        let decisions = decisions(&mut manifests, &mut fleet);
        let notes = placements(&mut manifests, &mut fleet);
        settle(&mut manifests);
        let (fleet, warnings) = manifests.finish(Some(fleet))?;
        Ok(Self { fleet, judge, decisions, notes, warnings })
    }
}

/// The clusters. Expressions see each of them as a whole.
fn clusters(manifests: &mut Manifests, fleet: &mut Fleet) -> CelJudge {
    let mut judge = CelJudge::new();
    for mut object in manifests.take(Kind::MANAGED_CLUSTER) {
        if let Some(cluster) = manifests.tolerant(&mut object, fleet::cluster) {
            judge.set_cluster(&cluster, &object.tree());
            fleet.set_cluster(cluster);
        }
    }
    judge
}

/// Sets of clusters, who may use these, and scores of others.
fn sets(manifests: &mut Manifests, fleet: &mut Fleet) {
    for object in manifests.take(Kind::MANAGED_CLUSTER_SET) {
        if let Some((name, members)) = manifests.must(&object, fleet::set) {
            fleet.set_set(&name, members);
        }
    }
    for (namespace, set) in manifests.required_all(Kind::MANAGED_CLUSTER_SET_BINDING, fleet::binding) {
        fleet.bind(&namespace, &set);
    }
    for object in manifests.take(Kind::ADD_ON_PLACEMENT_SCORE) {
        if let Some((cluster, name, scores)) = manifests.optional(&object, fleet::scores) {
            fleet.set_scores(&cluster, &name, scores);
        }
    }
}

/// What is published.
fn decisions(manifests: &mut Manifests, fleet: &mut Fleet) -> BTreeMap<Key, Value> {
    let mut decisions = BTreeMap::new();
    for mut object in manifests.take(Kind::PLACEMENT_DECISION) {
        let Some(slice) = manifests.tolerant(&mut object, decision::read) else { continue };
        decisions.insert(slice.key.clone(), object.value);
        fleet.set_slice(slice);
    }
    decisions
}

/// What is asked, and what is odd about each.
fn placements(manifests: &mut Manifests, fleet: &mut Fleet) -> BTreeMap<Key, Vec<String>> {
    let mut notes = BTreeMap::new();
    for object in manifests.take(Kind::PLACEMENT) {
        if let Some((placement, warnings)) = manifests.must(&object, placement::read) {
            let told = warnings.into_iter().map(|one| one.problem.to_string()).collect();
            notes.insert(placement.key.clone(), told);
            fleet.set_placement(placement);
        }
    }
    notes
}

//! What do the objects of a cluster, saved to files, say of how it is?

use crate::kind::Kind;
use crate::manifest::Manifests;
use crate::problem::{Problem, Problems};
use crate::protect;
use jiff::Timestamp;
use loadline_api::json::Tree;
use loadline_api::{doctor, metrics, recommendation};
use loadline_core::doctor::{Facts, Known};
use loadline_core::qos::metric::Catalogue;

/// Facts about a cluster, from files.
#[derive(Debug)]
pub struct DoctorInput {
    /// What no file speaks of was not asked for.
    pub facts: Facts,
    /// What is worth knowing about them.
    pub warnings: Vec<Problem>,
}

impl DoctorInput {
    /// Every kind that is read.
    pub const KINDS: &[Kind] = &[
        Kind::LOAD_POLICY,
        Kind::LOAD_SETTINGS,
        Kind::NODE_QOS,
        Kind::POD_QOS,
        Kind::AVOIDANCE_ACTION,
        Kind::NODE_QOS_ENSURANCE_POLICY,
        Kind::POD_QOS_ENSURANCE_POLICY,
        Kind::SERVICE_POLICY,
        Kind::NODE,
        Kind::NODE_METRICS,
        Kind::RECOMMENDATION,
        Kind::LEASE,
        Kind::DEFINITION,
        Kind::DEPLOYMENT,
        Kind::DAEMON_SET,
    ];

    /// Takes everything, as of that moment.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(mut manifests: Manifests, now: Timestamp) -> Result<Self, Problems> {
        let has = |manifests: &Manifests, kind: Kind| manifests.objects.iter().any(|one| one.kind == kind);
        let asked = [Kind::NODE_METRICS, Kind::LEASE, Kind::DEFINITION, Kind::RECOMMENDATION, Kind::NODE]
            .map(|kind| has(&manifests, kind));
        let [metrics_asked, leases_asked, definitions_asked, recommendations_asked, nodes_asked] = asked;
        let workloads_asked = has(&manifests, Kind::DEPLOYMENT) || has(&manifests, Kind::DAEMON_SET);
        let catalogue = Catalogue::default();
        protect::bring_up_to_date(&mut manifests);
        let rules_asked = has(&manifests, Kind::NODE_QOS);
        protect::validate(&mut manifests, &catalogue);
        let rules = manifests.load_rules();
        let lines = protect::asked_for(&mut manifests, catalogue);
        let mut nodes = manifests.tolerant_all(Kind::NODE, doctor::node);
        nodes.sort_by(|a, b| a.facts.name.cmp(&b.facts.name));
        let sample = |tree: &Tree<'_>| metrics::node(tree).map(|sample| (sample, Vec::new()));
        let metrics = observed(&mut manifests, Kind::NODE_METRICS, sample);
        let leases = observed(&mut manifests, Kind::LEASE, doctor::lease);
        let definitions = observed(&mut manifests, Kind::DEFINITION, doctor::definition);
        let recommendations = observed(&mut manifests, Kind::RECOMMENDATION, recommendation::read);
        let mut workloads = Vec::new();
        for kind in [Kind::DEPLOYMENT, Kind::DAEMON_SET] {
            workloads.extend(observed(&mut manifests, kind, |tree| doctor::workload(kind.name, tree)));
        }
        let facts = Facts {
            now,
            rules,
            nodes: known(nodes_asked, nodes),
            metrics: known(metrics_asked, metrics),
            leases: known(leases_asked, leases),
            definitions: known(definitions_asked, definitions),
            recommendations: known(recommendations_asked, recommendations.into_iter().flatten().collect()),
            lines: known(rules_asked, lines),
            workloads: known(workloads_asked, workloads),
            ..Facts::default()
        };
        let (facts, warnings) = manifests.finish(Some(facts))?;
        Ok(Self { facts, warnings })
    }
}

/// The objects of a kind that can be read; the others are left out with a warning.
fn observed<T>(
    manifests: &mut Manifests,
    kind: Kind,
    read: impl Fn(&Tree<'_>) -> Result<(T, Vec<loadline_api::Warning>), loadline_api::Error>,
) -> Vec<T> {
    let objects = manifests.take_all(kind);
    objects.iter().filter_map(|object| manifests.optional(object, &read)).collect()
}

fn known<T>(asked: bool, value: T) -> Known<T> {
    if asked { Known::Read(value) } else { Known::Unasked }
}

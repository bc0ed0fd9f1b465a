//! Which pods should go elsewhere, in which cluster, and by which settings?

use crate::cluster::{self, Described};
use crate::kind::{self, Kind};
use crate::manifest::{Manifest, Manifests};
use crate::problem::{Problem, Problems};
use jiff::Timestamp;
use loadline_api::{metrics, rebalance};
use loadline_core::cluster::Cluster;
use loadline_core::ledger::{Sample, Uid};
use loadline_core::load::admit::AHEAD;
use loadline_core::object::Key;
use loadline_core::rebalance::{Moves, Off, Recent, SWITCH, Settings};

/// What was before the measurements that are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steady {
    /// Nobody knows.
    #[default]
    Unknown,
    /// The same, for long enough.
    Assumed,
}

/// A cluster whose nodes may be over their lines.
#[derive(Debug)]
pub struct RebalanceInput {
    pub cluster: Cluster,
    pub settings: Settings,
    pub recent: Recent,
    pub moves: Moves,
    pub off: Off,
    /// What is odd and bears on the plan.
    pub warnings: Vec<Problem>,
}

const KINDS: [Kind; 26] = kind::concat(&[&cluster::KINDS, &[Kind::REBALANCE_SETTINGS]]);

/// What was measured, before there is a cluster to say whose it is.
#[derive(Default)]
struct Samples {
    nodes: Vec<(String, Sample)>,
    pods: Vec<(Key, Sample)>,
}

impl RebalanceInput {
    /// Every kind that is read.
    pub const KINDS: &[Kind] = &KINDS;

    /// Makes of the objects the cluster they describe at that time, and what is known of the time before.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(mut manifests: Manifests, now: Timestamp, steady: Steady) -> Result<Self, Problems> {
        let settings = read_settings(&mut manifests);
        let mut recent = Recent::new(&settings);
        let (mut samples, mut moves, mut off) = (Samples::default(), Moves::default(), Off::default());
        for object in manifests.objects() {
            look(object, &mut samples, &mut moves, &mut off);
        }
        samples.nodes.sort_by_key(|(_, sample)| sample.at);
        samples.pods.sort_by_key(|(_, sample)| sample.at);

        let described = cluster::describe(&mut manifests, now, &mut ());
        let (Described { cluster, .. }, warnings) = manifests.finish(Some(described))?;
        let earlier = |sample: &Sample| {
            let at = sample.at.checked_sub(settings.over_for).unwrap_or(sample.at);
            (steady == Steady::Assumed).then_some(Sample { at, ..*sample })
        };
        let is_now = |sample: &Sample| sample.at.duration_since(now) <= AHEAD;
        for (name, sample) in samples.nodes.iter().filter(|(_, sample)| is_now(sample)) {
            let Some(id) = cluster.find_node(name).map(|node| node.id) else { continue };
            earlier(sample).into_iter().chain([*sample]).for_each(|sample| recent.node(id, sample));
        }
        for (key, sample) in samples.pods.iter().filter(|(_, sample)| is_now(sample)) {
            let Some(uid) = cluster.uid(key) else { continue };
            recent.pod(Uid::new(uid), *sample);
        }
        moves.expire(now, settings.dwell);
        Ok(Self { cluster, settings, recent, moves, off, warnings })
    }
}

/// The settings alone, from a file of their own.
#[derive(Debug)]
pub struct RebalanceSettingsInput {
    pub settings: Settings,
}

impl RebalanceSettingsInput {
    /// Every kind that is read.
    pub const KINDS: &[Kind] = &[Kind::REBALANCE_SETTINGS];

    /// Takes the one object.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(mut manifests: Manifests) -> Result<Self, Problems> {
        let settings = read_settings(&mut manifests);
        let (settings, _) = manifests.finish(Some(settings))?;
        Ok(Self { settings })
    }
}

/// Takes out the settings; the defaults where there are none or something is wrong with them.
fn read_settings(manifests: &mut Manifests) -> Settings {
    let Some(object) = manifests.sole(Kind::REBALANCE_SETTINGS) else { return Settings::default() };
    rebalance::settings(&object.tree()).unwrap_or_else(|problems| {
        manifests.problems.extend(problems.into_iter().map(|one| object.problem(one.path, one.message)));
        Settings::default()
    })
}

/// What cannot be read is told of when the cluster is made.
fn look(object: &Manifest, samples: &mut Samples, moves: &mut Moves, off: &mut Off) {
    let annotation = |name: &str| object.value["metadata"]["annotations"][name].as_str();
    let name = object.key().name;
    match object.kind {
        Kind::NODE_METRICS => samples.nodes.extend(metrics::node(&object.tree()).ok()),
        Kind::POD_METRICS => samples.pods.extend(metrics::pod(&object.tree()).ok()),
        Kind::NODE => {
            let said = annotation(rebalance::MOVED).unwrap_or_default();
            for one in rebalance::moved(&name, said) {
                moves.note(one);
            }
        }
        Kind::NAMESPACE if annotation(SWITCH) == Some("off") => off.namespaces.extend([name]),
        _ => {}
    }
}

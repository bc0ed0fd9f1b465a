//! What we make of a fleet, from the same objects.

use super::{Group, Result, Said, Slice, key};
use jiff::Timestamp;
use loadline_api::json::Tree;
use loadline_api::ocm::cel::CelJudge;
use loadline_api::ocm::{decision, fleet, placement};
use loadline_core::object::Key;
use loadline_core::place::{Action, Fleet, Members, OnMisconfigured, Options, Outcome, Placement, Report};
use loadline_core::select::LabelSelector;
use serde_json::Value;
use std::sync::Arc;

/// As others decide: no totals in what is published, and nothing is kept after a mistake.
const PARITY: Options = Options { on_misconfigured: OnMisconfigured::Clear, publish_scores: false };

/// The objects of a fleet as they are stored.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub clusters: Vec<Value>,
    pub sets: Vec<Value>,
    pub bindings: Vec<Value>,
    pub scores: Vec<Value>,
    pub placements: Vec<Value>,
    pub decisions: Vec<Value>,
}

/// Our engine, fed with them.
#[derive(Clone)]
pub struct Ours {
    fleet: Fleet,
    judge: Arc<CelJudge>,
}

/// A placement as we read it.
pub fn read(object: &Value) -> Placement {
    placement::read(&Tree::from(object)).expect("a placement").0
}

impl Ours {
    pub fn new(objects: &Objects, options: Options) -> Self {
        let (mut fleet, mut judge) = (Fleet::new(options), CelJudge::new());
        for one in &objects.clusters {
            let cluster = fleet::cluster(&Tree::from(one)).expect("a cluster").0;
            judge.set_cluster(&cluster, &Tree::from(one));
            fleet.set_cluster(cluster);
        }
        for one in &objects.sets {
            let (name, members) = fleet::set(&Tree::from(one)).expect("a set");
            fleet.set_set(&name, members);
        }
        for one in &objects.bindings {
            let ((namespace, set), _) = fleet::binding(&Tree::from(one)).expect("a binding");
            fleet.bind(&namespace, &set);
        }
        Self::with(fleet, judge, objects)
    }

    /// As others decide.
    pub fn parity(objects: &Objects) -> Self {
        Self::new(objects, PARITY)
    }

    /// As the controller answers questions: every cluster is a candidate, leaving or not.
    pub fn asked(objects: &Objects) -> Self {
        let (mut fleet, mut judge) = (Fleet::new(PARITY), CelJudge::new());
        for one in &objects.clusters {
            let mut cluster = fleet::cluster(&Tree::from(one)).expect("a cluster").0;
            cluster.leaving = false;
            judge.set_cluster(&cluster, &Tree::from(one));
            fleet.set_cluster(cluster);
        }
        fleet.set_set("*", Members::Labels(Some(LabelSelector::default())));
        for namespace in objects.placements.iter().map(|one| key(one).0) {
            fleet.bind(&namespace, "*");
        }
        let mut out = Self::with(fleet, judge, objects);
        for one in &objects.placements {
            out.fleet.set_placement(Placement { cluster_sets: Vec::new(), disabled: false, ..read(one) });
        }
        out
    }

    fn with(fleet: Fleet, judge: CelJudge, objects: &Objects) -> Self {
        let mut out = Self { fleet, judge: Arc::new(judge) };
        for one in &objects.scores {
            let ((cluster, name, scores), _) = fleet::scores(&Tree::from(one)).expect("scores");
            out.fleet.set_scores(&cluster, &name, scores);
        }
        for one in &objects.decisions {
            out.fleet.set_slice(decision::read(&Tree::from(one)).expect("a decision").0);
        }
        for one in &objects.placements {
            out.fleet.set_placement(read(one));
        }
        out
    }

    /// Another wish.
    pub fn set(&mut self, placement: Placement) {
        self.fleet.set_placement(placement);
    }

    /// Decides all placements once.
    pub fn settle_once(&mut self) {
        self.fleet.decide(&*self.judge, Timestamp::now());
    }

    /// Decides until nothing is left to write, as a controller does that hears of its own writing.
    pub fn settle(&mut self) {
        let now = Timestamp::now();
        for _ in 0..20 {
            let outcomes = self.fleet.decide(&*self.judge, now);
            let writes: Vec<_> = outcomes.iter().flat_map(|one| one.writes.clone()).collect();
            let mut quiet = true;
            for write in writes {
                match write.action {
                    Action::None => continue,
                    Action::Create | Action::Patch => self.fleet.set_slice(write.slice.clone()),
                    Action::Delete => {
                        self.fleet.remove_slice(&write.slice.key);
                    }
                }
                quiet = false;
            }
            if quiet {
                return;
            }
        }
        unreachable!("no placement swaps clusters for ever");
    }

    /// What was last decided.
    pub fn outcome(&self, key: &(String, String)) -> Arc<Outcome> {
        self.fleet.outcome(&Key::new(&*key.0, &*key.1)).expect("decided").clone()
    }

    /// What would be decided now, and why.
    pub fn report(&mut self, key: &(String, String)) -> Report {
        let key = Key::new(&*key.0, &*key.1);
        self.fleet.report(&key, &*self.judge, Timestamp::now()).expect("a placement")
    }

    /// What is published and said. Slices are what the last writes left.
    pub fn result(&self, key: &(String, String)) -> Result {
        let outcome = self.outcome(key);
        let count = |number: usize| i64::try_from(number).expect("not that many");
        let mut slices: Vec<Slice> = outcome
            .writes
            .iter()
            .filter(|write| write.action != Action::Delete)
            .map(|write| Slice {
                name: write.slice.key.name.to_string(),
                labels: write.slice.labels.clone(),
                clusters: write.slice.entries.iter().map(|entry| entry.cluster.to_string()).collect(),
            })
            .collect();
        slices.sort_by(|a, b| a.name.cmp(&b.name));
        let group = |(index, group): (usize, &loadline_core::place::Group)| Group {
            index: count(index),
            name: group.name.clone(),
            slices: group.slices.iter().map(ToString::to_string).collect(),
            clusters: count(group.clusters),
        };
        let mut said = outcome.conditions.iter().map(|one| Said {
            status: one.status,
            reason: one.reason.to_owned(),
            message: one.message.clone(),
        });
        Result {
            slices,
            selected: count(outcome.number_selected()),
            groups: outcome.groups.iter().enumerate().map(group).collect(),
            satisfied: said.next().unwrap_or_default(),
            misconfigured: said.next().unwrap_or_default(),
        }
    }
}

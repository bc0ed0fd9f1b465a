//! What is remembered of a plan? What came of it, not what was meant to.

use super::held::Entry;
use super::level::Level;
use super::phase::{Phases, RulePhase, cooled};
use super::plan::{Plan, Victim};
use super::policy::RuleName;
use super::snapshot::NodeSnapshot;
use super::state::{Departure, Eviction, Leaving, Reply, RuleState, State, Throttled};
use crate::object::Key;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What came of a plan when it was carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// What was replied for each victim; who is not in here was not asked to go.
    pub replies: BTreeMap<Key, Reply>,
    /// Containers, by their pod, whose quota was to be written and stayed as it was.
    pub unwritten: BTreeSet<(Key, Arc<str>)>,
    /// Those of which nobody knows whether it was: nobody answered, or nobody was left to hear it.
    pub unsure: BTreeSet<(Key, Arc<str>)>,
    /// Pods whose page cache the kernel was asked for.
    pub reclaimed: BTreeSet<Key>,
}

impl Results {
    /// Nobody knows what came of any of it. Who was asked to go is taken to go, so that nobody else has to.
    #[must_use]
    pub fn unknown(plan: &Plan) -> Self {
        let writes = plan.steps.writes.iter();
        Self {
            replies: plan.steps.victims.iter().map(|one| (one.pod.clone(), Reply::Granted)).collect(),
            unwritten: BTreeSet::new(),
            unsure: writes.map(|write| (write.pod.clone(), write.container.clone())).collect(),
            reclaimed: BTreeSet::new(),
        }
    }
}

/// How the quota of a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrote {
    AsPlanned,
    AsBefore,
    Either,
}

/// What the next state is made of.
#[derive(Clone, Debug)]
pub(super) struct Next {
    now: Timestamp,
    cycles: Option<u64>,
    /// Rules for this node, and whether they may be over.
    rules: Vec<(Arc<RuleName>, RulePhase, RuleState, bool)>,
    /// Rules that are gone.
    gone: BTreeMap<Arc<RuleName>, RuleState>,
    held: Vec<Entry>,
    /// Earlier ones that are still worth remembering.
    evictions: Vec<Eviction>,
}

impl Next {
    pub(super) fn new(phases: Phases<'_>, snapshot: &NodeSnapshot, held: Vec<Entry>) -> Self {
        // What a rule did that is only to say since stays as it is.
        let rules = phases.judged.into_iter().map(|rule| {
            let may_end = !rule.preview || rule.state.only_said;
            (rule.line.name.clone(), rule.phase, rule.state, may_end)
        });
        Self {
            now: snapshot.now,
            cycles: snapshot.state.cycles.map(|cycles| cycles.saturating_add(1)),
            rules: rules.collect(),
            gone: phases.gone,
            held,
            evictions: snapshot.state.kept(snapshot.now).cloned().collect(),
        }
    }
}

impl Plan {
    /// What the next cycle is to know, given what came of this one.
    #[must_use]
    pub fn settle(&self, results: &Results) -> State {
        let wrote = |entry: &Entry| {
            let Throttled { pod, container, .. } = entry.throttled();
            let key = (pod.clone(), container.clone());
            let (failed, unsure) = (results.unwritten.contains(&key), results.unsure.contains(&key));
            let is_planned =
                || self.steps.writes.iter().any(|write| write.pod == key.0 && write.container == key.1);
            match (failed || unsure) && is_planned() {
                false => Wrote::AsPlanned,
                true if unsure => Wrote::Either,
                true => Wrote::AsBefore,
            }
        };
        self.after(&wrote, &|victim| results.replies.get(&victim.pod).copied())
    }

    /// What the next cycle is to know if everything goes as planned: every pod goes, and every quota is written.
    #[must_use]
    pub fn as_planned(&self) -> State {
        self.after(&|_| Wrote::AsPlanned, &|_| Some(Reply::Granted))
    }

    fn after(&self, wrote: &dyn Fn(&Entry) -> Wrote, replied: &dyn Fn(&Victim) -> Option<Reply>) -> State {
        let Next { now, cycles, rules, gone, held, evictions } = &self.next;
        let left = |entry: &Entry| match wrote(entry) {
            Wrote::AsPlanned => entry.after().cloned(),
            Wrote::AsBefore => entry.before().cloned(),
            Wrote::Either => Some(entry.either()),
        };
        let throttled: Vec<Throttled> = held.iter().filter_map(left).collect();
        let asked = self.steps.victims.iter().filter_map(|victim| {
            Some(Eviction {
                pod: victim.pod.clone(),
                uid: victim.uid.clone(),
                at: *now,
                reply: replied(victim)?,
                grace_seconds: Some(victim.grace_seconds),
            })
        });
        // Who is gone already counts once.
        let leaving = self.steps.credited.iter().filter(|one| one.reason != Leaving::StillMeasured);
        let leaving = leaving.map(|one| (&one.pod, &one.uid, &one.release));
        let asked_now = self.steps.victims.iter().filter(|one| replied(one).is_some_and(Reply::is_granted));
        let asked_now = asked_now.map(|one| (&one.pod, &one.uid, &one.release));
        let departure = |(pod, uid, release): (&Key, &Arc<str>, &BTreeMap<&'static str, Level>)| Departure {
            pod: pod.clone(),
            uid: uid.clone(),
            release: release.clone(),
        };
        State {
            leaving: leaving.chain(asked_now).map(departure).collect(),
            cycles: *cycles,
            rules: after_rules(rules, gone, &throttled, *now),
            evictions: evictions.iter().cloned().chain(asked).collect(),
            throttled,
        }
    }
}

/// Where every rule is, once that is slowed down.
fn after_rules(
    rules: &[(Arc<RuleName>, RulePhase, RuleState, bool)],
    gone: &BTreeMap<Arc<RuleName>, RuleState>,
    throttled: &[Throttled],
    now: Timestamp,
) -> BTreeMap<Arc<RuleName>, RuleState> {
    let slowed = || throttled.iter().filter(|entry| entry.is_slowed());
    let caused = |name: &Arc<RuleName>| slowed().any(|entry| entry.rules.contains(name));
    let mut out = BTreeMap::new();
    for (name, phase, state, may_end) in rules {
        let mut state = state.clone();
        // Everything it caused is undone, and it has cooled: it is as if it had never been.
        if *phase == RulePhase::Restored && *may_end && !caused(name) && cooled(&state, now) {
            (state.active, state.restoring, state.below) = (false, false, 0);
            state.only_said = false;
        }
        out.insert(name.clone(), state);
    }
    for (name, state) in gone {
        if caused(name) || !cooled(state, now) {
            out.insert(name.clone(), state.clone());
        }
    }
    out
}

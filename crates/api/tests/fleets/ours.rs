//! What we say to the same question, in the same words.

use crate::generate::CLUSTERS;
use crate::oracle;
use loadline_api::json::Tree;
use loadline_api::{Context, karmada};
use loadline_core::divide::due::{Applied, due};
use loadline_core::divide::{
    Answer, Apis, Binding, Estimator, Failure, Given, Group, Member, Mode, Opinion, Options, divide, general,
};
use loadline_testkit::karmada::Decision;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A question: a fleet, a binding in it, and what estimators know.
#[derive(Clone)]
pub struct Question {
    pub members: Vec<Member>,
    pub binding: Binding,
    pub applied: Applied,
    pub estimators: Vec<Estimator>,
    /// Numbers that stand for all estimates of a cluster.
    pub replaced: BTreeMap<String, i32>,
    /// Whose estimate counts where we do as we do.
    pub mode: Mode,
    /// A spread that cannot be kept is told as Karmada tells it.
    pub spread_is_error: bool,
}

impl Question {
    /// From objects as they are in the API server.
    pub fn new(fleet: &[Value], binding: &Value, opinions: Option<&BTreeMap<String, Opinion>>) -> Self {
        let members = fleet
            .iter()
            .map(|cluster| karmada::cluster(&Tree::from(cluster)).expect("a cluster").0)
            .collect();
        let estimator = |opinions: &BTreeMap<_, _>| Estimator {
            name: "scheduler-estimator".into(),
            opinions: opinions.clone(),
        };
        Self {
            members,
            binding: karmada::binding(&Tree::from(binding), &Context::default()).expect("a binding").0,
            applied: karmada::applied(&Tree::from(binding)),
            estimators: opinions.map(estimator).into_iter().collect(),
            replaced: BTreeMap::new(),
            mode: Mode::default(),
            spread_is_error: false,
        }
    }

    /// How we do it.
    pub fn own(&self) -> Options {
        Options { mode: self.mode, ..Options::default() }
    }

    /// Our answer, if there is anything to decide.
    pub fn answer(&self, options: Options) -> Option<Answer> {
        let leaving = |name: &str| self.members.iter().any(|member| member.deleting && *member.name == *name);
        due(&self.binding, &self.applied, leaving)?;
        let given = Given {
            estimators: &self.estimators,
            replaced: self.replaced.clone(),
            options,
            ..Given::default()
        };
        Some(divide(&self.members, &self.binding, &given))
    }

    /// The same, as it would stand in the binding.
    pub fn decision(&self, options: Options) -> Decision {
        let before = || {
            self.binding.clusters.iter().map(|known| (known.name.clone(), known.replicas.into())).collect()
        };
        let Some(answer) = self.answer(options) else {
            let message = Answer::default().condition().message;
            return sorted(Decision { clusters: before(), reason: "Success".into(), message });
        };
        let written = answer
            .clusters
            .iter()
            .map(|target| (target.name.to_string(), target.replicas.unwrap_or(0).into()));
        let clusters = match &answer.failure {
            // Nothing is fit for it any more; any other failure leaves it where it is.
            None | Some(Failure::NoFit { .. }) => written.collect(),
            Some(_) => before(),
        };
        let condition = answer.condition();
        let reason = match answer.failure {
            Some(Failure::Spread(_)) if self.spread_is_error => "SchedulerError",
            _ => condition.reason,
        };
        sorted(Decision { clusters, reason: reason.into(), message: condition.message })
    }

    /// What the documents say should stand there, by a division that shares no code with ours.
    pub fn documented(&self) -> Decision {
        let leaving = |name: &str| self.members.iter().any(|member| member.deleting && *member.name == *name);
        if due(&self.binding, &self.applied, leaving).is_none() {
            return self.decision(self.own());
        }
        let sum = |member: &Member| {
            let (binding, assumed) = (&self.binding, &[]);
            let said = if binding.components.is_empty() {
                general::replicas(member, binding.ask.as_ref(), assumed, false)
            } else {
                general::sets(member, &binding.components, assumed, false)
            };
            (member.name.to_string(), said.count)
        };
        let expected = oracle::expected(&oracle::Question {
            members: &self.members,
            binding: &self.binding,
            sums: self.members.iter().map(sum).collect(),
            estimators: &self.estimators,
            replaced: self.replaced.clone(),
            options: self.own(),
        });
        let clusters = match expected.reason {
            "Success" | "NoClusterFit" => {
                expected.clusters.into_iter().map(|(name, replicas)| (name, replicas.unwrap_or(0))).collect()
            }
            _ => self
                .binding
                .clusters
                .iter()
                .map(|known| (known.name.clone(), known.replicas.into()))
                .collect(),
        };
        sorted(Decision { clusters, reason: expected.reason.into(), message: expected.message })
    }

    /// By cluster, every reason for which a filter would refuse it: each filter for itself.
    pub fn refusals(&self) -> BTreeMap<String, Vec<String>> {
        let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for kept in 0..5 {
            let mut alone = self.clone();
            alone.applied = Applied::Never;
            let (bound, placement) =
                (alone.binding.resource.clone(), alone.binding.placement.as_mut().expect("one"));
            let tried = placement.groups.iter().position(|group| group.name == alone.binding.observed);
            let group: Vec<Group> =
                placement.groups.iter().skip(tried.unwrap_or(0)).take(1).cloned().collect();
            placement.groups = group;
            if kept != 0 {
                alone.binding.evicting.clear();
            }
            if kept != 1 {
                placement.groups.clear();
                placement.affinity = None;
            }
            if kept != 2 {
                alone.members.iter_mut().for_each(|member| member.taints.clear());
            }
            if kept != 3 {
                let served: Apis = [(bound.api_version, [bound.kind].into())].into();
                let served = Arc::new(served);
                alone.members.iter_mut().for_each(|member| member.apis = served.clone());
            }
            if kept != 4 {
                placement.spread.clear();
            }
            let answer = alone.answer(upstream()).expect("it was never divided");
            for refused in answer.filtered {
                out.entry(refused.name.to_string()).or_default().push(refused.reason.to_string());
            }
        }
        out
    }
}

fn sorted(mut decision: Decision) -> Decision {
    decision.clusters.sort();
    decision
}

/// As Karmada does it.
pub fn upstream() -> Options {
    Options { upstream: true, mode: Mode::Min, ..Options::default() }
}

/// How to ask `loadline what-if divide` the same: the documents, and flags for what estimators said.
pub fn reproduction(fleet: &[Value], binding: &Value, question: &Question) -> String {
    let mut binding = binding.clone();
    binding["metadata"].as_object_mut().expect("an object").remove("managedFields");
    let documents: Vec<String> = fleet.iter().chain([&binding]).map(Value::to_string).collect();
    let said = question.estimators.iter().flat_map(|estimator| &estimator.opinions);
    let flags: Vec<String> = said.map(|(cluster, opinion)| format!("{cluster}={opinion:?}")).collect();
    let fits: Vec<String> = question
        .answer(upstream())
        .iter()
        .flat_map(|answer| &answer.feasible)
        .filter(|_| !flags.is_empty())
        .map(|cluster| format!("--estimate {}={}", cluster.name, cluster.allocatable))
        .collect();
    format!(
        "loadline what-if divide {} <<END\n{}\nEND\nestimators: {}",
        fits.join(" "),
        documents.join("\n---\n"),
        flags.join(" ")
    )
}

/// Opinions for a binding, by chance.
pub fn opinions(dice: &mut crate::dice::Dice) -> BTreeMap<String, Opinion> {
    let dead = dice.chance(15).then(|| dice.pick(&CLUSTERS));
    let opinion = |cluster: &str, dice: &mut crate::dice::Dice| match dead {
        Some(dead) if dead == cluster => Opinion::Failed("it is not there".into()),
        _ if dice.chance(10) => Opinion::Count(-1),
        _ => Opinion::Count(i32::try_from(dice.range(0, 12)).expect("small")),
    };
    CLUSTERS.iter().map(|cluster| ((*cluster).to_owned(), opinion(cluster, dice))).collect()
}

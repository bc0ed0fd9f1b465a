//! Small fleets with the arithmetic written out. Random ones are in `random`.

mod counterfactual;
mod division;
mod estimating;
mod filtering;
mod random;
mod spreading;

use super::*;
use crate::quantity::Quantity;
use crate::resources::List;

pub fn list(amounts: &[(&str, &str)]) -> List {
    let parsed =
        |(name, amount): &(&str, &str)| ((*name).to_owned(), amount.parse::<Quantity>().expect("a quantity"));
    amounts.iter().map(parsed).collect()
}

/// A cluster that serves Deployments, with that much free and places for 1100 pods.
pub fn member(name: &str, free: &[(&str, &str)]) -> Member {
    let mut all = list(&[("pods", "1100")]);
    all.extend(list(free));
    let kinds = BTreeSet::from(["Deployment".to_owned()]);
    Member {
        name: name.into(),
        apis: Arc::new(BTreeMap::from([("apps/v1".to_owned(), kinds)])),
        summary: Some(Summary::new(&all, &List::new(), &List::new())),
        ..Member::default()
    }
}

/// Clusters with so many free cores.
pub fn fleet(cores: &[(&str, i64)]) -> Vec<Member> {
    cores.iter().map(|(name, cores)| member(name, &[("cpu", &cores.to_string())])).collect()
}

/// Replicas that ask for that.
pub fn binding(replicas: i32, requests: &[(&str, &str)], division: Division) -> Binding {
    Binding {
        resource: Bound {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            key: Key::new("default", "web"),
            uid: String::new(),
        },
        replicas,
        ask: (!requests.is_empty()).then(|| Ask { requests: list(requests), ..Ask::default() }),
        placement: Some(Placement { division, ..Placement::default() }),
        ..Binding::default()
    }
}

/// Replicas of one core each.
pub fn cores(replicas: i32, division: Division) -> Binding {
    binding(replicas, &[("cpu", "1")], division)
}

pub fn dynamic() -> Division {
    Division::Weighted(Some(Weights { fixed: Vec::new(), dynamic: true }))
}

pub fn fixed(weights: &[(&str, i64)]) -> Division {
    let rule = |(name, weight): &(&str, i64)| (named(&[name]), *weight);
    Division::Weighted(Some(Weights { fixed: weights.iter().map(rule).collect(), dynamic: false }))
}

pub fn named(names: &[&str]) -> Affinity {
    Affinity { names: names.iter().map(ToString::to_string).collect(), ..Affinity::default() }
}

impl Binding {
    fn on(mut self, clusters: &[(&str, i32)]) -> Self {
        let one = |(name, replicas): &(&str, i32)| Previous { name: (*name).into(), replicas: *replicas };
        self.clusters = clusters.iter().map(one).collect();
        self
    }

    fn spread(mut self, spread: &[(By, i64, i64)]) -> Self {
        let one = |(by, min, max): &(By, i64, i64)| Spread { by: by.clone(), min: *min, max: *max };
        self.placing(|placement| placement.spread = spread.iter().map(one).collect())
    }

    fn placing(&mut self, change: impl FnOnce(&mut Placement)) -> Self {
        change(self.placement.as_mut().expect("it has a placement"));
        self.clone()
    }

    fn fresh(mut self) -> Self {
        self.scheduled = Some(Timestamp::UNIX_EPOCH);
        self.rescheduled = "2025-01-01T00:00:00Z".parse().ok();
        self
    }
}

/// Targets as `a:3 b:4`, or the condition's reason and message.
pub fn told(answer: &Answer) -> String {
    if answer.failure.is_some() {
        let condition = answer.condition();
        assert!(answer.clusters.is_empty());
        return format!("{}: {}", condition.reason, condition.message);
    }
    let target = |target: &Target| match target.replicas {
        Some(replicas) => format!("{}:{replicas}", target.name),
        None => target.name.to_string(),
    };
    answer.clusters.iter().map(target).collect::<Vec<_>>().join(" ")
}

pub fn decided(members: &[Member], binding: &Binding) -> String {
    told(&divide(members, binding, &Given::default()))
}

pub fn with(members: &[Member], binding: &Binding, options: Options) -> Answer {
    divide(members, binding, &Given { options, ..Given::default() })
}

pub fn upstream() -> Options {
    Options { upstream: true, ..Options::default() }
}

pub fn partial() -> Options {
    Options { shortfall: Shortfall::Partial, ..Options::default() }
}

/// What an estimator that counts nodes says.
pub fn counted(answers: &[(&str, Result<i32, &str>)]) -> Estimator {
    let opinion = |answer: &Result<i32, &str>| match answer {
        Ok(count) => Opinion::Count(*count),
        Err(why) => Opinion::Failed((*why).to_owned()),
    };
    Estimator {
        name: "scheduler-estimator".into(),
        opinions: answers.iter().map(|(name, answer)| ((*name).to_owned(), opinion(answer))).collect(),
    }
}

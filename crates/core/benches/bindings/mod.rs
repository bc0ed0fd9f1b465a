//! Fleets and bindings to divide.
//!
//! Every cluster has labels, a region, a taint that is tolerated, totals of five resources and an estimate; clusters of
//! one version, of eight, share their list of APIs; one in ten already has replicas.

use loadline_core::divide::{
    Affinity, Apis, Binding, Bound, Division, Estimator, Member, Opinion, Placement, Previous, Spread,
    Summary, Weights,
};
use loadline_core::estimate::Ask;
use loadline_core::resources::List;
use loadline_core::select::taint::{Effect, Operator};
use loadline_core::select::{LabelSelector, Taint, Toleration};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn list(amounts: &[(&str, String)]) -> List {
    let parsed = |(name, amount): &(&str, String)| ((*name).to_owned(), amount.parse().expect("a quantity"));
    amounts.iter().map(parsed).collect()
}

fn apis() -> Arc<Apis> {
    let kinds: BTreeSet<String> = ["Deployment", "StatefulSet", "DaemonSet"].map(str::to_owned).into();
    let mut apis: BTreeMap<String, BTreeSet<String>> =
        (0..30).map(|i| (format!("group{i}.example.com/v1"), kinds.clone())).collect();
    apis.insert("apps/v1".into(), kinds);
    Arc::new(apis)
}

fn member(at: usize, apis: Arc<Apis>) -> Member {
    let free = 1 + at * 7919 % 97;
    let all = list(&[
        ("cpu", format!("{}", 100 + free)),
        ("memory", format!("{}Gi", 4 * (100 + free))),
        ("ephemeral-storage", "9Ti".into()),
        ("pods", "11000".into()),
        ("example.com/gpu", "8".into()),
    ]);
    let used = list(&[("cpu", "100".into()), ("memory", "400Gi".into()), ("pods", "3000".into())]);
    Member {
        name: format!("member-{at:05}").into(),
        labels: BTreeMap::from([("env".into(), "prod".into()), ("site".into(), format!("site-{}", at % 40))]),
        provider: format!("provider-{}", at % 3),
        region: format!("region-{:02}", at % 20),
        zones: vec![format!("zone-{}", at % 60)],
        taints: vec![Taint {
            key: "shared".into(),
            value: String::new(),
            effect: Effect::NoSchedule,
            time_added: None,
        }],
        apis,
        summary: Some(Summary::new(&all, &used, &List::new())),
        ..Member::default()
    }
}

/// What is to be divided over so many.
pub fn binding(clusters: usize, replicas: usize, division: Division, spread: Vec<Spread>) -> Binding {
    let selector = LabelSelector {
        match_labels: BTreeMap::from([("env".into(), "prod".into())]),
        ..LabelSelector::default()
    };
    let tolerated = Toleration { key: "shared".into(), operator: Operator::Exists, ..Toleration::default() };
    let previous = |at| Previous { name: format!("member-{at:05}"), replicas: 1 };
    Binding {
        resource: Bound {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            uid: "u-1".into(),
            ..Bound::default()
        },
        replicas: i32::try_from(replicas).expect("not that many"),
        ask: Some(Ask { requests: list(&[("cpu", "1".into()), ("memory", "2Gi".into())]), ..Ask::default() }),
        clusters: (0..clusters).step_by(10).map(previous).collect(),
        placement: Some(Placement {
            affinity: Some(Affinity { labels: Some(selector), ..Affinity::default() }),
            tolerations: vec![tolerated],
            spread,
            division,
            ..Placement::default()
        }),
        ..Binding::default()
    }
}

/// So many clusters.
pub fn members(clusters: usize) -> Vec<Member> {
    let versions: Vec<Arc<Apis>> = (0..8).map(|_| apis()).collect();
    (0..clusters).map(|at| member(at, versions[at % 8].clone())).collect()
}

/// What an estimator says of them.
pub fn estimator(clusters: usize) -> Estimator {
    let opinion =
        |at: usize| (format!("member-{at:05}"), Opinion::Count(i32::try_from(at % 50).unwrap_or(0)));
    Estimator { name: "scheduler-estimator".into(), opinions: (0..clusters).map(opinion).collect() }
}

/// By what fits.
pub fn dynamic() -> Division {
    Division::Weighted(Some(Weights { fixed: Vec::new(), dynamic: true }))
}

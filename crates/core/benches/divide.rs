//! What does it cost to divide one binding, and how does that grow with the fleet?
//! `cargo bench -p loadline-core --bench divide`
//!
//! Every cluster has labels, a region, a taint that is tolerated, totals of five resources and an estimate; clusters of
//! one version, of eight, share their list of APIs; one in ten already has replicas. Figures are the quickest of many
//! runs, in microseconds.

use loadline_core::divide::{
    Affinity, Apis, Binding, Bound, By, Division, Estimator, Given, Member, Opinion, Placement, Previous,
    Spread, Summary, Weights, divide,
};
use loadline_core::estimate::Ask;
use loadline_core::resources::List;
use loadline_core::select::taint::{Effect, Operator};
use loadline_core::select::{LabelSelector, Taint, Toleration};
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The quickest of many, in microseconds.
fn micros(mut work: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut best = Duration::MAX;
    let mut runs = 0;
    while runs < 5 || begun.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed());
        runs += 1;
    }
    best.as_secs_f64() * 1e6
}

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

fn binding(clusters: usize, replicas: usize, division: Division, spread: Vec<Spread>) -> Binding {
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

fn main() {
    let dynamic = || Division::Weighted(Some(Weights { fixed: Vec::new(), dynamic: true }));
    let spread = |by: By, min, max| Spread { by, min, max };
    println!(
        "{:>8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "clusters", "duplicated", "dynamic", "aggregated", "20 a cluster", "by cluster", "by region"
    );
    for clusters in [100, 1_000, 5_000, 20_000] {
        let versions: Vec<Arc<Apis>> = (0..8).map(|_| apis()).collect();
        let members: Vec<Member> = (0..clusters).map(|at| member(at, versions[at % 8].clone())).collect();
        let opinion =
            |at: usize| (format!("member-{at:05}"), Opinion::Count(i32::try_from(at % 50).unwrap_or(0)));
        let estimators = [Estimator {
            name: "scheduler-estimator".into(),
            opinions: (0..clusters).map(opinion).collect(),
        }];
        let given = Given { estimators: &estimators, ..Given::default() };
        let time = |replicas: usize, division: Division, spread: Vec<Spread>| {
            let binding = binding(clusters, replicas, division, spread);
            let answer = divide(&members, &binding, &given);
            assert!(answer.failure.is_none(), "{}", answer.condition().message);
            micros(|| drop(black_box(divide(black_box(&members), &binding, &given))))
        };
        println!(
            "{clusters:>8} {:>12.0} {:>12.0} {:>12.0} {:>12.0} {:>12.0} {:>12.0}",
            time(clusters, Division::Duplicated, Vec::new()),
            time(clusters * 2, dynamic(), Vec::new()),
            time(clusters * 2, Division::Aggregated, Vec::new()),
            time(clusters * 20, dynamic(), Vec::new()),
            time(
                clusters * 2,
                dynamic(),
                vec![spread(By::Cluster, 1, i64::try_from(clusters / 4).unwrap_or(1))]
            ),
            time(
                clusters * 2,
                dynamic(),
                vec![
                    spread(By::Region, 10, 15),
                    spread(By::Cluster, 20, i64::try_from(clusters / 2).unwrap_or(1))
                ]
            ),
        );
    }
}

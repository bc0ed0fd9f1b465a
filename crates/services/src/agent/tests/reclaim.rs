//! Page cache that is asked back (R23).

use super::*;
use loadline_core::qos::audit::{Act, Kind};

/// A line through memory at 1000 bytes, above which page cache of batch is asked back. The node of the test uses 1 Gi.
fn ask_back() -> Vec<(crate::cluster::Resource, Value)> {
    let mut objects = rules();
    objects[0].1["spec"]["throttle"] = json!({"memoryThrottle": {"forceGC": true}});
    objects[3].1["spec"]["rules"] = json!([{
        "name": "memory", "actionName": "slow-down", "avoidanceThreshold": 1, "restoreThreshold": 2,
        "metricRule": {"name": "memory_total_usage", "value": 1000},
    }]);
    objects
}

#[tokio::test]
async fn page_cache_is_asked_back_and_told() {
    let mut stage = Stage::new().await;
    stage.ask_for(ask_back()).await;
    stage.run("shop", 25, false).await;
    stage.run("a", 10, true).await;
    let told = stage.cycle().await;
    let asked: Vec<&String> = told.iter().filter(|line| line.contains("page cache")).collect();
    assert_eq!(asked.len(), 1, "nobody allowed it on the shop: {told:?}");
    assert!(asked[0].contains("default/a") && asked[0].contains("4096 bytes of page cache"), "{told:?}");
    assert_eq!(stage.host.asked(), [("a".to_owned(), 4096)]);
    assert_eq!(stage.quotas().await["a"], Some(10), "nobody is slowed down for it");
    assert_eq!(stage.agent.metrics.reclaimed.get(), 1);
    stage.told(&[("Pod", "Reclaimed")]).await;

    let acts = |stage: &mut Stage| {
        let audit = stage.state.memory_mut(&NODE.into()).audit.clone();
        let kinds = |act: &Act| (act.kind, act.pod.to_string());
        (
            audit.open().map(kinds).collect::<Vec<_>>(),
            audit.closed().map(|one| kinds(&one.act)).collect::<Vec<_>>(),
        )
    };
    let one = vec![(Kind::Reclaimed, "default/a".to_owned())];
    assert_eq!(acts(&mut stage), (one.clone(), vec![]), "it waits to be measured");

    stage.host.no_reclaim.store(true, Relaxed);
    let told = stage.cycle().await;
    assert!(
        !told.iter().any(|line| line.contains("page cache")),
        "what failed is not told as done: {told:?}"
    );
    assert_eq!(stage.agent.metrics.failed_reclaims.get(), 1);
    assert_eq!(acts(&mut stage), (vec![], one), "measured, and what failed is no act");
    let of = Release { act: "reclaimed", resource: "memory" };
    let figure = |family: &Family<Release, Gauge<f64, AtomicU64>>| family.get_or_create(&of).get();
    let metrics = &stage.agent.metrics;
    let figures = (figure(&metrics.predicted), figure(&metrics.released), figure(&metrics.off));
    assert_eq!(figures, (4096.0, 0.0, 4096.0), "nothing came of it here");

    stage.agent.planning.dry_run = true;
    stage.cycle().await;
    assert_eq!(
        (stage.host.asked().len(), stage.agent.metrics.failed_reclaims.get()),
        (1, 1),
        "a preview does nothing"
    );
}

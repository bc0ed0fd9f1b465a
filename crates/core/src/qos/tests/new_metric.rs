//! One more metric is one more value: its collector, its comparator, what a pod releases, how a pod is slowed down.

use super::*;
use crate::qos::collect::{Collector, Found, Look, Machine};
use crate::qos::metric::{Metric, Resource, Throttle, as_it_is, not_elastic};
use crate::qos::throttle::Lowered;
use std::cmp::Ordering;
use std::time::Duration;

const NAME: &str = "network_receive_kibps";

fn used(pod: &Pod) -> Option<Level> {
    pod.usage.get(NAME).copied()
}

fn compare(a: &Pod, b: &Pod) -> Ordering {
    used(b).cmp(&used(a))
}

/// The file says one number.
fn read(_: &Machine, now: Look<'_>, _: Option<Look<'_>>) -> Vec<Found> {
    let value = now.text.strip_suffix('\n').and_then(|text| text.parse().ok());
    vec![Found { labels: Labels::default(), value: value.map(Level::whole) }]
}

/// Half of what it receives.
fn down(pod: &Pod, _: &Container, _: Step) -> Option<Lowered> {
    let half = used(pod)?.times(1, 2);
    Some(Lowered { quota_us: 1, release: half })
}

fn network() -> Metric {
    Metric {
        name: NAME,
        aliases: &[],
        unit: "kbit/s",
        resource: Resource("network"),
        rank: 3,
        scale: as_it_is,
        elastic: not_elastic,
        compare: Some(compare),
        release: Some(used),
        reclaimable: None,
        throttle: Some(Throttle { knob: "network", down, up: |_, _, _, _| None }),
        percent: false,
        suspicious_below: None,
        collect: Some(Collector { file: "proc/net/received", read }),
        of_pods: None,
    }
}

fn receiving(name: &str, kibps: i64) -> Pod {
    Pod { usage: [(NAME.into(), Level::whole(kibps))].into(), ..pod(name, 0.1) }
}

#[test]
fn a_metric_is_added_in_one_place() {
    let mut catalogue = Catalogue::default();
    catalogue.register(network());
    let object = |action: &str| NodeQos {
        name: "nq".into(),
        selector: None,
        rules: vec![rule("net", NAME, 1000, action)],
    };
    let pods = vec![receiving("a", 200), receiving("b", 700), receiving("c", 600)];
    // What an agent does: the file of every metric that a rule is about, its text to the collector, what it finds to the plan.
    let watching = Policy::new(catalogue.clone(), &[object("drop")], vec![evict("drop")], &[]);
    let files: Vec<Collector> = watching.metrics().iter().filter_map(|metric| metric.collect).collect();
    assert_eq!(files.iter().map(|one| one.file).collect::<Vec<_>>(), ["proc/net/received"]);
    let measured = |text| (files[0].read)(&Machine::default(), Look { text, at: Duration::ZERO }, None);
    assert_eq!(measured("many\n")[0].value, None, "what is no number is no measurement");
    let series = measured("1500\n").into_iter().map(|found| Series {
        name: NAME.into(),
        labels: found.labels,
        value: found.value,
        at: t(0),
    });
    let now = NodeSnapshot { series: series.collect(), ..snapshot(&[], pods) };
    let actions = || vec![evict("drop"), throttle("squeeze", 20, 10)];
    let scopes = [everybody(&["drop", "squeeze"])];
    // 1.1 × 500 = 550: the one that receives most is enough.
    let evicting = Policy::new(catalogue.clone(), &[object("drop")], actions(), &scopes);
    let plan_ = plan(&evicting, &now);
    assert_eq!((victims(&plan_), plan_.steps.mode_evict), (vec!["b"], Some(Mode::Precise)));
    // Halving: 350 and 300 close it.
    let throttling = Policy::new(catalogue, &[object("squeeze")], actions(), &scopes);
    let plan_ = plan(&throttling, &now);
    assert_eq!(writes(&plan_), [("b", 1), ("c", 1)]);
    // Without it, nobody can tell, and one goes at a time.
    let plain = Policy::new(Catalogue::default(), &[object("drop")], actions(), &scopes);
    assert_eq!(plan(&plain, &now).steps.mode_evict, Some(Mode::Paced));
}

//! Do dashboards and alerts that were made for kube-scheduler work with ours? What both say of the same pods.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use service::{Service, until};
use std::collections::{BTreeMap, BTreeSet};

const PODS: &str = "/api/v1/namespaces/default/pods";
const OURS: &str = "loadline";
const THEIRS: &str = "default-scheduler";

/// A metric as it is exposed.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    labels: BTreeSet<String>,
    /// The upper ends of a histogram's buckets, in millionths.
    buckets: BTreeSet<String>,
    /// By what the labels say but for who asks.
    values: BTreeMap<String, f64>,
}

/// What the dashboard of kube-scheduler that Kubernetes' mixin makes, and alerts beside it, ask for, but for what counts
/// goroutines, and for `scheduler_e2e_…`, `scheduler_binding_…` and `scheduler_volume_…`, which kube-scheduler itself has no more.
const DASHBOARD: [(&str, &str); 8] = [
    ("process_cpu_seconds_total", ""),
    ("process_resident_memory_bytes", ""),
    ("rest_client_requests_total", "code=\"2"),
    ("rest_client_request_duration_seconds_bucket", "verb=\"POST\""),
    ("rest_client_request_duration_seconds_bucket", "verb=\"GET\""),
    ("scheduler_scheduling_algorithm_duration_seconds_count", ""),
    ("scheduler_scheduling_algorithm_duration_seconds_bucket", ""),
    ("scheduler_pending_pods", "queue=\"unschedulable\""),
];

/// Is there a series of that name with that among its labels, above zero?
fn shows(text: &str, (name, label): (&str, &str)) -> bool {
    let is_it = |line: &&str| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])) && line.contains(label)
    };
    let mut lines =
        text.lines().filter(is_it).filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    lines.any(|value| value > 0.0)
}

/// The upper ends of a histogram's buckets, in millionths.
fn buckets(text: &str, name: &str) -> BTreeSet<String> {
    let of = |line: &str| {
        let end = line.strip_prefix(name)?.split_once("le=\"")?.1.split_once('"')?.0.to_owned();
        Some(end.parse::<f64>().map_or(end, |end| format!("{end:.6}")))
    };
    text.lines().filter_map(of).collect()
}

/// Everything that is called `scheduler_…`, without the ends that a type brings with it.
fn families(text: &str) -> BTreeMap<String, Family> {
    let plain = |name: &str| {
        let ends = ["_total", "_bucket", "_sum", "_count"];
        ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
    };
    let mut out: BTreeMap<String, Family> = BTreeMap::new();
    for line in text.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE scheduler_") {
            let (name, kind) = typed.split_once(' ').unwrap();
            out.entry(plain(&format!("scheduler_{name}"))).or_default().kind = kind.into();
            continue;
        }
        if !line.starts_with("scheduler_") {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.trim_end_matches('}').split_once('{').unwrap_or((series, ""));
        let family = out.entry(plain(name)).or_default();
        let mut told = Vec::new();
        for pair in labels.split_terminator(',') {
            let Some((label, value)) = pair.split_once('=') else { continue };
            let value = value.trim_matches('"');
            if label == "le" {
                let end = value.parse::<f64>().map_or("inf".to_owned(), |end| format!("{end:.6}"));
                family.buckets.insert(end);
            } else {
                family.labels.insert(label.to_owned());
                if label != "profile" {
                    told.push(format!("{label}={value}"));
                }
            }
        }
        told.sort();
        if !name.ends_with("_bucket") && !name.ends_with("_sum") {
            family.values.insert(told.join(","), value.parse().unwrap());
        }
    }
    out
}

/// Pods of one scheduler, for its own node of one core: one fits, one never will, one is gated, and one is worth more than the first.
fn make(plane: &ControlPlane, scheduler: &str) {
    let has = json!({"cpu": "1", "memory": "4Gi", "pods": "10"});
    plane.add_node(scheduler, &json!({"for": scheduler}), &has).unwrap();
    let pod = |name: &str, cpu: &str, more: Value| {
        let requests = json!({"cpu": cpu, "memory": "16Mi"});
        let mut spec = json!({"schedulerName": scheduler, "nodeSelector": {"for": scheduler},
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let pod = json!({"metadata": {"name": format!("{name}.{scheduler}")}, "spec": spec});
        plane.create(PODS, &pod).unwrap();
    };
    let get = |name: &str| plane.get(&format!("{PODS}/{name}.{scheduler}"));
    let bound = |name: &str| until(name, || get(name).ok()?["spec"]["nodeName"].as_str().map(drop));
    pod("fits", "600m", json!({}));
    bound("fits");
    pod("large", "9", json!({}));
    until("it to be told", || get("large").ok()?["status"]["conditions"][0]["message"].as_str().map(drop));
    pod("gated", "1", json!({"schedulingGates": [{"name": "example.com/wait"}]}));
    pod("important", "600m", json!({"priorityClassName": "high"}));
    bound("important");
    assert!(get("fits").is_err(), "it had to go");
}

#[test]
fn what_is_counted_under_kube_schedulers_names_is_what_it_counts() {
    let Some(plane) = ControlPlane::setup().scheduler(&[]).start_or_skip() else { return };
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class).unwrap();
    let kubeconfig = plane.kubeconfig();
    let scheduler =
        Service::start(&["scheduler", "--requests-only", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    scheduler.until("active");
    for scheduler in [OURS, THEIRS] {
        make(&plane, scheduler);
    }

    let pending = |families: &BTreeMap<String, Family>| families["scheduler_pending_pods"].values.clone();
    let expected =
        [("queue=active", 0.0), ("queue=backoff", 0.0), ("queue=gated", 1.0), ("queue=unschedulable", 1.0)];
    let expected: BTreeMap<String, f64> = expected.map(|(queue, count)| (queue.to_owned(), count)).into();
    let ours = until("ours to be at rest", || {
        let ours = families(&scheduler.get("/metrics"));
        (pending(&ours) == expected).then_some(ours)
    });
    let theirs = until("theirs to be at rest", || {
        let theirs = families(&plane.scheduler_metrics().unwrap());
        (pending(&theirs) == expected).then_some(theirs)
    });

    for (name, ours) in &ours {
        let Some(theirs) = theirs.get(name) else { panic!("kube-scheduler has no {name}") };
        println!("{name}: {ours:?}");
        assert_eq!(ours.kind, theirs.kind, "{name}");
        assert_eq!(ours.labels, theirs.labels, "{name}");
        assert_eq!(ours.buckets, theirs.buckets, "{name}");
    }
    assert_eq!(ours.len(), 11, "{:?}", ours.keys());
    // Two pods were bound, and one eviction was one attempt with one victim. How often the others were tried is each one's own.
    for (name, of) in
        [("scheduler_schedule_attempts", "result=scheduled"), ("scheduler_preemption_victims", "")]
    {
        let (ours, theirs) = (&ours[name].values, &theirs[name].values);
        assert_eq!(ours.get(of), theirs.get(of), "{name}: {ours:?} {theirs:?}");
    }
    // Three pods came to be placed; what keeps two from a node is the same.
    let came = "event=UnschedulablePodAdd,queue=active";
    let [ours_in, theirs_in] = [&ours, &theirs].map(|of| &of["scheduler_queue_incoming_pods"].values);
    assert_eq!(
        (ours_in.get(came), theirs_in.get(came)),
        (Some(&3.0), Some(&3.0)),
        "{ours_in:?} {theirs_in:?}"
    );
    let keeps = |of: &BTreeMap<String, Family>| {
        let all = of["scheduler_unschedulable_pods"].values.clone().into_iter();
        all.filter(|(_, count)| *count > 0.0).collect::<Vec<_>>()
    };
    assert_eq!(keeps(&ours), keeps(&theirs));
    assert_eq!(keeps(&ours).len(), 3, "{:?}", keeps(&ours));

    let (ours, theirs) = (scheduler.get("/metrics"), plane.scheduler_metrics().unwrap());
    for asked in DASHBOARD {
        assert!(shows(&theirs, asked), "kube-scheduler has no {asked:?}");
        assert!(shows(&ours, asked), "we have no {asked:?}: {ours}");
    }
    assert!(shows(&theirs, ("go_goroutines", "")), "what is left out is what there is");
    let duration = "rest_client_request_duration_seconds_bucket";
    assert_eq!(buckets(&ours, duration), buckets(&theirs, duration));
    assert!(scheduler.ends());
}

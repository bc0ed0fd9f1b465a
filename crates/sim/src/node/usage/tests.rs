//! Arithmetic of nodes and pods.

use super::super::burn::{USAGE_CPU, USAGE_CPU_LATER, USAGE_MEMORY, USAGE_TRACE, WARM_UP};
use super::super::{dice, trace};
use super::*;
use crate::cluster::{Container, Meta, ObjectMeta};
use proptest::prelude::*;

const CPUS: i64 = 4;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a small number of seconds")
}

fn container(name: &str, requests: &[(&str, &str)]) -> Container {
    let mut c = Container { name: name.into(), ..Container::default() };
    for (name, amount) in requests {
        c.resources.requests.insert((*name).into(), amount.parse().expect("tests write quantities"));
    }
    c
}

fn pod(name: &str, requests: &[(&str, &str)], annotations: &[(&str, &str)]) -> Pod {
    let annotations = annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Pod {
        meta: ObjectMeta {
            id: Meta { key: Key::new("default", name), ..Meta::default() },
            annotations,
            ..ObjectMeta::default()
        },
        node: Some("node-00".into()),
        containers: vec![container("main", requests)],
        ..Pod::default()
    }
}

fn fixed(name: &str, cpu: &str, memory: &str) -> Pod {
    pod(name, &[], &[(USAGE_CPU, cpu), (USAGE_MEMORY, memory)])
}

/// Figures of one node at a second, by a new meter.
fn read(seed: u64, pods: impl IntoIterator<Item = Pod>, second: i64) -> Figures {
    let pods: Vec<_> = pods.into_iter().map(Arc::new).collect();
    let window = Duration::from_secs(5);
    Meter::new(seed, 60, Arc::default()).read([("node-00", CPUS * 1000)], &pods, (at(second), window)).0
}

fn sum<'a>(all: impl IntoIterator<Item = &'a Use>) -> Use {
    all.into_iter().fold(Use::default(), |sum, one| Use {
        cpu_milli: sum.cpu_milli + one.cpu_milli,
        memory_bytes: sum.memory_bytes + one.memory_bytes,
    })
}

/// What one pod uses alone on its node, in thousandths of a CPU and in KiB.
fn alone(pod: Pod, second: i64) -> (i64, i64) {
    let figures = read(1, [pod], second);
    let Use { cpu_milli, memory_bytes } = sum(figures.pods[0].containers.values());
    (cpu_milli, memory_bytes >> 10)
}

#[test]
fn a_pod_uses_its_trace_s_share_of_its_request() {
    // These two are the same all day: 245 and 133 thousandths, 27 and 74.
    let asks = [("cpu", "2"), ("memory", "1Gi")];
    for (id, requests, expected, why) in [
        ("varied-411", &asks[..], (490, 139_460), "2000 × 0.245; 1048576 × 0.133 = 139460.6"),
        ("idle-20", &asks[..], (54, 77_594), "2000 × 0.027; 1048576 × 0.074 = 77594.6"),
        ("varied-411", &[], (12, 8_716), "as if it asked for 50m and 64Mi: 12.25; 65536 × 0.133 = 8716.3"),
        ("varied-411", &[("cpu", "0"), ("memory", "0")], (12, 8_716), "asking for nothing is the same"),
        (
            "idle-20",
            &[("cpu", "1m"), ("memory", "1Mi")],
            (1, 1024),
            "a process that does nothing uses something",
        ),
    ] {
        for second in [0, 7, 1000, 1_000_000] {
            assert_eq!(alone(pod("p", requests, &[(USAGE_TRACE, id)]), second), expected, "{id}: {why}");
        }
    }
}

#[test]
fn a_pod_goes_through_the_day_of_its_trace_from_its_own_time() {
    let id = "daily-86";
    let pod = || pod("p", &[("cpu", "1M")], &[(USAGE_TRACE, id)]);
    // One figure per minute of the day; a billion thousandths show the share to nine digits.
    let big = |second| {
        Meter::new(1, 60, Arc::default())
            .read([("node-00", 1 << 40)], &[Arc::new(pod())], (at(second), WARM_UP))
            .0
    };
    let seen = (0..24 * 60).map(|second| big(second).pods[0].containers["main"].cpu_milli);
    let seen: Vec<i64> = seen.collect();
    let trace = trace::find(id).unwrap();
    let phase = dice(1, "default/p/main/phase") % trace::DAY;
    let expected: Vec<i64> =
        (0..24 * 60).map(|minute| trace.cpu(minute * 60_000 + phase).of(1_000_000_000)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn annotations_fix_what_a_pod_uses_whatever_it_asks_for() {
    let asks = [("cpu", "100m"), ("memory", "64Mi")];
    for (annotations, expected, why) in [
        (vec![(USAGE_CPU, "1500m"), (USAGE_MEMORY, "1Gi")], (1500, 1 << 20), "as told"),
        (vec![(USAGE_CPU, "2"), (USAGE_MEMORY, "1500Ki")], (2000, 1500), "whole CPUs, 1500 KiB"),
        (vec![(USAGE_CPU, "0"), (USAGE_MEMORY, "0")], (0, 0), "nothing is an amount"),
        (vec![(USAGE_CPU, "0.5"), (USAGE_MEMORY, "1536")], (500, 1), "half a CPU; 1536 bytes are 1 KiB"),
        (
            vec![(USAGE_CPU, "1500m"), (USAGE_MEMORY, "1Gi"), (USAGE_TRACE, "idle-2")],
            (1500, 1 << 20),
            "before a trace",
        ),
        (
            vec![
                (USAGE_CPU, "1500m"),
                (USAGE_MEMORY, "1Gi"),
                (USAGE_CPU_LATER, "2 from 1970-01-01T00:00:00Z"),
            ],
            (2000, 1 << 20),
            "from then on",
        ),
        (
            vec![
                (USAGE_CPU, "1500m"),
                (USAGE_MEMORY, "1Gi"),
                (USAGE_CPU_LATER, "2 from 9999-01-01T00:00:00Z"),
            ],
            (1500, 1 << 20),
            "not yet",
        ),
    ] {
        assert_eq!(alone(pod("p", &asks, &annotations), 1000), expected, "{why}");
    }
}

#[test]
fn containers_and_sidecars_share_a_fixed_amount_as_they_share_requests() {
    let mut pod = fixed("p", "1000m", "6Mi");
    let sidecar =
        Container { restart_policy: Some("Always".into()), ..container("sidecar", &[("cpu", "100m")]) };
    pod.containers = vec![container("a", &[("cpu", "300m")]), container("b", &[("cpu", "200m")])];
    pod.init_containers = vec![sidecar, container("init", &[("cpu", "4")])];
    let figures = read(1, [pod], 1000);
    let found: Vec<_> =
        figures.pods[0].containers.iter().map(|(name, usage)| (name.as_str(), *usage)).collect();
    let each = |cpu_milli| Use { cpu_milli, memory_bytes: 2 << 20 };
    // 1000 × 300 / 600 = 500; up to 1000 × 500 / 600 = 833.3 the next one gets 333; 167 are left.
    assert_eq!(found, [("a", each(500)), ("b", each(333)), ("sidecar", each(167))]);
}

#[test]
fn values_that_cannot_be_read_are_ignored_and_complained_about_once() {
    let window = Duration::from_secs(5);
    let long = "x".repeat(100);
    for (annotation, value, expected) in [
        (USAGE_CPU, "lots", "an amount of CPU such as 1500m expected, found \"lots\""),
        (USAGE_CPU, "-1", "an amount of CPU such as 1500m expected, found \"-1\""),
        (USAGE_CPU, "", "an amount of CPU such as 1500m expected, found \"\""),
        (USAGE_CPU_LATER, "2", "such as 2 from 2026-01-05T10:00:30Z expected, found \"2\""),
        (USAGE_CPU, "NaN", "an amount of CPU such as 1500m expected, found \"NaN\""),
        (USAGE_MEMORY, "1 GB", "an amount of memory such as 1Gi expected, found \"1 GB\""),
        (
            USAGE_MEMORY,
            &long,
            &format!("an amount of memory such as 1Gi expected, found \"{}\"…", &long[..40]),
        ),
        (USAGE_TRACE, "busy", "a trace such as idle-2 expected, found \"busy\""),
    ] {
        let mut meter = Meter::new(1, 60, Arc::default());
        let bad = || Arc::new(pod("a", &[], &[(annotation, value)]));
        let (plain, two) =
            (Arc::new(pod("a", &[], &[])), [bad(), Arc::new(pod("b", &[], &[(annotation, value)]))]);
        let mut take = |pods: &[Arc<Pod>]| meter.read([("node-00", 4000)], pods, (at(0), window));
        let (figures, complaints) = take(&two);
        let what = format!("ignores annotation {annotation}: {expected}");
        assert_eq!(complaints, [Complaint { pod: Key::new("default", "a"), what }], "once for both");
        assert_eq!(figures.pods[0], take(&[plain]).0.pods[0], "as if it were not there");
        assert_eq!(take(&[bad()]).1, [], "and not again when the pod changes");
    }
}

#[test]
fn complaints_come_to_an_end() {
    let pods: Vec<_> = (0..2 * COMPLAINTS)
        .map(|i| Arc::new(pod(&format!("p{i}"), &[], &[(USAGE_TRACE, &format!("none-{i}"))])))
        .collect();
    let read = Meter::new(1, 60, Arc::default()).read([("node-00", 4000)], &pods, (at(0), Duration::ZERO));
    assert_eq!((read.0.pods.len(), read.1.len()), (2 * COMPLAINTS, COMPLAINTS));
}

#[test]
fn a_pod_takes_a_while_to_use_what_it_will() {
    assert_eq!(WARM_UP, Duration::from_secs(20));
    for (age, expected, why) in [
        (0, (100, 100), "a tenth at its start"),
        (5, (325, 325), "100 + 900 × 5 / 20"),
        (10, (550, 550), "half way"),
        (20, (1000, 1000), "all"),
        (9999, (1000, 1000), "and so it stays"),
        (-5, (100, 100), "clocks differ"),
    ] {
        let young = Pod { started: Some(at(1000)), ..fixed("p", "1", "1000Ki") };
        assert_eq!(alone(young, 1000 + age), expected, "{why}");
    }
    assert_eq!(alone(fixed("p", "1", "1000Ki"), 1000), (1000, 1000), "started nobody knows when: long ago");
}

#[test]
fn a_node_s_cpu_ends_at_its_capacity_and_its_memory_does_not() {
    // Four CPUs less 60m of daemons leave 3940m.
    for (wants, expected, node, why) in [
        (vec!["1", "2"], vec![1000, 2000], 3060, "enough for all"),
        (vec!["1940m", "2"], vec![1940, 2000], 4000, "just enough"),
        (vec!["1941m", "2"], vec![1940, 2000], 4000, "1m short: 3940 × 1941 / 3941 = 1940.5"),
        (vec!["2", "6"], vec![985, 2955], 4000, "a quarter and three quarters of 3940"),
        (vec!["1", "1", "8"], vec![394, 394, 3152], 4000, "a tenth, a tenth, the rest"),
        (vec!["0", "8"], vec![0, 3940], 4000, "who wants nothing gets nothing"),
        (vec!["9E", "9E"], vec![1970, 1970], 4000, "too large to count: half each"),
        (vec![], vec![], 60, "only daemons"),
    ] {
        let pods = wants.iter().enumerate().map(|(i, cpu)| fixed(&format!("p{i}"), cpu, "40Gi"));
        let figures = read(1, pods, 1000);
        let found: Vec<i64> = figures.pods.iter().map(|pod| pod.containers["main"].cpu_milli).collect();
        assert_eq!(found, expected, "{why}");
        let used = figures.nodes[0].used;
        let pods = i64::try_from(wants.len()).unwrap();
        assert_eq!((used.cpu_milli, used.memory_bytes), (node, pods * (40 << 30) + (400 << 20)), "{why}");
    }
}

#[test]
fn figures_follow_from_the_seed_the_names_and_the_time() {
    let pods = || ["a", "b"].map(|name| pod(name, &[("cpu", "1"), ("memory", "1Gi")], &[]));
    assert_eq!(read(1, pods(), 1000), read(1, pods(), 1000));
    assert_ne!(read(1, pods(), 1000).pods, read(2, pods(), 1000).pods, "another seed");
    assert_ne!(alone(pods()[0].clone(), 1000), alone(pods()[1].clone(), 1000), "another name");
    assert_eq!(read(1, pods(), 1000).pods, read(1, pods(), 1000 + 24 * 60).pods, "the next day of a trace");
    let [mut other, _] = pods();
    other.meta.id.uid = "another".into();
    other.node = Some("node-00".into());
    assert_eq!(
        read(1, [other], 1000).pods[0].containers,
        read(1, pods(), 1000).pods[0].containers,
        "a successor is like it"
    );
}

#[test]
fn a_meter_that_has_been_in_use_reads_what_a_new_one_does() {
    let mut meter = Meter::new(1, 60, Arc::default());
    let pods: Vec<_> = (0..20).map(|i| Arc::new(pod(&format!("p{i}"), &[("cpu", "200m")], &[]))).collect();
    for second in 0..50 {
        // Pods come, go and change on the way.
        let first = usize::try_from(second % 7).unwrap();
        let mut now = pods[first..].to_vec();
        now[0] = Arc::new(Pod { started: Some(at(second - 3)), ..(*now[0]).clone() });
        let when = (at(second), Duration::from_secs(5));
        let (again, _) = meter.read([("node-00", 4000)], &now, when);
        assert_eq!(again, Meter::new(1, 60, Arc::default()).read([("node-00", 4000)], &now, when).0);
        assert_eq!(meter.plans.len(), now.len(), "nothing is kept of pods that are gone");
    }
}

#[test]
fn pods_on_other_nodes_and_on_none_are_left_out() {
    let elsewhere = Pod { node: Some("node-01".into()), ..fixed("a", "1", "1Gi") };
    let nowhere = Pod { node: None, ..fixed("b", "1", "1Gi") };
    let figures = read(1, [elsewhere, nowhere], 1000);
    assert!(figures.pods.is_empty());
    assert_eq!(figures.nodes[0].used, DAEMONS);
}

prop_compose! {
    fn any_pod()(
        node in 0_usize..4,
        cpus in prop::collection::vec(0_i64..3000, 1..4),
        fixed_cpu in prop::option::weighted(0.3, 0_i64..20_000),
        fixed_memory in prop::option::weighted(0.3, 0_i64..1 << 40),
        age in 0_i64..60,
    ) -> (usize, Vec<i64>, Option<i64>, Option<i64>, i64) {
        (node, cpus, fixed_cpu, fixed_memory, age)
    }
}

proptest! {
    /// Node usage = Σ pods + daemons, unless that is more CPU than it has: then it is what it has.
    #[test]
    fn a_node_uses_what_its_pods_and_daemons_do_up_to_its_cpus(
        pods in prop::collection::vec(any_pod(), 0..30),
        capacities in prop::collection::vec(0_i64..16_000, 3),
        second in 0_i64..100_000,
        pace in 0_u32..1000,
    ) {
        let names = ["node-00", "node-01", "node-02", "elsewhere"];
        let pods: Vec<_> = pods.into_iter().enumerate().map(|(i, (node, cpus, fixed_cpu, fixed_memory, age))| {
            let mut annotations = BTreeMap::new();
            if let Some(milli) = fixed_cpu {
                annotations.insert(USAGE_CPU.to_owned(), format!("{milli}m"));
            }
            if let Some(bytes) = fixed_memory {
                annotations.insert(USAGE_MEMORY.to_owned(), bytes.to_string());
            }
            let containers = cpus.iter().enumerate();
            let containers = containers.map(|(c, milli)| container(&format!("c{c}"), &[("cpu", &format!("{milli}m"))]));
            Arc::new(Pod {
                meta: ObjectMeta {
                    id: Meta { key: Key::new("default", format!("p{i:02}")), ..Meta::default() },
                    annotations,
                    ..ObjectMeta::default()
                },
                node: Some(names[node].to_owned()),
                containers: containers.collect(),
                started: Some(at(second - age)),
                ..Pod::default()
            })
        }).collect();
        let nodes = |capacities: &[i64]| names.iter().copied().zip(capacities.to_vec()).collect::<Vec<_>>();
        let when = (at(second), Duration::from_secs(5));
        let (figures, _) = Meter::new(1, pace, Arc::default()).read(nodes(&capacities), &pods, when);
        let (wanted, _) = Meter::new(1, pace, Arc::default()).read(nodes(&[1 << 40; 3]), &pods, when);
        prop_assert_eq!(figures.pods.len(), pods.iter().filter(|pod| pod.node.as_deref() != Some("elsewhere")).count());
        for (node, capacity) in figures.nodes.iter().zip(capacities) {
            let on = |figures: &Figures| {
                let here = pods.iter().filter(|pod| pod.node.as_deref() == Some(&node.name)).map(|pod| &pod.meta.id.key.name);
                let here: BTreeSet<_> = here.collect();
                sum(figures.pods.iter().filter(|pod| here.contains(&pod.key.name)).flat_map(|pod| pod.containers.values()))
            };
            let (total, got, would) = (node.used, on(&figures), on(&wanted));
            let daemons = DAEMONS.cpu_milli.min(capacity);
            prop_assert_eq!(total.cpu_milli, got.cpu_milli + daemons);
            prop_assert_eq!(total.memory_bytes, got.memory_bytes + DAEMONS.memory_bytes);
            prop_assert_eq!(total.cpu_milli, (would.cpu_milli + daemons).min(capacity));
            prop_assert_eq!(got.memory_bytes, would.memory_bytes);
        }
        for (got, would) in figures.pods.iter().zip(&wanted.pods) {
            prop_assert!(sum(got.containers.values()).cpu_milli <= sum(would.containers.values()).cpu_milli);
        }
    }
}

#[test]
fn no_container_gets_more_cpu_than_its_quota_and_the_others_get_what_it_leaves() {
    let quotas = Arc::<Quotas>::default();
    let mut meter = Meter::new(1, 60, quotas.clone());
    let mut limited = fixed("limited", "3", "1Gi");
    limited.meta.id.uid = "limited".into();
    limited.containers[0].resources.limits.insert("cpu".into(), "2".parse().expect("a quantity"));
    let mut free = fixed("free", "3", "1Gi");
    free.meta.id.uid = "free".into();
    let pods = [limited, free].map(Arc::new);
    let mut cpu = || {
        let window = (at(1000), Duration::from_secs(5));
        let figures = meter.read([("node-00", CPUS * 1000)], &pods, window).0;
        let of = |i: usize| sum(figures.pods[i].containers.values()).cpu_milli;
        (of(0), of(1), figures.nodes[0].used.cpu_milli)
    };
    // 3940 are left by daemons.
    assert_eq!(cpu(), (1576, 2364, 4000), "2000 and 3000 are wanted: 3940 × 2/5, 3940 × 3/5");
    quotas.set("limited", "main", loadline_core::qos::CpuQuota::Us(50_000));
    assert_eq!(cpu(), (500, 3000, 3560), "half a CPU, and all the other wants");
    quotas.set("free", "main", loadline_core::qos::CpuQuota::Us(1_050));
    assert_eq!(cpu(), (500, 10, 570), "10.5 are 10: rounded down");
    quotas.forget("limited");
    assert_eq!(cpu(), (2000, 10, 2070), "its limit again");
}

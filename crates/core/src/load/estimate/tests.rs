use super::*;
use crate::load::recommend::Advice;
use proptest::prelude::*;

const MI: i64 = 1 << 20;

/// CPU in thousandths and memory in MiB.
fn load(milli: i64, mib: i64) -> Load {
    Load::new(milli * 1_000_000, mib * MI)
}

fn pod(spec: &str) -> Asks {
    Asks::of(&serde_json::from_str(&format!("{{\"spec\": {spec}}}")).expect("tests write valid pods"))
}

/// For each container: CPU in thousandths, memory in MiB.
fn advice(containers: &[(&str, Option<i64>, Option<i64>)]) -> Recommendation {
    let one = |&(name, milli, mib): &(&str, Option<i64>, Option<i64>)| {
        let advice =
            Advice { cpu_nano: milli.map(|m| m * 1_000_000), memory_bytes: mib.map(|m: i64| m * MI) };
        (name.into(), advice)
    };
    Recommendation { containers: containers.iter().map(one).collect(), ..Recommendation::default() }
}

const MIXED: &str = r#"{
    "containers": [
        {"name": "main", "resources": {"requests": {"cpu": "1", "memory": "512Mi"}}},
        {"name": "log", "resources": {"requests": {"cpu": "100m"}}}],
    "initContainers": [
        {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}},
        {"name": "prepare", "resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}],
    "overhead": {"cpu": "10m", "memory": "16Mi"}
}"#;

// A3
#[test]
fn each_container_and_resource_takes_the_first_figure_known() {
    use Source::{None as Nothing, Recommendation as Advised, Request};
    for (why, advice, want, main, log) in [
        (
            "nothing recommended: the effective request, max(1.1 + 0.05, 2 + 0.05) + 0.01 and 2112Mi + 16Mi",
            None,
            load(2060, 2128),
            (Request, Request),
            (Request, Nothing),
        ),
        (
            "recommended for another container only: the same",
            Some(advice(&[("other", Some(5), Some(5))])),
            load(2060, 2128),
            (Request, Request),
            (Request, Nothing),
        ),
        (
            "both for main: 575 + 100 + 50 + 10 and 1150 + 0 + 64 + 16",
            Some(advice(&[("main", Some(575), Some(1150))])),
            load(735, 1230),
            (Advised, Advised),
            (Request, Nothing),
        ),
        (
            "CPU for main, memory for log: 575 + 100 + 50 + 10 and 512 + 30 + 64 + 16",
            Some(advice(&[("main", Some(575), None), ("log", None, Some(30))])),
            load(735, 622),
            (Advised, Request),
            (Request, Advised),
        ),
        (
            "zero is a figure: 0 + 100 + 50 + 10 and 512 + 64 + 16",
            Some(advice(&[("main", Some(0), None)])),
            load(160, 592),
            (Advised, Request),
            (Request, Nothing),
        ),
        (
            "never for sidecars: 575 + 100 + 50 + 10 and 512 + 64 + 16",
            Some(advice(&[("main", Some(575), None), ("proxy", Some(9000), Some(9000))])),
            load(735, 592),
            (Advised, Request),
            (Request, Nothing),
        ),
    ] {
        let got = estimate(&pod(MIXED), advice.as_ref(), Load::ZERO);
        assert_eq!(got.load, want, "{why}");
        let sources: Vec<_> = got.sources.iter().map(|s| (&*s.container, (s.cpu, s.memory))).collect();
        assert_eq!(sources, [("main", main), ("log", log)], "{why}");
    }
}

// A3
#[test]
fn requests_of_the_pod_as_a_whole_count_only_without_a_recommendation() {
    let asks = pod(
        r#"{"resources": {"requests": {"cpu": "3"}}, "containers": [{"name": "main", "resources": {}}]}"#,
    );
    assert_eq!(estimate(&asks, None, Load::ZERO).load, load(3000, 0));
    let advice = advice(&[("main", Some(500), None)]);
    assert_eq!(estimate(&asks, Some(&advice), Load::ZERO).load, load(500, 0));
}

// A3
#[test]
fn the_floor_is_for_containers_that_say_nothing() {
    let floor = load(100, 200);
    for (why, spec, advice, want) in [
        ("says nothing", r#"{"containers": [{"name": "a"}, {"name": "b"}]}"#, None, load(200, 400)),
        (
            "says a little: 10 and 200",
            r#"{"containers": [{"name": "a", "resources": {"requests": {"cpu": "10m"}}}]}"#,
            None,
            load(10, 200),
        ),
        (
            "an init container needs more anyway",
            r#"{"containers": [{"name": "a"}],
                "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1", "memory": "1Mi"}}}]}"#,
            None,
            load(1000, 200),
        ),
        (
            "recommended for one: 5 + 100 and 200 + 200",
            r#"{"containers": [{"name": "a"}, {"name": "b"}]}"#,
            Some(advice(&[("a", Some(5), None)])),
            load(105, 400),
        ),
    ] {
        assert_eq!(estimate(&pod(spec), advice.as_ref(), floor).load, want, "{why}");
    }
}

#[test]
fn fractions_count_whole_and_giants_are_held() {
    let asks = |cpu: &str, memory: &str| {
        let spec = format!(
            r#"{{"containers": [{{"name": "a", "resources": {{"requests": {{"cpu": "{cpu}", "memory": "{memory}"}}}}}}]}}"#
        );
        let asks = pod(&spec);
        assert_eq!(
            asks.effective,
            Load::new(asks.containers[0].cpu_nano.unwrap(), asks.containers[0].memory_bytes.unwrap())
        );
        asks.effective
    };
    for (cpu, memory, want) in [
        ("114m", "120586239", Load::new(114_000_000, 120_586_239)),
        ("1n", "1m", Load::new(1, 1)),
        ("0.0000000001", "107374182400m", Load::new(1, 107_374_183)),
        ("1e30", "1e30", Load::new(i64::MAX, i64::MAX)),
    ] {
        assert_eq!(asks(cpu, memory), want, "{cpu} {memory}");
    }
}

fn some_pod() -> impl Strategy<Value = Asks> {
    let amount = || proptest::option::of(0..1_000_000_i64);
    let container = (amount(), amount());
    (proptest::collection::vec(container, 1..4), 0..1000_i64, 0..1000_i64, 0..1_000_000_i64).prop_map(
        |(containers, sidecars, overhead, effective)| {
            let ask = |(i, (cpu_nano, memory_bytes))| ContainerAsk {
                name: format!("c{i}").into(),
                cpu_nano,
                memory_bytes,
            };
            Asks {
                containers: containers.into_iter().enumerate().map(ask).collect(),
                sidecars: Load::new(sidecars, sidecars),
                overhead: Load::new(overhead, overhead),
                effective: Load::new(effective, effective),
            }
        },
    )
}

proptest! {
    /// Where everything is recommended, what the containers ask for does not matter.
    #[test]
    fn with_advice_for_everything_requests_do_not_matter(
        asks in some_pod(), other in some_pod(), amounts in proptest::collection::vec((0..1000_i64, 0..1000_i64), 4)
    ) {
        let one = |(i, (cpu, memory)): (usize, &(i64, i64))| {
            (format!("c{i}").into(), Advice { cpu_nano: Some(*cpu), memory_bytes: Some(*memory) })
        };
        let advice =
            Recommendation { containers: amounts.iter().enumerate().map(one).collect(), ..Recommendation::default() };
        let count = asks.containers.len().min(other.containers.len());
        let cut = |from: &Asks| Asks {
            containers: from.containers[..count].to_vec(),
            effective: from.effective,
            ..asks.clone()
        };
        let got = estimate(&cut(&asks), Some(&advice), Load::ZERO);
        prop_assert_eq!(&got, &estimate(&cut(&other), Some(&advice), Load::new(7, 7)));
        let sum = amounts[..count].iter().fold(asks.sidecars.plus(asks.overhead), |sum, (cpu, memory)| {
            sum.plus(Load::new(*cpu, *memory))
        });
        prop_assert_eq!(got.load, sum);
    }

    /// Advice that repeats what is asked is the sum of what is asked; the floor never takes anything away.
    #[test]
    fn advice_as_asked_is_the_plain_sum(asks in some_pod(), floor in 0..1000_i64) {
        let one = |a: &ContainerAsk| (a.name.clone(), Advice { cpu_nano: a.cpu_nano, memory_bytes: a.memory_bytes });
        let advice =
            Recommendation { containers: asks.containers.iter().map(one).collect(), ..Recommendation::default() };
        let got = estimate(&asks, Some(&advice), Load::ZERO).load;
        let said = |ask: &ContainerAsk| Load::new(ask.cpu_nano.unwrap_or(0), ask.memory_bytes.unwrap_or(0));
        let sum = asks.containers.iter().map(said).fold(asks.sidecars.plus(asks.overhead), Load::plus);
        let any = asks.containers.iter().any(|a| a.cpu_nano.is_some() || a.memory_bytes.is_some());
        prop_assert_eq!(got, if any { sum } else { asks.effective });
        let floored = estimate(&asks, Some(&advice), Load::new(floor, floor)).load;
        prop_assert_eq!(floored.max(got), floored);
    }
}

//! Which metrics of a node are put together from what its pods use? Those no file has: of containers, and of elastic resources.

use crate::agent::host::{Ask, PodUsage, Usage};
use loadline_core::qos::metric::memory;
use loadline_core::qos::{self, CpuQuota, Level, Series};
use loadline_core::view::Labels;
use std::collections::BTreeMap;

const CPU: &str = "container_cpu_total_usage";
const MEMORY: &str = "container_mem_total_usage";
const QUOTA: &str = "container_cpu_quota";
const PERIOD: &str = "container_cpu_period";
const SHARES: &str = "container_cpu_limit";
const THROTTLED: &str = "container_cpu_throttled_time";
const WAITS: &str = "container_sched_run_queue_time";
const ELASTIC_CPU: &str = "ext_res_container_cpu_total_usage";
const ELASTIC_MEMORY: &str = "ext_res_container_mem_total_usage";

/// What is read of pods only because somebody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub memory: Memory,
    pub shares: bool,
    pub waits: bool,
    pub throttled: bool,
}

/// Whose memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Memory {
    Nobodys,
    OfPods,
    /// And of each of their containers.
    OfContainers,
}

impl Wanted {
    pub fn by(ask: &Ask<'_>) -> Self {
        let any = |names: &[&str]| ask.metrics.iter().any(|metric| names.contains(&metric.name));
        let memory = if any(&[MEMORY]) {
            Memory::OfContainers
        } else if ask.wants(memory::MEMORY) || any(&[ELASTIC_MEMORY]) {
            Memory::OfPods
        } else {
            Memory::Nobodys
        };
        Self { memory, shares: any(&[SHARES]), waits: any(&[WAITS]), throttled: any(&[THROTTLED]) }
    }
}

/// The series that are asked for, of the pods that were measured.
pub(super) fn series(ask: &Ask<'_>, usage: &Usage) -> Vec<Series> {
    let mut found = Vec::new();
    let known = || ask.pods.iter().filter_map(|pod| Some((*pod, usage.pods.get(&pod.uid)?)));
    for metric in ask.metrics {
        let mut add = |labels: Labels, value: Option<Level>| {
            found.push(Series { name: metric.name.into(), labels, value, at: ask.now });
        };
        match metric.name {
            CPU => {
                for (pod, used) in known() {
                    add(labels(pod, None), used.cpu().map(cores));
                    for container in &pod.containers {
                        let cpu = used.containers.get(&container.name).map(|one| one.cpu.map(cores));
                        if let Some(cpu) = cpu {
                            add(labels(pod, Some(container)), cpu);
                        }
                    }
                }
            }
            MEMORY => {
                for (pod, used) in known() {
                    add(labels(pod, None), used.memory);
                    for container in &pod.containers {
                        if let Some(one) = used.containers.get(&container.name) {
                            add(labels(pod, Some(container)), one.memory);
                        }
                    }
                }
            }
            QUOTA | PERIOD | SHARES | THROTTLED | WAITS => {
                for (pod, used) in known() {
                    for container in &pod.containers {
                        let Some(one) = used.containers.get(&container.name) else { continue };
                        // A quota that is not known is no figure.
                        let us =
                            |us: Option<i64>| us.filter(|_| one.quota != CpuQuota::Unknown).map(Level::whole);
                        let value = match metric.name {
                            QUOTA => us(one.quota.us()),
                            PERIOD => us(Some(one.period_us)),
                            SHARES => one.shares,
                            THROTTLED => one.throttled,
                            _ => one.waits,
                        };
                        add(labels(pod, Some(container)), value);
                    }
                }
            }
            ELASTIC_CPU => {
                let of = |pod: &qos::Pod| pod.elastic_cpu.is_some_and(|limit| limit > Level::ZERO);
                add(Labels::default(), sum(ask, usage, of, PodUsage::cpu).map(cores));
            }
            ELASTIC_MEMORY => {
                let of = |pod: &qos::Pod| pod.elastic_memory.is_some_and(|limit| limit > Level::ZERO);
                add(Labels::default(), sum(ask, usage, of, |used| used.memory));
            }
            _ => {}
        }
    }
    found
}

/// What these pods use together; none if nobody knows of one of them.
fn sum(
    ask: &Ask<'_>,
    usage: &Usage,
    of: impl Fn(&qos::Pod) -> bool,
    used: impl Fn(&PodUsage) -> Option<Level>,
) -> Option<Level> {
    let pods = ask.pods.iter().filter(|pod| !pod.ended && of(pod));
    pods.map(|pod| usage.pods.get(&pod.uid).and_then(&used)).sum()
}

/// Thousandths as a whole.
fn cores(milli: Level) -> Level {
    milli.times(1, 1000)
}

/// Which container of which pod, in crane's words; without one, all of the pod.
fn labels(pod: &qos::Pod, container: Option<&qos::Container>) -> Labels {
    let text = |text: &str| text.to_owned();
    let elastic = |limit: Option<Level>| limit.is_some_and(|limit| limit > Level::ZERO);
    let id = container.and_then(|one| one.id.as_deref()).unwrap_or_default();
    Labels::plain(&BTreeMap::from([
        (text("PodName"), text(&pod.key.name)),
        (text("PodNamespace"), text(&pod.key.namespace)),
        (text("PodUid"), text(&pod.uid)),
        (text("ContainerName"), container.map_or_else(String::new, |one| text(&one.name))),
        (text("ContainerId"), text(id)),
        (text("HasExtRes"), (elastic(pod.elastic_cpu) || elastic(pod.elastic_memory)).to_string()),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::host::ContainerUsage;
    use jiff::Timestamp;
    use loadline_core::object::Key;
    use loadline_core::qos::metric::Catalogue;
    use loadline_core::select::Lookup as _;
    use std::sync::Arc;

    fn pod(name: &str, elastic: Option<i64>) -> qos::Pod {
        let container =
            qos::Container { name: "main".into(), id: Some("aa".into()), ..qos::Container::default() };
        qos::Pod {
            key: Key::new("default", name),
            uid: name.into(),
            elastic_cpu: elastic.map(Level::whole),
            containers: vec![container],
            ..qos::Pod::default()
        }
    }

    fn used(milli: Option<i64>) -> PodUsage {
        let cpu = milli.map(Level::whole);
        let quota = CpuQuota::Us(20_000);
        let one = ContainerUsage { cpu, memory: Some(Level::whole(900)), quota, ..ContainerUsage::default() };
        let memory = Some(Level::whole(1000));
        PodUsage { cpu, memory, containers: [("main".into(), one)].into(), ..PodUsage::default() }
    }

    fn ask(metric: &str, pods: &[(&qos::Pod, Option<PodUsage>)]) -> Vec<(String, Option<f64>)> {
        let metrics = [Catalogue::default().find(metric).unwrap().clone()];
        let all: Vec<&qos::Pod> = pods.iter().map(|(pod, _)| *pod).collect();
        let usage = Usage {
            pods: pods.iter().filter_map(|(pod, used)| Some((pod.uid.clone(), used.clone()?))).collect(),
            ..Usage::default()
        };
        let found = series(&Ask { now: Timestamp::UNIX_EPOCH, metrics: &metrics, pods: &all }, &usage);
        let shown = |one: Series| {
            let of = |key: &str| one.labels.value(key).unwrap_or_default().to_owned();
            let name: Arc<str> = format!("{}/{}", of("PodName"), of("ContainerName")).into();
            (name.to_string(), one.value.map(Level::to_f64))
        };
        found.into_iter().map(shown).collect()
    }

    #[test]
    fn containers_and_pods_are_series_of_their_own() {
        let (a, b) = (pod("a", None), pod("b", None));
        let pods = [(&a, Some(used(Some(1500)))), (&b, Some(used(None)))];
        let of = |name: &str, value: Option<f64>| (name.to_owned(), value);
        assert_eq!(
            ask("container_cpu_total_usage", &pods),
            [of("a/", Some(1.5)), of("a/main", Some(1.5)), of("b/", None), of("b/main", None)]
        );
        assert_eq!(
            ask("container_mem_total_usage", &pods[..1]),
            [of("a/", Some(1000.0)), of("a/main", Some(900.0))],
            "what a pod keeps outside of its containers is its own"
        );
        assert_eq!(ask("container_cpu_quota", &pods[..1]), [of("a/main", Some(20_000.0))]);
        assert_eq!(ask("container_cpu_period", &pods[..1]), [of("a/main", Some(100_000.0))]);
        assert_eq!(ask("container_cpu_total_usage", &[(&a, None)]), [], "nobody knows of it");
    }

    #[test]
    fn what_is_not_known_of_one_is_not_known_of_all() {
        let (a, b, plain) = (pod("a", Some(1000)), pod("b", Some(1000)), pod("plain", None));
        let sum = |pods: &[(&qos::Pod, Option<PodUsage>)]| {
            ask("ext_res_container_cpu_total_usage", pods)
                .into_iter()
                .map(|(_, value)| value)
                .collect::<Vec<_>>()
        };
        let measured = |milli| Some(used(Some(milli)));
        assert_eq!(sum(&[(&a, measured(500)), (&b, measured(250)), (&plain, measured(9000))]), [Some(0.75)]);
        assert_eq!(sum(&[(&a, measured(500)), (&b, None)]), [None]);
        assert_eq!(sum(&[(&plain, None)]), [Some(0.0)], "nobody has any");
    }
}

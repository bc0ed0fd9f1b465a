//! What is known of a pod on a node? The `Pod`, and what the agent measured of it.

use super::{ELASTIC_CPU, ELASTIC_MEMORY, OPT_OUT, OPT_OUT_OF_OTHERS};
use crate::context::{Context, namespace};
use crate::json::{Skip, Tree};
use crate::pod::CONTAINERS;
use crate::read::{At, Error, Problem, Warning, controller, tolerant};
use loadline_core::object::Key;
use loadline_core::qos::{Class, Container, CpuQuota, Level, Origin, PERIOD_US, Pod};
use loadline_core::quantity::Quantity;
use loadline_core::view::{Labels, Owner};
use std::sync::Arc;

/// A pod, and the node it is on.
pub type Found = (Pod, Option<String>);

/// What [`read`] does not read. Annotations stay: some protect a pod.
pub const SKIP: Skip = Skip::NOTHING.within(&[
    ("metadata", Skip::fields(&["finalizers", "managedFields"])),
    (
        "spec",
        Skip::fields(&[
            "affinity",
            "dnsConfig",
            "ephemeralContainers",
            "hostAliases",
            "imagePullSecrets",
            "nodeSelector",
            "readinessGates",
            "securityContext",
            "tolerations",
            "topologySpreadConstraints",
            "volumes",
        ])
        .within(CONTAINERS),
    ),
    (
        "status",
        Skip::fields(&["conditions", "ephemeralContainerStatuses", "hostIPs", "podIPs"])
            .within(&[("containerStatuses", STATUS), ("initContainerStatuses", STATUS)]),
    ),
]);

/// Of the status of a container, its name and its id are read.
const STATUS: Skip = Skip::fields(&[
    "allocatedResources",
    "allocatedResourcesStatus",
    "image",
    "imageID",
    "lastState",
    "resources",
    "state",
    "user",
    "volumeMounts",
]);

/// The pod of a `Pod`, and the node it is on. Nothing is measured of it yet.
///
/// # Errors
/// When the object is not what it should be.
pub fn read(value: &Tree<'_>) -> Result<(Found, Vec<Warning>), Error> {
    tolerant("Pod", value, |root| {
        let (metadata, spec, status) = (root.get("metadata"), root.get("spec"), root.get("status"));
        let mut pod = Pod {
            uid: metadata.get("uid").string().into(),
            labels: Labels::plain(&metadata.get("labels").texts()),
            priority: spec.get("priority").int32().unwrap_or_default(),
            priority_class: spec.get("priorityClassName").string().into(),
            class: if status.get("qosClass").is_set() {
                class(&status.get("qosClass"))
            } else {
                served(&spec)
            },
            started: status.get("startTime").time(),
            deleted: metadata.get("deletionTimestamp").time(),
            grace_seconds: spec.get("terminationGracePeriodSeconds").int(),
            ended: ended(&status.get("phase")),
            owner: controller(&metadata),
            containers: containers(&spec),
            ..named(metadata.get("namespace").text(), &metadata.get("name").needed())
        };
        annotated(&mut pod, &metadata.get("annotations"));
        elastic(&mut pod, &spec);
        identified(&mut pod, &status);
        (pod, spec.get("nodeName").text().map(str::to_owned))
    })
}

/// The same, with the priority its class gives it where the `Pod` does not say, as one that was never created does not.
///
/// # Errors
/// When the object is not what it should be.
pub fn read_with(value: &Tree<'_>, context: &Context) -> Result<(Found, Vec<Warning>), Error> {
    let ((mut pod, node), mut warnings) = read(value)?;
    let spec = &value["spec"];
    if spec["priority"].is_null() {
        let name = Some(&*pod.priority_class).filter(|name| !name.is_empty());
        match context.class_value(name) {
            Some(priority) => pod.priority = priority,
            None if name.is_some() => {
                let path = "spec.priorityClassName".to_owned();
                let problem = format!(
                    "there is no PriorityClass {:?}, its priority is taken to be 0",
                    pod.priority_class
                );
                warnings
                    .push(Warning { object: format!("Pod {}", pod.key), problem: Problem { path, problem } });
            }
            None => {}
        }
    }
    Ok(((pod, node), warnings))
}

pub(super) fn named(given: Option<&str>, name: &str) -> Pod {
    Pod { key: Key::new(namespace(given), name), ..Pod::default() }
}

pub(super) fn class(at: &At<'_, '_>) -> Class {
    let name = at.text().unwrap_or_default();
    Class::named(name).unwrap_or_else(|| {
        at.fail(format!("expected BestEffort, Burstable or Guaranteed, found {name:?}"));
        Class::Unset
    })
}

/// The class Kubernetes would write into the status: by whether CPU and memory are asked for, and held to that; by the pod as a whole, where it
/// says so of itself.
fn served(spec: &At<'_, '_>) -> Class {
    let (main, init) = (spec.get("containers"), spec.get("initContainers"));
    let (mut any, mut all) = (false, false);
    let whole = spec.get("resources");
    let is_whole = ["requests", "limits"].iter().any(|list| whole.get(list).entries().next().is_some());
    let containers: Vec<At<'_, '_>> = main.items().chain(init.items()).collect();
    let asked: Vec<At<'_, '_>> =
        if is_whole { vec![whole] } else { containers.iter().map(|at| at.get("resources")).collect() };
    for (i, resources) in asked.iter().enumerate() {
        let (requests, limits) = (resources.get("requests"), resources.get("limits"));
        let held = |name: &str| {
            let limit = cores(&limits.get(name)).filter(|amount| *amount > Level::ZERO);
            let request = cores(&requests.get(name)).filter(|amount| *amount > Level::ZERO);
            (
                request.is_some() || limit.is_some(),
                limit.is_some() && request.is_none_or(|asked| Some(asked) == limit),
            )
        };
        let (cpu, memory) = (held("cpu"), held("memory"));
        any |= cpu.0 || memory.0;
        all = (all || i == 0) && cpu.1 && memory.1;
    }
    match (any, all) {
        (false, _) => Class::BestEffort,
        (true, true) => Class::Guaranteed,
        (true, false) => Class::Burstable,
    }
}

pub(super) fn ended(at: &At<'_, '_>) -> bool {
    matches!(at.text(), Some("Succeeded" | "Failed"))
}

pub(super) fn annotated(pod: &mut Pod, annotations: &At<'_, '_>) {
    if annotations.get("kubernetes.io/config.source").text().is_some_and(|source| source != "api") {
        pod.origin = Origin::File;
    }
    if annotations.get("kubernetes.io/config.mirror").is_set() {
        pod.origin = Origin::Mirror;
    }
    pod.config_hash = annotations.get("kubernetes.io/config.hash").text().map(Arc::from);
    let said = |key: &str, value: &str| annotations.get(key).text() == Some(value);
    pod.opted_out |= said(OPT_OUT, "false") || said(OPT_OUT_OF_OTHERS, "false");
}

/// What the runtime knows its containers by: `containerd://4f2a…` is `4f2a…` there.
fn identified(pod: &mut Pod, status: &At<'_, '_>) {
    let (main, init) = (status.get("containerStatuses"), status.get("initContainerStatuses"));
    for at in main.items().chain(init.items()) {
        let (name, id) = (at.get("name"), at.get("containerID"));
        let (Some(name), Some(id)) = (name.text(), id.text().filter(|id| !id.is_empty())) else { continue };
        let id = id.split_once("://").map_or(id, |(_, id)| id);
        if let Some(container) = pod.containers.iter_mut().find(|one| &*one.name == name) {
            container.id = Some(id.into());
        }
    }
}

/// Containers and sidecars. A request that is missing is the limit, as the API server fills in.
fn containers(spec: &At<'_, '_>) -> Vec<Container> {
    let (main, init) = (spec.get("containers"), spec.get("initContainers"));
    let container = |at: At<'_, '_>| {
        let resources = at.get("resources");
        let (requests, limits) = (resources.get("requests"), resources.get("limits"));
        let limit = cores(&limits.get("cpu"));
        Container {
            name: at.get("name").needed().into(),
            request: cores(&requests.get("cpu")).or(limit),
            limit,
            elastic: sum(&limits, ELASTIC_CPU),
            ..Container::default()
        }
    };
    let sidecars = init.items().filter(|at| at.get("restartPolicy").text() == Some("Always")).map(container);
    let mut all: Vec<Container> = main.items().map(container).chain(sidecars).collect();
    as_a_whole(&mut all, &spec.get("resources"));
    all
}

/// Where a pod asks as a whole (`spec.resources`), its limit is that of every container without one: a kubelet makes their quota of it. What it was
/// promised beyond what its containers ask for is any of theirs, so none is lowered below all of that.
fn as_a_whole(all: &mut [Container], resources: &At<'_, '_>) {
    let (requests, limits) = (resources.get("requests"), resources.get("limits"));
    let limit = cores(&limits.get("cpu")).filter(|limit| *limit > Level::ZERO);
    let own: Option<Level> = all.iter().filter_map(|one| one.request).reduce(|a, b| a + b);
    // A request that is missing is what containers ask for, else the limit, as the API server fills in.
    let promised = cores(&requests.get("cpu")).or(limit.filter(|_| own.is_none()));
    let rest = promised.map(|promised| promised - own.unwrap_or_default());
    let rest = rest.filter(|rest| *rest > Level::ZERO);
    for one in all {
        if let Some(rest) = rest {
            one.request = Some(one.request.unwrap_or_default() + rest);
        }
        one.limit = one.limit.filter(|own| limit.is_none() || *own > Level::ZERO).or(limit);
    }
}

/// Amounts of the elastic resources, in thousandths, all containers together.
fn elastic(pod: &mut Pod, spec: &At<'_, '_>) {
    let all = spec.get("containers");
    let total = |prefix: &str| {
        let of = |at: At<'_, '_>| {
            let resources = at.get("resources");
            let limits = resources.get("limits");
            sum(&limits, prefix)
        };
        all.items().filter_map(of).reduce(|a, b| a + b)
    };
    (pod.elastic_cpu, pod.elastic_memory) = (total(ELASTIC_CPU), total(ELASTIC_MEMORY));
}

fn sum(limits: &At<'_, '_>, prefix: &str) -> Option<Level> {
    let of = |(name, at): (&str, At<'_, '_>)| name.starts_with(prefix).then(|| cores(&at)).flatten();
    limits.entries().filter_map(of).reduce(|a, b| a + b)
}

/// An amount in thousandths, if it can be read.
fn cores(at: &At<'_, '_>) -> Option<Level> {
    let amount: Quantity = at.some()?.amount().ok()?;
    Level::from_quantity(&amount).map(|level| level.times(1000, 1))
}

/// A number. What only computers write when there is none is told, and is none.
pub(super) fn measurement(at: &At<'_, '_>) -> Option<f64> {
    if let Some(text) = at.value().as_str() {
        let word = text.trim_start_matches(['+', '-', '.']).to_ascii_lowercase();
        if matches!(word.as_str(), "nan" | "inf" | "infinity") {
            at.warn(format!("{text} is no measurement, it counts as unknown"));
            return None;
        }
    }
    at.number()
}

/// Usage as it was measured: none if there is none, or if it is no measurement, which is told.
pub(super) fn usage(at: &At<'_, '_>, scale: i128) -> Option<Level> {
    let value = measurement(at)?;
    let level = Level::from_f64(value).map(|level| level.times(scale, 1));
    match level {
        Some(level) if level >= Level::ZERO => return Some(level),
        Some(_) => at.warn(format!("{value} is less than nothing, it counts as unknown")),
        None => at.warn(format!("{value} is more than any machine has, it counts as unknown")),
    }
    None
}

const FIELDS: [&str; 21] = [
    "namespace",
    "name",
    "uid",
    "labels",
    "annotations",
    "priority",
    "qosClass",
    "startTime",
    "deletionTimestamp",
    "terminationGracePeriodSeconds",
    "phase",
    "ownerKind",
    "cpuUsage",
    "memUsage",
    "memUnreclaimable",
    "memReclaimable",
    "usage",
    "elasticCpuLimit",
    "elasticMemLimit",
    "allowedActions",
    "containers",
];
const OF_CONTAINERS: [&str; 7] =
    ["name", "cpuUsage", "quotaUs", "periodUs", "cpuRequest", "cpuLimit", "elasticCpuLimit"];

/// Puts what was measured, and what a snapshot says itself, on top of what the `Pod` says.
pub(super) fn measured(pod: &mut Pod, at: &At<'_, '_>) {
    at.only(&FIELDS);
    pod.cpu = usage(&at.get("cpuUsage"), 1000);
    pod.memory = usage(&at.get("memUsage"), 1);
    pod.unreclaimable = usage(&at.get("memUnreclaimable"), 1);
    pod.reclaimable = usage(&at.get("memReclaimable"), 1);
    for (name, level) in at.get("usage").entries() {
        if let Some(level) = usage(&level, 1) {
            pod.usage.insert(name.into(), level);
        }
    }
    if let Some(priority) = at.get("priority").int32() {
        pod.priority = priority;
    }
    if at.get("qosClass").is_set() {
        pod.class = class(&at.get("qosClass"));
    }
    pod.uid = at.get("uid").text().map_or_else(|| pod.uid.clone(), Into::into);
    pod.started = at.get("startTime").time().or(pod.started);
    pod.deleted = at.get("deletionTimestamp").time().or(pod.deleted);
    pod.grace_seconds = at.get("terminationGracePeriodSeconds").int().or(pod.grace_seconds);
    pod.ended |= ended(&at.get("phase"));
    if at.get("labels").is_set() {
        pod.labels = Labels::plain(&at.get("labels").texts());
    }
    annotated(pod, &at.get("annotations"));
    if let Some(kind) = at.get("ownerKind").text() {
        let owner = pod.owner.take().filter(|owner| &*owner.kind == kind);
        let plain =
            || Owner { group: Arc::default(), kind: kind.into(), name: Arc::default(), uid: Arc::default() };
        pod.owner = Some(owner.unwrap_or_else(plain));
    }
    let thousandths = |at: &At<'_, '_>| usage(at, 1);
    pod.elastic_cpu = thousandths(&at.get("elasticCpuLimit")).or(pod.elastic_cpu);
    pod.elastic_memory = thousandths(&at.get("elasticMemLimit")).or(pod.elastic_memory);
    pod.allowed.extend(at.get("allowedActions").strings().into_iter().map(Arc::<str>::from));
    for one in at.get("containers").items() {
        let name = one.get("name").needed();
        let known = pod.containers.iter_mut().position(|container| *container.name == name);
        let place = known.unwrap_or_else(|| {
            pod.containers.push(Container { name: name.into(), ..Container::default() });
            pod.containers.len() - 1
        });
        container(&mut pod.containers[place], &one);
    }
    // What a pod uses, its only container does.
    if let ([only], Some(used)) = (&mut pod.containers[..], pod.cpu) {
        let silent = at.get("containers").items().all(|one| !one.get("cpuUsage").is_set());
        if silent && only.usage.is_none() {
            only.usage = Some(used);
        }
    }
    // The pod's own figure counts the sandbox as well; without it, its containers together are the pod.
    if !at.get("cpuUsage").is_set() {
        let all: Option<Vec<Level>> = pod.containers.iter().map(|container| container.usage).collect();
        pod.cpu = all.filter(|all| !all.is_empty()).map(|all| all.into_iter().sum());
    }
}

fn container(container: &mut Container, at: &At<'_, '_>) {
    at.only(&OF_CONTAINERS);
    container.usage = usage(&at.get("cpuUsage"), 1000);
    container.period_us = match at.get("periodUs").int() {
        None => PERIOD_US,
        Some(period) if (1_000..=1_000_000).contains(&period) => period,
        Some(period) => {
            at.get("periodUs")
                .warn(format!("the kernel takes 1000 to 1000000, found {period}; it is left alone"));
            0
        }
    };
    container.limit = usage(&at.get("cpuLimit"), 1000).or(container.limit);
    container.request = usage(&at.get("cpuRequest"), 1000).or(container.request).or(container.limit);
    container.elastic = usage(&at.get("elasticCpuLimit"), 1000).or(container.elastic);
    container.quota = quota(container, at);
}

/// What the kernel says; where nobody looked, what the kubelet writes: the limit, or nothing.
fn quota(container: &Container, at: &At<'_, '_>) -> CpuQuota {
    let given = at.get("quotaUs");
    if at.value().get("quotaUs").is_some_and(Tree::is_null) {
        return CpuQuota::Unknown;
    }
    if let Some(us) = given.int() {
        match us {
            ..-1 => given.warn(format!("expected -1 or more, found {us}; it is taken for no limit")),
            1..1_000 => given.warn(format!("the kernel takes no less than 1000, found {us}")),
            _ => {}
        }
        return CpuQuota::from_us(us);
    }
    let whole = |limit: Level| limit.times(container.period_us.into(), 1000).nano() / Level::whole(1).nano();
    let us = container.limit.and_then(|limit| i64::try_from(whole(limit)).ok());
    us.map_or(CpuQuota::Unlimited, CpuQuota::from_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_pod_nobody_has_classed_is_classed_as_kubernetes_does() {
        let container = |requests: Value, limits: Value| json!({"name": "c", "resources": {"requests": requests, "limits": limits}});
        let both = json!({"cpu": "1", "memory": "1Gi"});
        for (why, containers, expected) in [
            ("asks for nothing", vec![container(json!({}), json!({}))], Class::BestEffort),
            ("asks for something", vec![container(json!({"cpu": "1"}), json!({}))], Class::Burstable),
            ("held to what it asks for", vec![container(both.clone(), both.clone())], Class::Guaranteed),
            ("limits stand in for requests", vec![container(json!({}), both.clone())], Class::Guaranteed),
            ("memory is not held", vec![container(json!({}), json!({"cpu": "1"}))], Class::Burstable),
            (
                "one of two is not",
                vec![container(json!({}), both.clone()), container(json!({}), json!({}))],
                Class::Burstable,
            ),
            ("asks for less than its limit", vec![container(json!({"cpu": "500m"}), both)], Class::Burstable),
        ] {
            let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": containers}});
            let ((pod, _), _) = read(&Tree::from(&pod)).unwrap();
            assert_eq!(pod.class, expected, "{why}");
        }
        let said = json!({"metadata": {"name": "p"}, "spec": {}, "status": {"qosClass": "Burstable"}});
        assert_eq!(read(&Tree::from(&said)).unwrap().0.0.class, Class::Burstable, "what is said counts");
    }

    #[test]
    fn what_a_pod_is_promised_as_a_whole_is_its_containers() {
        let container = |name: &str, resources: Value| json!({"name": name, "resources": resources});
        let (none, asks) = (json!({}), json!({"requests": {"cpu": "200m"}, "limits": {"cpu": "300m"}}));
        let both = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}});
        for (why, whole, containers, expected) in [
            ("nothing is said of the whole", none.clone(), vec![none.clone()], vec![(None, None)]),
            ("its only container", both.clone(), vec![none.clone()], vec![(Some(1000), Some(2000))]),
            (
                "any of two may need it",
                both.clone(),
                vec![none.clone(), none.clone()],
                vec![(Some(1000), Some(2000)), (Some(1000), Some(2000))],
            ),
            (
                "800m beyond what is asked for",
                both.clone(),
                vec![asks.clone(), none.clone()],
                vec![(Some(1000), Some(300)), (Some(800), Some(2000))],
            ),
            (
                "a request follows from the limit",
                json!({"limits": {"cpu": "2"}}),
                vec![none.clone()],
                vec![(Some(2000), Some(2000))],
            ),
            (
                "or from what containers ask for",
                json!({"limits": {"cpu": "2"}}),
                vec![asks.clone(), none.clone()],
                vec![(Some(200), Some(300)), (None, Some(2000))],
            ),
            ("only memory", json!({"requests": {"memory": "1Gi"}}), vec![asks], vec![(Some(200), Some(300))]),
        ] {
            let containers: Vec<Value> =
                containers.into_iter().enumerate().map(|(i, one)| container(&format!("c{i}"), one)).collect();
            let pod =
                json!({"metadata": {"name": "p"}, "spec": {"resources": whole, "containers": containers}});
            let ((pod, _), _) = read(&Tree::from(&pod)).unwrap();
            let of = |one: &Container| (one.request, one.limit);
            let milli = |(request, limit): (Option<i64>, Option<i64>)| {
                (request.map(Level::whole), limit.map(Level::whole))
            };
            let expected: Vec<_> = expected.into_iter().map(milli).collect();
            assert_eq!(pod.containers.iter().map(of).collect::<Vec<_>>(), expected, "{why}");
        }
    }

    #[test]
    fn a_pod_that_asks_as_a_whole_is_classed_as_a_whole() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        for (whole, class) in [
            (json!({"requests": both, "limits": both}), Class::Guaranteed),
            (json!({"requests": both}), Class::Burstable),
        ] {
            let pod = json!({"metadata": {"name": "p"}, "spec": {"resources": whole, "containers": [{"name": "c"}]}});
            assert_eq!(read(&Tree::from(&pod)).unwrap().0.0.class, class);
        }
    }

    #[test]
    fn protection_is_read_from_annotations_and_owners() {
        let with = |annotations: Value| {
            let pod = json!({"metadata": {"name": "p", "annotations": annotations}, "spec": {}});
            read(&Tree::from(&pod)).unwrap().0.0
        };
        assert_eq!(
            with(json!({"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"})).origin,
            Origin::Mirror
        );
        assert_eq!(with(json!({"kubernetes.io/config.source": "file"})).origin, Origin::File);
        assert_eq!(with(json!({"kubernetes.io/config.source": "api"})).origin, Origin::Api);
        assert!(with(json!({"loadline.dev/evict": "false"})).opted_out);
        assert!(with(json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})).opted_out);
        assert!(!with(json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"})).opted_out);
    }
}

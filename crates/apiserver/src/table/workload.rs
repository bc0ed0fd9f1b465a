//! What do the kinds show that make pods, guard them or scale them?

use super::age;
use super::cells::{
    NONE, UNKNOWN, UNSET, and_more, containers, created, flag, has, int, labels, list, map, name, quantity,
    scalar, selector, selector_or_none, set_or, text, time,
};
use super::columns::{AGE, CONTAINERS, Column, IMAGES, NAME, Printer, SELECTOR};
use jiff::Timestamp;
use serde_json::{Value, json};

const TEMPLATE: &str = "/spec/template/spec";

/// Deployments.
pub(super) const DEPLOYMENT: Printer = Printer::new(
    &[
        NAME,
        Column::text("Ready", "Ready pods, of those wanted."),
        Column::text("Up-to-date", "Pods made from the current template."),
        Column::text("Available", "Pods that have been ready long enough."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |object, now| {
        let [names, images] = containers(object, TEMPLATE);
        vec![
            name(object),
            json!(format!("{}/{}", int(object, "/status/readyReplicas"), int(object, "/spec/replicas"))),
            json!(int(object, "/status/updatedReplicas")),
            json!(int(object, "/status/availableReplicas")),
            created(object, now),
            names,
            images,
            json!(selector(object.pointer("/spec/selector")).unwrap_or_else(|()| "<invalid>".to_owned())),
        ]
    },
);

const REPLICAS: &[Column] = &[
    NAME,
    Column::int("Desired", "Pods wanted."),
    Column::int("Current", "Pods there are."),
    Column::int("Ready", "Pods that are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// Replica sets.
pub(super) const REPLICA_SET: Printer = Printer::new(REPLICAS, |object, now| {
    replicas(object, now, selector_or_none(object.pointer("/spec/selector")))
});

/// Replication controllers: replica sets with a plain map as selector.
pub(super) const REPLICATION_CONTROLLER: Printer =
    Printer::new(REPLICAS, |object, now| replicas(object, now, json!(labels(map(object, "/spec/selector")))));

fn replicas(object: &Value, now: Timestamp, selector: Value) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    vec![
        name(object),
        json!(int(object, "/spec/replicas")),
        json!(int(object, "/status/replicas")),
        json!(int(object, "/status/readyReplicas")),
        created(object, now),
        names,
        images,
        selector,
    ]
}

/// Stateful sets.
pub(super) const STATEFUL_SET: Printer = Printer::new(
    &[NAME, Column::text("Ready", "Ready pods, of those wanted."), AGE, CONTAINERS, IMAGES],
    |object, now| {
        let [names, images] = containers(object, TEMPLATE);
        let ready = format!("{}/{}", int(object, "/status/readyReplicas"), int(object, "/spec/replicas"));
        vec![name(object), json!(ready), created(object, now), names, images]
    },
);

/// Daemon sets.
pub(super) const DAEMON_SET: Printer = Printer::new(
    &[
        NAME,
        Column::int("Desired", "Nodes that should run the pod."),
        Column::int("Current", "Nodes that should and do run it."),
        Column::int("Ready", "Nodes where it is ready."),
        Column::int("Up-to-date", "Nodes that run the current template."),
        Column::int("Available", "Nodes where it has been ready long enough."),
        Column::text("Node Selector", "Labels of the nodes it runs on."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |object, now| {
        let [names, images] = containers(object, TEMPLATE);
        vec![
            name(object),
            json!(int(object, "/status/desiredNumberScheduled")),
            json!(int(object, "/status/currentNumberScheduled")),
            json!(int(object, "/status/numberReady")),
            json!(int(object, "/status/updatedNumberScheduled")),
            json!(int(object, "/status/numberAvailable")),
            json!(labels(map(object, "/spec/template/spec/nodeSelector"))),
            created(object, now),
            names,
            images,
            selector_or_none(object.pointer("/spec/selector")),
        ]
    },
);

/// Jobs.
pub(super) const JOB: Printer = Printer::new(
    &[
        NAME,
        Column::text("Status", "How far the job is."),
        Column::text("Completions", "Pods that succeeded, of those wanted."),
        Column::text("Duration", "Time from start to completion, or until now."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |object, now| {
        let [names, images] = containers(object, TEMPLATE);
        vec![
            name(object),
            json!(job_status(object)),
            json!(completions(object)),
            json!(job_duration(object, now)),
            created(object, now),
            names,
            images,
            selector_or_none(object.pointer("/spec/selector")),
        ]
    },
);

fn job_status(job: &Value) -> &'static str {
    let holds = |kind: &str| {
        let first = list(job, "/status/conditions").iter().find(|c| text(c, "/type") == kind);
        first.is_some_and(|condition| text(condition, "/status") == "True")
    };
    if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if has(job, "/metadata/deletionTimestamp") {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(job: &Value) -> String {
    let succeeded = int(job, "/status/succeeded");
    if has(job, "/spec/completions") {
        return format!("{succeeded}/{}", int(job, "/spec/completions"));
    }
    match int(job, "/spec/parallelism") {
        workers @ 2.. => format!("{succeeded}/1 of {workers}"),
        _ => format!("{succeeded}/1"),
    }
}

fn job_duration(job: &Value, now: Timestamp) -> String {
    match (time(job, "/status/startTime"), time(job, "/status/completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => age::human_duration(age::seconds_between(start, end.unwrap_or(now))),
    }
}

/// Cron jobs.
pub(super) const CRON_JOB: Printer = Printer::new(
    &[
        NAME,
        Column::text("Schedule", "When it runs, in cron format."),
        Column::text("Timezone", "Time zone of the schedule."),
        Column::flag("Suspend", "Whether it is paused."),
        Column::int("Active", "Jobs that are running now."),
        Column::text("Last Schedule", "Time since the last job was made."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |object, now| {
        let [names, images] = containers(object, "/spec/jobTemplate/spec/template/spec");
        let last = match time(object, "/status/lastScheduleTime") {
            Some(last) => age::since(Some(last), now),
            None => NONE.to_owned(),
        };
        let suspend = match flag(object, "/spec/suspend") {
            Some(true) => "True",
            Some(false) => "False",
            None => UNSET,
        };
        vec![
            name(object),
            json!(text(object, "/spec/schedule")),
            json!(set_or(object, "/spec/timeZone", NONE)),
            json!(suspend),
            json!(list(object, "/status/active").len()),
            json!(last),
            created(object, now),
            names,
            images,
            selector_or_none(object.pointer("/spec/jobTemplate/spec/selector")),
        ]
    },
);

/// Pod templates.
pub(super) const POD_TEMPLATE: Printer = Printer::new(
    &[
        NAME,
        Column::text("Containers", "Names of the containers."),
        Column::text("Images", "Images of the containers."),
        Column::text("Pod Labels", "Labels of pods made from the template."),
    ],
    |object, _| {
        let [names, images] = containers(object, "/template/spec");
        vec![name(object), names, images, json!(labels(map(object, "/template/metadata/labels")))]
    },
);

/// Controller revisions.
pub(super) const CONTROLLER_REVISION: Printer = Printer::new(
    &[
        NAME,
        Column::text("Controller", "Object the revision belongs to."),
        Column::text("Revision", "Number of the revision."),
        AGE,
    ],
    |object, now| {
        let owners = list(object, "/metadata/ownerReferences");
        let owner = owners.iter().find(|owner| flag(owner, "/controller") == Some(true)).map(owner_name);
        vec![
            name(object),
            json!(owner.unwrap_or_else(|| NONE.to_owned())),
            json!(int(object, "/revision")),
            created(object, now),
        ]
    },
);

/// `statefulset.apps/web`; the group is left out for core kinds.
fn owner_name(owner: &Value) -> String {
    let kind = text(owner, "/kind").to_lowercase();
    match (text(owner, "/apiVersion").split_once('/'), kind.as_str()) {
        (None, "") => text(owner, "/name").to_owned(),
        (None, kind) => format!("{kind}/{}", text(owner, "/name")),
        (Some((group, _)), kind) => format!("{kind}.{}/{}", group.to_lowercase(), text(owner, "/name")),
    }
}

/// Pod disruption budgets.
pub(super) const BUDGET: Printer = Printer::new(
    &[
        NAME,
        Column::text("Min Available", "Pods that must stay available."),
        Column::text("Max Unavailable", "Pods that may be unavailable."),
        Column::int("Allowed Disruptions", "Pods that may be evicted now."),
        AGE,
    ],
    |object, now| {
        let bound = |pointer: &str| match object.pointer(pointer) {
            Some(value) if !value.is_null() => scalar(value),
            _ => "N/A".to_owned(),
        };
        vec![
            name(object),
            json!(bound("/spec/minAvailable")),
            json!(bound("/spec/maxUnavailable")),
            json!(int(object, "/status/disruptionsAllowed")),
            created(object, now),
        ]
    },
);

/// The scale subresource. Its name column has no format upstream either.
pub(super) const SCALE: Printer = Printer::new(
    &[
        Column::text("Name", "Name of the scaled object."),
        Column::int("Desired", "Pods wanted."),
        Column::int("Available", "Pods there are."),
        AGE,
    ],
    |object, now| {
        vec![
            name(object),
            json!(int(object, "/spec/replicas")),
            json!(int(object, "/status/replicas")),
            created(object, now),
        ]
    },
);

/// Horizontal pod autoscalers, `autoscaling/v1` and `autoscaling/v2`.
pub(super) const AUTOSCALER: Printer = Printer::new(
    &[
        NAME,
        Column::text("Reference", "What is scaled."),
        Column::text("Targets", "Current and wanted value of each metric."),
        Column::text("MinPods", "Lower bound of pods."),
        Column::text("MaxPods", "Upper bound of pods."),
        Column::text("Replicas", "Pods there are."),
        AGE,
    ],
    |object, now| {
        let reference = format!(
            "{}/{}",
            text(object, "/spec/scaleTargetRef/kind"),
            text(object, "/spec/scaleTargetRef/name")
        );
        let least = object.pointer("/spec/minReplicas").map_or_else(|| UNSET.to_owned(), scalar);
        vec![
            name(object),
            json!(reference),
            json!(targets(object)),
            json!(least),
            json!(int(object, "/spec/maxReplicas")),
            json!(int(object, "/status/currentReplicas")),
            created(object, now),
        ]
    },
);

/// `autoscaling/v1` knows CPU utilization only, and 80 % of it when nothing is said.
fn targets(object: &Value) -> String {
    let percent = |value: i64| format!("{value}%");
    if text(object, "/apiVersion") != "autoscaling/v2" {
        let wanted =
            object.pointer("/spec/targetCPUUtilizationPercentage").and_then(Value::as_i64).unwrap_or(80);
        let current = object.pointer("/status/currentCPUUtilizationPercentage").and_then(Value::as_i64);
        let current = current.map_or_else(|| UNKNOWN.to_owned(), percent);
        return format!("cpu: {current}/{}", percent(wanted));
    }
    let specs = list(object, "/spec/metrics");
    if specs.is_empty() {
        return NONE.to_owned();
    }
    let statuses = list(object, "/status/currentMetrics");
    let shown: Vec<String> =
        specs.iter().enumerate().map(|(index, spec)| target(spec, statuses.get(index))).collect();
    and_more(&shown, 2, ", ")
}

fn target(spec: &Value, status: Option<&Value>) -> String {
    let (field, by_resource) = match text(spec, "/type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = |kind: &str| spec.pointer(&format!("/{field}/target/{kind}")).filter(|v| !v.is_null());
    let source = status.and_then(|status| status.get(field)).filter(|status| !status.is_null());
    let current = |kind: &str| source.and_then(|source| source.pointer(&format!("/current/{kind}")));
    let or_unknown = |value: Option<String>| value.unwrap_or_else(|| UNKNOWN.to_owned());
    let average = wanted("averageValue");
    if by_resource {
        let resource = text(spec, &format!("/{field}/name"));
        let (now, goal) = match average {
            Some(goal) => (source.map(|_| quantity(current("averageValue"))), scalar(goal)),
            None => (
                current("averageUtilization").map(|value| format!("{}%", scalar(value))),
                wanted("averageUtilization")
                    .map_or_else(|| "<auto>".to_owned(), |value| format!("{}%", scalar(value))),
            ),
        };
        return format!("{resource}: {}/{goal}", or_unknown(now));
    }
    match (field, average) {
        ("pods", _) => {
            format!("{}/{}", or_unknown(source.map(|_| quantity(current("averageValue")))), quantity(average))
        }
        (_, Some(goal)) => {
            format!("{}/{} (avg)", or_unknown(current("averageValue").map(scalar)), scalar(goal))
        }
        (_, None) => {
            format!(
                "{}/{}",
                or_unknown(source.map(|_| quantity(current("value")))),
                quantity(wanted("value"))
            )
        }
    }
}

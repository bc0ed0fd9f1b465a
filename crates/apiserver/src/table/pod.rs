//! What does a pod show?
//!
//! The status column is the most telling word that can be found: the phase, unless a container, an init container,
//! a scheduling gate or a deletion says something more exact.

use super::age;
use super::cells::{NONE, created, flag, has, int, list, name, text, text_or, time};
use super::columns::{AGE, Column, NAME, Printer};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Pods.
pub(super) const POD: Printer = Printer::new(
    &[
        NAME,
        Column::text("Ready", "Containers that are ready, of all that should be."),
        Column::text("Status", "What the pod is doing, or why it is not."),
        Column::text("Restarts", "Restarts of its containers, and how long ago the last one was."),
        AGE,
        Column::text("IP", "First address of the pod.").wide(),
        Column::text("Node", "Node the pod is bound to.").wide(),
        Column::text("Nominated Node", "Node on which room is being made for the pod.").wide(),
        Column::text("Readiness Gates", "Readiness gates that are passed, of all.").wide(),
    ],
    cells,
);

/// The row condition of pods that have ended.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let phase = text(pod, "/status/phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{ "type": "Completed", "status": "True", "reason": phase, "message": message }]))
}

fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = summary(pod);
    let restarts = match summary.restarts.last {
        Some(last) if summary.restarts.count != 0 => {
            format!("{} ({} ago)", summary.restarts.count, age::since(Some(last), now))
        }
        _ => summary.restarts.count.to_string(),
    };
    let first_address = text(pod, "/status/podIPs/0/ip");
    let address = if first_address.is_empty() { text_or(pod, "/status/podIP", NONE) } else { first_address };
    vec![
        name(pod),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        created(pod, now),
        json!(address),
        json!(text_or(pod, "/spec/nodeName", NONE)),
        json!(text_or(pod, "/status/nominatedNodeName", NONE)),
        json!(gates(pod)),
    ]
}

fn gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let passed = gates.iter().filter(|gate| condition(pod, text(gate, "/conditionType"))).count();
    format!("{passed}/{}", gates.len())
}

/// Whether the first condition of this type is true.
fn condition(pod: &Value, kind: &str) -> bool {
    list(pod, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == kind)
        .is_some_and(|condition| text(condition, "/status") == "True")
}

#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += int(container, "/restartCount");
        self.last = self.last.max(time(container, "/lastState/terminated/finishedAt"));
    }
}

struct Summary {
    ready: usize,
    total: usize,
    reason: String,
    restarts: Restarts,
}

fn summary(pod: &Value) -> Summary {
    let phase = text(pod, "/status/phase");
    let own_reason = text(pod, "/status/reason");
    let init = init(pod);
    let mut out = Summary {
        ready: init.ready,
        total: list(pod, "/spec/containers").len() + init.sidecars,
        reason: if own_reason.is_empty() { phase } else { own_reason }.to_owned(),
        restarts: init.all,
    };
    let gated = |c: &Value| text(c, "/type") == "PodScheduled" && text(c, "/reason") == "SchedulingGated";
    if list(pod, "/status/conditions").iter().any(gated) {
        "SchedulingGated".clone_into(&mut out.reason);
    }
    let initializing = init.blocked_by.is_some();
    if let Some(reason) = init.blocked_by {
        out.reason = reason;
    }
    if !initializing || condition(pod, "Initialized") {
        out.restarts = init.sidecar_restarts;
        containers(pod, &mut out);
    }
    if has(pod, "/metadata/deletionTimestamp") {
        if own_reason == "NodeLost" {
            "Unknown".clone_into(&mut out.reason);
        } else if phase != "Succeeded" && phase != "Failed" {
            "Terminating".clone_into(&mut out.reason);
        }
    }
    out
}

/// What the init containers say.
#[derive(Default)]
struct Init {
    /// How many restartable ones there are: they run beside the containers and count as such.
    sidecars: usize,
    /// Restartable ones that are ready.
    ready: usize,
    /// Restarts of all that were looked at, shown while initializing.
    all: Restarts,
    /// Restarts of the restartable ones, shown afterwards.
    sidecar_restarts: Restarts,
    /// The status to show when one of them is not through yet.
    blocked_by: Option<String>,
}

fn init(pod: &Value) -> Init {
    let specs = list(pod, "/spec/initContainers");
    let is_sidecar = |spec: &Value| text(spec, "/restartPolicy") == "Always";
    let mut out = Init { sidecars: specs.iter().filter(|spec| is_sidecar(spec)).count(), ..Init::default() };
    for (index, container) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
        let spec = specs.iter().rfind(|spec| text(spec, "/name") == text(container, "/name"));
        let sidecar = spec.is_some_and(is_sidecar);
        out.all.add(container);
        if sidecar {
            out.sidecar_restarts.add(container);
        }
        let ended = container.pointer("/state/terminated").filter(|state| state.is_object());
        if ended.is_some_and(|state| int(state, "/exitCode") == 0) {
            continue;
        }
        if sidecar && flag(container, "/started") == Some(true) {
            out.ready += usize::from(flag(container, "/ready") == Some(true));
            continue;
        }
        let waiting = text(container, "/state/waiting/reason");
        out.blocked_by = Some(match ended {
            Some(state) => format!("Init:{}", end_reason(state)),
            None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
            None => format!("Init:{index}/{}", specs.len()),
        });
        break;
    }
    out
}

/// Why a container ended: the reason, or the signal, or the exit code.
fn end_reason(state: &Value) -> String {
    match (text(state, "/reason"), int(state, "/signal")) {
        ("", 0) => format!("ExitCode:{}", int(state, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// The first container that has something to say decides; "Completed" gives way to what is worth knowing.
fn containers(pod: &Value, out: &mut Summary) {
    let mut running = false;
    let mut failure = None;
    for container in list(pod, "/status/containerStatuses").iter().rev() {
        out.restarts.add(container);
        let waiting = text(container, "/state/waiting/reason");
        let ended = container.pointer("/state/terminated").filter(|state| state.is_object());
        if !waiting.is_empty() {
            waiting.clone_into(&mut out.reason);
        } else if let Some(state) = ended {
            out.reason = end_reason(state);
            if int(state, "/exitCode") != 0 {
                failure = Some(out.reason.clone());
            }
        } else if flag(container, "/ready") == Some(true) && has(container, "/state/running") {
            running = true;
            out.ready += 1;
        }
    }
    if out.reason == "Completed" {
        if running && list(pod, "/status/conditions").iter().any(is_ready) {
            "Running".clone_into(&mut out.reason);
        } else if let Some(failure) = failure {
            out.reason = failure;
        } else if running {
            "NotReady".clone_into(&mut out.reason);
        }
    }
}

fn is_ready(condition: &Value) -> bool {
    text(condition, "/type") == "Ready" && text(condition, "/status") == "True"
}

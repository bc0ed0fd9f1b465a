//! What happens to a pod next on its node, and what does the node say about it?

use crate::cluster::{Container, Pod};
use jiff::{SignedDuration, Timestamp};
use loadline_core::view::Phase;
use serde_json::{Value, json};
use std::time::Duration;

/// What is to be done with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its containers start now.
    Start,
    /// Its containers end by themselves now.
    Succeed,
    /// It has ended as asked and can be forgotten.
    Remove,
    /// Nothing yet; look again then.
    Wait(Duration),
    /// Nothing until somebody changes it.
    Rest,
}

/// The next step for a pod on a node. `start_after` is how long containers take to start.
#[must_use]
pub fn next(pod: &Pod, start_after: Duration, now: Timestamp) -> Stage {
    if let Some(deadline) = pod.meta.deleted {
        let grace = SignedDuration::from_secs(pod.meta.grace.unwrap_or(0));
        let asked = deadline - grace;
        let lingers = SignedDuration::try_from(pod.stop_after()).unwrap_or(SignedDuration::MAX);
        let lingers = if pod.phase == Phase::Running { lingers.min(grace) } else { SignedDuration::ZERO };
        return until(asked, lingers, now, Stage::Remove);
    }
    match pod.phase {
        Phase::Pending => {
            let since = pod.scheduled.unwrap_or(now);
            until(since, SignedDuration::try_from(start_after).unwrap_or_default(), now, Stage::Start)
        }
        Phase::Running => match (pod.run_for(), pod.started) {
            (Some(runs), Some(started)) => {
                let runs = SignedDuration::try_from(runs).unwrap_or(SignedDuration::MAX);
                until(started, runs, now, Stage::Succeed)
            }
            _ => Stage::Rest,
        },
        Phase::Succeeded | Phase::Failed | Phase::Unknown => Stage::Rest,
    }
}

fn until(from: Timestamp, after: SignedDuration, now: Timestamp, stage: Stage) -> Stage {
    let passed = now.duration_since(from);
    match after.checked_sub(passed) {
        Some(left) if left > SignedDuration::ZERO => Duration::try_from(left).map_or(stage, Stage::Wait),
        _ => stage,
    }
}

/// Where a pod runs.
pub struct Site<'a> {
    pub host_ip: &'a str,
    pub pod_ip: &'a str,
    pub now: Timestamp,
}

/// The status of a pod whose containers have just started, as a patch.
pub fn running(pod: &Pod, site: &Site<'_>) -> Value {
    let now = stamp(site.now);
    let state = json!({"running": {"startedAt": now}});
    let status = |c: &Container| container(pod, c, &state, true);
    let finished = json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now,
        "containerID": container_id(pod, "init"),
    }});
    let init = |c: &Container| {
        let sidecar = c.restart_policy.as_deref() == Some("Always");
        if sidecar { status(c) } else { container(pod, c, &finished, false) }
    };
    let mut patch = json!({
        "phase": "Running",
        "observedGeneration": pod.meta.generation,
        "conditions": conditions(pod, &now, "True", None),
        "startTime": now,
        "hostIP": site.host_ip, "hostIPs": [{"ip": site.host_ip}],
        "podIP": site.pod_ip, "podIPs": [{"ip": site.pod_ip}],
        "containerStatuses": pod.containers.iter().map(status).collect::<Vec<_>>(),
    });
    if !pod.init_containers.is_empty() {
        let statuses = pod.init_containers.iter().map(init).collect::<Vec<_>>();
        patch["initContainerStatuses"] = Value::Array(statuses);
    }
    json!({"metadata": {"uid": &*pod.meta.id.uid}, "status": patch})
}

/// The status of a pod whose containers have just ended well, as a patch.
pub fn succeeded(pod: &Pod, now: Timestamp) -> Value {
    let now = stamp(now);
    let started = stamp(pod.started.unwrap_or(Timestamp::UNIX_EPOCH));
    let status = |c: &Container| {
        let state = json!({"running": null, "terminated": {
            "exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": now,
            "containerID": container_id(pod, &c.name),
        }});
        container(pod, c, &state, false)
    };
    json!({"metadata": {"uid": &*pod.meta.id.uid}, "status": {
        "phase": "Succeeded",
        "observedGeneration": pod.meta.generation,
        "conditions": conditions(pod, &now, "False", Some("PodCompleted")),
        "containerStatuses": pod.containers.iter().map(status).collect::<Vec<_>>(),
    }})
}

fn container(pod: &Pod, c: &Container, state: &Value, running: bool) -> Value {
    json!({
        "name": c.name, "image": c.image, "imageID": format!("loadline-sim://{}", c.image),
        "containerID": container_id(pod, &c.name), "restartCount": 0,
        "ready": running, "started": running, "state": state, "lastState": {},
    })
}

fn container_id(pod: &Pod, name: &str) -> String {
    format!("containerd://{}", bare_id(&pod.meta.id.uid, name))
}

/// What the runtime of a node calls a container of a pod; the same whenever it is asked.
pub fn bare_id(uid: &str, name: &str) -> String {
    let part = |seed| super::dice(seed, &format!("{uid}/{name}"));
    format!("{:016x}{:016x}{:016x}{:016x}", part(0), part(1), part(2), part(3))
}

/// Conditions, to be merged by type: the server keeps `PodScheduled`.
fn conditions(pod: &Pod, now: &str, up: &str, why: Option<&str>) -> Value {
    let condition = |kind: &str, status: &str, reason: Option<&str>| {
        let mut condition = json!({
            "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": now,
            "observedGeneration": pod.meta.generation,
        });
        if let Some(reason) = reason {
            condition["reason"] = json!(reason);
        }
        condition
    };
    let initialized = condition("Initialized", "True", why);
    json!([
        condition("PodReadyToStartContainers", up, None),
        initialized,
        condition("Ready", up, why),
        condition("ContainersReady", up, why),
    ])
}

fn stamp(at: Timestamp) -> String {
    loadline_api::time::text(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ObjectMeta;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn pod(phase: Phase, annotations: &[(&str, &str)]) -> Pod {
        let annotations = annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let started = (phase == Phase::Running).then(|| at(0));
        Pod {
            meta: ObjectMeta { annotations, ..ObjectMeta::default() },
            phase,
            started,
            scheduled: Some(at(0)),
            ..Pod::default()
        }
    }

    fn deleted(mut pod: Pod, asked: i64, grace: i64) -> Pod {
        pod.meta.deleted = Some(at(asked + grace));
        pod.meta.grace = Some(grace);
        pod
    }

    #[test]
    fn pods_start_end_and_go_when_they_should() {
        let linger = ("loadline.dev/stop-after", "5s");
        let wait = |seconds| Stage::Wait(Duration::from_secs(seconds));
        let running = |annotations: &[(&str, &str)]| pod(Phase::Running, annotations);
        let table = [
            (pod(Phase::Pending, &[]), 0, wait(1), "containers take a moment to start"),
            (pod(Phase::Pending, &[]), 1, Stage::Start, "and then start"),
            (running(&[]), 900, Stage::Rest, "without an annotation it runs forever"),
            (running(&[("loadline.dev/run-for", "10s")]), 4, wait(6), "it has not run long enough"),
            (running(&[("loadline.dev/run-for", "10s")]), 10, Stage::Succeed, "it has run long enough"),
            (running(&[("loadline.dev/run-for", "soon")]), 10, Stage::Rest, "nonsense counts as none"),
            (running(&[("loadline.dev/run-for", "-1s")]), 10, Stage::Rest, "so does a negative duration"),
            (pod(Phase::Succeeded, &[]), 10, Stage::Rest, "it is over"),
            (deleted(running(&[]), 20, 30), 20, Stage::Remove, "by default it ends when asked"),
            (deleted(running(&[linger]), 20, 30), 22, wait(3), "it lingers when told to"),
            (deleted(running(&[linger]), 20, 30), 25, Stage::Remove, "and then ends"),
            (deleted(running(&[linger]), 20, 2), 21, wait(1), "it is killed after the grace period"),
            (deleted(running(&[linger]), 20, 2), 22, Stage::Remove, "however long it would linger"),
            (
                deleted(pod(Phase::Pending, &[linger]), 20, 30),
                20,
                Stage::Remove,
                "nothing runs that could linger",
            ),
        ];
        for (pod, now, expected, why) in table {
            assert_eq!(next(&pod, Duration::from_secs(1), at(now)), expected, "{why}");
        }
    }

    #[test]
    fn a_running_pod_reports_every_container_and_leaves_its_binding_to_the_server() {
        let mut pod = pod(Phase::Pending, &[]);
        pod.containers = vec![Container { name: "a".into(), ..Container::default() }];
        pod.init_containers = vec![Container { name: "i".into(), ..Container::default() }];
        let patch = running(&pod, &Site { host_ip: "172.18.0.1", pod_ip: "10.64.0.2", now: at(0) });
        let status = &patch["status"];
        assert_eq!(status["containerStatuses"][0]["ready"], true);
        let id = status["containerStatuses"][0]["containerID"].as_str().unwrap();
        assert_eq!(id, format!("containerd://{}", bare_id(&pod.meta.id.uid, "a")), "as its runtime calls it");
        assert_eq!(status["initContainerStatuses"][0]["state"]["terminated"]["reason"], "Completed");
        assert!(status["conditions"].as_array().unwrap().iter().all(|c| c["type"] != "PodScheduled"));
    }
}

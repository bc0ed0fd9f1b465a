//! Binding a pod to a node.

use super::body::Wanted;
use super::{Answer, ApiServer, Call};
use crate::status::{FieldError, Status, Subject};
use crate::store::Expect;
use serde_json::{Value, json};

/// Labels of a node that its pods get when they are bound.
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];
const BINDING: Subject<'_> = Subject { group: "", resource: "pods/binding", kind: "Binding" };

impl ApiServer {
    pub(super) fn bind(&self, call: &Call) -> Result<Answer, Status> {
        call.check_options("CreateOptions", Vec::new())?;
        let wanted = Wanted { group: "", version: "v1", kind: "Binding" };
        let mut body = call.decode_as(wanted)?;
        let name = match call.target.name.as_deref() {
            Some(name) => name.to_owned(),
            None => body["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        };
        let given = body["metadata"]["name"].as_str().unwrap_or_default();
        if !given.is_empty() && given != name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        let node = checked_target(&body)?.to_owned();
        self.add_topology(&mut body, &node);
        let pods = self.registry().find("", "v1", "pods").cloned();
        let Some(pods) = pods else { return Err(Status::no_such_resource()) };
        let key = crate::store::key(call.namespace(), &name);
        let dry_run = call.dry_run();
        loop {
            let live = self.0.store.get(&pods.table, &key);
            let live = live.ok_or_else(|| Status::not_found(pods.subject(), &name))?;
            let mut pod = live.value();
            check_pod(call, &pod, &body, &name)?;
            assign(&mut pod, &body, &node, &self.now_text());
            if dry_run || self.0.store.put(&pods.table, &key, Expect::Revision(live.revision), pod).is_ok() {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
                });
                return Ok(Answer::value(201, &status));
            }
        }
    }

    /// Has the pod labelled with where its node is.
    fn add_topology(&self, body: &mut Value, node: &str) {
        let Some(node) = self.0.store.get("/nodes", node) else { return };
        let node = node.value();
        let labels = &node["metadata"]["labels"];
        for key in TOPOLOGY.into_iter().filter(|key| labels[*key].is_string()) {
            body["metadata"]["labels"][key] = labels[key].clone();
        }
    }
}

fn checked_target(body: &Value) -> Result<&str, Status> {
    let target = &body["target"];
    let mut errors = Vec::new();
    let kind = target["kind"].as_str().unwrap_or_default();
    if !kind.is_empty() && kind != "Node" {
        errors.push(FieldError::not_supported("target.kind", &json!(kind), &["Node", "<empty>"]));
    }
    let node = target["name"].as_str().unwrap_or_default();
    if node.is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    if errors.is_empty() {
        return Ok(node);
    }
    // Nobody upstream turns these into a proper answer.
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let message = if errors.len() == 1 { errors.concat() } else { format!("[{}]", errors.join(", ")) };
    Err(Status::new(500, "", message))
}

fn check_pod(call: &Call, pod: &Value, body: &Value, name: &str) -> Result<(), Status> {
    if let Some(uid) = body["metadata"]["uid"].as_str().filter(|u| !u.is_empty())
        && pod["metadata"]["uid"] != uid
    {
        let have = pod["metadata"]["uid"].as_str().unwrap_or_default();
        let subject = Subject { group: "", resource: "pods", kind: "Pod" };
        return Err(Status::conflict(subject, name, &call.wrong_uid(uid, have)));
    }
    if pod["metadata"].get("deletionTimestamp").is_some_and(|t| !t.is_null()) {
        let why = format!("pod {name} is being deleted, cannot be assigned to a host");
        return Err(Status::conflict(BINDING, name, &why));
    }
    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|n| !n.is_empty()) {
        let why = format!("pod {name} is already assigned to node {node:?}");
        return Err(Status::conflict(BINDING, name, &why));
    }
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|g| !g.is_empty()) {
        let why = format!("pod {name} has non-empty .spec.schedulingGates");
        return Err(Status::conflict(BINDING, name, &why));
    }
    Ok(())
}

fn assign(pod: &mut Value, body: &Value, node: &str, now: &str) {
    pod["spec"]["nodeName"] = json!(node);
    for field in ["annotations", "labels"] {
        if let Some(extra) = body["metadata"][field].as_object() {
            for (key, value) in extra {
                pod["metadata"][field][key] = value.clone();
            }
        }
    }
    let condition =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    let conditions = &mut pod["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(list) = conditions.as_array_mut() {
        list.retain(|c| c["type"] != "PodScheduled");
        list.push(condition);
    }
}

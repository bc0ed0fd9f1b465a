//! Problems of the containers of a pod.

use crate::builtin::json::{get, has, int, list, text};
use crate::builtin::names;
use crate::builtin::validate::check::{
    Errors, amount, amounts, duplicate, each, forbidden, invalid, is_extended, is_native, may_overcommit,
    must_be, nonnegative, required, resource_name,
};
use crate::status::{FieldError, Mistake};
use loadline_machinery::quantity::Quantity;
use serde_json::{Value, json};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// All containers of a pod's spec.
pub(super) fn containers(spec: &Value, volumes: &[&str], path: &str, out: &mut Errors) {
    let regular = list(spec, "containers");
    let claims: Vec<&str> = list(spec, "resourceClaims").iter().map(|c| text(c, "name")).collect();
    if regular.is_empty() {
        required(out, format!("{path}.containers"), "");
    }
    let mut seen: Vec<&str> = Vec::new();
    for (i, held) in regular.iter().enumerate() {
        let path = format!("{path}.containers[{i}]");
        common(held, volumes, &claims, &path, out);
        let name = text(held, "name");
        if seen.contains(&name) {
            duplicate(out, format!("{path}.name"), &json!(name));
        }
        seen.push(name);
        handlers(held, &path, out);
    }
    host_ports(regular, &format!("{path}.containers"), out);
    let mut seen: Vec<&str> = regular.iter().map(|c| text(c, "name")).collect();
    for (i, held) in list(spec, "initContainers").iter().enumerate() {
        let list_path = format!("{path}.initContainers");
        let path = format!("{list_path}[{i}]");
        common(held, volumes, &claims, &path, out);
        let name = text(held, "name");
        if seen.contains(&name) {
            duplicate(out, format!("{path}.name"), &json!(name));
        } else if !name.is_empty() {
            seen.push(name);
        }
        host_ports(std::slice::from_ref(held), &list_path, out);
        if text(held, "restartPolicy") == "Always" {
            handlers(held, &path, out);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if has(held, key) {
                    let why = "may not be set for init containers without restartPolicy=Always";
                    forbidden(out, format!("{path}.{key}"), why);
                }
            }
        }
    }
}

fn common(held: &Value, volumes: &[&str], claims: &[&str], path: &str, out: &mut Errors) {
    let name = text(held, "name");
    if name.is_empty() {
        required(out, format!("{path}.name"), "");
    } else {
        each(out, &format!("{path}.name"), name, names::label(name));
    }
    if text(held, "image").is_empty() {
        required(out, format!("{path}.image"), "");
    }
    must_be(out, held, "terminationMessagePolicy", path, &["File", "FallbackToLogsOnError"]);
    ports(held, path, out);
    env(held, path, out);
    mounts(held, volumes, path, out);
    must_be(out, held, "imagePullPolicy", path, &["Always", "IfNotPresent", "Never"]);
    resources(get(held, "resources"), claims, &format!("{path}.resources"), false, out);
}

fn ports(held: &Value, path: &str, out: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, port) in list(held, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{i}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let problems = names::port_name(name);
            if problems.is_empty() && seen.contains(&name) {
                duplicate(out, format!("{path}.name"), &json!(name));
            } else if problems.is_empty() {
                seen.push(name);
            }
            each(out, &format!("{path}.name"), name, problems);
        }
        match int(port, "containerPort").unwrap_or(0) {
            0 => required(out, format!("{path}.containerPort"), ""),
            number => {
                if let Some(why) = names::port_number(number) {
                    invalid(out, format!("{path}.containerPort"), &json!(number), why);
                }
            }
        }
        if let Some(why) = int(port, "hostPort").filter(|n| *n != 0).and_then(names::port_number) {
            invalid(out, format!("{path}.hostPort"), get(port, "hostPort"), why);
        }
        must_be(out, port, "protocol", &path, &PROTOCOLS);
    }
}

/// No two containers may ask for the same port of the node.
fn host_ports(containers: &[Value], path: &str, out: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for (i, held) in containers.iter().enumerate() {
        for (j, port) in list(held, "ports").iter().enumerate() {
            let Some(number) = int(port, "hostPort").filter(|n| *n != 0) else { continue };
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if seen.contains(&key) {
                duplicate(out, format!("{path}[{i}].ports[{j}].hostPort"), &json!(key));
            } else {
                seen.push(key);
            }
        }
    }
}

/// On the network of the host, ports of containers are ports of the node.
pub(super) fn host_ports_match(spec: &Value, path: &str, out: &mut Errors) {
    for key in ["containers", "initContainers"] {
        for (i, held) in list(spec, key).iter().enumerate() {
            for (j, port) in list(held, "ports").iter().enumerate() {
                let number = int(port, "hostPort").unwrap_or(0);
                if number != int(port, "containerPort").unwrap_or(0) {
                    let why = "must match `containerPort` when `hostNetwork` is true";
                    invalid(out, format!("{path}.{key}[{i}].ports[{j}].hostPort"), &json!(number), why);
                }
            }
        }
    }
}

fn env(held: &Value, path: &str, out: &mut Errors) {
    for (i, variable) in list(held, "env").iter().enumerate() {
        let path = format!("{path}.env[{i}]");
        let name = text(variable, "name");
        if name.is_empty() {
            required(out, format!("{path}.name"), "");
        } else {
            each(out, &format!("{path}.name"), name, names::env_name(name));
        }
        let from = get(variable, "valueFrom");
        if from.is_null() {
            continue;
        }
        let path = format!("{path}.valueFrom");
        let sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
        let count = sources.iter().filter(|key| has(from, key)).count();
        for key in ["configMapKeyRef", "secretKeyRef"].iter().filter(|key| has(from, key)) {
            if text(get(from, key), "name").is_empty() {
                required(out, format!("{path}.{key}.name"), "");
            }
            if text(get(from, key), "key").is_empty() {
                required(out, format!("{path}.{key}.key"), "");
            }
        }
        let why = if count == 0 {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or \
             `fileKeyRef`"
        } else if !text(variable, "value").is_empty() {
            "may not be specified when `value` is not empty"
        } else if count > 1 {
            "may not have more than one field specified at a time"
        } else {
            continue;
        };
        invalid(out, path, &json!(""), why);
    }
}

fn mounts(held: &Value, volumes: &[&str], path: &str, out: &mut Errors) {
    let mut points: Vec<&str> = Vec::new();
    for (i, mount) in list(held, "volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{i}]");
        let (name, point) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            required(out, format!("{path}.name"), "");
        }
        if !volumes.contains(&name) {
            out.push(FieldError {
                mistake: Mistake::NotFound,
                field: format!("{path}.name"),
                value: Some(format!("{name:?}")),
                detail: String::new(),
            });
        }
        if point.is_empty() {
            required(out, format!("{path}.mountPath"), "");
        }
        if points.contains(&point) {
            invalid(out, format!("{path}.mountPath"), &json!(point), "must be unique");
        }
        points.push(point);
    }
}

fn name_in_container(out: &mut Errors, name: &str, path: &str) {
    resource_name(out, name, path);
    if !name.contains('/') {
        let known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
        if !known {
            invalid(out, path, &json!(name), "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        invalid(out, path, &json!(name), "doesn't follow extended resource name standard");
    }
}

fn name_in_pod(out: &mut Errors, name: &str, path: &str) {
    resource_name(out, name, path);
    if !matches!(name, "cpu" | "memory") && !name.starts_with("hugepages-") {
        let all = ["cpu", "hugepages-", "memory"];
        out.push(FieldError::not_supported(path, &json!(name), &all));
    }
}

/// Requests and limits.
fn resources(held: &Value, claims: &[&str], path: &str, of_pod: bool, out: &mut Errors) {
    let (limits, requests) = (amounts(held, "limits"), amounts(held, "requests"));
    let check_name = if of_pod { name_in_pod } else { name_in_container };
    for (name, value) in &limits {
        check_name(out, name, &format!("{path}.limits[{name}]"));
        amount(out, name, *value, &format!("{path}.limits[{name}]"));
    }
    for (name, value) in &requests {
        check_name(out, name, &format!("{path}.requests[{name}]"));
        amount(out, name, *value, &format!("{path}.requests[{name}]"));
        let limit: Option<Quantity> = limits.iter().find(|(n, _)| n == name).map(|(_, q)| *q);
        let why = match limit {
            Some(limit) if *value != limit && !may_overcommit(name) => {
                format!("must be equal to {name} limit of {limit}")
            }
            Some(limit) if *value > limit => format!("must be less than or equal to {name} limit of {limit}"),
            None if !may_overcommit(name) => {
                let why = "Limit must be set for non overcommitable resources";
                required(out, format!("{path}.limits"), why);
                continue;
            }
            _ => continue,
        };
        invalid(out, format!("{path}.requests"), &json!(value.to_string()), why);
    }
    let named = |wanted: fn(&str) -> bool| limits.iter().chain(&requests).any(|(name, _)| wanted(name));
    if named(|n| n.starts_with("hugepages-")) && !named(|n| matches!(n, "cpu" | "memory")) {
        forbidden(out, path, "HugePages require cpu or memory");
    }
    for (i, claim) in list(held, "claims").iter().enumerate() {
        let name = text(claim, "name");
        if name.is_empty() {
            required(out, format!("{path}.claims[{i}].name"), "");
        } else if !claims.contains(&name) {
            out.push(FieldError {
                mistake: Mistake::NotFound,
                field: format!("{path}.claims[{i}]"),
                value: Some(format!("{name:?}")),
                detail: String::new(),
            });
        }
    }
}

/// Requests and limits of the pod as a whole.
pub(super) fn pod_resources(spec: &Value, path: &str, out: &mut Errors) {
    let held = get(spec, "resources");
    let path = format!("{path}.resources");
    if !list(held, "claims").is_empty() {
        forbidden(out, format!("{path}.claims"), "claims may not be set for Resources at pod-level");
    }
    resources(held, &[], &path, true, out);
}

/// Probes and hooks.
fn handlers(held: &Value, path: &str, out: &mut Errors) {
    for key in ["postStart", "preStop"] {
        let hook = get(get(held, "lifecycle"), key);
        if !hook.is_null() {
            handler(hook, &format!("{path}.lifecycle.{key}"), out);
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = get(held, key);
        if probe.is_null() {
            continue;
        }
        let path = format!("{path}.{key}");
        handler(probe, &path, out);
        for key in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            nonnegative(out, probe, key, &path);
        }
        let success = int(probe, "successThreshold").unwrap_or(0);
        if key != "readinessProbe" && success != 1 {
            invalid(out, format!("{path}.successThreshold"), &json!(success), "must be 1");
        }
    }
}

fn handler(held: &Value, path: &str, out: &mut Errors) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let mut set = kinds.iter().filter(|key| has(held, key));
    let Some(first) = set.next() else {
        return required(out, path, "must specify a handler type");
    };
    let inner = get(held, first);
    match *first {
        "exec" if list(inner, "command").is_empty() => {
            required(out, format!("{path}.exec.command"), "");
        }
        "httpGet" | "tcpSocket" => {
            let port = get(inner, "port");
            if let Some(name) = port.as_str() {
                each(out, &format!("{path}.{first}.port"), name, names::port_name(name));
            } else if let Some(why) = names::port_number(port.as_i64().unwrap_or(0)) {
                invalid(out, format!("{path}.{first}.port"), &json!(port.as_i64().unwrap_or(0)), why);
            }
        }
        _ => {}
    }
    for key in set {
        forbidden(out, format!("{path}.{key}"), "may not specify more than 1 handler type");
    }
}

//! Problems of a pod or a pod template, apart from containers and placement.

use super::{container, scheduling};
use crate::builtin::json::{flag, get, has, int, list, text};
use crate::builtin::validate::check::{
    Errors, amount, amounts, each, forbidden, invalid, must_be, one_of, required, resource_name,
};
use crate::builtin::{meta, names};
use serde_json::{Value, json};

/// A pod, without its metadata.
pub(in crate::builtin) fn pod(obj: &Value, out: &mut Errors) {
    annotations(get(obj, "metadata"), get(obj, "spec"), "metadata.annotations", out);
    spec(get(obj, "spec"), "spec", out);
    let spec = get(obj, "spec");
    if text(spec, "serviceAccountName").is_empty() {
        for (i, volume) in list(spec, "volumes").iter().enumerate() {
            for (j, source) in list(get(volume, "projected"), "sources").iter().enumerate() {
                if has(source, "serviceAccountToken") {
                    let path = format!("spec.volumes[{i}].projected.sources[{j}].serviceAccountToken");
                    forbidden(out, path, "must not be specified when serviceAccountName is not set");
                }
            }
        }
    }
    for key in ["containers", "initContainers"] {
        for (i, held) in list(spec, key).iter().enumerate() {
            let image = text(held, "image");
            if image.trim() != image {
                let why = "must not have leading or trailing whitespace";
                invalid(out, format!("spec.{key}[{i}].image"), &json!(image), why);
            }
        }
    }
}

/// What only new pods are refused for.
pub(in crate::builtin) fn on_create(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    if !list(spec, "ephemeralContainers").is_empty() {
        forbidden(out, "spec.ephemeralContainers", "cannot be set on create");
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        forbidden(out, "spec.nodeName", "cannot be set until all schedulingGates have been cleared");
    }
}

/// A pod template at `path`.
pub(in crate::builtin) fn template(template: &Value, path: &str, out: &mut Errors) {
    let held = get(template, "metadata");
    meta::labels(held, "labels", &format!("{path}.labels"), out);
    meta::annotations(held, &format!("{path}.annotations"), out);
    annotations(held, get(template, "spec"), &format!("{path}.annotations"), out);
    spec(get(template, "spec"), &format!("{path}.spec"), out);
    if !list(get(template, "spec"), "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        forbidden(out, format!("{path}.spec.ephemeralContainers"), why);
    }
}

fn annotations(held: &Value, spec: &Value, path: &str, out: &mut Errors) {
    let all = get(held, "annotations");
    if let Some(value) = all.get("kubernetes.io/config.mirror")
        && text(spec, "nodeName").is_empty()
    {
        let path = format!("{path}[kubernetes.io/config.mirror]");
        invalid(out, path, value, "must set spec.nodeName if mirror pod annotation is set");
    }
    let cost = "controller.kubernetes.io/pod-deletion-cost";
    if let Some(value) = all.get(cost).and_then(Value::as_str) {
        let canonical = value == "0" || !value.trim_start_matches('-').starts_with('0');
        if value.starts_with('+') || !canonical || value.parse::<i32>().is_err() {
            invalid(out, format!("{path}[{cost}]"), &json!(value), "must be a 32bit integer");
        }
    }
}

fn spec(spec: &Value, path: &str, out: &mut Errors) {
    if !has(spec, "terminationGracePeriodSeconds") {
        required(out, format!("{path}.terminationGracePeriodSeconds"), "");
    }
    let volumes = volumes(spec, path, out);
    container::containers(spec, &volumes, path, out);
    if has(spec, "resources") {
        container::pod_resources(spec, path, out);
    }
    if flag(spec, "hostNetwork") {
        container::host_ports_match(spec, path, out);
    }
    must_be(out, spec, "restartPolicy", path, &["Always", "OnFailure", "Never"]);
    must_be(out, spec, "dnsPolicy", path, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    meta::labels(spec, "nodeSelector", &format!("{path}.nodeSelector"), out);
    for (i, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(secret, "name").is_empty() {
            required(out, format!("{path}.imagePullSecrets[{i}].name"), "");
        }
    }
    scheduling::affinity(get(spec, "affinity"), &format!("{path}.affinity"), out);
    for (i, gate) in list(spec, "readinessGates").iter().enumerate() {
        let name = text(gate, "conditionType");
        each(out, &format!("{path}.readinessGates[{i}].conditionType"), name, names::qualified(name));
    }
    scheduling::gates(spec, path, out);
    scheduling::spread(spec, path, out);
    for (key, label) in
        [("serviceAccountName", false), ("nodeName", false), ("hostname", true), ("subdomain", true)]
    {
        if key == "hostname" {
            deadline(spec, path, out);
        }
        let name = text(spec, key);
        if !name.is_empty() {
            let problems = if label { names::label(name) } else { names::subdomain(name) };
            each(out, &format!("{path}.{key}"), name, problems);
        }
    }
    scheduling::tolerations(spec, &format!("{path}.tolerations"), out);
    for key in ["priorityClassName", "runtimeClassName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            each(out, &format!("{path}.{key}"), name, names::subdomain(name));
        }
    }
    one_of(out, spec, "preemptionPolicy", path, &["PreemptLowerPriority", "Never"]);
    for (name, value) in amounts(spec, "overhead") {
        resource_name(out, name, &format!("{path}.overhead.limits[{name}]"));
        amount(out, name, value, &format!("{path}.overhead.limits[{name}]"));
    }
}

fn deadline(spec: &Value, path: &str, out: &mut Errors) {
    let most = i64::from(i32::MAX);
    if int(spec, "activeDeadlineSeconds").is_some_and(|d| !(1..=most).contains(&d)) {
        let value = get(spec, "activeDeadlineSeconds");
        invalid(out, format!("{path}.activeDeadlineSeconds"), value, names::between(1, most));
    }
}

/// Checks volumes and returns the names of the sound ones.
fn volumes<'a>(spec: &'a Value, path: &str, out: &mut Errors) -> Vec<&'a str> {
    let mut sound: Vec<&str> = Vec::new();
    for (i, volume) in list(spec, "volumes").iter().enumerate() {
        let mut found = Errors::new();
        let path = format!("{path}.volumes[{i}]");
        let name = text(volume, "name");
        source(volume, &path, &mut found);
        if name.is_empty() {
            required(&mut found, format!("{path}.name"), "");
        } else {
            each(&mut found, &format!("{path}.name"), name, names::label(name));
        }
        if sound.contains(&name) {
            found.push(crate::status::FieldError::duplicate(format!("{path}.name"), &json!(name)));
        }
        if found.is_empty() {
            sound.push(name);
        }
        out.extend(found);
    }
    sound
}

fn source(volume: &Value, path: &str, out: &mut Errors) {
    let mut sources = volume.as_object().into_iter().flatten().filter(|(key, _)| *key != "name");
    let first = sources.next();
    for (key, _) in sources {
        forbidden(out, format!("{path}.{key}"), "may not specify more than 1 volume type");
    }
    let Some((key, held)) = first else {
        return required(out, path, "must specify a volume type");
    };
    let need = |field: &str, out: &mut Errors| {
        if text(held, field).is_empty() {
            required(out, format!("{path}.{key}.{field}"), "");
        }
    };
    match key.as_str() {
        "hostPath" => {
            need("path", out);
            let all = [
                "",
                "BlockDevice",
                "CharDevice",
                "Directory",
                "DirectoryOrCreate",
                "File",
                "FileOrCreate",
                "Socket",
            ];
            one_of(out, held, "type", &format!("{path}.{key}"), &all);
        }
        "persistentVolumeClaim" => need("claimName", out),
        "configMap" => need("name", out),
        "secret" => need("secretName", out),
        "emptyDir" => {
            let size = text(held, "sizeLimit");
            if size.starts_with('-') {
                let why = "SizeLimit field must be a valid resource quantity";
                forbidden(out, format!("{path}.emptyDir.sizeLimit"), why);
            }
        }
        _ => {}
    }
}

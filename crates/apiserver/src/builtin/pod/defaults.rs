//! Defaults of pods and of what pods are made of.

use crate::builtin::json::{Object, child, entries, quantity, set_default, text_of};
use loadline_machinery::quantity::Quantity;
use serde_json::{Value, json};

/// Applies the defaults of one struct.
pub(in crate::builtin) fn apply(ty: &str, map: &mut Object) {
    match ty {
        "Pod" => pod(map),
        "PodSpec" => {
            set_default(map, "dnsPolicy", "ClusterFirst");
            set_default(map, "restartPolicy", "Always");
            set_default(map, "securityContext", json!({}));
            set_default(map, "terminationGracePeriodSeconds", 30);
            set_default(map, "schedulerName", "default-scheduler");
        }
        "Container" | "EphemeralContainer" => {
            let policy = pull_policy(text_of(map, "image"));
            set_default(map, "imagePullPolicy", policy);
            set_default(map, "terminationMessagePath", "/dev/termination-log");
            set_default(map, "terminationMessagePolicy", "File");
        }
        "ContainerPort" => set_default(map, "protocol", "TCP"),
        "Probe" => {
            set_default(map, "timeoutSeconds", 1);
            set_default(map, "periodSeconds", 10);
            set_default(map, "successThreshold", 1);
            set_default(map, "failureThreshold", 3);
        }
        "GRPCAction" => set_default(map, "service", ""),
        "FileKeySelector" => set_default(map, "optional", false),
        "HTTPGetAction" => {
            set_default(map, "path", "/");
            set_default(map, "scheme", "HTTP");
        }
        "ObjectFieldSelector" => set_default(map, "apiVersion", "v1"),
        "Volume" => volume(map),
        "SecretVolumeSource"
        | "ConfigMapVolumeSource"
        | "DownwardAPIVolumeSource"
        | "ProjectedVolumeSource" => {
            set_default(map, "defaultMode", 0o644);
        }
        "ServiceAccountTokenProjection" => set_default(map, "expirationSeconds", 3600),
        "HostPathVolumeSource" => set_default(map, "type", ""),
        "ISCSIVolumeSource" | "ISCSIPersistentVolumeSource" => set_default(map, "iscsiInterface", "default"),
        "RBDVolumeSource" | "RBDPersistentVolumeSource" => {
            set_default(map, "pool", "rbd");
            set_default(map, "user", "admin");
            set_default(map, "keyring", "/etc/ceph/keyring");
        }
        "AzureDiskVolumeSource" => {
            set_default(map, "cachingMode", "ReadWrite");
            set_default(map, "fsType", "ext4");
            set_default(map, "readOnly", false);
            set_default(map, "kind", "Shared");
        }
        "ScaleIOVolumeSource" | "ScaleIOPersistentVolumeSource" => {
            set_default(map, "storageMode", "ThinProvisioned");
            set_default(map, "fsType", "xfs");
        }
        _ => {}
    }
}

fn volume(map: &mut Object) {
    if map.keys().all(|key| key == "name") {
        map.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(image) = map.get_mut("image").and_then(Value::as_object_mut) {
        let policy = pull_policy(text_of(image, "reference"));
        set_default(image, "pullPolicy", policy);
    }
}

/// Images without a tag or digest, and those tagged `latest`, are pulled every time.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, None), |(n, d)| (n, Some(d)));
    let path = name.rfind('/').map_or(0, |at| at + 1);
    let (repository, tag) = match name[path..].find(':') {
        Some(at) => (&name[..path + at], Some(&name[path + at + 1..])),
        None => (name, None),
    };
    // A reference that cannot be parsed has no tag at all. Only the host part may hold capitals.
    let host = repository.split_once('/').map_or("", |(first, _)| first);
    let hosted = host.contains(['.', ':']) || host == "localhost" || host.chars().any(char::is_uppercase);
    let rest = if hosted { &repository[host.len() + 1..] } else { repository };
    let parses = !rest.is_empty() && !rest.contains(|c: char| c.is_ascii_uppercase() || c.is_whitespace());
    let latest = match tag {
        Some(tag) => tag == "latest",
        None => digest.is_none(),
    };
    if parses && latest { "Always" } else { "IfNotPresent" }
}

fn pod(map: &mut Object) {
    let Some(spec) = child(map, "spec") else { return };
    for key in ["containers", "initContainers"] {
        for container in spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
                requests_from_limits(resources, |_| true);
            }
        }
    }
    pod_level(spec);
    set_default(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
        host_ports(spec);
    }
}

fn requests_from_limits(resources: &mut Object, wanted: impl Fn(&str) -> bool) {
    let limits = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    if let Some(requests) = child(resources, "requests") {
        for (key, value) in limits.into_iter().filter(|(key, _)| wanted(key)) {
            set_default(requests, &key, value);
        }
    }
}

fn supported(key: &str) -> bool {
    key == "cpu" || key == "memory" || key.starts_with("hugepages-")
}

/// Requests of the pod as a whole follow from its containers where it has limits as a whole.
fn pod_level(spec: &mut Object) {
    let aggregate = |list: &str| -> Vec<(String, Quantity)> {
        let mut total: Vec<(String, Quantity)> = Vec::new();
        for container in spec.get("containers").and_then(Value::as_array).into_iter().flatten() {
            for (key, value) in entries(container.get("resources").unwrap_or(&Value::Null), list) {
                let amount = quantity(value);
                match total.iter_mut().find(|(k, _)| k == key) {
                    Some((_, sum)) => *sum = sum.plus(amount),
                    None => total.push((key.clone(), amount)),
                }
            }
        }
        total
    };
    let (requests, limits) = (aggregate("requests"), aggregate("limits"));
    let Some(resources) = spec.get_mut("resources").and_then(Value::as_object_mut) else { return };
    let filled = |r: &Object, key: &str| r.get(key).and_then(Value::as_object).is_some_and(|m| !m.is_empty());
    if filled(resources, "limits") || filled(resources, "requests") {
        let asked = resources.get("requests").and_then(Value::as_object).cloned().unwrap_or_default();
        for (key, amount) in limits.iter().filter(|(k, _)| k.starts_with("hugepages-")) {
            if !asked.contains_key(key)
                && let Some(target) = child(resources, "limits")
            {
                set_default(target, key, amount.to_string());
            }
        }
    }
    if !filled(resources, "limits") {
        return;
    }
    for (key, amount) in requests.iter().filter(|(k, _)| matches!(k.as_str(), "cpu" | "memory")) {
        if let Some(target) = child(resources, "requests") {
            set_default(target, key, amount.to_string());
        }
    }
    requests_from_limits(resources, supported);
}

fn host_ports(spec: &mut Object) {
    for key in ["containers", "initContainers"] {
        for container in spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
                let number = port.get("containerPort").cloned().unwrap_or_default();
                set_default(port, "hostPort", number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pull_policy;

    #[test]
    fn untagged_and_latest_images_are_always_pulled() {
        for (image, want) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.27", "IfNotPresent"),
            ("localhost:5000/nginx", "Always"),
            ("localhost:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:abc", "IfNotPresent"),
            ("nginx:latest@sha256:abc", "Always"),
            ("", "IfNotPresent"),
            ("NGINX", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), want, "{image:?}");
        }
    }
}

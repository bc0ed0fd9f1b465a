//! What a client may leave out, type by type: called for every struct of an object, parents before children.

use super::json::{Object, child, set_default, text, text_of};
use super::pod;
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Applies the defaults of one struct.
pub(super) fn apply(ty: &str, map: &mut Object) {
    match ty {
        "Deployment" => deployment(map),
        "ReplicaSet" => spec(map, |s| set_default(s, "replicas", 1)),
        "StatefulSet" => spec(map, stateful_set),
        "DaemonSet" => spec(map, daemon_set),
        "ReplicationController" => replication_controller(map),
        "Job" => job(map),
        "CronJob" => spec(map, |s| {
            set_default(s, "concurrencyPolicy", "Allow");
            set_default(s, "suspend", false);
            set_default(s, "successfulJobsHistoryLimit", 3);
            set_default(s, "failedJobsHistoryLimit", 1);
        }),
        "PodFailurePolicyOnPodConditionsPattern" => {
            if text_of(map, "status").is_empty() {
                map.insert("status".to_owned(), json!("True"));
            }
        }
        "Service" => spec_status(map),
        "Secret" => set_default(map, "type", "Opaque"),
        "PersistentVolume" => {
            status(map, |s| set_default(s, "phase", "Pending"));
            spec(map, |s| {
                set_default(s, "persistentVolumeReclaimPolicy", "Retain");
                set_default(s, "volumeMode", "Filesystem");
            });
        }
        "PersistentVolumeClaim" => status(map, |s| set_default(s, "phase", "Pending")),
        "PersistentVolumeClaimSpec" => set_default(map, "volumeMode", "Filesystem"),
        "EndpointPort" => {
            set_default(map, "name", "");
            set_default(map, "protocol", "TCP");
        }
        "Namespace" => namespace(map),
        "NamespaceStatus" => set_default(map, "phase", "Active"),
        "NodeStatus" => {
            if let (None, Some(capacity)) = (map.get("allocatable"), map.get("capacity")) {
                let capacity = capacity.clone();
                map.insert("allocatable".to_owned(), capacity);
            }
        }
        "LimitRangeItem" => limit_range_item(map),
        "PriorityClass" => set_default(map, "preemptionPolicy", "PreemptLowerPriority"),
        "StorageClass" => {
            set_default(map, "reclaimPolicy", "Delete");
            set_default(map, "volumeBindingMode", "Immediate");
        }
        "CSIDriverSpec" => csi_driver(map),
        "autoscalingHorizontalPodAutoscalerSpec" => autoscaler(map),
        "ExactDeviceRequest" | "DeviceSubRequest" => device_request(map),
        "DeviceTaint" => {
            let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            set_default(map, "timeAdded", now);
        }
        "NodeAllocatableResourceMapping" => set_default(map, "allocationMultiplier", "1"),
        "ValidatingAdmissionPolicySpec" => set_default(map, "failurePolicy", "Fail"),
        "MatchResources" => {
            set_default(map, "matchPolicy", "Equivalent");
            set_default(map, "namespaceSelector", json!({}));
            set_default(map, "objectSelector", json!({}));
        }
        "NamedRuleWithOperations" => set_default(map, "scope", "*"),
        "HorizontalPodAutoscaler" => {
            let metadata = map.get("metadata").and_then(|metadata| metadata.get("annotations"));
            let others =
                metadata.is_some_and(|all| all.get("autoscaling.alpha.kubernetes.io/metrics").is_some());
            spec(map, |s| {
                set_default(s, "minReplicas", 1);
                if !others {
                    set_default(s, "targetCPUUtilizationPercentage", 80);
                }
            });
        }
        "NetworkPolicySpec" => {
            let egress = map.get("egress").and_then(Value::as_array).is_some_and(|e| !e.is_empty());
            set_default(
                map,
                "policyTypes",
                if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) },
            );
        }
        "NetworkPolicyPort" | "coreEndpointPort" => set_default(map, "protocol", "TCP"),
        "RoleRef" => {
            if text_of(map, "apiGroup").is_empty() {
                map.insert("apiGroup".to_owned(), json!(RBAC));
            }
        }
        "Subject" => {
            if matches!(text_of(map, "kind"), "User" | "Group") {
                set_default(map, "apiGroup", RBAC);
            }
        }
        "CustomResourceDefinition" => definition(map),
        _ => pod::defaults::apply(ty, map),
    }
}

fn spec(map: &mut Object, f: impl FnOnce(&mut Object)) {
    if let Some(spec) = child(map, "spec") {
        f(spec);
    }
}

fn status(map: &mut Object, f: impl FnOnce(&mut Object)) {
    if let Some(status) = child(map, "status") {
        f(status);
    }
}

fn deployment(map: &mut Object) {
    spec(map, |s| {
        set_default(s, "replicas", 1);
        set_default(s, "revisionHistoryLimit", 10);
        set_default(s, "progressDeadlineSeconds", 600);
        rolling(s, "strategy", &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
    });
}

/// Rolling updates are the default, with these bounds.
fn rolling(spec: &mut Object, key: &str, bounds: &[(&str, Value)]) {
    let Some(strategy) = child(spec, key) else { return };
    set_default(strategy, "type", "RollingUpdate");
    if text_of(strategy, "type") != "RollingUpdate" {
        return;
    }
    let Some(update) = child(strategy, "rollingUpdate") else { return };
    for (key, value) in bounds {
        set_default(update, key, value.clone());
    }
}

fn daemon_set(spec: &mut Object) {
    set_default(spec, "revisionHistoryLimit", 10);
    rolling(spec, "updateStrategy", &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
}

fn stateful_set(spec: &mut Object) {
    set_default(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = child(spec, "updateStrategy") {
        if text_of(strategy, "type").is_empty() {
            strategy.insert("type".to_owned(), json!("RollingUpdate"));
            set_default(strategy, "rollingUpdate", json!({}));
        }
        if text_of(strategy, "type") == "RollingUpdate"
            && let Some(update) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut)
        {
            set_default(update, "partition", 0);
        }
    }
    if let Some(retention) = child(spec, "persistentVolumeClaimRetentionPolicy") {
        set_default(retention, "whenDeleted", "Retain");
        set_default(retention, "whenScaled", "Retain");
    }
    set_default(spec, "replicas", 1);
    set_default(spec, "revisionHistoryLimit", 10);
}

fn template_labels(map: &Object) -> Option<Value> {
    map.get("spec")?.get("template")?.get("metadata")?.get("labels").cloned()
}

fn replication_controller(map: &mut Object) {
    let labels = template_labels(map);
    spec(map, |s| {
        set_default(s, "replicas", 1);
        if let Some(labels) = &labels {
            set_default(s, "selector", labels.clone());
        }
    });
    if let (Some(labels), Some(meta)) = (labels, child(map, "metadata")) {
        set_default(meta, "labels", labels);
    }
}

fn job(map: &mut Object) {
    if let (Some(labels), Some(meta)) = (template_labels(map), child(map, "metadata")) {
        set_default(meta, "labels", labels);
    }
    spec(map, |s| {
        if !s.contains_key("completions") && !s.contains_key("parallelism") {
            set_default(s, "completions", 1);
        }
        set_default(s, "parallelism", 1);
        let limit = if s.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
        set_default(s, "backoffLimit", limit);
        set_default(s, "completionMode", "NonIndexed");
        set_default(s, "suspend", false);
        let failed = s.contains_key("podFailurePolicy");
        set_default(s, "podReplacementPolicy", if failed { "Failed" } else { "TerminatingOrFailed" });
        set_default(s, "manualSelector", false);
    });
}

fn spec_status(map: &mut Object) {
    let mut balanced = false;
    spec(map, |s| {
        set_default(s, "sessionAffinity", "None");
        match text_of(s, "sessionAffinity") {
            "None" => drop(s.remove("sessionAffinityConfig")),
            "ClientIP" => {
                let seconds = |v: &Value| v.get("clientIP")?.get("timeoutSeconds")?.as_i64();
                if s.get("sessionAffinityConfig").and_then(seconds).is_none() {
                    let config = json!({"clientIP": {"timeoutSeconds": 10_800}});
                    s.insert("sessionAffinityConfig".to_owned(), config);
                }
            }
            _ => {}
        }
        set_default(s, "type", "ClusterIP");
        for port in s.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            let number = port.get("port").cloned().unwrap_or_default();
            let Some(port) = port.as_object_mut() else { continue };
            set_default(port, "protocol", "TCP");
            if port.get("targetPort").is_none_or(|t| t.as_i64() == Some(0) || t.as_str() == Some("")) {
                port.insert("targetPort".to_owned(), number);
            }
        }
        let ty = text_of(s, "type").to_owned();
        balanced = ty == "LoadBalancer";
        let external = s.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
        if balanced || ty == "NodePort" || (ty == "ClusterIP" && external) {
            set_default(s, "externalTrafficPolicy", "Cluster");
        }
        if matches!(ty.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
            set_default(s, "internalTrafficPolicy", "Cluster");
        }
        if balanced {
            set_default(s, "allocateLoadBalancerNodePorts", true);
        }
    });
    if balanced {
        status(map, |s| {
            let ingress = s.get_mut("loadBalancer").and_then(|b| b.get_mut("ingress"));
            for point in ingress.and_then(Value::as_array_mut).into_iter().flatten() {
                if !text(point, "ip").is_empty()
                    && let Some(point) = point.as_object_mut()
                {
                    set_default(point, "ipMode", "VIP");
                }
            }
        });
    }
}

fn namespace(map: &mut Object) {
    let Some(meta) = child(map, "metadata") else { return };
    let name = text_of(meta, "name").to_owned();
    if name.is_empty() {
        return;
    }
    if let Some(labels) = child(meta, "labels") {
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
}

fn limit_range_item(map: &mut Object) {
    if text_of(map, "type") != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let source = map.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
        if source.is_empty() {
            continue;
        }
        if let Some(target) = child(map, to) {
            for (key, value) in source {
                set_default(target, &key, value);
            }
        }
    }
}

/// Eighty percent of the CPU, and, where anything is said about how fast, everything about that.
fn autoscaler(spec: &mut Object) {
    set_default(spec, "minReplicas", 1);
    set_default(
        spec,
        "metrics",
        json!([{
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        }]),
    );
    if !spec.contains_key("behavior") {
        return;
    }
    let Some(behavior) = child(spec, "behavior") else { return };
    let policy = |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
    if let Some(up) = child(behavior, "scaleUp") {
        set_default(up, "stabilizationWindowSeconds", 0);
        set_default(up, "selectPolicy", "Max");
        set_default(up, "policies", json!([policy("Pods", 4), policy("Percent", 100)]));
    }
    if let Some(down) = child(behavior, "scaleDown") {
        set_default(down, "selectPolicy", "Max");
        set_default(down, "policies", json!([policy("Percent", 100)]));
    }
}

fn device_request(request: &mut Object) {
    set_default(request, "allocationMode", "ExactCount");
    if text_of(request, "allocationMode") == "ExactCount" {
        set_default(request, "count", 1);
    }
}

fn csi_driver(spec: &mut Object) {
    set_default(spec, "attachRequired", true);
    set_default(spec, "podInfoOnMount", false);
    set_default(spec, "storageCapacity", false);
    set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set_default(spec, "volumeLifecycleModes", json!(["Persistent"]));
    set_default(spec, "requiresRepublish", false);
    set_default(spec, "seLinuxMount", false);
}

fn definition(map: &mut Object) {
    let mut storage = None;
    spec(map, |s| {
        if let Some(names) = child(s, "names") {
            let kind = text_of(names, "kind").to_owned();
            set_default(names, "singular", kind.to_lowercase());
            if !kind.is_empty() {
                set_default(names, "listKind", format!("{kind}List"));
            }
        }
        set_default(s, "conversion", json!({"strategy": "None"}));
        if let Some(service) = s
            .get_mut("conversion")
            .and_then(|c| c.get_mut("webhook")?.get_mut("clientConfig")?.get_mut("service")?.as_object_mut())
        {
            set_default(service, "port", 443);
        }
        let versions = s.get("versions").and_then(Value::as_array).into_iter().flatten();
        let stored = |v: &&Value| v.get("storage").and_then(Value::as_bool) == Some(true);
        storage = versions.into_iter().find(stored).map(|v| text(v, "name").to_owned());
    });
    status(map, |s| {
        if let (Some(name), None | Some(Value::Null)) = (storage, s.get("storedVersions")) {
            s.insert("storedVersions".to_owned(), json!([name]));
        }
    });
}

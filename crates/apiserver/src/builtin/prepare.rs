//! What a client may not choose, kind by kind: status, generation and fields the server owns.

use super::json::{child, child_of, copy, get, has, int, list, remove, set_default, text, text_of};
use super::{GroupVersionKind, certificate, meta, pod};
use serde_json::{Value, json};

/// What counts the generation up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Never; the generation may still start at 1.
    Nothing,
    Spec,
    /// Deployments also count changed annotations.
    SpecAndAnnotations,
    /// Pod templates keep theirs beside the metadata.
    Template,
    /// Endpoint slices have no spec: everything but the metadata, and labels.
    Everything,
}

struct Traits {
    /// Generation starts at 1.
    starts: bool,
    counts: Counts,
    /// Has a status the main resource may not write.
    status: bool,
}

fn traits(kind: GroupVersionKind<'_>) -> Traits {
    let t = |starts, counts, status| Traits { starts, counts, status };
    match (kind.group, kind.kind) {
        ("", "Pod" | "ReplicationController")
        | ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch" | "apiextensions.k8s.io", _)
        | ("policy", "PodDisruptionBudget")
        | ("networking.k8s.io", "Ingress")
        | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => t(true, Counts::Spec, true),
        ("apps", "Deployment") => t(true, Counts::SpecAndAnnotations, true),
        ("networking.k8s.io", "NetworkPolicy")
        | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding")
        | ("resource.k8s.io", "DeviceClass" | "ResourceSlice") => t(true, Counts::Spec, false),
        ("", "PodTemplate") => t(true, Counts::Template, false),
        ("discovery.k8s.io", "EndpointSlice") => t(true, Counts::Everything, false),
        ("scheduling.k8s.io", "PriorityClass") => t(true, Counts::Nothing, false),
        ("storage.k8s.io", "CSIDriver") => t(false, Counts::Spec, false),
        (
            "",
            "Node" | "Namespace" | "Service" | "PersistentVolume" | "PersistentVolumeClaim" | "ResourceQuota",
        )
        | ("autoscaling", "HorizontalPodAutoscaler")
        | ("resource.k8s.io", "ResourceClaim")
        | ("networking.k8s.io", "ServiceCIDR")
        | ("certificates.k8s.io", _)
        | ("storage.k8s.io", "VolumeAttachment") => t(false, Counts::Nothing, true),
        _ => t(false, Counts::Nothing, false),
    }
}

/// See [`super::prepare_create`].
pub(super) fn create(kind: GroupVersionKind<'_>, obj: &mut Value) {
    let traits = traits(kind);
    // A node's creator, the kubelet, reports its status in the same request.
    if traits.status && kind.kind != "Node" {
        remove(obj, "status");
    }
    if traits.starts
        && let Some(meta) = child_of(obj, "metadata")
    {
        meta.insert("generation".to_owned(), json!(1));
    }
    match (kind.group, kind.kind) {
        ("", "Pod") => pod::prepare::create(obj),
        ("", "Namespace") => namespace(obj),
        ("", "PersistentVolume") => {
            if let Some(status) = child_of(obj, "status") {
                status.insert("phase".to_owned(), json!("Pending"));
                let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                status.insert("lastPhaseTransitionTime".to_owned(), json!(now));
            }
        }
        ("apps", "DaemonSet") => {
            let annotation = "deprecated.daemonset.template.generation";
            let chosen: i64 = text(get(get(obj, "metadata"), "annotations"), annotation).parse().unwrap_or(0);
            set_annotation(obj, annotation, &chosen.max(1).to_string(), true);
        }
        ("batch", "Job") => job_selector(obj),
        ("coordination.k8s.io", "Lease") => drop_election(obj, &Value::Null),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => stored_version(obj),
        ("", "ServiceAccount") => clean_secrets(obj),
        ("storage.k8s.io", "CSIDriver") => {
            if let Some(spec) = child_of(obj, "spec") {
                spec.remove("preventPodSchedulingIfMissing");
            }
        }
        ("", "Service") => families(obj),
        ("certificates.k8s.io", _) => certificate::create(obj),
        _ => {}
    }
}

/// See [`super::prepare_update`].
pub(super) fn update(kind: GroupVersionKind<'_>, new: &mut Value, old: &Value) {
    meta::keep_generation(new, old);
    let traits = traits(kind);
    if traits.status {
        copy(new, old, "status");
    }
    match (kind.group, kind.kind) {
        ("", "Namespace") => {
            let finalizers = get(get(old, "spec"), "finalizers").clone();
            if let Some(spec) = child_of(new, "spec") {
                spec.insert("finalizers".to_owned(), finalizers);
            }
        }
        ("", "Secret") if text(new, "type").is_empty() => copy(new, old, "type"),
        ("", "Service") => keep_addresses(new, old),
        ("", "ServiceAccount") => clean_secrets(new),
        ("apps", "DaemonSet") => template_generation(new, old),
        ("coordination.k8s.io", "Lease") => drop_election(new, old),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => stored_version(new),
        ("certificates.k8s.io", _) => copy(new, old, "spec"),
        _ => {}
    }
    if changed(traits.counts, new, old) {
        let next = int(get(old, "metadata"), "generation").unwrap_or(0) + 1;
        if let Some(meta) = child_of(new, "metadata") {
            meta.insert("generation".to_owned(), json!(next));
        }
    }
    meta::keep_system_fields(new, old);
}

fn changed(counts: Counts, new: &Value, old: &Value) -> bool {
    let differs = |key: &str| get(new, key) != get(old, key);
    let meta_differs = |key: &str| get(get(new, "metadata"), key) != get(get(old, "metadata"), key);
    match counts {
        Counts::Nothing => false,
        Counts::Spec => differs("spec"),
        Counts::SpecAndAnnotations => differs("spec") || meta_differs("annotations"),
        Counts::Template => differs("template"),
        Counts::Everything => {
            meta_differs("labels") || ["addressType", "endpoints", "ports"].iter().any(|key| differs(key))
        }
    }
}

/// See [`super::prepare_status_update`].
pub(super) fn status(kind: GroupVersionKind<'_>, new: &mut Value, old: &Value) {
    meta::keep_generation(new, old);
    copy(new, old, "spec");
    match (kind.group, kind.kind) {
        ("", "Pod") => pod::prepare::status(new, old),
        ("certificates.k8s.io", _) => certificate::status(new, old),
        ("apps", "Deployment") => {
            if let Some(meta) = new.get_mut("metadata") {
                copy(meta, get(old, "metadata"), "labels");
            }
        }
        ("storage.k8s.io", "VolumeAttachment") => {
            if let Some(meta) = new.get_mut("metadata") {
                let old = get(old, "metadata");
                for key in ["labels", "annotations", "finalizers", "ownerReferences", "managedFields"] {
                    copy(meta, old, key);
                }
            }
        }
        _ => {}
    }
    meta::keep_system_fields(new, old);
}

fn namespace(obj: &mut Value) {
    if let Some(status) = child_of(obj, "status") {
        status.insert("phase".to_owned(), json!("Active"));
    }
    let Some(spec) = child_of(obj, "spec") else { return };
    let mut finalizers = spec.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    if !finalizers.contains(&json!("kubernetes")) {
        finalizers.push(json!("kubernetes"));
    }
    spec.insert("finalizers".to_owned(), Value::Array(finalizers));
}

fn set_annotation(obj: &mut Value, key: &str, value: &str, overwrite: bool) {
    let annotations = child_of(obj, "metadata").and_then(|m| child(m, "annotations"));
    if let Some(annotations) = annotations.filter(|a| overwrite || !a.contains_key(key)) {
        annotations.insert(key.to_owned(), json!(value));
    }
}

/// Daemon sets keep a second generation, of the template alone, in an annotation.
fn template_generation(new: &mut Value, old: &Value) {
    let key = "deprecated.daemonset.template.generation";
    let annotations = get(get(old, "metadata"), "annotations");
    let before: i64 = text(annotations, key).parse().unwrap_or(0);
    let template = |v: &Value| get(get(v, "spec"), "template").clone();
    let now = if template(new) == template(old) { before } else { before + 1 };
    set_annotation(new, key, &now.to_string(), true);
}

fn job_selector(obj: &mut Value) {
    let spec = get(obj, "spec");
    if spec.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    let (name, uid) = (get(obj, "metadata").get("name").cloned(), get(obj, "metadata").get("uid").cloned());
    let (name, uid) = (name.unwrap_or_else(|| json!("")), uid.unwrap_or_else(|| json!("")));
    let Some(spec) = child_of(obj, "spec") else { return };
    let template = child(spec, "template").and_then(|t| child(t, "metadata"));
    if let Some(labels) = template.and_then(|m| child(m, "labels")) {
        for (key, value) in [
            ("job-name", &name),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("batch.kubernetes.io/controller-uid", &uid),
        ] {
            labels.entry(key).or_insert_with(|| value.clone());
        }
    }
    if let Some(labels) = child(spec, "selector").and_then(|s| child(s, "matchLabels")) {
        labels.entry("batch.kubernetes.io/controller-uid").or_insert(uid);
    }
}

/// Coordinated leader election is off by default, and its fields are dropped with it.
fn drop_election(new: &mut Value, old: &Value) {
    for key in ["strategy", "preferredHolder"] {
        if !has(get(old, "spec"), key)
            && let Some(spec) = new.get_mut("spec")
        {
            remove(spec, key);
        }
    }
}

fn stored_version(obj: &mut Value) {
    let storage = list(get(obj, "spec"), "versions")
        .iter()
        .find(|v| v.get("storage").and_then(Value::as_bool) == Some(true))
        .map(|v| get(v, "name").clone());
    let (Some(name), Some(status)) = (storage, child_of(obj, "status")) else { return };
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    if stored.is_null() {
        *stored = json!([]);
    }
    if let Some(stored) = stored.as_array_mut().filter(|s| !s.contains(&name)) {
        stored.push(name);
    }
}

/// References to secrets keep nothing but the name.
fn clean_secrets(obj: &mut Value) {
    for secret in obj.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        *secret = json!({ "name": get(secret, "name") });
    }
}

/// Address families of a service in a cluster that speaks IPv4. Services that choose no pods and have no address of
/// their own may be reached over both.
fn families(obj: &mut Value) {
    let Some(spec) = child_of(obj, "spec").filter(|s| text_of(s, "type") != "ExternalName") else { return };
    let headless = text_of(spec, "clusterIP") == "None";
    if !text_of(spec, "clusterIP").is_empty() {
        let address = json!([text_of(spec, "clusterIP")]);
        set_default(spec, "clusterIPs", address);
    }
    let both = headless && !spec.contains_key("selector");
    set_default(spec, "ipFamilyPolicy", if both { "RequireDualStack" } else { "SingleStack" });
    set_default(spec, "ipFamilies", if both { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
}

/// Addresses once given stay unless the client asks for others.
fn keep_addresses(new: &mut Value, old: &Value) {
    let same_kind = {
        let ty = |v: &Value| text(get(v, "spec"), "type").to_owned();
        ty(new) != "ExternalName" && ty(old) != "ExternalName"
    };
    let Some(spec) = new.get_mut("spec").filter(|_| same_kind) else { return };
    let old = get(old, "spec");
    if text(spec, "clusterIP").is_empty() && list(spec, "clusterIPs").is_empty() {
        copy(spec, old, "clusterIP");
        copy(spec, old, "clusterIPs");
    }
    for key in ["ipFamilies", "ipFamilyPolicy"] {
        if !has(spec, key) {
            copy(spec, old, key);
        }
    }
}

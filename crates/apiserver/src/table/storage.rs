//! What do volumes and the kinds around them show?

use super::cells::{NONE, UNSET, created, entry, flag, has, joined, list, name, quantity, set_or, text};
use super::columns::{AGE, Column, NAME, Printer};
use serde_json::{Value, json};

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Persistent volumes.
pub(super) const VOLUME: Printer = Printer::new(
    &[
        NAME,
        Column::text("Capacity", "Size of the volume."),
        Column::text("Access Modes", "Ways it can be mounted."),
        Column::text("Reclaim Policy", "What happens to it when its claim goes."),
        Column::text("Status", "Whether it is bound."),
        Column::text("Claim", "Claim it is bound to."),
        Column::text("StorageClass", "Class it belongs to."),
        Column::text("VolumeAttributesClass", "Class of its attributes."),
        Column::text("Reason", "Why it is in this state."),
        AGE,
        Column::text("VolumeMode", "File system or block device.").wide(),
    ],
    |object, now| {
        let claim = object
            .pointer("/spec/claimRef")
            .filter(|claim| claim.is_object())
            .map(|claim| format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")));
        vec![
            name(object),
            json!(quantity(object.pointer("/spec/capacity/storage"))),
            json!(modes(object, "/spec/accessModes")),
            json!(text(object, "/spec/persistentVolumeReclaimPolicy")),
            json!(phase(object)),
            json!(claim.unwrap_or_default()),
            json!(class(object)),
            json!(set_or(object, "/spec/volumeAttributesClassName", UNSET)),
            json!(text(object, "/status/reason")),
            created(object, now),
            json!(set_or(object, "/spec/volumeMode", UNSET)),
        ]
    },
);

/// Persistent volume claims: capacity and modes are those of the volume, so they are empty until there is one.
pub(super) const CLAIM: Printer = Printer::new(
    &[
        NAME,
        Column::text("Status", "Whether it is bound."),
        Column::text("Volume", "Volume it is bound to."),
        Column::text("Capacity", "Size of the volume."),
        Column::text("Access Modes", "Ways the volume can be mounted."),
        Column::text("StorageClass", "Class asked for."),
        Column::text("VolumeAttributesClass", "Class of attributes asked for."),
        AGE,
        Column::text("VolumeMode", "File system or block device.").wide(),
    ],
    |object, now| {
        let volume = text(object, "/spec/volumeName");
        let (capacity, modes) = if volume.is_empty() {
            (String::new(), String::new())
        } else {
            (quantity(object.pointer("/status/capacity/storage")), modes(object, "/status/accessModes"))
        };
        vec![
            name(object),
            json!(phase(object)),
            json!(volume),
            json!(capacity),
            json!(modes),
            json!(class(object)),
            json!(set_or(object, "/spec/volumeAttributesClassName", UNSET)),
            created(object, now),
            json!(set_or(object, "/spec/volumeMode", UNSET)),
        ]
    },
);

fn phase(object: &Value) -> &str {
    if has(object, "/metadata/deletionTimestamp") { "Terminating" } else { text(object, "/status/phase") }
}

fn class(object: &Value) -> &str {
    entry(object, "/metadata/annotations", BETA_CLASS)
        .unwrap_or_else(|| text(object, "/spec/storageClassName"))
}

fn modes(object: &Value, pointer: &str) -> String {
    let set = list(object, pointer);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown: Vec<&str> = short
        .into_iter()
        .filter(|(mode, _)| set.iter().any(|entry| entry.as_str() == Some(mode)))
        .map(|(_, short)| short)
        .collect();
    shown.join(",")
}

/// Storage classes.
pub(super) const CLASS: Printer = Printer::new(
    &[
        NAME,
        Column::text("Provisioner", "Who makes volumes of the class."),
        Column::text("ReclaimPolicy", "What happens to a volume when its claim goes."),
        Column::text("VolumeBindingMode", "When volumes are made and bound."),
        Column::text("AllowVolumeExpansion", "Whether volumes can grow."),
        AGE,
    ],
    |object, now| {
        let is_default = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ]
        .iter()
        .any(|key| entry(object, "/metadata/annotations", key) == Some("true"));
        let suffix = if is_default { " (default)" } else { "" };
        vec![
            json!(format!("{}{suffix}", text(object, "/metadata/name"))),
            json!(text(object, "/provisioner")),
            json!(set_or(object, "/reclaimPolicy", "Delete")),
            json!(set_or(object, "/volumeBindingMode", "Immediate")),
            json!(flag(object, "/allowVolumeExpansion").unwrap_or(false)),
            created(object, now),
        ]
    },
);

/// Classes of volume attributes.
pub(super) const ATTRIBUTES_CLASS: Printer = Printer::new(
    &[NAME, Column::text("DriverName", "Driver the attributes are for."), AGE],
    |object, now| vec![name(object), json!(text(object, "/driverName")), created(object, now)],
);

/// CSI nodes.
pub(super) const CSI_NODE: Printer =
    Printer::new(&[NAME, Column::int("Drivers", "Drivers installed on the node."), AGE], |object, now| {
        vec![name(object), json!(list(object, "/spec/drivers").len()), created(object, now)]
    });

/// CSI drivers.
pub(super) const CSI_DRIVER: Printer = Printer::new(
    &[
        NAME,
        Column::flag("AttachRequired", "Whether volumes are attached first."),
        Column::flag("PodInfoOnMount", "Whether the driver is told about the pod."),
        Column::flag("StorageCapacity", "Whether the driver reports capacity."),
        Column::text("TokenRequests", "Audiences of the tokens it asks for."),
        Column::flag("RequiresRepublish", "Whether mounts are refreshed."),
        Column::text("Modes", "Lifecycles of volumes it supports."),
        AGE,
    ],
    |object, now| {
        let on = |field: &str, otherwise: bool| json!(flag(object, field).unwrap_or(otherwise));
        let tokens = if has(object, "/spec/tokenRequests") {
            joined(list(object, "/spec/tokenRequests"), "/audience", ",")
        } else {
            UNSET.to_owned()
        };
        let modes: Vec<&str> =
            list(object, "/spec/volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
        let modes = if modes.is_empty() { NONE.to_owned() } else { modes.join(",") };
        vec![
            name(object),
            on("/spec/attachRequired", true),
            on("/spec/podInfoOnMount", false),
            on("/spec/storageCapacity", false),
            json!(tokens),
            on("/spec/requiresRepublish", false),
            json!(modes),
            created(object, now),
        ]
    },
);

/// Volume attachments.
pub(super) const ATTACHMENT: Printer = Printer::new(
    &[
        NAME,
        Column::reference("Attacher", "Driver that attaches."),
        Column::text("PV", "Volume to attach."),
        Column::text("Node", "Node to attach it to."),
        Column::flag("Attached", "Whether it is attached."),
        AGE,
    ],
    |object, now| {
        vec![
            name(object),
            json!(text(object, "/spec/attacher")),
            json!(text(object, "/spec/source/persistentVolumeName")),
            json!(text(object, "/spec/nodeName")),
            json!(flag(object, "/status/attached").unwrap_or(false)),
            created(object, now),
        ]
    },
);

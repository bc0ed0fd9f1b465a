//! What of a pod says nothing about where it fits?

use crate::json::Skip;
use crate::read::METADATA;

/// What [`read`](super::read) does not read.
pub const SKIP: Skip = Skip::NOTHING.within(&[
    ("metadata", METADATA),
    ("spec", Skip::fields(SPEC).within(CONTAINERS)),
    ("status", STATUS),
]);

/// The same for who does not look at volumes.
pub const SKIP_VOLUMES: Skip = Skip::NOTHING.within(&[
    ("metadata", METADATA),
    ("spec", Skip::fields(SPEC_AND_VOLUMES).within(CONTAINERS)),
    ("status", STATUS),
]);

/// What [`bound`](super::bound) does not read.
pub const SKIP_BUT_BINDING: Skip = Skip::NOTHING.within(&[
    ("metadata", Skip::fields(&["annotations", "labels", "managedFields", "ownerReferences"])),
    (
        "spec",
        Skip::fields(&[
            "affinity",
            "containers",
            "ephemeralContainers",
            "initContainers",
            "tolerations",
            "topologySpreadConstraints",
            "volumes",
        ]),
    ),
    ("status", Skip::fields(&["containerStatuses", "ephemeralContainerStatuses", "initContainerStatuses"])),
]);

const SPEC: &[&str] = &[
    "dnsConfig",
    "ephemeralContainers",
    "hostAliases",
    "imagePullSecrets",
    "readinessGates",
    "securityContext",
];
const SPEC_AND_VOLUMES: &[&str] = &[
    "dnsConfig",
    "ephemeralContainers",
    "hostAliases",
    "imagePullSecrets",
    "readinessGates",
    "securityContext",
    "volumes",
];

/// What nobody reads of containers; their images, ports and resources are read.
pub(crate) const CONTAINERS: &[(&str, Skip)] = &[("containers", CONTAINER), ("initContainers", CONTAINER)];
const CONTAINER: Skip = Skip::fields(&[
    "args",
    "command",
    "env",
    "envFrom",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "resizePolicy",
    "securityContext",
    "startupProbe",
    "volumeDevices",
    "volumeMounts",
]);

const STATUS: Skip = Skip::fields(&[
    "ephemeralContainerStatuses",
    "extendedResourceClaimStatus",
    "hostIPs",
    "podIPs",
    "resourceClaimStatuses",
])
.within(&[("containerStatuses", CONTAINER_STATUS), ("initContainerStatuses", CONTAINER_STATUS)]);
const CONTAINER_STATUS: Skip =
    Skip::fields(&["allocatedResourcesStatus", "containerID", "image", "imageID", "user", "volumeMounts"]);

//! Which columns does a kind have?

use super::cells::{created, name, text};
use super::{meta, network, node, pod, storage, workload};
use jiff::Timestamp;
use serde_json::{Value, json};

/// One column definition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    about: &'static str,
    priority: i64,
}

impl Column {
    const fn new(name: &'static str, kind: &'static str, about: &'static str) -> Self {
        Self { name, kind, format: "", about, priority: 0 }
    }

    /// The column that names the row's object.
    pub(super) const fn name(about: &'static str) -> Self {
        Self { format: "name", ..Self::new("Name", "string", about) }
    }

    /// A column clients treat as a name although it is not the row's own.
    pub(super) const fn reference(name: &'static str, about: &'static str) -> Self {
        Self { format: "name", ..Self::new(name, "string", about) }
    }

    /// A text column.
    pub(super) const fn text(name: &'static str, about: &'static str) -> Self {
        Self::new(name, "string", about)
    }

    /// A whole number.
    pub(super) const fn int(name: &'static str, about: &'static str) -> Self {
        Self::new(name, "integer", about)
    }

    /// Yes or no.
    pub(super) const fn flag(name: &'static str, about: &'static str) -> Self {
        Self::new(name, "boolean", about)
    }

    /// A point in time.
    pub(super) const fn date(name: &'static str, about: &'static str) -> Self {
        Self::new(name, "date", about)
    }

    /// Only shown in wide output.
    pub(super) const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// The wire format.
    pub(super) fn to_json(self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format, "description": self.about,
            "priority": self.priority,
        })
    }
}

/// The usual first column.
pub(super) const NAME: Column = Column::name("Name of the object.");
/// Time since creation.
pub(super) const AGE: Column = Column::text("Age", "Time since creation.");
/// Container names, in wide output.
pub(super) const CONTAINERS: Column = Column::text("Containers", "Names of the containers.").wide();
/// Container images, in wide output.
pub(super) const IMAGES: Column = Column::text("Images", "Images of the containers.").wide();
/// Selected pods, in wide output.
pub(super) const SELECTOR: Column = Column::text("Selector", "Labels of the selected pods.").wide();

/// How one kind is printed.
#[derive(Clone, Copy)]
pub(super) struct Printer {
    /// Its columns.
    pub(super) columns: &'static [Column],
    /// One object's cells, as many as there are columns.
    pub(super) cells: fn(&Value, Timestamp) -> Vec<Value>,
    /// Whether this is the printer of kinds without one of their own.
    pub(super) generic: bool,
}

impl Printer {
    /// A kind's own printer.
    pub(super) const fn new(columns: &'static [Column], cells: fn(&Value, Timestamp) -> Vec<Value>) -> Self {
        Self { columns, cells, generic: false }
    }
}

const GENERIC: Printer = Printer {
    columns: &[NAME, Column::date("Created At", "When the object was created.")],
    cells: |object, _| {
        let created = match text(object, "/metadata/creationTimestamp") {
            "" => "0001-01-01T00:00:00Z",
            time => time,
        };
        vec![name(object), json!(created)]
    },
    generic: true,
};

const NAME_AND_AGE: Printer =
    Printer::new(&[NAME, AGE], |object, now| vec![name(object), created(object, now)]);

/// The printer of a resource; `resource` may carry a subresource.
pub(super) fn printer(group: &str, resource: &str) -> Printer {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    if subresource == "scale" {
        return workload::SCALE;
    }
    match (group, resource) {
        ("", "nodes") => node::NODE,
        ("", "pods") => pod::POD,
        ("", "podtemplates") => workload::POD_TEMPLATE,
        ("", "replicationcontrollers") => workload::REPLICATION_CONTROLLER,
        ("apps", "deployments") => workload::DEPLOYMENT,
        ("apps", "replicasets") => workload::REPLICA_SET,
        ("apps", "statefulsets") => workload::STATEFUL_SET,
        ("apps", "daemonsets") => workload::DAEMON_SET,
        ("apps", "controllerrevisions") => workload::CONTROLLER_REVISION,
        ("batch", "jobs") => workload::JOB,
        ("batch", "cronjobs") => workload::CRON_JOB,
        ("policy", "poddisruptionbudgets") => workload::BUDGET,
        ("autoscaling", "horizontalpodautoscalers") => workload::AUTOSCALER,
        ("", "services") => network::SERVICE,
        ("", "endpoints") => network::ENDPOINTS,
        ("discovery.k8s.io", "endpointslices") => network::ENDPOINT_SLICE,
        ("networking.k8s.io", "ingresses") => network::INGRESS,
        ("networking.k8s.io", "ingressclasses") => network::INGRESS_CLASS,
        ("networking.k8s.io", "networkpolicies") => network::POLICY,
        ("networking.k8s.io", "servicecidrs") => network::SERVICE_CIDR,
        ("networking.k8s.io", "ipaddresses") => network::ADDRESS,
        ("", "persistentvolumes") => storage::VOLUME,
        ("", "persistentvolumeclaims") => storage::CLAIM,
        ("storage.k8s.io", "storageclasses") => storage::CLASS,
        ("storage.k8s.io", "csinodes") => storage::CSI_NODE,
        ("storage.k8s.io", "csidrivers") => storage::CSI_DRIVER,
        ("storage.k8s.io", "volumeattachments") => storage::ATTACHMENT,
        ("storage.k8s.io", "volumeattributesclasses") => storage::ATTRIBUTES_CLASS,
        ("" | "events.k8s.io", "events") => meta::EVENT,
        ("", "namespaces") => meta::NAMESPACE,
        ("", "configmaps") => meta::CONFIG_MAP,
        ("", "secrets") => meta::SECRET,
        ("", "resourcequotas") => meta::QUOTA,
        ("coordination.k8s.io", "leases") => meta::LEASE,
        ("scheduling.k8s.io", "priorityclasses") => meta::PRIORITY_CLASS,
        ("node.k8s.io", "runtimeclasses") => meta::RUNTIME_CLASS,
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => meta::ROLE_BINDING,
        ("certificates.k8s.io", "certificatesigningrequests") => meta::SIGNING_REQUEST,
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => meta::ADMISSION_POLICY,
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => meta::ADMISSION_BINDING,
        ("resource.k8s.io", "resourceclaims") => meta::RESOURCE_CLAIM,
        ("resource.k8s.io", "resourceslices") => meta::RESOURCE_SLICE,
        ("", "serviceaccounts") | ("resource.k8s.io", "deviceclasses" | "resourceclaimtemplates") => {
            NAME_AND_AGE
        }
        _ => GENERIC,
    }
}

/// What is said about a row beside its cells: finished pods can be shown dimmed.
pub(super) fn conditions(group: &str, resource: &str) -> fn(&Value) -> Option<Value> {
    match (group, resource.split('/').next()) {
        ("", Some("pods")) => pod::conditions,
        _ => |_| None,
    }
}

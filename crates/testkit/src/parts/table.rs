//! Which programs are built, and which Go modules pin them?

use super::{Component, Group, Module};

/// Kubernetes itself, with the etcd it asks for.
pub static KUBERNETES: Module = Module {
    folder: "kubernetes",
    upstream: "k8s.io/kubernetes",
    stamp: Some("k8s.io/component-base/version"),
    tags: &[],
    go_mod: include_str!("../../../../xtask/control-plane/kubernetes/go.mod"),
    go_sum: include_str!("../../../../xtask/control-plane/kubernetes/go.sum"),
    tools: include_str!("../../../../xtask/control-plane/kubernetes/tools.go"),
};

/// Karmada of the last minor that speaks only the older of two wire forms.
pub static KARMADA_1_17: Module = Module {
    folder: "karmada-1.17",
    upstream: KARMADA,
    stamp: None,
    tags: KARMADA_TAGS,
    go_mod: include_str!("../../../../xtask/control-plane/karmada-1.17/go.mod"),
    go_sum: include_str!("../../../../xtask/control-plane/karmada-1.17/go.sum"),
    tools: include_str!("../../../../xtask/control-plane/karmada-1.17/tools.go"),
};

/// Karmada of the minor that speaks both wire forms.
pub static KARMADA_1_18: Module = Module {
    folder: "karmada-1.18",
    upstream: KARMADA,
    stamp: None,
    tags: KARMADA_TAGS,
    go_mod: include_str!("../../../../xtask/control-plane/karmada-1.18/go.mod"),
    go_sum: include_str!("../../../../xtask/control-plane/karmada-1.18/go.sum"),
    tools: include_str!("../../../../xtask/control-plane/karmada-1.18/tools.go"),
};

/// What Karmada's own client library reads of a hub. It is ours, in Go because that library is.
pub static KARMADA_READER: Module = Module {
    folder: "karmada-reader",
    upstream: KARMADA,
    stamp: None,
    tags: &[],
    go_mod: include_str!("../../../../xtask/control-plane/karmada-reader/go.mod"),
    go_sum: include_str!("../../../../xtask/control-plane/karmada-reader/go.sum"),
    tools: include_str!("../../../../xtask/control-plane/karmada-reader/main.go"),
};

const KARMADA: &str = "github.com/karmada-io/karmada";

/// Without it the programs start and panic at the first estimate: Kubernetes' types are then no protobuf messages.
const KARMADA_TAGS: &[&str] = &["kubernetes_protomessage_one_more_release"];

/// Open Cluster Management.
pub static OCM: Module = Module {
    folder: "ocm",
    upstream: "open-cluster-management.io/ocm",
    stamp: None,
    tags: &[],
    go_mod: include_str!("../../../../xtask/control-plane/ocm/go.mod"),
    go_sum: include_str!("../../../../xtask/control-plane/ocm/go.sum"),
    tools: include_str!("../../../../xtask/control-plane/ocm/tools.go"),
};

/// What serves the metrics API of a real node.
pub static METRICS_SERVER: Module = Module {
    folder: "metrics-server",
    upstream: "sigs.k8s.io/metrics-server",
    stamp: None,
    tags: &[],
    go_mod: include_str!("../../../../xtask/control-plane/metrics-server/go.mod"),
    go_sum: include_str!("../../../../xtask/control-plane/metrics-server/go.sum"),
    tools: include_str!("../../../../xtask/control-plane/metrics-server/tools.go"),
};

/// What installs charts.
pub static HELM: Module = Module {
    folder: "helm",
    upstream: "helm.sh/helm/v3",
    stamp: None,
    tags: &[],
    go_mod: include_str!("../../../../xtask/control-plane/helm/go.mod"),
    go_sum: include_str!("../../../../xtask/control-plane/helm/go.sum"),
    tools: include_str!("../../../../xtask/control-plane/helm/tools.go"),
};

/// What pods on a real node run. It is ours, in Go because that makes a static program on every machine.
pub static WORKLOAD: Module = Module {
    folder: "workload",
    upstream: "loadline.dev/xtask/control-plane/workload",
    stamp: None,
    tags: &[],
    go_mod: include_str!("../../../../xtask/control-plane/workload/go.mod"),
    go_sum: "",
    tools: include_str!("../../../../xtask/control-plane/workload/main.go"),
};

/// Every program that can be had, in the order in which they are built.
pub static COMPONENTS: &[Component] = &[
    Component {
        name: "etcd",
        module: &KUBERNETES,
        group: Group::ControlPlane,
        package: "go.etcd.io/etcd/server/v3",
    },
    Component {
        name: "kube-apiserver",
        module: &KUBERNETES,
        group: Group::ControlPlane,
        package: "k8s.io/kubernetes/cmd/kube-apiserver",
    },
    Component {
        name: "kubectl",
        module: &KUBERNETES,
        group: Group::ControlPlane,
        package: "k8s.io/kubernetes/cmd/kubectl",
    },
    Component {
        name: "kube-scheduler",
        module: &KUBERNETES,
        group: Group::ControlPlane,
        package: "k8s.io/kubernetes/cmd/kube-scheduler",
    },
    Component {
        name: "kube-controller-manager",
        module: &KUBERNETES,
        group: Group::ControlPlane,
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
    Component {
        name: "karmada-scheduler-1.17",
        module: &KARMADA_1_17,
        group: Group::Peers,
        package: "github.com/karmada-io/karmada/cmd/scheduler",
    },
    Component {
        name: "karmada-scheduler-estimator-1.17",
        module: &KARMADA_1_17,
        group: Group::Peers,
        package: "github.com/karmada-io/karmada/cmd/scheduler-estimator",
    },
    Component {
        name: "karmada-scheduler-1.18",
        module: &KARMADA_1_18,
        group: Group::Peers,
        package: "github.com/karmada-io/karmada/cmd/scheduler",
    },
    Component {
        name: "karmada-scheduler-estimator-1.18",
        module: &KARMADA_1_18,
        group: Group::Peers,
        package: "github.com/karmada-io/karmada/cmd/scheduler-estimator",
    },
    Component {
        name: "karmada-reader",
        module: &KARMADA_READER,
        group: Group::Peers,
        package: "loadline.dev/xtask/control-plane/karmada-reader",
    },
    Component {
        name: "ocm-placement",
        module: &OCM,
        group: Group::Peers,
        package: "open-cluster-management.io/ocm/cmd/placement",
    },
    Component {
        name: "kubelet",
        module: &KUBERNETES,
        group: Group::Node,
        package: "k8s.io/kubernetes/cmd/kubelet",
    },
    Component {
        name: "metrics-server",
        module: &METRICS_SERVER,
        group: Group::Node,
        package: "sigs.k8s.io/metrics-server/cmd/metrics-server",
    },
    Component {
        name: "workload",
        module: &WORKLOAD,
        group: Group::Node,
        package: "loadline.dev/xtask/control-plane/workload",
    },
    Component { name: "helm", module: &HELM, group: Group::Node, package: "helm.sh/helm/v3/cmd/helm" },
];

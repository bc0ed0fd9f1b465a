//! A large cluster as kubectl prints it, for benchmarks: every object with all the fields a real one has.

use serde_json::{Value, json};
use std::fmt::Write as _;

/// How large it is.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Each with a measurement.
    pub nodes: usize,
    pub running: usize,
    /// Pods without a node.
    pub pending: usize,
}

impl Sample {
    /// As one list, as `kubectl get -o yaml` prints it.
    #[must_use]
    pub fn list(self) -> String {
        let items: String = self.items().map(|item| item.replacen("  ", "- ", 1)).collect();
        format!("apiVersion: v1\nitems:\n{items}kind: List\nmetadata:\n  resourceVersion: \"\"\n")
    }

    /// As documents.
    #[must_use]
    pub fn documents(self) -> String {
        self.items().map(|item| plain(&item)).collect::<Vec<_>>().join("---\n")
    }

    /// As one list in JSON, as `kubectl get -o json` prints it.
    #[must_use]
    pub fn json(self) -> String {
        let items: Vec<Value> =
            self.items().filter_map(|item| crate::text::document(&plain(&item)).ok()).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        format!("{list:#}")
    }

    fn items(self) -> impl Iterator<Item = String> {
        let Self { nodes, running, pending } = self;
        let of_nodes = (0..nodes).map(node).chain((0..nodes).map(metrics));
        let pods = (0..running + pending).map(move |i| pod(i, nodes, i < running));
        of_nodes.chain(pods)
    }
}

/// An item without the indentation of a list.
fn plain(item: &str) -> String {
    item.lines().map(|line| &line[2..]).collect::<Vec<_>>().join("\n") + "\n"
}

/// An object as kubectl prints it, indented like an item of a list.
fn node(i: usize) -> String {
    let mut text = format!(
        r#"  apiVersion: v1
  kind: Node
  metadata:
    annotations:
      cpu_usage_max_avg_1d: 0.{load:05},2025-01-01T11:00:00Z
      cpu_usage_max_avg_1h: 0.{load:05},2025-01-01T11:50:00Z
      mem_usage_max_avg_1d: 0.{load:05},2025-01-01T11:00:00Z
      mem_usage_max_avg_1h: 0.{load:05},2025-01-01T11:50:00Z
      node.alpha.kubernetes.io/ttl: "0"
      volumes.kubernetes.io/controller-managed-attach-detach: "true"
    creationTimestamp: "2024-12-01T10:00:00Z"
    labels:
      beta.kubernetes.io/arch: amd64
      beta.kubernetes.io/os: linux
      kubernetes.io/arch: amd64
      kubernetes.io/hostname: node-{i:05}
      kubernetes.io/os: linux
      topology.kubernetes.io/region: eu
      topology.kubernetes.io/zone: zone-{zone}
    name: node-{i:05}
    resourceVersion: "{version}"
    uid: 00000000-0000-4000-8000-{i:012x}
  spec:
    podCIDR: 10.0.0.0/24
    podCIDRs:
    - 10.0.0.0/24
    providerID: kind://node-{i:05}
  status:
    addresses:
    - address: 10.1.2.3
      type: InternalIP
    - address: node-{i:05}
      type: Hostname
    allocatable:
      cpu: 15890m
      ephemeral-storage: "95551679124"
      hugepages-1Gi: "0"
      hugepages-2Mi: "0"
      memory: 63374344Ki
      pods: "110"
    capacity:
      cpu: "16"
      ephemeral-storage: 104845292Ki
      hugepages-1Gi: "0"
      hugepages-2Mi: "0"
      memory: 64390152Ki
      pods: "110"
    conditions:
"#,
        load = 20_000 + i * 7 % 30_000,
        zone = i % 3,
        version = 1_000 + i,
    );
    for (kind, status) in
        [("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"), ("Ready", "True")]
    {
        let _ = write!(
            text,
            r#"    - lastHeartbeatTime: "2025-01-01T11:59:00Z"
      lastTransitionTime: "2024-12-01T10:00:00Z"
      message: kubelet says so
      reason: Kubelet{kind}
      status: "{status}"
      type: {kind}
"#
        );
    }
    text.push_str("    images:\n");
    for image in 0..5 {
        let _ = write!(
            text,
            r"    - names:
      - registry.example/image-{image}@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      - registry.example/image-{image}:v1
      sizeBytes: {}
",
            12_345_678 + image
        );
    }
    text.push_str(
        r"    nodeInfo:
      architecture: amd64
      containerRuntimeVersion: containerd://2.0.0
      kernelVersion: 6.1.0
      kubeletVersion: v1.33.0
      operatingSystem: linux
      osImage: Debian
",
    );
    text
}

fn metrics(i: usize) -> String {
    format!(
        r#"  apiVersion: metrics.k8s.io/v1beta1
  kind: NodeMetrics
  metadata:
    creationTimestamp: "2025-01-01T12:00:00Z"
    name: node-{i:05}
  timestamp: "2025-01-01T11:59:45Z"
  usage:
    cpu: {}n
    memory: {}Ki
  window: 15.236s
"#,
        3_000_000_000_u64 + u64::try_from(i).unwrap_or(0) * 999_983 % 5_000_000_000,
        12_000_000 + i * 7_919 % 20_000_000,
    )
}

fn pod(i: usize, nodes: usize, placed: bool) -> String {
    let app = i % 500;
    let node_name = if placed { format!("    nodeName: node-{:05}\n", i % nodes) } else { String::new() };
    let mut text = format!(
        r#"  apiVersion: v1
  kind: Pod
  metadata:
    creationTimestamp: "2024-12-31T10:00:00Z"
    generateName: web-{app}-7c5ddbdf54-
    labels:
      app: web-{app}
      pod-template-hash: 7c5ddbdf54
    name: web-{app}-7c5ddbdf54-{i:05}
    namespace: default
    ownerReferences:
    - apiVersion: apps/v1
      blockOwnerDeletion: true
      controller: true
      kind: ReplicaSet
      name: web-{app}-7c5ddbdf54
      uid: 0b5d6b8e-0000-4000-8000-{app:012x}
    resourceVersion: "{version}"
    uid: 10000000-0000-4000-8000-{i:012x}
  spec:
    containers:
    - env:
      - name: MODE
        value: "1"
      image: registry.example/web:v1
      imagePullPolicy: IfNotPresent
      name: main
      ports:
      - containerPort: 80
        protocol: TCP
      resources:
        limits:
          cpu: "1"
          memory: 1Gi
        requests:
          cpu: 250m
          memory: 512Mi
      terminationMessagePath: /dev/termination-log
      terminationMessagePolicy: File
      volumeMounts:
      - mountPath: /var/run/secrets/kubernetes.io/serviceaccount
        name: kube-api-access-x
        readOnly: true
    dnsPolicy: ClusterFirst
    enableServiceLinks: true
{node_name}    preemptionPolicy: PreemptLowerPriority
    priority: 0
    restartPolicy: Always
    schedulerName: default-scheduler
    securityContext: {{}}
    serviceAccount: default
    serviceAccountName: default
    terminationGracePeriodSeconds: 30
    tolerations:
    - effect: NoExecute
      key: node.kubernetes.io/not-ready
      operator: Exists
      tolerationSeconds: 300
    - effect: NoExecute
      key: node.kubernetes.io/unreachable
      operator: Exists
      tolerationSeconds: 300
    volumes:
    - name: kube-api-access-x
      projected:
        defaultMode: 420
        sources:
        - serviceAccountToken:
            expirationSeconds: 3607
            path: token
        - configMap:
            items:
            - key: ca.crt
              path: ca.crt
            name: kube-root-ca.crt
"#,
        version = 200_000 + i,
    );
    text.push_str(&if placed { running() } else { "  status:\n    phase: Pending\n".to_owned() });
    text
}

/// The status of a pod that runs.
fn running() -> String {
    let mut text = "  status:\n    conditions:\n".to_owned();
    for kind in ["Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        let _ = write!(
            text,
            r#"    - lastProbeTime: null
      lastTransitionTime: "2024-12-31T10:00:00Z"
      status: "True"
      type: {kind}
"#
        );
    }
    text.push_str(
        r#"    containerStatuses:
    - containerID: containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      image: registry.example/web:v1
      imageID: registry.example/web@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      lastState: {}
      name: main
      ready: true
      restartCount: 0
      started: true
      state:
        running:
          startedAt: "2024-12-31T10:00:05Z"
    hostIP: 10.1.2.3
    phase: Running
    podIP: 10.0.0.5
    podIPs:
    - ip: 10.0.0.5
    qosClass: Burstable
    startTime: "2024-12-31T10:00:00Z"
"#,
    );
    text
}

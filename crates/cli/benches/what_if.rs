//! How long does `what-if schedule` take on a large cluster? `cargo xtask bench what-if`
//!
//! The world is written as kubectl prints it: 5 000 nodes with their measurements, 20 000 pods that run and 10 that wait.
//! It is read in three forms. CPU time counts all cores; where the system does not tell it, only the time on the
//! clock is given.

#![expect(clippy::print_stdout, reason = "figures for people")]

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

const NODES: usize = 5_000;
const RUNNING: usize = 20_000;
const WAITING: usize = 10;

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

fn pod(i: usize, placed: bool) -> String {
    let app = i % 500;
    let node_name = if placed { format!("    nodeName: node-{:05}\n", i % NODES) } else { String::new() };
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

/// CPU time of ended children, in seconds.
fn children_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let after_name: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |at: usize| after_name.get(at)?.parse::<f64>().ok();
    // cutime and cstime, in hundredths of a second.
    Some((ticks(13)? + ticks(14)?) / 100.0)
}

fn main() {
    // Tests build every target and may run it; only `cargo bench` means it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let nodes = (0..NODES).map(node).chain((0..NODES).map(metrics));
    let pods = (0..RUNNING).map(|i| pod(i, true)).chain((RUNNING..RUNNING + WAITING).map(|i| pod(i, false)));
    let items: Vec<String> = nodes.chain(pods).collect();
    let dashed = items.iter().map(|item| item.replacen("  ", "- ", 1));
    let list = format!(
        "apiVersion: v1\nitems:\n{}kind: List\nmetadata:\n  resourceVersion: \"\"\n",
        dashed.collect::<String>()
    );
    let plain = |item: &String| item.lines().map(|line| &line[2..]).collect::<Vec<_>>().join("\n") + "\n";
    let documents = items.iter().map(plain).collect::<Vec<_>>().join("---\n");
    let values = documents
        .split("---\n")
        .map(|text| serde_saphyr::from_str::<serde_json::Value>(text).expect("it is YAML"));
    let json = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": values.collect::<Vec<_>>()});
    let json = serde_json::to_string_pretty(&json).expect("it is JSON");

    let folder = tempfile::tempdir().expect("a folder can be made");
    println!("{NODES} nodes, {RUNNING} pods that run, {WAITING} that wait");
    println!("{:<24} {:>6} {:>8} {:>8}", "form", "MB", "seconds", "cpu");
    for (form, text, output) in [
        ("YAML documents, table", &documents, "table"),
        ("YAML list, table", &list, "table"),
        ("JSON list, table", &json, "table"),
        ("YAML documents, JSON", &documents, "json"),
    ] {
        let path = folder.path().join("world");
        std::fs::write(&path, text).expect("the world can be written");
        let (started, cpu) = (Instant::now(), children_seconds());
        let ended = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["what-if", "schedule", "--now", "2025-01-01T12:00:00Z", "-o", output, "-f"])
            .arg(&path)
            .stdout(Stdio::null())
            .status()
            .expect("it runs");
        assert!(ended.success(), "{form}");
        let wall = started.elapsed().as_secs_f64();
        let cpu = children_seconds()
            .zip(cpu)
            .map_or_else(|| "-".to_owned(), |(after, before)| format!("{:.2}", after - before));
        println!("{form:<24} {:>6} {wall:>8.2} {cpu:>8}", text.len() / 1_000_000);
    }
}

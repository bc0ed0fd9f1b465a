//! What does a simulated node look like?

use super::dice;
use jiff::Timestamp;
use loadline_core::quantity::Quantity;
use serde_json::{Value, json};

/// CPUs and GiB of memory a node may have.
const SIZES: [(i64, i64, &str); 3] = [(4, 16, "sim.large"), (8, 32, "sim.xlarge"), (16, 64, "sim.2xlarge")];
const ZONES: [&str; 3] = ["local-a", "local-b", "local-c"];
/// What runs its containers, as it says.
pub const RUNTIME: &str = "containerd";
pub const RUNTIME_VERSION: &str = "2.0.0-sim";
/// Set aside for the system, not for pods.
const RESERVED_MILLI: i64 = 100;
const RESERVED_BYTES: i64 = 512 << 20;

/// Every so many nodes one has GPUs, in worlds that have any.
const GPUS_EVERY: usize = 3;
const GPU: &str = "nvidia.com/gpu";

/// What the machines of a world are like, as far as that is not left to chance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machines {
    /// The CPUs of each: 4, 8 or 16.
    pub cpus: Option<i64>,
    /// A label that all of them have.
    pub label: Option<(&'static str, &'static str)>,
    /// The GPUs of every third one.
    pub gpus: i64,
}

/// One simulated node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub name: String,
    /// Its number, which its addresses come from.
    pub index: usize,
    pub zone: &'static str,
    pub machine: &'static str,
    pub cpus: i64,
    /// Memory in GiB.
    pub gibibytes: i64,
    pub gpus: i64,
    /// One it has beside those of every node.
    label: Option<(&'static str, &'static str)>,
    seed: u64,
}

impl Shape {
    /// Node number `index` of `count`: the same for the same seed.
    #[must_use]
    pub fn new(index: usize, count: usize, seed: u64) -> Self {
        let width = count.saturating_sub(1).max(1).to_string().len().max(2);
        let name = format!("node-{index:0width$}");
        let pick = usize::try_from(dice(seed, &name) % SIZES.len() as u64).unwrap_or(0);
        let (cpus, gibibytes, machine) = SIZES[pick];
        let zone = ZONES[index % ZONES.len()];
        Self { name, index, zone, machine, cpus, gibibytes, gpus: 0, label: None, seed }
    }

    /// The same node on such a machine.
    #[must_use]
    pub fn on(mut self, machines: &Machines) -> Self {
        if let Some(size) = SIZES.iter().find(|(cpus, ..)| Some(*cpus) == machines.cpus) {
            (self.cpus, self.gibibytes, self.machine) = *size;
        }
        self.gpus = if self.index.is_multiple_of(GPUS_EVERY) { machines.gpus } else { 0 };
        self.label = machines.label;
        self
    }

    #[must_use]
    pub fn ip(&self) -> String {
        format!("172.18.{}.{}", self.index >> 8 & 255, self.index & 255)
    }

    /// The first three numbers of its pods' addresses.
    #[must_use]
    pub fn pod_net(&self) -> String {
        format!("10.{}.{}", 64 + (self.index >> 8 & 127), self.index & 255)
    }

    /// The object it registers with.
    #[must_use]
    pub fn object(&self, now: Timestamp) -> Value {
        let Self { name, zone, machine, .. } = self;
        let net = format!("{}.0/24", self.pod_net());
        let mut labels = json!({
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": machine,
            "topology.kubernetes.io/region": "local", "topology.kubernetes.io/zone": zone,
            "loadline.dev/simulated": "true",
        });
        if let Some((key, value)) = self.label {
            labels[key] = value.into();
        }
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"podCIDR": net, "podCIDRs": [net], "providerID": format!("loadline://local/{name}")},
            "status": self.status(now),
        })
    }

    /// What it says about itself.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Value {
        let has = |cpu: i64, memory: i64, disk: &str| {
            let mut has = json!({
                "cpu": Quantity::from_milli(cpu).to_string(), "memory": Quantity::from_bytes(memory).to_string(),
                "ephemeral-storage": disk, "hugepages-2Mi": "0", "pods": "110",
            });
            if self.gpus > 0 {
                has[GPU] = self.gpus.to_string().into();
            }
            has
        };
        let (cpu, memory) = (self.cpus * 1000, self.gibibytes << 30);
        let id = |what: &str| format!("{:016x}{:016x}", dice(self.seed, what), dice(!self.seed, &self.name));
        json!({
            "capacity": has(cpu, memory, "100Gi"),
            "allocatable": has(cpu - RESERVED_MILLI, memory - RESERVED_BYTES, "90Gi"),
            "conditions": self.conditions(now),
            "addresses": [
                {"type": "InternalIP", "address": self.ip()}, {"type": "Hostname", "address": self.name},
            ],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "osImage": "Simulated Linux",
                "kernelVersion": "6.12.0-sim", "containerRuntimeVersion": format!("{RUNTIME}://{RUNTIME_VERSION}"),
                "kubeletVersion": "v1.36.3", "kubeProxyVersion": "",
                "machineID": id("machine"), "systemUUID": id("system"), "bootID": id("boot"),
            },
        })
    }

    /// Its conditions. `since` of the last change is kept by the server, as the list is merged by type.
    #[must_use]
    pub fn conditions(&self, now: Timestamp) -> Value {
        let now = loadline_api::time::text(now);
        let condition = |kind: &str, status: &str, reason: &str, message: &str| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            })
        };
        json!([
            condition(
                "MemoryPressure",
                "False",
                "KubeletHasSufficientMemory",
                "memory is simulated and suffices"
            ),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "disks are simulated and suffice"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "processes are simulated and few"),
            condition("Ready", "True", "KubeletReady", "simulated node is ready"),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_nodes_and_names_sort_by_number() {
        let nodes = |seed| (0..120).map(|i| Shape::new(i, 120, seed)).collect::<Vec<_>>();
        assert_eq!(nodes(7), nodes(7));
        assert_ne!(nodes(7), nodes(8));
        let names: Vec<_> = nodes(1).into_iter().map(|n| n.name).collect();
        assert!(names.is_sorted());
        assert_eq!(Shape::new(3, 10, 1).name, "node-03");
    }

    #[test]
    fn machines_that_are_not_left_to_chance_are_as_asked() {
        let machines = Machines { cpus: Some(8), label: Some(("key", "value")), gpus: 4 };
        let node = |index| Shape::new(index, 4, 1).on(&machines).object(Timestamp::UNIX_EPOCH);
        let gpus: Vec<_> = (0..4).map(|index| node(index)["status"]["allocatable"][GPU].clone()).collect();
        assert_eq!(gpus, [json!("4"), Value::Null, Value::Null, json!("4")], "every third has some");
        for index in 0..4 {
            assert_eq!(node(index)["status"]["capacity"]["cpu"], "8");
            assert_eq!(node(index)["status"]["capacity"]["memory"], "32Gi");
            assert_eq!(node(index)["metadata"]["labels"]["key"], "value");
        }
        let usual = Shape::new(3, 4, 1);
        assert_eq!(usual.clone().on(&Machines::default()), usual);
    }

    #[test]
    fn no_two_nodes_share_addresses() {
        let mut nets: Vec<_> = (0..5000).map(|i| Shape::new(i, 5000, 1).pod_net()).collect();
        nets.sort();
        nets.dedup();
        assert_eq!(nets.len(), 5000);
    }
}

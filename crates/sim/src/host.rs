//! What do agents see of simulated nodes, and what do they write there?

use crate::cluster::Cluster;
use crate::node::{Figures, Kubelets, Use};
use jiff::Timestamp;
use loadline_core::qos::CpuQuota;
use loadline_services::agent::Host;
use loadline_services::agent::host::{Container, ContainerUsage, Error, PodUsage, Usage, Used};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long ago the figures before were taken, as far as anybody asks.
const WINDOW: Duration = Duration::from_secs(1);

/// All simulated nodes.
pub struct SimulatedHost {
    cluster: Arc<Cluster>,
    kubelets: Arc<Kubelets>,
}

impl SimulatedHost {
    pub fn new(cluster: Arc<Cluster>, kubelets: Arc<Kubelets>) -> Self {
        Self { cluster, kubelets }
    }
}

impl fmt::Debug for SimulatedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimulatedHost")
    }
}

#[tonic::async_trait]
impl Host for SimulatedHost {
    async fn measure(&self, now: Timestamp) -> Usage {
        let Figures { nodes, pods, .. } = self.kubelets.measure(now, WINDOW);
        let quotas = self.kubelets.quotas();
        let pod = |figures: &crate::node::PodFigures| {
            let object = self.cluster.pods.get(&figures.key).filter(|pod| pod.meta.id.uid == figures.uid)?;
            let containers = object.containers.iter().chain(&object.init_containers);
            let containers = containers.map(|container| {
                let used = figures.containers.get(&container.name).copied().map(used);
                (container.name.clone(), ContainerUsage { used, quota: quotas.get(&figures.uid, container) })
            });
            Some((figures.uid.clone(), PodUsage { containers: containers.collect() }))
        };
        Usage {
            nodes: nodes.into_iter().map(|node| (node.name.into(), used(node.used))).collect(),
            pods: pods.iter().filter_map(pod).collect(),
        }
    }

    async fn set_quota(&self, of: &Container<'_>, quota: CpuQuota) -> Result<(), Error> {
        self.kubelets.quotas().set(of.pod_uid, of.name, quota);
        Ok(())
    }
}

fn used(amount: Use) -> Used {
    Used { cpu_milli: amount.cpu_milli, memory_bytes: amount.memory_bytes }
}

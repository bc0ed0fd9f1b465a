//! What do agents see of simulated nodes, and what do they write there?

use crate::cluster::Cluster;
use crate::node::{Figures, Kubelets, Use};
use loadline_core::qos::{CpuQuota, Level};
use loadline_services::agent::Host;
use loadline_services::agent::host::{Ask, ContainerUsage, Error, Located, PodUsage, Usage, Used, series};
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
    async fn measure(&self, ask: &Ask<'_>) -> Usage {
        let Figures { nodes, pods, .. } = self.kubelets.measure(ask.now, WINDOW);
        let quotas = self.kubelets.quotas();
        let pod = |figures: &crate::node::PodFigures| {
            let object = self.cluster.pods.get(&figures.key).filter(|pod| pod.meta.id.uid == figures.uid)?;
            let containers = object.containers.iter().chain(&object.init_containers);
            let containers = containers.map(|container| {
                let cpu = figures.containers.get(&container.name).map(|used| Level::whole(used.cpu_milli));
                let quota = quotas.get(&figures.uid, container);
                (container.name.as_str().into(), ContainerUsage { cpu, quota, ..ContainerUsage::default() })
            });
            let memory = figures.containers.values().map(|used| Level::whole(used.memory_bytes));
            let memory = memory.reduce(|a, b| a + b);
            Some((
                figures.uid.clone(),
                PodUsage { memory, containers: containers.collect(), ..PodUsage::default() },
            ))
        };
        let node = |figures: crate::node::NodeFigures| {
            let has = self.kubelets.capacity(&figures.name)?;
            Some((figures.name.into(), series(used(figures.used), used(has), ask.now)))
        };
        Usage {
            nodes: nodes.into_iter().filter_map(node).collect(),
            pods: pods.iter().filter_map(pod).collect(),
        }
    }

    async fn set_quota(&self, of: &Located<'_>, quota: CpuQuota) -> Result<(), Error> {
        self.kubelets.quotas().set(&of.pod.uid, &of.container.name, quota);
        Ok(())
    }
}

fn used(amount: Use) -> Used {
    Used { cpu_milli: amount.cpu_milli, memory_bytes: amount.memory_bytes }
}

//! What an agent sees of its simulated node, and what it writes there.

use crate::floor::{CPU, MEMORY, Use};
use crate::front::Front;
use crate::history::Entry;
use crate::plan::Flaw;
use loadline_core::qos::{CpuQuota, Level};
use loadline_services::agent::Host;
use loadline_services::agent::host::{Ask, ContainerUsage, Error, Located, PodUsage, Usage, Used, series};
use serde_json::{Value, json};
use std::sync::Arc;

const MIB: i64 = 1 << 20;

/// One node.
#[derive(Debug)]
pub(crate) struct NodeHost {
    pub front: Front,
    pub node: String,
    pub identity: String,
}

#[tonic::async_trait]
impl Host for NodeHost {
    async fn measure(&self, ask: &Ask<'_>) -> Usage {
        let pods = self.front.all("pods");
        let floor = self.front.floor();
        if floor.away.contains(&self.node) {
            return Usage::default();
        }
        let has = Used { cpu_milli: CPU.cast_signed(), memory_bytes: MEMORY.cast_signed() * MIB };
        let used = series(used_by(floor.used(&self.node, &pods)), has, ask.now);
        let here = pods.iter().filter(|(_, pod)| {
            pod["spec"]["nodeName"].as_str() == Some(&self.node) && pod["status"]["phase"] == "Running"
        });
        let here = here.filter_map(|(_, pod)| {
            let uid = pod["metadata"]["uid"].as_str()?;
            let one = used_by(floor.uses(pod));
            let quota = floor.quotas.get(uid).map_or(CpuQuota::Unlimited, |us| CpuQuota::from_us(*us));
            let cpu = Some(Level::whole(one.cpu_milli));
            let main = ContainerUsage { cpu, quota, ..ContainerUsage::default() };
            let containers = [(Arc::from("main"), main)].into();
            let memory = Some(Level::whole(one.memory_bytes));
            Some((Arc::from(uid), PodUsage { memory, containers, ..PodUsage::default() }))
        });
        Usage { nodes: [(Arc::from(self.node.as_str()), used)].into(), pods: here.collect() }
    }

    async fn set_quota(&self, of: &Located<'_>, quota: CpuQuota) -> Result<(), Error> {
        let uid = of.pod.uid.to_string();
        let us = quota.us().unwrap_or(-1);
        if us < 0 && self.front.has(Flaw::SlowStays) {
            return Ok(());
        }
        let before = {
            let mut floor = self.front.floor();
            if us > 0 { floor.quotas.insert(uid.clone(), us) } else { floor.quotas.remove(&uid) }
        };
        let at = self.front.at();
        self.front.note(Entry {
            at,
            sent: at,
            who: format!("agent/{}", self.node),
            identity: self.identity.clone(),
            verb: "quota",
            path: format!("/host/{}/quotas/{uid}", self.node),
            subresource: String::new(),
            before: before.map_or(Value::Null, |us| json!(us)),
            after: if us > 0 { json!(us) } else { Value::Null },
        });
        Ok(())
    }
}

fn used_by(one: Use) -> Used {
    Used { cpu_milli: one.cpu_milli.cast_signed(), memory_bytes: one.memory_mib.cast_signed() * MIB }
}

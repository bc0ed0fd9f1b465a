//! `metrics.k8s.io`: usage figures that whoever simulates nodes puts in and everybody reads.

use crate::ApiServer;
use crate::store::{Expect, TableId, key};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Usage by resource name, as Kubernetes quantities.
pub type Usage = BTreeMap<String, String>;

/// When a figure was taken and over which window.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// End of the window.
    pub at: Timestamp,
    /// Length of the window.
    pub window: Duration,
}

impl Sample {
    fn stamp(self, object: &mut Value) {
        object["timestamp"] = json!(self.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        object["window"] = json!(format!("{}s", self.window.as_secs()));
    }
}

impl ApiServer {
    /// Publishes what a node uses.
    pub fn set_node_metrics(&self, node: &str, usage: &Usage, sample: Sample) {
        let labels = self.store().get("/nodes", node).map(|o| o.value()["metadata"]["labels"].clone());
        let mut object = json!({
            "apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics",
            "metadata": {"name": node, "creationTimestamp": sample.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()},
            "usage": usage,
        });
        if let Some(labels) = labels.filter(Value::is_object) {
            object["metadata"]["labels"] = labels;
        }
        sample.stamp(&mut object);
        self.set_metrics("metrics.k8s.io/nodes", None, node, &object);
    }

    /// Publishes what the containers of a pod use.
    pub fn set_pod_metrics(
        &self,
        namespace: &str,
        pod: &str,
        containers: &BTreeMap<String, Usage>,
        sample: Sample,
    ) {
        let stored = self.store().get("/pods", &key(Some(namespace), pod));
        let labels = stored.map(|o| o.value()["metadata"]["labels"].clone());
        let containers: Vec<Value> =
            containers.iter().map(|(name, usage)| json!({"name": name, "usage": usage})).collect();
        let mut object = json!({
            "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
            "metadata": {
                "name": pod, "namespace": namespace,
                "creationTimestamp": sample.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            },
            "containers": containers,
        });
        if let Some(labels) = labels.filter(Value::is_object) {
            object["metadata"]["labels"] = labels;
        }
        sample.stamp(&mut object);
        self.set_metrics("metrics.k8s.io/pods", Some(namespace), pod, &object);
    }

    /// Forgets the figures of a node.
    pub fn clear_node_metrics(&self, node: &str) {
        self.clear_metrics("metrics.k8s.io/nodes", None, node);
    }

    /// Forgets the figures of a pod.
    pub fn clear_pod_metrics(&self, namespace: &str, pod: &str) {
        self.clear_metrics("metrics.k8s.io/pods", Some(namespace), pod);
    }

    fn set_metrics(&self, table: &str, namespace: Option<&str>, name: &str, object: &Value) {
        let table: TableId = table.into();
        let key = key(namespace, name);
        loop {
            let expect = match self.store().get(&table, &key) {
                Some(live) => Expect::Revision(live.revision),
                None => Expect::Absent,
            };
            if self.store().put(&table, &key, expect, object.clone()).is_ok() {
                return;
            }
        }
    }

    fn clear_metrics(&self, table: &str, namespace: Option<&str>, name: &str) {
        let table: TableId = table.into();
        let key = key(namespace, name);
        while let Some(live) = self.store().get(&table, &key) {
            if self.store().remove(&table, &key, live.revision).is_ok() {
                return;
            }
        }
    }
}

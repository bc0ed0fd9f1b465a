//! How does a test get the metrics API with what a real node measures?
//!
//! metrics-server asks the node's kubelet; the API server hands questions for `metrics.k8s.io` on to it.

use super::RealNode;
use crate::ControlPlane;
use crate::control_plane::Error;
use crate::parts;
use crate::running::Running;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Value, json};

/// Where it thinks it lives.
const NAMESPACE: &str = "kube-system";

/// The path of the API.
const API: &str = "/apis/metrics.k8s.io/v1beta1";

/// One measurement, as the metrics API tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// When it ended, as RFC 3339.
    pub at: String,
    /// How long it took, as Go writes it.
    pub window: String,
    /// Thousandths of a core.
    pub cpu_milli: f64,
    pub memory_bytes: f64,
}

impl Usage {
    fn of<'v>(object: &Value, used: impl IntoIterator<Item = &'v Value>) -> Option<Self> {
        let text = |key: &str| object[key].as_str().map(str::to_owned);
        let mut sum =
            Self { at: text("timestamp")?, window: text("window")?, cpu_milli: 0.0, memory_bytes: 0.0 };
        for used in used {
            sum.cpu_milli += 1000.0 * amount(used["cpu"].as_str()?)?;
            sum.memory_bytes += amount(used["memory"].as_str()?)?;
        }
        Some(sum)
    }
}

/// An amount in the forms metrics-server uses.
fn amount(text: &str) -> Option<f64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let scale = match unit {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "" => 1.0,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * scale)
}

/// A running metrics-server. It ends with the value.
#[derive(Debug)]
pub struct MetricsServer<'a> {
    plane: &'a ControlPlane,
    running: Running,
}

impl<'a> MetricsServer<'a> {
    /// Starts it, and waits until the API server answers with a measurement of `node`: two looks at kubelet, ten seconds
    /// apart.
    ///
    /// # Errors
    /// When the program is missing, does not start, or measures nothing.
    pub fn start(plane: &'a ControlPlane, node: &RealNode) -> Result<Self, Error> {
        let program = parts::find("metrics-server")?;
        let file = |flag: &str, name: &str| format!("--{flag}={}", plane.folder().join(name).display());
        let running = Running::start("metrics-server", &program, |port| {
            vec![
                file("kubeconfig", "kubeconfig"),
                file("authentication-kubeconfig", "kubeconfig"),
                file("authorization-kubeconfig", "kubeconfig"),
                file("tls-cert-file", "serving.crt"),
                file("tls-private-key-file", "serving.key"),
                "--bind-address=127.0.0.1".into(),
                format!("--secure-port={port}"),
                "--kubelet-preferred-address-types=Hostname".into(),
                "--kubelet-use-node-status-port".into(),
                // The shortest there is, and a time for an answer that has to be shorter.
                "--metric-resolution=10s".into(),
                "--kubelet-request-timeout=5s".into(),
            ]
        })?;
        let server = Self { plane, running };
        server.register()?;
        let path = format!("{API}/nodes/{}", node.name());
        server.running.wait_until(|_| server.plane.get(&path).is_ok())?;
        Ok(server)
    }

    /// Tells the API server whom to ask.
    fn register(&self) -> Result<(), Error> {
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "metrics-server", "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"}});
        let api = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                "caBundle": BASE64.encode(self.plane.ca_pem()),
                "service": {"namespace": NAMESPACE, "name": "metrics-server", "port": self.running.port()}}});
        self.plane.create(&format!("/api/v1/namespaces/{NAMESPACE}/services"), &service)?;
        self.plane.create("/apis/apiregistration.k8s.io/v1/apiservices", &api).map(drop)
    }

    /// The newest measurement of the node; none while there is none.
    #[must_use]
    pub fn node(&self, node: &RealNode) -> Option<Usage> {
        let measured = self.plane.get(&format!("{API}/nodes/{}", node.name())).ok()?;
        Usage::of(&measured, [&measured["usage"]])
    }

    /// The newest measurement of a pod in the default namespace, all its containers together.
    #[must_use]
    pub fn pod(&self, name: &str) -> Option<Usage> {
        let measured = self.plane.get(&format!("{API}/namespaces/default/pods/{name}")).ok()?;
        Usage::of(&measured, measured["containers"].as_array()?.iter().map(|container| &container["usage"]))
    }

    /// The process behind it.
    #[must_use]
    pub fn running(&self) -> &Running {
        &self.running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_containers_use_is_added_up() {
        let (small, large) = (json!({"cpu": "1500u", "memory": "2Ki"}), json!({"cpu": "1", "memory": "1Mi"}));
        let object = json!({"timestamp": "2026-01-05T10:00:00Z", "window": "10.1s"});
        let usage = Usage::of(&object, [&small, &large]).unwrap();
        assert_eq!((usage.cpu_milli.round(), usage.memory_bytes), (1002.0, 1_050_624.0));
        assert_eq!(Usage::of(&object, [&json!({"cpu": "1x", "memory": "1"})]), None);
        assert_eq!(Usage::of(&json!({}), [&small]), None);
    }
}

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

    /// The newest measurement of the node, as the API has it; none while there is none.
    #[must_use]
    pub fn node(&self, node: &RealNode) -> Option<Value> {
        self.plane.get(&format!("{API}/nodes/{}", node.name())).ok()
    }

    /// The newest measurement of a pod in the default namespace.
    #[must_use]
    pub fn pod(&self, name: &str) -> Option<Value> {
        self.plane.get(&format!("{API}/namespaces/default/pods/{name}")).ok()
    }

    /// The process behind it.
    #[must_use]
    pub fn running(&self) -> &Running {
        &self.running
    }
}

//! Where does an estimator listen? As said by flag, else where Karmada looks: a Service of the hub, named after the cluster.

use crate::cluster::Connection;
use crate::cluster::connection::{Ask, Cause, Verb};
use crate::cluster::resource::SERVICES;
use loadline_core::object::Key;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the hub may take to say it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where estimators are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// `HOST:PORT` by cluster.
    pub fixed: BTreeMap<String, String>,
    /// `HOST:PORT` of one that answers for all clusters.
    pub shared: Option<String>,
    /// In which namespace Services are looked for.
    pub namespace: String,
    /// What comes before the cluster in their names, and a dash.
    pub prefix: String,
    pub port: u16,
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            fixed: BTreeMap::new(),
            shared: None,
            namespace: "karmada-system".into(),
            prefix: "karmada-scheduler-estimator".into(),
            port: 10352,
        }
    }
}

impl Addresses {
    /// The addresses to try, in order.
    pub(super) async fn of(&self, cluster: &str, hub: &Connection) -> Result<Vec<String>, String> {
        if let Some(address) = self.fixed.get(cluster).or(self.shared.as_ref()) {
            return Ok(vec![address.clone()]);
        }
        let name = format!("{}-{cluster}", self.prefix);
        let key = Key::new(self.namespace.as_str(), name.as_str());
        let ask = Ask::read(Verb::Get, SERVICES, SERVICES.object(&key));
        match hub.call(ask, PATIENCE).await {
            Ok(answer) => {
                let service: Value = serde_json::from_slice(&answer)
                    .map_err(|error| format!("service {key} cannot be read: {error}"))?;
                Ok(vec![self.external(&service).map_err(|problem| format!("service {key}: {problem}"))?])
            }
            Err(failure) if failure.cause == Cause::NotFound => {
                let host = format!("{name}.{}.svc", self.namespace);
                Ok(vec![format!("{host}.cluster.local:{}", self.port), format!("{host}:{}", self.port)])
            }
            Err(failure) => Err(format!("service {key}: {}", failure.message)),
        }
    }

    /// Where a Service of the hub points to: others than external names are of no use outside of the hub.
    fn external(&self, service: &Value) -> Result<String, String> {
        let spec = &service["spec"];
        let (Some("ExternalName"), Some(host)) = (spec["type"].as_str(), spec["externalName"].as_str())
        else {
            return Err("expected the type ExternalName".into());
        };
        let mut ports = spec["ports"].as_array().into_iter().flatten();
        let port = ports.find(|port| port["port"] == self.port);
        let port = port.ok_or_else(|| format!("expected an entry for the port {}", self.port))?;
        let target = port["targetPort"].as_u64().ok_or("expected a number for targetPort")?;
        Ok(format!("{host}:{target}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_external_name_with_the_port_says_where() {
        let service = |kind: &str, port: u16, target: Value| {
            json!({"spec": {"type": kind, "externalName": "m1.example",
                "ports": [{"port": 1, "targetPort": 1}, {"port": port, "targetPort": target}]}})
        };
        let addresses = Addresses::default();
        for (service, expected) in [
            (service("ExternalName", 10352, json!(7000)), Ok("m1.example:7000".to_owned())),
            (service("ClusterIP", 10352, json!(7000)), Err("expected the type ExternalName".to_owned())),
            (
                service("ExternalName", 80, json!(7000)),
                Err("expected an entry for the port 10352".to_owned()),
            ),
            (
                service("ExternalName", 10352, json!("grpc")),
                Err("expected a number for targetPort".to_owned()),
            ),
            (json!({}), Err("expected the type ExternalName".to_owned())),
        ] {
            assert_eq!(addresses.external(&service), expected, "{service}");
        }
    }
}

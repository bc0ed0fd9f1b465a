//! Admission: what the server adds to an object or refuses beyond the rules of its kind.

use super::rules::kind_of;
use super::{ApiServer, Call};
use crate::builtin::admission::{self, PriorityClasses, Refused};
use crate::status::Status;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// Where addresses of services come from.
pub(super) const SERVICES: &str = "10.96.0.0/12";
/// First address and port given to services; both count up and are never given twice.
const FIRST_ADDRESS: [u8; 4] = [10, 96, 0, 10];
const FIRST_NODE_PORT: u32 = 30_000;

impl ApiServer {
    /// Plugins that change a new object.
    pub(super) fn admit_create(&self, call: &Call, object: &mut Value) -> Result<(), Status> {
        let limits = self.limit_ranges(call);
        let kind = kind_of(&call.resource);
        admission::create(kind, object, &Classes(self), &limits).map_err(|r| refused(call, object, &r))
    }

    /// Plugins that only refuse, after validation.
    pub(super) fn admit_check(&self, call: &Call, object: &Value, old: Option<&Value>) -> Result<(), Status> {
        let limits = self.limit_ranges(call);
        let kind = kind_of(&call.resource);
        admission::check(kind, object, old, &Classes(self), &limits).map_err(|r| refused(call, object, &r))
    }

    fn limit_ranges(&self, call: &Call) -> Vec<Value> {
        match call.namespace() {
            Some(namespace) if matches!(call.resource.plural.as_str(), "pods" | "persistentvolumeclaims") => {
                self.all_of("/limitranges", Some(namespace))
            }
            _ => Vec::new(),
        }
    }

    /// Gives a service the addresses and ports a cluster would.
    pub(super) fn allocate(&self, call: &Call, object: &mut Value) {
        if call.resource.table.as_ref() != "/services" || object["spec"]["type"] == "ExternalName" {
            return;
        }
        let spec = &mut object["spec"];
        if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
            let n = self.0.addresses.fetch_add(1, Ordering::Relaxed);
            let address =
                std::net::Ipv4Addr::from(u32::from_be_bytes(FIRST_ADDRESS).wrapping_add(n)).to_string();
            spec["clusterIP"] = json!(address);
            spec["clusterIPs"] = json!([address]);
        }
        if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
            for port in spec["ports"].as_array_mut().into_iter().flatten() {
                if port["nodePort"].as_i64().unwrap_or(0) == 0 {
                    let n = self.0.node_ports.fetch_add(1, Ordering::Relaxed);
                    port["nodePort"] = json!(FIRST_NODE_PORT + n % 2768);
                }
            }
        }
    }
}

fn refused(call: &Call, object: &Value, refused: &Refused) -> Status {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Status::forbidden(call.resource.subject(), name, &refused.0)
}

/// Classes as admission looks them up.
struct Classes<'a>(&'a ApiServer);

impl PriorityClasses for Classes<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        self.0.0.store.get("scheduling.k8s.io/priorityclasses", name).map(|o| o.value())
    }

    fn global_default(&self) -> Option<Value> {
        let all = self.0.all_of("scheduling.k8s.io/priorityclasses", None);
        let defaults = all.into_iter().filter(|class| class["globalDefault"] == true);
        defaults.min_by_key(|class| class["value"].as_i64())
    }

    fn runtime_class(&self, name: &str) -> Option<Value> {
        self.0.0.store.get("node.k8s.io/runtimeclasses", name).map(|o| o.value())
    }
}

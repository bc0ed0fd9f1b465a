//! What do services and the kinds around them show?

use super::cells::{
    NONE, UNSET, and_more, created, int, labels, list, map, name, selector_or_none, set_or, text, text_or,
};
use super::columns::{AGE, Column, NAME, Printer, SELECTOR};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Lists of addresses, ports and hosts show this many entries.
const SHOWN: usize = 3;

/// Services.
pub(super) const SERVICE: Printer = Printer::new(
    &[
        NAME,
        Column::text("Type", "How the service is reached."),
        Column::text("Cluster-IP", "Address inside the cluster."),
        Column::text("External-IP", "Addresses outside the cluster."),
        Column::text("Port(s)", "Ports, with node port and protocol."),
        AGE,
        SELECTOR,
    ],
    |object, now| {
        let first = text(object, "/spec/clusterIPs/0");
        let address = if first.is_empty() { text_or(object, "/spec/clusterIP", NONE) } else { first };
        vec![
            name(object),
            json!(text(object, "/spec/type")),
            json!(address),
            json!(external(object)),
            json!(ports(object)),
            created(object, now),
            json!(labels(map(object, "/spec/selector"))),
        ]
    },
);

fn external(service: &Value) -> String {
    let mut fixed: Vec<String> =
        list(service, "/spec/externalIPs").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    match text(service, "/spec/type") {
        "ClusterIP" | "NodePort" if fixed.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => fixed.join(","),
        "LoadBalancer" => {
            let balanced = balancer(service);
            if !balanced.is_empty() {
                fixed.insert(0, balanced);
            }
            if fixed.is_empty() { "<pending>".to_owned() } else { fixed.join(",") }
        }
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Addresses of the load balancer, sorted; a host name counts where there is no address.
fn balancer(object: &Value) -> String {
    let addresses: BTreeSet<&str> = list(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|ingress| text_or(ingress, "/ip", text(ingress, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

fn ports(service: &Value) -> String {
    let ports: Vec<String> = list(service, "/spec/ports")
        .iter()
        .map(|port| {
            let (inside, protocol) = (int(port, "/port"), text(port, "/protocol"));
            match int(port, "/nodePort") {
                outside @ 1.. => format!("{inside}:{outside}/{protocol}"),
                _ => format!("{inside}/{protocol}"),
            }
        })
        .collect();
    if ports.is_empty() { NONE.to_owned() } else { ports.join(",") }
}

/// Endpoints.
pub(super) const ENDPOINTS: Printer = Printer::new(
    &[NAME, Column::text("Endpoints", "Addresses and ports behind the service."), AGE],
    |object, now| vec![name(object), json!(endpoints(object)), created(object, now)],
);

fn endpoints(object: &Value) -> String {
    let subsets = list(object, "/subsets");
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = || list(subset, "/addresses").iter().map(|address| text(address, "/ip"));
        let ports = list(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let port = int(port, "/port");
            all.extend(addresses().map(|address| {
                if address.contains(':') {
                    format!("[{address}]:{port}")
                } else {
                    format!("{address}:{port}")
                }
            }));
        }
    }
    and_more(&all, SHOWN, ",")
}

/// Endpoint slices.
pub(super) const ENDPOINT_SLICE: Printer = Printer::new(
    &[
        NAME,
        Column::text("AddressType", "Kind of address."),
        Column::text("Ports", "Ports of every endpoint."),
        Column::text("Endpoints", "Addresses of the endpoints."),
        AGE,
    ],
    |object, now| {
        let ports: Vec<String> = list(object, "/ports")
            .iter()
            .map(|port| match port.get("port").and_then(Value::as_i64) {
                Some(number) => number.to_string(),
                None => set_or(port, "/name", "*").to_owned(),
            })
            .collect();
        let addresses: Vec<String> = list(object, "/endpoints")
            .iter()
            .flat_map(|endpoint| list(endpoint, "/addresses"))
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let shown = |entries: &[String]| match and_more(entries, SHOWN, ",") {
            text if text.is_empty() => UNSET.to_owned(),
            text => text,
        };
        vec![
            name(object),
            json!(text(object, "/addressType")),
            json!(shown(&ports)),
            json!(shown(&addresses)),
            created(object, now),
        ]
    },
);

/// Ingresses.
pub(super) const INGRESS: Printer = Printer::new(
    &[
        NAME,
        Column::text("Class", "Class that serves the ingress."),
        Column::text("Hosts", "Hosts it answers for."),
        Column::text("Address", "Addresses of its load balancer."),
        Column::text("Ports", "Ports it listens on."),
        AGE,
    ],
    |object, now| {
        let ports = if list(object, "/spec/tls").is_empty() { "80" } else { "80, 443" };
        vec![
            name(object),
            json!(set_or(object, "/spec/ingressClassName", NONE)),
            json!(hosts(object)),
            json!(balancer(object)),
            json!(ports),
            created(object, now),
        ]
    },
);

/// Rules count towards "more" whether they name a host or not, once three hosts are shown.
fn hosts(ingress: &Value) -> String {
    let rules = list(ingress, "/spec/rules");
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == SHOWN;
        let host = text(rule, "/host");
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, false) => shown.join(","),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN),
    }
}

/// Ingress classes.
pub(super) const INGRESS_CLASS: Printer = Printer::new(
    &[
        NAME,
        Column::text("Controller", "Controller that serves the class."),
        Column::text("Parameters", "Object with the controller's settings."),
        AGE,
    ],
    |object, now| {
        let marked = super::cells::entry(
            object,
            "/metadata/annotations",
            "ingressclass.kubernetes.io/is-default-class",
        );
        let suffix = if marked == Some("true") { " (default)" } else { "" };
        let parameters = object.pointer("/spec/parameters").filter(|value| value.is_object()).map(|to| {
            let group = to.get("apiGroup").and_then(Value::as_str).map(|group| format!(".{group}"));
            format!("{}{}/{}", text(to, "/kind"), group.unwrap_or_default(), text(to, "/name"))
        });
        vec![
            json!(format!("{}{suffix}", text(object, "/metadata/name"))),
            json!(text(object, "/spec/controller")),
            json!(parameters.unwrap_or_else(|| NONE.to_owned())),
            created(object, now),
        ]
    },
);

/// Network policies.
pub(super) const POLICY: Printer = Printer::new(
    &[NAME, Column::text("Pod-Selector", "Labels of the pods it applies to."), AGE],
    |object, now| {
        vec![name(object), selector_or_none(object.pointer("/spec/podSelector")), created(object, now)]
    },
);

/// Ranges that addresses of services come from.
pub(super) const SERVICE_CIDR: Printer =
    Printer::new(&[NAME, Column::text("CIDRs", "The ranges."), AGE], |object, now| {
        let ranges: Vec<&str> = list(object, "/spec/cidrs").iter().filter_map(Value::as_str).collect();
        vec![name(object), json!(ranges.join(",")), created(object, now)]
    });

/// Addresses of services. Upstream shows a cell more than it has columns, and so do we.
pub(super) const ADDRESS: Printer =
    Printer::new(&[NAME, Column::text("ParentRef", "Whose it is.")], |object, now| {
        let part = |key: &str| text(object, &format!("/spec/parentRef/{key}"));
        let of = if object.pointer("/spec/parentRef").is_some_and(Value::is_object) {
            let kind = match part("group") {
                "" => part("resource").to_owned(),
                group => format!("{}.{group}", part("resource")),
            };
            [kind.to_lowercase().as_str(), part("namespace"), part("name")]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("/")
        } else {
            NONE.to_owned()
        };
        vec![name(object), json!(of), created(object, now)]
    });

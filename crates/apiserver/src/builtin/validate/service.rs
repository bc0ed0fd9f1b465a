//! Services: ports, types and addresses.

use super::check::{Errors, each, forbidden, invalid, must_be, required};
use crate::builtin::json::{get, has, int, list, text};
use crate::builtin::{meta, names};
use serde_json::{Value, json};

pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn service(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    let ty = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    let ports = list(spec, "ports");
    if ports.is_empty() && !headless && ty != "ExternalName" {
        required(out, "spec.ports", "");
    }
    match ty {
        "LoadBalancer" | "NodePort" if headless => {
            let why = format!("may not be set to 'None' for {ty} services");
            invalid(out, "spec.clusterIPs[0]", &json!("None"), why);
        }
        "ExternalName" => {
            if !text(spec, "clusterIP").is_empty() {
                forbidden(out, "spec.clusterIPs", "may not be set for ExternalName services");
            }
            let name = text(spec, "externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                required(out, "spec.externalName", "");
            } else {
                each(out, "spec.externalName", name, names::subdomain(name));
            }
        }
        _ => {}
    }
    let mut seen: Vec<&str> = Vec::new();
    for (i, port) in ports.iter().enumerate() {
        one_port(out, port, ports.len() > 1, &mut seen, &format!("spec.ports[{i}]"));
    }
    if has(spec, "selector") {
        meta::labels(spec, "selector", "spec.selector", out);
    }
    must_be(out, spec, "sessionAffinity", "spec", &["ClientIP", "None"]);
    must_be(out, spec, "type", "spec", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    repeated_ports(out, ports);
}

fn one_port<'a>(out: &mut Errors, port: &'a Value, named: bool, seen: &mut Vec<&'a str>, path: &str) {
    let name = text(port, "name");
    if name.is_empty() {
        if named {
            required(out, format!("{path}.name"), "");
        }
    } else {
        each(out, &format!("{path}.name"), name, names::label(name));
        if seen.contains(&name) {
            out.push(crate::status::FieldError::duplicate(format!("{path}.name"), &json!(name)));
        }
        seen.push(name);
    }
    let number = int(port, "port").unwrap_or(0);
    if let Some(why) = names::port_number(number) {
        invalid(out, format!("{path}.port"), &json!(number), why);
    }
    must_be(out, port, "protocol", path, &PROTOCOLS);
    let target = get(port, "targetPort");
    if let Some(number) = target.as_i64() {
        if let Some(why) = names::port_number(number) {
            invalid(out, format!("{path}.targetPort"), target, why);
        }
    } else if let Some(name) = target.as_str() {
        each(out, &format!("{path}.targetPort"), name, names::port_name(name));
    }
}

/// The same port and protocol may be served once.
fn repeated_ports(out: &mut Errors, ports: &[Value]) {
    let mut seen: Vec<(i64, &str)> = Vec::new();
    for (i, port) in ports.iter().enumerate() {
        let key = (int(port, "port").unwrap_or(0), text(port, "protocol"));
        if seen.contains(&key) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{:?},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\
                 \"NodePort\":0}}",
                key.1, key.0
            );
            out.push(crate::status::FieldError {
                mistake: crate::status::Mistake::Duplicate,
                field: format!("spec.ports[{i}]"),
                value: Some(shown),
                detail: String::new(),
            });
        }
        seen.push(key);
    }
}

/// Addresses once given stay.
pub(super) fn changes(new: &Value, old: &Value, out: &mut Errors) {
    let (new, old) = (get(new, "spec"), get(old, "spec"));
    if text(new, "type") == "ExternalName" || text(old, "type") == "ExternalName" {
        return;
    }
    let (now, before) = (text(new, "clusterIP"), text(old, "clusterIP"));
    if !before.is_empty() && now != before {
        let why = "may not change once set";
        invalid(out, "spec.clusterIPs[0]", &json!([now]), why);
    }
}

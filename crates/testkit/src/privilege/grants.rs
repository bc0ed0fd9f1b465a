//! What do roles grant?

use super::{Granted, Right};
use serde_json::Value;

/// The objects of some text, one after the other.
///
/// # Errors
/// What does not read.
pub(super) fn objects(text: &str) -> Result<Vec<Value>, String> {
    let documents = text.split("\n---").filter(|text| text.contains("kind:"));
    documents.map(|text| serde_saphyr::from_str(text).map_err(|error| format!("{error}: {text}"))).collect()
}

/// What those of these names grant together.
///
/// # Errors
/// When there is none, or a rule is not as we write them.
pub(super) fn of(objects: &[Value], names: &[&str]) -> Result<Granted, String> {
    let mut out = Granted::default();
    let mut found = false;
    for object in objects {
        let is_named = names.iter().any(|name| object["metadata"]["name"] == *name);
        let rights = match object["kind"].as_str() {
            Some("ClusterRole") if is_named => &mut out.cluster,
            Some("Role") if is_named => &mut out.namespaced,
            _ => continue,
        };
        found = true;
        for rule in object["rules"].as_array().into_iter().flatten() {
            rights
                .extend(unfold(rule).ok_or_else(|| format!("expected groups, resources and verbs: {rule}"))?);
        }
    }
    if found { Ok(out) } else { Err(format!("expected a role called {}", names.join(" or "))) }
}

/// Every right of a rule. A star grants what cannot be counted, and so is none.
fn unfold(rule: &Value) -> Option<Vec<Right>> {
    let words = |field: &str| {
        let words: Option<Vec<&str>> = rule[field].as_array()?.iter().map(Value::as_str).collect();
        words.filter(|words| !words.contains(&"*"))
    };
    let (groups, resources, verbs) = (words("apiGroups")?, words("resources")?, words("verbs")?);
    let mut out = Vec::new();
    for group in &groups {
        for resource in &resources {
            let (resource, below) = resource.split_once('/').unwrap_or((resource, ""));
            out.extend(verbs.iter().map(|verb| Right::new(verb, group, resource, below)));
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
kind: ClusterRole
metadata: {name: a}
rules:
  - {apiGroups: [\"\"], resources: [nodes, nodes/status], verbs: [patch]}
---
kind: Role
metadata: {name: a, namespace: n}
rules:
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create]}
---
kind: ClusterRole
metadata: {name: b}
rules: [{apiGroups: [\"\"], resources: [\"*\"], verbs: [get]}]
";

    #[test]
    fn a_rule_is_every_verb_on_every_resource() {
        let objects = objects(TEXT).unwrap();
        let granted = of(&objects, &["a"]).unwrap();
        let told = |rights: &std::collections::BTreeSet<Right>| -> Vec<String> {
            rights.iter().map(Right::to_string).collect()
        };
        assert_eq!(told(&granted.cluster), ["patch nodes", "patch nodes/status"]);
        assert_eq!(
            told(&granted.namespaced),
            ["create leases.coordination.k8s.io", "get leases.coordination.k8s.io"]
        );
    }

    #[test]
    fn a_star_and_a_role_that_is_not_there_are_refused() {
        let objects = objects(TEXT).unwrap();
        assert!(of(&objects, &["b"]).unwrap_err().contains("expected groups"));
        assert!(of(&objects, &["c"]).unwrap_err().contains("a role called c"));
    }
}

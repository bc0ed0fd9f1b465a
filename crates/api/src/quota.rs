//! What does a quota leave? A `ResourceQuota`, as its controller last counted.

use crate::context::key;
use crate::json::{Skip, Tree};
use crate::read::{Error, METADATA, object};
use loadline_core::estimate::{Quota, Scope};

/// What [`quota`] does not read.
pub const SKIP: Skip = Skip::NOTHING.within(&[("metadata", METADATA), ("spec", Skip::fields(&["hard"]))]);

/// Reads a `ResourceQuota`. What may be used and what is used come from its status: what nobody has counted yet is
/// not known, and binds nothing. An amount that does not read is left out.
///
/// # Errors
/// When the object is not what it should be.
pub fn quota(value: &Tree<'_>) -> Result<Quota, Error> {
    object("ResourceQuota", value, |root| {
        let (metadata, spec, status) = (root.get("metadata"), root.get("spec"), root.get("status"));
        let (names, selector) = (spec.get("scopes"), spec.get("scopeSelector"));
        let expressions = selector.get("matchExpressions");
        let plain = names.items().map(|name| Scope {
            name: name.string(),
            operator: "Exists".to_owned(),
            values: Vec::new(),
        });
        let chosen = expressions.items().map(|at| Scope {
            name: at.get("scopeName").string(),
            operator: at.get("operator").string(),
            values: at.get("values").strings(),
        });
        Quota {
            key: key(&metadata),
            hard: status.get("hard").known_amounts(),
            used: status.get("used").known_amounts(),
            scopes: plain.chain(chosen).collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_core::object::Key;
    use serde_json::json;

    #[test]
    fn what_was_counted_counts_and_all_scopes_hold() {
        let value = json!({
            "metadata": {"name": "compute", "namespace": "shop"},
            "spec": {"hard": {"requests.cpu": "99"}, "scopes": ["NotBestEffort"], "scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
            "status": {"hard": {"requests.cpu": "10", "pods": "lots"}, "used": {"requests.cpu": "2500m"}},
        });
        let quota = quota(&Tree::from(&value)).unwrap();
        assert_eq!(quota.key, Key::new("shop", "compute"));
        assert_eq!(quota.hard, [("requests.cpu".to_owned(), "10".parse().unwrap())].into());
        assert_eq!(quota.used, [("requests.cpu".to_owned(), "2500m".parse().unwrap())].into());
        let scopes: Vec<_> =
            quota.scopes.iter().map(|s| format!("{} {} {:?}", s.name, s.operator, s.values)).collect();
        assert_eq!(scopes, ["NotBestEffort Exists []", r#"PriorityClass In ["high"]"#]);
    }

    #[test]
    fn what_nobody_has_counted_is_not_known() {
        let quota =
            quota(&Tree::from(&json!({"metadata": {"name": "new"}, "spec": {"hard": {"pods": "3"}}})))
                .unwrap();
        assert!(quota.hard.is_empty() && quota.used.is_empty());
    }
}

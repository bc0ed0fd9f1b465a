//! What was asked for? `NodeQOS`, `PodQOS` and `AvoidanceAction`.
//!
//! What a schema refuses ([`super::DEFINITIONS`]) is for whoever holds the object against it; here everything is read
//! that can be, and the planner says what is wrong with the rest.

use crate::json::Tree;
use crate::read::{At, Error, Warning, tolerant};
use loadline_core::qos::Level;
use loadline_core::qos::policy::{Action, COOL_DOWN_SECONDS, Evict, NodeQos, Rule, Strategy};
use loadline_core::qos::scope::Scope;
use loadline_core::qos::throttle::Step;
use loadline_core::select::LabelSelector;
use loadline_core::select::label::Expression;

/// Reads a `NodeQOS`.
///
/// # Errors
/// When the object is not what it should be.
pub fn node_qos(value: &Tree<'_>) -> Result<(NodeQos, Vec<Warning>), Error> {
    tolerant("NodeQOS", value, |root| {
        let (metadata, spec) = (root.get("metadata"), root.get("spec"));
        let rules = spec.get("rules");
        NodeQos {
            name: metadata.get("name").needed().into(),
            selector: spec.get("selector").some().and_then(|at| at.parse()),
            rules: rules.items().map(|at| rule(&at)).collect(),
        }
    })
}

fn rule(at: &At<'_, '_>) -> Rule {
    let metric = at.get("metricRule");
    let value = metric.get("value");
    let level = match value.amount() {
        Ok(amount) => Level::from_quantity(&amount),
        Err(problem) => {
            value.fail(problem.problem);
            None
        }
    };
    let name = at.get("name").needed();
    if !name.is_empty() && !is_dns_label(&name) {
        at.get("name").warn(format!(
            "crane's webhook takes lower-case letters, digits and '-' only, found {name:?}; it is taken as it is"
        ));
    }
    Rule {
        name: name.into(),
        metric: metric.get("name").needed().into(),
        selector: metric.get("selector").some().and_then(|at| at.parse()),
        value: level,
        avoid_after: at.get("avoidanceThreshold").int32().unwrap_or(1),
        restore_after: at.get("restoreThreshold").int32().unwrap_or(1),
        action: at.get("actionName").needed().into(),
        strategy: match at.get("strategy").text() {
            Some("Preview") => Strategy::Preview,
            _ => Strategy::Act,
        },
    }
}

fn is_dns_label(name: &str) -> bool {
    let inside = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    inside && !name.starts_with('-') && !name.ends_with('-')
}

/// Reads an `AvoidanceAction`. A step or a rest that is not said is a tenth; one that is 0 stays 0.
///
/// # Errors
/// When the object is not what it should be.
pub fn action(value: &Tree<'_>) -> Result<(Action, Vec<Warning>), Error> {
    tolerant("AvoidanceAction", value, |root| {
        let (metadata, spec) = (root.get("metadata"), root.get("spec"));
        let (throttle, eviction) = (spec.get("throttle"), spec.get("eviction"));
        let (cpu, memory) = (throttle.get("cpuThrottle"), throttle.get("memoryThrottle"));
        let step = Step {
            percent: cpu.get("stepCPURatio").int32().unwrap_or(Step::DEFAULT.percent),
            least_percent: cpu.get("minCPURatio").int32().unwrap_or(Step::DEFAULT.least_percent),
        };
        let grace = eviction.get("terminationGracePeriodSeconds");
        Action {
            name: metadata.get("name").needed().into(),
            cool_down_seconds: spec.get("coolDownSeconds").int().unwrap_or(COOL_DOWN_SECONDS),
            // Who only asks for page cache back slows nobody down.
            throttle: (throttle.is_set() && (cpu.is_set() || !memory.is_set())).then_some(step),
            reclaim: memory.get("forceGC").flag(),
            evict: eviction.is_set().then(|| Evict { grace_seconds: grace.int() }),
        }
    })
}

/// Reads a `PodQOS`.
///
/// # Errors
/// When the object is not what it should be.
pub fn pod_qos(value: &Tree<'_>) -> Result<(Scope, Vec<Warning>), Error> {
    tolerant("PodQOS", value, |root| {
        let (metadata, spec) = (root.get("metadata"), root.get("spec"));
        let (chosen, scopes) = (spec.get("labelSelector"), spec.get("scopeSelector"));
        let expressions = scopes.get("matchExpressions");
        let expression = |at: At<'_, '_>| Expression {
            key: at.get("scopeName").string(),
            operator: at.get("operator").string(),
            values: at.get("values").strings(),
        };
        let labels: Option<LabelSelector> = chosen.some().and_then(|at| at.parse());
        Scope {
            name: metadata.get("name").needed().into(),
            labels: labels.unwrap_or_default(),
            expressions: expressions.items().map(expression).collect(),
            allowed: spec.get("allowedActions").strings().into_iter().map(Into::into).collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    // R5.
    #[test]
    fn a_step_that_is_not_said_is_a_tenth() {
        for (throttle, expected) in [
            (json!({}), (10, 10)),
            (json!({"cpuThrottle": {}}), (10, 10)),
            (json!({"cpuThrottle": {"stepCPURatio": 0, "minCPURatio": 0}}), (0, 0)),
            (json!({"cpuThrottle": {"stepCPURatio": 15}}), (15, 10)),
        ] {
            let object = json!({"metadata": {"name": "a"}, "spec": {"throttle": throttle}});
            let (action, _) = action(&Tree::from(&object)).unwrap();
            let step = action.throttle.unwrap();
            assert_eq!((step.percent, step.least_percent), expected, "{throttle}");
            assert_eq!((action.cool_down_seconds, action.evict), (300, None));
        }
    }

    // R23.
    #[test]
    fn who_only_asks_for_page_cache_slows_nobody_down() {
        for (throttle, slows, reclaims) in [
            (json!({"memoryThrottle": {"forceGC": true}}), false, true),
            (json!({"memoryThrottle": {"forceGC": false}}), false, false),
            (json!({"memoryThrottle": {"forceGC": true}, "cpuThrottle": {}}), true, true),
            (json!({"cpuThrottle": {}}), true, false),
            (json!({}), true, false),
        ] {
            let object = json!({"metadata": {"name": "a"}, "spec": {"throttle": throttle}});
            let (action, _) = action(&Tree::from(&object)).unwrap();
            assert_eq!((action.throttle.is_some(), action.reclaim), (slows, reclaims), "{throttle}");
        }
    }

    #[test]
    fn a_rule_whose_name_only_cranes_webhook_refuses_is_taken_with_a_warning() {
        for (name, odd) in [
            ("cpu-line", false),
            ("ext_cpu_total_distribute", true),
            ("CpuLine", true),
            ("cpu.line", true),
            ("cpu-", true),
        ] {
            let rule = json!({"name": name, "metricRule": {"name": "cpu_total_usage", "value": 6000}, "actionName": "a"});
            let object = json!({"metadata": {"name": "n"}, "spec": {"rules": [rule]}});
            let (read, warnings) = node_qos(&Tree::from(&object)).unwrap();
            assert_eq!(&*read.rules[0].name, name);
            let paths: Vec<&str> = warnings.iter().map(|one| &*one.problem.path).collect();
            assert_eq!(paths, if odd { vec!["spec.rules[0].name"] } else { vec![] }, "{name}");
        }
    }

    #[test]
    fn a_line_is_read_exactly() {
        let with = |value: Value| {
            let rule = json!({"name": "r", "metricRule": {"name": "cpu_total_usage", "value": value}, "actionName": "a"});
            node_qos(&Tree::from(&json!({"metadata": {"name": "n"}, "spec": {"rules": [rule]}})))
        };
        for (value, nano) in [
            (json!(6000), 6_000_000_000_000),
            (json!("4000m"), 4_000_000_000),
            (json!("0.5"), 500_000_000),
            (json!("24Gi"), 24 * (1_i128 << 30) * 1_000_000_000),
        ] {
            let (object, _) = with(value.clone()).unwrap();
            assert_eq!(object.rules[0].value.map(Level::nano), Some(nano), "{value}");
            assert_eq!((object.rules[0].avoid_after, object.rules[0].restore_after), (1, 1));
        }
        let refused = with(json!("much")).unwrap_err();
        assert_eq!(refused.problems[0].path, "spec.rules[0].metricRule.value");
    }
}

//! What `what-if protect` answers to programs: names, figures, and that the state goes into the next question.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use common::{answer, scenario};
use serde_json::{Value, json};

fn protect(name: &str, more: &[&str]) -> Value {
    let text = [scenario("protect/policy"), scenario(&format!("protect/{name}"))].join("\n---\n");
    ask(&text, more)
}

fn ask(text: &str, more: &[&str]) -> Value {
    let answer = answer("protect", text, more);
    assert_eq!(
        (&answer["apiVersion"], &answer["kind"]),
        (&json!("loadline.dev/v1alpha1"), &json!("ProtectResult"))
    );
    answer
}

#[test]
fn everything_is_under_its_promised_name() {
    let found = protect("busy", &[]);
    assert_eq!(found["node"], "n1");
    let rule = json!({
        "rule": "mixed/cpu-slow", "metric": "cpu_total_usage", "value": 6000, "action": "squeeze",
        "strategy": "None", "phase": "triggered",
    });
    assert_eq!(found["rules"][0], rule);
    let lines = json!({
        "evict": {"cpu_total_usage": [7000]}, "throttleDown": {"cpu_total_usage": [6000]},
        "throttleUp": {}, "throttleUpSuppressed": {},
    });
    assert_eq!(found["waterlines"], lines);
    let gap = json!({
        "category": "throttleDown", "metric": "cpu_total_usage", "unit": "millicores", "used": 7500,
        "waterline": 6000, "before": 1650, "after": 870,
        "byRule": [{"rule": "mixed/cpu-slow", "waterline": 6000, "before": 1650, "after": 870}],
    });
    assert_eq!(found["gaps"][1], gap, "1.1 × 1500 less 400, 300 and 80");
    assert_eq!(found["gaps"][0]["after"], -230, "1.1 × 500 less the same");
    assert_eq!(found["mode"], json!({"throttle": "precise", "evict": "precise"}));
    assert_eq!(found["order"], json!({"cpu_total_usage": ["default/a", "default/b", "default/c"]}));
    let write = json!({
        "category": "throttleDown", "pod": "default/a", "container": "main", "quotaUs": 160_000,
        "periodUs": 100_000, "releaseMillicores": 400, "metric": "cpu_total_usage", "rule": "mixed/cpu-slow",
        "gapBefore": 1650, "gapAfter": 1250,
    });
    assert_eq!(found["writes"][0], write);
    assert_eq!(
        (&found["victims"], &found["deferred"], &found["preview"]),
        (&json!([]), &json!(false), &Value::Null)
    );
    assert_eq!(found["protected"], json!({"default/web": "NotAllowed"}));
    assert_eq!(
        found["taint"]["nodeTaints"],
        json!([{"key": "interference.crane.io", "effect": "PreferNoSchedule"}])
    );
    assert_eq!(found["taint"]["condition"]["reason"], "WaterlineExceeded");
    let entry = json!({
        "pod": "default/a", "container": "main", "originalQuotaUs": -1, "writtenQuotaUs": 160_000,
        "rules": ["mixed/cpu-slow"],
    });
    assert_eq!(found["state"]["throttled"][0], entry);
    assert_eq!(found["naive"]["podsDisturbed"], 3);
}

#[test]
fn a_victim_carries_the_eviction_to_post() {
    let found = protect("memory", &[]);
    let first = &found["victims"][0];
    assert_eq!(first["release"]["memory_total_usage"], 1_073_741_824_i64);
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "cache", "namespace": "default"},
        "deleteOptions": {"gracePeriodSeconds": 20},
    });
    assert_eq!(first["eviction"], eviction, "the action's time, not the pod's");
    assert_eq!(found["credited"][0]["reason"], "Terminating");
    assert_eq!(found["protected"]["default/log"], "DaemonSet");
}

/// The state of an answer is the state of the next question, over the whole of a bad day.
#[test]
fn the_state_goes_round() {
    let policy = scenario("protect/policy");
    let mut state = json!({});
    let mut quota = -1;
    let mut phases = Vec::new();
    for (cycle, used) in [7500, 6500, 5000, 5000, 2000, 2000, 2000].into_iter().enumerate() {
        let cores = if quota < 0 { 2.0 } else { f64::from(quota) / 100_000.0 };
        let snapshot = json!({
            "apiVersion": "loadline.dev/v1alpha1", "kind": "NodeSnapshot", "metadata": {"name": "n1"},
            "timestamp": format!("2025-01-01T00:{cycle:02}:00Z"),
            "metrics": [{"name": "cpu_total_usage", "value": used}, {"name": "memory_total_usage", "value": 1}],
            "pods": [{"name": "a", "qosClass": "BestEffort", "cpuUsage": cores,
                "containers": [{"name": "main", "cpuUsage": cores, "quotaUs": quota}]}],
            "state": state,
            "options": {"maxEvictionsPerCycle": 1, "collectIntervalSeconds": 60},
        });
        let found = ask(&format!("{policy}\n---\n{snapshot}"), &[]);
        phases.push(found["rules"][0]["phase"].as_str().unwrap().to_owned());
        if let Some(write) = found["writes"].as_array().unwrap().last() {
            quota = i32::try_from(write["quotaUs"].as_i64().unwrap()).unwrap();
        }
        state = found["state"].clone();
        // Whoever was asked to go stays in this story.
        state["evictions"] = json!([]);
    }
    assert_eq!(phases, ["triggered", "triggered", "holding", "restored", "restored", "restored", "restored"]);
    // 160 000, then 128 000; up again by a fifth: 153 600, 184 320, 221 184, 265 420.
    assert_eq!(quota, 265_420);
}

#[test]
fn a_preview_shows_the_plan_and_changes_nothing() {
    let text = [scenario("protect/policy"), scenario("protect/busy")].join("\n---\n");
    let dry = ask(&format!("{text}\noptions: {{dryRun: true}}\n"), &[]);
    assert_eq!((&dry["writes"], &dry["taint"]["present"]), (&json!([]), &json!(false)));
    assert_eq!(dry["preview"]["writes"].as_array().unwrap().len(), 3);
    assert_eq!(dry["state"]["throttled"], json!([]));
}

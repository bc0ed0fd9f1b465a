use super::*;
use serde_json::{Value, json};

fn told(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|p| format!("{:?} {p}", p.origin)).collect()
}

fn shipped() -> Value {
    let metrics =
        ["cpu", "mem"].map(|r| ["avg_5m", "max_avg_1h", "max_avg_1d"].map(|m| format!("{r}_usage_{m}")));
    let names: Vec<&String> = metrics.iter().flatten().collect();
    let each = |field: &str, values: [Value; 3]| -> Vec<Value> {
        let items = names.iter().zip(values.iter().cycle()).filter(|(_, v)| !v.is_null());
        items.map(|(name, value)| json!({"name": name, field: value})).collect()
    };
    json!({
        "apiVersion": "scheduler.policy.crane.io/v1alpha1", "kind": "DynamicSchedulerPolicy",
        "spec": {
            "syncPolicy": each("period", [json!("3m"), json!("15m"), json!("3h")]),
            "predicate": each("maxLimitPecent", [json!(0.65), json!(0.75), Value::Null]),
            "priority": each("weight", [json!(0.2), json!(0.3), json!(0.5)]),
            "hotValue": [{"timeRange": "5m", "count": 5}, {"timeRange": "1m", "count": 2}],
        },
    })
}

fn settings_of(spec: &Value) -> Value {
    json!({"apiVersion": "loadline.dev/v1alpha1", "kind": "LoadSettings", "metadata": {"name": "x"}, "spec": spec})
}

#[test]
fn the_policy_crane_ships_reads_as_our_default() {
    assert_eq!(policy(&Tree::from(&shipped())).unwrap(), Policy::default());
    let (read, warnings) = rules(Some(&Tree::from(&shipped())), None).unwrap();
    assert_eq!((read, warnings), (Rules::default(), vec![]));
    assert_eq!(rules(None, None).unwrap().0, Rules::default());
}

// D13
#[test]
fn the_limit_may_be_spelt_right_but_not_in_both_ways() {
    let mut document = shipped();
    let item = &mut document["spec"]["predicate"][1];
    *item = json!({"name": item["name"], "maxLimitPercent": 0.75});
    assert_eq!(policy(&Tree::from(&document)).unwrap(), Policy::default());
    document["spec"]["predicate"][1]["maxLimitPecent"] = json!(0.75);
    assert_eq!(
        told(&rules(Some(&Tree::from(&document)), None).unwrap_err()),
        ["Policy spec.predicate[1].maxLimitPercent: expected only one of maxLimitPecent and maxLimitPercent"]
    );
    document["spec"]["predicate"][1] = json!({"name": "cpu_usage_max_avg_1h", "maxLimitPercent": 75});
    assert_eq!(
        told(&rules(Some(&Tree::from(&document)), None).unwrap_err()),
        ["Policy spec.predicate[1].maxLimitPercent: 75 is not a ratio 0..1: did you mean 0.75?"],
        "where it was written"
    );
    document["spec"]["predicate"][1]["maxLimitPercent"] = json!(0.75);
    let upstream = settings_of(&json!({"mode": "upstream", "timeZone": "Asia/Shanghai"}));
    assert_eq!(
        told(&rules(Some(&Tree::from(&document)), Some(&Tree::from(&upstream))).unwrap().1),
        ["Policy spec.predicate[1].maxLimitPercent: crane knows maxLimitPecent only and refuses the file"]
    );
}

// Go reads nothing as an item without fields, and refuses it for a time.
#[test]
fn nothing_in_a_list_is_refused_by_default_and_taken_in_upstream_mode() {
    let upstream = settings_of(&json!({"mode": "upstream", "timeZone": "Asia/Shanghai"}));
    for list in ["syncPolicy", "predicate", "priority", "hotValue"] {
        let mut document = shipped();
        document["spec"][list].as_array_mut().unwrap().push(Value::Null);
        assert!(rules(Some(&Tree::from(&document)), None).is_err(), "{list}");
        let (_, warnings) = rules(Some(&Tree::from(&document)), Some(&Tree::from(&upstream))).unwrap();
        assert!(!warnings.is_empty(), "{list}");
    }
    for (list, field) in [("syncPolicy", "period"), ("hotValue", "timeRange")] {
        let mut document = shipped();
        document["spec"][list][0][field] = Value::Null;
        let refused = rules(Some(&Tree::from(&document)), Some(&Tree::from(&upstream))).unwrap_err();
        assert_eq!(refused[0].path, format!("spec.{list}[0].{field}"));
    }
}

// D13
#[test]
fn everything_that_does_not_read_is_told_at_once() {
    let document = json!({
        "apiVersion": "scheduler.policy.crane.io/v1", "metadata": {"name": "x"},
        "spec": {
            "syncPolicy": [
                {"name": "cpu_usage_avg_5m", "period": 180},
                {"name": "cpu_usage_avg_5m", "period": "1d"},
                {"name": 7, "period": "3m"},
                {"name": "cpu_usage_max_avg_1h", "period": null},
            ],
            "predicate": {"name": "cpu_usage_avg_5m"},
            "priority": [{"name": "cpu_usage_avg_5m", "Weight": 1, "weight": "0.2"}, "cpu"],
            "hotValue": [{"timeRange": "5m", "count": 2.5}, {"timeRange": "0s", "count": 0}],
        },
    });
    assert_eq!(
        told(&rules(Some(&Tree::from(&document)), None).unwrap_err()),
        [
            "Policy metadata: unknown field, expected apiVersion, kind, spec",
            "Policy apiVersion: expected \"scheduler.policy.crane.io/v1alpha1\", found \"scheduler.policy.crane.io/v1\"",
            "Policy kind: expected \"DynamicSchedulerPolicy\", found nothing",
            "Policy spec.syncPolicy[0].period: expected a time such as \"3m\" or \"1h30m\", found 180",
            "Policy spec.syncPolicy[1].period: expected a time such as \"3m\" or \"1h30m\", found \"1d\"",
            "Policy spec.syncPolicy[2].name: expected a string, found 7",
            "Policy spec.syncPolicy[3].period: expected a time such as \"3m\" or \"1h30m\", found nothing",
            "Policy spec.predicate: expected a list, found an object",
            "Policy spec.priority[0].Weight: unknown field, expected name, weight",
            "Policy spec.priority[0].weight: expected a number, found \"0.2\"",
            "Policy spec.priority[1]: expected an object, found \"cpu\"",
            "Policy spec.hotValue[0].count: expected a whole number, found 2.5",
            "Policy spec.syncPolicy[1].name: cpu_usage_avg_5m is listed twice, expected each metric once",
            "Policy spec.hotValue[1].timeRange: expected more than 0s, not 0s",
            "Policy spec.hotValue[1].count: expected at least 1, not 0",
        ]
    );
    for document in [json!(null), json!([]), json!("policy"), json!(3)] {
        assert!(rules(Some(&Tree::from(&document)), None).is_err(), "{document}");
        assert!(rules(None, Some(&Tree::from(&document))).is_err(), "{document}");
    }
}

#[test]
fn settings_are_read_in_full() {
    let document = settings_of(&json!({
        "mode": "default", "timeZone": "Asia/Shanghai", "targets": {"cpu": 0.8, "memory": 0.9},
        "nodes": [{
            "selector": {"matchLabels": {"pool": "big"}, "matchExpressions": [{"key": "spot", "operator": "DoesNotExist"}]},
            "targets": {"cpu": 0.7}, "thresholds": {"cpu_usage_avg_5m": 0.7},
        }],
        "missingData": "Deny", "settle": "60s", "need": "Ignore", "line": "Always",
        "exempt": {"namespaces": ["kube-system"], "podSelector": {"matchLabels": {"tier": "infra"}}},
    }));
    let read = settings(&Tree::from(&document)).unwrap();
    let share = |f| loadline_core::load::ratio::Ratio::from_f64(f);
    assert_eq!(read.time_zone.as_ref().and_then(|z| z.iana_name()), Some("Asia/Shanghai"));
    assert_eq!((read.targets.cpu, read.targets.memory), (share(0.8), share(0.9)));
    assert_eq!(read.nodes[0].selector.to_string(), "pool=big,!spot");
    assert_eq!(read.nodes[0].targets.cpu, share(0.7));
    assert_eq!(read.nodes[0].thresholds.get("cpu_usage_avg_5m").copied(), share(0.7));
    assert_eq!(read.missing, loadline_core::load::settings::Missing::Deny);
    assert_eq!(read.settle.as_secs(), 60);
    assert_eq!(read.need, loadline_core::load::settings::Scored::No);
    assert_eq!(read.line, loadline_core::load::settings::Line::Always);
    assert_eq!(read.exempt.namespaces, ["kube-system"]);
    assert_eq!(read.exempt.pod_selector.as_ref().map(ToString::to_string).as_deref(), Some("tier=infra"));
    assert_eq!(settings(&Tree::from(&settings_of(&Value::Null))).unwrap(), Settings::default());
}

#[test]
fn what_is_wrong_with_settings_is_told_at_once() {
    let document = settings_of(&json!({
        "mode": "Upstream", "timeZone": "Mars/Olympus", "targets": {"cpu": "80%", "gpu": 0.5},
        "nodes": [{"targets": {"memory": 80}}, {"selector": {"matchLabels": {"a b": "c"}}}],
        "missingData": "allow", "settle": 60, "need": "score", "line": "never", "exempt": {"namespaces": ["a", 1]}, "exempts": {},
    }));
    assert_eq!(
        told(&rules(None, Some(&Tree::from(&document))).unwrap_err()),
        [
            "Settings spec.exempts: unknown field, expected mode, timeZone, targets, nodes, missingData, settle, need, line, exempt",
            "Settings spec.mode: expected default or upstream, found \"Upstream\"",
            "Settings spec.timeZone: unknown time zone \"Mars/Olympus\", expected a name such as Asia/Shanghai",
            "Settings spec.targets.gpu: unknown field, expected cpu, memory",
            "Settings spec.targets.cpu: expected a ratio such as 0.8, found \"80%\"",
            "Settings spec.nodes[0].selector: expected a label selector, found nothing; {} matches every node",
            "Settings spec.nodes[1].selector: label key \"a b\" is not valid: the name must be letters, digits, '-', '_' or '.', with a letter or digit at both ends",
            "Settings spec.missingData: expected Estimate or Allow or Deny, found \"allow\"",
            "Settings spec.settle: expected a time such as \"3m\" or \"1h30m\", found 60",
            "Settings spec.need: expected Score or Ignore, found \"score\"",
            "Settings spec.line: expected Unlearned or Always, found \"never\"",
            "Settings spec.exempt.namespaces[1]: expected a string, found 1",
            "Settings spec.nodes[0].targets.memory: 80 is not a ratio 0..1: did you mean 0.8?",
        ]
    );
}

#[test]
fn an_empty_pod_selector_exempts_nobody() {
    let document = settings_of(&json!({"exempt": {"namespaces": [], "podSelector": {}}}));
    let (read, warnings) = rules(None, Some(&Tree::from(&document))).unwrap();
    assert_eq!(read.settings().exempt.pod_selector, None);
    assert_eq!(told(&warnings).len(), 1, "{warnings:?}");
}

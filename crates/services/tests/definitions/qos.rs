//! Lines, actions and pods: what an API server takes of them without a webhook.

use crate::edit::{Edit, edited};
use crate::verdicts;
use loadline_api::qos::types::node::METRICS;
use serde_json::{Value, json};

/// An object that is as it should be. Tests run side by side: each has its own name for it.
fn node(name: &str) -> Value {
    object(
        "NodeQOS",
        name,
        &json!({
            "selector": {"matchLabels": {"pool": "mixed"}},
            "nodeQualityProbe": {"nodeLocalGet": {}},
            "rules": [{
                "name": "cpu-line",
                "metricRule": {"name": "cpu_total_utilization", "value": 75},
                "avoidanceThreshold": 3,
                "restoreThreshold": 6,
                "actionName": "squeeze-batch",
            }],
        }),
    )
}

fn action(name: &str) -> Value {
    object(
        "AvoidanceAction",
        name,
        &json!({"coolDownSeconds": 120, "throttle": {"cpuThrottle": {"minCPURatio": 20, "stepCPURatio": 15}}}),
    )
}

fn pod(name: &str) -> Value {
    object(
        "PodQOS",
        name,
        &json!({
            "allowedActions": ["squeeze-batch"],
            "labelSelector": {"matchLabels": {"workload": "batch"}},
            "scopeSelector": {"matchExpressions": [
                {"scopeName": "Priority", "operator": "In", "values": ["-1000-0"]},
            ]},
        }),
    )
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn set(pointer: &'static str, value: Value) -> Vec<Edit> {
    vec![(pointer, Some(value))]
}

fn without(pointer: &'static str) -> Vec<Edit> {
    vec![(pointer, None)]
}

/// Asks for each case whether the changed object can be made, and whether the good one can be changed into it.
fn check(base: &Value, cases: Vec<(&str, Vec<Edit>, &str)>) {
    for (reason, edits, expected) in cases {
        let object = edited(base, &edits);
        let (status, words) = verdicts(|server| {
            let verdict = server.create(&object);
            let path = format!("{reason}: {}", verdict.1);
            if verdict.0 == 201 {
                // Out of the way of the next.
                server.remove(&object);
            }
            assert!(verdict.0 == 201 || verdict.0 == 422, "{path}");
            verdict
        });
        assert_eq!(status == 201, expected.is_empty(), "making {reason}: {words}");
        assert!(words.contains(expected), "making {reason}: expected {expected:?} in {words:?}");
        if object["metadata"]["name"] != base["metadata"]["name"] {
            continue; // Nobody can change a name.
        }
        let (status, words) = verdicts(|server| server.change(base, |taken| edited(taken, &edits)));
        assert_eq!(status == 200, expected.is_empty(), "changing {reason}: {words}");
        assert!(words.contains(expected), "changing {reason}: expected {expected:?} in {words:?}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_node_qos_is_what_it_must_be() {
    let http = |edits: Value| {
        let mut get = json!({"path": "/metrics", "port": 8080});
        for (name, value) in edits.as_object().expect("an object") {
            get[name] = value.clone();
        }
        set("/spec/nodeQualityProbe", json!({"httpGet": get}))
    };
    let selector = |value: Value| set("/spec/selector", value);
    let asked = |key: &str, operator: &str, values: Value| {
        set(
            "/spec/selector",
            json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}),
        )
    };
    let long = |count: usize| "a".repeat(count);
    let taken = "";
    check(
        &node("line"),
        vec![
            ("it as it is", vec![], taken),
            // The name is a DNS label that starts with a letter.
            ("a name of 63 characters", set("/metadata/name", json!(long(63))), taken),
            ("a name of 64", set("/metadata/name", json!(long(64))), "DNS label that starts with a letter"),
            ("a name that starts with a digit", set("/metadata/name", json!("9a")), "metadata.name"),
            ("a name with a dot", set("/metadata/name", json!("a.b")), "metadata.name"),
            // The selector is one.
            ("no selector", without("/spec/selector"), taken),
            ("an empty selector", selector(json!({})), taken),
            ("a label with a prefix", selector(json!({"matchLabels": {"example.com/team": "a"}})), taken),
            ("a label without a value", selector(json!({"matchLabels": {"team": ""}})), taken),
            (
                "a label that is none",
                selector(json!({"matchLabels": {"-team": "a"}})),
                "keys must be those of labels",
            ),
            (
                "a name after the prefix that is too long",
                selector(json!({"matchLabels": {format!("a/{}", long(64)): "a"}})),
                "keys must be",
            ),
            (
                "a value that is none",
                selector(json!({"matchLabels": {"team": "a b"}})),
                "spec.selector.matchLabels.team",
            ),
            (
                "a value of 64 characters",
                selector(json!({"matchLabels": {"team": long(64)}})),
                "may not be more than 63",
            ),
            ("one of some values", asked("team", "In", json!(["a", ""])), taken),
            ("one of no values", asked("team", "In", json!([])), "In and NotIn need values"),
            ("any value", asked("team", "Exists", json!([])), taken),
            (
                "any value, with values",
                asked("team", "Exists", json!(["a"])),
                "Exists and DoesNotExist have none",
            ),
            ("no value", asked("example.com/team", "DoesNotExist", json!([])), taken),
            ("an unknown comparison", asked("team", "Near", json!(["a"])), "Unsupported value: \"Near\""),
            ("a compared label that is none", asked("team!", "Exists", json!([])), "matchExpressions[0].key"),
            (
                "a prefix of 254 characters",
                asked(&format!("{}/a", long(254)), "Exists", json!([])),
                "at most 253",
            ),
            (
                "a compared value that is none",
                asked("team", "In", json!(["a b"])),
                "matchExpressions[0].values[0]",
            ),
            // One source of figures.
            ("no probe", without("/spec/nodeQualityProbe"), "spec.nodeQualityProbe: Required value"),
            (
                "a probe of nothing",
                set("/spec/nodeQualityProbe", json!({})),
                "exactly one of httpGet and nodeLocalGet",
            ),
            (
                "a probe of both",
                set("/spec/nodeQualityProbe/httpGet", json!({"path": "/", "port": 80})),
                "exactly one of httpGet and nodeLocalGet",
            ),
            // A question over HTTP.
            ("http", http(json!({})), taken),
            (
                "http without a path",
                http(json!({"path": ""})),
                "spec.nodeQualityProbe.httpGet.path: Required value",
            ),
            ("http without a port", http(json!({"port": null})), "httpGet.port"),
            ("port 0", http(json!({"port": 0})), "greater than or equal to 1"),
            ("port 65535", http(json!({"port": 65535})), taken),
            ("port 65536", http(json!({"port": 65536})), "less than or equal to 65535"),
            ("a named port", http(json!({"port": "metrics-2"})), taken),
            ("a port named after a number", http(json!({"port": "8-9-a0"})), taken),
            ("a port in capitals", http(json!({"port": "Metrics"})), "httpGet.port: Invalid value"),
            ("a port without a letter", http(json!({"port": "8080"})), "httpGet.port: Invalid value"),
            ("a port with two dashes", http(json!({"port": "a--b"})), "httpGet.port: Invalid value"),
            ("a port of 16 characters", http(json!({"port": long(16)})), "may not be more than 15"),
            ("https", http(json!({"scheme": "HTTPS"})), taken),
            ("another scheme", http(json!({"scheme": "FTP"})), "Unsupported value: \"FTP\""),
            ("a header", http(json!({"httpHeaders": [{"name": "X-Team", "value": ""}]})), taken),
            (
                "a header that is none",
                http(json!({"httpHeaders": [{"name": "X Team", "value": ""}]})),
                "httpHeaders[0].name",
            ),
            // At least one rule.
            ("no rules", without("/spec/rules"), "spec.rules: Required value"),
            ("an empty list of rules", set("/spec/rules", json!([])), "should have at least 1 items"),
            // Rules have names.
            ("a rule without a name", without("/spec/rules/0/name"), "spec.rules[0].name: Required value"),
            ("a rule with an empty name", set("/spec/rules/0/name", json!("")), "spec.rules[0].name"),
            (
                "a rule with a name that only crane's webhook refuses",
                set("/spec/rules/0/name", json!("ext_cpu_total_distribute")),
                taken,
            ),
            ("a rule with a name in capitals", set("/spec/rules/0/name", json!("CPU.line")), taken),
            (
                "a rule with a name that is no label",
                set("/spec/rules/0/name", json!("cpu/line")),
                "spec.rules[0].name",
            ),
            (
                "a rule with a name of 64",
                set("/spec/rules/0/name", json!(long(64))),
                "spec.rules[0].name: Too long",
            ),
            (
                "two rules with one name",
                set("/spec/rules/-", node("line")["spec"]["rules"][0].clone()),
                "spec.rules[1]: Duplicate value",
            ),
            // Rules name actions.
            (
                "a rule without an action",
                without("/spec/rules/0/actionName"),
                "spec.rules[0].actionName: Required value",
            ),
            (
                "a rule with an empty action",
                set("/spec/rules/0/actionName", json!("")),
                "spec.rules[0].actionName",
            ),
            (
                "an action that is no label",
                set("/spec/rules/0/actionName", json!("a_b")),
                "spec.rules[0].actionName",
            ),
            // Thresholds.
            (
                "no thresholds",
                vec![("/spec/rules/0/avoidanceThreshold", None), ("/spec/rules/0/restoreThreshold", None)],
                taken,
            ),
            (
                "never above the line",
                set("/spec/rules/0/avoidanceThreshold", json!(0)),
                "greater than or equal to 1",
            ),
            (
                "less often than never",
                set("/spec/rules/0/avoidanceThreshold", json!(-1)),
                "greater than or equal to 1",
            ),
            (
                "never below the line",
                set("/spec/rules/0/restoreThreshold", json!(0)),
                "greater than or equal to 1",
            ),
            (
                "less often below than never",
                set("/spec/rules/0/restoreThreshold", json!(-1)),
                "greater than or equal to 1",
            ),
            // The figure and the line.
            ("no line", without("/spec/rules/0/metricRule"), "spec.rules[0].metricRule: Required value"),
            (
                "a line of nothing",
                without("/spec/rules/0/metricRule/name"),
                "metricRule.name: Required value",
            ),
            ("a line of an empty name", set("/spec/rules/0/metricRule/name", json!("")), "metricRule.name"),
            (
                "a figure nobody collects",
                set("/spec/rules/0/metricRule/name", json!("cpu")),
                "must be a figure that is collected",
            ),
            (
                "a figure somebody else may have",
                [http(json!({})), set("/spec/rules/0/metricRule/name", json!("requests_per_second"))]
                    .concat(),
                taken,
            ),
            (
                "a disk",
                set("/spec/rules/0/metricRule/selector", json!({"matchLabels": {"diskName": "sda"}})),
                taken,
            ),
            (
                "a disk that is no label",
                set("/spec/rules/0/metricRule/selector", json!({"matchLabels": {"disk name": "sda"}})),
                "keys must be",
            ),
            ("no value", without("/spec/rules/0/metricRule/value"), "metricRule.value: Required value"),
            ("nothing", set("/spec/rules/0/metricRule/value", json!(0)), "greater than or equal to 1"),
            (
                "nothing, as text",
                set("/spec/rules/0/metricRule/value", json!("0.0")),
                "metricRule.value: Invalid value",
            ),
            (
                "less than nothing",
                set("/spec/rules/0/metricRule/value", json!("-5")),
                "metricRule.value: Invalid value",
            ),
            (
                "nothing, with a suffix",
                set("/spec/rules/0/metricRule/value", json!("0e5")),
                "metricRule.value: Invalid value",
            ),
            ("a little", set("/spec/rules/0/metricRule/value", json!("0.5")), taken),
            ("a lot", set("/spec/rules/0/metricRule/value", json!("64Gi")), taken),
            ("no amount at all", set("/spec/rules/0/metricRule/value", json!("much")), "metricRule.value"),
            // The rest.
            ("only a preview", set("/spec/rules/0/strategy", json!("Preview")), taken),
            (
                "another strategy",
                set("/spec/rules/0/strategy", json!("Maybe")),
                "Unsupported value: \"Maybe\"",
            ),
            (
                "limits of the network",
                set("/spec/netLimits", json!({"rxBpsMin": 1, "rxBpsMax": 2, "txBpsMin": 1, "txBpsMax": 2})),
                taken,
            ),
            (
                "half of the limits",
                set("/spec/netLimits", json!({"rxBpsMin": 1, "rxBpsMax": 2})),
                "spec.netLimits.txBpsMax: Required value",
            ),
            (
                "everything else",
                vec![
                    (
                        "/spec/elasticCpuLimit",
                        Some(json!({
                            "elasticNodeCpuLimit": {"percent": 50},
                            "elasticCoreCpuLimit": [{"coreNum": "0-3", "percent": 40}],
                            "elasticCoreCpuLimitPeriod": [{"offlineCpuLimit": "0 8 * * *", "coreNum": "0", "percent": 10}],
                            "elasticCpuAvoidance": {"enable": true},
                        })),
                    ),
                    (
                        "/spec/memLimit",
                        Some(json!({"pageCacheLimitGlobal": true, "pageCacheLimitRetryTimes": 3})),
                    ),
                    ("/spec/memoryCompression", Some(json!({"enable": true}))),
                    ("/spec/nodeQualityProbe/timeoutSeconds", Some(json!(10))),
                    ("/spec/nodeQualityProbe/nodeLocalGet/localCacheTTLSeconds", Some(json!(30))),
                ],
                taken,
            ),
            ("no spec", without("/spec"), "spec: Required value"),
        ],
    );
}

#[test]
fn every_figure_that_is_collected_can_be_named() {
    let cases = METRICS.map(|name| (name, set("/spec/rules/0/metricRule/name", json!(name)), ""));
    check(&node("figure"), cases.to_vec());
}

#[test]
fn an_avoidance_action_is_what_it_must_be() {
    let taken = "";
    let ratio = |name: &'static str, value: i32| set(name, json!(value));
    let (min, step) = ("/spec/throttle/cpuThrottle/minCPURatio", "/spec/throttle/cpuThrottle/stepCPURatio");
    let grace = |seconds: i32| set("/spec/eviction", json!({"terminationGracePeriodSeconds": seconds}));
    check(
        &action("step"),
        vec![
            ("it as it is", vec![], taken),
            ("nothing but keeping pods away", set("/spec", json!({})), taken),
            ("no spec", without("/spec"), "spec: Required value"),
            ("a name that starts with a digit", set("/metadata/name", json!("9a")), taken),
            ("a name with a dot", set("/metadata/name", json!("a.b")), "must be a DNS label"),
            ("a name of 64 characters", set("/metadata/name", json!("a".repeat(64))), "must be a DNS label"),
            ("no cooling down", without("/spec/coolDownSeconds"), taken),
            (
                "cooling down for no time",
                set("/spec/coolDownSeconds", json!(0)),
                "greater than or equal to 1",
            ),
            ("cooling down before", set("/spec/coolDownSeconds", json!(-1)), "greater than or equal to 1"),
            ("nothing left", ratio(min, 0), taken),
            ("less than nothing left", ratio(min, -1), "greater than or equal to 0"),
            ("all left", ratio(min, 100), taken),
            ("more than all left", ratio(min, 101), "less than or equal to 100"),
            ("no step", ratio(step, 0), taken),
            ("a step back", ratio(step, -1), "greater than or equal to 0"),
            ("one step", ratio(step, 100), taken),
            ("more than one step", ratio(step, 101), "less than or equal to 100"),
            ("ratios left open", set("/spec/throttle/cpuThrottle", json!({})), taken),
            ("page cache", set("/spec/throttle/memoryThrottle", json!({"forceGC": true})), taken),
            ("evicting as the pod says", set("/spec/eviction", json!({})), taken),
            ("evicting at once", grace(0), taken),
            ("evicting before", grace(-1), "greater than or equal to 0"),
            ("a long description", set("/spec/description", json!("d".repeat(1024))), taken),
            ("a novel", set("/spec/description", json!("d".repeat(1025))), "spec.description: Too long"),
        ],
    );
}

#[test]
fn absent_ratios_stay_absent_and_the_rest_gets_its_defaults() {
    // An absent ratio means 10, a ratio of 0 means 0: a default in the schema would make them one.
    for server in crate::servers::both() {
        let action = edited(&action("absent"), &set("/spec", json!({"throttle": {"cpuThrottle": {}}})));
        let mut stored = server.stored(&action);
        assert_eq!(
            stored["spec"],
            json!({"coolDownSeconds": 300, "throttle": {"cpuThrottle": {}}}),
            "{}",
            server.name()
        );
        let edits = [
            ("/spec/rules/0/avoidanceThreshold", None),
            ("/spec/rules/0/restoreThreshold", None),
            ("/spec/nodeQualityProbe", Some(json!({"nodeLocalGet": {}}))),
        ];
        stored = server.stored(&edited(&node("absent"), &edits));
        let rule = &stored["spec"]["rules"][0];
        assert_eq!((&rule["avoidanceThreshold"], &rule["restoreThreshold"]), (&json!(1), &json!(1)));
        assert_eq!(rule["strategy"], "None");
        assert_eq!(stored["spec"]["nodeQualityProbe"]["nodeLocalGet"]["localCacheTTLSeconds"], 60);
    }
}

#[test]
fn a_pod_qos_is_what_it_must_be() {
    let taken = "";
    let scope = |scope: &str, operator: &str, values: Value| {
        let expression = json!({"scopeName": scope, "operator": operator, "values": values});
        set("/spec/scopeSelector", json!({"matchExpressions": [expression]}))
    };
    check(
        &pod("batch"),
        vec![
            ("it as it is", vec![], taken),
            ("nothing", set("/spec", json!({})), taken),
            ("no spec", without("/spec"), "spec: Required value"),
            ("no scopes", set("/spec/scopeSelector", json!({})), taken),
            ("a name with a dot", set("/metadata/name", json!("a.b")), taken),
            ("namespaces", scope("Namespace", "NotIn", json!(["kube-system", "default"])), taken),
            ("classes", scope("QOSClass", "In", json!(["BestEffort"])), taken),
            ("priorities", scope("Priority", "In", json!(["0", "-5", "-200--50", "1-1"])), taken),
            ("another scope", scope("Age", "In", json!(["1"])), "Unsupported value: \"Age\""),
            ("another comparison", scope("Priority", "Exists", json!([])), "Unsupported value: \"Exists\""),
            (
                "a priority by name",
                scope("Priority", "In", json!(["high"])),
                "priorities must be whole numbers",
            ),
            ("half a range", scope("Priority", "In", json!(["5-"])), "priorities must be whole numbers"),
            (
                "a range the wrong way round",
                scope("Priority", "In", json!(["5-1"])),
                "must begin with the lower one",
            ),
            (
                "labels that are none",
                set("/spec/labelSelector", json!({"matchLabels": {"a b": "c"}})),
                "keys must be",
            ),
            (
                "what pods get of each resource",
                set(
                    "/spec/resourceQOS",
                    json!({
                        "cpuQOS": {
                            "cpuPriority": 7, "containerPriority": {"main": 3}, "cpuBurst": {"burstQuota": "1"},
                            "htIsolation": {"enable": true}, "cpuSet": {"cpuSet": "exclusive"},
                            "rdt": {"l3": {"0": "f"}, "mb": {"0": "50"}}, "containerRdt": {"main": {"l3": {"0": "f"}}},
                        },
                        "memoryQOS": {
                            "memPriority": 0, "memAsyncReclaim": {"asyncRatio": 80, "asyncDistanceFactor": 2},
                            "memWatermark": {"watermarkRatio": 1},
                            "memPageCacheLimit": {"pageCacheMaxRatio": 50, "pageCacheReclaimRatio": 5},
                            "memoryCompression": {"enable": true, "compressionLevel": 4, "preference": "FileOnly", "oversold": "None"},
                        },
                        "netIOQOS": {
                            "netIOPriority": 1, "containersPriority": {"main": 2}, "netIOLimits": {"rxBps": 1, "txBps": 2},
                            "devNetIOLimits": {"eth0": {"rxBps": 1, "txBps": 2}}, "whitelistPorts": {"lports": "80", "rports": "443"},
                        },
                        "diskIOQOS": {
                            "diskIOWeight": {"weight": 100},
                            "diskIOLimit": {"readIOps": 1, "writeIOps": 2, "readBps": 3, "writeBps": 4},
                        },
                    }),
                ),
                taken,
            ),
            (
                "a low priority",
                set("/spec/resourceQOS", json!({"cpuQOS": {"cpuPriority": 8}})),
                "less than or equal to 7",
            ),
            (
                "half of the limits",
                set("/spec/resourceQOS", json!({"netIOQOS": {"netIOLimits": {"rxBps": 1}}})),
                "txBps: Required value",
            ),
            (
                "too much compression",
                set(
                    "/spec/resourceQOS",
                    json!({"memoryQOS": {"memoryCompression": {"compressionLevel": 5}}}),
                ),
                "less than or equal to 4",
            ),
            (
                "another set of processors",
                set("/spec/resourceQOS", json!({"cpuQOS": {"cpuSet": {"cpuSet": "all"}}})),
                "Unsupported value: \"all\"",
            ),
        ],
    );
}

//! Measurements of nodes and pods.

use jiff::SignedDuration;
use loadline_api::json::Tree;
use loadline_api::metrics;
use loadline_core::load::Load;
use loadline_core::object::Key;
use serde_json::{Value, json};

const KI: i64 = 1 << 10;

fn node() -> Value {
    json!({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics",
        "metadata": {"name": "n1", "creationTimestamp": "2025-01-01T00:01:00Z"},
        "timestamp": "2025-01-01T00:00:45Z", "window": "15.236s",
        "usage": {"cpu": "413924881n", "memory": "3187028Ki"}})
}

#[test]
fn a_node_is_read_in_every_version_of_the_api() {
    for version in ["metrics.k8s.io/v1beta1", "metrics.k8s.io/v1"] {
        let mut node = node();
        node["apiVersion"] = json!(version);
        let (name, sample) = metrics::node(&Tree::from(&node)).unwrap();
        assert_eq!(name, "n1");
        assert_eq!(sample.at, "2025-01-01T00:00:45Z".parse().unwrap());
        assert_eq!(sample.window, SignedDuration::from_millis(15_236));
        assert_eq!(sample.usage, Load::new(413_924_881, 3_187_028 * KI));
    }
}

#[test]
fn the_containers_of_a_pod_add_up() {
    let pod = |containers: Value| {
        json!({"metadata": {"namespace": "shop", "name": "web-1"}, "timestamp": "2025-01-01T00:00:45Z",
            "window": "1m0s", "containers": containers})
    };
    let two = json!([{"name": "a", "usage": {"cpu": "250m", "memory": "1Ki"}},
        {"name": "b", "usage": {"cpu": "1n", "memory": "1"}}]);
    let (key, sample) = metrics::pod(&Tree::from(&pod(two))).unwrap();
    assert_eq!(key, Key::new("shop", "web-1"));
    assert_eq!(sample.usage, Load::new(250_000_001, KI + 1));
    assert_eq!(sample.window, SignedDuration::from_mins(1));
    for (containers, why) in [
        (json!([]), "containers: must not be empty"),
        (json!(null), "containers: must not be empty"),
        (json!([{"name": "a", "usage": {"cpu": "1"}}]), "containers[0].usage.memory: expected a quantity"),
    ] {
        let error = metrics::pod(&Tree::from(&pod(containers))).unwrap_err().to_string();
        assert!(error.starts_with(&format!("PodMetrics shop/web-1: {why}")), "{error}");
    }
}

// D5
#[test]
fn a_figure_that_does_not_read_is_never_a_zero() {
    for (path, bad, why) in [
        ("/usage/cpu", json!("NaN"), "usage.cpu: quantity \"NaN\" must be a number"),
        ("/usage/cpu", json!("-1"), "usage.cpu: quantity -1 must not be negative"),
        ("/usage/cpu", json!(null), "usage.cpu: expected a quantity, found nothing"),
        ("/usage/cpu", json!("+Inf"), "usage.cpu: quantity \"+Inf\" must be a number"),
        ("/usage/memory", json!("3GiB"), "usage.memory: quantity \"3GiB\""),
        ("/usage/memory", json!(""), "usage.memory: quantity \"\""),
        (
            "/usage",
            json!(null),
            "usage.cpu: expected a quantity, found nothing; usage.memory: expected a quantity",
        ),
        ("/usage", json!([]), "usage: expected an object, found a list"),
        ("/timestamp", json!(null), "timestamp: must not be empty"),
        ("/timestamp", json!("now"), "timestamp: expected a time such as"),
        ("/window", json!(null), "window: expected a duration such as 15.236s"),
        ("/window", json!("15"), "window: expected a duration such as 15.236s"),
        ("/window", json!("-15s"), "window: expected a duration such as 15.236s"),
        ("/window", json!(15), "window: expected a string, found a number"),
    ] {
        let mut node = node();
        *node.pointer_mut(path).expect("a field of the node") = bad;
        let error = metrics::node(&Tree::from(&node)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("NodeMetrics n1: {why}")), "{error}");
    }
}

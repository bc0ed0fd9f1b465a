//! What is written on nodes, in upstream mode and by default: hot values, and loads over crane's limits.

use super::*;
use crate::load::annotation::HOT_VALUE;
use crate::load::settings::Mode;

// Crane does not know before its annotator has counted.
#[test]
fn in_a_sequence_decisions_heat_a_node_in_upstream_mode_too() {
    let settings = Settings { mode: Mode::Upstream, ..Settings::default() };
    let mut cluster = cluster(settings);
    cluster.set_node(&big("n1").annotation(HOT_VALUE, "2.5,2023-11-14T22:13:20Z").facts());
    let id = cluster.live.id("n1").unwrap();
    assert_eq!(cluster.load(id).unwrap().hot, Some(Hot::Float(2.5)));
    for i in 0..2 {
        place(&mut cluster, pod(&format!("p{i}")).cpu("10m").memory("10Mi")).unwrap();
    }
    assert_eq!(cluster.load(id).unwrap().hot, Some(Hot::Float(3.5)), "and 2 ÷ 2 in a minute");
}

#[test]
fn a_hot_value_that_does_not_read_is_told_and_not_taken_for_none() {
    let stamp = "2023-11-14T22:13:20Z";
    for (mode, text, hot, penalty, told) in [
        (Mode::Default, format!("3,{stamp}"), Some(Hot::Count(3)), 30, None),
        (Mode::Default, format!("1.57,{stamp}"), Some(Hot::exact(Ratio::from_f64(1.57).unwrap())), 15, None),
        (Mode::Default, "0,2023-11-14T22:00:00Z".to_owned(), Some(Hot::Count(0)), 0, None),
        (Mode::Default, format!("hot,{stamp}"), None, 0, Some("expected a number and a time")),
        (Mode::Default, format!("NaN,{stamp}"), None, 0, Some("expected a number and a time")),
        (Mode::Default, "3".to_owned(), None, 0, Some("expected a number and a time")),
        (Mode::Default, format!("-1,{stamp}"), None, 0, Some("expected 0 or more")),
        (Mode::Default, "3,2023-11-15T22:13:20Z".to_owned(), None, 0, Some("its time is yet to come")),
        (Mode::Upstream, format!("hot,{stamp}"), None, 0, Some("expected a number and a time")),
        (
            Mode::Upstream,
            format!("+Inf,{stamp}"),
            Some(Hot::Float(f64::INFINITY)),
            i64::MIN,
            Some("as crane"),
        ),
    ] {
        let mut cluster = cluster(Settings { mode, ..settings(0.9) });
        cluster.set_node(&big("n1").annotation(HOT_VALUE, &text).facts());
        let view = cluster.view(&pod("a").cpu("10m").memory("10Mi").facts());
        let report = cluster.decide(&view).report().nodes.remove(0);
        assert_eq!((report.hot, report.load_score.unwrap().hot_penalty), (hot, penalty), "{text}");
        let warning = report.warnings.iter().find(|warning| warning.contains(HOT_VALUE));
        assert_eq!(warning.is_some(), told.is_some(), "{text}: {warning:?}");
        assert!(told.is_none_or(|told| warning.unwrap().contains(told)), "{text}: {warning:?}");
    }
}

#[test]
fn in_upstream_mode_no_node_will_do_in_cranes_words() {
    let settings = Settings { mode: Mode::Upstream, ..Settings::default() };
    let mut cluster = cluster(settings);
    for (name, metric) in [("n1", "mem_usage_max_avg_1h"), ("n2", "cpu_usage_avg_5m")] {
        let node = big(name).annotation(metric, "0.9,2023-11-14T22:13:20Z");
        cluster.set_node(&node.annotation("mem_usage_avg_5m", "0.1,2023-11-14T22:13:20Z").facts());
    }
    let view = cluster.view(&pod("a").cpu("10m").memory("10Mi").facts());
    let mut decided = cluster.decide(&view);
    assert_eq!(
        decided.message(),
        "0/2 nodes are available: 1 Load[cpu_usage_avg_5m] of node[n2] is too high, 1 Load[mem_usage_max_avg_1h] of node[n1] is too high."
    );
    let told = decided.report().nodes[0].reasons[0].to_string();
    assert_eq!(told, "Load[mem_usage_max_avg_1h] of node[n1] is too high");
}

use super::taint::{Compare, Effect, Stay, discouraging, repelling, stay};
use super::*;

fn taint(key: &str, effect: Effect) -> Taint {
    Taint { key: key.into(), value: String::new(), effect, time_added: None }
}

fn consent(key: &str, seconds: Option<i64>) -> Toleration {
    let json = format!(r#"{{"key":"{key}","operator":"Exists"}}"#);
    Toleration { toleration_seconds: seconds, ..serde_json::from_str(&json).unwrap() }
}

#[test]
fn only_hard_effects_repel_and_soft_ones_are_counted() {
    let taints = [
        taint("soft", Effect::PreferNoSchedule),
        taint("a", Effect::NoSchedule),
        taint("b", Effect::NoExecute),
    ];
    let asked = |c: &[Toleration]| repelling(&taints, c, Compare::Off).map(ToString::to_string);
    assert_eq!(asked(&[]), Some("a:NoSchedule".into()));
    assert_eq!(asked(&[consent("a", None)]), Some("b:NoExecute".into()));
    assert_eq!(
        asked(&[consent("a", None), consent("b", Some(0))]),
        None,
        "seconds do not matter for placing"
    );
    assert_eq!(discouraging(&taints, &[consent("a", None)], Compare::Off), 1);
    assert_eq!(discouraging(&taints, &[consent("", None)], Compare::Off), 0);
}

#[test]
fn a_running_pod_stays_for_the_shortest_time_any_taint_allows() {
    let taints =
        [taint("a", Effect::NoExecute), taint("b", Effect::NoExecute), taint("c", Effect::NoSchedule)];
    for (why, given, want) in [
        ("one taint is not tolerated", vec![consent("a", None)], Stay::No),
        ("both for good", vec![consent("a", None), consent("b", None)], Stay::Forever),
        (
            "one for good, one for a while",
            vec![consent("a", None), consent("b", Some(30))],
            Stay::Seconds(30),
        ),
        ("the shorter while", vec![consent("a", Some(60)), consent("b", Some(30))], Stay::Seconds(30)),
        ("no time at all", vec![consent("a", Some(0)), consent("b", None)], Stay::No),
        ("the first that fits decides", vec![consent("", Some(5)), consent("a", None)], Stay::Seconds(5)),
    ] {
        assert_eq!(stay(&taints, &given, Compare::Off), want, "{why}");
    }
    assert_eq!(stay(&[], &[], Compare::Off), Stay::Forever, "no taint, no hurry");
}

//! `RebalanceSettings`: how much may be moved, and who is left alone.

use super::SETTINGS;
use crate::duration;
use crate::json::Tree;
use crate::policy::fields::{Fields, Notes};
use crate::policy::settings::{exempt, targets};
use jiff::SignedDuration;
use loadline_core::load::policy::{Origin, Problem};
use loadline_core::rebalance::{Closing, Landing, Level, Settings};

const SPEC: &[&str] = &[
    "enabled",
    "targets",
    "slack",
    "margin",
    "overFor",
    "highFor",
    "dwell",
    "warmUp",
    "worth",
    "perNode",
    "perWorkload",
    "perHour",
    "exempt",
    "landing",
    "level",
    "closing",
];

/// Reads settings; what is not said is as by default.
///
/// # Errors
/// Everything that cannot be read, or cannot be meant.
pub fn settings(document: &Tree<'_>) -> Result<Settings, Vec<Problem>> {
    let notes = Notes::new(Origin::Settings);
    let root = Fields::root(document, &notes, &["apiVersion", "kind", "metadata", "spec"]);
    root.is(SETTINGS);
    root.open("metadata");
    let spec = root.object("spec", SPEC);
    let settings = read(&spec);
    for absurd in settings.check() {
        spec.wrong(absurd.field, &absurd.problem);
    }
    drop((root, spec));
    let (problems, _) = notes.take();
    if problems.is_empty() { Ok(settings) } else { Err(problems) }
}

fn read(spec: &Fields<'_>) -> Settings {
    let usual = Settings::default();
    // What cannot be read is told once, and not also for what it would come to.
    let time = |name: &str, usual: SignedDuration| {
        let text = spec.value(name).and_then(Tree::as_str);
        text.and_then(duration::parse).unwrap_or_else(|| {
            spec.duration(name);
            usual
        })
    };
    let count = |name: &str, usual: u32| {
        if !spec.has(name) {
            return usual;
        }
        u32::try_from(spec.whole(name)).unwrap_or_else(|_| {
            spec.wrong(name, "expected a number from 0 on");
            usual
        })
    };
    Settings {
        enabled: spec.flag("enabled").unwrap_or(usual.enabled),
        targets: targets(spec),
        slack: spec.ratio("slack").unwrap_or(usual.slack),
        margin: spec.ratio("margin").unwrap_or(usual.margin),
        over_for: time("overFor", usual.over_for),
        high_for: time("highFor", usual.high_for),
        dwell: time("dwell", usual.dwell),
        warm_up: time("warmUp", usual.warm_up),
        worth: spec.ratio("worth").unwrap_or(usual.worth),
        per_node: count("perNode", usual.per_node),
        per_workload: count("perWorkload", usual.per_workload),
        per_hour: count("perHour", usual.per_hour),
        exempt: if spec.has("exempt") { exempt(spec) } else { usual.exempt },
        landing: spec
            .choice("landing", &[("Scheduled", Landing::Scheduled), ("Planned", Landing::Planned)])
            .unwrap_or_default(),
        level: spec.choice("level", &[("Now", Level::Now), ("Hour", Level::Hour)]).unwrap_or_default(),
        closing: spec
            .choice("closing", &[("Mark", Closing::Mark), ("Taint", Closing::Taint)])
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_core::load::ratio::Ratio;
    use serde_json::json;

    fn read_of(spec: &serde_json::Value) -> Result<Settings, Vec<String>> {
        let document = json!({"apiVersion": SETTINGS.0, "kind": SETTINGS.1, "spec": spec});
        settings(&Tree::from(&document))
            .map_err(|all| all.iter().map(|one| format!("{}: {}", one.path, one.message)).collect())
    }

    #[test]
    fn what_is_not_said_is_as_by_default() {
        assert_eq!(read_of(&json!({})), Ok(Settings::default()));
        let given = json!({"enabled": false, "slack": 0, "margin": 0.1, "overFor": "10m", "perHour": 5, "targets": {"cpu": 0.5},
            "exempt": {"namespaces": ["db"]}, "landing": "Scheduled"});
        let read = read_of(&given).unwrap();
        assert!(!read.enabled);
        assert_eq!((read.slack, read.margin), (Ratio::ZERO, Ratio::from_f64(0.1).unwrap()));
        assert_eq!(read.over_for, SignedDuration::from_mins(10));
        assert_eq!((read.per_hour, read.per_node), (5, Settings::default().per_node));
        assert_eq!(read.exempt.namespaces, ["db"]);
        assert_eq!(read.landing, Landing::Scheduled);
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let wrong = json!({"margin": 2, "perHour": -1, "overFor": "soon", "perNode": 99_999_999, "speed": 1});
        let told = read_of(&wrong).unwrap_err();
        for path in ["spec.margin: ", "spec.perHour: ", "spec.overFor: ", "spec.perNode: ", "spec.speed: "] {
            assert_eq!(told.iter().filter(|one| one.starts_with(path)).count(), 1, "{path} in {told:?}");
        }
        assert_eq!(told.len(), 5, "{told:?}");
    }
}

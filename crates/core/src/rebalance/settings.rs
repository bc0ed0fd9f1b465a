//! How much may be moved, how sure must one be, and who is left alone?

use crate::load::ratio::Ratio;
use crate::load::settings::Exempt;
use crate::load::{Both, Metered};
use jiff::SignedDuration;
use thiserror::Error;

/// Where a pod that is evicted lands. Whoever looks at requests alone expects nothing: there, both are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Landing {
    /// Where another scheduler puts it that goes by the same rules, which expects it to use what was recommended, or what it asks for.
    Scheduled,
    /// Where the plan says: our scheduler and extender read what was moved, and expect what takes its place to use what that was
    /// measured to use.
    #[default]
    Planned,
}

/// What keeps new pods off a node that gave some up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closing {
    /// A cooling mark, which load rules look at.
    #[default]
    Mark,
    /// A taint, which every scheduler looks at.
    Taint,
}

/// How much a node that is to take a pod is taken to use without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// What it is expected to use now: measured, and what is on its way there or gone already.
    #[default]
    Now,
    /// That, or its highest five-minute mean of the last hour if it is more.
    Hour,
}

/// What a plan goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Is anything to be moved at all?
    pub enabled: bool,
    /// How full nodes may be, in place of what the load rules say; `None` leaves it to them.
    pub targets: Both<Option<Ratio>>,
    /// How far above the line of the load rules the CPU of a node may be, as a share of what it has. Pods are placed up to that line, so
    /// nodes are often a little over it; sending pods away for that stirs much and gains nothing (`docs/quality.md`). Memory has none: a
    /// node that runs out of it kills.
    pub slack: Ratio,
    /// How far below its line a node must stay with what it is sent, as a share of what it has.
    pub margin: Ratio,
    /// How long a node must have been over its line, without a break.
    pub over_for: SignedDuration,
    /// How far back the highest use of a pod is looked for.
    pub high_for: SignedDuration,
    /// How long a pod stays where it was moved to, and two nodes remember what went between them.
    pub dwell: SignedDuration,
    /// How long a pod must have been running.
    pub warm_up: SignedDuration,
    /// Which share of the gap a pod must use to be worth moving.
    pub worth: Ratio,
    /// Moves from one node within an hour.
    pub per_node: u32,
    /// Moves of pods of one workload within an hour.
    pub per_workload: u32,
    /// Moves within an hour.
    pub per_hour: u32,
    /// Who is left alone.
    pub exempt: Exempt,
    pub landing: Landing,
    pub level: Level,
    pub closing: Closing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            targets: Both::default(),
            slack: Ratio::from_nano(100_000_000),
            margin: Ratio::from_nano(50_000_000),
            over_for: SignedDuration::from_mins(5),
            high_for: SignedDuration::from_hours(2),
            dwell: SignedDuration::from_hours(2),
            warm_up: SignedDuration::from_mins(10),
            worth: Ratio::from_nano(50_000_000),
            per_node: 4,
            per_workload: 2,
            per_hour: 60,
            exempt: Exempt { namespaces: vec!["kube-system".to_owned()], pod_selector: None },
            landing: Landing::default(),
            level: Level::default(),
            closing: Closing::default(),
        }
    }
}

/// What cannot be meant.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field}: {problem}")]
pub struct Absurd {
    /// Which setting, as documents call it.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// The longest anything is remembered.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);
/// The most that is moved within an hour, whatever is asked for.
const MOST: u32 = 100_000;
/// And from one node: what was moved is written there, and annotations have no room for more.
const MOST_FROM_NODE: u32 = 200;

impl Settings {
    /// How full a node may be before it gives up pods, where load rules let it be filled that far.
    #[must_use]
    pub fn line(&self, resource: Metered, target: Ratio) -> Ratio {
        match resource {
            Metered::Cpu => {
                let most = target.max(Ratio::ONE);
                Ratio::from_nano(target.nano().saturating_add(self.slack.nano())).min(most)
            }
            Metered::Memory => target,
        }
    }

    /// Everything about them that cannot be meant.
    #[must_use]
    pub fn check(&self) -> Vec<Absurd> {
        let mut out = Vec::new();
        let mut wrong = |field, problem| out.push(Absurd { field, problem });
        for (field, value) in [("targets.cpu", self.targets.cpu), ("targets.memory", self.targets.memory)] {
            if let Some(value) = value.filter(|value| *value <= Ratio::ZERO || *value > Ratio::ONE) {
                wrong(field, format!("{value} is not above 0 and at most 1"));
            }
        }
        if self.margin < Ratio::ZERO || self.margin >= Ratio::ONE {
            wrong("margin", format!("{} is not from 0 to below 1", self.margin));
        }
        if self.slack < Ratio::ZERO || self.slack >= Ratio::ONE {
            wrong("slack", format!("{} is not from 0 to below 1", self.slack));
        }
        if self.worth < Ratio::ZERO || self.worth > Ratio::ONE {
            wrong("worth", format!("{} is not from 0 to 1", self.worth));
        }
        for (field, value, least) in [
            ("overFor", self.over_for, SignedDuration::from_secs(1)),
            ("highFor", self.high_for, SignedDuration::from_mins(1)),
            ("dwell", self.dwell, SignedDuration::from_secs(1)),
            ("warmUp", self.warm_up, SignedDuration::ZERO),
        ] {
            if value < least || value > LONGEST {
                wrong(field, format!("{value:#} is not from {least:#} to {LONGEST:#}"));
            }
        }
        for (field, value, most) in [
            ("perNode", self.per_node, MOST_FROM_NODE),
            ("perWorkload", self.per_workload, MOST),
            ("perHour", self.per_hour, MOST),
        ] {
            if value > most {
                wrong(field, format!("{value} moves within an hour are more than {most}"));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_can_be_meant_and_everything_absurd_is_told_at_once() {
        assert_eq!(Settings::default().check(), []);
        let absurd = Settings {
            targets: Both { cpu: Some(Ratio::from_nano(1_500_000_000)), memory: Some(Ratio::ZERO) },
            margin: Ratio::ONE,
            slack: Ratio::ONE,
            worth: Ratio::from_nano(-1),
            over_for: SignedDuration::ZERO,
            high_for: SignedDuration::from_hours(1000),
            dwell: SignedDuration::from_secs(-5),
            per_node: 201,
            per_hour: u32::MAX,
            ..Settings::default()
        };
        let fields: Vec<_> = absurd.check().into_iter().map(|one| one.field).collect();
        let want = [
            "targets.cpu",
            "targets.memory",
            "margin",
            "slack",
            "worth",
            "overFor",
            "highFor",
            "dwell",
            "perNode",
            "perHour",
        ];
        assert_eq!(fields, want);
        assert_eq!(absurd.check()[0].to_string(), "targets.cpu: 1.5 is not above 0 and at most 1");
        assert_eq!(absurd.check()[5].to_string(), "overFor: 0s is not from 1s to 24h");
        assert_eq!(absurd.check()[8].to_string(), "perNode: 201 moves within an hour are more than 200");
    }
}

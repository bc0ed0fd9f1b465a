//! By which rules are pods placed?
//!
//! Every policy fits pods by their requests, as kube-scheduler demands: the cycle engine of production sees to that. What
//! differs is which of the nodes that fit is taken.

use crate::forecast::{
    Bursts, Days, Deviations, Forecast, Larger, Limits, Oracle, Packing, Percentiles, Risk, Tasks, Worst,
};
use std::fmt;
use std::str::FromStr;

/// Which node is taken of those that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Placing {
    Requests,
    Crane,
    Packing,
    Risk,
    Limits,
    NSigma,
    Tasks,
    Larger,
    Line,
    Learned,
    Ours,
    Percentiles,
    Day,
    DayGrowth,
    Bursts,
    Oracle,
}

impl Placing {
    /// All, in the order they are told.
    pub const ALL: [Self; 16] = [
        Self::Requests,
        Self::Crane,
        Self::Packing,
        Self::Risk,
        Self::Limits,
        Self::NSigma,
        Self::Tasks,
        Self::Larger,
        Self::Line,
        Self::Learned,
        Self::Ours,
        Self::Percentiles,
        Self::Day,
        Self::DayGrowth,
        Self::Bursts,
        Self::Oracle,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Crane => "crane",
            Self::Packing => "packing",
            Self::Risk => "risk",
            Self::Limits => "limits",
            Self::NSigma => "n-sigma",
            Self::Tasks => "rc-like",
            Self::Larger => "max-peak",
            Self::Line => "line",
            Self::Learned => "learned",
            Self::Ours => "ours",
            Self::Percentiles => "percentiles",
            Self::Day => "day",
            Self::DayGrowth => "day-growth",
            Self::Bursts => "bursts",
            Self::Oracle => "oracle",
        }
    }

    /// What it goes by, in a few words.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Requests => "kube-scheduler's scores: least requested, balanced, spread",
            Self::Crane => "crane's limits, score and hot value, on top of those",
            Self::Packing => "Trimaran's target load packing: full up to the target, then empty",
            Self::Risk => "Trimaran's risk balancing: lowest mean and deviation of the last hour",
            Self::Limits => "smallest share (0.9) of what is asked for (Borg default)",
            Self::NSigma => "smallest mean + 5 deviations of what the node used (N-sigma)",
            Self::Tasks => "smallest sum of the 99th percentiles of its pods (RC-like)",
            Self::Larger => "the larger of the last two (Bashir et al., EuroSys 2021)",
            Self::Line => "measured + arriving + incoming stays under the target; crane's score",
            Self::Learned => "the same, pods charged what their workload was learned to use",
            Self::Ours => "the same, and what nodes are expected to need: Loadline as it is shipped",
            Self::Percentiles => "smallest sum of the 95th percentiles its pods are known by",
            Self::Day => "smallest peak of the summed day: hourly maxima of its pods, hour by hour",
            Self::DayGrowth => "the same, by how much the fuller hours of that day grow",
            Self::Bursts => "summed day, where only replicas of one workload burst together",
            Self::Oracle => "smallest peak to come: knows the future",
        }
    }

    pub(crate) fn forecast(self, target: f64) -> Option<Box<dyn Forecast>> {
        let deviations = || Deviations { count: 5.0, need: Vec::new() };
        Some(match self {
            Self::Requests | Self::Crane | Self::Line | Self::Learned | Self::Ours => return None,
            Self::Packing => Box::new(Packing { target, coming: Vec::new() }),
            Self::Risk => Box::new(Risk::default()),
            Self::Limits => Box::new(Limits { share: 0.9 }),
            Self::NSigma => Box::new(deviations()),
            Self::Tasks => Box::new(Tasks::default()),
            Self::Larger => Box::new(Larger(deviations(), Tasks::default())),
            Self::Percentiles => Box::new(Percentiles::default()),
            Self::Day => Box::new(Days::new(Worst::Peak)),
            Self::DayGrowth => Box::new(Days::new(Worst::Growth)),
            Self::Bursts => Box::new(Bursts::default()),
            Self::Oracle => Box::new(Oracle::default()),
        })
    }
}

/// What happens to pods that turned out to be badly placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moving {
    /// They stay.
    #[default]
    Never,
    /// A plain rule, see [`crate::moves`].
    Plain,
    /// What [`loadline_core::rebalance`] plans.
    Rebalance,
}

impl Moving {
    pub const ALL: [Self; 3] = [Self::Never, Self::Plain, Self::Rebalance];

    /// What stands behind the name of how they are placed.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Never => "",
            Self::Plain => "+moves",
            Self::Rebalance => "+rebalance",
        }
    }
}

/// How pods are placed, and whether they are moved afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Policy {
    pub placing: Placing,
    pub moving: Moving,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.placing.name())?;
        f.write_str(self.moving.suffix())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The last that fits: every name ends with nothing.
        let ending = Moving::ALL
            .into_iter()
            .rev()
            .find_map(|moving| Some((text.strip_suffix(moving.suffix())?, moving)));
        let (name, moving) = ending.unwrap_or((text, Moving::Never));
        let found = Placing::ALL.into_iter().find(|placing| placing.name() == name);
        found.map(|placing| Self { placing, moving }).ok_or_else(|| {
            let all: Vec<_> = Placing::ALL.iter().map(|placing| placing.name()).collect();
            format!("no policy {name:?}; there are {}, each also with +moves or +rebalance", all.join(", "))
        })
    }
}

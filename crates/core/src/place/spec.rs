//! What a placement asks for, as it is written; [`super::prepare`] makes sense of it.

use crate::object::Key;
use crate::select::LabelSelector;
use crate::select::label::Expression;
use jiff::{SignedDuration, Timestamp};

/// A wish for clusters (`Placement`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Which one.
    pub key: Key,
    /// The identity of the object, for the owner reference of its slices.
    pub uid: String,
    /// Which version of the wish this is.
    pub generation: Option<i64>,
    /// Does somebody else decide? Then nothing at all is done.
    pub disabled: bool,
    /// Only clusters of these sets; of all bound ones if there are none.
    pub cluster_sets: Vec<String>,
    /// How many clusters; all that will do if not said.
    pub count: Option<i32>,
    /// A cluster must match one of them; if there are none, every cluster does.
    pub predicates: Vec<Predicate>,
    /// `Additive` (also if empty) or `Exact`.
    pub mode: String,
    /// What counts how much.
    pub configurations: Vec<Configuration>,
    /// Which taints do not matter.
    pub tolerations: Vec<Toleration>,
    /// How to spread, the coarsest first.
    pub spread: Vec<Constraint>,
    /// Named groups, in their order.
    pub groups: Vec<GroupRule>,
    /// How many clusters a group has.
    pub group_size: GroupSize,
    /// The order in which clusters are published.
    pub sort_by: SortBy,
    /// How often totals alone are published anew; a minute if not said.
    pub score_rate: Option<SignedDuration>,
    /// What is ours: wishes that others do not know.
    pub extra: Extra,
    /// What was last said about it.
    pub status: Status,
}

impl Placement {
    /// The name of its slice of that number, counted from 1.
    #[must_use]
    pub fn slice_name(&self, number: usize) -> String {
        format!("{}-decision-{number}", self.key.name)
    }
}

/// Conditions on a cluster; all must hold. Parts not given always do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predicate {
    pub labels: LabelSelector,
    pub claims: Vec<Expression>,
    /// On the whole object, in CEL; see [`super::Judge`].
    pub cel: Vec<String>,
}

/// One prioritizer and how much it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Which one; none is a mistake, but one that is answered, not refused.
    pub coordinate: Option<Coordinate>,
    /// -10 to 10; 0 switches it off.
    pub weight: i32,
}

/// Where a score comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coordinate {
    /// From here.
    BuiltIn(String),
    /// From an object of the cluster: its name and the name of the score in it.
    AddOn(Option<(String, String)>),
}

/// Lets clusters with matching taints be selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toleration {
    /// The key of the taint; any if empty.
    pub key: String,
    /// `Equal` (also if empty) or `Exists`; any other never matches.
    pub operator: String,
    /// What the taint's value must be, with `Equal`.
    pub value: String,
    /// What the taint's effect must be; any if empty.
    pub effect: String,
    /// For how long after the taint was added; for ever if not said.
    pub seconds: Option<i64>,
}

/// Where the value of a topology is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyKind {
    /// In a label of that key.
    Label,
    /// In a claim of that name.
    Claim,
}

/// One term of a spread policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// What makes places of clusters.
    pub key: String,
    /// And where that is found.
    pub kind: TopologyKind,
    /// By how much places may differ.
    pub max_skew: i64,
    /// Must they not differ more, or should they only rather not?
    pub required: bool,
}

/// A named group and who is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupRule {
    pub name: String,
    /// Conditions on labels.
    pub labels: LabelSelector,
    /// Conditions on claims.
    pub claims: Vec<Expression>,
}

/// How many clusters go into one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GroupSize {
    /// All.
    #[default]
    All,
    /// So many.
    Count(i64),
    /// As written: a percentage, or a mistake.
    Text(String),
}

/// The order in which clusters are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// By name.
    #[default]
    Name,
    /// The highest total first.
    Score,
}

/// What resource scores take for free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// What nodes have for pods, taken or not; what everybody else does.
    #[default]
    Static,
    /// That, less what pods ask for.
    Requested,
    /// That, less what pods use.
    Measured,
}

impl Source {
    /// Its name in annotations and answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Requested => "requested",
            Self::Measured => "measured",
        }
    }
}

/// What a cluster counts that a score knows nothing of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// 0, the middle of the scale; what everybody else does.
    #[default]
    Middle,
    /// As much as the worst, whichever way the score is weighed.
    Worst,
}

/// Wishes only we know, given by annotations. The defaults change nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// What resource scores take for free.
    pub source: Source,
    /// How old a published load may be.
    pub max_age: SignedDuration,
    /// What a cluster without data counts; by default the middle for [`Source::Static`], else the worst.
    pub missing: Option<Missing>,
    /// By how many points a cluster must be better to displace one that is selected; by none of these if not said.
    pub margin: Option<i64>,
    /// How long a cluster stays selected at least, as long as it may be.
    pub dwell: Option<SignedDuration>,
    /// Do clusters keep their group when others come and go?
    pub sticky: bool,
}

impl Default for Extra {
    fn default() -> Self {
        Self {
            source: Source::default(),
            max_age: SignedDuration::from_mins(5),
            missing: None,
            margin: None,
            dwell: None,
            sticky: false,
        }
    }
}

impl Extra {
    /// What a cluster without data counts.
    #[must_use]
    pub fn missing(&self) -> Missing {
        self.missing.unwrap_or(match self.source {
            Source::Static => Missing::Middle,
            Source::Requested | Source::Measured => Missing::Worst,
        })
    }
}

/// What was last said about a placement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Type, status and since when.
    pub conditions: Vec<(String, bool, Timestamp)>,
    /// When totals were last published.
    pub last_score_update: Option<Timestamp>,
}

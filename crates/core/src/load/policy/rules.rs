//! The policy and the settings, checked, and prepared for many questions.

use super::{Derivable, Figure, Policy, Problem, Range, check};
use crate::load::annotation;
use crate::load::ratio::Ratio;
use crate::load::settings::{Mode, Settings};
use crate::load::{Both, Metered};
use crate::select::Lookup;
use jiff::SignedDuration;
use std::sync::Arc;

/// A metric the policy speaks of.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub name: Arc<str>,
    /// How often it is fetched, if it is.
    pub period: Option<SignedDuration>,
    /// How long an annotation is good, if it is fetched.
    pub window: Option<SignedDuration>,
    /// How we can work it out ourselves, if we can.
    pub derivable: Option<Derivable>,
    /// Its limit, as its first predicate says; 0 is none.
    pub limit: Option<Figure>,
    /// Its weight, as its first priority says.
    pub weight: Option<Figure>,
    /// Its first predicate, by position.
    pub(in crate::load) predicate: Option<usize>,
}

/// One predicate or priority: which metric, and the limit or weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::load) struct Entry {
    pub(in crate::load) metric: usize,
    pub(in crate::load) figure: Figure,
}

/// The compiled policy and settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    policy: Policy,
    settings: Settings,
    metrics: Vec<Metric>,
    predicates: Vec<Entry>,
    priorities: Vec<Entry>,
}

/// What holds on one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRules {
    /// How full it may be; `None`: no line.
    pub targets: Both<Option<Ratio>>,
    /// One limit per predicate of the policy; `None` where it is switched off.
    pub limits: Vec<Option<Figure>>,
}

impl Default for Rules {
    fn default() -> Self {
        Self::compile(Policy::default(), Settings::default())
    }
}

impl Rules {
    /// Checks and prepares. Returns what is worth a warning along with the rules.
    ///
    /// # Errors
    /// Everything that is refused, at once. In upstream mode nothing of what crane accepts is: the same
    /// findings become warnings.
    pub fn new(policy: Policy, settings: Settings) -> Result<(Self, Vec<Problem>), Vec<Problem>> {
        let mut found = check::policy(&policy);
        let own = check::settings(&settings, &policy);
        if settings.mode == Mode::Upstream {
            found.refused.append(&mut found.warned);
            std::mem::swap(&mut found.refused, &mut found.warned);
        }
        found.refused.extend(own.refused);
        found.warned.extend(own.warned);
        if found.refused.is_empty() {
            Ok((Self::compile(policy, settings), found.warned))
        } else {
            Err(found.refused)
        }
    }

    fn compile(policy: Policy, settings: Settings) -> Self {
        let figure = |float: f64| match settings.mode {
            Mode::Upstream => Figure::Float(float),
            Mode::Default => Ratio::from_f64(float).map_or(Figure::Float(float), Figure::Exact),
        };
        let mut metrics: Vec<Metric> = Vec::new();
        let mut place = |name: &Arc<str>| {
            metrics.iter().position(|m| m.name == *name).unwrap_or_else(|| {
                metrics.push(Metric {
                    name: name.clone(),
                    period: policy.period(name),
                    window: policy.window(name),
                    derivable: Derivable::of(name),
                    limit: None,
                    weight: None,
                    predicate: None,
                });
                metrics.len() - 1
            })
        };
        for sync in &policy.sync {
            place(&sync.name);
        }
        let predicates: Vec<Entry> = policy
            .predicates
            .iter()
            .map(|p| Entry { metric: place(&p.name), figure: figure(p.limit) })
            .collect();
        let priorities: Vec<Entry> = policy
            .priorities
            .iter()
            .map(|p| Entry { metric: place(&p.name), figure: figure(p.weight) })
            .collect();
        for (i, entry) in predicates.iter().enumerate().rev() {
            let metric = &mut metrics[entry.metric];
            (metric.limit, metric.predicate) = (Some(entry.figure), Some(i));
        }
        for entry in priorities.iter().rev() {
            metrics[entry.metric].weight = Some(entry.figure);
        }
        Self { policy, settings, metrics, predicates, priorities }
    }

    /// The policy as it was given.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The settings as they were given.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whose arithmetic.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.settings.mode
    }

    /// Every metric the policy speaks of, once, in the order in which they first appear: fetched, limited,
    /// weighed.
    #[must_use]
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    pub(in crate::load) fn predicates(&self) -> &[Entry] {
        &self.predicates
    }

    pub(in crate::load) fn priorities(&self) -> &[Entry] {
        &self.priorities
    }

    /// What holds on a node, and what is wrong with its own annotations about it.
    ///
    /// A target is, in this order: the node's annotation `loadline.dev/target-cpu` or `-memory`; the first
    /// matching entry of the settings that gives one; the settings' own; the limit of the five-minute metric
    /// of that resource; none. A limit is the annotation `loadline.dev/threshold-METRIC`, the first matching
    /// entry that gives one, the policy's. An annotation that does not read as a ratio is as good as absent.
    ///
    /// In upstream mode all nodes are alike, and there are no targets: crane knows none.
    pub fn node<L, A>(&self, labels: &L, annotations: &A) -> (NodeRules, Vec<String>)
    where
        L: Lookup + ?Sized,
        A: Lookup + ?Sized,
    {
        if self.mode() == Mode::Upstream {
            let limits = self.predicates.iter().map(|p| enabled(p.figure)).collect();
            return (NodeRules { targets: Both::default(), limits }, Vec::new());
        }
        let mut warnings = Vec::new();
        let mut own = |key: String, zero: bool| {
            let text = annotations.value(&key)?;
            check::override_of(annotation::decimal(text), zero)
                .map_err(|expected| {
                    warnings.push(format!("annotation {key} is ignored: {text:?}, {expected}"));
                })
                .ok()
        };
        let matching = || self.settings.nodes.iter().filter(|rule| rule.selector.matches(labels));
        let limits: Vec<Option<Figure>> = self
            .predicates
            .iter()
            .map(|predicate| {
                let name = &*self.metrics[predicate.metric].name;
                let limit = own(format!("loadline.dev/threshold-{name}"), true)
                    .or_else(|| matching().find_map(|r| r.thresholds.get(name)).map(|r| Figure::Exact(*r)))
                    .unwrap_or(predicate.figure);
                enabled(limit)
            })
            .collect();
        let mut targets = Both::default();
        for resource in Metered::ALL {
            let short = || {
                let metric = Derivable { resource, range: Range::Avg5m }.name();
                let at = self.predicates.iter().position(|p| &*self.metrics[p.metric].name == metric)?;
                limits[at]?.ratio()
            };
            let target = own(format!("loadline.dev/target-{resource}"), false)
                .and_then(Figure::ratio)
                .or_else(|| matching().find_map(|r| r.targets.get(resource)))
                .or_else(|| self.settings.targets.get(resource))
                .or_else(short);
            targets.set(resource, target);
        }
        (NodeRules { targets, limits }, warnings)
    }
}

/// A limit of 0 is none.
fn enabled(limit: Figure) -> Option<Figure> {
    (!limit.is_zero()).then_some(limit)
}

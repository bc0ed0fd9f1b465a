//! What was asked for? Rules, actions and scopes, prepared once for any number of cycles.

use super::level::Level;
use super::metric::{Catalogue, Metric};
use super::scope::{Scope, Scoped};
use super::throttle::Step;
use crate::select::{LabelSelector, Lookup, Selector};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A rule by name: `nodeqos/rule`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleName {
    pub object: Arc<str>,
    /// Its name in there.
    pub rule: Arc<str>,
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.object, self.rule)
    }
}

/// Does a rule act, or say what it would do?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    #[default]
    Act,
    /// Only says.
    Preview,
}

/// A line and what to do above it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub name: Arc<str>,
    /// What is watched.
    pub metric: Arc<str>,
    /// Which series of it; all if not said.
    pub selector: Option<LabelSelector>,
    /// The line, in the metric's unit. None if it could not be read.
    pub value: Option<Level>,
    /// How many times in a row it must be passed.
    pub avoid_after: i32,
    /// How many times in a row it must not be.
    pub restore_after: i32,
    /// What is done.
    pub action: Arc<str>,
    /// Does it act?
    pub strategy: Strategy,
}

/// Rules for some nodes (`NodeQOS`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeQos {
    pub name: Arc<str>,
    /// Which nodes; all if not said.
    pub selector: Option<LabelSelector>,
    pub rules: Vec<Rule>,
}

/// What is done to pods (`AvoidanceAction`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Action {
    pub name: Arc<str>,
    /// How long the node stays closed after the last time, in seconds.
    pub cool_down_seconds: i64,
    /// Pods are slowed down.
    pub throttle: Option<Step>,
    /// Page cache of pods is asked back.
    pub reclaim: bool,
    /// Pods are evicted.
    pub evict: Option<Evict>,
}

/// How pods are evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evict {
    /// How long they may take, in seconds; their own time if not said.
    pub grace_seconds: Option<i64>,
}

/// The cool-down of an action that does not say, in seconds.
pub const COOL_DOWN_SECONDS: i64 = 300;

/// A rule that can be used: its metric is known and its selectors read.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: Arc<RuleName>,
    pub(super) metric: Arc<Metric>,
    pub(super) series: Option<Selector>,
    pub(super) value: Level,
    pub(super) avoid_after: i32,
    pub(super) restore_after: i32,
    pub(super) action_name: Arc<str>,
    /// None if there is no action of that name.
    pub(super) action: Option<Arc<Action>>,
    pub(super) strategy: Strategy,
    pub(super) nodes: Option<Arc<Selector>>,
    /// What the rule says, to notice that it was edited.
    pub(super) definition: Arc<str>,
}

impl Line {
    pub(super) fn is_for<L: Lookup + ?Sized>(&self, node: &L) -> bool {
        self.nodes.as_ref().is_none_or(|selector| selector.matches(node))
    }

    /// How long the node stays closed after it, in seconds.
    pub(super) fn cool_down(&self) -> i64 {
        self.action.as_ref().map_or(COOL_DOWN_SECONDS, |action| action.cool_down_seconds)
    }
}

/// Everything that was asked for, prepared.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub(super) lines: Vec<Line>,
    pub(super) actions: BTreeMap<Arc<str>, Arc<Action>>,
    pub(super) scopes: Vec<Scoped>,
    pub(super) catalogue: Catalogue,
    warnings: Vec<String>,
}

impl Policy {
    /// Prepares. What cannot be used is left out, and told.
    #[must_use]
    pub fn new(catalogue: Catalogue, rules: &[NodeQos], actions: Vec<Action>, scopes: &[Scope]) -> Self {
        let mut policy = Self { catalogue, ..Self::default() };
        policy.actions = actions.into_iter().map(|action| (action.name.clone(), Arc::new(action))).collect();
        let mut rules: Vec<&NodeQos> = rules.iter().collect();
        rules.sort_by(|a, b| a.name.cmp(&b.name));
        for object in rules {
            policy.add(object);
        }
        for scope in scopes {
            match Scoped::new(scope) {
                Ok(ready) => policy.scopes.push(ready),
                Err(problem) => policy.warn(format!("PodQOS {} matches nothing: {problem}", scope.name)),
            }
        }
        policy.compare_lines();
        policy
    }

    /// Is there no rule, for whatever node?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The metrics it knows.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// What its rules are about, each once.
    #[must_use]
    pub fn metrics(&self) -> Vec<Arc<Metric>> {
        let mut all: Vec<Arc<Metric>> = Vec::new();
        for line in &self.lines {
            if !all.iter().any(|known| known.name == line.metric.name) {
                all.push(line.metric.clone());
            }
        }
        all
    }

    /// What is wrong with it, or looks so.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    fn add(&mut self, object: &NodeQos) {
        let nodes = match object.selector.as_ref().map(LabelSelector::selector).transpose() {
            Ok(nodes) => nodes.map(Arc::new),
            Err(problem) => {
                return self.warn(format!("NodeQOS {} is for no node: {problem}", object.name));
            }
        };
        let mut seen = BTreeSet::new();
        for rule in &object.rules {
            let name = RuleName { object: object.name.clone(), rule: rule.name.clone() };
            if !seen.insert(rule.name.clone()) {
                self.warn(format!("rule {name} is there twice: only the first counts"));
                continue;
            }
            match self.line(name, rule, nodes.clone()) {
                Ok(line) => self.lines.push(line),
                Err(problem) => self.warn(problem),
            }
        }
    }

    fn line(&mut self, name: RuleName, rule: &Rule, nodes: Option<Arc<Selector>>) -> Result<Line, String> {
        let Some(metric) = self.catalogue.find(&rule.metric).cloned() else {
            return Err(format!("rule {name} is left out: there is no metric {:?}", rule.metric));
        };
        let Some(value) = rule.value.filter(|value| *value > Level::ZERO) else {
            return Err(format!("rule {name} is left out: its value must be a quantity above 0"));
        };
        let series = rule.selector.as_ref().map(LabelSelector::selector).transpose();
        let series = series.map_err(|problem| format!("rule {name} is left out: {problem}"))?;
        let shown = value.to_f64();
        if metric.percent && value > Level::whole(100) {
            self.warn(format!("rule {name} can never act: {} above {shown} percent", metric.name));
        }
        if let Some(least) = metric.suspicious_below.filter(|least| value < *least) {
            let (unit, least) = (metric.unit, least.to_f64());
            self.warn(format!(
                "rule {name} acts above {shown} {unit}: less than {least}, is another unit meant?"
            ));
        }
        let action = self.actions.get(&rule.action).cloned();
        if action.is_none() {
            self.warn(format!(
                "rule {name} can only close the node: there is no AvoidanceAction {:?}",
                rule.action
            ));
        }
        let definition = format!(
            "{}{}>{shown} {}/{}",
            metric.name,
            series.as_ref().map(|s| format!("{{{s}}}")).unwrap_or_default(),
            rule.avoid_after,
            rule.restore_after
        );
        Ok(Line {
            name: Arc::new(name),
            series,
            value,
            avoid_after: rule.avoid_after.max(1),
            restore_after: rule.restore_after.max(1),
            action_name: rule.action.clone(),
            action,
            strategy: rule.strategy,
            nodes,
            definition: definition.into(),
            metric,
        })
    }

    /// Rules that get in each other's way: one that evicts before the other throttles.
    fn compare_lines(&mut self) {
        let lowest = |throttle: bool, metric: &str| {
            let acts = |line: &&Line| {
                let action = line.action.as_ref();
                line.metric.name == metric
                    && line.strategy == Strategy::Act
                    && action.is_some_and(|a| if throttle { a.throttle.is_some() } else { a.evict.is_some() })
            };
            self.lines.iter().filter(acts).min_by_key(|line| line.value)
        };
        let names: BTreeSet<&'static str> = self.lines.iter().map(|line| line.metric.name).collect();
        let mut found = Vec::new();
        for metric in names {
            let (Some(throttle), Some(evict)) = (lowest(true, metric), lowest(false, metric)) else {
                continue;
            };
            if evict.value < throttle.value {
                // Which nodes there are is not known here.
                let both = evict.nodes.is_none() && throttle.nodes.is_none();
                found.push(format!(
                    "rule {} evicts at {metric} {} before rule {} throttles at {}{}",
                    evict.name,
                    evict.value.to_f64(),
                    throttle.name,
                    throttle.value.to_f64(),
                    if both { "" } else { ", on nodes both are for" }
                ));
            }
        }
        self.warnings.extend(found);
    }
}

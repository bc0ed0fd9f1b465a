//! Does an agent take load off nodes that we fill? Our targets are held against the lines of `NodeQOS`, and where a target is
//! above a line, whoever wrote that is told.
//!
//! Nothing of this is needed to place pods: without the kinds, or without leave to read them, nothing is said. It is looked at when a
//! rule, an action, a node or the configuration changes, never for a pod.

use super::watched::LinesMessage;
use crate::cluster::{Event, Freshness, Informer};
use jiff::Timestamp;
use loadline_core::load::Metered;
use loadline_core::load::policy::Rules;
use loadline_core::load::ratio::Ratio;
use loadline_core::object::Meta;
use loadline_core::qos::agree::{About, Disagreement, disagreements, told};
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::policy::{Action, NodeQos, Policy, RuleName};
use loadline_core::select::Lookup;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many rules of an object are told with their figures; of more, how many there are.
const FIGURES: usize = 3;

/// What was said of an object: which rules are in the way of which targets. How many nodes that concerns may change without
/// being news.
type Said = BTreeSet<(Arc<RuleName>, Metered, Ratio)>;

/// On which nodes each rule of an object is below a target.
type ByRule<'a> = BTreeMap<&'a Arc<RuleName>, Vec<(&'a str, &'a Disagreement)>>;

/// What is known of lines and targets.
#[derive(Debug)]
pub(super) struct Agreement {
    rules: Informer<Option<(Meta, NodeQos)>>,
    actions: Informer<Option<Action>>,
    policy: Policy,
    /// Do all nodes have to be looked at again?
    is_stale: bool,
    /// Is there anything that was not told yet?
    has_news: bool,
    /// Nodes on which they disagree.
    nodes: BTreeMap<Arc<str>, Vec<Disagreement>>,
    said: BTreeMap<Arc<str>, Said>,
}

impl Agreement {
    pub fn new() -> Self {
        Self {
            rules: Informer::new("nodeqoss"),
            actions: Informer::new("avoidanceactions"),
            policy: Policy::default(),
            is_stale: false,
            has_news: false,
            nodes: BTreeMap::new(),
            said: BTreeMap::new(),
        }
    }

    /// How current is what is known of each kind? Where there are no such kinds there is nothing to say.
    pub fn freshness(&self) -> Vec<Freshness<'_>> {
        let all = [
            (self.rules.freshness(), self.rules.is_denied()),
            (self.actions.freshness(), self.actions.is_denied()),
        ];
        all.into_iter().filter(|(of, denied)| of.heard.is_some() || *denied).map(|(of, _)| of).collect()
    }

    /// On how many nodes they disagree.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Takes a message in.
    pub fn take(&mut self, message: LinesMessage, now: Timestamp) {
        self.is_stale |= match message {
            LinesMessage::NodeRules(event) => {
                // Another version of an object is told of again.
                let said = &mut self.said;
                kept(&mut self.rules, event, now, |meta, rules| {
                    said.remove(&meta.key.name);
                    (meta.clone(), rules)
                })
            }
            LinesMessage::Action(event) => kept(&mut self.actions, event, now, |_, action| action),
        };
    }

    /// The targets are others.
    pub fn targets_changed(&mut self) {
        self.is_stale = true;
    }

    /// Do all nodes have to be looked at? Then rules are made ready for it.
    pub fn begin(&mut self) -> bool {
        let complete = self.rules.is_listed() && self.actions.is_listed();
        if !self.is_stale || !complete || self.rules.is_replacing() || self.actions.is_replacing() {
            return false;
        }
        let rules: Vec<NodeQos> = values(&self.rules).map(|(_, rules)| rules.clone()).collect();
        let actions = values(&self.actions).cloned().collect();
        self.policy = Policy::new(Catalogue::default(), &rules, actions, &[]);
        self.nodes.clear();
        (self.is_stale, self.has_news) = (false, true);
        true
    }

    /// A node is there; `rules` are all that pods are placed by.
    pub fn set<'r, L: Lookup + ?Sized>(
        &mut self,
        name: &str,
        node: &About<'_, L>,
        rules: impl Iterator<Item = &'r Rules>,
    ) {
        if self.policy.is_empty() {
            return;
        }
        let mut found: Vec<Disagreement> = Vec::new();
        for one in rules.flat_map(|rules| disagreements(rules, &self.policy, node)) {
            match found.iter_mut().find(|known| known.rule == one.rule) {
                // Whoever fills it most counts.
                Some(known) if known.admitted < one.admitted => *known = one,
                Some(_) => {}
                None => found.push(one),
            }
        }
        let before = self.nodes.get(name).map_or(&[][..], Vec::as_slice);
        if *before == found[..] {
            return;
        }
        self.has_news = true;
        if found.is_empty() {
            self.nodes.remove(name);
        } else {
            self.nodes.insert(name.into(), found);
        }
    }

    /// A node is gone.
    pub fn remove(&mut self, name: &str) {
        self.has_news |= self.nodes.remove(name).is_some();
    }

    /// What is to be told of which objects since this was last asked.
    pub fn news(&mut self) -> Vec<(Meta, String)> {
        if !std::mem::take(&mut self.has_news) {
            return Vec::new();
        }
        let mut by_object: BTreeMap<&Arc<str>, ByRule<'_>> = BTreeMap::new();
        for (node, all) in &self.nodes {
            for one in all {
                let rules = by_object.entry(&one.rule.object).or_default();
                rules.entry(&one.rule).or_default().push((node, one));
            }
        }
        let mut said = BTreeMap::new();
        let mut news = Vec::new();
        for (meta, object) in values(&self.rules) {
            let Some(rules) = by_object.get(&object.name) else { continue };
            let all = rules.values().flatten();
            let now: Said = all.map(|(_, one)| (one.rule.clone(), one.resource, one.target)).collect();
            if !self.said.get(&object.name).is_some_and(|before| now.is_subset(before)) {
                news.push((meta.clone(), sentence(rules)));
            }
            said.insert(object.name.clone(), now);
        }
        self.said = said;
        news
    }
}

/// Of each rule the node on which it is worst.
fn sentence(rules: &ByRule<'_>) -> String {
    let worst = |nodes: &Vec<(&str, &Disagreement)>| {
        let (node, one) = nodes.iter().max_by_key(|(_, one)| one.excess())?;
        Some(told(node, one, nodes.len() - 1))
    };
    let mut parts: Vec<String> = rules.values().take(FIGURES).filter_map(worst).collect();
    if rules.len() > FIGURES {
        parts.push(format!("and so for {} more rules", rules.len() - FIGURES));
    }
    parts.join("; ")
}

/// Brings an informer up to date; says whether it was not before.
fn kept<F, T>(
    informer: &mut Informer<Option<T>>,
    event: Event<F>,
    now: Timestamp,
    keep: impl FnOnce(&Meta, F) -> T,
) -> bool {
    if let Event::Failed(problem) | Event::Forbidden(problem) = &event {
        tracing::debug!(
            resource = informer.name(),
            problem,
            "not there or not readable; lines are not compared"
        );
    }
    let was_listed = informer.is_listed();
    let change = informer.apply(event, now);
    if change.is_empty() {
        return informer.is_listed() != was_listed;
    }
    if let Some((meta, facts)) = change.applied
        && let Some(value) = informer.value_mut(&meta.key)
    {
        *value = facts.map(|facts| keep(&meta, facts));
    }
    true
}

fn values<T>(informer: &Informer<Option<T>>) -> impl Iterator<Item = &T> {
    informer.store().iter().filter_map(|(.., value)| value.as_ref())
}

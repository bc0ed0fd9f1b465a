//! What cannot be judged, or not be done as asked? Rules without a usable sample and what a plan warns of, told when it begins.

use super::act::Target;
use super::tell::Teller;
use jiff::Timestamp;
use loadline_core::qos::Plan;
use loadline_core::qos::policy::RuleName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// In error for so many looks in a row, a rule is told of: what is counted takes two looks to be known.
const LOOKS: u32 = 2;

/// What was told of a node.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// Rules without a usable sample, and for how many looks.
    rules: BTreeMap<Arc<RuleName>, u32>,
    /// What the last plan could not do as asked.
    warned: BTreeSet<String>,
}

impl Doubts {
    /// Looks at a plan; what is not as it was is told.
    pub fn look(&mut self, target: &Target, plan: &Plan, teller: &Teller, now: Timestamp) {
        let mut rules = BTreeMap::new();
        for rule in &plan.rules {
            let looks = self.rules.get(&rule.rule).copied().unwrap_or_default();
            let Some(problem) = &rule.problem else {
                if looks >= LOOKS {
                    teller.judged_again(target, &rule.rule);
                }
                continue;
            };
            let looks = looks.saturating_add(1);
            if looks == LOOKS {
                teller.in_error(target, &rule.rule, problem, now);
            }
            rules.insert(rule.rule.clone(), looks);
        }
        self.rules = rules;
        let previewed = plan.preview.iter().flat_map(|steps| &steps.warnings);
        let warned: BTreeSet<String> = plan.steps.warnings.iter().chain(previewed).cloned().collect();
        for warning in warned.difference(&self.warned) {
            teller.warned(target, warning);
        }
        self.warned = warned;
    }

    /// How many rules are in error for so long that it was told.
    pub fn in_error(&self) -> usize {
        self.rules.values().filter(|looks| **looks >= LOOKS).count()
    }
}

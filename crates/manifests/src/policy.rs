//! Which load rules hold? Those of the one policy and the one set of settings among the objects.

use crate::kind::Kind;
use crate::manifest::{Manifest, Manifests};
use crate::problem::{Problem, Problems};
use loadline_api::policy;
use loadline_core::load::policy::{Origin, Problem as Wrong, Rules};

/// Load rules from a file: a `DynamicSchedulerPolicy`, `LoadSettings`, or both.
#[derive(Debug)]
pub struct PolicyInput {
    pub rules: Rules,
    /// What is worth knowing about them.
    pub warnings: Vec<Problem>,
}

impl PolicyInput {
    /// Every kind that is read.
    pub const KINDS: &[Kind] = &[Kind::LOAD_POLICY, Kind::LOAD_SETTINGS];

    /// Takes the rules; the defaults for an object that is not there.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(mut manifests: Manifests) -> Result<Self, Problems> {
        let rules = manifests.load_rules();
        let (rules, warnings) = manifests.finish(Some(rules))?;
        Ok(Self { rules, warnings })
    }
}

impl Manifests {
    /// Takes out policy and settings and makes them rules; the defaults for what is not there or is wrong.
    pub(crate) fn load_rules(&mut self) -> Rules {
        let [policy, settings] = [Kind::LOAD_POLICY, Kind::LOAD_SETTINGS].map(|kind| self.sole(kind));
        let locate = |wrong: Wrong| {
            let object = match wrong.origin {
                Origin::Policy => policy.as_ref(),
                Origin::Settings => settings.as_ref(),
            };
            object.map(|object| object.problem(wrong.path, wrong.message))
        };

        let [read, own] = [&policy, &settings].map(|object| object.as_ref().map(Manifest::tree));
        match policy::rules(read.as_ref(), own.as_ref()) {
            Ok((rules, warnings)) => {
                self.warnings.extend(warnings.into_iter().filter_map(locate));
                rules
            }
            Err(problems) => {
                self.problems.extend(problems.into_iter().filter_map(locate));
                Rules::default()
            }
        }
    }

    /// Takes out the one object of a kind; more than one is a problem.
    pub(crate) fn sole(&mut self, kind: Kind) -> Option<Manifest> {
        let mut all = self.take_all(kind).into_iter();
        let first = all.next()?;
        let name = kind.name;
        let again = || format!("expected one {name}, found a second one; the first is in {}", first.location);
        self.problems.extend(all.map(|more| more.problem("", again())));
        Some(first)
    }
}

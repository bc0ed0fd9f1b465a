//! Whose pods are placed, and by which rules? The configuration in force, by the names pods ask for.

use loadline_api::scheduler::{Configuration, SchedulerProfile, WhenOverloaded};
use loadline_core::cluster::Profile;
use loadline_core::load::policy::Rules;
use loadline_core::load::publish;

/// The profiles in force.
#[derive(Debug)]
pub(super) struct Profiles {
    all: Vec<SchedulerProfile>,
    /// Short for the policies, as annotators write them.
    policies: Vec<String>,
}

impl Profiles {
    pub fn new(configuration: &Configuration) -> Self {
        let rules = configuration.profiles.iter().filter_map(|one| one.profile.rules.as_ref());
        let policies = rules.map(publish::fingerprint).collect();
        Self { all: configuration.profiles.clone(), policies }
    }

    /// The place of the profile of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|one| one.name == name)
    }

    /// What pods of the profile at that place ask for.
    pub fn name(&self, at: usize) -> &str {
        self.all.get(at).map_or("", |one| &one.name)
    }

    /// As the engine takes them.
    pub fn engine(&self) -> Vec<Profile> {
        self.all.iter().map(|one| one.profile.clone()).collect()
    }

    pub fn when_overloaded(&self, at: usize) -> WhenOverloaded {
        self.all.get(at).map_or_else(WhenOverloaded::default, |one| one.when_overloaded)
    }

    /// The first load rules there are: by their targets a node is called hot.
    pub fn rules(&self) -> Option<&Rules> {
        self.all.iter().find_map(|one| one.profile.rules.as_ref())
    }

    /// All load rules there are.
    pub fn all_rules(&self) -> impl Iterator<Item = &Rules> {
        self.all.iter().filter_map(|one| one.profile.rules.as_ref())
    }

    /// Were annotations with this policy written by another than ours?
    pub fn is_foreign(&self, policy: &str) -> bool {
        !self.policies.is_empty() && !self.policies.iter().any(|ours| ours == policy)
    }
}

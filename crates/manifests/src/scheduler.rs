//! Whose pods does a scheduler place, and by which rules?

use crate::kind::Kind;
use crate::manifest::Manifests;
use crate::problem::{Problem, Problems};
use loadline_api::scheduler::{self, Configuration};

/// The configuration of a scheduler from a file.
#[derive(Debug)]
pub struct ConfigurationInput {
    pub configuration: Configuration,
    /// What is worth knowing about it.
    pub warnings: Vec<Problem>,
}

impl ConfigurationInput {
    /// Every kind that is read.
    pub const KINDS: &[Kind] = &[Kind::SCHEDULER_CONFIGURATION];

    /// Takes the one configuration.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(mut manifests: Manifests) -> Result<Self, Problems> {
        let object = manifests.sole(Kind::SCHEDULER_CONFIGURATION);
        let read = object.as_ref().map(|object| scheduler::read(&object.tree()));
        let locate = |wrong: loadline_core::load::policy::Problem| {
            object.as_ref().map(|object| object.problem(wrong.path, wrong.message))
        };
        let configuration = match read {
            Some(Ok((configuration, warnings))) => {
                manifests.warnings.extend(warnings.into_iter().filter_map(locate));
                Some(configuration)
            }
            Some(Err(problems)) => {
                manifests.problems.extend(problems.into_iter().filter_map(locate));
                None
            }
            None => None,
        };
        let (configuration, warnings) = manifests.finish(configuration)?;
        Ok(Self { configuration, warnings })
    }
}

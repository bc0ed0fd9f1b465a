//! The default admission plugins that change or refuse objects: what they do to pods and volumes.

use serde_json::Value;

use super::Kind;

/// Why admission refused an object. The handler answers 403 with this sentence, see `Status::forbidden`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// What the `Priority` plugin needs to know of priority classes.
pub trait PriorityClasses {
    /// The class of this name.
    fn get(&self, name: &str) -> Option<Value>;
    /// The class with `globalDefault: true`, if any.
    fn global_default(&self) -> Option<Value>;
}

/// Runs the mutating plugins for a create: `DefaultTolerationSeconds`, `Priority`, `LimitRanger` and
/// `StorageObjectInUseProtection`. `limit_ranges` are those of the object's namespace.
///
/// # Errors
/// When a plugin refuses the object: no such priority class, or a limit range is violated.
pub fn create(
    _kind: Kind<'_>,
    _obj: &mut Value,
    _classes: &dyn PriorityClasses,
    _limit_ranges: &[Value],
) -> Result<(), Refused> {
    Ok(())
}

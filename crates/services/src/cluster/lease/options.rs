//! Which flags are there, and do they make sense?

use loadline_core::lease::{Lock, Problem, Settings, check, flag};
use loadline_core::object::Key;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;

/// The only kind of object that client-go still locks with.
const LEASES: &str = "leases";

/// The flags of leader election, named as in client-go ([`flag`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `--leader-elect`: elect a leader at all?
    pub leader_elect: bool,
    /// `--leader-elect-lease-duration`, `--leader-elect-renew-deadline`, `--leader-elect-retry-period`.
    pub settings: Settings,
    /// `--leader-elect-resource-lock`.
    pub resource_lock: String,
    /// `--leader-elect-resource-name`.
    pub resource_name: String,
    /// `--leader-elect-resource-namespace`.
    pub resource_namespace: String,
}

impl Options {
    /// client-go's defaults, for this Lease.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            leader_elect: true,
            settings: Settings::default(),
            resource_lock: LEASES.into(),
            resource_name: name.into(),
            resource_namespace: namespace.into(),
        }
    }

    /// The Lease, and who wants it.
    #[must_use]
    pub fn lock(&self, identity: impl Into<String>) -> Lock {
        let lease = Key::new(self.resource_namespace.as_str(), self.resource_name.as_str());
        Lock { lease, identity: identity.into() }
    }

    /// Checks everything. Whether a leader is to be elected at all is the caller's to ask first.
    ///
    /// # Errors
    /// With all that is wrong.
    pub fn check(&self, lock: &Lock) -> Result<Checked, Invalid> {
        let mut problems = check(&self.settings, lock);
        if self.resource_lock != LEASES {
            let message = format!("{:?} given, expected {LEASES:?}", self.resource_lock);
            problems.push(Problem { flag: flag::RESOURCE_LOCK, message });
        }
        if problems.is_empty() {
            Ok(Checked { settings: self.settings, lock: lock.clone() })
        } else {
            Err(Invalid(problems))
        }
    }
}

/// Options that make sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    pub(super) settings: Settings,
    pub(super) lock: Lock,
}

/// Options that do not make sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Invalid(pub Vec<Problem>);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("leader election cannot work with these flags:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

/// A name that no other process has: the host's name and a random UUID, as client-go makes it.
///
/// # Errors
/// When the host has no name.
pub fn identity() -> io::Result<String> {
    let host = hostname::get()?;
    Ok(format!("{}_{}", host.to_string_lossy(), uuid()))
}

/// A random UUID, version 4. Hashers of the standard library are keyed by the operating system's random numbers.
fn uuid() -> String {
    let random = || u128::from(RandomState::new().build_hasher().finish());
    let bits = (random() << 64) | random();
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let digits = format!("{bits:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_the_host_and_a_random_uuid() {
        let (one, other) = (identity().unwrap(), identity().unwrap());
        assert_ne!(one, other);
        let (host, uuid) = one.rsplit_once('_').unwrap();
        assert_eq!(host, hostname::get().unwrap().to_string_lossy());
        let parts: Vec<&str> = uuid.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{uuid}");
        assert!(parts.concat().bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
        assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "version 4: {uuid}");
    }

    #[test]
    fn another_kind_of_lock_is_refused_with_everything_else_that_is_wrong() {
        let mut options = Options::new("kube-system", "loadline");
        assert!(options.check(&options.lock("host_1")).is_ok());
        options.resource_lock = "endpoints".into();
        options.resource_namespace = String::new();
        let invalid = options.check(&options.lock("host_1")).unwrap_err();
        assert_eq!(
            invalid.to_string(),
            "leader election cannot work with these flags:\n  \
             --leader-elect-resource-namespace: \"\" given, expected a DNS label: lower-case letters, digits and '-', at \
             most 63 characters\n  \
             --leader-elect-resource-lock: \"endpoints\" given, expected \"leases\""
        );
    }
}

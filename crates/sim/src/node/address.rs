//! Which address does a pod get? The lowest of its node that no other pod has.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

/// The last numbers a pod may get; 0, 1 and 255 have other uses.
const FIRST: u8 = 2;
const LAST: u8 = 254;

#[derive(Debug, Default)]
pub struct Addresses(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By the identity of the pod.
    given: HashMap<String, (String, u8)>,
    /// By network.
    taken: HashMap<String, BTreeSet<u8>>,
}

impl Addresses {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The address of a pod; the same when asked again. None when the network is full.
    pub fn give(&self, net: &str, uid: &str) -> Option<String> {
        self.with(|state| {
            if let Some((net, last)) = state.given.get(uid) {
                return Some(format!("{net}.{last}"));
            }
            let taken = state.taken.entry(net.to_owned()).or_default();
            let last = (FIRST..=LAST).find(|n| !taken.contains(n))?;
            taken.insert(last);
            state.given.insert(uid.to_owned(), (net.to_owned(), last));
            Some(format!("{net}.{last}"))
        })
    }

    /// Remembers an address a pod already has, from before this process.
    pub fn keep(&self, uid: &str, ip: &str) {
        let Some((net, last)) = ip.rsplit_once('.') else { return };
        let Ok(last) = last.parse() else { return };
        self.with(|state| {
            if !state.given.contains_key(uid) {
                state.taken.entry(net.to_owned()).or_default().insert(last);
                state.given.insert(uid.to_owned(), (net.to_owned(), last));
            }
        });
    }

    /// Takes back the address of a pod that is gone.
    pub fn take_back(&self, uid: &str) {
        self.with(|state| {
            if let Some((net, last)) = state.given.remove(uid)
                && let Some(taken) = state.taken.get_mut(&net)
            {
                taken.remove(&last);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_unique_stable_and_given_again_after_their_pod_is_gone() {
        let addresses = Addresses::default();
        assert_eq!(addresses.give("10.64.0", "a").as_deref(), Some("10.64.0.2"));
        assert_eq!(addresses.give("10.64.0", "b").as_deref(), Some("10.64.0.3"));
        assert_eq!(addresses.give("10.64.0", "a").as_deref(), Some("10.64.0.2"));
        addresses.take_back("a");
        assert_eq!(addresses.give("10.64.0", "c").as_deref(), Some("10.64.0.2"));
        addresses.keep("d", "10.64.0.4");
        assert_eq!(addresses.give("10.64.0", "e").as_deref(), Some("10.64.0.5"));
    }

    #[test]
    fn a_full_network_gives_none() {
        let addresses = Addresses::default();
        for i in 0..253 {
            assert!(addresses.give("10.64.0", &i.to_string()).is_some());
        }
        assert_eq!(addresses.give("10.64.0", "one more"), None);
    }
}

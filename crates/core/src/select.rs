//! Which ones? Label selectors, node selectors and affinity, taints and tolerations.
//!
//! The types are those of the Kubernetes API, under their JSON names. What is asked often is prepared once:
//! [`LabelSelector`] becomes a [`Selector`], a pod's node affinity a [`node::Required`] and a
//! [`node::Preferred`]; a prepared value answers for any number of nodes without parsing again.
//!
//! A selector that is invalid matches nothing; it never matches by accident. Who prepares it is told why.

pub mod label;
pub mod node;
mod parse;
pub mod taint;

pub use label::{LabelSelector, Op, Requirement, Selector};
pub use taint::{Taint, Toleration};

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

/// Anything labels can be looked up in.
pub trait Lookup {
    /// The value of a label, if it is there.
    fn value(&self, key: &str) -> Option<&str>;
}

impl Lookup for BTreeMap<String, String> {
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl<S: BuildHasher> Lookup for HashMap<String, String, S> {
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl<L: Lookup + ?Sized> Lookup for &L {
    fn value(&self, key: &str) -> Option<&str> {
        (**self).value(key)
    }
}

#[cfg(test)]
mod tests;

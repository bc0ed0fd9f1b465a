//! Which ones? Label selectors, node selectors and affinity, taints and tolerations.
//!
//! The types are those of the Kubernetes API, under their JSON names. What is asked often is prepared once:
//! [`LabelSelector`] becomes a [`Selector`], a pod's node affinity a [`node::Required`] and a [`node::Preferred`]; a prepared value answers for any number of nodes without parsing again.
//!
//! A selector that is invalid matches nothing; it never matches by accident. Who prepares it is told why.

pub mod node;
pub mod taint;

pub use loadline_machinery::label::{self, LabelSelector, Lookup, Op, Requirement, Selector};
pub use taint::{Taint, Toleration};

#[cfg(test)]
mod tests;

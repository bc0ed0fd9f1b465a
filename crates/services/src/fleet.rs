//! What runs where in a fleet? Decided in the hub, from what its objects say of the members.
//!
//! | question | module |
//! |---|---|
//! | which clusters does a placement of Open Cluster Management select | [`placement`] |
//! | which clusters get how many replicas of what Karmada binds | [`binding`] |
//! | how many replicas fit in a member, asked over gRPC | [`estimators`] |
//! | how much of a member is requested and used, told to the hub | [`publish`] |

pub mod binding;
pub mod estimators;
pub mod placement;
pub mod publish;

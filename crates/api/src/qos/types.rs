//! How are the objects of crane's ensurance group written? Their definitions are made of these types.
//!
//! Field names, defaults and limits are crane's. What its webhook checks on creation is checked by the schema, on
//! creation and on change alike: by a limit or a pattern where one can say it, else by a rule with its own message. Lists
//! and texts have generous ends, named where they are, because the API server reckons what a rule costs at worst and
//! refuses one it cannot bound.
//!
//! | question | module |
//! |---|---|
//! | which figures of a node, and which line? | [`node`] |
//! | which pods? | [`pod`] |
//! | what is done? | [`action`] |
//! | what do they share? | [`parts`] |

pub mod action;
pub mod node;
pub mod parts;
pub mod pod;

pub use action::AvoidanceAction;
pub use node::NodeQOS;
pub use pod::PodQOS;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nothing is reported back.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct NoStatus {}

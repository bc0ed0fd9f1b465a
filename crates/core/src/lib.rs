//! Decisions as pure functions: no async, no clock, no Kubernetes crates.
//!
//! Everything Loadline decides, it decides here: facts in, an answer and its reasons out, the same answer for
//! the same facts. Watching, writing, measuring and waiting happen elsewhere; time and chance are arguments.
//! The live loop, a dry run, the simulator and the tests therefore call the very same functions.
//!
//! # The concepts
//!
//! A **quantity** is an amount as people write it, `100m` or `1.5Gi`, kept exact. For arithmetic in bulk a
//! list of quantities becomes a vector of **amounts**: CPU in thousandths, memory in bytes, the rest in
//! pieces, one place per **resource**, extended ones included.
//!
//! What a **pod** asks for is not written in one place. Containers add up, init containers take turns,
//! sidecars stay, the sandbox costs something, a resize may be half done; its effective **requests** are the
//! one vector all of this comes to.
//!
//! Where it may go is said by **selectors**: labels it demands of its node or likes there, and **taints** on
//! the node that keep it away unless it **tolerates** them.
//!
//! A decision never looks at the live cluster but at a **snapshot**: lean **views** of nodes and pods, frozen
//! and numbered. And it never just says no: it gives a **reason**, a piece of data that reads as one sentence
//! everywhere, and on request a **report** of everything it found on the way.
//!
//! # Which module answers which question
//!
//! | question | module |
//! |---|---|
//! | How much is `1.5Gi`, exactly? How is it written? | [`quantity`] |
//! | Does it fit, what is lacking, how many more? | [`resources`] |
//! | What does this pod really ask for? | [`requests`] |
//! | Which object is it? | [`object`] |
//! | Which labels, nodes, taints match? | [`select`] |
//! | What is the cluster like right now? | [`view`] |
//! | What is used, what is on its way, what is gone? | [`ledger`] |
//! | How loaded is it, and may more come aboard? | [`load`] |
//! | What do the pods of a workload use? | [`learn`] |
//! | Where does this pod go? | [`cycle`] |
//! | How many more would fit? | [`estimate`] |
//! | Which clusters get how many replicas? | [`divide`] |
//! | Which clusters of a fleet? | [`place`] |
//! | How much of a member of a fleet is taken, and what is the hub told? | [`member`] |
//! | Whose load is taken off a node that has too much, and how much? | [`qos`] |
//! | Which pods should leave which nodes, and where would they go? | [`rebalance`] |
//! | All of it as one account, to decide and charge on | [`cluster`] |
//! | Who of several candidates leads? | [`lease`] |
//! | What is wrong with a cluster, and what is to be done? | [`doctor`] |
//! | Why was it decided so? | [`explain`] |
//!
//! # Agreement with Kubernetes
//!
//! Where Kubernetes has an answer, ours is the same, bit for bit: `vectors` holds answers recorded from
//! its own libraries, and the tests compare every one. Where we differ on purpose, the module says so and why.
//!
//! ```
//! use loadline_core::requests::{self, Pod, Options};
//! use loadline_core::resources::Names;
//!
//! let pod: Pod = serde_json::from_str(r#"{"spec": {
//!     "containers": [{"name": "web", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}],
//!     "initContainers": [{"name": "prepare", "resources": {"requests": {"cpu": "2"}}}]
//! }}"#)?;
//! let mut names = Names::new();
//! let asked = names.amounts(&requests::requests(&pod, Options::default()));
//! let free = names.amounts(&[("cpu", "1500m"), ("memory", "8Gi")].map(|(n, q)| (n.into(), q.parse().unwrap())).into());
//! let lacking: Vec<_> = asked.lacking(&free).map(|l| names.name(l.resource)).collect();
//! assert_eq!(lacking, ["cpu"]);
//! # Ok::<(), serde_json::Error>(())
//! ```

pub mod cluster;
pub mod cycle;
pub mod divide;
pub mod doctor;
pub mod estimate;
pub mod explain;
#[cfg(any(test, feature = "test-util"))]
pub mod fuzz;
pub mod learn;
pub mod lease;
pub mod ledger;
pub mod load;
pub mod member;
pub mod object;
pub mod place;
pub mod qos;
pub mod rebalance;
pub mod requests;
pub mod resources;
pub mod select;
pub mod view;

pub use loadline_machinery::quantity;
use loadline_machinery::wire;

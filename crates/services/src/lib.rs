//! The long-running components, and the one floor they stand on.
//!
//! Each follows the same pattern: watches bring events, one task takes them in and publishes a snapshot that never
//! changes, an engine of `core` decides, writes go out, and whoever looks is told. A component is `Options` and
//! `run(ctx, options)`; its `run`, read from top to bottom, shows what it watches, which engine it asks, what it writes
//! and what it tells. It says when it is ready and how old what it knows is, and ends when it is told to.
//!
//! | what | module |
//! |---|---|
//! | reading and writing a cluster | [`cluster`] |
//! | where measurements come from | [`sources`] |
//! | a node from within: its container runtime | [`node`] |
//! | settings that change while it runs | [`reload`] |
//! | asking it why while it runs | [`ask`] |
//! | what is counted, under which names | [`metrics`] |
//! | serving: TLS, limits, an orderly end | [`serve`] |
//! | how many replicas really fit, over gRPC | [`estimator`] |
//! | where a new pod goes | [`scheduler`] |
//! | what nodes bear for schedulers that read annotations | [`annotator`] |
//! | what the pods of a workload really use | [`recommender`] |
//! | what keeps a node from being overrun | [`agent`] |
//! | who should leave a node that is over its line | [`rebalance`] |
//! | what runs where in a fleet of clusters | [`fleet`] |
//! | what is wrong, asked once | [`doctor`] |
//! | what is left when all of them are gone | [`cleanup`] |

pub mod agent;
pub mod annotator;
pub mod ask;
pub mod cleanup;
pub mod cluster;
pub mod ctx;
pub mod dashboard;
pub mod doctor;
pub mod estimator;
pub mod fleet;
mod jumps;
pub mod metrics;
pub mod node;
pub mod rebalance;
pub mod recommender;
pub mod reload;
pub mod scheduler;
pub mod serve;
pub mod sources;

pub use ctx::Ctx;

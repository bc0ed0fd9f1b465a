//! Kubernetes objects from files: read, checked, and made into what engines decide about.
//!
//! A **manifest** is an object as somebody wrote it, and where: in which file, in which document of it, as which item of a
//! list. Files are what `kubectl get -o yaml` or `-o json` prints, or what `kubectl apply` takes. Everything is looked at
//! before anything is answered: an input is either complete, with warnings, or it is refused with every [`Problem`]
//! at once, each with its file, document and path.
//!
//! What is *wanted* (the spec of a pod) must be right. What was only *observed* (a node's status, a metric) may be
//! anything, since production is like that: what cannot be read there is left out, with a warning. Nothing unknown ever
//! becomes a zero.
//!
//! # Layers
//!
//! | step | what is answered | module |
//! |---|---|---|
//! | text | which documents are there, and what do they say? | `text` |
//! | objects | of which kind is each, does it have the shape of its kind? | [`Manifests`], [`Kind`] |
//! | definitions | would the API server take it, and with which defaults? | `definition` |
//! | input | what do all of them describe together? | [`ScheduleInput`], [`EstimateInput`], [`DivideInput`], [`PlaceInput`], [`ProtectInput`], [`RebalanceInput`], [`PolicyInput`], [`ConfigurationInput`], [`DoctorInput`] |
//!
//! # Example
//!
//! ```
//! use loadline_manifests::{Manifests, ScheduleInput};
//!
//! let text = r#"
//! apiVersion: v1
//! kind: Node
//! metadata: {name: n1}
//! status:
//!   allocatable: {cpu: "8", memory: 32Gi, pods: "110"}
//! ---
//! apiVersion: v1
//! kind: Pod
//! metadata: {name: web}
//! spec:
//!   containers: [{name: main, resources: {requests: {cpu: 500m}}}]
//! "#;
//! let manifests = Manifests::parse("cluster.yaml", text, ScheduleInput::KINDS);
//! let mut input = ScheduleInput::read(manifests, jiff::Timestamp::UNIX_EPOCH)?;
//!
//! let pod = input.cluster.view(&input.pods[0].facts);
//! let decided = input.cluster.decide(&pod);
//! assert_eq!(decided.node().map(|node| &*node.name), Some("n1"));
//!
//! let wrong = Manifests::parse("pod.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: 7}}", ScheduleInput::KINDS);
//! let problems = ScheduleInput::read(wrong, jiff::Timestamp::UNIX_EPOCH).unwrap_err();
//! assert_eq!(
//!     problems.to_string(),
//!     "pod.yaml: document 1: metadata.name: expected a string, found the number 7"
//! );
//! # Ok::<(), loadline_manifests::Problems>(())
//! ```

mod check;
mod cluster;
mod definition;
mod divide;
mod doctor;
mod estimate;
#[cfg(feature = "test-util")]
pub mod fuzz;
mod kind;
mod manifest;
mod parallel;
mod place;
mod policy;
mod problem;
mod protect;
mod rebalance;
#[cfg(feature = "test-util")]
pub mod sample;
mod schedule;
mod scheduler;
mod shape;
mod text;
mod workload;

pub use check::CheckInput;
pub use cluster::UnscheduledPod;
pub use divide::DivideInput;
pub use doctor::DoctorInput;
pub use estimate::EstimateInput;
pub use kind::Kind;
pub use manifest::{Manifest, Manifests};
pub use place::PlaceInput;
pub use policy::PolicyInput;
pub use problem::{Location, Problem, Problems};
pub use protect::ProtectInput;
pub use rebalance::{RebalanceInput, RebalanceSettingsInput, Steady};
pub use schedule::ScheduleInput;
pub use scheduler::ConfigurationInput;

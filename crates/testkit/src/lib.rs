//! Test support: throw-away control planes made of real parts.
//!
//! | question | module |
//! |---|---|
//! | which real programs are there, and where? | [`parts`] |
//! | how is a container image made, without a daemon? | `image` |
//! | how do I get a running kube-apiserver for this test? | `control_plane` |
//! | how do I get one server of its own for this test? | `running` |
//! | how do I cut the line between a client and its server? | `line` |
//! | how do I stop a client in the middle of one certain request? | `gate` |
//! | how do I get a node that runs pods, and what they use? | `node` |
//! | how do I install our chart there? | `install` |
//! | do accounts have the rights their components were seen to use, and no others? | `privilege` |
//! | how do I get Karmada's scheduler and estimator? | `karmada` |
//! | how do I get Open Cluster Management's placement controller? | `ocm` |
//! | where are the sources of another project? | `sources` |
//! | how does a child process end when the test is killed? | `guard` |
//! | how do I ask an HTTPS server one thing without a client library? | `http` |
//!
//! A test that needs a real API server starts like this; without the parts it says so and ends:
//!
//! ```no_run
//! use loadline_testkit::ControlPlane;
//!
//! # fn test() {
//! let Some(plane) = ControlPlane::start_or_skip() else { return };
//! let reply = plane.request("GET", "/api/v1/namespaces", None).unwrap();
//! assert_eq!(reply.status, 200);
//! # }
//! ```
//!
//! Many tests in one binary share one control plane through a static. A static is never dropped; its processes
//! end with the test process all the same (see `guard`).
//!
//! ```no_run
//! use loadline_testkit::{ControlPlane, WORKLOADS};
//! use std::sync::LazyLock;
//!
//! static PLANE: LazyLock<Option<ControlPlane>> =
//!     LazyLock::new(|| ControlPlane::setup().controllers(WORKLOADS).start_or_skip());
//!
//! # fn test() {
//! let Some(plane) = PLANE.as_ref() else { return };
//! # }
//! ```
//!
//! A node that runs pods, and the metrics API with what they use:
//!
//! ```no_run
//! use loadline_testkit::{ControlPlane, MetricsServer, RealNode};
//!
//! # fn test() -> Result<(), loadline_testkit::Error> {
//! let Some(plane) = ControlPlane::start_or_skip() else { return Ok(()) };
//! let Some(node) = RealNode::start_or_skip(&plane) else { return Ok(()) };
//! node.run("busy", &["burn", "500"])?;
//! let metrics = MetricsServer::start(&plane, &node)?;
//! assert!(metrics.node(&node).is_some_and(|usage| usage.cpu_milli > 0.0));
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "image")]
pub mod image;
pub mod parts;

#[cfg(feature = "control-plane")]
mod certs;
#[cfg(feature = "control-plane")]
pub mod control_plane;
#[cfg(feature = "control-plane")]
pub mod gate;
#[cfg(feature = "control-plane")]
pub mod guard;
#[cfg(feature = "control-plane")]
pub mod http;
#[cfg(feature = "control-plane")]
pub mod install;
#[cfg(feature = "control-plane")]
pub mod karmada;
#[cfg(feature = "control-plane")]
pub mod line;
#[cfg(feature = "control-plane")]
pub mod node;
#[cfg(feature = "control-plane")]
pub mod ocm;
#[cfg(feature = "control-plane")]
pub mod privilege;
#[cfg(feature = "control-plane")]
pub mod running;
#[cfg(feature = "control-plane")]
mod sources;

#[cfg(feature = "control-plane")]
pub use control_plane::{ControlPlane, Error, Setup, WORKLOADS};
#[cfg(feature = "control-plane")]
pub use gate::{Gate, Kept, Wanted};
#[cfg(feature = "control-plane")]
pub use line::Line;
#[cfg(feature = "control-plane")]
pub use node::{MetricsServer, NodeRoot, RealNode};
#[cfg(feature = "control-plane")]
pub use running::Running;

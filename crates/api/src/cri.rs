//! What is asked of a container runtime? The messages of its interface (CRI), as far as they are used here.
//!
//! The schema is `proto/cri.proto`; the code is made from it by `cargo xtask codegen`.

#[rustfmt::skip]
#[allow(missing_docs, clippy::pedantic, reason = "generated")]
mod generated {
    pub mod v1;
}

pub use generated::v1;

/// The labels a kubelet gives containers.
pub mod label {
    /// The namespace of the pod.
    pub const NAMESPACE: &str = "io.kubernetes.pod.namespace";
    /// The name of the pod.
    pub const POD: &str = "io.kubernetes.pod.name";
    /// The uid of the pod.
    pub const UID: &str = "io.kubernetes.pod.uid";
    /// The name of the container.
    pub const CONTAINER: &str = "io.kubernetes.container.name";
}

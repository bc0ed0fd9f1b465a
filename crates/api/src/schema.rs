//! Which definitions do our kinds have? Made from Rust types, so that what is documented, typed and refused is one thing.
//!
//! The types are in [`crate::ocm::types`] and [`crate::qos::types`], what they share in [`parts`]. [`files`] is what
//! `cargo xtask codegen crds` writes to `deploy/crds`, and a test holds the files there to it.
//!
//! A new kind needs an empty file there before its first definition is made: the files are part of this crate.
//!
//! A derived definition is adjusted here where the derive cannot say what is meant; each adjustment tells why.

mod adjust;
pub mod parts;

use crate::{ocm, qos, recommendation};
use adjust::{Kind, Spec};
use kube::CustomResourceExt as _;

/// The command that writes the files.
pub const COMMAND: &str = "cargo xtask codegen crds";

/// Every definition: the name of its file, and its text.
///
/// # Errors
/// When a definition cannot be written as YAML, which would be a mistake in the types.
pub fn files() -> Result<Vec<(String, String)>, Box<dyn std::error::Error>> {
    let mut files = Vec::new();
    for kind in kinds() {
        let definition = kind.definition()?;
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let options = serde_saphyr::ser_options! { folded_wrap_chars: 110 };
        let text = serde_saphyr::to_string_with_options(&definition, options)?;
        let header = format!("# Generated from the types in {}; to write it anew: {COMMAND}\n", kind.source);
        files.push((format!("{plural}.yaml"), format!("{header}{text}")));
    }
    Ok(files)
}

fn kinds() -> [Kind; 10] {
    let ocm = |definition, spec| Kind {
        definition,
        spec,
        source: "crates/api/src/ocm/types.rs",
        status: true,
        nullable: &[],
        also: None,
    };
    let qos = |definition| Kind {
        definition,
        spec: Spec::Required,
        source: "crates/api/src/qos/types.rs",
        status: false,
        nullable: &[],
        also: None,
    };
    [
        Kind { nullable: &["validUntil"], ..ocm(ocm::types::AddOnPlacementScore::crd(), Spec::None) },
        Kind { nullable: &["timeAdded"], ..ocm(ocm::types::ManagedCluster::crd(), Spec::Optional) },
        ocm(ocm::types::ManagedClusterSetBinding::crd(), Spec::Optional),
        ocm(ocm::types::ManagedClusterSet::crd(), Spec::Optional),
        ocm(ocm::types::PlacementDecision::crd(), Spec::None),
        Kind {
            nullable: &["numberOfClusters", "tolerationSeconds"],
            also: Some("v1alpha1"),
            ..ocm(ocm::types::Placement::crd(), Spec::Required)
        },
        qos(qos::types::NodeQOS::crd()),
        qos(qos::types::PodQOS::crd()),
        qos(qos::types::AvoidanceAction::crd()),
        Kind {
            source: "crates/api/src/recommendation/types.rs",
            ..qos(recommendation::types::Recommendation::crd())
        },
    ]
}

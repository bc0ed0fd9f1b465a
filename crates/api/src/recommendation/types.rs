//! How is a Recommendation of crane's analysis group written? Its definition is made of these types.
//!
//! Field names are crane's. What was recommended is a text in its status, and older forms of it are kept as they are: the
//! status is not held to a form.

use crate::schema::parts::Anything;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// For which workload, and what becomes of it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "analysis.crane.io",
    version = "v1alpha1",
    kind = "Recommendation",
    namespaced,
    doc = "What the containers of a workload should ask for.",
    plural = "recommendations",
    shortname = "recommend",
    status = "Anything"
)]
pub struct RecommendationSpec {
    /// The workload.
    pub target_ref: TargetRef,
    /// What is recommended: `Resource`, `Replicas`, ….
    pub r#type: String,
    /// When it is made anew, for crane's own controller.
    pub completion_strategy: Option<Anything>,
    /// Whether the workload is changed: `Status`, `StatusAndAnnotation` or `Auto`.
    pub adoption_type: Option<String>,
}

/// A workload.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    pub api_version: Option<String>,
    pub kind: Option<String>,
    /// Without, that of the recommendation.
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub field_path: Option<String>,
}

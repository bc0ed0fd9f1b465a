//! How does a claim get the volume that was decided on? By what is written on the volume or on the claim; the controllers
//! of Kubernetes and the provisioners do the rest.

use super::watched::{Claims, Volumes};
use crate::cluster::Writer;
use crate::cluster::resource::{CLAIMS, VOLUMES};
use crate::cluster::write::Patch;
use loadline_api::Error;
use loadline_api::context::{Claim, PersistentVolume, SELECTED_NODE};
use loadline_core::object::{Key, Meta};
use serde_json::{Value, json};
use std::sync::Arc;

/// Set on a volume that was not meant for its claim by who made it: it may be given away again.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Something to write for a claim. It fails if the object has changed since it was looked at.
#[derive(Clone, Debug)]
pub(super) enum Provision {
    /// The volume is this claim's.
    Give { volume: Meta, claim: Meta, meant: bool },
    /// A volume is to be made for this node.
    Make { claim: Meta, node: Arc<str> },
}

/// An object as the server has it after a write.
#[derive(Debug)]
pub(super) enum Provided {
    Volume(Meta, Result<Box<PersistentVolume>, Error>),
    Claim(Meta, Result<Box<Claim>, Error>),
}

/// Writes one after the other, up to the first that fails.
pub(super) async fn provide(writer: &Writer, wanted: &[Provision]) -> (Vec<Provided>, Option<String>) {
    let mut written = Vec::new();
    for write in wanted {
        let (part, key, patch) = write.patch();
        match writer.patch(part.whole(), &key, Patch::Merge, &patch).await {
            Ok(answer) => written.extend(match write {
                Provision::Give { .. } => {
                    answer.read::<Volumes>().map(|(meta, read)| Provided::Volume(meta, read))
                }
                Provision::Make { .. } => {
                    answer.read::<Claims>().map(|(meta, read)| Provided::Claim(meta, read.map(Box::new)))
                }
            }),
            Err(error) => return (written, Some(format!("{}: {error}", key.name))),
        }
    }
    (written, None)
}

impl Provision {
    fn patch(&self) -> (crate::cluster::Resource, Key, Value) {
        match self {
            Self::Give { volume, claim, meant } => {
                let mut patch = json!({"metadata": identity(volume), "spec": {"claimRef": {
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": &*claim.uid,
                    "namespace": &*claim.key.namespace, "name": &*claim.key.name,
                    "resourceVersion": claim.revision.map(|revision| revision.to_string()),
                }}});
                if !meant {
                    patch["metadata"]["annotations"] = json!({BOUND_BY_CONTROLLER: "yes"});
                }
                (VOLUMES, volume.key.clone(), patch)
            }
            Self::Make { claim, node } => {
                let mut metadata = identity(claim);
                metadata["annotations"] = json!({SELECTED_NODE: &**node});
                (CLAIMS, claim.key.clone(), json!({"metadata": metadata}))
            }
        }
    }
}

fn identity(of: &Meta) -> Value {
    let mut out = json!({});
    if !of.uid.is_empty() {
        out["uid"] = json!(&*of.uid);
    }
    if let Some(revision) = of.revision {
        out["resourceVersion"] = json!(revision.to_string());
    }
    out
}

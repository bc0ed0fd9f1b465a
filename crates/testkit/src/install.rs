//! How is our chart installed on a real node, as anybody would install it?
//!
//! The image is made from a program that is there already, Helm is the real one. What a node of a test lacks of a cluster is said
//! by values: there is no service network, so pods are told where the API server is; and the agent sees the pods of this node alone
//! ([`NodeRoot`]), not whatever else the machine does.

use crate::control_plane::{Error, Setup, WORKLOADS};
use crate::image::Image;
use crate::parts::{self, Missing};
use crate::{ControlPlane, NodeRoot, RealNode};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the image is called, and its tag.
pub const IMAGE: (&str, &str) = ("loadline.test/loadline", "1");

/// Where the chart is installed.
pub const NAMESPACE: &str = "loadline-system";

/// A control plane with all that an installed chart relies on.
#[must_use]
pub fn setup() -> Setup {
    let more = ["daemonset-controller", "job-controller"];
    ControlPlane::setup().controllers(WORKLOADS).controllers(&more).service_accounts().scheduler(&[])
}

/// Our chart.
#[must_use]
pub fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart")
}

/// Helm, pointed at this control plane, with its files in the plane's folder.
///
/// # Errors
/// When Helm is not on this machine.
pub fn helm(plane: &ControlPlane) -> Result<Command, Missing> {
    let mut helm = Command::new(parts::find("helm")?);
    helm.env("KUBECONFIG", plane.kubeconfig());
    for home in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        helm.env(home, plane.folder().join("helm"));
    }
    Ok(helm)
}

/// Makes the image of this program, without what debuggers need, and gives it to the node.
///
/// # Errors
/// When it cannot be read or made.
pub fn import(node: &RealNode<'_>, program: &Path) -> Result<(), Error> {
    let folder = tempfile::Builder::new().prefix("loadline-").tempdir();
    let folder = folder.map_err(Error::io("make a temporary folder"))?;
    let small = folder.path().join("loadline");
    let stripped = Command::new("strip").arg("-o").arg(&small).arg(program).status();
    if !stripped.is_ok_and(|status| status.success()) {
        fs::copy(program, &small).map_err(Error::io("copy a program"))?;
    }
    let image = Image::of_program(&small, &format!("{}:{}", IMAGE.0, IMAGE.1));
    let (archive, _) = image.and_then(|image| image.archive()).map_err(Error::io("make an image"))?;
    let file = folder.path().join("image.tar");
    fs::write(&file, archive).map_err(Error::io("write an image"))?;
    node.import(&file)
}

/// What has to be said on such a node; everything else is as the chart has it.
#[must_use]
pub fn values(plane: &ControlPlane, node: &RealNode<'_>, root: &NodeRoot, state: &Path) -> Value {
    let server = plane.address_for_pods();
    json!({
        "image": {"repository": IMAGE.0, "tag": IMAGE.1, "pullPolicy": "Never"},
        "kubernetes": {"host": server.ip().to_string(), "port": server.port()},
        "agent": {
            "interval": "1s",
            "procDir": root.path().join("proc"),
            "runtimeSocket": node.socket(),
            "stateDir": state,
            "cgroupRoot": node.cgroup(),
        },
    })
}

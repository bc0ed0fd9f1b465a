//! How is kubelet told about the control plane, containerd and the cgroup it may use?

use super::{NAME, containerd, write};
use crate::ControlPlane;
use crate::control_plane::Error;
use crate::guard::Guard;
use crate::parts;
use crate::running::free_ports;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::Path;

/// Starts kubelet in the namespaces of `runtime`, but on the machine's network: it talks to the API server.
pub(super) fn start(
    plane: &ControlPlane,
    folder: &Path,
    cgroup: &str,
    runtime: &Guard,
) -> Result<Guard, Error> {
    // Of its own, since what a guard ends leaves no folder, and containerd still writes to the other.
    let folder_of_its_own = folder.join("kubelet");
    let root = folder_of_its_own.join("root");
    fs::create_dir_all(&root).map_err(Error::io("make a folder"))?;
    let config = folder_of_its_own.join("config.json");
    write(&config, &settings(plane, folder, cgroup)?.to_string())?;

    let gone = || Error::io("find containerd's process")(io::Error::from(io::ErrorKind::NotFound));
    let target = containerd::first_process(runtime).ok_or_else(gone)?;
    let args = [
        format!("--target={target}"),
        "--mount".into(),
        "--pid".into(),
        parts::find("kubelet")?.display().to_string(),
        format!("--config={}", config.display()),
        format!("--kubeconfig={}", plane.kubeconfig().display()),
        format!("--root-dir={}", root.display()),
        format!("--hostname-override={NAME}"),
    ];
    Guard::start("kubelet", &folder_of_its_own, Path::new("nsenter"), &args)
        .map_err(Error::io("start kubelet"))
}

fn settings(plane: &ControlPlane, folder: &Path, cgroup: &str) -> Result<Value, Error> {
    let [port, healthz] = free_ports()?;
    Ok(json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": port,
        "healthzPort": healthz,
        "tlsCertFile": plane.folder().join("serving.crt"),
        "tlsPrivateKeyFile": plane.folder().join("serving.key"),
        // Who may ask it is what the API server says.
        "authentication": {"anonymous": {"enabled": false}, "webhook": {"enabled": true}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": format!("unix://{}", containerd::socket(folder).display()),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{cgroup}"),
        "failCgroupV1": false,
        "failSwapOn": false,
        "podLogsDir": folder.join("kubelet/logs"),
        "resolvConf": "",
        // The machine is not the node's: its memory, disk and rules are left as they are, and what others do with
        // them evicts no pod.
        "enforceNodeAllocatable": [],
        "evictionHard": {},
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": false,
        "oomScoreAdj": 0,
    }))
}

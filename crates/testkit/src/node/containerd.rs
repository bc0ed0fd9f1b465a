//! How is containerd kept apart from the machine, and how does it end with everything it started?

use super::{Addresses, IMAGE, write};
use crate::control_plane::Error;
use crate::guard::Guard;
use crate::{parts, running};
use serde_json::json;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The new namespaces; the first process in them is killed with whoever made them, and the kernel kills the rest.
const NAMESPACES: &[&str] = &["--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"];

/// `sh -c PREPARE sh CGROUP PROGRAM ARGS...`, within the namespaces: makes the cgroup in every hierarchy, and
/// replaces what several nodes, or a node and the machine's own containerd, would otherwise share.
///
/// Where there is one hierarchy for all controllers, a cgroup has those that the one above hands down, so all are.
/// Pods come before the machine's other work, by the largest weight there is: tests ask what a pod uses, not what others
/// have left for it.
///
/// kubelet sets a few of the kernel's values, which are those of the whole machine; here it finds files that have them.
const PREPARE: &str = r#"
set -eu
cgroup=$1
shift
top=/sys/fs/cgroup
if [ -e $top/cgroup.controllers ]; then
    mkdir "$top/$cgroup"
    for controller in $(cat $top/cgroup.controllers); do
        echo "+$controller" >$top/cgroup.subtree_control || true
    done
    echo 10000 >"$top/$cgroup/cpu.weight"
else
    for hierarchy in $top/*/; do mkdir -p "$hierarchy$cgroup"; done
    echo 262144 >"$top/cpu/$cgroup/cpu.shares"
fi
for path in /run/containerd /var/lib/cni /var/lib/kubelet /var/log/containers; do
    mkdir -p "$path"
    mount -t tmpfs tmpfs "$path"
done
while read -r path value; do
    echo "$value" >"/var/lib/kubelet/$value"
    [ ! -e "/proc/sys/$path" ] || mount --bind "/var/lib/kubelet/$value" "/proc/sys/$path"
done <<END
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
END
exec "$@"
"#;

/// Removes the cgroups, deepest first, as soon as the last process has left them.
const REMOVE: &str = r#"
for _ in $(seq 300); do
    left=$(find /sys/fs/cgroup -maxdepth 2 -type d -name "$cgroup")
    [ -n "$left" ] || break
    find $left -depth -type d -exec rmdir {} \; 2>/dev/null
    sleep 0.1
done
"#;

/// Where it answers.
pub(super) fn socket(folder: &Path) -> PathBuf {
    folder.join("containerd.sock")
}

/// Starts containerd and waits until it answers.
pub(super) fn start(folder: &Path, cgroup: &str, addresses: Addresses) -> Result<Guard, Error> {
    let config = folder.join("containerd.toml");
    write(&config, &settings(folder)?)?;
    let network = folder.join("cni");
    fs::create_dir(&network).map_err(Error::io("make a folder"))?;
    let range = json!({"subnet": addresses.subnet(), "rangeEnd": addresses.last()});
    let ipam = json!({"type": "host-local", "dataDir": folder.join("ipam"), "ranges": [[range]],
        "routes": [{"dst": "0.0.0.0/0"}]});
    let plugins = json!({"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": ipam}]});
    write(&network.join("pods.conflist"), &plugins.to_string())?;

    let mut args: Vec<String> = NAMESPACES.iter().map(|&flag| flag.to_owned()).collect();
    args.extend(["sh", "-c", PREPARE, "sh", cgroup].map(str::to_owned));
    args.extend([parts::find("containerd")?.display().to_string(), format!("--config={}", config.display())]);
    let afterwards = format!("cgroup={cgroup}\n{REMOVE}");
    let guard = Guard::start_with_afterwards("containerd", folder, Path::new("unshare"), &args, &afterwards);
    let guard = guard.map_err(Error::io("start containerd"))?;
    running::wait(&guard, || UnixStream::connect(socket(folder)).is_ok())?;
    Ok(guard)
}

/// The first process in the namespaces: the only child of the one that made them.
pub(super) fn first_process(guard: &Guard) -> Option<u32> {
    let maker = guard.pid()?;
    let children = fs::read_to_string(format!("/proc/{maker}/task/{maker}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn settings(folder: &Path) -> Result<String, Error> {
    let runc = parts::find("runc")?;
    let plugins = parts::find("ptp")?;
    let plugins = plugins.parent().unwrap_or(Path::new("/")).display();
    let (runc, socket, folder) = (runc.display(), socket(folder), folder.display());
    let socket = socket.display();
    // Adjusting OOM scores below our own takes a right that machines of tests often lack, and without the setting
    // every sandbox fails. The plain snapshotter copies files, which works on every file system.
    Ok(format!(
        r#"
version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
address = "{socket}"

[ttrpc]
address = "{socket}.ttrpc"

[plugins."io.containerd.grpc.v1.cri"]
disable_apparmor = true
netns_mounts_under_state_dir = true
restrict_oom_score_adj = true
sandbox_image = "{IMAGE}"
stream_server_address = "0.0.0.0"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{folder}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"#
    ))
}

//! In which folder is a pod, a container, a figure?
//!
//! | driver | Guaranteed | Burstable |
//! |---|---|---|
//! | cgroupfs | `kubepods/pod<uid>` | `kubepods/burstable/pod<uid>` |
//! | systemd | `kubepods.slice/kubepods-pod<uid>.slice` | `kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice` |
//!
//! A slice has the names of all the slices it is in, joined by `-`; a `-` within a name becomes `_`. Version 2 has one tree; version 1
//! has one for each controller, in a folder of its name.

use crate::qos::pod::{Class, Origin};

/// Of cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// A tree for each controller.
    V1,
    /// One tree.
    V2,
}

/// How the kubelet names folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driver {
    /// As they are called.
    Cgroupfs,
    /// As slices of systemd.
    Systemd,
}

/// Whose waiting is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pressure {
    Cpu,
    Memory,
    Io,
}

/// What there is to read, or to write, about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Figure {
    /// How long its tasks ran, for [`cpu_usage_ns`](super::cpu_usage_ns).
    CpuUsage,
    /// How much CPU it may take, for [`quota`](super::quota).
    Quota,
    /// In which time; with version 2 the file of the quota.
    Period,
    /// How often that held it back, for [`throttled`](super::throttled).
    CpuStat,
    /// Its share of CPU that is short, for [`shares`](super::shares).
    Shares,
    /// Memory with page cache, for [`working_set`](super::working_set).
    MemoryUsed,
    /// What of it is what, for [`working_set`](super::working_set) and [`unreclaimable`](super::unreclaimable).
    MemoryStat,
    /// To be written: page cache is given back.
    Reclaim,
    /// Its processes.
    Processes,
    /// How much its tasks wait, for [`stalled`](crate::qos::collect::stalled). Version 1 has it on patched kernels only.
    Waiting(Pressure),
    /// One that only a metric knows of: its file, and with version 1 the controller that has it.
    Other { controller: &'static str, v1: &'static str, v2: &'static str },
}

/// How the tree of a node looks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub version: Version,
    pub driver: Driver,
    /// The folder the node's own tree begins in, as for a node that is itself a container; without slashes at the ends, and empty for
    /// most. It is named as it is, whatever the driver.
    pub outside: String,
    /// The kubelet's `--cgroup-root`, without slashes at the ends, and empty for most. The driver names its parts.
    pub root: String,
}

impl Layout {
    /// Which layouts are worth trying below a folder, the likeliest first; the one whose [`kubepods`](Self::kubepods) is there is it.
    #[must_use]
    pub fn candidates(version: Version, root: &str) -> Vec<Self> {
        let root = root.trim_matches('/');
        let of = |driver, outside: &str, root: &str| Self {
            version,
            driver,
            outside: outside.to_owned(),
            root: root.to_owned(),
        };
        let mut all = vec![of(Driver::Cgroupfs, "", root), of(Driver::Systemd, "", root)];
        if version == Version::V2 {
            // Whoever has version 2 has a new systemd, and installers follow it.
            all.reverse();
        }
        if !root.is_empty() {
            all.push(of(Driver::Systemd, root, ""));
        }
        all
    }

    /// The folder of all pods.
    #[must_use]
    pub fn kubepods(&self) -> String {
        self.folder(&[])
    }

    /// The folder of a pod, by [`folder_uid`]. None for one whose class is not known, since that is a part of its place, and for what
    /// cannot be a uid, so that no text leads elsewhere.
    #[must_use]
    pub fn pod(&self, class: Class, uid: &str) -> Option<String> {
        if !is_name(uid) {
            return None;
        }
        let pod = format!("pod{uid}");
        match class {
            Class::Unset => None,
            Class::Guaranteed => Some(self.folder(&[&pod])),
            Class::Burstable => Some(self.folder(&["burstable", &pod])),
            Class::BestEffort => Some(self.folder(&["besteffort", &pod])),
        }
    }

    /// The folders a container may have in the folder of its pod, the likeliest first. It depends on the runtime, which has been known to
    /// differ from the kubelet. None for what cannot be an id.
    #[must_use]
    pub fn container(&self, pod: &str, id: &str) -> Vec<String> {
        if !is_name(id) {
            return Vec::new();
        }
        let plain = [format!("{pod}/{id}"), format!("{pod}/crio-{id}")];
        let scope = |runtime: &str| format!("{pod}/{runtime}-{id}.scope");
        let scopes = [scope("cri-containerd"), scope("crio"), scope("docker")];
        match self.driver {
            Driver::Cgroupfs => plain.into_iter().chain(scopes).collect(),
            Driver::Systemd => scopes.into_iter().chain(plain).collect(),
        }
    }

    /// The file of a figure of a group, below where all cgroups are mounted.
    #[must_use]
    pub fn file(&self, group: &str, figure: Figure) -> String {
        let (controller, name) = self.place(figure);
        joined(&[controller, group, name])
    }

    /// All the places [`file`](Self::file) may be in, the likeliest first: with version 1 the controllers `cpu` and `cpuacct` may be mounted
    /// together, where nobody made links.
    #[must_use]
    pub fn files(&self, group: &str, figure: Figure) -> Vec<String> {
        let (controller, name) = self.place(figure);
        let mut controllers = vec![controller];
        if matches!(controller, "cpu" | "cpuacct") {
            controllers.extend(["cpu,cpuacct", "cpuacct,cpu"]);
        }
        controllers.into_iter().map(|controller| joined(&[controller, group, name])).collect()
    }

    /// The controller and the name of the file.
    fn place(&self, figure: Figure) -> (&'static str, &'static str) {
        match (self.version, figure) {
            (Version::V1, Figure::Other { controller, v1, .. }) => (controller, v1),
            (Version::V2, Figure::Other { v2, .. }) => ("", v2),
            (Version::V1, Figure::CpuUsage) => ("cpuacct", "cpuacct.usage"),
            (Version::V1, Figure::Quota) => ("cpu", "cpu.cfs_quota_us"),
            (Version::V1, Figure::Period) => ("cpu", "cpu.cfs_period_us"),
            (Version::V1, Figure::CpuStat) => ("cpu", "cpu.stat"),
            (Version::V1, Figure::Shares) => ("cpu", "cpu.shares"),
            (Version::V1, Figure::MemoryUsed) => ("memory", "memory.usage_in_bytes"),
            (Version::V1, Figure::MemoryStat) => ("memory", "memory.stat"),
            (Version::V1, Figure::Reclaim) => ("memory", "memory.force_empty"),
            (Version::V1, Figure::Processes) => ("cpu", "cgroup.procs"),
            (Version::V1, Figure::Waiting(Pressure::Cpu)) => ("cpuacct", "cpu.pressure"),
            (Version::V1, Figure::Waiting(Pressure::Memory)) => ("cpuacct", "memory.pressure"),
            (Version::V1, Figure::Waiting(Pressure::Io)) => ("cpuacct", "io.pressure"),
            (Version::V2, Figure::CpuUsage | Figure::CpuStat) => ("", "cpu.stat"),
            (Version::V2, Figure::Quota | Figure::Period) => ("", "cpu.max"),
            (Version::V2, Figure::Shares) => ("", "cpu.weight"),
            (Version::V2, Figure::MemoryUsed) => ("", "memory.current"),
            (Version::V2, Figure::MemoryStat) => ("", "memory.stat"),
            (Version::V2, Figure::Reclaim) => ("", "memory.reclaim"),
            (Version::V2, Figure::Processes) => ("", "cgroup.procs"),
            (Version::V2, Figure::Waiting(Pressure::Cpu)) => ("", "cpu.pressure"),
            (Version::V2, Figure::Waiting(Pressure::Memory)) => ("", "memory.pressure"),
            (Version::V2, Figure::Waiting(Pressure::Io)) => ("", "io.pressure"),
        }
    }

    /// The folder of these below the folder of all pods.
    fn folder(&self, below: &[&str]) -> String {
        let parts = self.root.split('/').filter(|part| !part.is_empty());
        let parts = parts.chain(["kubepods"]).chain(below.iter().copied());
        let mut path = vec![self.outside.clone()];
        match self.driver {
            Driver::Cgroupfs => path.extend(parts.map(str::to_owned)),
            Driver::Systemd => {
                let mut slice = String::new();
                for part in parts {
                    if !slice.is_empty() {
                        slice.push('-');
                    }
                    slice.push_str(&part.replace('-', "_"));
                    path.push(format!("{slice}.slice"));
                }
            }
        }
        joined(&path.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// With a slash between, without those that are empty.
fn joined(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// Can it be a part of the name of a folder that a kubelet or runtime made? Annotations are written by anybody.
fn is_name(text: &str) -> bool {
    let may = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !text.is_empty() && text.len() <= 128 && text.bytes().all(may)
}

/// The id of a container as its runtime knows it: `4f2a…` of `containerd://4f2a…`.
#[must_use]
pub fn bare_id(text: &str) -> Option<&str> {
    let id = text.split_once("://").map_or(text, |(_, id)| id);
    is_name(id).then_some(id)
}

/// The uid in the name of a pod's folder: a pod from a file has one there that the API server does not know, and tells it in its
/// annotation `kubernetes.io/config.hash`. On other pods that annotation means nothing.
#[must_use]
pub fn folder_uid<'p>(origin: Origin, uid: &'p str, config_hash: Option<&'p str>) -> &'p str {
    match (origin, config_hash) {
        (Origin::File | Origin::Mirror, Some(hash)) if !hash.is_empty() => hash,
        _ => uid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

    fn layout(driver: Driver, outside: &str, root: &str) -> Layout {
        Layout { version: Version::V2, driver, outside: outside.into(), root: root.into() }
    }

    #[test]
    fn a_pod_is_where_its_class_its_uid_and_the_driver_say() {
        let (plain, slices) = (layout(Driver::Cgroupfs, "", ""), layout(Driver::Systemd, "", ""));
        for (layout, class, expected) in [
            (&plain, Class::Guaranteed, "kubepods/pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"),
            (&plain, Class::Burstable, "kubepods/burstable/pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"),
            (&plain, Class::BestEffort, "kubepods/besteffort/pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"),
            (
                &slices,
                Class::Guaranteed,
                "kubepods.slice/kubepods-pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice",
            ),
            (
                &slices,
                Class::Burstable,
                "kubepods.slice/kubepods-burstable.slice/\
                 kubepods-burstable-pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice",
            ),
            (
                &slices,
                Class::BestEffort,
                "kubepods.slice/kubepods-besteffort.slice/\
                 kubepods-besteffort-pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice",
            ),
        ] {
            assert_eq!(layout.pod(class, UID).as_deref(), Some(expected));
        }
        assert_eq!(plain.pod(Class::Unset, UID), None, "nobody can tell in which folder");
    }

    #[test]
    fn the_driver_names_the_kubelets_root_and_leaves_what_is_outside_as_it_is() {
        for (driver, outside, root, expected) in [
            (Driver::Cgroupfs, "", "", "kubepods"),
            (Driver::Systemd, "", "", "kubepods.slice"),
            (Driver::Cgroupfs, "", "loadline-1-0", "loadline-1-0/kubepods"),
            (Driver::Systemd, "", "loadline-1-0", "loadline_1_0.slice/loadline_1_0-kubepods.slice"),
            // A kind node: its kubelet has `--cgroup-root=/kubelet`.
            (Driver::Systemd, "", "kubelet", "kubelet.slice/kubelet-kubepods.slice"),
            (Driver::Systemd, "", "a/b", "a.slice/a-b.slice/a-b-kubepods.slice"),
            // Seen from the machine it runs on, all of that is in the folder of a container.
            (Driver::Systemd, "docker/4f2a", "kubelet", "docker/4f2a/kubelet.slice/kubelet-kubepods.slice"),
            (Driver::Cgroupfs, "docker/4f2a", "kubelet", "docker/4f2a/kubelet/kubepods"),
        ] {
            assert_eq!(layout(driver, outside, root).kubepods(), expected, "{driver:?} {outside:?} {root:?}");
        }
        let kind = layout(Driver::Systemd, "", "kubelet");
        let pod = "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/\
                   kubelet-kubepods-burstable-pod1_2.slice";
        assert_eq!(kind.pod(Class::Burstable, "1-2").as_deref(), Some(pod));
    }

    #[test]
    fn every_layout_a_node_may_have_is_tried_once() {
        let folders = |version, root: &str| {
            Layout::candidates(version, root).iter().map(Layout::kubepods).collect::<Vec<_>>()
        };
        assert_eq!(folders(Version::V2, ""), ["kubepods.slice", "kubepods"]);
        assert_eq!(folders(Version::V1, "/"), ["kubepods", "kubepods.slice"]);
        assert_eq!(
            folders(Version::V2, "/kubelet/"),
            ["kubelet.slice/kubelet-kubepods.slice", "kubelet/kubepods", "kubelet/kubepods.slice"]
        );
    }

    #[test]
    fn containers_go_by_bare_ids_or_as_scopes_of_their_runtime() {
        let (plain, slices) = (layout(Driver::Cgroupfs, "", ""), layout(Driver::Systemd, "", ""));
        assert_eq!(plain.container("kubepods/pod1", "4f2a")[0], "kubepods/pod1/4f2a");
        let scopes = ["p/cri-containerd-4f2a.scope", "p/crio-4f2a.scope", "p/docker-4f2a.scope"];
        assert_eq!(slices.container("p", "4f2a")[..3], scopes);
        // A runtime may name folders otherwise than its kubelet, so both try everything.
        let sorted = |mut all: Vec<String>| {
            all.sort();
            all
        };
        assert_eq!(sorted(plain.container("p", "4f2a")), sorted(slices.container("p", "4f2a")));
    }

    #[test]
    fn no_text_leads_to_another_folder() {
        let plain = layout(Driver::Cgroupfs, "", "");
        let long = "a".repeat(129);
        for text in ["", "..", "../..", "a/b", "/", "a\0", "a\n", "a.slice", "ä", &long] {
            assert_eq!(plain.pod(Class::Burstable, text), None, "{text:?}");
            assert_eq!(plain.container("p", text), Vec::<String>::new(), "{text:?}");
            assert_eq!(bare_id(&format!("containerd://{text}")), None, "{text:?}");
        }
        assert_eq!(bare_id("containerd://4f2a"), Some("4f2a"));
        assert_eq!(bare_id("cri-o://4f2a"), Some("4f2a"));
        assert_eq!(bare_id("4f2a"), Some("4f2a"));
    }

    #[test]
    fn a_pod_from_a_file_has_the_uid_its_kubelet_gave_it() {
        let hash = Some("d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(folder_uid(Origin::Mirror, UID, hash), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(folder_uid(Origin::File, UID, hash), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(folder_uid(Origin::Mirror, UID, None), UID);
        assert_eq!(folder_uid(Origin::Mirror, UID, Some("")), UID);
        assert_eq!(folder_uid(Origin::Api, UID, hash), UID, "anybody may write that on a pod");
    }

    #[test]
    fn each_version_has_its_files() {
        let (new, old) = (
            layout(Driver::Cgroupfs, "", ""),
            Layout { version: Version::V1, ..layout(Driver::Cgroupfs, "", "") },
        );
        for (figure, one, two) in [
            (Figure::CpuUsage, "cpuacct/g/cpuacct.usage", "g/cpu.stat"),
            (Figure::Quota, "cpu/g/cpu.cfs_quota_us", "g/cpu.max"),
            (Figure::Period, "cpu/g/cpu.cfs_period_us", "g/cpu.max"),
            (Figure::CpuStat, "cpu/g/cpu.stat", "g/cpu.stat"),
            (Figure::Shares, "cpu/g/cpu.shares", "g/cpu.weight"),
            (Figure::MemoryUsed, "memory/g/memory.usage_in_bytes", "g/memory.current"),
            (Figure::MemoryStat, "memory/g/memory.stat", "g/memory.stat"),
            (Figure::Reclaim, "memory/g/memory.force_empty", "g/memory.reclaim"),
            (Figure::Processes, "cpu/g/cgroup.procs", "g/cgroup.procs"),
            (Figure::Waiting(Pressure::Cpu), "cpuacct/g/cpu.pressure", "g/cpu.pressure"),
            (Figure::Waiting(Pressure::Memory), "cpuacct/g/memory.pressure", "g/memory.pressure"),
            (Figure::Waiting(Pressure::Io), "cpuacct/g/io.pressure", "g/io.pressure"),
        ] {
            assert_eq!(
                (old.file("g", figure), new.file("g", figure)),
                (one.into(), two.into()),
                "{figure:?}"
            );
            assert_eq!(old.files("g", figure)[0], one);
            assert_eq!(new.files("g", figure), [two]);
        }
        let joint = ["cpuacct/g/cpuacct.usage", "cpu,cpuacct/g/cpuacct.usage", "cpuacct,cpu/g/cpuacct.usage"];
        assert_eq!(old.files("g", Figure::CpuUsage), joint);
        assert_eq!(old.files("g", Figure::MemoryStat), ["memory/g/memory.stat"]);
    }
}

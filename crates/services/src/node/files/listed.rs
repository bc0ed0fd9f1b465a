//! Which files of a machine does an agent open, and why? These and no others: what is not listed is refused, whoever asks.

use std::fmt;

/// A file, or all that look like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Below the root of the file system. `PID` stands for the number of a process, `GROUP` for the folders of a cgroup.
    pub path: &'static str,
    pub how: How,
    pub why: &'static str,
}

/// What is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Read,
    /// Written in addition.
    Write,
    /// A folder that is only locked.
    Lock,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "read, written",
            Self::Lock => "locked",
        })
    }
}

const fn read(path: &'static str, why: &'static str) -> Listed {
    Listed { path, how: How::Read, why }
}

const fn written(path: &'static str, why: &'static str) -> Listed {
    Listed { path, how: How::Write, why }
}

const fn locked(path: &'static str, why: &'static str) -> Listed {
    Listed { path, how: How::Lock, why }
}

/// All of them.
pub const LISTED: &[Listed] = &[
    read("proc/stat", "CPU of the node, and how many there are"),
    read("proc/meminfo", "memory of the node"),
    read("proc/loadavg", "how many wait for a CPU"),
    read("proc/diskstats", "disks"),
    read("proc/1/net/dev", "network interfaces of the node: those its first process sees"),
    read("proc/pressure/cpu", "time lost waiting for CPU"),
    read("proc/pressure/io", "time lost waiting for disks"),
    read("proc/pressure/memory", "time lost waiting for memory"),
    read("proc/PID/schedstat", "how long a process of a container waited for a CPU"),
    read("sys/block", "which disks there are; names only"),
    read(
        "sys/fs/cgroup/GROUP/cpu.stat",
        "CPU of a pod or container (version 2), how long its quota held it back (both versions)",
    ),
    written("sys/fs/cgroup/GROUP/cpu.max", "its quota; written with `--actuator cgroup`"),
    read("sys/fs/cgroup/GROUP/cpu.weight", "its share"),
    read("sys/fs/cgroup/GROUP/memory.current", "its memory"),
    written("sys/fs/cgroup/GROUP/memory.reclaim", "written to ask page cache of a pod back"),
    read("sys/fs/cgroup/GROUP/cpuacct.usage", "CPU of a pod or container (version 1)"),
    written("sys/fs/cgroup/GROUP/cpu.cfs_quota_us", "its quota; written with `--actuator cgroup`"),
    read("sys/fs/cgroup/GROUP/cpu.cfs_period_us", "the time its quota is for"),
    read("sys/fs/cgroup/GROUP/cpu.shares", "its share"),
    read("sys/fs/cgroup/GROUP/memory.usage_in_bytes", "its memory"),
    read("sys/fs/cgroup/GROUP/memory.stat", "what of its memory is page cache (both versions)"),
    read("sys/fs/cgroup/GROUP/cgroup.procs", "the processes of a container (both versions)"),
    locked("sys/fs/cgroup/GROUP/", "the folder of all pods, so that two agents do not act on one node"),
];

/// May it be opened like that?
pub(super) fn is_listed(file: &str, how: How) -> bool {
    let allows = |listed: &Listed| match how {
        How::Read => listed.how != How::Lock,
        How::Write | How::Lock => listed.how == how,
    };
    LISTED.iter().any(|listed| allows(listed) && listed.matches(file))
}

impl Listed {
    fn matches(&self, file: &str) -> bool {
        match (self.path.split_once("/GROUP/"), self.path.split_once("/PID/")) {
            (Some((top, name)), _) => {
                // None that leads elsewhere.
                let group = file.strip_prefix(top).and_then(|rest| rest.strip_suffix(name));
                let group = group.and_then(|group| group.strip_prefix('/')?.strip_suffix('/'));
                group.is_some_and(|group| group.split('/').all(|part| !matches!(part, "" | "." | "..")))
            }
            (None, Some((top, name))) => {
                let number = file.strip_prefix(top).and_then(|rest| rest.strip_suffix(name));
                let number = number.and_then(|number| number.strip_prefix('/')?.strip_suffix('/'));
                number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
            }
            (None, None) => self.path == file,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_core::qos::metric::Catalogue;

    #[test]
    fn only_what_is_listed_may_be_opened_and_only_some_of_it_written() {
        let group = "sys/fs/cgroup/kubepods.slice/kubepods-pod1.slice/cri-containerd-aa.scope";
        for (file, read, write, why) in [
            ("proc/stat".to_owned(), true, false, "as it stands"),
            ("proc/1/schedstat".to_owned(), true, false, "of a process"),
            ("proc/self/schedstat".to_owned(), false, false, "a number is expected"),
            ("proc/1/net/dev".to_owned(), true, false, "of the first process"),
            ("proc/net/dev".to_owned(), false, false, "of whoever reads it"),
            ("proc/1/environ".to_owned(), false, false, "what a process was told is none of its business"),
            ("proc/1/2/schedstat".to_owned(), false, false, "one number"),
            (format!("{group}/cpu.stat"), true, false, "of a container"),
            (format!("{group}/cpu.max"), true, true, "its quota"),
            ("sys/fs/cgroup/cpu,cpuacct/kubepods/x/cpu.cfs_quota_us".to_owned(), true, true, "version 1"),
            ("sys/fs/cgroup/cpu.stat".to_owned(), false, false, "of no group"),
            (format!("{group}/cgroup.kill"), false, false, "not listed"),
            ("sys/fs/cgroup/../../../etc/cpu.max".to_owned(), false, false, "leads elsewhere"),
            ("sys/fs/cgroup//cpu.max".to_owned(), false, false, "leads elsewhere"),
            ("etc/shadow".to_owned(), false, false, "not listed"),
        ] {
            assert_eq!(
                (is_listed(&file, How::Read), is_listed(&file, How::Write)),
                (read, write),
                "{file}: {why}"
            );
        }
    }

    #[test]
    fn every_metric_of_a_node_is_read_from_a_file_that_is_listed() {
        let files: Vec<&str> =
            Catalogue::default().iter().filter_map(|metric| Some(metric.collect?.file)).collect();
        assert!(files.len() > 10, "{files:?}");
        for file in &files {
            assert!(is_listed(file, How::Read), "{file}");
        }
        let proc = |path: &str| path.starts_with("proc/") && !path.contains("PID");
        for listed in LISTED.iter().filter(|listed| proc(listed.path)) {
            assert!(files.contains(&listed.path), "{} is not needed", listed.path);
        }
    }
}

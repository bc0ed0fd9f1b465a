//! Files that kernels printed, of a node on which one pod is held to a fifth of a CPU and another by nothing. How they were recorded is
//! in `fixtures/node/README.md`.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a recording that cannot be read ends the test")]

use loadline_core::qos::cgroup::{self, Driver, Figure, Layout, Pressure, Version};
use loadline_core::qos::collect::{Found, Look, Machine, Stall, stalled};
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::{Class, CpuQuota, Level};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const CORES: u32 = 2;
/// With version 2 of cgroups.
const KERNELS: [&str; 4] = ["5.4", "5.15", "6.1", "6.12"];
const HELD: (Class, &str, &str) = (Class::Burstable, "11111111-0000-4000-8000-000000000001", "aa01");
const FREE: (Class, &str, &str) = (Class::BestEffort, "22222222-0000-4000-8000-000000000002", "bb02");

/// A file of one of the two moments, as it was printed; none if there is no such file.
fn file(kernel: &str, moment: &str, path: &str) -> Option<String> {
    let base = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/node");
    fs::read_to_string(base.join(kernel).join(moment).join(path)).ok()
}

fn folder(kernel: &str, path: &str) -> bool {
    let base = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/node");
    base.join(kernel).join("now/sys/fs/cgroup").join(path).is_dir()
}

/// `uptime` as a moment.
fn seconds(text: &str) -> Duration {
    Duration::from_secs_f64(text.trim().parse().expect("seconds"))
}

/// The layout whose folder of all pods is there.
fn found_layout(kernel: &str, version: Version) -> Layout {
    let there = |layout: &Layout| {
        // With version 1 it is in the folder of every controller, and those of CPU may be mounted together.
        let path = layout.files(&layout.kubepods(), Figure::CpuUsage);
        path.iter().any(|path| folder(kernel, path.rsplit_once('/').unwrap().0))
    };
    Layout::candidates(version, "").into_iter().find(there).expect("one of the layouts")
}

/// Where a container's folder is.
fn container(kernel: &str, layout: &Layout, (class, uid, id): (Class, &str, &str)) -> String {
    let pod = layout.pod(class, uid).expect("a class and a uid");
    let there = |group: &String| read(kernel, "now", layout, group, Figure::CpuStat).is_some();
    layout.container(&pod, id).into_iter().find(there).expect("one of the folders")
}

fn read(kernel: &str, moment: &str, layout: &Layout, group: &str, figure: Figure) -> Option<String> {
    let paths = layout.files(group, figure);
    paths.iter().find_map(|path| file(kernel, moment, &format!("sys/fs/cgroup/{path}")))
}

/// What a container used between the two moments.
fn rate(kernel: &str, layout: &Layout, group: &str) -> Level {
    let at = |moment| {
        let path = layout.files(group, Figure::CpuUsage).into_iter();
        let beside = |path: String| format!("sys/fs/cgroup/{}/uptime", path.rsplit_once('/').unwrap().0);
        let uptime = path.map(beside).find_map(|path| file(kernel, moment, &path)).unwrap();
        let counter = read(kernel, moment, layout, group, Figure::CpuUsage).unwrap();
        (cgroup::cpu_usage_ns(layout.version, &counter).unwrap(), seconds(&uptime))
    };
    cgroup::cpu_rate(CORES, at("before"), at("now")).unwrap()
}

fn all_kernels() -> Vec<(&'static str, Layout)> {
    let mut all: Vec<_> = KERNELS.iter().map(|kernel| (*kernel, found_layout(kernel, Version::V2))).collect();
    all.push(("5.4-v1", found_layout("5.4-v1", Version::V1)));
    all
}

#[test]
fn the_layout_of_a_recorded_node_is_found_out() {
    for (kernel, layout) in all_kernels() {
        let expected = if kernel == "5.4-v1" { Driver::Cgroupfs } else { Driver::Systemd };
        assert_eq!(layout.driver, expected, "{kernel}");
    }
    // The quota is in a folder of both controllers, and nobody made a link to it.
    let old = found_layout("5.4-v1", Version::V1);
    let group = container("5.4-v1", &old, HELD);
    let text = file("5.4-v1", "now", &format!("sys/fs/cgroup/{}", old.file(&group, Figure::Quota)));
    assert_eq!((text, old.files(&group, Figure::Quota).len()), (None, 3));
}

#[test]
fn a_container_uses_what_its_quota_leaves_on_every_kernel() {
    for (kernel, layout) in all_kernels() {
        let (held, free) = (container(kernel, &layout, HELD), container(kernel, &layout, FREE));
        // A fifth of a CPU, but for the hundredths of a second in which the moments were noted.
        let used = rate(kernel, &layout, &held);
        assert!(used > Level::whole(195) && used < Level::whole(205), "{kernel}: {used:?}");
        let used = rate(kernel, &layout, &free);
        assert!(used > Level::whole(500) && used < Level::whole(1001), "{kernel}: {used:?}");
    }
    // (929 884 − 440 594) µs in 8.25 − 5.80 s: 199.71 millicores.
    let layout = found_layout("6.12", Version::V2);
    let used = rate("6.12", &layout, &container("6.12", &layout, HELD));
    assert_eq!(used, Level::from_nano(199_710_204_081));
}

#[test]
fn quotas_weights_and_memory_are_read_on_every_kernel() {
    for (kernel, layout) in all_kernels() {
        let text = |group: &str, figure| read(kernel, "now", &layout, group, figure).unwrap();
        let version = layout.version;
        let held = container(kernel, &layout, HELD);
        let free = container(kernel, &layout, FREE);
        let pod = layout.pod(HELD.0, HELD.1).unwrap();
        let quota = |group: &str| {
            let period = text(group, Figure::Period);
            cgroup::quota(version, &text(group, Figure::Quota), Some(&period)).unwrap()
        };
        for group in [&held, &pod] {
            let read = quota(group);
            assert_eq!((read.quota, read.period_us), (CpuQuota::Us(20_000), 100_000), "{kernel} {group}");
        }
        assert_eq!(quota(&free).quota, CpuQuota::Unlimited, "{kernel}");
        let throttled = |group: &str| cgroup::throttled(version, &text(group, Figure::CpuStat)).unwrap();
        assert!(throttled(&held).throttled > 40 && throttled(&held).time_ns > 3_000_000_000, "{kernel}");
        assert_eq!(throttled(&free).throttled, 0, "{kernel}");
        let shares = cgroup::shares(version, &text(&held, Figure::Shares)).unwrap();
        assert_eq!(cgroup::weight_of(shares), 20, "{kernel}: 512 shares");
        // Each wrote 2.5 MiB to memory, which nobody can take back.
        for group in [&held, &free, &pod] {
            let (used, stat) = (text(group, Figure::MemoryUsed), text(group, Figure::MemoryStat));
            let stays = cgroup::unreclaimable(version, &stat).unwrap();
            let works = cgroup::working_set(version, &used, &stat).unwrap();
            assert!((2_500_000..3_500_000).contains(&stays), "{kernel} {group}: {stays}");
            assert!((stays..4_000_000).contains(&works), "{kernel} {group}: {works}");
        }
    }
}

fn collect(name: &str, kernel: &str, machine: &Machine) -> Vec<Found> {
    let catalogue = Catalogue::default();
    let collector = catalogue.find(name).unwrap().collect.unwrap();
    let at = |moment| {
        let uptime = file(kernel, moment, &format!("{}.uptime", collector.file));
        // Where nothing depends on it, one moment is one second after the other.
        let other = Duration::from_secs(u64::from(moment == "now"));
        (file(kernel, moment, collector.file), uptime.map_or(other, |text| seconds(&text)))
    };
    let ((now, at_now), (before, at_before)) = (at("now"), at("before"));
    let before = before.as_deref().map(|text| Look { text, at: at_before });
    (collector.read)(machine, Look { text: now.as_deref().unwrap(), at: at_now }, before)
}

fn only(name: &str, kernel: &str) -> f64 {
    let found = collect(name, kernel, &Machine { cores: CORES, ..Machine::default() });
    assert_eq!(found.len(), 1, "{name} on {kernel}");
    found[0].value.unwrap_or_else(|| panic!("{name} on {kernel}")).to_f64()
}

#[test]
fn a_node_is_measured_on_every_kernel() {
    for (kernel, busy, all, memory_kib, load, (pressure, io)) in [
        // Δbusy and Δall of the first line; MemTotal − MemAvailable; the first of the loads; pressure of CPU and disks.
        ("5.4", 239.0, 239.0 + 397.0, 489_244 - 460_152, 0.14, (25.33, 0.0)),
        ("5.15", 326.0, 326.0 + 151.0, 492_960 - 468_236, 0.16, (18.03, 0.12)),
        ("6.1", 487.0, 487.0 + 158.0, 481_052 - 448_412, 0.16, (20.38, 0.0)),
        ("6.12", 367.0, 367.0 + 138.0, 475_584 - 439_008, 0.16, (22.06, 0.0)),
    ] {
        let share = busy / all;
        let near = |name, expected: f64| {
            let found = only(name, kernel);
            assert!((found - expected).abs() < 1e-6, "{name} on {kernel}: {found}, not {expected}");
        };
        near("cpu_total_utilization", 100.0 * share);
        near("cpu_total_usage", 2000.0 * share);
        near("cpu_core_numbers", 2.0);
        near("memory_total_usage", f64::from(memory_kib * 1024));
        near("cpu_load_1_min", load);
        near("psi_cpu_some", pressure);
        near("psi_memory_full", 0.0);
        near("psi_io_full", io);
    }
}

#[test]
fn a_quota_shows_as_pressure_though_a_cpu_is_idle() {
    for kernel in KERNELS {
        let layout = found_layout(kernel, Version::V2);
        let waits = |pod| {
            let group = container(kernel, &layout, pod);
            read(kernel, "now", &layout, &group, Figure::Waiting(Pressure::Cpu)).unwrap()
        };
        let some = |text: &str| stalled(text, Stall::Some).unwrap().avg10;
        // The other line came with 5.13, and with it that tasks count which only their quota keeps from running.
        assert_eq!(stalled(&waits(HELD), Stall::Full).is_some(), kernel != "5.4", "{kernel}");
        assert!(some(&waits(FREE)) < Level::whole(5), "{kernel}: nothing holds it");
        if kernel == "5.4" {
            continue;
        }
        // The node's pressure is that of the one pod, on a node with room: why slowing pods down for it would not help.
        assert!(some(&waits(HELD)) > Level::whole(15), "{kernel}");
        assert!(
            only("psi_cpu_some", kernel) > 15.0 && only("cpu_total_utilization", kernel) < 80.0,
            "{kernel}"
        );
    }
}

#[test]
fn a_quota_that_holds_a_container_back_shows_as_time_a_second() {
    for (kernel, layout) in all_kernels() {
        let held = container(kernel, &layout, HELD);
        let at = |moment| {
            let path = layout.files(&held, Figure::CpuStat).into_iter();
            let beside = |path: String| format!("sys/fs/cgroup/{}/uptime", path.rsplit_once('/').unwrap().0);
            let uptime = path.map(beside).find_map(|path| file(kernel, moment, &path)).unwrap();
            let text = read(kernel, moment, &layout, &held, Figure::CpuStat).unwrap();
            (cgroup::throttled(layout.version, &text).unwrap().time_ns, seconds(&uptime))
        };
        let rate = cgroup::throttled_rate(at("before"), at("now")).unwrap().to_f64();
        // It never stops, and may run for a fifth of the time.
        assert!((700_000.0..900_000.0).contains(&rate), "{kernel}: {rate}");
    }
}

#[test]
fn a_disk_and_a_network_are_measured_between_two_looks() {
    let machine =
        Machine { disks: vec!["vda".into()], interfaces: vec!["eth0".into()], ..Machine::default() };
    for (name, expected, why) in [
        ("disk_read_iops", 1400.0 / 1.97, "480 336 − 478 936 in 2 244.48 − 2 242.51 s"),
        ("disk_read_kibps", 16_248.0 / 2.0 / 1.97, "19 810 498 − 19 794 250 sectors"),
        ("disk_write_iops", 41.0 / 1.97, "79 547 − 79 506"),
        ("disk_write_kibps", 82_128.0 / 2.0 / 1.97, "55 834 136 − 55 752 008 sectors"),
        ("disk_utilization", 8.4 / 1.97, "70 708 − 70 624 ms"),
        ("network_receive_kibps", 150_548.0 * 8.0 / 1000.0 / 1.97, "656 048 143 − 655 897 595 bytes"),
        ("network_receive_pckps", 17.0 / 1.97, "31 540 − 31 523"),
        ("network_sent_kibps", 1385.0 * 8.0 / 1000.0 / 1.97, "2 204 406 − 2 203 021 bytes"),
        ("network_sent_pckps", 19.0 / 1.97, "21 720 − 21 701"),
        ("network_drop_in", 0.0, "none"),
        ("network_drop_out", 0.0, "none"),
    ] {
        let found = collect(name, "6.18", &machine);
        let value = found[0].value.unwrap().to_f64();
        assert!(
            found.len() == 1 && (value - expected).abs() < 1e-6,
            "{name}: {value}, not {expected} ({why})"
        );
    }
}

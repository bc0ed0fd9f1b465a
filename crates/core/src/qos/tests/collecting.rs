//! What the files of a node say, and what they cannot say.

use super::*;
use crate::qos::collect::{Found, Look, Machine};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

fn machine() -> Machine {
    Machine { cores: 8, disks: vec!["vda".into(), "vdb".into()], ..Machine::default() }
}

fn at(text: &str, millis: u64) -> Look<'_> {
    Look { text, at: Duration::from_millis(millis) }
}

/// What a metric's collector finds.
fn collect(name: &str, machine: &Machine, now: Look<'_>, before: Option<Look<'_>>) -> Vec<Found> {
    let catalogue = Catalogue::default();
    (catalogue.find(name).unwrap().collect.unwrap().read)(machine, now, before)
}

/// The billionths of the only series.
fn only(name: &str, machine: &Machine, now: Look<'_>, before: Option<Look<'_>>) -> Option<i128> {
    let found = collect(name, machine, now, before);
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    assert_eq!(found[0].labels, Labels::default());
    found[0].value.map(Level::nano)
}

/// `label=name` of every series, and its value in billionths.
type Named = Vec<(String, Option<i128>)>;

fn labelled(found: &[Found]) -> Named {
    let name = |labels: &Labels| {
        labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    };
    found.iter().map(|one| (name(&one.labels), one.value.map(Level::nano))).collect()
}

const NANO: i128 = 1_000_000_000;

// user nice system idle iowait irq softirq steal guest guest_nice
const STAT: &str = "cpu  1000 50 300 8000 500 10 40 100 200 25\ncpu0 1 0 0 1 0 0 0 0 0 0\n\
                    cpu1 1 0 0 1 0 0 0 0 0 0\nintr 12\n";

#[test]
fn waiting_for_disks_is_not_busy_unless_asked_for() {
    // user +40, nice +2, system +10, idle +160, iowait +20, irq +1, softirq +3, steal +4; guests had 30 of user, 2 of nice.
    let later = "cpu  1040 52 310 8160 520 11 43 104 230 27\ncpu0 1 0 0 1 0 0 0 0 0 0\nintr 13\n";
    let asked = Machine { count_iowait: true, ..machine() };
    // busy 60 of 240; with waiting 80 of 240. Guests twice would be 92 of 272.
    for (machine, percent, millicores) in
        [(machine(), 25 * NANO, 2000 * NANO), (asked, 33_333_333_333, 2666 * NANO + 666_666_666)]
    {
        let (now, before) = (at(later, 2000), Some(at(STAT, 0)));
        assert_eq!(only("cpu_total_utilization", &machine, now, before), Some(percent));
        assert_eq!(only("cpu_total_usage", &machine, now, before), Some(millicores));
    }
    // Only disks are waited for: nothing to throttle for.
    let waits = "cpu  1000 50 300 8000 1700 10 40 100 200 25\n";
    assert_eq!(only("cpu_total_usage", &machine(), at(waits, 2000), Some(at(STAT, 0))), Some(0), "measured");
}

#[test]
fn counters_that_cannot_be_compared_are_no_sample() {
    let metrics = ["cpu_total_usage", "cpu_total_utilization"];
    for (text, why) in [
        (STAT, "nothing was counted: no time passed"),
        ("cpu  999 50 300 8160 500 10 40 100 200 25\n", "user went backwards"),
        ("cpu  1040 50 300 8160 500 10 40 99 200 25\n", "steal went backwards"),
        ("cpu  1040 50 300 7000 500 10 40 100 200 25\n", "idle went backwards"),
        ("cpu  10 0 3 80 5 0 0 1 0 0\n", "all of them: another machine's"),
        ("", "empty"),
        ("cpu  1040 50 300 8160 500 10 40 100 200 25", "cut: the last number may have been longer"),
        ("cpu  1040 50 300 8160\n", "fields are missing"),
        ("cpu  NaN 50 300 8160 500 10 40 100 200 25\n", "no number"),
        ("cpu  -1 50 300 8160 500 10 40 100 200 25\n", "negative"),
        ("cpu  18446744073709551615 50 300 8160 500 10 40 100 200 25\n", "-1 as the kernel prints it"),
        ("cpu  18446744073709551616 50 300 8160 500 10 40 100 200 25\n", "more than fits"),
        ("cpu0 1040 50 300 8160 500 10 40 100 200 25\n", "one CPU is not all"),
        ("\u{0}\u{1}\u{fffd}\n\u{0}", "binary"),
        ("intr 5\n", "another file"),
    ] {
        for metric in metrics {
            let found = collect(metric, &machine(), at(text, 2000), Some(at(STAT, 0)));
            assert_eq!(labelled(&found), [(String::new(), None)], "{metric}: {why}");
            // The same damage a look earlier.
            if text != STAT && !why.contains("backwards") && !why.contains("another machine") {
                let found = collect(metric, &machine(), at(STAT, 2000), Some(at(text, 0)));
                assert_eq!(labelled(&found), [(String::new(), None)], "{metric} before: {why}");
            }
        }
    }
    // Whatever the file says, nothing was counted in no time.
    let later = "cpu  1040 50 300 8160 500 10 40 100 200 25\n";
    assert_eq!(only("cpu_total_usage", &machine(), at(later, 2000), Some(at(STAT, 2000))), None);
    assert_eq!(only("cpu_total_usage", &machine(), at(later, 1000), Some(at(STAT, 2000))), None);
    // A task that moves takes waiting with it; idle time as a whole has grown.
    let moved = "cpu  1060 50 300 8190 490 10 40 100 200 25\n";
    assert_eq!(
        only("cpu_total_utilization", &machine(), at(moved, 2000), Some(at(STAT, 0))),
        Some(25 * NANO)
    );
    let asked = Machine { count_iowait: true, ..machine() };
    assert_eq!(only("cpu_total_utilization", &asked, at(moved, 2000), Some(at(STAT, 0))), None);
}

#[test]
fn a_rate_says_nothing_before_the_second_look() {
    for metric in Catalogue::default().iter() {
        let Some(collector) = metric.collect else { continue };
        let text = match collector.file {
            "proc/stat" => STAT,
            "proc/diskstats" => DISKS,
            "proc/1/net/dev" => NET,
            _ => continue,
        };
        let found = (collector.read)(&machine(), at(text, 0), None);
        if metric.name == "cpu_core_numbers" {
            assert_eq!(found[0].value, Some(Level::whole(8)), "that is no rate");
        } else {
            assert_eq!(found, [], "{}: not there yet, which is not zero", metric.name);
        }
    }
}

#[test]
fn cores_are_what_is_known_of_the_machine_else_what_has_a_line() {
    let unknown = Machine { cores: 0, ..machine() };
    for (text, expected, why) in [
        (STAT, Some(2 * NANO), "cpu0 and cpu1"),
        ("cpu  1 0 0 1 0 0 0 0 0 0\ncpu0 1 0 0 1 0 0 0 0 0 0\n", None, "others may have been cut off"),
        ("cpu  1 0 0 1 0 0 0 0 0 0\nintr 1\n", None, "none"),
        ("", None, "empty"),
    ] {
        assert_eq!(only("cpu_core_numbers", &unknown, at(text, 0), None), expected, "{why}");
    }
    let later = STAT.replace("cpu  1000", "cpu  1100").replace("8000", "8100");
    let used = only("cpu_total_usage", &unknown, at(&later, 1000), Some(at(STAT, 0)));
    assert_eq!(used, Some(1000 * NANO), "half of two");
    let one_line = "cpu  1100 50 300 8100 500 10 40 100 200 25\n";
    assert_eq!(only("cpu_total_usage", &unknown, at(one_line, 1000), Some(at(STAT, 0))), None);
}

#[test]
fn what_can_be_given_back_is_free_memory() {
    let text = "MemTotal:       24682416 kB\nMemFree:        17743812 kB\nMemAvailable:   23652344 kB\n";
    // (24 682 416 − 23 652 344) × 1024; MemFree would be seven times as much.
    assert_eq!(only("memory_total_usage", &machine(), at(text, 0), None), Some(1_054_793_728 * NANO));
    assert_eq!(only("memory_total", &machine(), at(text, 0), None), Some(25_274_793_984 * NANO));
    assert_eq!(only("memory_total_utilization", &machine(), at(text, 0), None), Some(4_173_302_970));
    for (text, why) in [
        ("", "empty"),
        ("MemTotal: 100 kB\n", "a kernel that does not say what is available"),
        ("MemAvailable: 100 kB\n", "nor how much there is"),
        ("MemTotal: 100 kB\nMemAvailable: 101 kB\n", "more than there is"),
        ("MemTotal: 0 kB\nMemAvailable: 0 kB\n", "no machine"),
        ("MemTotal: 100 kB\nMemAvailable: 9", "cut"),
        ("MemTotal: 100 kB\nMemAvailable: -9 kB\n", "negative"),
        ("MemTotal: 100 kB\nMemAvailable: NaN kB\n", "no number"),
        ("MemTotal: 18446744073709551615 kB\nMemAvailable: 9 kB\n", "-1 as the kernel prints it"),
        ("MemTotal: 9223372036854775807 kB\nMemAvailable: 9 kB\n", "more bytes than can be counted"),
        ("MemTotal: 100 kB\nMemTotal: 200 kB\nMemAvailable: 9 kB\n", "twice"),
    ] {
        for metric in ["memory_total_usage", "memory_total_utilization"] {
            assert_eq!(only(metric, &machine(), at(text, 0), None), None, "{metric}: {why}");
        }
    }
}

#[test]
fn load_is_read_as_it_is_printed() {
    let text = "5.21 3.49 1.70 9/130 21069\n";
    for (name, expected) in [
        ("cpu_load_1_min", 5_210_000_000),
        ("cpu_load_5_min", 3_490_000_000),
        ("cpu_load_15_min", 1_700_000_000),
    ] {
        assert_eq!(only(name, &machine(), at(text, 0), None), Some(expected));
        for damaged in
            ["", "5.21 3.49 1.7", "5.21\n", "nan nan nan 9/130 1\n", "-1.0 -1.0 -1.0 9/130 1\n", "\u{0}\n"]
        {
            assert_eq!(only(name, &machine(), at(damaged, 0), None), None, "{name} in {damaged:?}");
        }
    }
}

#[test]
fn pressure_is_one_more_family_in_one_file() {
    let text = "some avg10=91.09 avg60=84.66 avg300=56.03 total=309962551\n\
                full avg10=12.50 avg60=0.00 avg300=0.00 total=7\n";
    for (name, expected) in [
        ("psi_cpu_some", 91_090_000_000),
        ("psi_memory_full", 12_500_000_000),
        ("psi_io_full", 12_500_000_000),
    ] {
        assert_eq!(only(name, &machine(), at(text, 0), None), Some(expected), "{name}");
        assert_eq!(only(name, &machine(), at("", 0), None), None, "{name}");
    }
    // Nobody can tell what acting does to it, so it is paced; but a line can be drawn through it.
    let policy = policy(vec![rule("p", "psi_memory_full", 10, "drop")], vec![evict("drop")]);
    let now = snapshot(&[("psi_memory_full", 12.5)], vec![pod("a", 1.0), pod("b", 1.0)]);
    let plan_ = plan(&policy, &now);
    assert_eq!((victims(&plan_).len(), plan_.steps.mode_evict), (1, Some(Mode::Paced)));
}

const DISKS: &str = "   7       0 loop0 5 0 5 0 5 0 5 0 0 5 5\n \
                     254       0 vda 1000 10 50000 600 2000 14 80000 556 1 4000 1179 10 6 44 17 2 1\n \
                     254       1 vda1 900 10 49000 600 2000 14 80000 556 1 4000 1179\n \
                     254      16 vdb 7 0 56 1 0 0 0 0 0 2 2\n";

#[test]
fn disks_are_counted_in_fractional_seconds() {
    // vda in 1.5 s: 300 reads of 3 000 sectors, 600 writes of 6 000 sectors, 750 ms busy. vdb does nothing.
    let later = DISKS.replace(
        "vda 1000 10 50000 600 2000 14 80000 556 1 4000",
        "vda 1300 10 53000 900 2600 14 86000 556 1 4750",
    );
    let (now, before) = (at(&later, 11_500), Some(at(DISKS, 10_000)));
    for (name, expected, why) in [
        ("disk_read_kibps", 1000 * NANO, "3 000 × 512 / 1 024 / 1.5"),
        ("disk_write_kibps", 2000 * NANO, "6 000 × 512 / 1 024 / 1.5"),
        ("disk_read_iops", 200 * NANO, "300 / 1.5"),
        ("disk_write_iops", 400 * NANO, "600 / 1.5"),
        ("disk_utilization", 50 * NANO, "100 × 750 / 1 000 / 1.5"),
    ] {
        let found = labelled(&collect(name, &machine(), now, before));
        // Whole disks only: neither a part of one nor what is not asked for.
        let expected = [("diskName=vda".into(), Some(expected)), ("diskName=vdb".into(), Some(0))];
        assert_eq!(found, expected, "{name}: {why}");
    }
    // A request of ten seconds is counted when it ends.
    let long = DISKS.replace("556 1 4000", "556 1 14000");
    let found = labelled(&collect("disk_utilization", &machine(), at(&long, 11_500), before));
    assert_eq!(found[0].1, Some(100 * NANO), "all of the time");
    assert_eq!(
        Catalogue::default().find("disk_read_utilization").map(|metric| metric.name),
        Some("disk_utilization")
    );
}

#[test]
fn a_disk_that_cannot_be_told_is_not_idle() {
    let vdb = ("diskName=vdb".to_owned(), Some(0));
    let none = |name: &str| (name.to_owned(), None);
    let cases: [(&str, String, u64, Named); 8] = [
        ("no time passed", DISKS.into(), 0, vec![none("diskName=vda"), none("diskName=vdb")]),
        (
            "a counter went backwards",
            DISKS.replace("vda 1000", "vda 999"),
            1,
            vec![none("diskName=vda"), vdb.clone()],
        ),
        ("no number", DISKS.replace("vda 1000", "vda x"), 1, vec![none("diskName=vda"), vdb.clone()]),
        (
            "fields are missing",
            DISKS.replace(" 600 2000 14 80000 556 1 4000 1179 10 6 44 17 2 1", ""),
            1,
            vec![none("diskName=vda"), vdb.clone()],
        ),
        (
            "it is gone",
            DISKS.replace(" vdb ", " sdx "),
            1,
            vec![("diskName=vda".into(), Some(0)), none("diskName=vdb")],
        ),
        (
            "twice, one is wrong",
            DISKS.replace(" vdb ", " vda "),
            1,
            vec![none("diskName=vda"), none("diskName=vdb")],
        ),
        // Whose lines are missing nobody knows: one without a name stands for them.
        (
            "cut",
            DISKS[..DISKS.len() - 4].into(),
            1,
            vec![("diskName=vda".into(), Some(0)), none("diskName=vdb"), none("")],
        ),
        ("empty", String::new(), 1, vec![none("diskName=vda"), none("diskName=vdb"), none("")]),
    ];
    for (why, text, seconds, expected) in cases {
        let found = collect("disk_read_iops", &machine(), at(&text, seconds * 1000), Some(at(DISKS, 0)));
        assert_eq!(labelled(&found), expected, "{why}");
    }
    // One that has just come has nothing to be compared with yet.
    let alone = DISKS.replace(" vdb ", " sdx ");
    let found = collect("disk_read_iops", &machine(), at(DISKS, 1000), Some(at(&alone, 0)));
    assert_eq!(labelled(&found), [("diskName=vda".into(), Some(0))]);
    // And a clock that goes backwards is none.
    let found = collect("disk_read_iops", &machine(), at(DISKS, 1000), Some(at(DISKS, 2000)));
    assert_eq!(labelled(&found), [none("diskName=vda"), none("diskName=vdb")]);
}

const NET: &str = "Inter-|   Receive                 |  Transmit\n face |bytes packets errs drop |bytes packets\n    \
                   lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0\n  \
                   eth0: 1000   10    0    5    0     0          0         0  2000    20    0    7    0     0       0          0\n\
                   veth1a2b:100   1    0    0    0     0          0         0  200    2    0    0    0     0       0          0\n";

#[test]
fn networks_are_counted_in_kilobits_and_packets() {
    // eth0 in 1.5 s: 1 500 000 bytes in 3 000 packets received, 30 dropped; 750 000 bytes in 1 500 packets sent, 15 dropped.
    let later = NET.replace("eth0: 1000   10    0    5 ", "eth0: 1501000   3010    0    35 ");
    let later = later.replace("2000    20    0    7 ", "752000    1520    0    22 ");
    let (now, before) = (at(&later, 11_500), Some(at(NET, 10_000)));
    for (name, expected, why) in [
        ("network_receive_kibps", 8000 * NANO, "1 500 000 × 8 / 1 000 / 1.5"),
        ("network_sent_kibps", 4000 * NANO, "750 000 × 8 / 1 000 / 1.5"),
        ("network_receive_pckps", 2000 * NANO, "3 000 / 1.5"),
        ("network_sent_pckps", 1000 * NANO, "1 500 / 1.5"),
        ("network_drop_in", 20 * NANO, "30 / 1.5"),
        ("network_drop_out", 10 * NANO, "15 / 1.5"),
    ] {
        let eth0 = ("NetInterface=eth0".to_owned(), Some(expected));
        let found = labelled(&collect(name, &machine(), now, before));
        let all = [eth0.clone(), ("NetInterface=veth1a2b".into(), Some(0))];
        assert_eq!(found, all, "{name}: {why}; all but the loopback");
        let chosen = Machine { interfaces: vec!["eth0".into(), "eth9".into()], ..machine() };
        let found = labelled(&collect(name, &chosen, now, before));
        assert_eq!(found, [eth0, ("NetInterface=eth9".into(), None)], "{name}: what is named is to be there");
    }
    // A pod has just come, with an interface of its own: no reason to know nothing of the node.
    let without = NET.split_inclusive('\n').take(4).collect::<String>();
    let found = collect("network_sent_pckps", &machine(), at(NET, 1000), Some(at(&without, 0)));
    assert_eq!(labelled(&found), [("NetInterface=eth0".into(), Some(0))]);
    // A file that is cut may have lost the busiest.
    let cut = &NET[..NET.len() - 60];
    let found = collect("network_sent_pckps", &machine(), at(cut, 1000), Some(at(NET, 0)));
    assert_eq!(labelled(&found), [("NetInterface=eth0".into(), Some(0)), (String::new(), None)]);
}

#[test]
fn every_metric_has_one_name_and_most_have_a_collector() {
    let catalogue = Catalogue::default();
    let names: Vec<&str> =
        catalogue.iter().flat_map(|m| [m.name].into_iter().chain(m.aliases.iter().copied())).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "a name stands for one metric");
    let without: Vec<&str> = catalogue.iter().filter(|m| m.collect.is_none()).map(|m| m.name).collect();
    // Read from cgroups, or put together from other figures.
    assert!(
        without.iter().all(|name| ["container_", "ext_", "exclusive_"].iter().any(|p| name.starts_with(p))),
        "{without:?}"
    );
}

/// What a file said and says.
fn texts(file: &str) -> (String, String) {
    let (before, now) = match file {
        "proc/stat" => (STAT.into(), STAT.replace("1000", "1234").replace("8000", "8777")),
        "proc/diskstats" => {
            (DISKS.into(), DISKS.replace("1000", "1300").replace("50000", "53000").replace("4000", "4750"))
        }
        "proc/1/net/dev" => (NET.into(), NET.replace("1000", "1501000").replace("2000", "752000")),
        "proc/meminfo" => {
            let text =
                "MemTotal:       24682416 kB\nMemFree:        17743812 kB\nMemAvailable:   23652344 kB\n";
            (text.to_owned(), text.to_owned())
        }
        "proc/loadavg" => ("5.21 3.49 1.70 9/130 21069\n".into(), "6.21 3.49 1.70 9/130 21069\n".into()),
        _ => {
            let text = "some avg10=91.09 avg60=84.66 avg300=56.03 total=309962551\n\
                        full avg10=12.50 avg60=0.00 avg300=0.00 total=7\n";
            (text.to_owned(), text.to_owned())
        }
    };
    (before, now)
}

proptest! {
    #[test]
    fn a_file_that_is_cut_says_the_same_or_nothing(place in any::<prop::sample::Index>(), which in any::<bool>()) {
        for metric in Catalogue::default().iter() {
            let Some(collector) = metric.collect else { continue };
            let (before, now) = texts(collector.file);
            let read = |before: &str, now: &str| {
                (collector.read)(&machine(), at(now, 1500), Some(at(before, 0)))
            };
            let whole = read(&before, &now);
            prop_assert!(whole.iter().all(|found| found.value.is_some()), "{}: {whole:?}", metric.name);
            let cut = |text: &str| text[..place.index(text.len())].to_owned();
            let damaged = if which { read(&cut(&before), &now) } else { read(&before, &cut(&now)) };
            for found in damaged.iter().filter(|found| found.value.is_some()) {
                prop_assert!(whole.contains(found), "{}: {found:?} of {whole:?}", metric.name);
            }
            // What is missing is said to be, unless it is not needed; but a list that ends with a line is one of fewer things.
            let list = matches!(collector.file, "proc/1/net/dev" | "proc/diskstats");
            let fewer = list && cut(if which { &before } else { &now }).ends_with('\n');
            let same = damaged.len() == whole.len() && damaged.iter().all(|found| found.value.is_some());
            let said = damaged.iter().any(|found| found.value.is_none());
            prop_assert!(same || said || fewer, "{}: {damaged:?}", metric.name);
        }
    }

    #[test]
    fn no_text_makes_a_collector_panic_or_go_below_nothing(
        place in any::<prop::sample::Index>(), damage in "[0-9a-z. :\n\\-\u{0}]{0,24}", other in any::<String>(),
    ) {
        for metric in Catalogue::default().iter() {
            let Some(collector) = metric.collect else { continue };
            let (before, mut now) = texts(collector.file);
            now.insert_str(place.index(now.len()), &damage);
            for (before, now) in [(&before, &now), (&now, &before), (&before, &other), (&other, &now)] {
                for found in (collector.read)(&machine(), at(now, 1500), Some(at(before, 0))) {
                    let most = Level::whole(if metric.percent { 100 } else { i64::MAX });
                    prop_assert!(found.value.is_none_or(|value| value >= Level::ZERO && value <= most), "{found:?}");
                }
            }
        }
    }
}

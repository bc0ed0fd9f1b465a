//! What does this process use, for whoever watches it? Under the names that client libraries of Prometheus give it in every
//! language, so that dashboards find it: `process_cpu_seconds_total` and its kin.
//!
//! The kernel is asked when somebody looks. What it does not tell is left out, which is no zero.

use super::{TICKS, memory_of};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Looks at this process whenever it is asked.
#[derive(Clone, Debug)]
pub struct Figures {
    proc: PathBuf,
}

impl Default for Figures {
    fn default() -> Self {
        Self { proc: "/proc".into() }
    }
}

/// What the kernel said. What is missing it did not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Said {
    cpu_seconds: Option<f64>,
    /// Since 1970.
    began_seconds: Option<f64>,
    resident_bytes: Option<u64>,
    virtual_bytes: Option<u64>,
    open_files: Option<u64>,
    most_files: Option<u64>,
}

impl Figures {
    fn read(&self) -> Said {
        let own = self.proc.join("self");
        let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let [stat, status, limits] = ["stat", "status", "limits"].map(|file| text(&own.join(file)));
        let booted = booted(&text(&self.proc.join("stat")));
        Said {
            cpu_seconds: cpu_seconds(&stat),
            began_seconds: booted.zip(began_after_boot(&stat)).map(|(at, after)| at + after),
            resident_bytes: memory_of(&status, "VmRSS"),
            virtual_bytes: memory_of(&status, "VmSize"),
            open_files: fs::read_dir(own.join("fd")).ok().and_then(|all| u64::try_from(all.count()).ok()),
            most_files: most_files(&limits),
        }
    }
}

/// The fields of `/proc/PID/stat` from the third on: the second, a name, may hold anything.
fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(") ").map_or_else(Vec::new, |(_, rest)| rest.split_whitespace().collect())
}

#[expect(clippy::cast_precision_loss, reason = "centuries are exact")]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS as f64
}

/// In the program (field 14), and in the kernel for it (field 15).
fn cpu_seconds(stat: &str) -> Option<f64> {
    let fields = fields(stat);
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(seconds(ticks(11)?.saturating_add(ticks(12)?)))
}

/// Field 22.
fn began_after_boot(stat: &str) -> Option<f64> {
    Some(seconds(fields(stat).get(19)?.parse().ok()?))
}

/// When the machine began, of a line such as `btime 1700000000`.
fn booted(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse::<u32>().ok().map(f64::from)
}

/// Of a line such as `Max open files  1024  4096  files`: the first is the one in force.
fn most_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let said = self.read();
        // Names and texts stand there even if there is no figure: pages are made from them.
        let mut told = |name, help, metric: Option<Box<dyn EncodeMetric>>, kind| {
            let encoder = encoder.encode_descriptor(name, help, None, kind)?;
            metric.map_or(Ok(()), |metric| metric.encode(encoder))
        };
        let counter = |value: Option<f64>| {
            value.map(|value| Box::new(ConstCounter::new(value)) as Box<dyn EncodeMetric>)
        };
        let gauge =
            |value: Option<f64>| value.map(|value| Box::new(ConstGauge::new(value)) as Box<dyn EncodeMetric>);
        let whole =
            |value: Option<u64>| value.map(|value| Box::new(ConstGauge::new(value)) as Box<dyn EncodeMetric>);
        told("process_cpu_seconds", "CPU time used", counter(said.cpu_seconds), MetricType::Counter)?;
        told("process_max_fds", "Files that may be open at once", whole(said.most_files), MetricType::Gauge)?;
        told("process_open_fds", "Open files", whole(said.open_files), MetricType::Gauge)?;
        told(
            "process_resident_memory_bytes",
            "Memory in use",
            whole(said.resident_bytes),
            MetricType::Gauge,
        )?;
        told(
            "process_start_time_seconds",
            "When it began, since 1970",
            gauge(said.began_seconds),
            MetricType::Gauge,
        )?;
        told("process_virtual_memory_bytes", "Addresses in use", whole(said.virtual_bytes), MetricType::Gauge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    fn shown(figures: &Figures) -> String {
        let metrics = Metrics::default();
        metrics.register(|registry| registry.register_collector(figures, &[]));
        metrics.text().unwrap()
    }

    #[test]
    fn what_the_kernel_says_is_told_in_seconds_and_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("self");
        fs::create_dir_all(own.join("fd")).unwrap();
        fs::write(own.join("fd/0"), "").unwrap();
        fs::write(folder.path().join("stat"), "cpu 1 2 3\nbtime 1700000000\n").unwrap();
        // utime 150 and stime 50 ticks, begun 500 ticks after boot, 100 a second.
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 15 16 17 18 500 20 21\n";
        fs::write(own.join("stat"), stat).unwrap();
        fs::write(own.join("status"), "VmSize:\t 2048 kB\nVmRSS:\t 1024 kB\n").unwrap();
        fs::write(
            own.join("limits"),
            "Max open files            1024                 4096                 files\n",
        )
        .unwrap();
        let figures = Figures { proc: folder.path().to_owned() };
        let expected = Said {
            cpu_seconds: Some(2.0),
            began_seconds: Some(1_700_000_005.0),
            resident_bytes: Some(1 << 20),
            virtual_bytes: Some(2 << 20),
            open_files: Some(1),
            most_files: Some(1024),
        };
        assert_eq!(figures.read(), expected);
        let text = shown(&figures);
        for line in ["process_cpu_seconds_total 2.0", "process_resident_memory_bytes 1048576"] {
            assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
        }
    }

    #[test]
    fn what_the_kernel_does_not_say_is_left_out_and_is_no_zero() {
        let folder = tempfile::tempdir().unwrap();
        let figures = Figures { proc: folder.path().to_owned() };
        assert_eq!(figures.read(), Said::default());
        let text = shown(&figures);
        assert_eq!(text.lines().filter(|line| line.starts_with("# TYPE process_")).count(), 6, "{text}");
        assert!(!text.lines().any(|line| line.starts_with("process_")), "{text}");
    }
}

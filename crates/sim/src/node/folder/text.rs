//! What would the kernel write? The text of each file, from counters.
//!
//! Time is counted in nanoseconds and told in what each file is written in: microseconds, or hundredths of a second. Where
//! the kernel tells apart what is not simulated, all of it is in one place: busy time is the user's, memory is anonymous.

use loadline_core::qos::{CpuQuota, PERIOD_US};
use std::fmt::Write as _;
use std::time::Duration;

/// Nanoseconds per tick of `/proc/stat`: `USER_HZ` is 100.
const TICK_NS: u64 = 10_000_000;
/// The shortest quota and the bounds of a period the kernel takes, in microseconds.
pub const LEAST_US: i64 = 1000;
const PERIODS_US: std::ops::RangeInclusive<i64> = 1000..=1_000_000;
/// The controllers of every cgroup.
pub const CONTROLLERS: &str = "cpuset cpu io memory hugetlb pids rdma misc\n";
const PAGE: u64 = 4096;
/// What time averages are taken over, in seconds: load, and pressure.
const LOAD_S: [f64; 3] = [60.0, 300.0, 900.0];
const PRESSURE_S: [f64; 3] = [10.0, 60.0, 300.0];

/// What a cgroup, or a node, has used of its CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    pub used_ns: u64,
    /// Under a quota at all.
    limited_us: u64,
    /// In periods in which it used that up.
    stopped_us: u64,
    /// What it would have used if it had been let.
    held_ns: u64,
}

/// What a cgroup does, in thousandths of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    pub used_milli: i64,
    /// What its quota keeps from it.
    pub held_milli: i64,
    pub is_limited: bool,
}

impl Cpu {
    /// It went on like that for some time: `thousandths of a CPU × microseconds = nanoseconds`.
    pub fn pass(&mut self, rate: Rate, passed: Duration) {
        let passed_us = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
        let time = |milli: i64| u64::try_from(milli).unwrap_or(0).saturating_mul(passed_us);
        self.used_ns = self.used_ns.saturating_add(time(rate.used_milli));
        self.held_ns = self.held_ns.saturating_add(time(rate.held_milli));
        if rate.is_limited {
            self.limited_us = self.limited_us.saturating_add(passed_us);
        }
        if rate.held_milli > 0 {
            self.stopped_us = self.stopped_us.saturating_add(passed_us);
        }
    }

    /// `cpu.stat`.
    pub fn stat(&self) -> String {
        let period_us = PERIOD_US.unsigned_abs();
        format!(
            "{}nr_periods {}\nnr_throttled {}\nthrottled_usec {}\nnr_bursts 0\nburst_usec 0\n",
            self.top_stat(),
            self.limited_us / period_us,
            self.stopped_us / period_us,
            self.held_ns / 1000,
        )
    }

    /// `cpu.stat` of the top, which nothing limits.
    pub fn top_stat(&self) -> String {
        let used_us = self.used_ns / 1000;
        format!("usage_usec {used_us}\nuser_usec {used_us}\nsystem_usec 0\n")
    }
}

/// `cpu.max`.
pub fn cpu_max(quota: CpuQuota) -> String {
    match quota.us().filter(|us| *us > 0) {
        Some(us) => format!("{us} {PERIOD_US}\n"),
        None => format!("max {PERIOD_US}\n"),
    }
}

/// What somebody wrote to `cpu.max`; none if the kernel would refuse it.
pub fn quota(text: &str) -> Option<CpuQuota> {
    let mut words = text.lines().next()?.split_whitespace();
    let quota = words.next()?;
    let period = words.next().map_or(Some(PERIOD_US), |word| word.parse().ok())?;
    if words.next().is_some() {
        return None;
    }
    if quota == "max" {
        return PERIODS_US.contains(&period).then_some(CpuQuota::Unlimited);
    }
    scaled(quota.parse().ok()?, period)
}

/// A quota per some period as one per [`PERIOD_US`]: there is no other here. None if the kernel would refuse it.
pub fn scaled(quota_us: i64, period_us: i64) -> Option<CpuQuota> {
    if quota_us < LEAST_US || !PERIODS_US.contains(&period_us) {
        return None;
    }
    i64::try_from(i128::from(quota_us) * i128::from(PERIOD_US) / i128::from(period_us)).ok().map(CpuQuota::Us)
}

/// `cpu.weight` of what asks for so much: kubelets make shares of it, 1024 a CPU, and runtimes make weights of these.
pub fn cpu_weight(asked_milli: i64) -> String {
    let shares = (asked_milli.saturating_mul(1024) / 1000).clamp(2, 262_144);
    format!("{}\n", 1 + (shares - 2) * 9999 / 262_142)
}

/// Memory of a cgroup, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What it cannot do without.
    pub used: u64,
    /// Files it has read and might read again.
    pub cached: u64,
}

impl Memory {
    /// That much is used, and an eighth of it cached beside it, in whole pages.
    pub fn of(used: i64) -> Self {
        let used = u64::try_from(used).unwrap_or(0);
        Self { used, cached: (used / 8) & !(PAGE - 1) }
    }

    pub fn add(&mut self, other: Self) {
        self.used = self.used.saturating_add(other.used);
        self.cached = self.cached.saturating_add(other.cached);
    }

    /// `memory.current`.
    pub fn current(self) -> String {
        format!("{}\n", self.used.saturating_add(self.cached))
    }

    /// `memory.stat`.
    pub fn stat(self) -> String {
        let Self { used, cached } = self;
        format!(
            "anon {used}\nfile {cached}\nkernel 0\ninactive_anon 0\nactive_anon {used}\ninactive_file {cached}\n\
             active_file 0\nunevictable 0\n",
        )
    }

    /// `/proc/meminfo` of a node that has `total`: what is cached can be had.
    pub fn meminfo(self, total: u64) -> String {
        let available = total.saturating_sub(self.used);
        let cached = self.cached.min(available);
        let mut out = String::with_capacity(256);
        for (name, bytes) in [
            ("MemTotal", total),
            ("MemFree", available - cached),
            ("MemAvailable", available),
            ("Buffers", 0),
            ("Cached", cached),
            ("SwapTotal", 0),
            ("SwapFree", 0),
        ] {
            let _ = writeln!(out, "{:<16}{:>8} kB", format!("{name}:"), bytes >> 10);
        }
        out
    }
}

/// `/proc/stat` of a node that is up since a second of 1970, for so long. What is busy is so on all CPUs alike.
pub fn stat(cpus: u64, busy_ns: u64, up: Duration, since: i64) -> String {
    let up_ns = u64::try_from(up.as_nanos()).unwrap_or(u64::MAX);
    let mut out = String::with_capacity(128 + usize::try_from(cpus).unwrap_or(0) * 64);
    let mut line = |name: &str, busy_ns: u64, up_ns: u64| {
        let idle = up_ns.saturating_sub(busy_ns) / TICK_NS;
        let _ = writeln!(out, "{name} {} 0 0 {idle} 0 0 0 0 0 0", busy_ns / TICK_NS);
    };
    // Two blanks after the first word, as the kernel has it.
    line("cpu ", busy_ns, up_ns.saturating_mul(cpus));
    for cpu in 0..cpus {
        // Divided so that nothing is lost: the first CPUs get what does not divide.
        let busy_ns = busy_ns / cpus + u64::from(cpu < busy_ns % cpus);
        line(&format!("cpu{cpu}"), busy_ns, up_ns);
    }
    let _ = writeln!(out, "intr 0\nctxt 0\nbtime {since}\nprocesses 1\nprocs_running 1\nprocs_blocked 0");
    out
}

/// Averages over three spans of time, each forgetting the past by `e` in its span.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Averages([f64; 3]);

impl Averages {
    fn pass(&mut self, value: f64, spans: [f64; 3], passed: Duration) {
        for (average, span) in self.0.iter_mut().zip(spans) {
            let kept = (-passed.as_secs_f64() / span).exp();
            *average = *average * kept + value * (1.0 - kept);
        }
    }
}

/// How many want to run, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load(Averages);

impl Load {
    /// So much CPU was wanted for some time.
    pub fn pass(&mut self, wanted_milli: i64, passed: Duration) {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 thousandths of a CPU")]
        self.0.pass(wanted_milli as f64 / 1000.0, LOAD_S, passed);
    }

    /// `/proc/loadavg`.
    pub fn text(&self) -> String {
        let [one, five, fifteen] = self.0.0;
        format!("{one:.2} {five:.2} {fifteen:.2} 1/1 1\n")
    }
}

/// For how much of the time somebody waits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    averages: Averages,
    total: Duration,
}

impl Pressure {
    /// Of what was wanted, some was waited for: that part of the time counts.
    pub fn pass(&mut self, used_milli: i64, waiting_milli: i64, passed: Duration) {
        let (used, waiting) = (used_milli.max(0), waiting_milli.max(0));
        let all = used.saturating_add(waiting).max(1);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 thousandths of a CPU")]
        let share = waiting as f64 / all as f64;
        self.averages.pass(100.0 * share, PRESSURE_S, passed);
        self.total += passed.mul_f64(share);
    }

    /// A file of `/proc/pressure`. That all wait is not simulated.
    pub fn text(&self) -> String {
        let [ten, sixty, three_hundred] = self.averages.0;
        format!(
            "some avg10={ten:.2} avg60={sixty:.2} avg300={three_hundred:.2} total={}\n\
             full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            self.total.as_micros(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_to_cpu_max_is_read_as_the_kernel_does() {
        for (text, want, why) in [
            ("20000 100000\n", Some(CpuQuota::Us(20_000)), "as it is shown"),
            ("20000", Some(CpuQuota::Us(20_000)), "the period stays"),
            ("max", Some(CpuQuota::Unlimited), "no end"),
            ("max 100000", Some(CpuQuota::Unlimited), "as it is shown"),
            ("10000 50000", Some(CpuQuota::Us(20_000)), "a fifth, whatever the period"),
            ("1000 100000", Some(CpuQuota::Us(1000)), "the least"),
            ("999 100000", None, "below the least"),
            ("-1", None, "that is how version 1 says it"),
            ("20000 999", None, "the period is too short"),
            ("20000 1000001", None, "the period is too long"),
            ("20000 100000 1", None, "too many words"),
            ("much", None, "no number"),
            ("", None, "nothing, as just after opening it"),
        ] {
            assert_eq!(quota(text), want, "{text:?}: {why}");
            if let Some(quota_) = want {
                assert_eq!(quota(&cpu_max(quota_)), want, "what is shown can be written");
            }
        }
    }

    #[test]
    fn counters_are_what_was_used_times_how_long() {
        let mut cpu = Cpu::default();
        // 1.5 CPUs for 2 s, free; then 0.2 of 0.5 wanted, for 1 s, which are ten periods.
        cpu.pass(Rate { used_milli: 1500, ..Rate::default() }, Duration::from_secs(2));
        cpu.pass(Rate { used_milli: 200, held_milli: 300, is_limited: true }, Duration::from_secs(1));
        // Limited, but not held back: half a second, five periods.
        cpu.pass(Rate { used_milli: 100, held_milli: 0, is_limited: true }, Duration::from_millis(500));
        assert_eq!(
            cpu.stat(),
            "usage_usec 3250000\nuser_usec 3250000\nsystem_usec 0\nnr_periods 15\nnr_throttled 10\n\
             throttled_usec 300000\nnr_bursts 0\nburst_usec 0\n",
            "3 s + 0.2 s + 0.05 s; 0.3 s were held back"
        );
    }

    #[test]
    fn busy_and_idle_ticks_of_all_cpus_are_the_time_that_passed() {
        // 1 of 2 CPUs for 10 s, and 10 ms more, which the first CPU has.
        let text = stat(2, 10_010_000_000, Duration::from_secs(10), 1_700_000_000);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "cpu  1001 0 0 999 0 0 0 0 0 0", "100 ticks a second, 2 CPUs");
        assert_eq!(lines[1], "cpu0 500 0 0 499 0 0 0 0 0 0", "5.005 s of 10 s, rounded down");
        assert_eq!(lines[2], "cpu1 500 0 0 499 0 0 0 0 0 0");
        assert!(lines.contains(&"btime 1700000000"));
    }

    #[test]
    fn memory_that_is_cached_can_be_had() {
        let memory = Memory::of(800 << 20);
        assert_eq!(memory.cached, 100 << 20, "an eighth");
        assert_eq!(memory.current(), format!("{}\n", 900 << 20));
        let text = memory.meminfo(4 << 30);
        let kib = |name: &str| -> u64 {
            let line = text.lines().find(|line| line.starts_with(&format!("{name}:"))).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        assert_eq!(kib("MemTotal") - kib("MemAvailable"), 800 << 10, "what is used");
        assert_eq!(kib("MemAvailable") - kib("MemFree"), 100 << 10, "what is cached");
        assert_eq!(Memory::of(5 << 30).meminfo(4 << 30).lines().nth(2), Some("MemAvailable:          0 kB"));
    }

    #[test]
    fn averages_come_close_to_what_lasts_and_time_waited_adds_up() {
        let (mut load, mut pressure) = (Load::default(), Pressure::default());
        for _ in 0..600 {
            load.pass(2500, Duration::from_secs(1));
            pressure.pass(300, 100, Duration::from_secs(1));
        }
        // After ten minutes: 2.5 × (1 − e^−10), 2.5 × (1 − e^−2), 2.5 × (1 − e^−(2/3)).
        assert_eq!(load.text(), "2.50 2.16 1.22 1/1 1\n");
        let first = pressure.text();
        assert!(first.starts_with("some avg10=25.00 avg60=25.00 avg300=21.62 total=150000000\n"), "{first}");
    }
}

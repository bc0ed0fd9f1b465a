//! How much does one pod use at a time? What a real workload of its requests' size would.
//!
//! Every container follows a [trace](super::trace), chosen by the seed and the container's name, from a time of
//! the day chosen the same way:
//!
//! > use = share of the trace at (time × pace + phase) × request × warm-up
//!
//! Containers that ask for nothing are taken to ask for a little. What they get of that, their
//! [quota](super::quota) and their node decide. Warm-up: for
//! [`WARM_UP`] after its start, in the node's own time, a pod's use grows in a straight line from a tenth to all
//! of it, as programs fill their caches; whoever looks at what is measured sees a new pod late, as in real life.
//!
//! Annotations of the pod steer it:
//!
//! | annotation | value | effect |
//! |---|---|---|
//! | `loadline.dev/usage-cpu` | a quantity, such as `1500m` | the CPU it uses, whatever it asks for |
//! | `loadline.dev/usage-cpu-later` | such as `2 from 2026-01-05T10:00:30Z` | the CPU it uses from a moment on |
//! | `loadline.dev/usage-memory` | a quantity, such as `1Gi` | the memory it uses |
//! | `loadline.dev/usage-trace` | an id, such as `daily-86` | the trace its containers follow |
//!
//! Fixed amounts are divided among the containers as their requests are. A value that cannot be read is
//! complained about and otherwise ignored.

use super::dice;
use super::trace::{self, Trace};
use crate::cluster::{Container, Pod};
use jiff::Timestamp;
use loadline_core::quantity::Quantity;
use std::time::Duration;

/// Fixes the CPU a pod uses.
pub const USAGE_CPU: &str = "loadline.dev/usage-cpu";
/// Fixes the CPU a pod uses from a moment on.
pub const USAGE_CPU_LATER: &str = "loadline.dev/usage-cpu-later";
/// Fixes the memory a pod uses.
pub const USAGE_MEMORY: &str = "loadline.dev/usage-memory";
/// Names the trace a pod follows.
pub const USAGE_TRACE: &str = "loadline.dev/usage-trace";

/// How long a pod takes to use what it will.
pub const WARM_UP: Duration = Duration::from_secs(20);
/// What a container that asks for nothing is taken to ask for.
const ASSUMED: Use = Use { cpu_milli: 50, memory_bytes: 64 << 20 };
/// What a process uses that does nothing.
const LEAST: Use = Use { cpu_milli: 1, memory_bytes: 1 << 20 };

/// More than any machine has, 1 PiB of memory: amounts are held below it, so that sums and products fit.
const MOST: i64 = 1 << 50;

/// An amount of CPU and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub cpu_milli: i64,
    pub memory_bytes: i64,
}

/// What a pod uses, ready to be asked often.
#[derive(Debug)]
pub struct Burn {
    started: Option<Timestamp>,
    containers: Vec<Part>,
}

/// What one container uses.
#[derive(Debug)]
struct Part {
    name: String,
    trace: &'static Trace,
    phase: u64,
    asked: Use,
    cpu_milli: Option<i64>,
    /// From a moment on, that.
    later: Option<(Timestamp, i64)>,
    memory_bytes: Option<i64>,
}

/// When, as the clock has it and as traces have it.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Timestamp,
    time_of_day: u64,
}

impl Moment {
    /// With time in traces passing `pace` times as fast.
    pub fn new(at: Timestamp, pace: u32) -> Self {
        Self { at, time_of_day: trace::time_of_day(at, pace) }
    }
}

impl Burn {
    /// What a pod will use, and what is wrong with its annotations.
    pub fn new(seed: u64, pod: &Pod) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let fixed = Fixed::read(pod, &mut wrong);
        // Sidecars run as long as containers do.
        let sidecars = pod.init_containers.iter().filter(|c| c.restart_policy.as_deref() == Some("Always"));
        let running: Vec<(&Container, Use)> =
            pod.containers.iter().chain(sidecars).map(|c| (c, asked(c))).collect();
        let sum = |of: fn(&Use) -> i64| running.iter().map(|(_, asked)| i128::from(of(asked))).sum();
        let mut cpu = fixed.cpu_milli.map(|total| Split::new(total, sum(|asked| asked.cpu_milli)));
        let later = fixed.later.map(|(from, total)| (from, Split::new(total, sum(|asked| asked.cpu_milli))));
        let (from, mut later) = later.unzip();
        let mut memory = fixed.memory_bytes.map(|total| Split::new(total, sum(|asked| asked.memory_bytes)));
        let containers = running.into_iter().map(|(c, asked)| {
            let roll = |what: &str| dice(seed, &format!("{}/{}/{what}", pod.meta.id.key, c.name));
            Part {
                name: c.name.clone(),
                trace: fixed.trace.unwrap_or_else(|| trace::pick(roll("trace"))),
                phase: roll("phase") % trace::DAY,
                asked,
                cpu_milli: cpu.as_mut().map(|split| split.next(asked.cpu_milli)),
                later: from.zip(later.as_mut().map(|split| split.next(asked.cpu_milli))),
                memory_bytes: memory.as_mut().map(|split| split.next(asked.memory_bytes)),
            }
        });
        (Self { started: pod.started, containers: containers.collect() }, wrong)
    }

    /// What each container uses at a moment.
    pub fn at(&self, moment: Moment) -> impl Iterator<Item = (&str, Use)> {
        let warm = self.started.map_or(1000, |started| warm_up(started, moment.at));
        self.containers.iter().map(move |part| (part.name.as_str(), part.at(moment, warm)))
    }
}

impl Part {
    fn at(&self, moment: Moment, warm: i64) -> Use {
        let time = moment.time_of_day + self.phase;
        let later = self.later.filter(|(from, _)| *from <= moment.at).map(|(_, milli)| milli);
        let cpu = later.or(self.cpu_milli).unwrap_or_else(|| {
            let traced = self.trace.cpu(time).of(self.asked.cpu_milli);
            traced.max(LEAST.cpu_milli)
        });
        let memory = self.memory_bytes.unwrap_or_else(|| {
            let traced = self.trace.memory(time).of(self.asked.memory_bytes);
            traced.max(LEAST.memory_bytes)
        });
        // In whole KiB, as nodes measure.
        Use { cpu_milli: permille(cpu, warm), memory_bytes: permille(memory, warm) >> 10 << 10 }
    }
}

/// What a container asks for, as far as we look at it.
fn asked(c: &Container) -> Use {
    let asked = |name: &str, assumed: i64, of: fn(&Quantity) -> i64| {
        let asked = c.resources.requests.get(name).map(of).filter(|n| *n > 0);
        asked.unwrap_or(assumed).min(MOST)
    };
    Use {
        cpu_milli: asked("cpu", ASSUMED.cpu_milli, Quantity::milli_value),
        memory_bytes: asked("memory", ASSUMED.memory_bytes, Quantity::value),
    }
}

/// How much of its use a pod has reached, in thousandths: 100 at its start, 1000 after [`WARM_UP`].
fn warm_up(started: Timestamp, now: Timestamp) -> i64 {
    let all = i64::try_from(WARM_UP.as_millis()).unwrap_or(i64::MAX);
    let age = i64::try_from(now.duration_since(started).as_millis()).unwrap_or(i64::MAX);
    100 + 900 * age.clamp(0, all) / all
}

fn permille(of: i64, share: i64) -> i64 {
    i64::try_from(i128::from(of) * i128::from(share) / 1000).unwrap_or(i64::MAX)
}

/// What annotations say.
#[derive(Default)]
struct Fixed {
    cpu_milli: Option<i64>,
    later: Option<(Timestamp, i64)>,
    memory_bytes: Option<i64>,
    trace: Option<&'static Trace>,
}

impl Fixed {
    fn read(pod: &Pod, wrong: &mut Vec<String>) -> Self {
        let mut value = |annotation: &str, expected: &str, read: fn(&str) -> Option<i64>| {
            let text = pod.meta.annotation(annotation)?;
            let value = read(text).map(|value| value.min(MOST));
            if value.is_none() {
                wrong.push(complaint(annotation, text, expected));
            }
            value
        };
        let cpu_milli = value(USAGE_CPU, "an amount of CPU such as 1500m", |text| {
            amount(text).map(|quantity| quantity.milli_value())
        });
        let memory_bytes = value(USAGE_MEMORY, "an amount of memory such as 1Gi", |text| {
            amount(text).map(|quantity| quantity.value())
        });
        let text = pod.meta.annotation(USAGE_CPU_LATER);
        let later = text.and_then(|text| {
            let (much, from) = text.split_once(" from ")?;
            Some((from.parse().ok()?, amount(much)?.milli_value().min(MOST)))
        });
        if let (Some(text), None) = (text, later) {
            wrong.push(complaint(USAGE_CPU_LATER, text, "such as 2 from 2026-01-05T10:00:30Z"));
        }
        let id = pod.meta.annotation(USAGE_TRACE);
        let trace = id.and_then(trace::find);
        if let (Some(id), None) = (id, trace) {
            let expected = format!("a trace such as {}", trace::pick(0).id);
            wrong.push(complaint(USAGE_TRACE, id, &expected));
        }
        Self { cpu_milli, later, memory_bytes, trace }
    }
}

fn amount(text: &str) -> Option<Quantity> {
    text.parse().ok().filter(|quantity: &Quantity| !quantity.is_negative())
}

fn complaint(annotation: &str, value: &str, expected: &str) -> String {
    // Annotations may be long; whoever wrote it knows it by its beginning.
    let short: String = value.chars().take(40).collect();
    let dots = if short.len() < value.len() { "…" } else { "" };
    format!("ignores annotation {annotation}: {expected} expected, found {short:?}{dots}")
}

/// Divides an amount by weights, in whole pieces and without losing any.
///
/// After each weight, what was given so far is `total × weights so far / all weights`, rounded down; so the last
/// one gets what is left, and nobody more than one piece above their part.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    total: i64,
    weights: i128,
    passed: i128,
    given: i64,
}

impl Split {
    /// Divides `total` among weights that add up to `weights`.
    pub fn new(total: i64, weights: i128) -> Self {
        Self { total, weights, passed: 0, given: 0 }
    }

    /// What the next one gets.
    pub fn next(&mut self, weight: i64) -> i64 {
        self.passed += i128::from(weight);
        // Neither is above MOST by much, so the product fits.
        let so_far = i128::from(self.total) * self.passed / self.weights.max(1);
        let so_far = i64::try_from(so_far).unwrap_or(self.total);
        let gets = so_far - self.given;
        self.given = so_far;
        gets
    }
}

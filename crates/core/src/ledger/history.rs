//! How loaded has a node been of late? Its samples of five minutes, and peaks of an hour and a day.
//!
//! Time is counted in whole microseconds here, ages back from the newest sample. Of longer ranges only the
//! largest five-minute mean per bucket is kept, in coarser units and rounded up: a peak may be overstated by
//! less than a ten-thousandth of a core and 16 KiB, and may be up to one bucket older than its range says. It
//! is never understated. Means of less than five minutes are no peaks: a busy minute after a restart would
//! otherwise count for a day.

use crate::load::Load;

mod checkpoint;

/// The short interval, in microseconds.
const SPAN: u32 = 300_000_000;
/// The largest number of samples held; denser ones are merged. Enough for one every ten seconds.
const MOST: usize = 32;
/// Five minutes, in microseconds: twelve whole buckets and the current one cover an hour.
const HOUR_STEP: i64 = 300_000_000;
/// Two hours: twelve and the current one cover a day.
const DAY_STEP: i64 = 7_200_000_000;
const DAY: i64 = 86_400_000_000;
const BUCKETS: usize = 13;

/// One sample, seen from the newest.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// How long before the newest it ended, less than [`SPAN`].
    age: u32,
    /// Over how long it was averaged.
    window: u32,
    usage: Load,
}

impl Point {
    /// How much of it lies in the short interval.
    fn overlap(&self) -> u32 {
        self.window.min(SPAN - self.age)
    }
}

/// A mean in coarse units, rounded up: CPU in ten-thousandths of a core, memory in 16 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coarse {
    pub(crate) cpu: u32,
    pub(crate) memory: u32,
}

impl Coarse {
    const CPU: i64 = 100_000;
    const MEMORY: i64 = 16 << 10;

    pub(crate) fn new(load: Load) -> Self {
        let up = |amount: i64, unit: i64| {
            let units = amount.max(0) / unit + i64::from(amount.max(0) % unit != 0);
            u32::try_from(units).unwrap_or(u32::MAX)
        };
        Self { cpu: up(load.cpu_nano, Self::CPU), memory: up(load.memory_bytes, Self::MEMORY) }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self { cpu: self.cpu.max(other.cpu), memory: self.memory.max(other.memory) }
    }

    pub(crate) fn load(self) -> Load {
        // The largest number stands for everything from there on.
        let back = |units: u32, unit: i64| if units == u32::MAX { i64::MAX } else { i64::from(units) * unit };
        Load::new(back(self.cpu, Self::CPU), back(self.memory, Self::MEMORY))
    }
}

/// The largest mean per bucket of time; the bucket of time `t` is number `t / step`, kept at that modulo 13.
#[derive(Clone, Copy, Debug, Default)]
struct Peaks([Coarse; BUCKETS]);

impl Peaks {
    fn place(bucket: i64) -> usize {
        usize::try_from(bucket.rem_euclid(13)).expect("0 to 12")
    }

    /// Forgets what falls out when time moves from bucket to bucket.
    fn turn(&mut self, from: i64, to: i64) {
        for bucket in (from + 1..=to).take(BUCKETS) {
            self.0[Self::place(bucket)] = Coarse::default();
        }
    }

    fn note(&mut self, bucket: i64, mean: Coarse) {
        let held = &mut self.0[Self::place(bucket)];
        *held = held.max(mean);
    }

    fn largest(&self) -> Load {
        self.0.iter().copied().fold(Coarse::default(), Coarse::max).load()
    }

    /// How many buckets before the current one the oldest with anything in it is.
    fn depth(&self, current: i64) -> i64 {
        (1..13).rev().find(|back| self.0[Self::place(current - back)] != Coarse::default()).unwrap_or(0)
    }
}

/// What became of a sample offered as history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It counts.
    Yes,
    /// One of that moment is held.
    Repeated,
    /// It ended five minutes or more before the newest.
    TooOld,
}

/// The past of one node, as told by its samples.
#[derive(Clone, Debug)]
pub(super) struct Past {
    /// When the newest sample ended.
    newest: i64,
    /// The oldest sample since the node has been known without a gap of more than a day.
    first: i64,
    /// When the samples without a gap of five minutes begin.
    unbroken: i64,
    /// Oldest first, the newest last.
    points: Vec<Point>,
    hour: Peaks,
    day: Peaks,
}

/// Nanoseconds as microseconds, toward the past.
fn micros(nanos: i64) -> i64 {
    nanos.div_euclid(1000)
}

/// A window as microseconds; one longer than the short interval covers all of it.
fn window(nanos: i64) -> u32 {
    u32::try_from(micros(nanos)).map_or(SPAN, |w| w.min(SPAN))
}

impl Past {
    /// With its first sample: when it ended and over how long it was averaged, in nanoseconds.
    pub(super) fn new(at: i64, length: i64, usage: Load) -> Self {
        let newest = micros(at);
        let mut past = Self {
            newest,
            first: newest,
            unbroken: newest.saturating_sub(window(length).into()),
            points: Vec::new(),
            hour: Peaks::default(),
            day: Peaks::default(),
        };
        past.points.reserve_exact(4);
        past.points.push(Point { age: 0, window: window(length), usage });
        past.note();
        past
    }

    /// Adds a sample, in its place if a checkpoint knew a newer one already.
    pub(super) fn add(&mut self, at: i64, length: i64, usage: Load) {
        if micros(at) > self.newest {
            self.push(micros(at), window(length), usage);
        } else {
            self.insert(at, length, usage);
        }
    }

    /// Adds a sample newer than all others.
    fn push(&mut self, at: i64, window: u32, usage: Load) {
        let step = u32::try_from(at - self.newest).unwrap_or(SPAN);
        let old = self.newest;
        self.newest = at;
        if self.day_bucket() - old.div_euclid(DAY_STEP) >= 13 {
            self.first = at;
        }
        self.hour.turn(old.div_euclid(HOUR_STEP), self.hour_bucket());
        self.day.turn(old.div_euclid(DAY_STEP), self.day_bucket());
        for point in &mut self.points {
            point.age = point.age.saturating_add(step);
        }
        let out = self.points.partition_point(|p| p.age >= SPAN);
        self.points.drain(..out);
        if self.points.is_empty() {
            self.unbroken = at.saturating_sub(window.into());
        }
        self.put(self.points.len(), Point { age: 0, window, usage });
        self.note();
    }

    /// Adds a sample older than the newest.
    pub(super) fn insert(&mut self, at: i64, length: i64, usage: Load) -> Kept {
        let Ok(age) = u32::try_from(self.newest.saturating_sub(micros(at))) else { return Kept::TooOld };
        if age >= SPAN {
            return Kept::TooOld;
        }
        let place = self.points.partition_point(|p| p.age > age);
        if self.points.get(place).is_some_and(|p| p.age == age) {
            return Kept::Repeated;
        }
        self.put(place, Point { age, window: window(length), usage });
        self.first = self.first.min(micros(at));
        self.unbroken = self.unbroken.min(micros(at).saturating_sub(window(length).into()));
        self.note();
        Kept::Yes
    }

    fn put(&mut self, place: usize, point: Point) {
        if self.points.len() == self.points.capacity() {
            self.points.reserve_exact(4);
        }
        self.points.insert(place, point);
        if self.points.len() > MOST {
            self.merge();
        }
    }

    /// Makes one of the two neighbours that span the least, never touching the newest: weight is kept, only
    /// where exactly it lies is blurred.
    fn merge(&mut self) {
        let older = self.points.len() - 1;
        let span = |i: usize| self.points[i].age - self.points[i + 1].age;
        let Some(i) = (0..older - 1).min_by_key(|i| span(*i)) else { return };
        let (a, b) = (self.points[i], self.points[i + 1]);
        let usage = mean([(a.usage, a.window), (b.usage, b.window)].into_iter());
        self.points[i + 1] = Point { age: b.age, window: a.window.saturating_add(b.window).min(SPAN), usage };
        self.points.remove(i);
    }

    fn hour_bucket(&self) -> i64 {
        self.newest.div_euclid(HOUR_STEP)
    }

    fn day_bucket(&self) -> i64 {
        self.newest.div_euclid(DAY_STEP)
    }

    /// Books the present mean among the peaks if it is one of five minutes.
    fn note(&mut self) {
        if self.newest.saturating_sub(self.unbroken) < SPAN.into() {
            return;
        }
        let mean = Coarse::new(self.mean());
        self.hour.note(self.hour_bucket(), mean);
        self.day.note(self.day_bucket(), mean);
    }

    /// The mean of the samples over the short interval before the newest, each weighted by its overlap with
    /// it; rounded up.
    pub(super) fn mean(&self) -> Load {
        mean(self.points.iter().map(|p| (p.usage, p.overlap())))
    }

    /// The largest five-minute mean within the last hour, the present one included.
    pub(super) fn hour(&self) -> Load {
        self.hour.largest().max(self.mean())
    }

    /// The largest five-minute mean within the last day, the present one included.
    pub(super) fn day(&self) -> Load {
        self.day.largest().max(self.mean())
    }

    /// When the newest sample ended, in nanoseconds.
    pub(super) fn newest(&self) -> i64 {
        self.newest.saturating_mul(1000)
    }

    /// Since when there are samples, at most a day back, in nanoseconds.
    pub(super) fn since(&self) -> i64 {
        let day = self.newest.saturating_sub(DAY);
        let since = if self.first >= day {
            self.first
        } else {
            day.max((self.day_bucket() - self.day.depth(self.day_bucket())) * DAY_STEP)
        };
        since.saturating_mul(1000)
    }

    /// Allocated bytes, itself included.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.points.capacity() * size_of::<Point>()
    }
}

/// Σ value × weight ÷ Σ weight, rounded up; the plain mean where nothing has weight.
fn mean(values: impl Iterator<Item = (Load, u32)> + Clone) -> Load {
    let weighed = values.clone().any(|(_, weight)| weight > 0);
    let (mut cpu, mut memory, mut whole) = (0_i128, 0_i128, 0_i128);
    for (load, weight) in values {
        let weight = if weighed { i128::from(weight) } else { 1 };
        cpu += i128::from(load.cpu_nano) * weight;
        memory += i128::from(load.memory_bytes) * weight;
        whole += weight;
    }
    let up = |sum: i128| {
        let up = sum.div_euclid(whole.max(1)) + i128::from(sum.rem_euclid(whole.max(1)) != 0);
        i64::try_from(up).unwrap_or(i64::MAX)
    };
    Load::new(up(cpu), up(memory))
}

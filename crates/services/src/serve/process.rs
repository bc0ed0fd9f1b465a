//! What does this process use, thread by thread? For whoever wonders why it is busy or large.
//!
//! The kernel counts all of it already: nothing is sampled, and nothing is spent while nobody asks. Where in the program time goes
//! is a question for `perf`, which needs nothing of the program.

mod figures;

pub use figures::Figures;

use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

/// Where the kernel tells of this process.
const SELF: &str = "/proc/self";
/// What the kernel counts CPU time in, a second, whatever the machine.
const TICKS: u64 = 100;
/// Threads that are told one by one.
const MOST: usize = 256;

/// A process. Field names are a promise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub time: Timestamp,
    /// How long was looked, in seconds.
    pub seconds: f64,
    pub memory: Memory,
    pub open_files: usize,
    /// What waits to be run or runs, and what waits for something else, in the runtime.
    pub tasks: Tasks,
    /// The busiest first.
    pub threads: Vec<Thread>,
}

/// In bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    pub resident: Option<u64>,
    /// The most it ever was.
    pub peak: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tasks {
    pub alive: usize,
    /// That could run and wait for a thread.
    pub queued: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    pub name: String,
    /// As the kernel has it: `R` runs, `S` waits, `D` waits for a disk.
    pub state: String,
    /// Since the thread began, in seconds.
    pub cpu_seconds: f64,
    /// While it was looked at, in percent of a CPU.
    pub cpu_percent: f64,
}

/// Looks at this process for so long.
///
/// # Errors
/// When the kernel does not tell: there is no `/proc`.
pub async fn look(time: Duration) -> io::Result<Process> {
    let before = threads(Path::new(SELF))?;
    let began = tokio::time::Instant::now();
    tokio::time::sleep(time).await;
    let (after, seconds) = (threads(Path::new(SELF))?, began.elapsed().as_secs_f64());
    let runtime = tokio::runtime::Handle::current().metrics();
    Ok(Process {
        api_version: "loadline.dev/v1alpha1",
        kind: "Process",
        time: Timestamp::now(),
        seconds,
        memory: memory(&fs::read_to_string(Path::new(SELF).join("status"))?),
        open_files: fs::read_dir(Path::new(SELF).join("fd"))?.count(),
        tasks: Tasks { alive: runtime.num_alive_tasks(), queued: runtime.global_queue_depth() },
        threads: compare(&before, &after, seconds),
    })
}

/// What the kernel says of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    state: String,
    ticks: u64,
}

fn threads(process: &Path) -> io::Result<BTreeMap<u32, Stat>> {
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(process.join("task"))?.flatten() {
        // One that has ended meanwhile is left out.
        let text = fs::read_to_string(entry.path().join("stat")).ok();
        out.extend(text.as_deref().and_then(stat));
    }
    Ok(out)
}

/// `12 (tokio-rt-worker) S 1 …`: the name may hold anything, so it ends at the last parenthesis.
fn stat(text: &str) -> Option<(u32, Stat)> {
    let (id, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The fourteenth and fifteenth field: in the program, and in the kernel for it.
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let ticks = ticks(11)?.saturating_add(ticks(12)?);
    Some((id.parse().ok()?, Stat { name: name.to_owned(), state: (*fields.first()?).to_owned(), ticks }))
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn compare(before: &BTreeMap<u32, Stat>, after: &BTreeMap<u32, Stat>, seconds: f64) -> Vec<Thread> {
    let mut out: Vec<Thread> = after
        .iter()
        .map(|(id, now)| {
            let since = before.get(id).map_or(0, |before| before.ticks);
            let used = now.ticks.saturating_sub(since) as f64 / TICKS as f64;
            Thread {
                name: now.name.clone(),
                state: now.state.clone(),
                cpu_seconds: now.ticks as f64 / TICKS as f64,
                cpu_percent: if seconds > 0.0 { (used / seconds * 1000.0).round() / 10.0 } else { 0.0 },
            }
        })
        .collect();
    out.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent).then(b.cpu_seconds.total_cmp(&a.cpu_seconds)));
    out.truncate(MOST);
    out
}

fn memory(status: &str) -> Memory {
    Memory { resident: memory_of(status, "VmRSS"), peak: memory_of(status, "VmHWM") }
}

/// In bytes, of a line such as `VmRSS: 12345 kB`.
fn memory_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_read_whatever_it_is_called() {
        let text = "12 (a) b (c)) R 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 4 0 100\n";
        let expected = Stat { name: "a) b (c)".to_owned(), state: "R".to_owned(), ticks: 200 };
        assert_eq!(stat(text), Some((12, expected)));
        for bad in
            ["", "12 (a) R 1", "x (a) R 1 2 3 4 5 6 7 8 9 10 150 50", "12 (a) R 1 2 3 4 5 6 7 8 9 10 -1 50"]
        {
            assert_eq!(stat(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_busiest_thread_of_the_time_that_was_looked_comes_first() {
        let stat = |name: &str, ticks| Stat { name: name.to_owned(), state: "S".to_owned(), ticks };
        let before = BTreeMap::from([(1, stat("old", 1000)), (2, stat("busy", 100))]);
        let after = BTreeMap::from([(1, stat("old", 1000)), (2, stat("busy", 200)), (3, stat("new", 50))]);
        let told: Vec<_> = compare(&before, &after, 2.0)
            .into_iter()
            .map(|thread| (thread.name, thread.cpu_seconds, thread.cpu_percent))
            .collect();
        let expected = [("busy", 2.0, 50.0), ("new", 0.5, 25.0), ("old", 10.0, 0.0)];
        assert_eq!(told, expected.map(|(name, seconds, percent)| (name.to_owned(), seconds, percent)));
    }

    #[test]
    fn memory_that_is_not_told_is_not_zero() {
        let text = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(memory(text), Memory { resident: Some(1 << 20), peak: Some(2 << 20) });
        assert_eq!(memory("VmRSS: many\n"), Memory::default());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn this_process_is_seen() {
        let seen = look(Duration::ZERO).await.unwrap();
        assert!(!seen.threads.is_empty());
        assert!(seen.open_files > 0);
        assert!(seen.memory.resident.is_some_and(|bytes| bytes > 0));
    }
}

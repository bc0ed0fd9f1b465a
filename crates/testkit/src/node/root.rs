//! What would a node say of itself if it were alone on its machine?
//!
//! Every node of a test measures the whole machine, and what else runs there would decide about tests. Here is a folder to be
//! taken for the node's file system: `/sys` is the machine's, and `/proc` tells of the node's own pods alone, kept up to date
//! from their cgroup.

use super::RealNode;
use crate::control_plane::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How often the files are written.
const EVERY: Duration = Duration::from_millis(20);
/// Times in `/proc/stat` are in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// The file system of a node that is alone on its machine. Kept up to date while it lives.
#[derive(Debug)]
pub struct NodeRoot {
    folder: TempDir,
    stop: Arc<AtomicBool>,
    writing: Option<JoinHandle<()>>,
}

impl NodeRoot {
    /// Of a node, with so many cores, whatever the machine has.
    ///
    /// # Errors
    /// When the folder cannot be made, or the node's cgroup is not where it should be.
    pub fn start(node: &RealNode<'_>, cores: u32) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("loadline-root-").tempdir();
        let folder = folder.map_err(Error::io("make a temporary folder"))?;
        fs::create_dir(folder.path().join("proc")).map_err(Error::io("make a folder"))?;
        symlink("/sys", folder.path().join("sys")).map_err(Error::io("make a link"))?;
        let mut writer = Writer {
            proc: folder.path().join("proc"),
            counter: counter(node.cgroup()),
            began: Instant::now(),
            cores,
            idle: 0,
        };
        writer.write().map_err(Error::io("write a node's figures"))?;
        let stop = Arc::<AtomicBool>::default();
        let stopped = stop.clone();
        let writing = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                // What cannot be written now is in a moment.
                let _ = writer.write();
                thread::sleep(EVERY);
            }
        });
        Ok(Self { folder, stop, writing: Some(writing) })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for NodeRoot {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(writing) = self.writing.take() {
            let _ = writing.join();
        }
    }
}

/// Where the kernel counts what everything in a cgroup used, in nanoseconds or as a line `usage_usec`.
fn counter(cgroup: &str) -> PathBuf {
    let unified = PathBuf::from(format!("/sys/fs/cgroup/{cgroup}/cpu.stat"));
    if unified.exists() { unified } else { format!("/sys/fs/cgroup/cpuacct/{cgroup}/cpuacct.usage").into() }
}

struct Writer {
    proc: PathBuf,
    counter: PathBuf,
    began: Instant,
    cores: u32,
    /// The last that was written: counters only grow.
    idle: u128,
}

impl Writer {
    fn used(&self) -> std::io::Result<Duration> {
        let text = fs::read_to_string(&self.counter)?;
        let micros = text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.parse().ok());
        let used = micros.map(Duration::from_micros);
        Ok(used.or_else(|| text.trim().parse().ok().map(Duration::from_nanos)).unwrap_or_default())
    }

    fn write(&mut self) -> std::io::Result<()> {
        let (used, passed) = (self.used()?, self.began.elapsed());
        let ticks = |time: Duration| time.as_nanos() / TICK.as_nanos();
        let (busy, all) = (ticks(used), ticks(passed * self.cores));
        // It began before this did, so that it was never busier than it can be.
        self.idle = self.idle.max((all + 1_000_000_000).saturating_sub(busy));
        let mut stat = format!("cpu  {busy} 0 0 {} 0 0 0 0 0 0\n", self.idle);
        stat.extend((0..self.cores).map(|core| {
            format!(
                "cpu{core} 0 0 0 0 0 0 0 0 0 0
"
            )
        }));
        stat += "ctxt 0\n";
        self.replace("stat", &stat)?;
        self.replace("meminfo", &fs::read_to_string("/proc/meminfo")?)
    }

    /// Whole, so that nobody reads half of it.
    fn replace(&self, name: &str, text: &str) -> std::io::Result<()> {
        let new = self.proc.join(format!("{name}.new"));
        fs::write(&new, text)?;
        fs::rename(new, self.proc.join(name))
    }
}

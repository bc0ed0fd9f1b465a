//! How does a child process end when the test that started it ends in whatever way, `SIGKILL` included?
//!
//! Between us and the program stands a small shell that waits on a pipe only we hold the other end of. When we
//! drop it, panic, leave `main` with a static undropped, or are killed, the kernel closes our end; the shell sees
//! the end of the pipe, kills the program, reaps it and removes the folder. Signals of the terminal do not reach
//! shell or program (they are a process group of their own), so Ctrl-C takes the same path.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `sh -c SCRIPT sh FOLDER PID-FILE EXIT-FILE AFTERWARDS PROGRAM ARGS...`, standard input being the pipe.
///
/// The shell stays until the end of the pipe even when the program ends first: the folder may only go when nobody
/// reads logs in it any more. With several guards on one folder each tries to remove it after its own program's
/// end, so the last one finds no writer left.
const SCRIPT: &str = r#"
folder=$1 pid_file=$2 exit_file=$3 afterwards=$4
shift 4
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
echo "$child" >"$pid_file"
{ read -r _ <&3; [ -e "$exit_file" ] || kill -KILL "$child"; } 2>/dev/null &
wait "$child"
echo "$?" >"$exit_file"
read -r _ <&3
sh -c "$afterwards"
rm -rf "$folder"
"#;

/// A running program that ends with us, and its files `NAME.log`, `NAME.pid` and `NAME.exit`.
#[derive(Debug)]
pub struct Guard {
    name: String,
    folder: PathBuf,
    shell: Child,
}

impl Guard {
    /// Starts `program` with its output in `folder/NAME.log`. The folder is removed when the guard's process ends
    /// or the guard is dropped; it must hold nothing but files of this run.
    ///
    /// # Errors
    /// When the log cannot be made or `sh` cannot be started. A program that does not exist shows in [`Guard::ended`].
    pub fn start<A: AsRef<OsStr>>(name: &str, folder: &Path, program: &Path, args: &[A]) -> io::Result<Self> {
        Self::start_with_afterwards(name, folder, program, args, "")
    }

    /// The same for a program that leaves more behind than its folder: `afterwards` is what a shell does about it once
    /// the program has ended and we are gone.
    ///
    /// # Errors
    /// As [`Guard::start`].
    pub fn start_with_afterwards<A: AsRef<OsStr>>(
        name: &str,
        folder: &Path,
        program: &Path,
        args: &[A],
        afterwards: &str,
    ) -> io::Result<Self> {
        let log = File::create(folder.join(format!("{name}.log")))?;
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(folder);
        shell.arg(folder.join(format!("{name}.pid"))).arg(folder.join(format!("{name}.exit")));
        shell.arg(afterwards).arg(program).args(args);
        shell.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).process_group(0);
        Ok(Self { name: name.to_owned(), folder: folder.to_owned(), shell: shell.spawn()? })
    }

    /// The name it was started under.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its output goes.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }

    /// Its process id, once it has one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.folder.join(format!("{}.pid", self.name))).ok()?.trim().parse().ok()
    }

    /// Its exit status if it has ended by itself (128 + n for signal n).
    #[must_use]
    pub fn ended(&self) -> Option<i32> {
        fs::read_to_string(self.folder.join(format!("{}.exit", self.name))).ok()?.trim().parse().ok()
    }

    /// Kills it, as a crash would, and waits for its end. Its files stay.
    ///
    /// # Errors
    /// When it cannot be found.
    pub fn kill(&self) -> io::Result<()> {
        let pid = fs::read_to_string(self.folder.join(format!("{}.pid", self.name)))?;
        let sent = Command::new("kill").args(["-KILL", pid.trim()]).status()?;
        if !sent.success() {
            return Err(io::Error::other(format!("no process {}", pid.trim())));
        }
        while self.ended().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Ok(())
    }

    /// The last `count` lines of its output.
    #[must_use]
    pub fn last_lines(&self, count: usize) -> String {
        let text = self.output();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    /// All of its output up to now.
    #[must_use]
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log()).unwrap_or_default()).into_owned()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // Only fails if someone else reaped the shell; then there is nothing left to wait for.
        let _ = self.shell.wait();
    }
}

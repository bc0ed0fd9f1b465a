//! Programs under a guard end with the process that started them, in whatever way it ends.

#![expect(clippy::unwrap_used, reason = "a failed step of a helper fails its test")]

use loadline_testkit::guard::Guard;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn start(folder: &Path) -> Vec<Guard> {
    let sleep = |name| Guard::start(name, folder, Path::new("sleep"), &["1000"]).unwrap();
    vec![sleep("first"), sleep("second")]
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_mins(1), "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn pid(folder: &Path, name: &str) -> String {
    let mut pid = String::new();
    wait_until("the program's id is known", || {
        pid = fs::read_to_string(folder.join(format!("{name}.pid"))).unwrap_or_default();
        pid.ends_with('\n')
    });
    pid.trim().to_owned()
}

fn is_running(pid: &str) -> bool {
    let kill = Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status();
    kill.unwrap().success()
}

fn folder() -> PathBuf {
    tempfile::Builder::new().prefix("loadline-guard-").tempdir().unwrap().keep()
}

#[test]
fn dropping_the_guard_ends_the_program_and_removes_the_folder() {
    let folder = folder();
    let guards = start(&folder);
    let pids = [pid(&folder, "first"), pid(&folder, "second")];
    assert!(pids.iter().all(|pid| is_running(pid)));
    drop(guards);
    assert!(!pids.iter().any(|pid| is_running(pid)), "reaped before drop returns");
    assert!(!folder.exists());
}

#[test]
fn a_panic_ends_the_program() {
    let folder = folder();
    let inner = folder.clone();
    let thread = thread::spawn(move || {
        let _guards = start(&inner);
        pid(&inner, "first");
        panic!("on purpose");
    });
    assert!(thread.join().is_err());
    assert!(!folder.exists());
}

#[test]
fn killing_our_process_ends_the_program_and_removes_the_folder() {
    let folder = folder();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hold")).arg(&folder).spawn().unwrap();
    let pids = [pid(&folder, "first"), pid(&folder, "second")];
    assert!(pids.iter().all(|pid| is_running(pid)));

    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the programs are gone", || !pids.iter().any(|pid| is_running(pid)));
    wait_until("the folder is gone", || !folder.exists());
}

#[test]
fn a_program_that_ends_by_itself_leaves_its_status_and_its_last_lines() {
    let folder = folder();
    let script = ["-c", "echo one; echo two >&2; echo three; exit 7"];
    let guard = Guard::start("brief", &folder, Path::new("sh"), &script).unwrap();
    wait_until("it ended", || guard.ended().is_some());
    assert_eq!(guard.ended(), Some(7));
    assert_eq!(guard.last_lines(2), "two\nthree");
}

#[test]
fn a_program_that_does_not_exist_says_so() {
    let folder = folder();
    let guard = Guard::start("none", &folder, Path::new("no-such-program"), &[""; 0]).unwrap();
    wait_until("it ended", || guard.ended().is_some());
    assert_eq!(guard.ended(), Some(127));
    assert!(guard.last_lines(5).contains("no-such-program"), "{}", guard.last_lines(5));
}

//! A running service of ours: started, asked how it is, stopped, ended.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Generous: a busy machine must not fail a test.
pub const PATIENCE: Duration = Duration::from_mins(4);

/// Asks again until there is an answer.
#[track_caller]
pub fn until<T>(what: &str, ask: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// A service that serves `/readyz` and `/metrics`.
pub struct Service {
    child: Child,
    /// Read all the time, or a service with much to say would be held up.
    log: Arc<Mutex<String>>,
    /// It will say nothing more.
    is_silent: Arc<AtomicBool>,
    /// Where it says how it is.
    http: String,
}

impl Service {
    /// Starts it with these arguments and waits until it listens.
    pub fn start<A: AsRef<OsStr>>(args: &[A]) -> Self {
        Self::start_with(args, &[])
    }

    /// The same with these in its environment.
    pub fn start_with<A: AsRef<OsStr>>(args: &[A], environment: &[(&str, &OsStr)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .envs(environment.iter().copied())
            .args(["--log-format", "json"])
            .args(args)
            .args(["--http-bind-address", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (log, lines) = (Arc::<Mutex<String>>::default(), BufReader::new(child.stderr.take().unwrap()));
        let (said, is_silent) = (log.clone(), Arc::<AtomicBool>::default());
        let ended = is_silent.clone();
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                said.lock().unwrap().push_str(&(line + "\n"));
            }
            ended.store(true, Ordering::Relaxed);
        });
        let mut service = Self { child, log, is_silent, http: String::new() };
        let listening: Value = serde_json::from_str(&service.says("\"listening\"")).unwrap();
        listening["fields"]["http"].as_str().unwrap().clone_into(&mut service.http);
        service
    }

    /// The first line of its log that contains this text.
    pub fn says(&self, text: &str) -> String {
        let found = || {
            let log = self.log.lock().unwrap();
            log.lines().find(|line| line.contains(text)).map(str::to_owned)
        };
        let begun = Instant::now();
        loop {
            let is_silent = self.is_silent.load(Ordering::Relaxed);
            if let Some(line) = found() {
                return line;
            }
            assert!(
                !is_silent && begun.elapsed() < PATIENCE,
                "it never said {text:?}:\n{}",
                self.log.lock().unwrap()
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn get(&self, path: &str) -> String {
        self.get_as(path, None)
    }

    /// The same for somebody who shows a token.
    pub fn get_as(&self, path: &str, token: Option<&str>) -> String {
        let mut stream = TcpStream::connect(&self.http).unwrap();
        let shown = token.map_or_else(String::new, |token| format!("authorization: Bearer {token}\r\n"));
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{shown}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Where it says how it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// Waits until it says of itself that it is so.
    #[track_caller]
    pub fn until(&self, what: &str) {
        let begun = Instant::now();
        while !self.get("/readyz").contains(what) {
            assert!(begun.elapsed() < PATIENCE, "waited too long for {what:?}: {}", self.get("/readyz"));
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Memory it has, in KiB.
    #[cfg(target_os = "linux")]
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// CPU time it has used, in seconds.
    #[cfg(target_os = "linux")]
    pub fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The name, in brackets, may have blanks; after it the 12th and 13th are time of its own and of the kernel for it.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: f64 = fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum();
        ticks / 100.0
    }

    /// The sum of a metric over all its labels.
    pub fn sum(&self, metric: &str) -> f64 {
        let text = self.get("/metrics");
        let lines = text.lines().filter(|line| line.starts_with(metric));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// What `loadline explain node` says, asking this service.
    pub fn explain(&self, node: &str, form: &str) -> String {
        let url = format!("http://{}", self.http);
        let answer = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["explain", "node", node, "--agent", &url, "-o", form])
            .output()
            .unwrap();
        String::from_utf8_lossy(&answer.stdout).into_owned()
    }

    /// Everything it has said.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Asks it to end, and waits; says whether it did so well.
    pub fn ends(mut self) -> bool {
        self.signal("TERM");
        self.child.wait().unwrap().success()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Prometheus with our rules and node-exporter on this machine, and what an annotator makes of them.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use crate::service::until;
use loadline_testkit::Running;
use loadline_testkit::parts::find_or_skip;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A Prometheus that can be stopped and killed and started again on the same port with the same data.
pub struct Prometheus {
    program: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Prometheus {
    /// Scrapes these targets every second, by our rules, which are evaluated every second here: a test cannot wait for a
    /// minute to be over.
    pub fn start(program: PathBuf, targets: &[String], rules: bool) -> Self {
        let found = json!({"static_configs": [{"targets": targets, "labels": {"cluster": "a"}}]});
        Self::start_every("1s", program, found, rules)
    }

    /// The same with other ranges in the rules: what stands there, and what instead.
    pub fn start_looking_back(ranges: &[(&str, &str)], program: PathBuf, targets: &[String]) -> Self {
        let found = json!({"static_configs": [{"targets": targets}]});
        Self::start_with("1s", program, found, true, ranges)
    }

    /// The same so often, with targets found that way.
    pub fn start_every(every: &str, program: PathBuf, found: Value, rules: bool) -> Self {
        Self::start_with(every, program, found, rules, &[])
    }

    fn start_with(
        every: &str,
        program: PathBuf,
        mut found: Value,
        rules: bool,
        ranges: &[(&str, &str)],
    ) -> Self {
        found["job_name"] = json!("node");
        let folder = tempfile::tempdir().unwrap();
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus/rules.yaml");
        let text = std::fs::read_to_string(shipped).unwrap();
        let interval = format!("interval: {every}");
        let quick = text.replace("interval: 15s", &interval).replace("interval: 1m", &interval);
        assert_eq!(quick.matches(&interval).count(), 3, "every group is made quick");
        let quick = ranges.iter().fold(quick, |text, (from, to)| {
            assert!(text.contains(from), "{from} stands in the rules");
            text.replace(from, to)
        });
        std::fs::write(folder.path().join("rules.yaml"), quick).unwrap();
        let config = json!({
            "global": {"scrape_interval": every, "evaluation_interval": every},
            "rule_files": if rules { json!(["rules.yaml"]) } else { json!([]) },
            "scrape_configs": [found],
        });
        std::fs::write(folder.path().join("prometheus.yml"), config.to_string()).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Self::spawn(&program, folder.path(), port);
        let prometheus = Self { program, folder, port, child };
        prometheus.wait();
        prometheus
    }

    fn spawn(program: &Path, folder: &Path, port: u16) -> Child {
        Command::new(program)
            .current_dir(folder)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"])
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn wait(&self) {
        until("prometheus", || TcpStream::connect(("127.0.0.1", self.port)).ok());
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The value of the one series that this expression has at that moment, in seconds since 1970.
    pub fn query(&self, expression: &str, second: i64) -> Option<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let path = format!("/api/v1/query?query={expression}&time={second}");
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).unwrap();
        answer.pointer("/data/result/0/value/1")?.as_str()?.parse().ok()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub fn restart(&mut self) {
        let _ = self.child.wait();
        self.child = Self::spawn(&self.program, self.folder.path(), self.port);
        self.wait();
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps all cores busy while it lives.
pub struct Busy(Arc<AtomicBool>);

impl Busy {
    pub fn start() -> Self {
        let on = Arc::new(AtomicBool::new(true));
        for _ in 0..thread::available_parallelism().unwrap().get() {
            let on = on.clone();
            thread::spawn(move || {
                while on.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(on)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// node-exporter, with what our rules read.
pub fn exporter() -> Option<Running> {
    let program = find_or_skip("prometheus-node-exporter")?;
    let flags = |port: u16| {
        let only = ["--collector.disable-defaults", "--collector.cpu", "--collector.meminfo"];
        let mut flags: Vec<String> = only.map(str::to_owned).into();
        flags.push(format!("--web.listen-address=127.0.0.1:{port}"));
        flags
    };
    Some(Running::start("node-exporter", &program, flags).unwrap())
}

/// The value and the stamp of an annotation of a node.
pub fn annotation(node: &Value, key: &str) -> Option<(f64, String)> {
    let (value, stamp) = node["metadata"]["annotations"][key].as_str()?.split_once(',')?;
    Some((value.parse().unwrap(), stamp.to_owned()))
}

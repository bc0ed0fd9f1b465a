//! Running the real binary: started, waited for, and ended whatever happens to the test.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// A running `loadline up`.
pub struct Up {
    child: Child,
    out: BufReader<ChildStdout>,
    folder: tempfile::TempDir,
    /// What it said until it was up.
    pub greeting: String,
}

impl Up {
    /// Starts it, in a world where nothing happens by itself unless that is asked for, and waits until it says that it
    /// is up.
    pub fn start(args: &[&str]) -> Self {
        let happens = ["--scenario", "--workloads", "--compare"].iter().any(|flag| args.contains(flag));
        if happens {
            Self::start_as_is(args)
        } else {
            Self::start_as_is(&[args, &["--quiet-world"]].concat())
        }
    }

    /// Starts it and waits until it says that it is up.
    pub fn start_as_is(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .arg("up")
            .args(args)
            .arg("--kubeconfig-out")
            .arg(folder.path().join("kubeconfig"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut up = Self { child, out, folder, greeting: String::new() };
        loop {
            let line = up.line();
            up.greeting.push_str(&line);
            if line.contains("Ctrl-C") {
                return up;
            }
        }
    }

    /// The next line it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.out.read_line(&mut line).unwrap();
        assert!(read > 0, "loadline up ended too early");
        line
    }

    /// The text after a word of its greeting, up to the next blank or comma.
    pub fn said(&self, what: &str) -> String {
        let line = self.greeting.lines().find(|line| line.trim_start().starts_with(what)).unwrap();
        let text = line.trim_start()[what.len()..].trim_start();
        text.split([' ', ',']).next().unwrap().to_owned()
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Asks it to end, as a service manager would.
    #[cfg(unix)]
    pub fn terminate(&self) {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end; the rest of what it printed.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// kubectl pointed at a server, with caches of its own.
pub fn kubectl(program: &Path, kubeconfig: &Path, folder: &Path) -> Command {
    let mut kubectl = Command::new(program);
    kubectl.env("KUBECONFIG", kubeconfig).env("KUBECACHEDIR", folder.join("kubectl-cache"));
    kubectl
}

/// A client as anybody would make one, except that refusals are answers, not something to try again.
pub async fn client(kubeconfig: &Path) -> kube::Client {
    client_with(kubeconfig, kube::config::KubeConfigOptions::default()).await
}

/// The same for a context that is not the current one.
pub async fn client_for(kubeconfig: &Path, context: &str) -> kube::Client {
    let context = Some(context.to_owned());
    client_with(kubeconfig, kube::config::KubeConfigOptions { context, ..Default::default() }).await
}

async fn client_with(kubeconfig: &Path, options: kube::config::KubeConfigOptions) -> kube::Client {
    let read = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(read, &options).await.unwrap();
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
}

/// The moment that scenarios are about.
pub const NOW: &str = "2025-01-01T12:00:00Z";

/// A scenario, by folder and name.
pub fn scenario(name: &str) -> String {
    let path = format!("{}/../../scenarios/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the scenario is there")
}

/// What an engine answers to what is given on the standard input, at a fixed time.
pub fn what_if(engine: &str, input: &str, more: &[&str]) -> serde_json::Value {
    answer(engine, input, &[&["--now", NOW], more].concat())
}

/// What an engine answers to what is given on the standard input.
pub fn answer(engine: &str, input: &str, more: &[&str]) -> serde_json::Value {
    let mut asked = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["what-if", engine, "-f", "-", "-o", "json"])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    asked.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it is read");
    let answered = asked.wait_with_output().expect("it ends");
    assert!(answered.status.success(), "{}", String::from_utf8_lossy(&answered.stderr));
    serde_json::from_slice(&answered.stdout).expect("the answer is JSON")
}

//! Somebody else's scheduler beside ours: a kube-scheduler the user has, for the pods that name nobody.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Lines of its log that are shown when it ends.
const SHOWN: usize = 10;

/// A running kube-scheduler. It ends with this value.
pub struct StockScheduler {
    child: Child,
    path: PathBuf,
    log: PathBuf,
}

impl StockScheduler {
    /// Starts it on the cluster of that kubeconfig, beside which its log is kept while it runs.
    pub fn start(path: &Path, kubeconfig: &Path) -> Result<Self> {
        let shown = path.display();
        if !path.is_file() {
            bail!("--scheduler: {shown} is not a file, expected the program kube-scheduler");
        }
        let log = kubeconfig.with_extension("kube-scheduler.log");
        let write = || File::create(&log).with_context(|| format!("cannot write {}", log.display()));
        let config = kubeconfig.display();
        let child = Command::new(path)
            .args([
                format!("--kubeconfig={config}"),
                format!("--authentication-kubeconfig={config}"),
                format!("--authorization-kubeconfig={config}"),
                "--leader-elect=false".to_owned(),
                // It serves nothing, so that nothing has to be free.
                "--secure-port=0".to_owned(),
            ])
            .stdin(Stdio::null())
            .stdout(write()?)
            .stderr(write()?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("--scheduler: cannot start {shown}"))?;
        Ok(Self { child, path: path.to_owned(), log })
    }

    /// Waits for its end, which should not come; says what happened.
    pub async fn ended(&mut self) -> String {
        let status = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
        format!("--scheduler: {} ended ({status}); its last lines:\n{last}", self.path.display())
    }
}

impl Drop for StockScheduler {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.log);
    }
}

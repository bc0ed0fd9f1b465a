//! How is a member reached?

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// How a member is reached.
#[derive(Clone)]
pub enum Source {
    /// By a client that is there already.
    Client(Client),
    /// By a kubeconfig file, read when it is needed, and again when it has changed and something is wrong.
    Kubeconfig(PathBuf),
    /// As the pod we run in.
    InCluster,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(_) => f.write_str("Client"),
            Self::Kubeconfig(path) => f.debug_tuple("Kubeconfig").field(path).finish(),
            Self::InCluster => f.write_str("InCluster"),
        }
    }
}

impl Source {
    /// A client, and the text it was made from.
    ///
    /// # Errors
    /// What is wrong with the kubeconfig, in one line that names it. Nothing is asked of the cluster yet.
    pub async fn connect(&self) -> Result<(Client, String), String> {
        let (mut config, text) = match self {
            Self::Client(client) => return Ok((client.clone(), String::new())),
            Self::Kubeconfig(path) => read(path).await?,
            Self::InCluster => {
                let config = kube::Config::incluster()
                    .map_err(|error| format!("not in a cluster: {}", line(&error)))?;
                (config, String::new())
            }
        };
        // Pauses are ours: with kube's own a request may be stuck for a quarter of an hour.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT);
        let client =
            Client::try_from(config).map_err(|error| format!("cannot make a client: {}", line(&error)))?;
        Ok((client, text))
    }

    /// Is the kubeconfig another than the one a client was made from? Not if it cannot be read at the moment.
    pub(super) async fn is_other(&self, used: &str) -> bool {
        match self {
            Self::Kubeconfig(path) => tokio::fs::read_to_string(path).await.is_ok_and(|text| text != used),
            Self::Client(_) | Self::InCluster => false,
        }
    }
}

async fn read(path: &Path) -> Result<(kube::Config, String), String> {
    let wrong = |error: &dyn std::error::Error| format!("kubeconfig {}: {}", path.display(), line(error));
    let text = tokio::fs::read_to_string(path).await.map_err(|error| wrong(&error))?;
    // Read once more, for the files it names are looked for beside it.
    let read = Kubeconfig::read_from(path).map_err(|error| wrong(&error))?;
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    Ok((config.map_err(|error| wrong(&error))?, text))
}

/// An error and what is behind it, in one line.
fn line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

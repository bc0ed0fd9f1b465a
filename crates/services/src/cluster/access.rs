//! How is a cluster reached?
//!
//! What is read goes over TLS by HTTP/2: all lists and watches share one connection, as those of Kubernetes' own components
//! do. A connection that is dead without a word is noticed by pings.
//!
//! What is written goes by HTTP/1.1, each request on a connection it has to itself while it is under way: a write, such as the
//! renewal of a lease, never waits behind a large list, and an API server answers a fifth more of them than on one connection.

use crate::cluster::connection::chain;
use http::Request;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Client;
use kube::client::{Body, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tower::{BoxError, ServiceBuilder, service_fn};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How often a connection is asked for a sign of life, and how long one may take.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(15));

/// How long a connection for writes is kept without being used. It is not pinged: one that is dead is not kept for long either.
const IDLE: Duration = Duration::from_secs(10);
/// As many of these are kept at most.
const KEPT: usize = 64;

/// How a cluster is reached.
#[derive(Clone)]
pub enum Access {
    /// By a client that is there already.
    Client(Client),
    /// By a kubeconfig file, read when it is needed, and again when it has changed and something is wrong. Several are named as
    /// in `$KUBECONFIG`: the first that says something wins.
    Kubeconfig(PathBuf),
    /// As the pod we run in.
    InCluster,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(_) => f.write_str("Client"),
            Self::Kubeconfig(path) => f.debug_tuple("Kubeconfig").field(path).finish(),
            Self::InCluster => f.write_str("InCluster"),
        }
    }
}

impl Access {
    /// A client, and the text it was made from.
    ///
    /// # Errors
    /// What is wrong with the kubeconfig, in one line that names it. Nothing is asked of the cluster yet.
    pub async fn connect(&self) -> Result<(Client, String), String> {
        let (config, text) = match self {
            Self::Client(client) => return Ok((client.clone(), String::new())),
            Self::Kubeconfig(path) => read(path).await?,
            Self::InCluster => {
                let config = kube::Config::incluster()
                    .map_err(|error| format!("not in a cluster: {}", chain(&error)))?;
                (config, String::new())
            }
        };
        let client = client(config).map_err(|error| format!("cannot make a client: {}", chain(&error)))?;
        Ok((client, text))
    }

    /// Is the kubeconfig another than the one a client was made from? Not if it cannot be read at the moment.
    pub async fn is_other(&self, used: &str) -> bool {
        match self {
            Self::Kubeconfig(path) => text(path).await.is_ok_and(|text| text != used),
            Self::Client(_) | Self::InCluster => false,
        }
    }
}

async fn read(path: &Path) -> Result<(kube::Config, String), String> {
    let wrong = |error: &dyn std::error::Error| format!("kubeconfig {}: {}", path.display(), chain(error));
    let text = text(path).await.map_err(|error| wrong(&error))?;
    let mut merged = Kubeconfig::default();
    for file in files(path) {
        // Read once more, for the files it names are looked for beside it.
        let read = Kubeconfig::read_from(file).map_err(|error| wrong(&error))?;
        merged = merged.merge(read).map_err(|error| wrong(&error))?;
    }
    let config = kube::Config::from_custom_kubeconfig(merged, &KubeConfigOptions::default()).await;
    Ok((config.map_err(|error| wrong(&error))?, text))
}

/// The files that are named: one, or several as in `$KUBECONFIG`.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.exists() {
        return vec![path.to_owned()];
    }
    std::env::split_paths(path).filter(|file| !file.as_os_str().is_empty()).collect()
}

/// What is written in all of them.
async fn text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    for file in files(path) {
        text += &tokio::fs::read_to_string(file).await?;
    }
    Ok(text)
}

/// A client that sends nothing twice.
///
/// # Errors
/// When certificates or credentials cannot be used.
pub fn client(mut config: kube::Config) -> Result<Client, kube::Error> {
    // Pauses are ours: with kube's own a request may be stuck for a quarter of an hour.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    if config.proxy_url.is_some() || config.tls_server_name.is_some() || !config.headers.is_empty() {
        // What only kube's own stack does; it speaks HTTP/1.1.
        return Client::try_from(config);
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(CONNECT));
    http.set_nodelay(true);
    let connector = || -> Result<_, kube::Error> {
        let tls = config.rustls_client_config()?;
        Ok(hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http())
    };
    let reading: hyper_util::client::legacy::Client<_, Body> =
        hyper_util::client::legacy::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            // Lists are large, and one stream must not hold up the others.
            .http2_adaptive_window(true)
            .http2_keep_alive_interval(PING.0)
            .http2_keep_alive_timeout(PING.1)
            .http2_keep_alive_while_idle(true)
            .build(connector()?.enable_all_versions().wrap_connector(http.clone()));
    let writing: hyper_util::client::legacy::Client<_, Body> =
        hyper_util::client::legacy::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(KEPT)
            .build(connector()?.enable_http1().wrap_connector(http));
    let send = service_fn(move |request: Request<Body>| {
        if request.method().is_safe() { reading.request(request) } else { writing.request(request) }
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .map_err(BoxError::from)
        .service(send);
    Ok(Client::new(service, config.default_namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_several_files_the_first_that_says_something_wins_and_the_others_say_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let context = "contexts: [{name: shop, context: {cluster: one, user: me, namespace: shop}}]\ncurrent-context: shop\n";
        let cluster = "clusters: [{name: one, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: me, user: {}}]\ncurrent-context: other\n";
        let head = "apiVersion: v1\nkind: Config\n";
        let files = [write("a", &format!("{head}{context}")), write("b", &format!("{head}{cluster}"))];
        let both = PathBuf::from(std::env::join_paths(&files).unwrap());
        let access = Access::Kubeconfig(both.clone());
        let (client, text) = access.connect().await.unwrap();
        assert_eq!(client.default_namespace(), "shop");
        assert!(!access.is_other(&text).await);
        write("b", head);
        assert!(access.is_other(&text).await, "one of them changed");
        assert!(access.connect().await.err().unwrap().contains("one"), "the cluster is nowhere now");
        let missing = PathBuf::from(std::env::join_paths([&files[0], &folder.path().join("c")]).unwrap());
        assert!(Access::Kubeconfig(missing).connect().await.is_err());
    }
}

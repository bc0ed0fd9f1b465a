//! How is something served? One listener for every service: TLS, limits, an orderly end.

mod certificates;

pub use certificates::{Certificates, Clients, Tls};

use axum::Router;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Why something cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Beyond loopback, everybody could read along.
    #[error(
        "refusing to listen on {0} without TLS: give a certificate and a key, listen on 127.0.0.1, or allow plaintext \
         explicitly"
    )]
    Plaintext(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// Address asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// A certificate or key cannot be used.
    #[error("{}: {problem}", file.display())]
    Certificate {
        /// Which file.
        file: PathBuf,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
}

/// A bound address, not yet served. It is known, so that it can be told to others first.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    certificates: Option<Arc<Certificates>>,
}

/// Binds an address; port 0 picks a free one. Without TLS, only loopback is served unless `plaintext` says that
/// everybody may read along.
///
/// # Errors
/// When plaintext is not allowed there, a certificate cannot be used, or the address cannot be had.
pub async fn listen(address: SocketAddr, tls: Option<Tls>, plaintext: bool) -> Result<Listening, Error> {
    if tls.is_none() && !plaintext && !address.ip().is_loopback() {
        return Err(Error::Plaintext(address));
    }
    let certificates = tls.map(Certificates::load).transpose()?.map(Arc::new);
    let bind = |source| Error::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    Ok(Listening { listener, address, certificates })
}

impl Listening {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificates it serves with; `None` for plaintext.
    #[must_use]
    pub fn certificates(&self) -> Option<Arc<Certificates>> {
        self.certificates.clone()
    }
}

/// Serves until told to stop; what has been asked by then is answered, within bounds.
///
/// # Errors
/// None yet.
pub async fn run(listening: Listening, router: Router, stop: CancellationToken) -> Result<(), Error> {
    let address = listening.address;
    axum::serve(listening.listener, router)
        .with_graceful_shutdown(async move { stop.cancelled().await })
        .await
        .map_err(|source| Error::Bind { address, source })
}

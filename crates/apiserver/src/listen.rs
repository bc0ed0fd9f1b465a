//! Serving over TCP: loopback unless told otherwise, and never without a token elsewhere.

use crate::ApiServer;
use std::future::Future;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Listening beyond loopback without a token would hand the server to the network.
    #[error("refusing to listen on {0} without a bearer token: set one, or listen on 127.0.0.1")]
    TokenRequired(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Bind {
        /// Address asked for.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The listener failed.
    #[error("serving failed")]
    Serve(#[source] std::io::Error),
}

/// A bound server, not yet serving. Its address is known, so that it can be told to others first.
#[derive(Debug)]
pub struct Listening {
    server: ApiServer,
    listener: TcpListener,
    address: SocketAddr,
}

impl ApiServer {
    /// Binds an address; port 0 picks a free one.
    ///
    /// # Errors
    /// [`Error::TokenRequired`] beyond loopback without a token, [`Error::Bind`] when the address cannot be had.
    pub async fn listen(&self, address: SocketAddr) -> Result<Listening, Error> {
        if !address.ip().is_loopback() && !self.requires_token() {
            return Err(Error::TokenRequired(address));
        }
        let bind = |source| Error::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Listening { server: self.clone(), listener, address })
    }
}

impl Listening {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://ADDRESS`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves until `stop` resolves; open watches are ended then.
    ///
    /// # Errors
    /// [`Error::Serve`] when the listener fails.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let server = self.server.clone();
        let router = axum::Router::new().fallback_service(self.server);
        let stop = async move {
            stop.await;
            // Watches never end by themselves and would hold up the shutdown.
            server.shutdown();
        };
        axum::serve(self.listener, router).with_graceful_shutdown(stop).await.map_err(Error::Serve)
    }
}

//! Serving over TCP: loopback unless told otherwise, and never without a token elsewhere.
//!
//! A [`Serving`] can be killed and started again on the same port, so that tests see what clients do about it.

mod connection;

use crate::ApiServer;
use crate::fault::Faults;
use connection::Front;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

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
    faults: Option<Faults>,
    listener: TcpListener,
    address: SocketAddr,
    reserved: Option<TcpSocket>,
}

impl ApiServer {
    /// Binds an address; port 0 picks a free one.
    ///
    /// # Errors
    /// [`Error::TokenRequired`] beyond loopback without a token, [`Error::Bind`] when the address cannot be had.
    #[expect(clippy::unused_async, reason = "sockets need a runtime, and who awaits has one")]
    pub async fn listen(&self, address: SocketAddr) -> Result<Listening, Error> {
        if !address.ip().is_loopback() && !self.requires_token() {
            return Err(Error::TokenRequired(address));
        }
        let failed = |source| Error::Bind { address, source };
        let (address, reserved) = reserve(address).map_err(failed)?;
        let listener = bind(address)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Listening { server: self.clone(), faults: None, listener, address, reserved })
    }
}

/// Keeps the port ours while nobody listens on it. Otherwise some connection may get it as its own port between a
/// kill and the next start, even the one that tries to reach us.
#[cfg(target_os = "linux")]
fn reserve(address: SocketAddr) -> std::io::Result<(SocketAddr, Option<TcpSocket>)> {
    let socket = bound(address)?;
    Ok((socket.local_addr()?, Some(socket)))
}

/// Elsewhere two sockets cannot share an address.
#[cfg(not(target_os = "linux"))]
fn reserve(address: SocketAddr) -> std::io::Result<(SocketAddr, Option<TcpSocket>)> {
    Ok((address, None))
}

fn bound(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    bound(address).and_then(|socket| socket.listen(BACKLOG)).map_err(|source| Error::Bind { address, source })
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

    /// Puts faults between clients and the server. A dropped request closes its connection.
    #[must_use]
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Serves until `stop` resolves; open watches are ended then, other open requests are waited for.
    ///
    /// # Errors
    /// [`Error::Serve`] when the listener fails.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let serving = self.start();
        stop.await;
        serving.stop().await
    }

    /// Serves in the background.
    #[must_use = "dropping it ends it"]
    pub fn start(self) -> Serving {
        let front = Arc::new(Front { server: self.server, faults: self.faults });
        let running = Some(Running::start(self.listener, front.clone()));
        Serving { front, address: self.address, _reserved: self.reserved, running }
    }
}

/// A server that answers on a port. Dropping it kills the listener; the [`ApiServer`] and its objects stay.
#[derive(Debug)]
pub struct Serving {
    front: Arc<Front>,
    address: SocketAddr,
    _reserved: Option<TcpSocket>,
    running: Option<Running>,
}

impl Serving {
    /// Where it listens, or will again.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://ADDRESS`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Does what a kill of the server's process does to its clients: every connection is cut in the middle of whatever
    /// it carries, and new ones are refused. Writes that were handled stay, whether their answer arrived or not.
    pub async fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill.cancel();
            // A panic in it has ended it as well.
            let _ = (&mut running.task).await;
        }
    }

    /// Listens again on the same address, with the objects as they are now; does nothing while it serves. Watches go
    /// on from where clients were, unless the server was made to forget ([`ApiServer::restart`]).
    ///
    /// # Errors
    /// [`Error::Bind`] when somebody else has taken the address.
    pub fn start(&mut self) -> Result<(), Error> {
        if self.running.is_none() {
            self.running = Some(Running::start(bind(self.address)?, self.front.clone()));
        }
        Ok(())
    }

    /// Ends it gracefully: no new connections, watches end, other open requests are waited for.
    ///
    /// # Errors
    /// [`Error::Serve`] when the listener failed before.
    pub async fn stop(mut self) -> Result<(), Error> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        running.stop.cancel();
        (&mut running.task).await.map_err(|failed| Error::Serve(std::io::Error::other(failed)))
    }
}

/// The task that accepts connections, with its two ends.
#[derive(Debug)]
struct Running {
    stop: CancellationToken,
    kill: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn start(listener: TcpListener, front: Arc<Front>) -> Self {
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let task = tokio::spawn(connection::accept(listener, front, stop.clone(), kill.clone()));
        Self { stop, kill, task }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill.cancel();
    }
}

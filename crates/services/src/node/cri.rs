//! How is a container runtime asked for something? Through its socket, by the container runtime interface (CRI).
//!
//! Version 1 of the interface is spoken, and nothing older: its predecessor is gone from the runtimes themselves.
//!
//! A runtime may hang, end and come back at any time, as it does when it is upgraded. Every call therefore has a
//! deadline and says what became of it, see [`Error`]; none is sent twice. A call that is given up is cancelled, so that
//! it holds up no later one.

use hyper_util::rt::TokioIo;
use loadline_api::cri::v1::runtime_service_client::RuntimeServiceClient;
use loadline_api::cri::v1::{LinuxContainerResources, UpdateContainerResourcesRequest, VersionRequest};
use loadline_core::qos::CpuQuota;
use std::error::Error as _;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};

/// The service a runtime must have.
const SERVICE: &str = "runtime.v1.RuntimeService";
/// How kubelets are told a socket.
const SCHEME: &str = "unix://";

/// A container runtime, reached through its socket. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Runtime {
    socket: PathBuf,
    deadline: Duration,
    client: RuntimeServiceClient<Channel>,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeVersion {
    /// Such as `containerd`.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// The version of the interface.
    pub api: String,
}

/// Why a runtime did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The socket is missing or refuses, the connection broke, or the runtime says that it is not ready: later, perhaps.
    /// What was asked for may have been done if the connection broke.
    #[error("no container runtime answers at {}: {cause}", socket.display())]
    Away { socket: PathBuf, cause: String },
    /// Nothing was answered in time. What was asked for may still be done.
    #[error("the container runtime at {} did not answer within {deadline:?}", socket.display())]
    Late { socket: PathBuf, deadline: Duration },
    /// There is no such container any more.
    #[error("the container runtime does not know container {id}")]
    Gone { id: String },
    /// It is too old, or is something else.
    #[error("what answers at {} does not serve {SERVICE}: version 1 of the container runtime interface is needed", socket.display())]
    Foreign { socket: PathBuf },
    /// It does not want to, and says why.
    #[error("the container runtime refused: {0}")]
    Refused(String),
}

/// A path that no socket can have.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be a socket: {source}", path.display())]
pub struct BadPath {
    path: PathBuf,
    source: std::io::Error,
}

impl Runtime {
    /// The sockets runtimes usually have, in the order they are tried: containerd, CRI-O, the containerd of k3s and of
    /// k0s, cri-dockerd.
    pub const USUAL: &[&str] = &[
        "/run/containerd/containerd.sock",
        "/run/crio/crio.sock",
        "/run/k3s/containerd/containerd.sock",
        "/run/k0s/containerd.sock",
        "/run/cri-dockerd.sock",
    ];

    /// The runtime behind a socket, which may be written with `unix://` before it. `deadline` bounds every call.
    ///
    /// Nothing is connected yet: a runtime that is away is found when it is back. Must be called where tasks can be
    /// spawned.
    ///
    /// # Errors
    /// When no socket can have that path, because it is too long.
    pub fn at(socket: impl AsRef<Path>, deadline: Duration) -> Result<Self, BadPath> {
        let socket = socket.as_ref();
        let socket =
            socket.to_str().and_then(|text| text.strip_prefix(SCHEME)).map_or(socket, Path::new).to_owned();
        SocketAddr::from_pathname(&socket).map_err(|source| BadPath { path: socket.clone(), source })?;
        let path = socket.clone();
        // The address is not used, but HTTP wants one.
        let channel = Endpoint::from_static("http://localhost")
            .connect_timeout(deadline)
            .connect_with_connector_lazy(tower::service_fn(move |_| {
                let path = path.clone();
                async move { UnixStream::connect(path).await.map(TokioIo::new) }
            }));
        Ok(Self { socket, deadline, client: RuntimeServiceClient::new(channel) })
    }

    /// Where it is.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Who is it?
    ///
    /// # Errors
    /// When it does not answer, or not in version 1 of the interface.
    pub async fn version(&self) -> Result<RuntimeVersion, Error> {
        let mut client = self.client.clone();
        let answer = self.answer(client.version(VersionRequest { version: String::new() })).await?;
        let answer = answer.map_err(|status| self.failure(&status))?;
        Ok(RuntimeVersion {
            name: answer.runtime_name,
            version: answer.runtime_version,
            api: answer.runtime_api_version,
        })
    }

    /// Holds a container to a quota. Its period, shares and memory stay as they are.
    ///
    /// # Errors
    /// When it was not done, or it is not known whether it was. A quota that is unknown is refused without asking.
    pub async fn set_quota(&self, container_id: &str, quota: CpuQuota) -> Result<(), Error> {
        // On the wire 0 means "as it is": the answer would pretend that something was done.
        let us = quota.us().filter(|us| *us == -1 || *us > 0);
        let Some(cpu_quota) = us else { return Err(Error::Refused("no quota was given".to_owned())) };
        let linux = LinuxContainerResources { cpu_quota, ..LinuxContainerResources::default() };
        let request =
            UpdateContainerResourcesRequest { container_id: container_id.to_owned(), linux: Some(linux) };
        let mut client = self.client.clone();
        match self.answer(client.update_container_resources(request)).await? {
            Ok(_) => Ok(()),
            Err(status) if status.code() == Code::NotFound => {
                Err(Error::Gone { id: container_id.to_owned() })
            }
            Err(status) => Err(self.failure(&status)),
        }
    }

    /// What comes in time.
    async fn answer<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<Result<T, Status>, Error> {
        // Also covers the wait for a connection; dropping the call cancels it.
        let late = |_| Error::Late { socket: self.socket.clone(), deadline: self.deadline };
        Ok(timeout(self.deadline, call).await.map_err(late)?.map(Response::into_inner))
    }

    fn failure(&self, status: &Status) -> Error {
        let socket = self.socket.clone();
        // A runtime's own answer has no source: with one, it was made here because the connection failed.
        if let Some(mut source) = status.source() {
            while let Some(deeper) = source.source() {
                source = deeper;
            }
            return Error::Away { socket, cause: source.to_string() };
        }
        let message =
            if status.message().is_empty() { status.code().description() } else { status.message() };
        match status.code() {
            Code::Unavailable => Error::Away { socket, cause: message.to_owned() },
            Code::DeadlineExceeded => Error::Late { socket, deadline: self.deadline },
            Code::Unimplemented => Error::Foreign { socket },
            _ => Error::Refused(message.to_owned()),
        }
    }
}

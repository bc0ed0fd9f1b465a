//! What is said to a container runtime, and what is made of its answers: against a server on a socket.

#![expect(clippy::unwrap_used, reason = "a failed step of a helper fails its test")]

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use loadline_api::cri::v1;
use loadline_api::cri::v1::runtime_service_server::{RuntimeService, RuntimeServiceServer};
use loadline_core::qos::CpuQuota;
use loadline_services::node::Runtime;
use loadline_services::node::cri::{Error, RuntimeVersion};
use std::convert::Infallible;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tonic::{Code, Status};
use tower::{ServiceExt as _, service_fn};

/// Nothing here takes that long, and nobody waits for it to pass.
const AMPLE: Duration = Duration::from_mins(5);

/// Knows every container, except those whose name says otherwise.
#[derive(Clone)]
struct Fake;

#[tonic::async_trait]
impl RuntimeService for Fake {
    async fn version(
        &self,
        _: tonic::Request<v1::VersionRequest>,
    ) -> Result<tonic::Response<v1::VersionResponse>, Status> {
        Ok(tonic::Response::new(v1::VersionResponse {
            version: "0.1.0".to_owned(),
            runtime_name: "fake".to_owned(),
            runtime_version: "v3.2.1".to_owned(),
            runtime_api_version: "v1".to_owned(),
        }))
    }

    async fn list_containers(
        &self,
        _: tonic::Request<v1::ListContainersRequest>,
    ) -> Result<tonic::Response<v1::ListContainersResponse>, Status> {
        Ok(tonic::Response::new(v1::ListContainersResponse::default()))
    }

    async fn update_container_resources(
        &self,
        request: tonic::Request<v1::UpdateContainerResourcesRequest>,
    ) -> Result<tonic::Response<v1::UpdateContainerResourcesResponse>, Status> {
        match request.get_ref().container_id.as_str() {
            "hangs" => pending().await,
            "unknown" => Err(Status::not_found("no container \"unknown\"")),
            "mute" => Err(Status::new(Code::Internal, "")),
            "starting" => Err(Status::unavailable("server is not initialized yet")),
            "slow" => Err(Status::deadline_exceeded("context deadline exceeded")),
            "stubborn" => Err(Status::failed_precondition("cpu.max: permission denied")),
            _ => Ok(tonic::Response::new(v1::UpdateContainerResourcesResponse {})),
        }
    }
}

/// A server on a socket that ends, with its connections, when it is told to.
struct Server {
    task: JoinHandle<()>,
    /// The messages it was sent, as they came.
    seen: mpsc::UnboundedReceiver<(String, Bytes)>,
}

impl Server {
    /// Serves the methods of a package.
    fn start(socket: &Path, package: &'static str) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let (tell, seen) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let tell = tell.clone();
                let service = service_fn(move |request| answer(request, package, tell.clone()));
                connections.spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new()).http2_only();
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
                        .await;
                });
            }
        });
        Self { task, seen }
    }

    async fn stop(self, socket: &Path) {
        self.task.abort();
        let _ = self.task.await;
        std::fs::remove_file(socket).unwrap();
    }
}

/// Notes what came, and answers it as a runtime of that package would.
async fn answer<B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>>(
    request: Request<B>,
    package: &str,
    tell: mpsc::UnboundedSender<(String, Bytes)>,
) -> Result<Response<tonic::body::Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let path = parts.uri.path().to_owned();
    let _ = tell.send((path.clone(), body.clone()));
    if !path.starts_with(&format!("/{package}.")) {
        return Ok(Status::unimplemented("unknown service runtime.v1.RuntimeService").into_http());
    }
    let request = Request::from_parts(parts, Full::new(body));
    RuntimeServiceServer::from_arc(Arc::new(Fake)).oneshot(request).await
}

fn socket() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("cri.sock");
    (folder, socket)
}

#[tokio::test]
async fn a_runtime_says_who_it_is_however_its_socket_is_written() {
    let (_folder, socket) = socket();
    let _server = Server::start(&socket, "runtime.v1");
    let want = RuntimeVersion { name: "fake".into(), version: "v3.2.1".into(), api: "v1".into() };
    for written in [socket.clone(), PathBuf::from(format!("unix://{}", socket.display()))] {
        let runtime = Runtime::at(&written, AMPLE).unwrap();
        assert_eq!(runtime.version().await, Ok(want.clone()), "{}", written.display());
        assert_eq!(runtime.socket(), socket);
    }
}

#[tokio::test]
async fn a_quota_is_sent_alone_so_that_everything_else_stays_as_it_is() {
    let (_folder, socket) = socket();
    let mut server = Server::start(&socket, "runtime.v1");
    let runtime = Runtime::at(&socket, AMPLE).unwrap();
    // Field 1, the container: 0a, its length, its text. Field 2, the resources: 12, their length, and in them nothing
    // but field 2, the quota: 10, then seven bits a byte, lowest first. Before it all: not compressed, its length.
    for (quota, message, why) in [
        (
            CpuQuota::Us(20_000),
            &b"\0\0\0\0\x0b\x0a\x03c-1\x12\x04\x10\xa0\x9c\x01"[..],
            "20000 = 32 + 28 × 128 + 1 × 16384",
        ),
        (
            CpuQuota::Unlimited,
            &b"\0\0\0\0\x12\x0a\x03c-1\x12\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..],
            "-1 has all of 64 bits set: nine bytes of seven and one",
        ),
    ] {
        assert_eq!(runtime.set_quota("c-1", quota).await, Ok(()));
        let (path, sent) = server.seen.recv().await.unwrap();
        assert_eq!(path, "/runtime.v1.RuntimeService/UpdateContainerResources");
        assert_eq!(sent, message, "{why}");
    }
}

#[tokio::test]
async fn what_would_change_nothing_is_not_sent() {
    let (_folder, socket) = socket();
    let mut server = Server::start(&socket, "runtime.v1");
    let runtime = Runtime::at(&socket, AMPLE).unwrap();
    for quota in [CpuQuota::Unknown, CpuQuota::Us(0)] {
        let Err(Error::Refused(_)) = runtime.set_quota("c-1", quota).await else {
            panic!("{quota:?} was set")
        };
    }
    assert!(server.seen.try_recv().is_err());
}

#[tokio::test]
async fn every_failure_is_told_by_what_follows_from_it() {
    let (_folder, socket) = socket();
    let _server = Server::start(&socket, "runtime.v1");
    let runtime = Runtime::at(&socket, AMPLE).unwrap();
    let away = |cause: &str| Error::Away { socket: socket.clone(), cause: cause.into() };
    for (id, want, why) in [
        ("unknown", Error::Gone { id: "unknown".into() }, "it has ended: there is nothing to hold back"),
        ("starting", away("server is not initialized yet"), "it will be ready later"),
        ("slow", Error::Late { socket: socket.clone(), deadline: AMPLE }, "its own deadline passed first"),
        ("stubborn", Error::Refused("cpu.max: permission denied".into()), "its words are told"),
        (
            "mute",
            Error::Refused(Code::Internal.description().into()),
            "it says nothing, but something is told",
        ),
    ] {
        assert_eq!(runtime.set_quota(id, CpuQuota::Us(20_000)).await, Err(want), "{why}");
    }
    assert_eq!(runtime.set_quota("c-1", CpuQuota::Us(20_000)).await, Ok(()), "and it is asked as before");
}

#[tokio::test]
async fn a_runtime_of_another_version_is_told_what_is_needed() {
    let (_folder, socket) = socket();
    let _server = Server::start(&socket, "runtime.v1alpha2");
    let runtime = Runtime::at(&socket, AMPLE).unwrap();
    let error = runtime.version().await.unwrap_err();
    assert_eq!(error, Error::Foreign { socket });
    assert!(
        error.to_string().contains("runtime.v1.RuntimeService: version 1 of the container runtime interface")
    );
}

#[tokio::test]
async fn a_runtime_that_goes_away_is_found_when_it_is_back() {
    let (_folder, socket) = socket();
    let runtime = Runtime::at(&socket, AMPLE).unwrap();
    let away = |error: Result<_, Error>| match error {
        Err(Error::Away { cause, .. }) => cause,
        other => panic!("{other:?}"),
    };
    assert!(away(runtime.version().await).contains("No such file"), "it was never there");
    for _ in 0..3 {
        let server = Server::start(&socket, "runtime.v1");
        runtime.version().await.unwrap();
        server.stop(&socket).await;
        away(runtime.version().await);
    }
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(away(runtime.version().await).contains("refused"), "it left its socket behind");
}

#[tokio::test]
async fn a_runtime_that_ends_while_it_is_asked_is_away() {
    let (_folder, socket) = socket();
    let mut server = Server::start(&socket, "runtime.v1");
    let runtime = Runtime::at(&socket, AMPLE).unwrap();
    let asked = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.set_quota("hangs", CpuQuota::Us(20_000)).await }
    });
    server.seen.recv().await.unwrap();
    server.stop(&socket).await;
    let Err(Error::Away { .. }) = asked.await.unwrap() else { panic!("it cannot have answered") };
}

#[tokio::test]
async fn a_call_that_hangs_costs_its_deadline_and_holds_up_no_other() {
    let (_folder, socket) = socket();
    let mut server = Server::start(&socket, "runtime.v1");
    let hasty = Duration::from_millis(50);
    let late = |deadline| Err(Error::Late { socket: socket.clone(), deadline });
    let runtime = Runtime::at(&socket, AMPLE).unwrap();
    let hanging = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.set_quota("hangs", CpuQuota::Us(20_000)).await }
    });
    server.seen.recv().await.unwrap();
    assert_eq!(runtime.set_quota("c-1", CpuQuota::Us(20_000)).await, Ok(()), "another container");
    hanging.abort();

    let runtime = Runtime::at(&socket, hasty).unwrap();
    assert_eq!(runtime.set_quota("hangs", CpuQuota::Us(20_000)).await, late(hasty));
    server.stop(&socket).await;

    // The kernel connects whoever knocks at a socket, even if the runtime has stopped to look.
    let _frozen = UnixListener::bind(&socket).unwrap();
    let runtime = Runtime::at(&socket, hasty).unwrap();
    assert_eq!(runtime.version().await.map(|it| it.name), late(hasty).map(|()| String::new()));
    assert_eq!(runtime.set_quota("c-1", CpuQuota::Us(20_000)).await, late(hasty));
}

#[tokio::test]
async fn a_path_no_socket_can_have_is_told_at_once() {
    let long = format!("/run/{}/cri.sock", "x".repeat(108));
    let error = Runtime::at(&long, AMPLE).unwrap_err();
    assert!(error.to_string().starts_with(&long), "{error}");
}

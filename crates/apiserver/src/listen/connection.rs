//! How long does a connection live?

use crate::ApiServer;
use crate::ending::{End, until};
use crate::fault::Faults;
use axum::body::Body;
use axum::serve::Listener;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use std::pin::pin;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::{Layer as _, ServiceExt as _};

/// What answers.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) server: ApiServer,
    pub(super) faults: Option<Faults>,
}

impl Front {
    async fn answer(&self, request: Request<Incoming>) -> std::io::Result<Response<Body>> {
        match &self.faults {
            None => Ok(self.server.respond(request).await),
            Some(faults) => {
                let answer = faults.layer(self.server.clone()).oneshot(request).await;
                answer.map_err(std::io::Error::other)
            }
        }
    }
}

/// Accepts connections until told to stop or killed. When it returns, the port is free and no connection is left.
pub(super) async fn accept(
    mut listener: TcpListener,
    front: Arc<Front>,
    stop: CancellationToken,
    kill: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = kill.cancelled() => break,
            () = stop.cancelled() => break,
            // Axum's way to accept: it waits when there are too many open files, and tries again.
            (stream, _) = Listener::accept(&mut listener) => {
                connections.spawn(serve(stream, front.clone(), stop.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    tokio::select! {
        biased;
        () = kill.cancelled() => connections.shutdown().await,
        () = async { while connections.join_next().await.is_some() {} } => {}
    }
}

async fn serve(stream: TcpStream, front: Arc<Front>, stop: CancellationToken) {
    // Events are small and must not wait for more of them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "connection without TCP_NODELAY");
    }
    let ends = stop.clone();
    let service = service_fn(move |request| {
        let (front, stop) = (front.clone(), ends.clone());
        async move { front.answer(request).await.map(|answer| answer.map(|body| ending_with(&stop, body))) }
    });
    let builder = Builder::new(TokioExecutor::new());
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended");
    }
}

/// Watches never end by themselves and would hold up the end of the listener.
fn ending_with(stop: &CancellationToken, body: Body) -> Body {
    use http_body::Body as _;
    if body.size_hint().exact().is_some() { body } else { until(body, stop, End::Close) }
}

//! What does the container runtime of a simulated node answer? That there are such containers, and that one is held back.

use super::text;
use super::tree::{Listed, Tree};
use crate::node::shape::{RUNTIME, RUNTIME_VERSION};
use loadline_api::cri::label;
use loadline_api::cri::v1::runtime_service_server::{RuntimeService, RuntimeServiceServer};
use loadline_api::cri::v1::{
    Container, ContainerFilter, ContainerMetadata, ContainerState, ListContainersRequest,
    ListContainersResponse, UpdateContainerResourcesRequest, UpdateContainerResourcesResponse,
    VersionRequest, VersionResponse,
};
use loadline_core::qos::{CpuQuota, PERIOD_US};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// The runtime of one node.
#[derive(Clone, Debug)]
pub struct Runtime(Arc<Mutex<Tree>>);

impl Runtime {
    pub fn new(tree: Arc<Mutex<Tree>>) -> Self {
        Self(tree)
    }

    /// Answers until told to stop.
    pub async fn serve(self, listener: UnixListener, stop: CancellationToken) {
        let incoming = futures::stream::unfold(listener, async |listener| {
            let accepted = listener.accept().await.map(|(stream, _)| stream);
            Some((accepted, listener))
        });
        let served = Server::builder()
            .add_service(RuntimeServiceServer::new(self))
            .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::warn!(%error, "simulated container runtime ended");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tree> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tonic::async_trait]
impl RuntimeService for Runtime {
    async fn version(&self, _: Request<VersionRequest>) -> Result<Response<VersionResponse>, Status> {
        Ok(Response::new(VersionResponse {
            version: "0.1.0".to_owned(),
            runtime_name: RUNTIME.to_owned(),
            runtime_version: RUNTIME_VERSION.to_owned(),
            runtime_api_version: "v1".to_owned(),
        }))
    }

    async fn list_containers(
        &self,
        request: Request<ListContainersRequest>,
    ) -> Result<Response<ListContainersResponse>, Status> {
        let filter = request.into_inner().filter.unwrap_or_default();
        let containers = self.lock().list().map(container).filter(|it| passes(&filter, it)).collect();
        Ok(Response::new(ListContainersResponse { containers }))
    }

    async fn update_container_resources(
        &self,
        request: Request<UpdateContainerResourcesRequest>,
    ) -> Result<Response<UpdateContainerResourcesResponse>, Status> {
        let UpdateContainerResourcesRequest { container_id: id, linux } = request.into_inner();
        let mut tree = self.lock();
        let unknown = || Status::not_found(format!("there is no container {id:?}"));
        let asked = linux.unwrap_or_default();
        let period_us = if asked.cpu_period == 0 { PERIOD_US } else { asked.cpu_period };
        let quota = match asked.cpu_quota {
            // As it is.
            0 if tree.list().any(|it| it.id == id) => {
                return Ok(Response::new(UpdateContainerResourcesResponse {}));
            }
            0 => return Err(unknown()),
            us if us < 0 => Some(CpuQuota::Unlimited),
            us => text::scaled(us, period_us),
        };
        let Some(quota) = quota else {
            let found = format!("{} per {period_us}", asked.cpu_quota);
            let least = text::LEAST_US;
            return Err(Status::invalid_argument(format!("a quota is {least} µs or more, found {found}")));
        };
        match tree.set_quota(&id, quota) {
            Some(Ok(())) => Ok(Response::new(UpdateContainerResourcesResponse {})),
            Some(Err(error)) => Err(Status::internal(error.to_string())),
            None => Err(unknown()),
        }
    }
}

fn container(listed: Listed) -> Container {
    let Listed { id, sandbox, name, pod, uid, since } = listed;
    let created = since.and_then(|since| i64::try_from(since.as_nanosecond()).ok());
    let labels = [
        (label::NAMESPACE, &*pod.namespace),
        (label::POD, &*pod.name),
        (label::UID, &*uid),
        (label::CONTAINER, &*name),
    ];
    let labels: BTreeMap<String, String> =
        labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Container {
        id,
        pod_sandbox_id: sandbox,
        metadata: Some(ContainerMetadata { name, attempt: 0 }),
        state: ContainerState::ContainerRunning.into(),
        created_at: created.unwrap_or_default(),
        labels,
    }
}

fn passes(filter: &ContainerFilter, container: &Container) -> bool {
    let ContainerFilter { id, state, pod_sandbox_id, label_selector } = filter;
    (id.is_empty() || *id == container.id)
        && state.is_none_or(|state| state.state == container.state)
        && (pod_sandbox_id.is_empty() || *pod_sandbox_id == container.pod_sandbox_id)
        && label_selector.iter().all(|(name, value)| container.labels.get(name) == Some(value))
}

//! An estimator that says what it is told to say: a table, served as Karmada asks for it.

use loadline_api::estimator::pb;
use loadline_api::estimator::service::estimator_server::{Estimator, EstimatorServer};
use loadline_core::divide::Opinion;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// By workload and cluster.
type Table = BTreeMap<String, BTreeMap<String, Opinion>>;

/// The table, and the server that reads from it.
pub struct Answers {
    table: Arc<Mutex<Table>>,
    port: u16,
    // Ends the server with it.
    _runtime: Runtime,
}

#[derive(Clone)]
struct Served(Arc<Mutex<Table>>);

impl Answers {
    /// Listens on a free port, for all clusters.
    pub fn serve() -> Self {
        let table = Arc::<Mutex<Table>>::default();
        let runtime = Runtime::new().expect("threads can be had");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        listener.set_nonblocking(true).expect("any socket can be");
        let served = EstimatorServer::new(Served(table.clone()));
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it does not block");
            Server::builder().add_service(served).serve_with_incoming(TcpIncoming::from(listener)).await
        });
        Self { table, port, _runtime: runtime }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on, this about the workload of that name.
    pub fn tell(&self, workload: &str, opinions: BTreeMap<String, Opinion>) {
        self.table.lock().expect("nobody panics with it").insert(workload.to_owned(), opinions);
    }
}

#[tonic::async_trait]
impl Estimator for Served {
    async fn max_available_replicas(
        &self,
        request: Request<pb::MaxAvailableReplicasRequest>,
    ) -> Result<Response<pb::MaxAvailableReplicasResponse>, Status> {
        // Such as `kind=Deployment, name=default/web`: the only place where the workload is named.
        let object = request.metadata().get("object").and_then(|value| value.to_str().ok());
        let name = object.and_then(|text| text.rsplit('/').next()).unwrap_or_default();
        let table = self.0.lock().expect("nobody panics with it");
        match table.get(name).and_then(|opinions| opinions.get(&request.get_ref().cluster)) {
            Some(Opinion::Count(count)) => {
                let answer = pb::MaxAvailableReplicasResponse { max_replicas: *count, ..Default::default() };
                Ok(Response::new(answer))
            }
            Some(Opinion::Failed(why)) => Err(Status::unavailable(why.as_str())),
            None => Err(Status::not_found(format!("nothing is known about {object:?}"))),
        }
    }

    async fn max_available_component_sets(
        &self,
        _: Request<pb::MaxAvailableComponentSetsRequest>,
    ) -> Result<Response<pb::MaxAvailableComponentSetsResponse>, Status> {
        Err(Status::unimplemented("asked for only where a feature gate is on"))
    }

    async fn get_unschedulable_replicas(
        &self,
        _: Request<pb::UnschedulableReplicasRequest>,
    ) -> Result<Response<pb::UnschedulableReplicasResponse>, Status> {
        Err(Status::unimplemented("only the descheduler asks"))
    }
}

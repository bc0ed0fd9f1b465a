//! Asking an estimator, whoever wrote it.

use loadline_api::estimator::pb;
use loadline_api::estimator::service::estimator_client::EstimatorClient;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

/// A generous deadline: a busy machine must not make a difference.
const PATIENCE: Duration = Duration::from_mins(1);

/// A connection to one estimator.
pub struct Asker {
    client: EstimatorClient<Channel>,
    runtime: Runtime,
}

impl Asker {
    /// Asks the estimator on that port of this machine, in plain text.
    pub fn new(port: u16) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).expect("an address");
        let channel = runtime.block_on(endpoint.connect()).expect("a connection");
        Self { client: EstimatorClient::new(channel), runtime }
    }

    /// How many replicas would fit?
    pub fn replicas(&self, request: pb::MaxAvailableReplicasRequest) -> Result<i32, Status> {
        let mut client = self.client.clone();
        let answer = self.runtime.block_on(client.max_available_replicas(timed(request, PATIENCE)));
        Ok(answer?.into_inner().max_replicas)
    }

    /// How many sets would fit?
    pub fn sets(&self, request: pb::MaxAvailableComponentSetsRequest) -> Result<i32, Status> {
        self.sets_within(request, PATIENCE)
    }

    /// How many sets would fit? That long is waited for an answer.
    pub fn sets_within(
        &self,
        request: pb::MaxAvailableComponentSetsRequest,
        patience: Duration,
    ) -> Result<i32, Status> {
        let mut client = self.client.clone();
        let answer = self.runtime.block_on(client.max_available_component_sets(timed(request, patience)));
        Ok(answer?.into_inner().max_sets)
    }

    /// How many replicas wait in vain?
    pub fn unschedulable(&self, request: pb::UnschedulableReplicasRequest) -> Result<i32, Status> {
        let mut client = self.client.clone();
        let answer = self.runtime.block_on(client.get_unschedulable_replicas(timed(request, PATIENCE)));
        Ok(answer?.into_inner().unschedulable_replicas)
    }
}

fn timed<T>(message: T, patience: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(patience);
    request
}

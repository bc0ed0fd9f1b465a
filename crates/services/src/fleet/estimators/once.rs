//! What does one estimator say of a cluster, and why? Asked once, for a person: nothing is remembered, and nobody is spared.

use super::transport::{self, Tls};
use super::{Call, Question};
use loadline_api::estimator::pb;
use loadline_api::estimator::service::estimator_client::EstimatorClient;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tonic::{Code, Request, Status};

/// How an estimator is asked.
#[derive(Clone, Debug)]
pub struct Way {
    /// `HOST:PORT`.
    pub address: String,
    /// In plain text without.
    pub tls: Option<Tls>,
    /// How long it may take, connecting included.
    pub timeout: Duration,
}

/// What was answered, with where the figure comes from if the estimator says so.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    Replicas(pb::MaxAvailableReplicasResponse),
    Sets(pb::MaxAvailableComponentSetsResponse),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no estimator is reached at {address}: {why}")]
    Away { address: String, why: String },
    #[error("the estimator at {address} has not answered within {timeout:?}")]
    Late { address: String, timeout: Duration },
    #[error("the estimator at {address} refuses: {why}")]
    Refused { address: String, why: String },
}

/// Asks.
///
/// # Errors
/// When nobody is there, or whoever is does not answer.
pub async fn ask(way: &Way, cluster: &str, question: &Question) -> Result<Answered, Error> {
    let address = || way.address.clone();
    let late = |_| Error::Late { address: address(), timeout: way.timeout };
    timeout(way.timeout, asked(way, cluster, question)).await.map_err(late)?
}

async fn asked(way: &Way, cluster: &str, question: &Question) -> Result<Answered, Error> {
    let address = || way.address.clone();
    let channel = transport::connect(&way.address, way.tls.as_ref(), way.timeout)
        .await
        .map_err(|why| Error::Away { address: address(), why })?;
    let mut client = EstimatorClient::new(channel);
    let answered = match Call::of(&Arc::from(cluster), question) {
        Call::Replicas(request) => {
            let request = pb::MaxAvailableReplicasRequest { details: true, nodes: true, ..request };
            client
                .max_available_replicas(Request::new(request))
                .await
                .map(|a| Answered::Replicas(a.into_inner()))
        }
        Call::Sets(request) => {
            let request = pb::MaxAvailableComponentSetsRequest { details: true, ..request };
            client
                .max_available_component_sets(Request::new(request))
                .await
                .map(|a| Answered::Sets(a.into_inner()))
        }
        Call::Waiting(_) => Err(Status::new(Code::Unimplemented, "not a question about room")),
    };
    answered.map_err(|status| {
        let why = format!("{:?}: {}", status.code(), status.message());
        Error::Refused { address: address(), why }
    })
}

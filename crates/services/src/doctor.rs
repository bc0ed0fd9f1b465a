//! What is there to say about a cluster, read once? Everything [`loadline_core::doctor`] looks at, or why it could not be read.
//!
//! All reads are sent at once, each has a deadline, and none stops another: what is denied, missing or late becomes a fact like
//! what was read. Nothing is written. Reviews of access are created, as `kubectl auth can-i` does, and change nothing.
//!
//! | question | module |
//! |---|---|
//! | what does the API server have? | `read` |
//! | may accounts do what components need? | `reviews` |
//! | what does Prometheus know, and how is it set up? | `monitoring` |
//! | which certificates are served? | `certificates` |

mod certificates;
mod monitoring;
mod read;
mod reviews;

pub use certificates::Served;

use crate::annotator::Monitoring;
use crate::cluster::{Access, Connection};
use jiff::Timestamp;
use loadline_core::doctor::{Component, Facts, Known};
use loadline_core::load::policy::Rules;
use read::Reader;
use std::time::Duration;
use tokio::time::Instant;

/// What is looked at.
#[derive(Clone, Debug)]
pub struct Options {
    pub cluster: Access,
    /// The load policy that is meant to hold.
    pub rules: Rules,
    pub beside: Beside,
    /// Components the account that asks is to run.
    pub components: Vec<Component>,
    /// Is it asked whether Loadline can be installed?
    pub preflight: bool,
}

/// What is looked at that is not in the cluster.
#[derive(Clone, Debug)]
pub struct Beside {
    /// How Prometheus is asked; not at all if `None`.
    pub prometheus: Option<Monitoring>,
    /// Where certificates are looked at.
    pub certificates: Vec<Served>,
    /// How long each read may take, here and of the cluster, all its pages together.
    pub deadline: Duration,
}

impl Default for Beside {
    /// Nothing. Ten seconds are the most anybody waits for an answer, and some of it goes into saying it.
    fn default() -> Self {
        Self { prometheus: None, certificates: Vec::new(), deadline: Duration::from_secs(8) }
    }
}

impl Options {
    /// A cluster by itself, by crane's default policy.
    #[must_use]
    pub fn new(cluster: Access) -> Self {
        Self {
            cluster,
            rules: Rules::default(),
            beside: Beside::default(),
            components: Vec::new(),
            preflight: false,
        }
    }
}

/// Why nothing could be asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// What is looked at besides the cluster.
///
/// Nothing of the cluster is asked; for whoever knows it from elsewhere.
pub async fn beside(options: &Beside, rules: &Rules, facts: Facts) -> Facts {
    let Beside { prometheus, certificates, deadline } = options;
    let (prometheus, certificates) = tokio::join!(
        monitoring::ask(prometheus.as_ref(), rules, *deadline),
        certificates::all(certificates, *deadline),
    );
    Facts { prometheus, certificates, ..facts }
}

/// Reads everything, once.
///
/// # Errors
/// When there is no way to ask: a kubeconfig that cannot be read. A server that does not answer is a fact.
pub async fn gather(options: Options) -> Result<Facts, Error> {
    let Options { cluster, rules, beside: others, components, preflight } = options;
    let deadline = others.deadline;
    let (client, _) = cluster.connect().await.map_err(Error)?;
    let reader = Reader { connection: Connection::new(client).named("loadline-doctor"), deadline };

    let began = Instant::now();
    let workloads = async {
        let workloads = Known::from(reader.workloads().await);
        // What follows from an answer has what is left of the time: both together may take no longer than any other.
        let left = Reader { deadline: deadline.saturating_sub(began.elapsed()), ..reader.clone() };
        let permissions = reviews::of_accounts(&left, workloads.read()).await;
        (workloads, permissions)
    };
    // What only matters once components are at work is not read before.
    let recommendations =
        async { if preflight { Known::Unasked } else { reader.recommendations().await.into() } };
    let lines = async { if preflight { Known::Unasked } else { reader.lines().await.into() } };
    let asked = tokio::join!(
        reader.server(),
        reader.nodes(),
        reader.metrics(),
        reader.leases(),
        reader.definitions(),
        recommendations,
        lines,
        workloads,
        reviews::own(&reader, &components),
        beside(&others, &rules, Facts::default()),
    );
    let (server, nodes, metrics, leases, definitions, recommendations, lines, workloads, own, others) = asked;
    let (workloads, permissions) = workloads;
    Ok(Facts {
        now: Timestamp::now(),
        preflight,
        rules,
        server: server.into(),
        nodes: nodes.into(),
        metrics: metrics.into(),
        leases: leases.into(),
        definitions: definitions.into(),
        recommendations,
        lines,
        workloads,
        permissions,
        own,
        ..others
    })
}

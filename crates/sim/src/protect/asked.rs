//! What was asked for? `NodeQOS`, `AvoidanceAction` and `PodQOS`, as the watches told last.

use crate::cluster::{Cluster, Error, Kept, Meta, Shelf, Writer};
use loadline_api::qos::{DEFINITIONS, GROUP, rules};
use loadline_api::{Error as ReadError, Warning};
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::policy::{Action, NodeQos, Policy};
use loadline_core::qos::scope::Scope;
use serde::de::Error as _;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const DEFINED: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The version all of them have.
const VERSION: &str = "v1alpha1";

/// Makes the kinds known to the server, unless they are already.
pub async fn define(write: &Writer) -> Result<(), Error> {
    for text in DEFINITIONS {
        let Ok(definition) = serde_saphyr::from_str::<Value>(text) else { continue };
        match write.create_at(DEFINED, &definition).await {
            Err(error) if !error.is_conflict() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// One object and what it says.
#[derive(Debug)]
pub struct Said<T> {
    meta: Meta,
    what: T,
}

impl<T> Said<T> {
    fn read(
        meta: Meta,
        mut data: Value,
        read: impl Fn(&Value) -> Result<(T, Vec<Warning>), ReadError>,
    ) -> Result<Self, serde_json::Error> {
        data["metadata"] = json!({"name": meta.key.name});
        let (what, warnings) = read(&data).map_err(serde_json::Error::custom)?;
        for warning in warnings {
            tracing::warn!(%warning, "what protects nodes");
        }
        Ok(Self { meta, what })
    }
}

/// A kind of [`Said`]: its name, its plural, how it is read.
macro_rules! said {
    ($what:ty, $kind:literal, $plural:literal, $read:path) => {
        impl Kept for Said<$what> {
            const KIND: (&'static str, &'static str, &'static str, &'static str) =
                (GROUP, VERSION, $kind, $plural);

            fn read(meta: Meta, data: Value) -> Result<Self, serde_json::Error> {
                Self::read(meta, data, $read)
            }

            fn meta(&self) -> &Meta {
                &self.meta
            }
        }
    };
}

said!(NodeQos, "NodeQOS", "nodeqoss", rules::node_qos);
said!(Action, "AvoidanceAction", "avoidanceactions", rules::action);
said!(Scope, "PodQOS", "podqoss", rules::pod_qos);

/// All of it.
#[derive(Debug, Default)]
pub struct Asked {
    rules: Arc<Shelf<Said<NodeQos>>>,
    actions: Arc<Shelf<Said<Action>>>,
    scopes: Arc<Shelf<Said<Scope>>>,
}

impl Asked {
    /// Starts the watches.
    pub fn follow(&self, cluster: &Cluster, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        cluster.follow(&self.rules, tasks, stop);
        cluster.follow(&self.actions, tasks, stop);
        cluster.follow(&self.scopes, tasks, stop);
    }

    /// Waits until everything is known: a rule without its action would only close nodes.
    pub async fn ready(&self) {
        self.rules.ready().await;
        self.actions.ready().await;
        self.scopes.ready().await;
    }

    /// Is there any rule?
    pub fn anything(&self) -> bool {
        self.rules.count(|_| true) > 0
    }

    /// What follows from it.
    pub fn policy(&self) -> Policy {
        fn all<T: Clone>(shelf: &Shelf<Said<T>>) -> Vec<T>
        where
            Said<T>: Kept,
        {
            shelf.all().iter().map(|said| said.what.clone()).collect()
        }
        Policy::new(Catalogue::default(), &all(&self.rules), all(&self.actions), &all(&self.scopes))
    }
}

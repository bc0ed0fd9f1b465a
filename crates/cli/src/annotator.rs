//! `loadline annotator`: writes on nodes how loaded they are.

pub mod args;

use crate::component;
use crate::up::load_rules;
use anyhow::{Context, Result};
use args::Annotator;
use loadline_services::annotator::{self, Options, history};
use loadline_services::cluster::lease;
use loadline_services::reload::Source;
use loadline_services::sources::metrics_api;

pub async fn run(args: &Annotator) -> Result<()> {
    let policy = match (&args.policy, &args.policy_configmap) {
        (Some(path), _) => {
            // What is wrong at the start ends it; later the last good one stays.
            load_rules(path)?;
            Source::file(path, crate::up::rules)
        }
        (None, Some((key, entry))) => {
            Source::ConfigMap { key: key.clone(), entry: entry.clone(), parse: crate::up::rules.into() }
        }
        (None, None) => Source::Fixed(Box::default()),
    };
    let identity = lease::identity().context("this machine has no name")?;
    let lease = args.election.lease("loadline-annotator", &identity)?;
    let taints = args.taints.options()?;
    let prometheus = args.prometheus.monitoring().await?;
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    let measure = metrics_api::Options { every: args.metrics_interval, of: metrics_api::Of::Nodes };
    let options = Options {
        policy,
        measure: (!args.no_metrics_api).then_some(measure),
        prometheus,
        history: (!args.no_metrics_api && !args.history_namespace.is_empty())
            .then(|| history::Options::new(&args.history_namespace)),
        taints,
        rate: args.patch_qps,
        lease,
        ..Options::new(cluster)
    };
    let status = options.status.clone();
    let start = |ctx| annotator::run(ctx, options);
    component::run(&identity, args.http_bind_address, move || status.readiness(), start).await
}

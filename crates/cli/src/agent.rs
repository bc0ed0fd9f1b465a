//! `loadline agent`: keeps the node it runs on from being overrun.

pub mod args;

use crate::up::{load_rules, rules};
use crate::{component, explain};
use anyhow::{Context, Result, bail};
use args::{Actuator, Agent};
use loadline_core::load::policy::Rules;
use loadline_services::agent::{self, Nodes, Options};
use loadline_services::cluster::lease;
use loadline_services::node::cri::Runtime;
use loadline_services::node::local::{self, Local};
use loadline_services::reload::Source;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// No call to the container runtime may take longer.
const RUNTIME_DEADLINE: Duration = Duration::from_secs(2);

pub async fn run(args: &Agent) -> Result<()> {
    let identity = lease::identity().context("this machine has no name")?;
    let node = match &args.node_name {
        Some(name) => name.clone(),
        None => hostname::get()?.to_string_lossy().to_lowercase(),
    };
    let actuator = match args.actuator {
        Actuator::Cgroup => local::Actuator::Cgroup,
        Actuator::Cri => local::Actuator::Runtime(Box::new(runtime(args)?)),
    };
    let host = Local::new(local::Options {
        node: node.as_str().into(),
        root: args.host_root.clone(),
        cgroup_root: args.cgroup_root.clone(),
        interfaces: args.interfaces.iter().map(|name| Arc::from(&**name)).collect(),
        count_iowait: args.count_iowait,
        longest: args.interval.saturating_mul(3),
        actuator,
    });
    let targets = args.policy.as_deref().map(targets).transpose()?;
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    if !args.act {
        tracing::warn!("preview: plans are told and nothing is changed; --act makes it act");
    }
    let options = Options {
        every: args.interval,
        planning: args.planning(),
        journal: Some(args.state_dir.clone()),
        restore_on_exit: args.restore_on_exit,
        tune: args.tune_excess,
        define: args.create_definitions,
        targets,
        ..Options::new(cluster, Nodes::One(node), Arc::new(host))
    };
    let (status, looked) = (options.status.clone(), options.looked.clone());
    let start = |ctx| agent::run(ctx, options);
    let questions = explain::node::router(looked);
    component::run_with(&identity, args.http_bind_address, move || status.readiness(), questions, start).await
}

/// What the scheduler goes by. What is wrong at the start ends it; later the last good one stays. What comes through a pipe is there
/// once.
fn targets(path: &Path) -> Result<Source<Rules>> {
    let read = load_rules(path)?;
    Ok(if path.is_file() { Source::file(path, rules) } else { Source::Fixed(Box::new(read)) })
}

/// The container runtime that was named, or the first that is where one usually is.
fn runtime(args: &Agent) -> Result<Runtime> {
    let usual = || {
        let below = |socket: &&str| args.host_root.join(socket.trim_start_matches('/')).exists();
        Runtime::USUAL.iter().find(|socket| below(socket))
    };
    let socket = match (&args.runtime_endpoint, usual()) {
        (Some(socket), _) => socket.clone(),
        (None, Some(socket)) => args.host_root.join(socket.trim_start_matches('/')),
        (None, None) => bail!(
            "no container runtime is found at {}; give --runtime-endpoint, or --actuator cgroup",
            Runtime::USUAL.join(", ")
        ),
    };
    let path = Path::new(socket.as_os_str());
    Runtime::at(path, RUNTIME_DEADLINE).with_context(|| format!("--runtime-endpoint {}", socket.display()))
}

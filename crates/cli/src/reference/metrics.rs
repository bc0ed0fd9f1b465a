//! What does each component count? Each is started for that, in a process that has been told to end already: it registers what
//! it counts, sends nothing, and is over. So the page cannot leave out what a component has.

use super::cell;
use anyhow::{Context as _, Result};
use loadline_core::cluster::Keep;
use loadline_services::cluster::Access;
use loadline_services::cluster::lease::{self, Checked};
use loadline_services::fleet::{binding, placement, publish};
use loadline_services::metrics::{Described, Kind, Metrics};
use loadline_services::node::local::{self, Local};
use loadline_services::scheduler::extender;
use loadline_services::scheduler::shadow::Reported;
use loadline_services::serve::process::Figures;
use loadline_services::{
    Ctx, agent, annotator, ask, dashboard, estimator, rebalance, recommender, scheduler, serve,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Any port of this machine.
const SOMEWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

const INTRODUCTION: &str = "\
# Metrics

What each component counts, as Prometheus queries it. All of it is served at `/metrics` of the address that
`--http-bind-address` names (`loadline estimator`: `--metrics-bind-address`; `loadline dashboard`: the address of its page), as
OpenMetrics text.

A counter ends in `_total` and begins anew when its process does. A histogram has `_bucket` (with the label `le`), `_sum` and
`_count`. A metric whose labels have had no value yet is not served: that is no zero. Names that do not begin with `loadline_`
are those of the program whose place the component takes, so that dashboards made for it go on working.

[How to watch them](../guide/monitoring.md), with dashboards and alerts.
";

/// A component, and what it counts.
struct Component {
    /// Its command, as it is typed; none for what every process has.
    command: Option<&'static str>,
    metrics: Vec<Described>,
}

/// The page.
///
/// # Errors
/// When a component cannot be asked.
pub async fn page() -> Result<String> {
    let mut page = INTRODUCTION.to_owned();
    for Component { command, metrics } in [process()].into_iter().chain(components().await?) {
        let title = command.map_or_else(|| "Every process".to_owned(), |command| format!("`{command}`"));
        let _ =
            write!(page, "\n## {title}\n\n| metric | type | unit | labels | what |\n|---|---|---|---|---|\n");
        for metric in metrics {
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} | {} |",
                metric.name,
                metric.kind.as_str(),
                unit(&metric),
                labels.join(", "),
                cell(&metric.help),
            );
        }
    }
    Ok(page)
}

/// What one of it is. Names say so, as Prometheus' conventions ask.
fn unit(metric: &Described) -> &'static str {
    match metric.name.as_str() {
        name if name.contains("_seconds") => "seconds",
        name if name.starts_with("process_") && name.ends_with("_bytes") => "bytes",
        name if name.starts_with("loadline_agent_release_") => "millicores, bytes",
        name if name.starts_with("loadline_rebalance_relief_") => "cores, bytes",
        _ if metric.kind == Kind::Histogram => "how many",
        _ => "",
    }
}

/// What is shown of the process, whatever runs in it.
fn process() -> Component {
    let metrics = Metrics::default();
    metrics.register(|registry| registry.register_collector(&Figures::default(), &[]));
    Component { command: None, metrics: metrics.described() }
}

/// All components, in the order of `loadline help`.
///
/// # Errors
/// When one cannot be asked.
async fn components() -> Result<Vec<Component>> {
    let cluster = nowhere()?;
    let listening = || serve::listen(SOMEWHERE, None, true);

    let options = || -> Result<scheduler::Options> {
        Ok(scheduler::Options {
            lease: lease("loadline-scheduler")?,
            ..scheduler::Options::new(cluster.clone())
        })
    };
    let (alone, shadow) = (options()?, options()?);
    let alone = asked(|ctx| scheduler::run(ctx, alone)).await?;
    let answers = extender::Options {
        listening: listening().await?,
        keep: Keep::All,
        reserve_for: Duration::from_secs(1),
    };
    let both = scheduler::Options { extender: Some(answers), ..options()? };
    let mut answering = asked(|ctx| scheduler::run(ctx, both)).await?;
    answering.retain(|metric| !alone.contains(metric));
    let shadow = asked(|ctx| scheduler::shadow::run(ctx, shadow, Reported::default())).await?;

    let annotates = annotator::Options {
        lease: lease("loadline-annotator")?,
        ..annotator::Options::new(cluster.clone())
    };
    let recommends = recommender::Options {
        lease: lease("loadline-recommender")?,
        ..recommender::Options::new(cluster.clone())
    };
    let moves = rebalance::Options {
        lease: lease("loadline-rebalance")?,
        ..rebalance::Options::new(cluster.clone())
    };
    let estimates = estimator::Options::new(BTreeMap::new(), listening().await?);
    let places = placement::Options {
        lease: lease("loadline-placement")?,
        ..placement::Options::new(cluster.clone())
    };
    let binds =
        binding::Options { lease: lease("loadline-fleet")?, ..binding::Options::new(cluster.clone()) };
    let publishes = publish::Options {
        lease: lease("loadline-publish")?,
        ..publish::Options::new(cluster.clone(), BTreeMap::new())
    };
    let (_asker, questions) = ask::channel();
    let shows = dashboard::Options::new("reference", cluster.clone());
    let protects = agent::Options::new(cluster, agent::Nodes::One("reference".to_owned()), Arc::new(host()));

    let all = [
        ("loadline scheduler", alone),
        ("loadline scheduler --extender", answering),
        ("loadline scheduler --shadow", shadow),
        ("loadline annotator", asked(|ctx| annotator::run(ctx, annotates)).await?),
        ("loadline recommender", asked(|ctx| recommender::run(ctx, recommends)).await?),
        ("loadline rebalance", asked(|ctx| rebalance::run(ctx, moves)).await?),
        ("loadline agent", asked(|ctx| agent::run(ctx, protects)).await?),
        ("loadline estimator", asked(|ctx| estimator::run(ctx, estimates)).await?),
        ("loadline fleet --api ocm", asked(|ctx| placement::run(ctx, places)).await?),
        ("loadline fleet --api karmada", asked(|ctx| binding::run(ctx, binds)).await?),
        ("loadline fleet --publish", asked(|ctx| publish::run(ctx, publishes)).await?),
        ("loadline dashboard", asked(|ctx| dashboard::run(ctx, shows, questions)).await?),
    ];
    let sorted = all.into_iter().map(|(command, mut metrics)| {
        metrics.sort();
        Component { command: Some(command), metrics }
    });
    Ok(sorted.collect())
}

/// A node that is never looked at.
fn host() -> Local {
    Local::new(local::Options {
        node: "reference".into(),
        root: PathBuf::from("/"),
        cgroup_root: "/".to_owned(),
        interfaces: Vec::new(),
        count_iowait: false,
        longest: Duration::from_secs(30),
        actuator: local::Actuator::Cgroup,
    })
}

/// What a component has registered when it is over.
async fn asked<F, E>(start: impl FnOnce(Ctx) -> F) -> Result<Vec<Described>>
where
    F: Future<Output = Result<(), E>>,
    E: std::error::Error + Send + Sync + 'static,
{
    let stop = CancellationToken::new();
    stop.cancel();
    let ctx = Ctx::new("reference", stop);
    let metrics = ctx.metrics.clone();
    Box::pin(start(ctx)).await?;
    Ok(metrics.described())
}

/// A cluster that is never asked.
fn nowhere() -> Result<Access> {
    let config = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    kube::Client::try_from(config).map(Access::Client).context("a client that asks nobody")
}

/// Whoever can lead says whether it does.
fn lease(component: &str) -> Result<Option<Checked>> {
    let options = lease::Options::new("kube-system", component);
    options.check(&options.lock("reference")).map(Some).context("leader election")
}

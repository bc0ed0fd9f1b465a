//! `loadline up`: a small Kubernetes in one process.

mod compare;
mod estimator;
mod exporter;
mod hub;
mod karmada;
mod news;
mod site;
mod stock;
mod twin;

use crate::args::{self, Component, Up};
use crate::kubeconfig::Kubeconfig;
use crate::out::{bold, dim, line};
use crate::signal;
use anyhow::{Context as _, Result, bail};
use estimator::Estimator;
use hub::Hub;
use loadline_apiserver::ApiServer;
use loadline_apiserver::metrics::Sample;
use loadline_core::load::policy::Rules;
use loadline_core::quantity::Quantity;
use loadline_manifests::{Manifests, PolicyInput};
use loadline_services::rebalance;
use loadline_sim::node::{Figures, Folders, Machines, Sink, Use};
use loadline_sim::world::{OWN_SCHEDULER, Scheduler};
use loadline_sim::{Options, Scenario};
use site::Site;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use stock::StockScheduler;
use twin::Twin;

/// How often what pods use is looked at, to learn from: as often as it is reported.
const LEARN_EVERY: Duration = Duration::from_secs(5);
/// Time between two looks of the agents.
const PROTECT_EVERY: Duration = Duration::from_secs(2);
/// Clusters of the scenario in which totals mislead.
const TOTALS: u16 = 3;
/// GPUs of a node that has some.
const GPUS: i64 = 4;
/// Time between two ticks of what agents see: much shorter than between their looks.
const COUNT_EVERY: Duration = Duration::from_millis(100);

pub async fn run(args: &Up) -> Result<()> {
    if args.compare {
        return compare::run(args).await;
    }
    let args = &Up { scenario: story(args)?, ..args.clone() };
    let with = |component| !args.without.contains(&component);
    let usual = options(args)?;
    let mode = if args.rebalance { rebalance::Mode::Act } else { rebalance::Mode::Preview };
    let options = Options {
        scheduler: match &args.scheduler {
            _ if !with(Component::Scheduler) => Scheduler::Other,
            Some(_) => Scheduler::LoadAwareIfNamed,
            None => usual.scheduler,
        },
        protect: with(Component::Agent).then_some(PROTECT_EVERY),
        learn: usual.learn.filter(|_| with(Component::Recommender)),
        annotate: with(Component::Annotator),
        rebalance: with(Component::Rebalance).then_some(mode),
        ..usual
    };
    let (ended, started) = (signal::ended(), Instant::now());
    let (mut sites, mut link) = (Vec::new(), None);
    let clusters = clusters(args)?;
    let (beside, asked) = hub::asked(clusters);
    for number in 0..clusters {
        // Where there is no place for folders, agents are told what nodes use.
        let is_wanted = options.protect.is_some() || args.node_folders.is_some();
        let folders = is_wanted.then(|| Folders::new(COUNT_EVERY).ok()).flatten();
        link = args
            .node_folders
            .as_deref()
            .map(|link| Link::new(link, folders.as_ref(), options.nodes))
            .transpose()?;
        let options = Options { folders, ..member(args, &options, number) };
        let name = if clusters > 1 { format!("member{}", number + 1) } else { "loadline".to_owned() };
        sites.push(Site::start(args, &options, (number, name), beside.clone()).await?);
    }
    let estimator = match sites.as_slice() {
        [_] => None,
        several => Some(Estimator::start(several).await?),
    };
    let mut hub = match &estimator {
        None => None,
        Some(estimator) => {
            let port = if args.port == 0 { Some(0) } else { args.port.checked_add(clusters) };
            let port = port.context("--port is too high")?;
            Some(Hub::start(port, &sites, estimator.address(), is_about_totals(args), asked).await?)
        }
    };
    let named = sites.iter().map(|site| (site.name.as_str(), site.url.as_str()));
    let named: Vec<_> = named.chain(hub.as_ref().map(|hub| (hub::NAME, hub.url.as_str()))).collect();
    let port = sites.first().map_or(0, |site| site.port);
    let kubeconfig = Kubeconfig::write(args.kubeconfig_out.as_deref(), &named, port)?;
    let stock = args.scheduler.as_deref().map(|path| StockScheduler::start(path, kubeconfig.path()));
    let mut stock = stock.transpose()?;
    let mut twin = Twin::start(args, options.scenario).await?;
    greet(args, &sites, (estimator.as_ref(), hub.as_ref()), kubeconfig.path());

    let news = hub.as_mut().and_then(Hub::notices);
    let beside = news::Beside { estimator: estimator.as_ref(), twin: twin.as_mut(), stock: stock.as_mut() };
    let why = news::follow((&mut sites, news), beside, args.time, started, ended).await?;
    line("");
    line(&dim(&format!("Ending: {why}.")));
    let room = estimator.as_ref().and_then(Estimator::room);
    if let Some(estimator) = estimator {
        estimator.stop().await;
    }
    if let Some(hub) = hub {
        hub.stop().await?;
    }
    drop(stock);
    let mut summaries = Vec::new();
    let otherwise = match (&mut twin, sites.first()) {
        (Some(twin), Some(site)) => Some(twin.told(&site.world).await),
        _ => None,
    };
    for site in sites {
        let title = if clusters > 1 { format!("Summary of {}", site.name) } else { "Summary".to_owned() };
        summaries.push(news::summary(&title, &site.world, &site.server, started));
        site.stop().await?;
    }
    drop((kubeconfig, link));
    line(&summaries.join("\n"));
    if let Some(last) = room.or(otherwise) {
        line(&last);
    }
    Ok(())
}

/// The story that is told: the one asked for or, to whoever asks for nothing in particular, what there is to see.
fn story(args: &Up) -> Result<Option<args::Scenario>> {
    let introduction = args::Scenario::Introduction;
    let fewest = Scenario::Introduction.fewest_nodes();
    let is_enough = usize::try_from(args.nodes).is_ok_and(|nodes| nodes >= fewest);
    let particular = args.quiet_world
        || args.rebalance
        || args.clusters > 1
        || args.workloads.is_some()
        || args.policy.is_some()
        || args.scheduler.is_some()
        || args.node_folders.is_some()
        || !args.without.is_empty();
    match args.scenario {
        Some(scenario) if scenario == introduction && !is_enough => {
            bail!(
                "--nodes: {} given, expected {fewest} or more: --scenario introduction needs them",
                args.nodes
            )
        }
        None if !particular && is_enough => Ok(Some(introduction)),
        asked => Ok(asked),
    }
}

fn is_about_totals(args: &Up) -> bool {
    args.scenario == Some(args::Scenario::Totals)
}

/// How many clusters there are.
fn clusters(args: &Up) -> Result<u16> {
    match args.clusters {
        1 if is_about_totals(args) => Ok(TOTALS),
        other if is_about_totals(args) && other != TOTALS => {
            bail!("--clusters: {other} given, expected {TOTALS}: --scenario totals is about so many")
        }
        given => Ok(given),
    }
}

/// What one cluster of several is like. Those of a fleet have some GPUs; those of a story are what it is about.
fn member(args: &Up, options: &Options, number: u16) -> Options {
    if is_about_totals(args)
        && let Some((nodes, machines)) = karmada::MACHINES.get(usize::from(number))
    {
        let (nodes, machines) = (*nodes, machines.clone());
        return Options { nodes, machines, scheduler: Scheduler::RequestsOnly, ..options.clone() };
    }
    let gpus = if args.clusters > 1 { GPUS } else { 0 };
    Options { machines: Machines { gpus, ..Machines::default() }, ..options.clone() }
}

/// What to simulate.
fn options(args: &Up) -> Result<Options> {
    let rules = args.policy.as_deref().map(load_rules).transpose()?.unwrap_or_default();
    Ok(Options {
        nodes: usize::try_from(args.nodes).unwrap_or(usize::MAX),
        seed: args.seed.unwrap_or(1),
        workloads: usize::try_from(args.workloads.unwrap_or(0)).unwrap_or(usize::MAX),
        rules,
        learn: Some(LEARN_EVERY),
        scenario: args.scenario.and_then(|scenario| match scenario {
            args::Scenario::Overload => Some(Scenario::Overload),
            args::Scenario::Underrated => Some(Scenario::Underrated),
            args::Scenario::Bursts => Some(Scenario::Bursts),
            args::Scenario::Introduction => Some(Scenario::Introduction),
            args::Scenario::Totals => None,
        }),
        ..Options::default()
    })
}

/// The load rules of a file; a policy, settings, or both.
pub fn load_rules(path: &Path) -> Result<Rules> {
    let manifests = Manifests::read(&[path.to_owned()], PolicyInput::KINDS);
    let PolicyInput { rules, warnings } = PolicyInput::read(manifests)?;
    for warning in warnings {
        tracing::warn!(%warning, "load policy");
    }
    Ok(rules)
}

/// The same of a text, which may change; or everything that is wrong with it.
pub fn rules(text: &str) -> Result<Rules, String> {
    let manifests = Manifests::parse("policy", text, PolicyInput::KINDS);
    let PolicyInput { rules, warnings } =
        PolicyInput::read(manifests).map_err(|problems| problems.to_string())?;
    for warning in warnings {
        tracing::warn!(%warning, "load policy");
    }
    Ok(rules)
}

/// A link to the folders of nodes, while they are there.
struct Link(PathBuf);

impl Link {
    fn new(link: &Path, folders: Option<&Folders>, nodes: usize) -> Result<Self> {
        let shown = link.display();
        let folders = folders.filter(|_| nodes <= Folders::MOST_NODES).with_context(|| {
            format!("{shown}: worlds of more than {} nodes have no folders", Folders::MOST_NODES)
        })?;
        // One that an earlier run could not take away leads nowhere.
        if link.is_symlink() && !link.exists() {
            std::fs::remove_file(link).with_context(|| format!("cannot replace the link {shown}"))?;
        }
        std::os::unix::fs::symlink(folders.top(), link)
            .with_context(|| format!("cannot make the link {shown}"))?;
        Ok(Self(link.to_owned()))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn greet(args: &Up, sites: &[Site], (estimator, hub): (Option<&Estimator>, Option<&Hub>), kubeconfig: &Path) {
    line(&bold(match estimator {
        None => "loadline is up: a small Kubernetes in one process",
        Some(_) => "loadline is up: a fleet of small Kubernetes clusters in one process",
    }));
    line("");
    for site in sites {
        let name = if sites.len() > 1 { format!("  ({})", site.name) } else { String::new() };
        if let Some(address) = site.shown_at {
            line(&format!("  dashboard   http://{address}{name}"));
        }
    }
    for site in sites {
        let name = if sites.len() > 1 { format!("  ({})", site.name) } else { String::new() };
        line(&format!("  API server  {}{name}", site.url));
    }
    if let Some(hub) = hub {
        line(&format!("  API server  {}  ({}: placements and bindings of the fleet)", hub.url, hub::NAME));
    }
    for site in sites {
        line(&format!(
            "  exporters   http://{}/targets, for the http_sd_configs of a Prometheus",
            site.monitored_at
        ));
    }
    line(&match sites {
        _ if is_about_totals(args) => {
            "  nodes       10 of 8 cpu, 2 of 16 with the label key=value, 10 of 16; simulated".to_owned()
        }
        [_] => format!("  nodes       {}, simulated", args.nodes),
        _ => format!("  nodes       {} in each cluster, simulated", args.nodes),
    });
    if let Some(workloads) = args.workloads {
        line(&format!("  workloads   {workloads}, coming one by one"));
    }
    greet_story(args);
    line(&match &args.policy {
        _ if is_about_totals(args) => "  scheduler   by requests, in every cluster".to_owned(),
        _ if args.without.contains(&Component::Scheduler) => "  scheduler   none, as asked".to_owned(),
        _ if args.scheduler.is_some() => {
            format!("  scheduler   ours, load-aware, for pods with schedulerName: {OWN_SCHEDULER}")
        }
        Some(path) => format!("  scheduler   load-aware, by the policy in {}", path.display()),
        None => "  scheduler   load-aware, by crane's default policy".to_owned(),
    });
    if let Some(path) = &args.scheduler {
        line(&format!("  scheduler   {}, for all other pods", path.display()));
    }
    if let Some(estimator) = estimator {
        line(&format!("  estimator   {}, gRPC, for all clusters", estimator.address()));
    }
    if let Some(hub) = hub {
        line(&format!("  controller  http://{}, of bindings: explains them", hub.controller));
    }
    if let Some(link) = &args.node_folders {
        line(&format!("  folders     {}/NODE, as the file system of each node", link.display()));
    }
    line(&format!("  kubeconfig  {}", kubeconfig.display()));
    line("");
    line("Try, in another terminal:");
    line("");
    line(&format!("  export KUBECONFIG={}", quoted(kubeconfig)));
    if let [_, other, ..] = sites {
        let context = format!("--context {}", other.name);
        line(&format!("  kubectl {context} get nodes"));
        line(&format!("  kubectl {context} create deployment web --image=nginx --replicas=40"));
        line("  kubectl create deployment web --image=nginx --dry-run=client -o yaml |");
        line(&format!("    loadline what-if estimate --live {context} -f -"));
        line(&format!("  kubectl --context {} get placementdecisions -o wide --watch", hub::NAME));
        line(&format!("  loadline explain placement story-1 --context {}", hub::NAME));
        if is_about_totals(args) {
            let bound = "resourcebindings,deployments";
            line(&format!("  kubectl --context {} get {bound}", hub::NAME));
            line("  kubectl --context member1 get pods");
        }
        if let Some(hub) = hub.filter(|_| is_about_totals(args)) {
            let name = "default/solver-deployment";
            line(&format!("  loadline explain binding {name} --controller http://{}", hub.controller));
        }
    } else {
        line("  kubectl get nodes");
        line("  kubectl create deployment web --image=nginx --replicas=40");
        line("  kubectl get pods -o wide --watch");
        if args.scheduler.is_some() {
            line("  kubectl create deployment ours --image=nginx --replicas=40 --dry-run=client -o yaml |");
            line(&format!(
                "    sed 's/^    spec:/&\\n      schedulerName: {OWN_SCHEDULER}/' | kubectl apply -f -"
            ));
        }
    }
    line("");
    line(&match args.time {
        Some(time) => format!("It ends by itself after {time:?}, or with Ctrl-C."),
        None => "Ctrl-C ends it.".to_owned(),
    });
    line("");
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@:".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Hands figures to the metrics API, and takes back those of pods that are gone.
fn metrics(server: &ApiServer) -> Sink {
    let server = server.clone();
    let known = Mutex::new((BTreeSet::new(), BTreeSet::new()));
    Sink::new(move |figures: &Figures| {
        let sample = Sample { at: figures.at, window: figures.window };
        let mut known = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut now = (BTreeSet::new(), BTreeSet::new());
        for node in &figures.nodes {
            server.set_node_metrics(&node.name, &quantities(node.used), sample);
            now.0.insert(node.name.clone());
        }
        for pod in &figures.pods {
            let containers =
                pod.containers.iter().map(|(name, used)| (name.clone(), quantities(*used))).collect();
            server.set_pod_metrics(&pod.key.namespace, &pod.key.name, &containers, sample);
            now.1.insert(pod.key.clone());
        }
        for gone in known.0.difference(&now.0) {
            server.clear_node_metrics(gone);
        }
        for gone in known.1.difference(&now.1) {
            server.clear_pod_metrics(&gone.namespace, &gone.name);
        }
        *known = now;
    })
}

/// As the metrics API has them.
fn quantities(used: Use) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("cpu".to_owned(), Quantity::from_milli(used.cpu_milli).to_string()),
        ("memory".to_owned(), Quantity::from_bytes(used.memory_bytes).to_string()),
    ])
}

/// What is going to happen.
fn greet_story(args: &Up) {
    match args.scenario {
        Some(args::Scenario::Overload) => {
            line("  scenario    overload: a rush of load on node-00, then calm again, in about a minute");
        }
        Some(args::Scenario::Underrated) => {
            line("  scenario    underrated: many replicas at once that use far more than they ask for");
        }
        Some(args::Scenario::Bursts) => {
            line(
                "  scenario    bursts: workloads want much more than when they were placed; try --rebalance",
            );
        }
        Some(args::Scenario::Totals) => {
            line(
                "  scenario    totals: two workloads fit in a cluster by its totals, and on none of its nodes",
            );
        }
        Some(args::Scenario::Introduction) => {
            line(
                "  story       placement, protection and recovery, in a minute; --quiet-world leaves it out",
            );
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_printed_so_that_a_shell_takes_them() {
        for (path, expected) in
            [("/a/b-1.kubeconfig", "/a/b-1.kubeconfig"), ("/a b", "'/a b'"), ("/it's", r"'/it'\''s'")]
        {
            assert_eq!(quoted(Path::new(path)), expected);
        }
    }
}

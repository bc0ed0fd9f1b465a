//! Which pods should leave nodes that are over their line? Planned after every measurement, and done if somebody said so.
//!
//! It knows what the scheduler knows, by the same watches and the same account, and beside it how long nodes have been over
//! their lines (`state`). What is moved is written on the node it leaves before the pod is asked to go (`act`): whoever comes
//! after a crash reads there what was done, schedulers read there that the node is left alone for a while.
//!
//! | what it does | |
//! |---|---|
//! | watches | what the scheduler watches; namespaces, for the switch |
//! | polls | measurements of nodes and pods, from the metrics API |
//! | asks | [`loadline_core::rebalance`] |
//! | writes | the cooling mark and what was moved, on nodes, with a taint if the settings say so; evictions; its lease. Without `act`, nothing but the lease |
//! | tells | Events on pods and nodes, notices, metrics, the last plan |

mod act;
mod metrics;
mod state;

pub use act::KEY;
pub use metrics::{Because, Metrics};

use crate::cluster::leading::Leading;
use crate::cluster::lease;
use crate::cluster::resource::{NAMESPACES, NODES};
use crate::cluster::watch::{Watches, logged, watched};
use crate::cluster::{Access, Connection, Event};
use crate::ctx::Ctx;
use crate::reload::{Reloaded, Source, reread};
use crate::scheduler;
use crate::scheduler::watched::Message;
use crate::serve::probes::{Readiness, Status};
use crate::sources::metrics_api;
use act::Actor;
use arc_swap::ArcSwapOption;
use loadline_api::json::{Skip, Tree};
use loadline_api::scheduler::{Configuration, SchedulerProfile};
use loadline_core::load::policy::Rules;
use loadline_core::rebalance::{SWITCH, Settings};
use loadline_core::view::NodeFacts;
use serde_json::Value;
use state::State;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

const COMPONENT: &str = "loadline-rebalance";
/// What it is called while it only looks: its account may do less.
const PREVIEW: &str = "loadline-rebalance-preview";
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;
/// How long the end may take.
const ENDING: Duration = Duration::from_secs(5);

/// Does it move pods, or only say which it would?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Preview,
    Act,
}

/// How pods are moved.
#[derive(Debug)]
pub struct Options {
    pub cluster: Access,
    /// By which rules the scheduler of the pods decides ([`configuration`]).
    pub rules: Source<Configuration>,
    pub settings: Source<Settings>,
    /// Moves within an hour, in place of what the settings say.
    pub most: Option<u32>,
    pub mode: Mode,
    /// For how long schedulers leave a node alone that gave up a pod.
    pub cooling: Duration,
    /// How measurements are asked for.
    pub measure: metrics_api::Options,
    /// By which lease one of several is chosen; without, this is the only one.
    pub lease: Option<lease::Checked>,
    pub metrics: Metrics,
    pub status: Status,
    /// The last plan; whoever has a clone can read it.
    pub last: Last,
}

impl Options {
    /// One that only says what it would do, by crane's default policy.
    #[must_use]
    pub fn new(cluster: Access) -> Self {
        Self {
            cluster,
            rules: Source::Fixed(Box::new(configuration(Some(Rules::default())))),
            settings: Source::Fixed(Box::default()),
            most: None,
            mode: Mode::default(),
            cooling: Duration::from_mins(10),
            measure: metrics_api::Options::default(),
            lease: None,
            metrics: Metrics::default(),
            status: Status::default(),
            last: Last::default(),
        }
    }
}

/// The last plan, as programs read it.
#[derive(Clone, Debug, Default)]
pub struct Last(Arc<ArcSwapOption<Value>>);

impl Last {
    /// `None` before the first.
    #[must_use]
    pub fn get(&self) -> Option<Arc<Value>> {
        self.0.load_full()
    }

    fn set(&self, plan: Value) {
        self.0.store(Some(Arc::new(plan)));
    }
}

/// Why it could not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// What comes in beside what the scheduler is told.
#[derive(Debug)]
enum Own {
    /// Is a namespace switched off?
    Namespace(Event<bool>),
    /// The text of the settings' file, or why it cannot be read.
    Settings(Result<String, String>),
}

const ANNOTATIONS: Skip =
    Skip::fields(&["spec", "status"]).within(&[("metadata", Skip::fields(&["labels", "managedFields"]))]);

watched!(Switches: NAMESPACES, skip ANNOTATIONS, bool, |o: &Tree<'_>| {
    Ok(o["metadata"]["annotations"][SWITCH].as_str() == Some("off"))
});

watched!(Nodes: NODES, skip loadline_api::node::SKIP, NodeFacts, |o| loadline_api::node::facts(o).map(logged));

/// Plans, and moves pods if it is to, until told to stop.
///
/// # Errors
/// When the cluster cannot be reached at all: a kubeconfig that cannot be read. A server that is away is waited for.
pub async fn run(ctx: Ctx, options: Options) -> Result<(), Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error)?;
    let connection =
        Connection::new(client).named(if options.mode == Mode::Act { COMPONENT } else { PREVIEW });
    options.metrics.register(&ctx);

    let (_watches, mut messages) = scheduler::watches(&connection, &known(&options));
    let (_own, mut own) = own_watches(&connection, &options.settings);
    let lead = Leading::start(&ctx, &connection, COMPONENT, options.lease);
    let mut settings = Reloaded::new("settings", options.settings.clone());
    let mut rules = Reloaded::new("policy", options.rules.clone());
    let mut state = State::new(rules.current(), settings.current(), ctx.now());
    let mut actor = Actor {
        writer: lead.writer.clone(),
        events: lead.events.clone(),
        notices: ctx.notices.clone(),
        metrics: options.metrics.clone(),
        mode: options.mode,
        cooling: options.cooling,
        last: options.last,
        told: std::collections::BTreeSet::new(),
        pause: None,
    };
    let (mut batch, mut more) = (Vec::new(), Vec::new());
    loop {
        tokio::select! {
            () = ctx.stop.cancelled() => break,
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break },
            count = own.recv_many(&mut more, WAITING) => if count == 0 { break },
        }
        let now = ctx.now();
        for message in more.drain(..) {
            match message {
                Own::Namespace(event) => state.take_switch(event, now),
                Own::Settings(read) => {
                    if settings.take_text(read) {
                        state.set_settings(settings.current());
                    }
                }
            }
        }
        let (mut measured, mut looked) = (false, false);
        for message in batch.drain(..) {
            // Whether it brought anything or not.
            looked |= matches!(message, Message::Measured(_));
            if let Message::Configuration(read) = message {
                if rules.take_text(read) {
                    state.configure(rules.current(), now);
                }
                continue;
            }
            measured |= state.take(message, now);
        }
        state.advance(now);
        let leads = lead.leadership.may_write();
        let ready = state.is_ready() && settings.is_loaded() && rules.is_loaded();
        if measured && ready {
            state.limit(options.most);
            state.remember(leads);
            actor.round(&mut state, leads, now).await;
        } else if looked && ready {
            // Nothing is done on what was known before, but whoever asks for the plan learns why not.
            drop(actor.look(&mut state, now.clock));
        }
        if looked && ready && leads && options.mode == Mode::Act {
            actor.open(&mut state, false, now.clock).await;
        }
        let problems = [("settings", settings.problem()), ("policy", rules.problem())];
        let mut now_is = readiness(&state, ready, leads, options.mode, &problems);
        if let Some(pause) = actor.pause.filter(|_| ready) {
            let _ = writeln!(now_is.progress, "nothing is moved: {pause}");
        }
        options.status.set(now_is);
    }
    if options.mode == Mode::Act && lead.leadership.may_write() {
        // Nobody else takes them off before another one starts.
        let open = actor.open(&mut state, true, ctx.now().clock);
        if tokio::time::timeout(ENDING, open).await.is_err() {
            tracing::warn!("taints may be left on nodes: the next one to start takes them off");
        }
    }
    lead.end().await;
    Ok(())
}

/// What the scheduler would be told, to know what it knows.
fn known(options: &Options) -> scheduler::Options {
    scheduler::Options {
        configuration: options.rules.clone(),
        measure: options.measure,
        ..scheduler::Options::new(options.cluster.clone())
    }
}

/// What a scheduler that goes by these rules is configured to; by requests alone without.
#[must_use]
pub fn configuration(rules: Option<Rules>) -> Configuration {
    let profile = SchedulerProfile::new(loadline_api::scheduler::NAME, rules);
    Configuration { profiles: vec![profile], ..Configuration::default() }
}

fn own_watches(
    connection: &Connection,
    settings: &Source<Settings>,
) -> (Watches<Own>, tokio::sync::mpsc::Receiver<Own>) {
    let (mut watches, messages) = Watches::new(connection.clone(), WAITING);
    watches.add::<Switches>(Own::Namespace);
    if let Source::File(path, _) = settings {
        watches.spawn(|_, events| reread(path.clone(), events, Own::Settings));
    }
    (watches, messages)
}

fn readiness(
    state: &State,
    ready: bool,
    leads: bool,
    mode: Mode,
    problems: &[(&str, Option<&str>)],
) -> Readiness {
    let mut lines = vec![
        match (ready, leads, mode) {
            (false, ..) => "reading the cluster",
            (true, false, _) => "standing by: another one leads",
            (true, true, Mode::Preview) => "active, in preview: nothing is moved",
            (true, true, Mode::Act) => "active",
        }
        .to_owned(),
    ];
    lines.extend(state.problem.iter().map(|problem| format!("metrics API: {problem}")));
    lines.extend(problems.iter().filter_map(|(of, problem)| Some(format!("{of}: {}", (*problem)?))));
    Readiness { ready, progress: lines.join("\n") + "\n" }
}

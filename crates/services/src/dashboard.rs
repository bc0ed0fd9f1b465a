//! What does a cluster look like to somebody who looks? A page that shows it, and the documents the page is made from.
//!
//! It knows what the scheduler knows, by the same watches and the same account, and asks the same engine why. It decides
//! nothing and writes nothing.
//!
//! | what it does | |
//! |---|---|
//! | watches | what the scheduler watches; Events |
//! | watches while somebody looks at a node | what its agent watches, if that cannot be asked itself |
//! | polls | measurements of nodes and pods, from the metrics API |
//! | asks | [`loadline_core::cluster::Cluster`]; whoever decided, where there is a way to them ([`Beside`]) |
//! | writes | nothing |
//! | tells | whoever opens the page ([`router`]) |

mod agents;
pub mod fleet;
mod happenings;
mod history;
mod protection;
mod row;
mod serve;
mod state;

pub use happenings::Happenings;
pub use serve::{Guard, beside, router};

use crate::agent::Looked;
use crate::ask;
use crate::cluster::watch::Watches;
use crate::cluster::{Access, Calls, Connection};
use crate::ctx::Ctx;
use crate::fleet::binding;
use crate::reload::Reloaded;
use crate::scheduler;
use crate::scheduler::watched::Message;
use crate::serve::probes::{Readiness, Status};
use agents::Agents;
use loadline_core::object::Key;
use serde_json::Value;
use state::State;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;
/// Time between two points of the plots.
const STEP: Duration = Duration::from_secs(15);

/// What is looked at.
#[derive(Debug)]
pub struct Options {
    /// What the page calls the cluster.
    pub name: String,
    /// How the cluster is reached, by which rules its scheduler goes, how measurements are asked for.
    pub scheduler: scheduler::Options,
    /// What happened of late; the same that [`router`] shows.
    pub happenings: Happenings,
    /// Time between two points of the plots.
    pub step: Duration,
    /// When is looking begun?
    pub begin: Begin,
    /// Is what agents would know looked up here? Not where they can be asked themselves.
    pub onlook: bool,
    pub status: Status,
}

/// When is looking begun?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// At once: the last hour is there for whoever comes.
    #[default]
    AtOnce,
    /// When somebody asks for the first time: until then it costs nothing.
    WhenAsked,
}

impl Options {
    /// A cluster in which crane's default policy holds.
    #[must_use]
    pub fn new(name: &str, cluster: Access) -> Self {
        Self {
            name: name.to_owned(),
            scheduler: scheduler::Options::new(cluster),
            happenings: Happenings::default(),
            step: STEP,
            begin: Begin::default(),
            onlook: false,
            status: Status::default(),
        }
    }
}

/// What somebody wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Cluster,
    /// The last hour.
    History,
    Node(String),
    /// Why a pod is where it is, with so many nodes.
    Pod {
        pod: Key,
        most: usize,
    },
}

/// Whom to ask beside the dashboard itself, as far as there is a way to them.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// The scheduler that decided.
    pub scheduler: Option<scheduler::explain::Asker>,
    /// Who looks at the hub of a fleet.
    pub fleet: Option<fleet::Asker>,
    /// The controller that divided bindings.
    pub bindings: Option<binding::explain::Asker>,
    /// What agents knew in their last cycle, by node.
    pub agents: Arc<BTreeMap<String, Looked>>,
}

/// Where a running dashboard is asked; nothing is answered about what does not exist.
pub type Asker = ask::Asker<Subject, Option<Value>>;

/// Where it hears of that.
pub type Asked = ask::Asked<Subject, Option<Value>>;

/// Why it could not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Looks on, and answers, until told to stop.
///
/// # Errors
/// When the cluster cannot be reached at all: a kubeconfig that cannot be read. A server that is away is waited for.
pub async fn run(ctx: Ctx, options: Options, mut asked: Asked) -> Result<(), Error> {
    let mut waiting = Vec::new();
    if options.begin == Begin::WhenAsked {
        tokio::select! {
            () = ctx.stop.cancelled() => return Ok(()),
            question = asked.next() => waiting.push(question),
        }
    }
    let (client, _) = options.scheduler.cluster.connect().await.map_err(Error)?;
    let connection = Connection::new(client).named("loadline-dashboard");
    ctx.metrics.register(|registry| {
        let mut own = registry.below("loadline_dashboard");
        own.register_collector(connection.calls(), &Calls::LABELS);
    });
    let (_watches, mut messages) = scheduler::watches(&connection, &options.scheduler);
    let (mut told, mut events) = Watches::new(connection.clone(), WAITING);
    told.add::<happenings::Events>(|event| event);

    let mut configuration = Reloaded::new("configuration", options.scheduler.configuration);
    let mut state = State::new(&options.name, configuration.current(), options.step.as_secs(), ctx.now());
    let mut batch = Vec::new();
    let mut agents = Agents::new(options.onlook.then(|| connection.clone()));
    let mut ticks = interval(options.step);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = ctx.now();
        for message in batch.drain(..) {
            if let Message::Configuration(read) = message {
                if configuration.take_text(read) {
                    state.configure(configuration.current(), now);
                }
                continue;
            }
            state.take(message, now);
        }
        state.advance(now);
        options.status.set(readiness(&state));
        // Who asked first is answered when there is something to say.
        if state.can_answer() {
            for question in waiting.drain(..) {
                let answer = state.answer(&question.about, now, &options.happenings, &mut agents);
                question.answer(answer);
            }
        }
        tokio::select! {
            () = ctx.stop.cancelled() => break,
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break },
            Some(event) = events.recv() => options.happenings.take(event, now.clock),
            _ = ticks.tick() => {
                state.remember(now.clock);
                agents.tidy();
            }
            () = agents.follow() => {}
            question = asked.next() => {
                let answer = state.answer(&question.about, now, &options.happenings, &mut agents);
                question.answer(answer);
            }
        }
    }
    Ok(())
}

fn readiness(state: &State) -> Readiness {
    let progress = if state.is_ready() { "looking on\n" } else { "reading the cluster\n" };
    Readiness { ready: state.is_ready(), progress: progress.to_owned() }
}

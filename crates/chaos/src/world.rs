//! One run: the real components on an in-memory API server, with nodes, time and faults that the plan says.
//!
//! Everything runs on one thread in tokio's stopped time, so the same plan has the same history, byte for byte.

use crate::fleet;
use crate::floor::time;
use crate::front::{Front, Life};
use crate::hands::Hands;
use crate::history::{ENDED, Entry, PANIC, SPIN};
use crate::host::NodeHost;
use crate::life::Cluster;
use crate::panics;
use crate::plan::{Fault, Flaw, Plan, QUIET, TROUBLE, Trouble, What, Who};
use jiff::SignedDuration;
use kube::Client;
use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
use loadline_apiserver::{ApiServer, Config};
use loadline_services::agent;
use loadline_services::cluster::{Access, lease};
use loadline_services::ctx::{Clock, Ctx};
use loadline_services::fleet::{binding, placement};
use loadline_services::scheduler;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

/// So long may a component take to end.
const ENDS: Duration = Duration::from_secs(10);
/// How often an agent looks.
const LOOK: Duration = Duration::from_secs(5);

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
#[error("the run could not begin: {0}")]
pub struct Error(#[from] std::io::Error);

/// Runs a plan to its end, and says what the API server saw.
///
/// # Errors
/// When there is no room for the agents' journals, or no runtime.
pub fn run(plan: &Plan) -> Result<Vec<Entry>, Error> {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? };
    panics::listen();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(async { World::new(plan, folder.path()).play().await }))
}

/// One component, whichever start of it.
struct Unit {
    who: Who,
    faults: Faults,
    /// Its clock, against a true one, in milliseconds.
    offset: Arc<AtomicI64>,
    skew: i64,
    life: Mutex<Arc<Life>>,
    back_after: AtomicU64,
}

impl Unit {
    fn life(&self) -> Arc<Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct World {
    plan: Plan,
    front: Front,
    units: BTreeMap<Who, Arc<Unit>>,
    folder: PathBuf,
}

impl World {
    fn new(plan: &Plan, folder: &Path) -> Self {
        let start = Instant::now();
        let clock = move || time(u64::try_from(start.elapsed().as_millis()).unwrap_or(0));
        let server =
            || ApiServer::new(Config { clock: Arc::new(clock), seed: Some(plan.seed), ..Config::default() });
        let front = Front::new((server(), server()), plan, start);
        let mut all: Vec<Who> = (0..2).map(Who::Scheduler).chain((0..plan.nodes).map(Who::Agent)).collect();
        if plan.fleet.clusters > 0 {
            all.extend((0..2).map(Who::Placement).chain((0..2).map(Who::Binding)));
        }
        let unit = |(index, who): (usize, Who)| {
            let skew = plan.skews.get(index).copied().unwrap_or(0);
            let unit = Unit {
                who,
                faults: Faults::seeded(plan.seed ^ index as u64),
                offset: Arc::new(AtomicI64::new(skew)),
                skew,
                life: Mutex::default(),
                back_after: AtomicU64::new(0),
            };
            (who, Arc::new(unit))
        };
        let units = all.into_iter().enumerate().map(unit).collect();
        Self { plan: plan.clone(), front, units, folder: folder.to_owned() }
    }

    async fn play(self) -> Vec<Entry> {
        self.prepare().await;
        let cluster = tokio::spawn(Cluster::new(&self.front, &self.plan).run());
        let fleet = tokio::spawn(fleet::run(self.front.clone(), self.plan.fleet.clone()));
        let mut units = Vec::new();
        for unit in self.units.values() {
            let (front, unit) = (self.front.clone(), unit.clone());
            units.push(tokio::spawn(keep_up(front, unit, self.plan.clone(), self.folder.clone())));
        }
        self.trouble().await;
        sleep_until(self.front.start + TROUBLE + QUIET).await;
        for place in panics::take() {
            self.front.note(seen(PANIC, self.front.at(), "somebody", &place));
        }
        for task in units.iter().chain([&cluster, &fleet]) {
            task.abort();
        }
        self.front.history()
    }

    /// What is there before anything happens.
    async fn prepare(&self) {
        let hands = Hands::new(&self.front, "people");
        for definition in fleet::definitions() {
            hands.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
        }
        for (plural, object) in protection(self.plan.slows) {
            hands.create(&format!("/apis/ensurance.crane.io/v1alpha1/{plural}"), &object).await;
        }
    }

    /// Everything that goes wrong begins and ends, until all is well.
    async fn trouble(&self) {
        let end = u64::try_from(TROUBLE.as_millis()).unwrap_or(u64::MAX);
        let mut steps: Vec<(u64, usize, bool)> = Vec::new();
        for (index, trouble) in self.plan.troubles.iter().enumerate() {
            steps.push((trouble.at, index, true));
            if let Some(lasts) = lasts(&trouble.what) {
                steps.push(((trouble.at + lasts).min(end), index, false));
            }
        }
        steps.sort_unstable();
        let mut active: Vec<usize> = Vec::new();
        for (at, index, begins) in steps {
            sleep_until(self.front.start + Duration::from_millis(at)).await;
            if begins {
                active.push(index);
            } else {
                active.retain(|one| *one != index);
            }
            let now: Vec<&Trouble> = active.iter().map(|index| &self.plan.troubles[*index]).collect();
            self.apply(&self.plan.troubles[index].what, begins, &now);
        }
        sleep_until(self.front.start + TROUBLE).await;
        self.front.wire().doubled.clear();
        self.front.wire().late.clear();
        for unit in self.units.values() {
            unit.faults.clear();
            unit.faults.reconnect();
            unit.offset.store(unit.skew, Ordering::Relaxed);
        }
        // Watches that hang would be found out by themselves after a minute or two.
        self.front.server.end_watches();
    }

    fn apply(&self, what: &What, begins: bool, active: &[&Trouble]) {
        let unit = |who: &Who| self.units.get(who);
        match what {
            What::Requests { who, .. } => {
                let Some(unit) = unit(who) else { return };
                unit.faults.clear();
                self.front.wire().doubled.remove(&who.name());
                self.front.wire().late.remove(&who.name());
                for trouble in active {
                    if let What::Requests { who: other, fault, percent, .. } = &trouble.what
                        && other == who
                    {
                        #[expect(clippy::cast_precision_loss, reason = "at most a hundred")]
                        let chance = *percent as f64 / 100.0;
                        match (action(*fault), fault) {
                            (Some(action), _) => unit.faults.add(Rule::new(action).chance(chance)),
                            (None, Fault::Late(by)) => {
                                self.front.wire().late.insert(who.name(), (*percent, *by));
                            }
                            (None, _) => drop(self.front.wire().doubled.insert(who.name(), *percent)),
                        }
                    }
                }
            }
            What::CutOff { who, .. } => {
                let Some(unit) = unit(who) else { return };
                let still =
                    |one: &&Trouble| matches!(&one.what, What::CutOff { who: other, .. } if other == who);
                match active.iter().any(still) {
                    true if begins => unit.faults.disconnect(),
                    true => {}
                    false => unit.faults.reconnect(),
                }
            }
            What::Kill { who, back_after } => {
                let Some(unit) = unit(who) else { return };
                unit.back_after.store(*back_after, Ordering::Relaxed);
                unit.life().kill();
            }
            What::KillAtWrite { who, after, back_after } => {
                let Some(unit) = unit(who) else { return };
                unit.back_after.store(*back_after, Ordering::Relaxed);
                unit.life().kill_at_write(*after);
            }
            What::KillAtAct { who, after, back_after } => {
                let Some(unit) = unit(who) else { return };
                unit.back_after.store(*back_after, Ordering::Relaxed);
                unit.life().kill_at_act(*after);
            }
            What::Stop { who, back_after } => {
                let Some(unit) = unit(who) else { return };
                unit.back_after.store(*back_after, Ordering::Relaxed);
                unit.life().stop();
            }
            What::ClockSet { who, by_ms } => {
                let Some(unit) = unit(who) else { return };
                unit.offset.fetch_add(*by_ms, Ordering::Relaxed);
            }
            What::ServerRestarts => self.front.server.restart(),
            What::NodeGone { node, .. } => {
                let (mut floor, name) = (self.front.floor(), format!("n{node}"));
                if begins {
                    floor.away.insert(name)
                } else {
                    floor.away.remove(&name)
                };
            }
            What::Regroup { placement, per_group } => {
                self.front.floor().regrouped.insert(*placement, *per_group);
            }
            What::MetricsStop { .. } => self.front.floor().stopped = begins,
            What::MetricsLie { percent, .. } => self.front.floor().lie = begins.then_some(*percent),
            What::Hot { node, percent, .. } => {
                let (mut floor, name) = (self.front.floor(), format!("n{node}"));
                if begins {
                    floor.hot.insert(name, *percent)
                } else {
                    floor.hot.remove(&name)
                };
            }
            What::ClusterAway { cluster, .. } => {
                let mut floor = self.front.floor();
                if begins {
                    floor.clusters_away.insert(*cluster)
                } else {
                    floor.clusters_away.remove(cluster)
                };
            }
        }
    }
}

fn lasts(what: &What) -> Option<u64> {
    match what {
        What::Requests { lasts, .. }
        | What::CutOff { lasts, .. }
        | What::MetricsStop { lasts }
        | What::MetricsLie { lasts, .. }
        | What::Hot { lasts, .. }
        | What::ClusterAway { lasts, .. }
        | What::NodeGone { back_after: lasts, .. } => Some(*lasts),
        What::Kill { .. }
        | What::KillAtWrite { .. }
        | What::KillAtAct { .. }
        | What::Stop { .. }
        | What::ClockSet { .. }
        | What::ServerRestarts
        | What::Regroup { .. } => None,
    }
}

/// What a layer of faults does about it; what it cannot do the front does.
fn action(fault: Fault) -> Option<Action> {
    Some(match fault {
        Fault::Delay(ms) => Action::Delay(Duration::from_millis(ms)),
        Fault::DropRequest => Action::DropRequest,
        Fault::DropAnswer => Action::DropAnswer,
        Fault::DelayAnswer(ms) => Action::DelayAnswer(Duration::from_millis(ms)),
        Fault::Hang => Action::Hang,
        Fault::Conflict => Action::Answer(Answer::Conflict),
        Fault::Expired => Action::Answer(Answer::Expired),
        Fault::TooMany => Action::Answer(Answer::TooManyRequests { retry_after: 1 }),
        Fault::Internal => Action::Answer(Answer::Internal),
        Fault::Unavailable => Action::Answer(Answer::Unavailable),
        Fault::CutWatch(after) => Action::CutWatch { after },
        Fault::StallWatch(after) => Action::StallWatch { after },
        Fault::ExpireWatch(after) => Action::ExpireWatch { after },
        Fault::Double | Fault::Late(_) => return None,
    })
}

/// So often at most does a component look at its clock within a millisecond: more is nothing but a loop that never waits.
const LOOKS: u64 = 20_000;

/// How often a component looked at its clock while time stood still.
#[derive(Default)]
struct Rounds {
    at: AtomicU64,
    looks: AtomicU64,
}

impl Rounds {
    /// Is this once too often? True once.
    fn too_many(&self, at: u64) -> bool {
        if self.at.swap(at, Ordering::Relaxed) != at {
            self.looks.store(0, Ordering::Relaxed);
        }
        self.looks.fetch_add(1, Ordering::Relaxed) == LOOKS
    }
}

/// What a component did that no server sees.
fn seen(verb: &'static str, at: u64, who: &str, identity: &str) -> Entry {
    Entry {
        at,
        sent: at,
        who: who.to_owned(),
        identity: identity.to_owned(),
        verb,
        path: format!("/components/{who}"),
        subresource: String::new(),
        before: Value::Null,
        after: Value::Null,
    }
}

/// Starts a component again and again, as a cluster does.
async fn keep_up(front: Front, unit: Arc<Unit>, plan: Plan, folder: PathBuf) {
    for start in 1_u64.. {
        let life = Arc::<Life>::default();
        *unit.life.lock().unwrap_or_else(PoisonError::into_inner) = life.clone();
        let stop = CancellationToken::new();
        let name = unit.who.name();
        let identity = format!("{}-{start}", name.replace('/', "-"));
        let client = Client::new(unit.faults.layer(front.door(&name, &identity, life.clone())), "default");
        let (offset, rounds) = (unit.offset.clone(), Rounds::default());
        let (watched, owner, own, who) = (front.clone(), identity.clone(), life.clone(), unit.who);
        let clock = Clock::new(move || {
            let at = watched.at();
            if rounds.too_many(at) {
                watched.note(seen(SPIN, at, &who.name(), &owner));
                own.kill();
            }
            time(at) + SignedDuration::from_millis(offset.load(Ordering::Relaxed))
        });
        let seed = plan.seed.wrapping_mul(31).wrapping_add(start);
        let ctx = Ctx { clock, seed: Some(seed), ..Ctx::new(&identity, stop.clone()) };
        let has = |flaw| start == 1 && unit.who == Who::Scheduler(0) && plan.flaws.contains(&flaw);
        let (restless, ends, panics) = (has(Flaw::Restless), has(Flaw::Ends), has(Flaw::Panics));
        let clock = ctx.clock.clone();
        let running = component(unit.who, ctx, client, front.clone(), folder.clone());
        let mut running = tokio::spawn(async move {
            if restless {
                loop {
                    let _ = clock.now();
                    tokio::task::yield_now().await;
                }
            }
            if panics {
                #[expect(clippy::panic, reason = "planted: it is looked whether it is seen")]
                let inside = tokio::spawn(async { panic!("planted") });
                let _ = inside.await;
            }
            if ends {
                let _ = tokio::time::timeout(ENDS, running).await;
            } else {
                running.await;
            }
        });
        let ended = tokio::select! {
            biased;
            () = life.died() => false,
            () = life.stops() => {
                stop.cancel();
                let _ = tokio::time::timeout(ENDS, &mut running).await;
                false
            }
            _ = &mut running => true,
        };
        if ended && !life.is_dead() && !life.is_stopped() {
            front.note(seen(ENDED, front.at(), &name, &identity));
        }
        life.kill();
        if !running.is_finished() {
            running.abort();
            let _ = running.await;
        }
        // What it left behind in this process ends, too; the server hears nothing of it.
        stop.cancel();
        sleep(Duration::from_millis(unit.back_after.load(Ordering::Relaxed).max(100))).await;
    }
}

/// The component itself, as it is shipped.
async fn component(who: Who, ctx: Ctx, client: Client, front: Front, folder: PathBuf) {
    let cluster = Access::Client(client);
    let elected = |name: &str| {
        let options = lease::Options::new("kube-system", name);
        options.check(&options.lock(&*ctx.identity)).ok()
    };
    match who {
        Who::Scheduler(_) => {
            let lease = elected("loadline-scheduler");
            let options = scheduler::Options { lease, ..scheduler::Options::new(cluster) };
            let _ = scheduler::run(ctx, options).await;
        }
        Who::Agent(node) => {
            let node = format!("n{node}");
            let identity = ctx.identity.to_string();
            let host = Arc::new(NodeHost { front, node: node.clone(), identity });
            let journal = Some(folder.join(&node));
            let nodes = agent::Nodes::One(node);
            let options =
                agent::Options { every: LOOK, journal, ..agent::Options::new(cluster, nodes, host) };
            let _ = agent::run(ctx, options).await;
        }
        Who::Placement(_) => {
            let lease = elected("loadline-placement");
            let _ =
                placement::run(ctx, placement::Options { lease, ..placement::Options::new(cluster) }).await;
        }
        Who::Binding(_) => {
            let lease = elected("loadline-binding");
            let unpromised = front.has(Flaw::RoomUnpromised);
            let options = binding::Options {
                lease,
                scheduler: "loadline".to_owned(),
                // Nobody reports what runs there: room is kept for all of it.
                promise: if unpromised { Duration::ZERO } else { Duration::from_hours(1) },
                ..binding::Options::new(cluster)
            };
            let _ = binding::run(ctx, options).await;
        }
    }
}

/// Above 75 % of a node pods are slowed down, if they may be; above 90 % they have to go.
fn protection(slows: bool) -> [(&'static str, Value); 4] {
    let object = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let rule = |name: &str, percent: &str, action: &str| {
        json!({"name": name, "actionName": action, "strategy": "None", "avoidanceThreshold": 2, "restoreThreshold": 2,
            "metricRule": {"name": "cpu_total_utilization", "value": percent}})
    };
    let slow =
        json!({"coolDownSeconds": 10, "throttle": {"cpuThrottle": {"stepCPURatio": 60, "minCPURatio": 30}}});
    let evict = json!({"coolDownSeconds": 30, "eviction": {"terminationGracePeriodSeconds": 1}});
    let actions = if slows { json!(["slow-down", "evict"]) } else { json!(["evict"]) };
    let batch = json!({"labelSelector": {"matchLabels": {"tier": "batch"}}, "allowedActions": actions});
    let lines = json!({
        "selector": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]},
        "nodeQualityProbe": {"nodeLocalGet": {"localCacheTTLSeconds": 10}},
        "rules": [rule("busy", "75", "slow-down"), rule("full", "90", "evict")],
    });
    [
        ("avoidanceactions", object("AvoidanceAction", "slow-down", slow)),
        ("avoidanceactions", object("AvoidanceAction", "evict", evict)),
        ("podqoss", object("PodQOS", "batch", batch)),
        ("nodeqoss", object("NodeQOS", "lines", lines)),
    ]
}

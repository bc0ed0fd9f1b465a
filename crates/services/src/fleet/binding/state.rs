//! What is known of the fleet and its bindings, and what is to be decided next? Messages go in, attempts come out; nothing
//! waits here.

mod promises;

use super::explain::Decisions;
use super::metrics::{Incoming, Metrics};
use super::queue::Queue;
use super::turns::{Reach, Turns};
use super::watched::{Cluster, Message};
use crate::cluster::resource::{CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS};
use crate::cluster::{Event, Informer, Resource};
use crate::ctx::Now;
use crate::fleet::estimators::{self, Question, Said};
use jiff::{SignedDuration, Timestamp};
use loadline_api::estimator::{assumed_workload, pb};
use loadline_api::karmada::Scheduling;
use loadline_core::divide::due::{Due, due};
use loadline_core::divide::news::{News, concerns, news};
use loadline_core::divide::promised::{Alike, Before, Promised};
use loadline_core::divide::{self, Answer, Binding, Estimator, Given, Member, Previous};
use loadline_core::estimate::{Assumed, Component};
use loadline_core::object::{Key, Meta};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Who decides, and how.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Whose bindings are ours.
    pub scheduler: String,
    pub divide: divide::Options,
    /// Are estimators asked at all, and about clusters that fetch their work themselves?
    pub estimators: bool,
    pub pulling: bool,
    /// How long what was assigned is kept room for.
    pub promise: Duration,
    /// How long one that lacks room waits if nothing is heard of any.
    pub patience: Duration,
}

/// A binding that is there.
#[derive(Debug)]
pub(super) struct Known {
    pub of: Resource,
    pub meta: Meta,
    pub facts: Scheduling,
}

impl Alike for Known {
    fn is_alike(&self, other: &Self) -> bool {
        self.facts.asks == other.facts.asks
    }
}

/// The clusters, at one moment.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    /// By name.
    pub members: Vec<Member>,
    /// Those that fetch their work themselves.
    pub pulling: BTreeSet<Arc<str>>,
}

/// A binding about to be decided about.
#[derive(Debug)]
pub(super) struct Attempt {
    pub known: Arc<Known>,
    /// Why.
    pub due: Due,
    pub fleet: Arc<Fleet>,
    /// Where it may go.
    pub reach: Reach,
    /// Whose estimators are to be asked.
    pub asked: Vec<Arc<str>>,
    pub question: Question,
    pub began: Instant,
}

/// What was decided.
#[derive(Debug)]
pub(super) struct Decided {
    pub known: Arc<Known>,
    pub due: Due,
    pub answer: Arc<Answer>,
    pub said: Arc<[Said]>,
    pub began: Instant,
    /// To take back what was promised, should it not be written.
    pub before: Option<Before<Known>>,
}

/// What is next.
#[derive(Debug)]
pub(super) enum Step {
    /// A decision.
    Attempt(Box<Attempt>),
    /// It has to wait for somebody who is being decided about.
    Behind,
    /// Everything is as it should be; it may have to be told.
    Settled(Arc<Known>),
    /// It cannot be divided at all.
    Unreadable(Arc<Known>, String),
}

/// Everything.
#[derive(Debug)]
pub(super) struct State {
    settings: Settings,
    clusters: Informer<Option<Arc<Cluster>>>,
    bindings: Informer<Option<Arc<Known>>>,
    cluster_bindings: Informer<Option<Arc<Known>>>,
    /// As of the last message; made when it is needed.
    fleet: Option<Arc<Fleet>>,
    /// Clusters about which something is new, as they were and as they are.
    fresh: Vec<(News, Arc<Cluster>)>,
    pub queue: Queue,
    promised: Promised<Known>,
    /// What was promised before a write of which nobody knows whether it arrived.
    unsure: BTreeMap<Key, Before<Known>>,
    /// What is being written, and about which binding: promises go by it already.
    meant: BTreeMap<Key, (Arc<str>, Vec<Previous>)>,
    /// The same for what clusters say of themselves, as of the last division.
    assumed: BTreeMap<String, Vec<Assumed>>,
    pub decisions: Decisions,
    metrics: Metrics,
}

impl State {
    pub fn new(settings: Settings, metrics: Metrics) -> Self {
        Self {
            settings,
            clusters: Informer::new("clusters"),
            bindings: Informer::new("resourcebindings"),
            cluster_bindings: Informer::new("clusterresourcebindings"),
            fleet: None,
            fresh: Vec::new(),
            queue: Queue::default(),
            promised: Promised::default(),
            unsure: BTreeMap::new(),
            meant: BTreeMap::new(),
            assumed: BTreeMap::new(),
            decisions: Decisions::default(),
            metrics,
        }
    }

    /// Takes one message in.
    pub fn take(&mut self, message: Message, now: Now) {
        match message {
            Message::Cluster(event) => self.take_cluster(event, now.clock),
            Message::Binding(event) => self.take_binding(RESOURCE_BINDINGS, event, now.clock),
            Message::ClusterBinding(event) => {
                self.take_binding(CLUSTER_RESOURCE_BINDINGS, event, now.clock);
            }
            Message::Recovered(name) => {
                if let Some(cluster) = self.cluster(&name) {
                    self.fresh.push((News::Room, cluster));
                }
            }
        }
    }

    fn cluster(&self, name: &Arc<str>) -> Option<Arc<Cluster>> {
        self.clusters.store().get(&Key::new("", name.clone()))?.clone()
    }

    fn take_cluster(&mut self, event: Event<Box<Cluster>>, now: Timestamp) {
        let change = self.clusters.apply(event, now);
        for was in change.deleted.into_iter().filter_map(|(_, was)| was) {
            self.fleet = None;
            self.fresh.push((News::Changed, was));
        }
        let Some((meta, Some(mut is))) = change.applied else { return };
        self.share(&mut is.member);
        let is: Arc<Cluster> = is.into();
        let Some(held) = self.clusters.value_mut(&meta.key) else { return };
        let was = held.replace(is.clone());
        self.fleet = None;
        let found = news(was.as_deref().map(|was| &was.member), Some(&is.member));
        if found != News::Nothing {
            // Who it suited as it was may have to leave.
            self.fresh.extend(was.filter(|_| found == News::Changed).map(|was| (found, was)));
            self.fresh.push((found, is));
        }
    }

    /// Clusters of one version serve the same: what they serve is kept once.
    fn share(&self, member: &mut Member) {
        let known = self.clusters.store().iter().filter_map(|(_, _, one)| one.as_ref());
        if let Some(same) = known.map(|one| &one.member.apis).find(|apis| **apis == member.apis) {
            member.apis = same.clone();
        }
    }

    fn informer(&mut self, of: Resource) -> &mut Informer<Option<Arc<Known>>> {
        if of == RESOURCE_BINDINGS { &mut self.bindings } else { &mut self.cluster_bindings }
    }

    /// The binding of that name; those in no namespace are of the other kind.
    pub fn binding(&self, key: &Key) -> Option<&Arc<Known>> {
        let informer = if key.namespace.is_empty() { &self.cluster_bindings } else { &self.bindings };
        informer.store().get(key)?.as_ref()
    }

    fn take_binding(&mut self, of: Resource, event: Event<Box<Scheduling>>, now: Timestamp) {
        let change = self.informer(of).apply(event, now);
        for (meta, _) in change.deleted {
            self.queue.remove(&meta.key);
            self.decisions.forget(&meta.key);
            self.withdraw(&meta.key);
        }
        let Some((meta, Some(facts))) = change.applied else { return };
        let is = Arc::new(Known { of, meta, facts: *facts });
        let Some(held) = self.informer(of).value_mut(&is.meta.key) else { return };
        let was = held.replace(is.clone());
        self.discover(was.as_deref(), &is, now);
        self.reflect(was.as_deref(), &is);
        let (key, facts) = (&is.meta.key, &is.facts);
        if !self.is_ours(facts) || facts.deleting {
            self.queue.remove(key);
            return;
        }
        let incoming = match was.filter(|was| self.is_ours(&was.facts)) {
            None => Incoming::Added,
            Some(was) if was.facts.generation != facts.generation => Incoming::Updated,
            Some(_) => return,
        };
        self.metrics.incoming(incoming);
        self.queue.push(key, facts.priority);
    }

    /// Is it for us to decide?
    pub fn is_ours(&self, facts: &Scheduling) -> bool {
        facts.scheduler == self.settings.scheduler && facts.managed && !facts.suspended
    }

    /// Has everything been read?
    pub fn is_ready(&self) -> bool {
        self.clusters.is_listed() && self.bindings.is_listed() && self.cluster_bindings.is_listed()
    }

    /// The clock was set by so much.
    pub fn clock_set(&mut self, by: SignedDuration) {
        self.promised.shift(by);
        self.unsure.values_mut().for_each(|before| before.shift(by));
    }

    /// Works through what is new about clusters: who may be concerned is looked at again. Answers about those clusters
    /// may not hold any more; says which.
    pub fn settle(&mut self, now: Now) -> Vec<Arc<str>> {
        // Promises that were never kept hold no room for ever.
        let freed = self.promised.expire(now.clock);
        self.freed(&freed);
        let fresh = std::mem::take(&mut self.fresh);
        if fresh.is_empty() {
            return Vec::new();
        }
        let (changed, room): (Vec<_>, Vec<_>) = fresh.iter().partition(|(news, _)| *news == News::Changed);
        let stores = [&self.bindings, &self.cluster_bindings].map(Informer::store);
        if !changed.is_empty() && self.is_ready() {
            let concerned = stores.iter().flat_map(|store| store.iter()).filter_map(|(_, _, known)| {
                let known = known.as_ref()?;
                let ours = self.is_ours(&known.facts) && !known.facts.deleting;
                let concerned = || changed.iter().any(|(_, cluster)| matters(known, &cluster.member));
                (ours && concerned()).then(|| (known.meta.key.clone(), known.facts.priority))
            });
            for (key, priority) in concerned.collect::<Vec<_>>() {
                self.metrics.incoming(Incoming::ClusterChanged);
                self.queue.push(&key, priority);
            }
        }
        if !room.is_empty() {
            let informers = (&self.bindings, &self.cluster_bindings);
            let helps = |key: &Key| {
                let informer = if key.namespace.is_empty() { informers.1 } else { informers.0 };
                let known = informer.store().get(key).and_then(Option::as_ref);
                known.is_some_and(|known| room.iter().any(|(_, cluster)| matters(known, &cluster.member)))
            };
            self.queue.room(helps, now.at);
        }
        fresh.iter().map(|(_, cluster)| cluster.member.name.clone()).collect()
    }

    /// The clusters that are there.
    pub fn fleet(&mut self) -> Arc<Fleet> {
        let clusters = &self.clusters;
        let fleet = self.fleet.get_or_insert_with(|| {
            let all = || clusters.store().iter().filter_map(|(_, _, cluster)| cluster.as_ref());
            let pulling = all().filter(|cluster| cluster.pulls).map(|cluster| cluster.member.name.clone());
            Arc::new(Fleet {
                pulling: pulling.collect(),
                members: all().map(|cluster| cluster.member.clone()).collect(),
            })
        });
        fleet.clone()
    }

    /// Whose turn it is, and what is to be done about it. `None` if nobody waits.
    pub fn next(&mut self, turns: &mut Turns, now: Now) -> Option<Step> {
        loop {
            let key = self.queue.pop(now.at)?;
            let Some(known) = self.binding(&key).cloned() else {
                self.queue.remove(&key);
                continue;
            };
            let binding = match &known.facts.binding {
                Ok(binding) if binding.placement.is_some() => binding,
                Ok(_) => return Some(Step::Unreadable(known, "the binding has no placement".into())),
                Err(error) => {
                    let problems = error.problems.iter().map(ToString::to_string).collect::<Vec<_>>();
                    return Some(Step::Unreadable(known, problems.join("; ")));
                }
            };
            let fleet = self.fleet();
            let Some(due) = self.is_due(&known, &fleet) else { return Some(Step::Settled(known)) };
            let reach = self.reach(turns, &known, binding, &fleet);
            if turns.has_to_wait(&known, &fleet, &reach) {
                return Some(Step::Behind);
            }
            let asked = self.asked(&fleet, binding, &reach);
            let assumed = self.as_if_not_written(&key, |state| {
                let assumed = asked.iter().filter_map(|cluster| {
                    let coming = state.promised.to(cluster);
                    let promised: Vec<_> = coming.map(|(of, count)| wire(of, count)).collect();
                    (!promised.is_empty()).then(|| (cluster.clone(), promised))
                });
                assumed.collect()
            });
            let question =
                Question { about: binding.resource.clone(), asks: known.facts.asks.clone(), assumed };
            let began = now.at;
            let attempt = Attempt { known, due, fleet, reach, asked, question, began };
            return Some(Step::Attempt(Box::new(attempt)));
        }
    }

    /// Why it is to be divided, if it is.
    #[expect(clippy::unused_self, reason = "it is a question to what is known")]
    pub fn is_due(&self, known: &Known, fleet: &Fleet) -> Option<Due> {
        let binding = known.facts.binding.as_ref().ok()?;
        let leaving = |name: &str| fleet.members.iter().any(|m| m.deleting && *m.name == *name);
        due(binding, &known.facts.applied, leaving)
    }

    /// Where a binding may go and count on room, or take some. Where no estimator is asked, nobody waits for one, and it does
    /// not matter.
    fn reach(&self, turns: &Turns, known: &Arc<Known>, binding: &Binding, fleet: &Arc<Fleet>) -> Reach {
        if !self.settings.estimators || !(binding.is_workload() || divide::counts(binding)) {
            return Reach::default();
        }
        let find = || divide::reach(&fleet.members, binding, self.settings.divide).into();
        turns.reach(known, fleet).unwrap_or_else(find)
    }

    /// Whose estimators are to be asked.
    fn asked(&self, fleet: &Fleet, binding: &Binding, reach: &Reach) -> Vec<Arc<str>> {
        if !divide::counts(binding) {
            return Vec::new();
        }
        let may = |name: &&Arc<str>| self.settings.pulling || !fleet.pulling.contains(*name);
        reach.iter().filter(may).cloned().collect()
    }

    /// Decides, now that estimators have said what they say. `None` if the binding changed meanwhile: then it is looked at
    /// again.
    pub fn decide(&mut self, attempt: Attempt, said: Vec<Said>, now: Timestamp) -> Option<Decided> {
        let Attempt { known, due, fleet, began, .. } = attempt;
        let key = &known.meta.key;
        let current = self.binding(key).filter(|current| {
            current.meta.uid == known.meta.uid && current.facts.generation == known.facts.generation
        });
        let Some(known) = current.cloned() else {
            self.queue.done(key);
            return None;
        };
        let Ok(binding) = &known.facts.binding else {
            self.queue.done(key);
            return None;
        };
        let answer = self.as_if_not_written(key, |state| state.divide(&fleet.members, binding, &said));
        // What fits nowhere leaves where it is.
        let placed = matches!(answer.failure, None | Some(divide::Failure::NoFit { .. }));
        let before = (binding.is_workload() && placed).then(|| self.promise(&known, binding, &answer, now));
        let (answer, said) = (Arc::new(answer), said.into());
        Some(Decided { known, due, answer, said, began, before })
    }

    /// What would be decided, going by what estimators said.
    pub fn divide(&mut self, members: &[Member], binding: &Binding, said: &[Said]) -> Answer {
        self.given(said, |given| divide::divide(members, binding, given))
    }

    /// What would change that, in words.
    pub fn counterfactuals(
        &mut self,
        members: &[Member],
        binding: &Binding,
        said: &[Said],
        answer: &Answer,
    ) -> Vec<String> {
        let all = self.given(said, |given| divide::counterfactuals(members, binding, given, answer));
        all.iter().map(ToString::to_string).collect()
    }

    /// Under which circumstances is divided, going by what estimators said.
    fn given<T>(&mut self, said: &[Said], ask: impl FnOnce(&Given<'_>) -> T) -> T {
        let opinions = said.iter().map(|one| (one.cluster.to_string(), one.opinion.clone())).collect();
        let estimators = [Estimator { name: estimators::NAME.into(), opinions }];
        for cluster in self.promised.changed() {
            let coming = self.promised.to(&cluster);
            let coming: Vec<_> = coming.filter_map(|(of, count)| assumed(of, count)).collect();
            if coming.is_empty() {
                self.assumed.remove(&*cluster);
            } else {
                self.assumed.insert(cluster.to_string(), coming);
            }
        }
        let given = Given {
            estimators: if said.is_empty() { &[] } else { &estimators },
            assumed: Cow::Borrowed(&self.assumed),
            options: self.settings.divide,
            ..Given::default()
        };
        ask(&given)
    }

    /// What was written, as the server has it now.
    pub fn wrote(&mut self, of: Resource, meta: Meta, facts: Scheduling) {
        let change = self.informer(of).wrote::<Box<Scheduling>>(meta, Ok(Box::new(facts)));
        let Some((meta, Some(facts))) = change.applied else { return };
        let key = meta.key.clone();
        if let Some(held) = self.informer(of).value_mut(&key) {
            *held = Some(Arc::new(Known { of, meta, facts: *facts }));
        }
    }

    pub fn patience(&self) -> Duration {
        self.settings.patience
    }

    /// Bindings that are ours, in order.
    pub fn ours(&self) -> impl Iterator<Item = &Arc<Known>> {
        self.all().filter(|known| self.is_ours(&known.facts))
    }

    /// All bindings, whoever decides about them, in order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Known>> {
        let all = self.bindings.store().iter().chain(self.cluster_bindings.store().iter());
        all.filter_map(|(_, _, known)| known.as_ref())
    }

    /// How many there are of each kind, and what is wrong with reading it.
    pub fn kinds(&self) -> [(&'static str, usize, Option<&str>); 3] {
        fn row<T>(of: &Informer<T>) -> (&'static str, usize, Option<&str>) {
            (of.name(), of.count(), of.trouble().map(|(what, _)| what.as_str()))
        }
        [row(&self.clusters), row(&self.bindings), row(&self.cluster_bindings)]
    }

    /// What keeps objects from being read, by kind.
    pub fn troubles(&self) -> Vec<String> {
        let clusters = (self.clusters.name(), self.clusters.trouble());
        let rest = [&self.bindings, &self.cluster_bindings].map(|kind| (kind.name(), kind.trouble()));
        let all = std::iter::once(clusters).chain(rest);
        all.filter_map(|(name, trouble)| Some(format!("{name}: {}", trouble?.0))).collect()
    }

    /// Clusters, bindings, promises.
    pub fn counts(&self) -> [(&'static str, usize); 3] {
        [
            ("clusters", self.clusters.count()),
            ("bindings", self.bindings.count() + self.cluster_bindings.count()),
            ("promises", self.promised.len()),
        ]
    }
}

fn matters(known: &Known, member: &Member) -> bool {
    known.facts.binding.as_ref().is_ok_and(|binding| concerns(binding, member))
}

/// Something on its way to a cluster, for what a cluster says of itself.
fn assumed(known: &Known, count: i32) -> Option<Assumed> {
    let binding = known.facts.binding.as_ref().ok()?;
    let components = if binding.components.is_empty() {
        let (name, ask) = (binding.resource.key.name.to_string(), binding.ask.clone().unwrap_or_default());
        vec![Component { name, replicas: count, ask }]
    } else {
        let times =
            |part: &Component| Component { replicas: part.replicas.saturating_mul(count), ..part.clone() };
        binding.components.iter().map(times).collect()
    };
    Some(Assumed { namespace: known.facts.asks.namespace.clone(), workload: None, components })
}

/// The same for estimators. Which workload it is stays unsaid: only what is not there yet is told, and an estimator that
/// knows the workload would take off what is.
fn wire(known: &Known, count: i32) -> pb::AssumedWorkload {
    let asks = &known.facts.asks;
    let components = if asks.components.is_empty() {
        let name = known.facts.binding.as_ref().map(|b| b.resource.key.name.to_string()).unwrap_or_default();
        vec![asks.replica.clone().unwrap_or_default().component(&name, count)]
    } else {
        let times = |(name, each, replica): &(String, i32, loadline_api::estimator::Replica)| {
            replica.component(name, each.saturating_mul(count))
        };
        asks.components.iter().map(times).collect()
    };
    assumed_workload(&asks.namespace, None, components)
}

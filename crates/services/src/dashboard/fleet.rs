//! What does a fleet look like to somebody who looks? Clusters, placements and bindings, as the hub has them, and why.
//!
//! Nothing is read before somebody asks. Then the hub is asked once which kinds it has: what is not there is said, and looked
//! for again now and then; what is there is watched as the controllers of [`crate::fleet`] watch it.

mod shown;

use crate::ask;
use crate::cluster::{Access, Connection};
use crate::ctx::{Ctx, Now};
use crate::fleet::{binding, placement};
use loadline_core::object::Key;
use loadline_core::place;
use serde_json::Value;
use shown::{Api, Shown};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How soon kinds that were not there are looked for again.
const AGAIN: Duration = Duration::from_secs(30);
/// How long the hub may take to say which kinds it has.
const PATIENCE: Duration = Duration::from_secs(5);
/// The groups of placements and of bindings.
const OCM: &str = "cluster.open-cluster-management.io";
const KARMADA: &str = "work.karmada.io";

/// Which hub is looked at.
#[derive(Debug)]
pub struct Options {
    pub hub: Access,
}

/// What somebody wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Everything at a glance.
    Fleet,
    /// Why a placement gets whom it gets.
    Placement(Key),
    /// Why a binding has the clusters it has; those in no namespace are `ClusterResourceBinding`s.
    Binding(Key),
}

/// Where a running one is asked; nothing is answered about what does not exist.
pub type Asker = ask::Asker<Subject, Option<Value>>;

/// Where it hears of that.
pub type Asked = ask::Asked<Subject, Option<Value>>;

/// Looks on, and answers, until told to stop.
///
/// # Errors
/// When the hub cannot be reached at all: a kubeconfig that cannot be read. A server that is away is waited for.
pub async fn run(ctx: Ctx, options: Options, mut asked: Asked) -> Result<(), super::Error> {
    let mut waiting = Vec::new();
    tokio::select! {
        () = ctx.stop.cancelled() => return Ok(()),
        question = asked.next() => waiting.push(question),
    }
    let (client, _) = options.hub.connect().await.map_err(super::Error)?;
    let mut looks = Looks {
        connection: Connection::new(client.clone()).named("loadline-dashboard"),
        hub: options.hub,
        client,
        found: None,
        problem: None,
        placements: None,
        bindings: None,
    };
    loop {
        if !waiting.is_empty() {
            looks.find().await;
        }
        if looks.is_settled() {
            let now = Now::read();
            for question in waiting.drain(..) {
                let answer = looks.answer(&question.about, now);
                question.answer(answer);
            }
        }
        tokio::select! {
            () = ctx.stop.cancelled() => return Ok(()),
            () = follow_placements(looks.placements.as_mut()) => {}
            () = follow_bindings(looks.bindings.as_mut()) => {}
            question = asked.next() => waiting.push(question),
        }
    }
}

async fn follow_placements(onlooker: Option<&mut placement::Onlooker>) {
    match onlooker {
        Some(onlooker) => onlooker.follow().await,
        None => std::future::pending().await,
    }
}

async fn follow_bindings(onlooker: Option<&mut binding::Onlooker>) {
    match onlooker {
        Some(onlooker) => onlooker.follow().await,
        None => std::future::pending().await,
    }
}

/// What is looked at.
struct Looks {
    connection: Connection,
    hub: Access,
    client: kube::Client,
    /// When the hub was last asked which kinds it has.
    found: Option<Instant>,
    /// Why that is not known.
    problem: Option<String>,
    placements: Option<placement::Onlooker>,
    bindings: Option<binding::Onlooker>,
}

impl Looks {
    /// Begins to look at what is there.
    async fn find(&mut self) {
        let complete = self.placements.is_some() && self.bindings.is_some();
        if complete || self.found.is_some_and(|at| at.elapsed() < AGAIN) {
            return;
        }
        self.found = Some(Instant::now());
        let groups = match timeout(PATIENCE, self.client.list_api_groups()).await {
            Ok(Ok(list)) => list.groups.into_iter().map(|group| group.name).collect::<BTreeSet<String>>(),
            Ok(Err(error)) => {
                self.problem = Some(format!("which kinds the hub has is not known: {error}"));
                return;
            }
            Err(_) => {
                self.problem = Some("which kinds the hub has is not known: it does not answer".to_owned());
                return;
            }
        };
        self.problem = None;
        if groups.contains(OCM) && self.placements.is_none() {
            self.placements = Some(placement::Onlooker::new(&self.connection, place::Options::default()));
        }
        if groups.contains(KARMADA) && self.bindings.is_none() {
            self.bindings = Some(binding::Onlooker::new(&self.connection, self.hub.clone()));
        }
    }

    /// Has everything that is there been read, or something been said about why not?
    fn is_settled(&self) -> bool {
        self.placements.as_ref().is_none_or(placement::Onlooker::is_settled)
            && self.bindings.as_ref().is_none_or(binding::Onlooker::is_settled)
    }

    fn answer(&mut self, subject: &Subject, now: Now) -> Option<Value> {
        match subject {
            Subject::Fleet => self.shown(now),
            Subject::Placement(key) => self.placements.as_mut()?.explain(key, now.clock),
            Subject::Binding(key) => self.bindings.as_mut()?.explain(key, now),
        }
    }

    fn shown(&mut self, now: Now) -> Option<Value> {
        let mut shown = Shown::new(now.clock, self.problem.clone());
        shown.apis.push(Api::new(
            "Open Cluster Management",
            OCM,
            self.placements.as_ref().map(|one| one.kinds().to_vec()),
        ));
        shown.apis.push(Api::new("Karmada", KARMADA, self.bindings.as_ref().map(|one| one.kinds().to_vec())));
        if let Some(onlooker) = &self.placements {
            for cluster in onlooker.clusters() {
                shown.managed(cluster, now.clock);
            }
            shown.placements(&onlooker.placements());
        }
        if let Some(onlooker) = &mut self.bindings {
            for cluster in onlooker.clusters() {
                shown.member(&cluster);
            }
            shown.bindings(onlooker.bindings());
        }
        serde_json::to_value(shown).ok()
    }
}

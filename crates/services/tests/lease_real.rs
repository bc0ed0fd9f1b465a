//! Ours beside an unmodified kube-scheduler, for one Lease in a real kube-apiserver.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_core::lease::Settings;
use loadline_services::cluster::lease::{Election, Leadership, Options, Role, RoleChange, identity};
use loadline_services::cluster::{Access, Connection};
use loadline_testkit::http::Events;
use loadline_testkit::{ControlPlane, Running, parts};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(4);

/// Short enough to wait for, long enough for a busy machine. Both sides have the same.
const SETTINGS: Settings = Settings {
    lease_duration: Duration::from_secs(8),
    renew_deadline: Duration::from_secs(6),
    retry_period: Duration::from_secs(1),
};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

static PLANE: LazyLock<Option<ControlPlane>> = LazyLock::new(ControlPlane::start_or_skip);

/// A Lease of its own, and what stands for it.
struct Stage {
    plane: &'static ControlPlane,
    program: PathBuf,
    runtime: Runtime,
    name: &'static str,
}

/// Our side.
struct Ours {
    leadership: Leadership,
    identity: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
    changes: Receiver<RoleChange>,
}

impl Stage {
    fn start_or_skip(name: &'static str) -> Option<Self> {
        let program = parts::find_or_skip("kube-scheduler")?;
        Some(Self { plane: PLANE.as_ref()?, program, runtime: Runtime::new().unwrap(), name })
    }

    fn path(&self) -> String {
        format!("{LEASES}/{}", self.name)
    }

    fn lease(&self) -> Value {
        self.plane.get(&self.path()).unwrap()
    }

    /// Every record from now on, beginning with the one that is there.
    fn records(&self) -> Records {
        let path = format!("{LEASES}?watch=1&fieldSelector=metadata.name%3D{}", self.name);
        Records(self.plane.watch(&path, PATIENCE).unwrap())
    }

    /// The first record, from now on, that is as wanted.
    #[track_caller]
    fn record(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.records().find(what, wanted)
    }

    fn held_by_another_than(&self, ours: &Ours) -> Value {
        self.record("kube-scheduler to lead", |spec| {
            spec["holderIdentity"] != "" && spec["holderIdentity"] != ours.identity.as_str()
        })
    }

    fn ours(&self) -> Ours {
        let access = Access::Kubeconfig(self.plane.kubeconfig());
        let (client, _) = self.runtime.block_on(access.connect()).unwrap();
        let options = Options { settings: SETTINGS, ..Options::new("default", self.name) };
        let identity = identity().unwrap();
        let checked = options.check(&options.lock(identity.as_str())).unwrap();
        let (election, leadership) = Election::new(&Connection::new(client), checked, 1);
        let (stop, (sender, changes)) = (CancellationToken::new(), mpsc::channel());
        let tell = move |change| drop(sender.send(change));
        let task = self.runtime.spawn(election.run(stop.clone(), tell));
        Ours { leadership, identity, stop, task, changes }
    }

    #[track_caller]
    fn wait(&self, what: &str, happens: impl Future<Output = ()>) {
        let in_time = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, happens).await });
        assert!(in_time.is_ok(), "waited for {what}: {}", self.lease());
    }

    #[track_caller]
    fn leads(&self, ours: &Ours) {
        self.wait("ours to lead", ours.leadership.acquired());
        assert!(ours.leadership.may_write());
    }

    fn release(&self, ours: Ours) {
        ours.stop.cancel();
        self.wait("ours to end", async { ours.task.await.unwrap() });
    }

    /// Theirs.
    fn scheduler(&self) -> Running {
        let file = |flag: &str, name: &str| format!("--{flag}={}", self.plane.folder().join(name).display());
        let span = |flag: &str, span: Duration| format!("--leader-elect-{flag}={}s", span.as_secs());
        Running::start("kube-scheduler", &self.program, |port| {
            vec![
                "--bind-address=127.0.0.1".into(),
                format!("--secure-port={port}"),
                file("tls-cert-file", "serving.crt"),
                file("tls-private-key-file", "serving.key"),
                file("kubeconfig", "kubeconfig"),
                file("authentication-kubeconfig", "kubeconfig"),
                file("authorization-kubeconfig", "kubeconfig"),
                "--leader-elect=true".into(),
                "--leader-elect-resource-lock=leases".into(),
                "--leader-elect-resource-namespace=default".into(),
                format!("--leader-elect-resource-name={}", self.name),
                span("lease-duration", SETTINGS.lease_duration),
                span("renew-deadline", SETTINGS.renew_deadline),
                span("retry-period", SETTINGS.retry_period),
            ]
        })
        .unwrap()
    }

    /// Theirs, once it stands for election.
    fn waiting_scheduler(&self) -> Running {
        let scheduler = self.scheduler();
        scheduler
            .wait_until(|said| said.to_lowercase().contains("attempting to acquire leader lease"))
            .unwrap();
        scheduler
    }
}

struct Records(Events);

impl Records {
    #[track_caller]
    fn find(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut specs = self.0.by_ref().map(|event| {
            event.unwrap_or_else(|error| panic!("waited for {what}: {error}"))["object"]["spec"].take()
        });
        specs.find(wanted).unwrap_or_else(|| panic!("waited for {what}"))
    }
}

/// Ends a server as the kubelet does: it may tidy up.
fn terminate(server: &Running) {
    let pid = server.pid().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
}

fn transitions(spec: &Value) -> i64 {
    spec["leaseTransitions"].as_i64().unwrap()
}

/// What can be compared of two records: which fields there are, and the form of each.
fn form(spec: &Value) -> BTreeMap<String, String> {
    let digits = |text: &str| text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let form = |name: &str, value: &Value| match (name, value.as_str()) {
        ("acquireTime" | "renewTime", Some(time)) => digits(time),
        // The host and a UUID.
        ("holderIdentity", Some(holder)) => match holder.rsplit_once('_') {
            Some((host, uuid)) => format!("{host}_{:?}", uuid.split('-').map(str::len).collect::<Vec<_>>()),
            None => holder.to_owned(),
        },
        _ => value.to_string(),
    };
    spec.as_object().unwrap().iter().map(|(name, value)| (name.clone(), form(name, value))).collect()
}

#[test]
fn records_are_those_of_client_go_field_by_field() {
    let Some(stage) = Stage::start_or_skip("records") else { return };
    // Ours, from the first record to the released one.
    let mut records = stage.records();
    let ours = stage.ours();
    let made = records.find("the first", |_| true);
    let kept = records.find("a renewal", |spec| spec["renewTime"] != made["renewTime"]);
    let change = ours.changes.recv().unwrap();
    stage.release(ours);
    let lease = stage.lease();
    let freed = lease["spec"].clone();
    stage.plane.delete(&stage.path()).unwrap();
    // Theirs, the same way.
    let mut records = stage.records();
    let scheduler = stage.scheduler();
    let their_made = records.find("their first", |_| true);
    let their_kept = records.find("their renewal", |spec| spec["renewTime"] != their_made["renewTime"]);
    let their_note = note(&stage, their_made["holderIdentity"].as_str().unwrap());
    terminate(&scheduler);
    let their_freed = records.find("their release", |spec| spec["holderIdentity"] == "");
    for (ours, theirs) in [(&made, &their_made), (&kept, &their_kept), (&freed, &their_freed)] {
        assert_eq!(form(ours), form(theirs));
    }
    // What the forms do not show.
    for (made, kept, freed) in [(&made, &kept, &freed), (&their_made, &their_kept, &their_freed)] {
        assert_eq!(made["acquireTime"], made["renewTime"], "{made}");
        assert_eq!(kept["acquireTime"], made["acquireTime"], "{kept}");
        assert_eq!(freed["acquireTime"], freed["renewTime"], "{freed}");
        assert!(freed["renewTime"].as_str() > kept["renewTime"].as_str(), "{freed}");
        assert_eq!((&freed["leaseDurationSeconds"], transitions(freed)), (&json!(1), 0));
    }
    let fields = |lease: &Value| lease["metadata"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&lease), fields(&stage.lease()));
    // And what is told.
    let our_note = change.happened().note.replace(&change.identity, "X");
    assert_eq!(
        (change.role, change.happened().reason, our_note.as_str()),
        (Role::Leader, "LeaderElection", "X became leader")
    );
    assert_eq!(their_note, "X became leader");
}

/// What kube-scheduler tells when it leads.
fn note(stage: &Stage, holder: &str) -> String {
    let path = "/api/v1/namespaces/default/events?watch=1&fieldSelector=reason%3DLeaderElection";
    let mut events = stage.plane.watch(path, PATIENCE).unwrap();
    let found = events.find_map(|event| {
        let message = event.unwrap()["object"]["message"].as_str().unwrap().to_owned();
        message.contains(holder).then(|| message.replace(holder, "X"))
    });
    found.unwrap()
}

#[test]
fn who_lets_go_is_followed_by_the_other() {
    let Some(stage) = Stage::start_or_skip("letting-go") else { return };
    let ours = stage.ours();
    stage.leads(&ours);
    let scheduler = stage.waiting_scheduler();
    stage.record("our renewals", |spec| spec["holderIdentity"] == ours.identity.as_str());
    let leadership = ours.leadership.clone();
    let mine = ours.identity.clone();
    stage.release(ours);
    assert!(!leadership.may_write());
    let taken = stage.record("kube-scheduler to lead", |spec| spec["holderIdentity"] != "");
    assert_ne!(taken["holderIdentity"], mine.as_str());
    assert_eq!(transitions(&taken), 1);
    // And back: as long as it renews, ours waits.
    let ours = stage.ours();
    let first = stage.record("a record", |_| true)["renewTime"].clone();
    let second = stage.record("their renewal", |spec| spec["renewTime"] != first)["renewTime"].clone();
    stage.record("another", |spec| spec["renewTime"] != first && spec["renewTime"] != second);
    assert!(!ours.leadership.may_write());
    terminate(&scheduler);
    stage.leads(&ours);
    let back = stage.lease()["spec"].take();
    assert_eq!((back["holderIdentity"].as_str(), transitions(&back)), (Some(ours.identity.as_str()), 2));
}

#[test]
fn who_dies_is_followed_by_the_other_when_the_lease_has_run_out() {
    let Some(stage) = Stage::start_or_skip("dying") else { return };
    let scheduler = stage.scheduler();
    let theirs = stage.record("kube-scheduler to lead", |spec| spec["holderIdentity"] != "");
    let ours = stage.ours();
    let renewed = stage.record("their renewal", |spec| spec["renewTime"] != theirs["renewTime"]);
    assert_eq!(renewed["holderIdentity"], theirs["holderIdentity"]);
    assert!(!ours.leadership.may_write());
    // Killed: it cannot let go.
    drop(scheduler);
    assert_eq!(stage.lease()["spec"]["holderIdentity"], theirs["holderIdentity"]);
    stage.leads(&ours);
    assert_eq!(transitions(&stage.lease()["spec"]), 1);
    // And the other way round.
    let _scheduler = stage.waiting_scheduler();
    ours.task.abort();
    stage.wait("ours to have lost it", ours.leadership.lost());
    assert_eq!(stage.lease()["spec"]["holderIdentity"], ours.identity.as_str());
    let taken = stage.held_by_another_than(&ours);
    assert_eq!(transitions(&taken), 2);
}

#[test]
fn a_deleted_lease_is_made_again_by_a_leader_that_stopped_before() {
    let Some(stage) = Stage::start_or_skip("deleted") else { return };
    let ours = stage.ours();
    stage.leads(&ours);
    let uid = stage.lease()["metadata"]["uid"].clone();
    stage.plane.delete(&stage.path()).unwrap();
    let roles: Vec<Role> = (0..3).map(|_| ours.changes.recv_timeout(PATIENCE).unwrap().role).collect();
    assert_eq!(roles, [Role::Leader, Role::Candidate, Role::Leader]);
    assert_ne!(stage.lease()["metadata"]["uid"], uid);
}

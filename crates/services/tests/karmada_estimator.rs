//! Our estimator and Karmada's own, side by side on one real API server: the same questions, the same answers.
//!
//! Where the two differ it is on purpose, and listed: see `interop/listed.rs` and `docs/estimator-differences.md`.

mod interop {
    pub mod ask;
    pub mod listed;
    pub mod ours;
    pub mod quotas;
    pub mod requests;
    pub mod waiting;
    pub mod world;
}

use interop::ask::Asker;
use interop::listed::{DIFFERENCES, Said, Stage, said};
use interop::ours::Ours;
use interop::requests::{self, Form};
use interop::{quotas, waiting, world};
use loadline_api::estimator::{Replica, assumed_workload, pb, replicas_request, sets_request};
use loadline_services::estimator::server::Options;
use loadline_testkit::karmada::{self, Channel, Version};
use loadline_testkit::{ControlPlane, Running};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tonic::Code;

/// Everything here follows from it.
const SEED: u64 = 5;

/// Karmada's estimators and ours, on one API server.
struct Trio {
    ours: Asker,
    old: Asker,
    new: Asker,
    _processes: (Ours, Running, Running),
}

impl Trio {
    /// Starts all three on a cluster that does not change any more. All mind quotas or none does; the newer one of
    /// theirs keeps room for what is on its way.
    fn start(plane: &ControlPlane, quotas: bool) -> Self {
        let start = |version, gates: &str| {
            let (config, gates) = (plane.kubeconfig(), format!("--feature-gates={gates}"));
            let running = karmada::estimator(version, &config, "member", &Channel::Plain, &[&gates]);
            let running = running.expect("it starts");
            karmada::settle(&running, plane).expect("it has counted everything");
            running
        };
        let old = start(Version::V1_17, &format!("ResourceQuotaEstimate={quotas}"));
        let new = start(
            Version::V1_18,
            &format!("ResourceQuotaEstimate={quotas},SchedulingOvercommitProtection=true"),
        );
        let ours = Ours::start(&[("member", plane)], None, Options { quotas, ..Options::default() });
        Self {
            ours: Asker::new(ours.port()),
            old: Asker::new(old.port()),
            new: Asker::new(new.port()),
            _processes: (ours, old, new),
        }
    }
}

/// Which differences a run found, and what was asked.
#[derive(Default)]
struct Tally {
    asked: usize,
    /// With a figure: two that fail alike have compared little.
    answered: usize,
    zero: usize,
    unlike: Vec<String>,
}

impl Tally {
    fn note(&mut self, ours: Said, theirs: &[(&str, Said)], question: impl Fn() -> String) {
        self.asked += 1;
        self.answered += usize::from(ours.is_ok());
        self.zero += usize::from(ours == Ok(0));
        if theirs.iter().any(|(_, said)| *said != ours) {
            self.unlike.push(format!("ours {ours:?}, {theirs:?}: {}", question()));
        }
    }

    /// So many answers at least must have been compared.
    fn end(self, what: &str, least: usize) {
        assert!(self.asked >= least, "{} answers about {what} only", self.asked);
        let shown: Vec<_> = self.unlike.iter().take(10).map(String::as_str).collect();
        assert!(
            self.unlike.is_empty(),
            "{} of {} answers about {what} (seed {SEED}) differ:\n{}",
            self.unlike.len(),
            self.asked,
            shown.join("\n")
        );
        assert!(
            self.answered * 10 >= self.asked * 9,
            "{} of {} answers about {what}",
            self.answered,
            self.asked
        );
        // Questions that nothing can be said to compare nothing.
        assert!(self.zero * 3 < self.asked * 2, "{} of {} answers about {what} are 0", self.zero, self.asked);
    }
}

#[test]
fn ours_and_theirs_answer_the_same_questions_alike() {
    let Some(plane) = karmada::plane_or_skip() else { return };
    world::build(&plane, SEED);
    waiting::build(&plane);
    let trio = Trio::start(&plane, false);
    replicas(&trio);
    replicas_beside_assumed(&trio);
    sets(&trio);
    unschedulable(&trio);
}

// What binds in the rows about quotas is what the two count differently; here it is everything else.
#[test]
fn ours_and_theirs_mind_quotas_alike() {
    let Some(plane) = karmada::plane_or_skip() else { return };
    quotas::build(&plane, SEED);
    let trio = Trio::start(&plane, true);
    let mut rng = StdRng::seed_from_u64(SEED + 3);
    let (mut tally, mut bound) = (Tally::default(), [0; 3]);
    for number in 0..600 {
        let replica = quotas::replica(&mut rng);
        // Every third beside a workload that is on its way to the same namespace, which 1.17 does not know of.
        let beside = number % 3 == 0;
        let coming = || vec![replica.component("coming", 3)];
        let assumed: Vec<_> =
            beside.then(|| assumed_workload(&replica.namespace, None, coming())).into_iter().collect();
        let request = replicas_request("member", Some(&replica), &assumed);
        let ours = said(trio.ours.replicas(request.clone()));
        let mut theirs = vec![("1.18", said(trio.new.replicas(request.clone())))];
        if !beside {
            theirs.push(("1.17", said(trio.old.replicas(request))));
        }
        let unbound = Replica { namespace: quotas::FREE.into(), ..replica.clone() };
        let unbound = said(trio.ours.replicas(replicas_request("member", Some(&unbound), &[])));
        bound[usize::from(beside)] += usize::from(ours != unbound);
        tally.note(ours, &theirs, || format!("request {number}: {replica:?} beside {assumed:?}"));
    }
    for number in 0..200 {
        let (namespace, components) = quotas::set(&mut rng);
        let request = sets_request("member", &namespace, &components, &[]);
        let ours = said(trio.ours.sets(request.clone()));
        let theirs = [("1.18", said(trio.new.sets(request.clone()))), ("1.17", said(trio.old.sets(request)))];
        let unbound = said(trio.ours.sets(sets_request("member", quotas::FREE, &components, &[])));
        bound[2] += usize::from(ours != unbound);
        tally.note(ours, &theirs, || format!("set {number} in {namespace}: {components:?}"));
    }
    println!("{} questions, bound by a quota: {bound:?}", tally.asked);
    assert!(bound[0] > 200 && bound[1] > 100 && bound[2] > 100, "quotas bound {bound:?} answers only");
    tally.end("quotas", 800);
}

#[test]
fn what_differs_is_listed_and_still_differs() {
    let Some(plane) = karmada::plane_or_skip() else { return };
    for difference in &DIFFERENCES {
        (difference.prepare)(&plane);
    }
    let trio = Trio::start(&plane, true);
    for difference in &DIFFERENCES {
        (difference.show)(&Stage { ours: &trio.ours, old: &trio.old, new: &trio.new });
    }
}

#[test]
fn the_document_lists_what_is_shown() {
    let text = include_str!("../../../docs/estimator-differences.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let listed: Vec<&str> = rows.map(|(name, _)| name).collect();
    let shown: Vec<&str> = DIFFERENCES.iter().map(|difference| difference.name).collect();
    assert_eq!(listed, shown);
}

/// The same thousand requests to all three, in all forms.
fn replicas(trio: &Trio) {
    let mut rng = StdRng::seed_from_u64(SEED);
    let mut tally = Tally::default();
    for number in 0..1000 {
        let replica = requests::replica(&mut rng);
        let form = Form::ALL[number % Form::ALL.len()];
        let ask = |replica: Option<&Replica>| replicas_request("member", replica, &[]);
        let ours = said(trio.ours.replicas(form.of_replicas(ask(replica.as_ref()))));
        // Listed as `negative`.
        if replica.as_ref().is_some_and(requests::is_negative) {
            assert_eq!(ours, Err(Code::InvalidArgument), "{replica:?}");
            continue;
        }
        // Listed as `huge`.
        let held = replica.as_ref().and_then(requests::held).or_else(|| replica.clone());
        let both = ask(held.as_ref());
        // 1.17 does not know the new form.
        let old = if form == Form::New { both.clone() } else { form.of_replicas(both.clone()) };
        let theirs = [
            ("1.17", said(trio.old.replicas(old))),
            ("1.18", said(trio.new.replicas(form.of_replicas(both)))),
        ];
        tally.note(ours, &theirs, || format!("request {number}, {form:?}: {replica:?}"));
    }
    tally.end("replicas", 800);
}

/// With workloads on their way, which 1.17 does not know of.
fn replicas_beside_assumed(trio: &Trio) {
    let mut rng = StdRng::seed_from_u64(SEED + 1);
    let mut tally = Tally::default();
    for number in 0..200 {
        let (replica, assumed) = (requests::replica(&mut rng), requests::assumed(&mut rng));
        let listed = |replica: &Replica| requests::is_negative(replica) || requests::held(replica).is_some();
        if replica.as_ref().is_some_and(listed) {
            continue;
        }
        let form = Form::ALL[number % Form::ALL.len()];
        let request = form.of_replicas(replicas_request("member", replica.as_ref(), &assumed));
        let ours = said(trio.ours.replicas(request.clone()));
        let theirs = [("1.18", said(trio.new.replicas(request)))];
        tally.note(ours, &theirs, || format!("request {number}, {form:?}: {replica:?} beside {assumed:?}"));
    }
    tally.end("replicas beside assumed workloads", 150);
}

fn sets(trio: &Trio) {
    let mut rng = StdRng::seed_from_u64(SEED + 2);
    let mut tally = Tally::default();
    for number in 0..300 {
        let components = requests::components(&mut rng);
        let assumed = if number % 3 == 0 { requests::assumed(&mut rng) } else { Vec::new() };
        let form = Form::ALL[number % Form::ALL.len()];
        let both = sets_request("member", "", &components, &assumed);
        let request = form.of_sets(both.clone());
        let ours = said(trio.ours.sets(request.clone()));
        let mut theirs = vec![("1.18", said(trio.new.sets(request)))];
        if assumed.is_empty() {
            theirs.push(("1.17", said(trio.old.sets(both))));
        }
        tally.note(ours, &theirs, || format!("request {number}: {components:?} beside {assumed:?}"));
    }
    tally.end("sets", 300);
}

fn unschedulable(trio: &Trio) {
    const SECOND: i64 = 1_000_000_000;
    let ask = |name: &str, threshold: i64| pb::UnschedulableReplicasRequest {
        cluster: "member".into(),
        resource: Some(pb::ObjectReference {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "default".into(),
            name: name.into(),
        }),
        unschedulable_threshold: threshold,
    };
    for (name, threshold, expected, why) in [
        ("web", 0, 3, "long, shorter and ending"),
        ("web", -SECOND, 3, "below zero is zero"),
        ("web", 60 * SECOND, 3, "all of them for more than a minute"),
        ("web", 3600 * SECOND, 2, "the shorter one for half an hour only"),
        ("web", 86_400 * SECOND, 0, "none for a day"),
        ("bare", 0, 0, "nobody has made a replica set of its template"),
    ] {
        let all = [&trio.ours, &trio.old, &trio.new];
        let answers = all.map(|asker| said(asker.unschedulable(ask(name, threshold))));
        assert_eq!(answers, [Ok(expected); 3], "{name} for {threshold} ns: {why}");
    }
}

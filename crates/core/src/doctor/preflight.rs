//! Is the cluster recent enough, and does somebody else do the same work there?

use super::Finding;
use super::facts::{Facts, Server, Workload};
use super::permissions::Component;

const VERSION: &str = "version";
const OTHERS: &str = "others";

/// The oldest version of Kubernetes that is supported.
const OLDEST: (u32, u32) = (1, 30);

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut out: Vec<Finding> = facts.server.read().map(version).into_iter().collect();
    let workloads = facts.workloads.read().map(Vec::as_slice).unwrap_or_default();
    for workload in workloads.iter().filter(|one| one.replicas > 0) {
        out.extend(Other::of(workload).map(|other| other.finding(workload, brings_annotator(facts))));
    }
    // An annotator that runs elsewhere is known by its lease.
    let leases = facts.leases.read().map(Vec::as_slice).unwrap_or_default();
    let by_lease = leases.iter().find(|lease| &*lease.key.name == CRANE_LEASE && lease.is_held(facts.now));
    let seen = out.iter().any(|one| one.check == OTHERS && one.what.contains(CRANE_LEASE));
    if let (Some(lease), false) = (by_lease, seen) {
        let what = format!("crane's annotator leads by the lease {}", lease.key);
        out.push(
            annotator(what, brings_annotator(facts))
                .show(format!("kubectl -n {} get lease {}", lease.key.namespace, lease.key.name)),
        );
    }
    out
}

fn version(server: &Server) -> Finding {
    let Server { version, number, .. } = server;
    let command = "kubectl version";
    let (major, minor) = OLDEST;
    match number {
        Some(number) if *number >= OLDEST => Finding::ok(VERSION, format!("Kubernetes {version}"), command),
        Some(_) => Finding::broken(VERSION, format!("Kubernetes {version} is older than {major}.{minor}"))
            .why("what components ask for may not be served, or mean something else")
            .fix(format!("upgrade the cluster to {major}.{minor} or later first"))
            .show(command),
        None => Finding::warning(VERSION, format!("the version {version:?} of the API server is no number"))
            .why(format!("{major}.{minor} or later is needed, and nobody knows whether this is"))
            .fix("look up which version of Kubernetes it corresponds to")
            .show(command),
    }
}

/// The lease, program and image of crane's annotator.
pub(super) const CRANE_LEASE: &str = "crane-scheduler-controller";

/// Who does what we do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    CraneAnnotator,
    CraneScheduler,
    CraneAgent,
    KarmadaEstimator,
}

impl Other {
    /// By the name of an image or program; how the object is called says little.
    pub(super) fn of(workload: &Workload) -> Option<Self> {
        let images = workload.images.iter().map(|image| image_name(image));
        let programs = workload.words.iter().filter_map(|words| words.first()).map(|word| last(word));
        images.chain(programs).find_map(|name| match name {
            CRANE_LEASE => Some(Self::CraneAnnotator),
            "crane-scheduler" => Some(Self::CraneScheduler),
            "crane-agent" => Some(Self::CraneAgent),
            "karmada-scheduler-estimator" => Some(Self::KarmadaEstimator),
            _ => None,
        })
    }

    fn finding(self, workload: &Workload, with_annotator: bool) -> Finding {
        let Workload { kind, key, .. } = workload;
        let object = format!("{} {}", kind.to_lowercase(), key.name);
        let show = format!("kubectl -n {} get {object}", key.namespace);
        let runs = |who: &str| format!("{who} runs: {kind} {key}");
        match self {
            Self::CraneAnnotator => {
                annotator(format!("{} ({CRANE_LEASE})", runs("crane's annotator")), with_annotator).show(show)
            }
            Self::CraneScheduler => Finding::warning(OTHERS, runs("crane's scheduler"))
                .why("two schedulers fill the same nodes, and neither knows what the other has just promised")
                .fix(
                    "begin with `loadline scheduler --shadow`; when it answers what you want, give each workload one \
                     scheduler by its schedulerName, then scale crane's to 0",
                )
                .show(show),
            Self::CraneAgent => Finding::warning(OTHERS, runs("crane's agent"))
                .why("two agents by the same rules slow down and evict pods for the same reason")
                .fix("keep `loadline agent` without --act while crane's runs; its rules are read as they are")
                .show(show),
            Self::KarmadaEstimator => Finding::warning(OTHERS, runs("Karmada's estimator"))
                .why("its Service decides which of two estimators Karmada's scheduler asks")
                .fix("start `loadline estimator` with the same flags, point the Service at it, then scale this one to 0")
                .show(show),
        }
    }
}

/// Is it asked whether an annotator of ours can be installed? Whoever does not run one is not in its way.
fn brings_annotator(facts: &Facts) -> bool {
    facts.preflight && !facts.without.contains(&Component::Annotator)
}

fn annotator(what: String, with_ours: bool) -> Finding {
    let finding = Finding::broken(OTHERS, what)
        .why("two annotators write the same annotations of nodes: each undoes what the other wrote, by another clock");
    if with_ours {
        finding.fix(
            "scale crane's to 0 before `loadline annotator` starts (its policy is read as it is), or install without the annotator",
        )
    } else {
        Finding { severity: super::Severity::Warning, ..finding }
            .fix("fine while no `loadline annotator` runs; before that, scale crane's to 0")
    }
}

/// `crane-scheduler` of `docker.io/gocrane/crane-scheduler:0.0.23`.
fn image_name(image: &str) -> &str {
    let name = last(image);
    name.split(['@', ':']).next().unwrap_or(name)
}

/// What follows the last slash.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

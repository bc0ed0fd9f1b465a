//! May components do what they do? What each needs, by its flags; the same as is listed in its help and granted in `deploy/`.

use super::facts::{Facts, Known, Workload};
use super::{Finding, count, few};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const CHECK: &str = "permissions";

/// A component whose account is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    Scheduler,
    Annotator,
    Recommender,
    Rebalance,
    Agent,
    Estimator,
    /// `fleet --api ocm`.
    Placement,
    /// `fleet --api karmada`.
    Binding,
    /// `fleet --publish`, in the member it measures.
    Publish,
    Dashboard,
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheduler => "scheduler",
            Self::Annotator => "annotator",
            Self::Recommender => "recommender",
            Self::Rebalance => "rebalance",
            Self::Agent => "agent",
            Self::Estimator => "estimator",
            Self::Placement => "fleet --api ocm",
            Self::Binding => "fleet --api karmada",
            Self::Publish => "fleet --publish",
            Self::Dashboard => "dashboard",
        })
    }
}

impl Component {
    pub const ALL: [Self; 10] = [
        Self::Scheduler,
        Self::Annotator,
        Self::Recommender,
        Self::Rebalance,
        Self::Agent,
        Self::Estimator,
        Self::Placement,
        Self::Binding,
        Self::Publish,
        Self::Dashboard,
    ];

    /// Which of our components a workload runs, and with which flags.
    #[must_use]
    pub fn of(workload: &Workload) -> Option<(Self, &[String])> {
        let ours = workload.images.iter().any(|image| image.contains("loadline"));
        workload.words.iter().find_map(|words| {
            let (first, rest) = words.split_first()?;
            let words = match first.rsplit('/').next() {
                Some("loadline") => rest,
                _ if ours => words,
                _ => return None,
            };
            let (name, flags) = words.split_first()?;
            let component = match name.as_str() {
                "fleet" if has(flags, "--publish", None) => Self::Publish,
                "fleet" => match said(flags, "--api")? {
                    "ocm" => Self::Placement,
                    "karmada" => Self::Binding,
                    _ => return None,
                },
                name => Self::ALL.into_iter().find(|one| one.to_string() == name)?,
            };
            Some((component, flags))
        })
    }

    /// Does the account of its pod matter? Whoever has a kubeconfig is somebody else there; that of a hub is for the hub alone.
    #[must_use]
    pub fn is_itself(self, flags: &[String]) -> bool {
        let others: &[&str] = match self {
            Self::Publish => &["--member", "--member-kubeconfig"],
            Self::Estimator => &["--kubeconfig", "--cluster", "--cluster-dir"],
            _ => &["--kubeconfig"],
        };
        !flags
            .iter()
            .any(|word| others.contains(&word.split_once('=').map_or(word.as_str(), |(flag, _)| flag)))
    }

    /// The lease by which one of several leads.
    fn lease(self) -> Option<&'static str> {
        match self {
            Self::Scheduler => Some("loadline-scheduler"),
            Self::Annotator => Some("loadline-annotator"),
            Self::Recommender => Some("loadline-recommender"),
            Self::Rebalance => Some("loadline-rebalance"),
            Self::Placement => Some("loadline-placement"),
            Self::Binding => Some("loadline-fleet"),
            // One for each member.
            Self::Publish | Self::Agent | Self::Estimator | Self::Dashboard => None,
        }
    }

    /// Those that are seen to run, by what is deployed and who leads.
    pub(super) fn running(facts: &Facts) -> BTreeSet<Self> {
        let deployed = facts.workloads.read().into_iter().flatten().filter(|one| one.replicas > 0);
        let mut out: BTreeSet<Self> = deployed.filter_map(|one| Some(Self::of(one)?.0)).collect();
        for lease in facts.leases.read().into_iter().flatten().filter(|one| one.is_held(facts.now)) {
            out.extend(Self::ALL.into_iter().find(|one| one.lease() == Some(&lease.key.name)));
        }
        out
    }
}

/// Is a flag there, and with that value? `--flag value`, `--flag=value`, or a switch.
fn has(flags: &[String], flag: &str, value: Option<&str>) -> bool {
    match value {
        None => flags.iter().any(|word| word == flag || *word == format!("{flag}=true")),
        Some(value) => said(flags, flag) == Some(value),
    }
}

/// The value of a flag.
fn said<'a>(flags: &'a [String], flag: &str) -> Option<&'a str> {
    let joined = flags.iter().find_map(|word| word.strip_prefix(flag)?.strip_prefix('='));
    let next = || flags.iter().position(|word| word == flag).and_then(|at| flags.get(at + 1));
    joined.or_else(|| next().map(String::as_str))
}

/// Something an account must be allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    pub verb: &'static str,
    pub group: &'static str,
    pub resource: &'static str,
    /// Empty for the object itself.
    pub subresource: &'static str,
    /// Empty for all of the cluster.
    pub namespace: String,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, subresource, namespace } = self;
        write!(f, "{verb} {resource}")?;
        for (before, part) in [(".", *group), ("/", *subresource), (" in ", namespace.as_str())] {
            if !part.is_empty() {
                write!(f, "{before}{part}")?;
            }
        }
        Ok(())
    }
}

impl Need {
    /// How to ask whether an account may.
    fn command(&self, account: &str) -> String {
        let Self { verb, group, resource, subresource, namespace } = self;
        let mut text = format!("kubectl auth can-i {verb} {resource}");
        for (before, part) in [
            (".", *group),
            (" --subresource=", *subresource),
            (" --namespace=", namespace.as_str()),
            (" --as=", account),
        ] {
            if !part.is_empty() {
                text.push_str(before);
                text.push_str(part);
            }
        }
        text
    }
}

/// What an account may or may not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// As `--as` takes it; empty for the account that asked.
    pub account: String,
    pub component: Component,
    pub need: Need,
    pub allowed: bool,
}

const OBSERVE: &[&str] = &["list", "watch"];
const LIST: &[&str] = &["list"];
/// A row of a role: group, resources, verbs.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

const EVENTS: Row = ("events.k8s.io", &["events"], &["create", "patch"]);
const METRICS: Row = ("metrics.k8s.io", &["nodes", "pods"], LIST);
/// What whoever decides by the engine of the scheduler reads.
const DECIDES: &[Row] = &[
    (
        "",
        &[
            "nodes",
            "pods",
            "namespaces",
            "persistentvolumeclaims",
            "persistentvolumes",
            "services",
            "replicationcontrollers",
        ],
        OBSERVE,
    ),
    ("apps", &["replicasets", "statefulsets", "deployments"], OBSERVE),
    ("batch", &["jobs"], OBSERVE),
    ("policy", &["poddisruptionbudgets"], OBSERVE),
    ("scheduling.k8s.io", &["priorityclasses"], OBSERVE),
    ("storage.k8s.io", &["storageclasses", "csinodes", "csidrivers", "csistoragecapacities"], OBSERVE),
    ("analysis.crane.io", &["recommendations"], OBSERVE),
    ("ensurance.crane.io", &["nodeqoss", "avoidanceactions"], OBSERVE),
    METRICS,
];
const PLACES: &[Row] = &[
    ("", &["pods"], &["get"]),
    ("", &["pods/binding", "pods/eviction"], &["create"]),
    ("", &["pods/status"], &["patch"]),
    ("", &["persistentvolumes", "persistentvolumeclaims"], &["patch"]),
    EVENTS,
];
const MOVES: &[Row] = &[("", &["nodes"], &["get", "patch"]), ("", &["pods/eviction"], &["create"])];
const OCM: &str = "cluster.open-cluster-management.io";
const KARMADA: &str = "cluster.karmada.io";
const WORK: &str = "work.karmada.io";
const BINDINGS: &[&str] = &["resourcebindings", "clusterresourcebindings"];
/// What placements and decisions of a hub are shown from.
const HUB: &[&str] = &[
    "managedclusters",
    "managedclustersets",
    "managedclustersetbindings",
    "addonplacementscores",
    "placements",
    "placementdecisions",
];

/// To select clusters for placements.
const SELECTS: &[Row] = &[
    (
        OCM,
        &[
            "managedclusters",
            "managedclustersets",
            "managedclustersetbindings",
            "addonplacementscores",
            "placements",
        ],
        OBSERVE,
    ),
    (OCM, &["placementdecisions"], &["list", "watch", "create", "patch", "delete"]),
    (OCM, &["placements/status", "placementdecisions/status"], &["patch"]),
    (OCM, &["placements/finalizers"], &["update"]),
    EVENTS,
];
/// To divide the replicas of bindings over clusters.
const DIVIDES: &[Row] = &[
    (KARMADA, &["clusters"], OBSERVE),
    (WORK, BINDINGS, &["list", "watch", "get", "patch"]),
    (WORK, &["resourcebindings/status", "clusterresourcebindings/status"], &["patch"]),
    ("", &["services"], &["get"]),
    EVENTS,
];

/// What a component needs with these flags.
#[must_use]
pub fn needs(component: Component, flags: &[String]) -> Vec<Need> {
    let act = has(flags, "--act", None);
    let elects = has(flags, "--leader-elect", None);
    let mut rows: Vec<Row> = Vec::new();
    let mut here: Vec<(Row, &str)> = Vec::new();
    match component {
        Component::Scheduler => {
            rows.extend(DECIDES);
            if !has(flags, "--shadow", None) {
                rows.extend(PLACES);
            }
        }
        Component::Rebalance => {
            rows.extend(DECIDES);
            if act {
                rows.extend(MOVES);
            }
            if act || elects {
                rows.push(EVENTS);
            }
        }
        Component::Agent => {
            rows.push(("", &["nodes", "pods"], OBSERVE));
            rows.push(("ensurance.crane.io", &["nodeqoss", "podqoss", "avoidanceactions"], OBSERVE));
            rows.push(EVENTS);
            if act {
                rows.extend(MOVES);
                rows.push(("", &["nodes/status"], &["patch"]));
            }
        }
        Component::Annotator => {
            rows.push(("", &["nodes", "pods"], OBSERVE));
            rows.push(("", &["nodes"], &["patch"]));
            rows.push(EVENTS);
            if !has(flags, "--no-metrics-api", None) {
                rows.push(("metrics.k8s.io", &["nodes"], LIST));
                let kept = said(flags, "--history-namespace").unwrap_or("kube-system");
                if !kept.is_empty() {
                    here.push((("", &["configmaps"], &["get", "create", "patch"]), kept));
                }
            }
        }
        Component::Recommender => {
            rows.push(("", &["pods"], OBSERVE));
            rows.push(("apps", &["replicasets"], OBSERVE));
            rows.push(("batch", &["jobs"], OBSERVE));
            rows.push(("metrics.k8s.io", &["pods"], LIST));
            rows.push((
                "analysis.crane.io",
                &["recommendations"],
                &["list", "watch", "create", "patch", "delete"],
            ));
            if elects {
                rows.push(EVENTS);
            }
        }
        Component::Estimator => {
            rows.push(("", &["nodes", "pods", "resourcequotas"], OBSERVE));
            rows.push(("apps", &["replicasets", "deployments"], OBSERVE));
            if has(flags, "--load", None) {
                rows.push(("metrics.k8s.io", &["nodes"], LIST));
            }
        }
        Component::Placement => {
            rows.extend(SELECTS);
        }
        Component::Binding => {
            rows.extend(DIVIDES);
        }
        Component::Publish => {
            rows.push(("", &["nodes", "pods"], OBSERVE));
            rows.push(("metrics.k8s.io", &["nodes"], LIST));
        }
        Component::Dashboard => {
            rows.extend(DECIDES);
            rows.push(("ensurance.crane.io", &["podqoss"], OBSERVE));
            rows.push(("events.k8s.io", &["events"], OBSERVE));
            if said(flags, "--hub-kubeconfig").is_none() {
                rows.push((OCM, HUB, OBSERVE));
                rows.push((KARMADA, &["clusters"], OBSERVE));
                rows.push((WORK, BINDINGS, OBSERVE));
            }
        }
    }
    // The lease of who publishes is in the hub.
    if elects && !matches!(component, Component::Publish | Component::Dashboard) {
        let namespace = said(flags, "--leader-elect-resource-namespace").unwrap_or("kube-system");
        here.push((("coordination.k8s.io", &["leases"], &["get", "create", "update"]), namespace));
    }
    let all = rows.into_iter().map(|row| (row, "")).chain(here);
    all.flat_map(|(row, namespace)| unfolded(row, namespace)).collect()
}

fn unfolded((group, resources, verbs): Row, namespace: &str) -> impl Iterator<Item = Need> {
    let namespace = namespace.to_owned();
    resources.iter().flat_map(move |resource| {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let namespace = namespace.clone();
        verbs.iter().map(move |verb| Need {
            verb,
            group,
            resource,
            subresource,
            namespace: namespace.clone(),
        })
    })
}

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut by_account: BTreeMap<(Component, &str), Vec<&Permission>> = BTreeMap::new();
    let asked = [&facts.permissions, &facts.own];
    for one in asked.into_iter().filter_map(Known::read).flatten() {
        by_account.entry((one.component, &one.account)).or_default().push(one);
    }
    let finding = |((component, account), all): ((Component, &str), Vec<&Permission>)| {
        let who = if account.is_empty() { "this account" } else { account };
        let denied: Vec<&Permission> = all.iter().filter(|one| !one.allowed).copied().collect();
        let Some(first) = denied.first() else {
            let what = format!(
                "{who} may do all that `loadline {component}` does ({})",
                count(all.len(), "permission")
            );
            let show = if account.is_empty() { String::new() } else { format!(" --as={account}") };
            return Finding::ok(CHECK, what, format!("kubectl auth can-i --list{show}"));
        };
        let lacking: Vec<String> = denied.iter().map(|one| one.need.to_string()).collect();
        Finding::broken(
            CHECK,
            format!("`loadline {component}` lacks permissions: {who} may not {}", few(&lacking)),
        )
        .why("what it may not do fails every time; what it may not read it does not know")
        .fix(match component {
            Component::Scheduler => "kubectl apply -f deploy/scheduler/scheduler.yaml",
            Component::Agent => {
                "kubectl apply -f deploy/agent/agent.yaml, or act.yaml beside it where it acts"
            }
            Component::Rebalance => {
                "kubectl apply -f deploy/rebalance/rebalance.yaml, or act.yaml beside it where it acts"
            }
            Component::Placement => "kubectl apply -f deploy/fleet/ocm.yaml",
            Component::Annotator => "kubectl apply -f deploy/annotator/annotator.yaml",
            Component::Recommender => "kubectl apply -f deploy/recommender/recommender.yaml",
            Component::Binding => "grant it what docs/guide/fleet-karmada.md lists",
            Component::Publish => "kubectl apply -f deploy/fleet/publish.yaml",
            Component::Dashboard => "kubectl apply -f deploy/dashboard/dashboard.yaml",
            Component::Estimator => "kubectl apply -f deploy/estimator/estimator.yaml",
        })
        .show(first.need.command(account))
        .about(lacking)
    };
    by_account.into_iter().map(finding).collect()
}

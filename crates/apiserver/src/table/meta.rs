//! What do the kinds show that describe the cluster rather than run in it?

use super::age;
use super::cells::{
    NONE, UNSET, created, flag, has, int, len, list, map, name, quantity, text, text_or, time,
};
use super::columns::{AGE, Column, NAME, Printer};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Events of the core group and of `events.k8s.io`: one kind under two sets of field names.
pub(super) const EVENT: Printer = Printer::new(
    &[
        Column::text("Last Seen", "Time since it last happened."),
        Column::text("Type", "Normal or a warning."),
        Column::text("Reason", "Why, in one word."),
        Column::text("Object", "What it is about."),
        Column::text("Subobject", "Part of the object it is about.").wide(),
        Column::text("Source", "Who reported it.").wide(),
        Column::text("Message", "What happened."),
        Column::text("First Seen", "Time since it first happened.").wide(),
        Column::text("Count", "How often it happened.").wide(),
        Column::name("Name of the event.").wide(),
    ],
    event,
);

fn event(event: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &str, newer: &str| if has(event, newer) { newer.to_owned() } else { core.to_owned() };
    let first_seen = time(event, &either("/firstTimestamp", "/deprecatedFirstTimestamp"))
        .or_else(|| time(event, "/eventTime"));
    let series = event.get("series").filter(|series| series.is_object());
    let last_seen = match series {
        Some(series) => time(series, "/lastObservedTime"),
        None => time(event, &either("/lastTimestamp", "/deprecatedLastTimestamp")).or(first_seen),
    };
    let count = match (series, int(event, &either("/count", "/deprecatedCount"))) {
        (Some(series), _) => int(series, "/count"),
        (None, 0) => 1,
        (None, count) => count,
    };
    let about = either("/involvedObject", "/regarding");
    let kind = text(event, &format!("{about}/kind")).to_lowercase();
    let target = match text(event, &format!("{about}/name")) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        json!(age::since(last_seen, now)),
        json!(text(event, "/type")),
        json!(text(event, "/reason")),
        json!(target),
        json!(text(event, &format!("{about}/fieldPath"))),
        json!(source(event, &either("/source", "/deprecatedSource"))),
        json!(text(event, &either("/message", "/note")).trim()),
        json!(age::since(first_seen, now)),
        json!(count),
        name(event),
    ]
}

/// Component and instance; the newer fields step in for what the older ones leave out.
fn source(event: &Value, older: &str) -> String {
    let reporter = text_or(event, "/reportingController", text(event, "/reportingComponent"));
    let component = text_or(event, &format!("{older}/component"), reporter);
    match text_or(event, &format!("{older}/host"), text(event, "/reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

/// Namespaces.
pub(super) const NAMESPACE: Printer =
    Printer::new(&[NAME, Column::text("Status", "Active or going away."), AGE], |object, now| {
        vec![name(object), json!(text(object, "/status/phase")), created(object, now)]
    });

/// Config maps.
pub(super) const CONFIG_MAP: Printer =
    Printer::new(&[NAME, Column::text("Data", "Number of entries."), AGE], |object, now| {
        vec![name(object), json!(len(object, "/data") + len(object, "/binaryData")), created(object, now)]
    });

/// Secrets.
pub(super) const SECRET: Printer = Printer::new(
    &[NAME, Column::text("Type", "What the secret is for."), Column::text("Data", "Number of entries."), AGE],
    |object, now| {
        vec![name(object), json!(text(object, "/type")), json!(len(object, "/data")), created(object, now)]
    },
);

/// Leases.
pub(super) const LEASE: Printer =
    Printer::new(&[NAME, Column::text("Holder", "Who holds the lease."), AGE], |object, now| {
        vec![name(object), json!(text(object, "/spec/holderIdentity")), created(object, now)]
    });

/// Resource quotas.
pub(super) const QUOTA: Printer = Printer::new(
    &[
        NAME,
        Column::text("Request", "Used and allowed amounts of everything but limits."),
        Column::text("Limit", "Used and allowed amounts of limits."),
        AGE,
    ],
    |object, now| {
        let used = map(object, "/status/used");
        let mut hard: Vec<(&String, &Value)> = map(object, "/status/hard").into_iter().flatten().collect();
        hard.sort_by_key(|(resource, _)| *resource);
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (resource, hard) in hard {
            let used = quantity(used.and_then(|used| used.get(resource)));
            let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
            column.push(format!("{resource}: {used}/{}", quantity(Some(hard))));
        }
        vec![name(object), json!(requests.join(", ")), json!(limits.join(", ")), created(object, now)]
    },
);

/// Priority classes.
pub(super) const PRIORITY_CLASS: Printer = Printer::new(
    &[
        NAME,
        Column::int("Value", "Priority of pods of the class."),
        Column::flag("Global-Default", "Whether pods without a class get this one."),
        AGE,
        Column::text("PreemptionPolicy", "Whether its pods may push others away."),
    ],
    |object, now| {
        vec![
            name(object),
            json!(int(object, "/value")),
            json!(flag(object, "/globalDefault").unwrap_or(false)),
            created(object, now),
            json!(text(object, "/preemptionPolicy")),
        ]
    },
);

/// Runtime classes.
pub(super) const RUNTIME_CLASS: Printer = Printer::new(
    &[NAME, Column::text("Handler", "Runtime configuration it stands for."), AGE],
    |object, now| vec![name(object), json!(text(object, "/handler")), created(object, now)],
);

/// Role bindings of one namespace or of the cluster.
pub(super) const ROLE_BINDING: Printer = Printer::new(
    &[
        NAME,
        Column::text("Role", "Role that is given."),
        AGE,
        Column::text("Users", "Users it is given to.").wide(),
        Column::text("Groups", "Groups it is given to.").wide(),
        Column::text("ServiceAccounts", "Service accounts it is given to.").wide(),
    ],
    |object, now| {
        let subjects = |kind: &str| {
            let names: Vec<String> = list(object, "/subjects")
                .iter()
                .filter(|subject| text(subject, "/kind") == kind)
                .map(|subject| match kind {
                    "ServiceAccount" => format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")),
                    _ => text(subject, "/name").to_owned(),
                })
                .collect();
            json!(names.join(", "))
        };
        vec![
            name(object),
            json!(format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name"))),
            created(object, now),
            subjects("User"),
            subjects("Group"),
            subjects("ServiceAccount"),
        ]
    },
);

/// Resource claims.
pub(super) const RESOURCE_CLAIM: Printer =
    Printer::new(&[NAME, Column::text("State", "How far the claim is."), AGE], |object, now| {
        let deleted = has(object, "/metadata/deletionTimestamp");
        let allocated = has(object, "/status/allocation");
        let states: Vec<&str> = [
            (deleted, "deleted"),
            (!deleted && !allocated, "pending"),
            (allocated, "allocated"),
            (allocated && !list(object, "/status/reservedFor").is_empty(), "reserved"),
        ]
        .into_iter()
        .filter_map(|(holds, word)| holds.then_some(word))
        .collect();
        vec![name(object), json!(states.join(",")), created(object, now)]
    });

/// Resource slices.
pub(super) const RESOURCE_SLICE: Printer = Printer::new(
    &[
        NAME,
        Column::text("Node", "Node whose devices these are."),
        Column::text("Driver", "Driver that published them."),
        Column::text("Pool", "Pool they belong to."),
        AGE,
    ],
    |object, now| {
        vec![
            name(object),
            json!(text(object, "/spec/nodeName")),
            json!(text(object, "/spec/driver")),
            json!(text(object, "/spec/pool/name")),
            created(object, now),
        ]
    },
);

/// Certificate signing requests.
pub(super) const SIGNING_REQUEST: Printer = Printer::new(
    &[
        NAME,
        AGE,
        Column::text("SignerName", "Who is to sign."),
        Column::text("Requestor", "Who asks."),
        Column::text("RequestedDuration", "How long it is to last."),
        Column::text("Condition", "How far it is."),
    ],
    |object, now| {
        let has_condition = |kind: &str| {
            list(object, "/status/conditions").iter().any(|condition| text(condition, "/type") == kind)
        };
        let decided = match (has_condition("Denied"), has_condition("Approved")) {
            (true, _) => "Denied",
            (_, true) => "Approved",
            _ => "Pending",
        };
        let failed = if has_condition("Failed") { ",Failed" } else { "" };
        let issued = if text(object, "/status/certificate").is_empty() { "" } else { ",Issued" };
        let lasts = object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
        vec![
            name(object),
            created(object, now),
            json!(text_or(object, "/spec/signerName", NONE)),
            json!(text(object, "/spec/username")),
            json!(lasts.map_or_else(|| NONE.to_owned(), age::human_duration)),
            json!(format!("{decided}{failed}{issued}")),
        ]
    },
);

/// Validating admission policies.
pub(super) const ADMISSION_POLICY: Printer = Printer::new(
    &[
        NAME,
        Column::int("Validations", "How many rules it has."),
        Column::text("ParamKind", "Kind of its parameters."),
        AGE,
    ],
    |object, now| {
        let kind = if has(object, "/spec/paramKind") {
            format!("{}/{}", text(object, "/spec/paramKind/apiVersion"), text(object, "/spec/paramKind/kind"))
        } else {
            UNSET.to_owned()
        };
        vec![name(object), json!(list(object, "/spec/validations").len()), json!(kind), created(object, now)]
    },
);

/// Bindings of validating admission policies.
pub(super) const ADMISSION_BINDING: Printer = Printer::new(
    &[
        NAME,
        Column::text("PolicyName", "Policy that is bound."),
        Column::text("ParamRef", "Object with its parameters."),
        AGE,
    ],
    |object, now| {
        let parameters = match text(object, "/spec/paramRef/name") {
            "" => UNSET.to_owned(),
            name => format!("{}/{name}", text_or(object, "/spec/paramRef/namespace", "*")),
        };
        vec![name(object), json!(text(object, "/spec/policyName")), json!(parameters), created(object, now)]
    },
);

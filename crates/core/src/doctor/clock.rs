//! Do clocks agree? Here, at the API server, and where stamps come from.

use super::facts::{Facts, NEAR};
use super::{Finding, count, few, span, verb};
use crate::load::annotation;
use crate::load::term::AHEAD;
use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

const CHECK: &str = "clock";

/// A kubelet renews its lease every ten seconds, and one that stopped is not called ready for a minute after. What is older
/// than this and of a node that is ready was renewed meanwhile, by a clock that is behind.
const STOPPED: SignedDuration = SignedDuration::from_mins(2);

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut out = Vec::new();
    let mut now = facts.now;
    if let Some((theirs, ours)) = facts.server.read().and_then(|server| server.clock) {
        let off = theirs.duration_since(ours);
        // Where the two differ nobody is blamed for agreeing with one of them.
        now = now.max(now.checked_add(off).unwrap_or(now));
        out.push(server(off));
    }
    out.extend(ahead(facts, now));
    out.extend(behind(facts));
    out
}

/// Nodes that are ready and renew a lease that looks as if nobody did.
fn behind(facts: &Facts) -> Option<Finding> {
    let now = facts.by_server().unwrap_or(facts.now);
    let leases = facts.leases.read()?.iter().filter(|lease| lease.is_of_node());
    let renewed: FxHashMap<&str, Timestamp> =
        leases.filter_map(|lease| Some((&*lease.key.name, lease.renewed?))).collect();
    let ready = facts.nodes.read()?.iter().filter(|node| node.ready == Some(true));
    let late = ready.filter_map(|node| {
        let age = now.duration_since(*renewed.get(node.name())?);
        (age > STOPPED).then_some((node.name(), age))
    });
    let (names, ages): (Vec<&str>, Vec<SignedDuration>) = late.unzip();
    let (first, most) = (*names.first()?, ages.into_iter().max()?);
    let number = names.len();
    let what = format!(
        "{} ready, and {} a lease that was last renewed up to {} ago by {} own clock: {}",
        count(number, "node") + verb(number, " is", " are"),
        verb(number, "has", "have"),
        span(most),
        verb(number, "its", "their"),
        few(&names)
    );
    Some(
        Finding::broken(CHECK, what)
            .why("a clock that is behind makes what is measured there look old: it expires early or is never used")
            .fix("synchronise the clocks of these nodes (chrony, systemd-timesyncd)")
            .show(format!("kubectl -n kube-node-lease get lease {first} -o jsonpath='{{.spec.renewTime}}'; date -u"))
            .about(names),
    )
}

fn server(off: SignedDuration) -> Finding {
    let by = off.abs();
    let show = "kubectl get --raw /version -v=8 2>&1 | grep -i date; date -u";
    if by <= NEAR {
        return Finding::ok(CHECK, "the API server's clock agrees with the one here", show);
    }
    let way = if off.is_positive() { "ahead of" } else { "behind" };
    let what = format!("the API server's clock is {} {way} the one here", span(by));
    let finding = if by > AHEAD { Finding::broken(CHECK, what) } else { Finding::warning(CHECK, what) };
    finding
        .why(format!(
            "values carry the time they were measured: what is more than {} ahead is not used, and what is behind expires early",
            span(AHEAD)
        ))
        .fix("synchronise clocks (chrony, systemd-timesyncd) here and on the machines of the control plane")
        .show(show)
}

/// Nodes with stamps from the future.
fn ahead(facts: &Facts, now: Timestamp) -> Option<Finding> {
    let is_ahead = |at: Timestamp| at.duration_since(now) > NEAR;
    let (mut nodes, mut most) = (BTreeSet::new(), SignedDuration::ZERO);
    let mut note = |node: &str, at: Timestamp| {
        if is_ahead(at) {
            nodes.insert(node.to_owned());
            most = most.max(at.duration_since(now));
        }
    };
    for lease in facts.leases.read().into_iter().flatten().filter(|lease| lease.is_of_node()) {
        if let Some(at) = lease.renewed {
            note(&lease.key.name, at);
        }
    }
    for (name, sample) in facts.metrics.read().into_iter().flatten() {
        note(name, sample.at);
    }
    let zone = facts.rules.settings().time_zone.as_ref();
    for node in facts.nodes.read().into_iter().flatten() {
        for metric in facts.rules.metrics() {
            let text = node.facts.annotations.get(&*metric.name);
            if let Some(Ok(reading)) = text.map(|text| annotation::read(text, zone)) {
                note(node.name(), reading.at);
            }
        }
    }
    let names: Vec<String> = nodes.into_iter().collect();
    let first = names.first()?.clone();
    let number = names.len();
    let what = format!(
        "{} {} stamps from the future, up to {}: {}",
        count(number, "node"),
        verb(number, "bears", "bear"),
        span(most),
        few(&names)
    );
    let finding = if most > AHEAD { Finding::broken(CHECK, what) } else { Finding::warning(CHECK, what) };
    let finding = finding
        .why(format!("a measurement more than {} ahead is not used: the node is as if nobody measured it", span(AHEAD)))
        .fix(
            "synchronise the clocks of these nodes; if crane's annotator wrote the stamps, it writes the clock of a zone: name that zone \
             in LoadSettings (`timeZone`)",
        )
        .show(format!("kubectl -n kube-node-lease get lease {first} -o jsonpath='{{.spec.renewTime}}'; date -u"));
    Some(finding.about(names))
}

//! Do clocks agree? Here, at the API server, and where stamps come from.

use super::facts::Facts;
use super::{Finding, count, few, span, verb};
use crate::load::annotation;
use crate::load::term::AHEAD;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;

const CHECK: &str = "clock";

/// What the resolution of a `Date` header and the way of an answer account for, and a bit more.
const NEAR: SignedDuration = SignedDuration::from_secs(5);

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
    out
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

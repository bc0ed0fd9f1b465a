//! Could everything be read? What could not be is told with what that leaves unseen.

use super::facts::{Facts, Failed, Why};
use super::{Finding, few};

const CHECK: &str = "reads";

/// One kind of read: what it is of, what it is for, and how to ask whether one may.
struct Read<'a> {
    failed: Option<&'a Failed>,
    what: &'static str,
    unseen: &'static str,
    command: &'static str,
}

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let read = |failed, what, unseen, command| Read { failed, what, unseen, command };
    let all = [
        read(facts.server.failed(), "the version of the API server", "its age and clock", "kubectl version"),
        read(
            facts.nodes.failed(),
            "nodes",
            "which nodes are measured, annotated and agreed about",
            "kubectl auth can-i list nodes",
        ),
        // That nobody serves measurements is a finding of its own.
        read(
            facts.metrics.failed().filter(|failed| failed.why != Why::Missing),
            "measurements of nodes (nodes.metrics.k8s.io)",
            "whether measurements arrive",
            "kubectl auth can-i list nodes.metrics.k8s.io",
        ),
        read(
            facts.leases.failed(),
            "leases",
            "who leads, twice perhaps, and the clocks of nodes",
            "kubectl auth can-i list leases.coordination.k8s.io --all-namespaces",
        ),
        read(
            facts.definitions.failed(),
            "definitions of kinds (customresourcedefinitions)",
            "whether the kinds are there in the version that is read",
            "kubectl auth can-i get customresourcedefinitions.apiextensions.k8s.io",
        ),
        // Without the kind there is nothing to read; `definitions` tells of that.
        read(
            facts.recommendations.failed().filter(|failed| failed.why != Why::Missing),
            "recommendations",
            "whether recommendations are stale",
            "kubectl auth can-i list recommendations.analysis.crane.io --all-namespaces",
        ),
        read(
            facts.lines.failed().filter(|failed| failed.why != Why::Missing),
            "rules of agents (nodeqoss, avoidanceactions)",
            "whether targets are above waterlines",
            "kubectl auth can-i list nodeqoss.ensurance.crane.io",
        ),
        read(
            facts.workloads.failed(),
            "deployments and daemon sets",
            "who else does the same work, and with which accounts components run",
            "kubectl auth can-i list deployments.apps --all-namespaces",
        ),
        read(
            facts.permissions.failed(),
            "what accounts may do (reviews of authorization.k8s.io)",
            "whether components lack permissions",
            "kubectl auth can-i create subjectaccessreviews.authorization.k8s.io",
        ),
        read(
            facts.own.failed(),
            "what this account may do (selfsubjectaccessreviews)",
            "whether it lacks permissions",
            "kubectl auth can-i --list",
        ),
    ];
    let (mut out, mut denied) = (Vec::new(), Vec::new());
    for Read { failed, what, unseen, command } in all {
        let Some(failed) = failed else { continue };
        if failed.why == Why::Denied {
            denied.push(what);
            out.push(
                Finding::warning(CHECK, format!("this account may not read {what}: {}", failed.message))
                    .why(format!("not seen: {unseen}"))
                    .fix("run doctor with an account that may, such as an administrator's")
                    .show(command),
            );
        } else {
            out.push(
                Finding::broken(CHECK, format!("{what} could not be read: {}", failed.message))
                    .why(format!("components that read the same fail alike; not seen: {unseen}"))
                    .fix("look whether the API server is up and reachable from here, then run doctor again")
                    .show("kubectl get --raw '/readyz?verbose'"),
            );
        }
    }
    if denied.len() > 1 {
        let what = format!("of what doctor looks at, {} could not be seen: {}", denied.len(), few(&denied));
        out.push(Finding::ok(CHECK, what, "kubectl auth can-i --list"));
    }
    out
}

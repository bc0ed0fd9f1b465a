//! Are measurements of nodes arriving, and how old are they?

use super::facts::{Facts, Why};
use super::{Finding, count, few, span, verb};
use crate::load::term::RECENT;
use rustc_hash::FxHashMap;

const CHECK: &str = "metrics";
const TOP: &str = "kubectl get --raw /apis/metrics.k8s.io/v1beta1/nodes";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    if let Some(failed) = facts.metrics.failed().filter(|failed| failed.why == Why::Missing) {
        return vec![
            Finding::broken(CHECK, format!("the cluster has no metrics API: {}", failed.message))
                .why(
                    "the load of nodes is not known: schedulers go by what pods ask for and are expected to use, \
                     estimators with --load count by requests alone, nothing is learned about workloads",
                )
                .fix(
                    "install metrics-server; where it is installed, look why its APIService is not available \
                     (`kubectl describe apiservice v1beta1.metrics.k8s.io`)",
                )
                .show("kubectl get apiservice v1beta1.metrics.k8s.io"),
        ];
    }
    let Some(samples) = facts.metrics.read() else { return Vec::new() };
    let Some(nodes) = facts.nodes.read() else { return Vec::new() };
    let by_name: FxHashMap<&str, _> = samples.iter().map(|(name, sample)| (name.as_str(), sample)).collect();
    let expects = facts.expects();
    let expected: Vec<&str> = nodes.iter().filter(|node| expects(node)).map(super::Node::name).collect();
    let (mut unmeasured, mut old, mut oldest) = (Vec::new(), Vec::new(), None);
    for name in &expected {
        let Some(sample) = by_name.get(name) else {
            unmeasured.push(*name);
            continue;
        };
        let age = facts.now.duration_since(sample.at);
        oldest = oldest.max(Some(age));
        if age > RECENT {
            old.push(*name);
        }
    }
    let mut out = Vec::new();
    let of = expected.len();
    if !unmeasured.is_empty() {
        let number = unmeasured.len();
        let has = verb(number, "has", "have");
        let what = format!("{number} of {} {has} no measurement: {}", count(of, "node"), few(&unmeasured));
        out.push(
            Finding::broken(CHECK, what)
                .why("unknown is never idle: such a node is judged by what its pods are expected to use, not by its load")
                .fix("look into the log of metrics-server for these nodes: often it cannot reach the kubelet, or does not trust its certificate")
                .show(format!("kubectl get --raw /apis/metrics.k8s.io/v1beta1/nodes/{}", unmeasured[0]))
                .about(unmeasured),
        );
    }
    if !old.is_empty() {
        let number = old.len();
        let has = verb(number, "has", "have");
        let age = oldest.map(span).unwrap_or_default();
        let what =
            format!("{number} of {} {has} old measurements, up to {age}: {}", count(of, "node"), few(&old));
        out.push(
            Finding::broken(CHECK, what)
                .why(format!("what is older than {} says nothing of the load now and is not used", span(RECENT)))
                .fix("look whether metrics-server still scrapes these nodes, and whether their clocks are right")
                .show(format!("kubectl get --raw /apis/metrics.k8s.io/v1beta1/nodes/{}", old[0]))
                .about(old),
        );
    }
    if let (true, Some(oldest)) = (out.is_empty(), oldest) {
        let what = format!("{} measured, the oldest {} ago", count(of, "node"), span(oldest));
        out.push(Finding::ok(CHECK, what, TOP));
    }
    out
}

//! Which nodes match no series of Prometheus, and why? Joined by the very function the annotator joins by.

use super::facts::{Asked, Facts, Node, Prometheus};
use super::{Finding, count, few, span, verb};
use crate::load::join::{Found, Names, canonical, join, without_port};
use crate::load::policy::GRACE;
use jiff::SignedDuration;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

const CHECK: &str = "series";
/// What the rules are loaded from.
const RULES: &str = "deploy/prometheus/rules.yaml";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    if let Some(failed) = facts.prometheus.failed() {
        return vec![
            Finding::broken(CHECK, format!("Prometheus cannot be asked: {}", failed.message))
                .why("values of an hour and a day come from it; without, they expire and schedulers go on without them")
                .fix("look whether the address, the path in it and the credentials are right, and whether it can be reached from here")
                .show("loadline doctor --prometheus-address URL"),
        ];
    }
    let Some(prometheus) = facts.prometheus.read() else { return Vec::new() };
    let mut out = Vec::new();
    let nobody: Vec<&Asked> = prometheus
        .asked
        .iter()
        .filter(|asked| asked.answer.as_ref().is_ok_and(|series| series.is_empty() && asked.unlabelled == 0))
        .collect();
    if !nobody.is_empty() {
        out.push(unheard_of(&nobody, prometheus));
    }
    for asked in &prometheus.asked {
        if let Err(problem) = &asked.answer {
            let what = format!("Prometheus does not answer for {}: {problem}", asked.metric);
            out.push(
                Finding::broken(CHECK, what)
                    .why("the metric expires on every node, and the rules go on without it")
                    .fix("ask Prometheus the same by hand; an expression of one's own may be at fault")
                    .show(query(prometheus, &asked.query)),
            );
        } else if asked.unlabelled > 0 {
            let has = verb(asked.unlabelled, "has", "have");
            let what = format!(
                "{} of {} {has} no label that names a node",
                series_count(asked.unlabelled),
                asked.metric
            );
            out.push(
                Finding::warning(CHECK, what)
                    .why("nobody knows whose they are")
                    .fix("keep the label `instance` or `node` in the rule, or name another with --prometheus-node-label")
                    .show(query(prometheus, &asked.query)),
            );
        }
    }
    let Some(nodes) = facts.nodes.read() else { return out };
    out.extend(joined(facts, nodes, prometheus));
    out
}

fn query(prometheus: &Prometheus, text: &str) -> String {
    let address = prometheus.address.trim_end_matches('/');
    format!("curl -G {address}/api/v1/query --data-urlencode 'query={text}'")
}

fn unheard_of(nobody: &[&Asked], prometheus: &Prometheus) -> Finding {
    let names: Vec<&str> = nobody.iter().map(|asked| &*asked.metric).collect();
    let what = format!("Prometheus has no series for {}", few(&names));
    let fix = if nobody.iter().any(|asked| asked.is_series) {
        format!(
            "load the recording rules {RULES} (they need node-exporter), or give an expression of your own with \
             --prometheus-query; if series are there under another cluster label, look at --prometheus-matcher"
        )
    } else {
        "look at the expression: what it reads is not there".to_owned()
    };
    Finding::broken(CHECK, what)
        .why("these values are not written on any node, and the rules go on without them")
        .fix(fix)
        .show(query(prometheus, names[0]))
        .about(names)
}

/// Why a node has no series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Miss {
    /// It has an address that another one has, too.
    Shared,
    /// The label says more than a host and a port.
    Spelled,
    /// The label has its name, but a longer or shorter one.
    Name,
    /// Nothing looks like it.
    Nothing,
}

/// What can be known about nodes of which there is no series.
struct Hints<'a> {
    /// A label that names the node once it is stripped, by place.
    spelled: FxHashMap<usize, &'a str>,
    /// Texts that are nobody's, by the first part of the name in them.
    by_name: FxHashMap<String, &'a str>,
    /// Nodes by an address that several have.
    shared: FxHashMap<Arc<str>, Vec<usize>>,
    /// The first text that is nobody's and an address.
    address: Option<&'a str>,
}

impl<'a> Hints<'a> {
    fn new(nodes: &[Node], names: &Names, asked: &'a [Asked]) -> Self {
        let mut by_address: FxHashMap<Arc<str>, Vec<usize>> = FxHashMap::default();
        for (place, node) in nodes.iter().enumerate() {
            for address in &node.addresses {
                by_address.entry(canonical(address)).or_default().push(place);
            }
        }
        by_address.retain(|_, places| places.len() > 1);
        let mut hints = Self {
            spelled: FxHashMap::default(),
            by_name: FxHashMap::default(),
            shared: by_address,
            address: None,
        };
        let texts = asked.iter().filter_map(|one| one.answer.as_ref().ok()).flatten();
        for text in texts.flat_map(|series| &series.whose) {
            if names.find(text) != Found::Nobody {
                continue;
            }
            let host = without_port(stripped(text));
            if let Found::Node(place) = names.find(host) {
                hints.spelled.entry(place).or_insert(text);
            } else if host.parse::<IpAddr>().is_ok() {
                hints.address.get_or_insert(text);
            } else {
                hints.by_name.entry(first_part(host)).or_insert(text);
            }
        }
        hints
    }

    /// Why this one, with a text or address that shows it.
    fn of(&self, place: usize, node: &Node) -> (Miss, Option<String>) {
        if let Some(address) = node.addresses.iter().find(|one| self.shared.contains_key(&canonical(one))) {
            return (Miss::Shared, Some(address.to_string()));
        }
        if let Some(text) = self.spelled.get(&place) {
            return (Miss::Spelled, Some((*text).to_owned()));
        }
        let own = std::iter::once(node.name()).chain(node.addresses.iter().map(|one| &**one));
        let like = own.filter(|name| name.parse::<IpAddr>().is_err());
        match like.map(first_part).find_map(|name| self.by_name.get(&name)) {
            Some(text) => (Miss::Name, Some((*text).to_owned())),
            None => (Miss::Nothing, None),
        }
    }
}

/// Without a scheme before and a path behind.
fn stripped(text: &str) -> &str {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    text.split_once('/').map_or(text, |(host, _)| host).trim()
}

/// The first part of a name, in small letters.
fn first_part(name: &str) -> String {
    name.split('.').next().unwrap_or(name).to_ascii_lowercase()
}

/// Of a node: for which metrics there is nothing, and what else is odd.
fn joined(facts: &Facts, nodes: &[Node], prometheus: &Prometheus) -> Vec<Finding> {
    let facts_of: Vec<(Arc<str>, &[Arc<str>])> =
        nodes.iter().map(|node| (node.name().into(), &node.addresses[..])).collect();
    let names = Names::new(facts_of.iter().map(|(name, addresses)| (name, *addresses)));
    let expects = facts.expects();
    let mut missing: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    let mut out = Vec::new();
    let (mut asked_for, mut repeated, mut invalid) = (0, 0, 0);
    let mut old: BTreeMap<&str, (usize, SignedDuration)> = BTreeMap::new();
    for asked in &prometheus.asked {
        let Ok(series) = &asked.answer else { continue };
        if series.is_empty() {
            continue;
        }
        asked_for += 1;
        let found = join(&names, nodes.len(), series);
        repeated = repeated.max(found.repeated);
        invalid += found.invalid;
        let window =
            facts.rules.metrics().iter().find(|one| one.name == asked.metric).and_then(|one| one.window);
        for (place, value) in found.values.iter().enumerate() {
            match value {
                None if expects(&nodes[place]) => {
                    missing.entry(place).or_default().insert(&asked.metric);
                }
                Some(value) => {
                    let age = facts.now.duration_since(value.at);
                    if age > window.unwrap_or(GRACE) {
                        let held = old.entry(&asked.metric).or_default();
                        *held = (held.0 + 1, held.1.max(age));
                    }
                }
                None => {}
            }
        }
    }
    if asked_for == 0 {
        return out;
    }
    let example =
        prometheus.asked.iter().find(|asked| asked.answer.as_ref().is_ok_and(|all| !all.is_empty()));
    let show = example.map(|asked| query(prometheus, &asked.query)).unwrap_or_default();
    let hints = Hints::new(nodes, &names, &prometheus.asked);
    let mut by_reason: BTreeMap<Miss, Vec<(usize, Option<String>)>> = BTreeMap::new();
    let mut partly: BTreeMap<&BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
    for (&place, metrics) in &missing {
        if metrics.len() < asked_for {
            partly.entry(metrics).or_default().push(nodes[place].name());
            continue;
        }
        let (miss, shown) = hints.of(place, &nodes[place]);
        by_reason.entry(miss).or_default().push((place, shown));
    }
    let all_missed = missing.len();
    for (miss, places) in by_reason {
        out.push(missed(&miss, &places, nodes, &hints).show(show.clone()));
    }
    for (metrics, names) in partly {
        out.push(lacking(metrics, &names, prometheus));
    }
    for (metric, (number, age)) in old {
        let what = format!("{metric} of {} is old, up to {}", count(number, "node"), span(age));
        out.push(
            Finding::broken(CHECK, what)
                .why("a value is stamped with the time of its sample, and what is too old is not written")
                .fix("look whether the rule is still evaluated, and whether these nodes are still scraped")
                .show(query(prometheus, metric)),
        );
    }
    if repeated > 0 {
        let what = format!("{} beyond the first of a node, such as by another port", series_count(repeated));
        out.push(
            Finding::warning(CHECK, what)
                .why("of several series of a node the largest counts: one exporter too many may hide the right one")
                .fix("narrow what is asked for with --prometheus-matcher, such as 'job=\"node\"'")
                .show(show.clone()),
        );
    }
    if invalid > 0 {
        let what = format!(
            "{} no amount (NaN, infinite or negative)",
            series_count(invalid) + verb(invalid, " is", " are")
        );
        out.push(
            Finding::warning(CHECK, what)
                .why("such a value is left out, and the node is without")
                .fix("look at the rule: a rate over too short a range, or a division by nothing")
                .show(show.clone()),
        );
    }
    if all_missed == 0 {
        let what = format!("{} matched by series of {asked_for} metrics", count(nodes.len(), "node"));
        out.push(Finding::ok(CHECK, what, show));
    }
    out
}

/// What to say of nodes that have some metrics and not these.
fn lacking(metrics: &BTreeSet<&str>, names: &[&str], prometheus: &Prometheus) -> Finding {
    let metrics: Vec<&str> = metrics.iter().copied().collect();
    let asked = prometheus.asked.iter().find(|asked| *asked.metric == *metrics[0]);
    let number = names.len();
    let what = format!(
        "{} {} no series of {}, though of other metrics: {}",
        count(number, "node"),
        verb(number, "has", "have"),
        few(&metrics),
        few(names)
    );
    Finding::broken(CHECK, what)
        .why("these metrics expire on such a node, and the rules go on without them")
        .fix("look what these rules read, and whether the exporter of these nodes tells it: a collector may be off, or its label another")
        .show(asked.map(|asked| query(prometheus, &asked.query)).unwrap_or_default())
        .about(names.iter().copied())
}

fn series_count(number: usize) -> String {
    format!("{number} series")
}

/// What to say of nodes that are missed for the same reason.
fn missed(miss: &Miss, places: &[(usize, Option<String>)], nodes: &[Node], hints: &Hints<'_>) -> Finding {
    let names: Vec<&str> = places.iter().map(|(place, _)| nodes[*place].name()).collect();
    let (first, shown) = (&nodes[places[0].0], places[0].1.as_deref().unwrap_or_default());
    let number = names.len();
    let matched =
        format!("{} {} no series: {}", count(number, "node"), verb(number, "matches", "match"), few(&names));
    let (because, fix) = match miss {
        Miss::Shared => (
            format!("address: {shown} of {} is the address of several nodes, and a value that could be either's is nobody's", first.name()),
            "let a label name the node: relabel `__meta_kubernetes_node_name` or `__meta_kubernetes_pod_node_name` to `node`, then --prometheus-node-label node".to_owned(),
        ),
        Miss::Spelled => (
            format!("port: {} is written {shown:?} there, expected a host or host:port", first.name()),
            "relabel the scheme and the path away, or name another label with --prometheus-node-label".to_owned(),
        ),
        Miss::Name => (
            format!("name: {shown:?} is there, but the node is called {} and has {}", first.name(), addresses(first)),
            "relabel the node's name to `node`, or let the node have that name among its addresses (InternalDNS, Hostname)".to_owned(),
        ),
        Miss::Nothing => (
            format!(
                "address: no series has the name {} or {}{}",
                first.name(),
                addresses(first),
                hints.address.map(|text| format!("; series of nobody there, such as {text:?}, may be of pods")).unwrap_or_default()
            ),
            "look in Prometheus under targets whether an exporter of the node is scraped and up; by the address of a pod, relabel the node's name to `node`".to_owned(),
        ),
    };
    Finding::broken(CHECK, format!("{matched}; {because}"))
        .why("nothing is written on such a node: what is there expires, and the rules go on without it")
        .fix(fix)
        .about(names)
}

fn addresses(node: &Node) -> String {
    match &node.addresses[..] {
        [] => "no addresses".to_owned(),
        [one] => format!("the address {one}"),
        all => format!("the addresses {}", all.join(", ")),
    }
}

//! `LoadSettings`: what crane's policy has no place for.

use super::fields::{Fields, Notes};
use super::{Read, SETTINGS};
use crate::json::Tree;
use jiff::tz::TimeZone;
use loadline_core::load::policy::Origin;
use loadline_core::load::ratio::Ratio;
use loadline_core::load::settings::{Exempt, Line, Missing, Mode, NodeRule, Scored, Settings};
use loadline_core::load::{Both, Metered};
use loadline_core::select::Selector;
use loadline_core::select::label::{Expression, LabelSelector};

const SPEC: &[&str] =
    &["mode", "timeZone", "targets", "nodes", "missingData", "settle", "need", "line", "exempt"];

pub(super) fn read(document: &Tree<'_>) -> Read<Settings> {
    let notes = Notes::new(Origin::Settings);
    let root = Fields::root(document, &notes, &["apiVersion", "kind", "metadata", "spec"]);
    root.is(SETTINGS);
    root.open("metadata");
    let settings = read_spec(&root.object("spec", SPEC));
    Read::noted(settings, notes)
}

/// The spec alone.
pub(super) fn read_alone(spec: &Tree<'_>) -> Read<Settings> {
    let notes = Notes::new(Origin::Settings);
    let settings = read_spec(&Fields::spec(spec, &notes, SPEC));
    Read::noted(settings, notes)
}

fn read_spec(spec: &Fields<'_>) -> Settings {
    let modes = [("default", Mode::Default), ("upstream", Mode::Upstream)];
    let missing = [("Estimate", Missing::Estimate), ("Allow", Missing::Allow), ("Deny", Missing::Deny)];
    let need = [("Score", Scored::Yes), ("Ignore", Scored::No)];
    let line = [("Unlearned", Line::Unlearned), ("Always", Line::Always)];
    Settings {
        mode: spec.choice("mode", &modes).unwrap_or_default(),
        time_zone: zone(spec),
        targets: targets(spec),
        nodes: spec.list("nodes", &["selector", "targets", "thresholds"]).map(|item| node(&item)).collect(),
        missing: spec.choice("missingData", &missing).unwrap_or_default(),
        settle: spec.duration("settle"),
        need: spec.choice("need", &need).unwrap_or_default(),
        line: spec.choice("line", &line).unwrap_or_default(),
        exempt: exempt(spec),
    }
}

fn zone(spec: &Fields<'_>) -> Option<TimeZone> {
    let name = spec.word("timeZone")?;
    let zone = TimeZone::get(name).ok();
    if zone.is_none() {
        spec.wrong("timeZone", &format!("unknown time zone {name:?}, expected a name such as Asia/Shanghai"));
    }
    zone
}

pub(crate) fn targets(of: &Fields<'_>) -> Both<Option<Ratio>> {
    let given = of.object("targets", &["cpu", "memory"]);
    let mut out = Both::default();
    for resource in Metered::ALL {
        out.set(resource, given.ratio(resource.name()));
    }
    out
}

fn node(item: &Fields<'_>) -> NodeRule {
    if !item.has("selector") {
        item.wrong("selector", "expected a label selector, found nothing; {} matches every node");
    }
    let given = item.open("thresholds");
    let thresholds = given.names().filter_map(|name| Some((name.to_owned(), given.ratio(name)?))).collect();
    NodeRule {
        selector: selector(item, "selector").unwrap_or_else(Selector::nothing),
        targets: targets(item),
        thresholds,
    }
}

pub(crate) fn exempt(spec: &Fields<'_>) -> Exempt {
    let given = spec.object("exempt", &["namespaces", "podSelector"]);
    let mut pod_selector = selector(&given, "podSelector");
    // Elsewhere an empty selector matches everything. Here that would switch all load rules off, which nobody
    // writes in this way on purpose.
    if pod_selector.as_ref().and_then(Selector::requirements).is_some_and(<[_]>::is_empty) {
        given.warn("podSelector", "it is empty and exempts no pod; to exempt all, use no load rules");
        pod_selector = None;
    }
    Exempt { namespaces: given.texts("namespaces"), pod_selector }
}

/// A selector as workloads have it; what is wrong with it is noted.
fn selector(of: &Fields<'_>, name: &str) -> Option<Selector> {
    let given = of.has(name).then(|| of.object(name, &["matchLabels", "matchExpressions"]))?;
    let labels = given.open("matchLabels");
    let match_labels = labels.names().map(|key| (key.to_owned(), labels.text(key).to_owned())).collect();
    let match_expressions = given
        .list("matchExpressions", &["key", "operator", "values"])
        .map(|item| Expression {
            key: item.text("key").to_owned(),
            operator: item.text("operator").to_owned(),
            values: item.texts("values"),
        })
        .collect();
    let selector = LabelSelector { match_labels, match_expressions }.selector();
    selector.map_err(|error| of.wrong(name, &error.to_string())).ok()
}

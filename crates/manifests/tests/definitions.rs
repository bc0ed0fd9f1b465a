//! Objects are held to the definitions that come with the program: what these fill in is what is decided by.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use jiff::Timestamp;
use loadline_core::object::Key;
use loadline_core::place::{Options, Report};
use loadline_manifests::{Manifests, PlaceInput, Problem};

const GROUP: &str = "cluster.open-cluster-management.io";

/// A fleet of one cluster with such a spec, and a placement with such a one that may use it.
fn fleet(cluster: &str, placement: &str) -> String {
    format!(
        "
{{apiVersion: {GROUP}/v1, kind: ManagedCluster, metadata: {{name: a}}, spec: {cluster}}}
---
{{apiVersion: {GROUP}/v1beta2, kind: ManagedClusterSet, metadata: {{name: all}},
  spec: {{clusterSelector: {{selectorType: LabelSelector, labelSelector: {{}}}}}}}}
---
{{apiVersion: {GROUP}/v1beta2, kind: ManagedClusterSetBinding, metadata: {{name: all, namespace: ns}}, spec: {{clusterSet: all}}}}
---
{{apiVersion: {GROUP}/v1beta1, kind: Placement, metadata: {{name: p, namespace: ns}}, spec: {placement}}}
"
    )
}

fn read(text: &str) -> PlaceInput {
    PlaceInput::read(Manifests::parse("fleet.yaml", text, PlaceInput::KINDS), Options::default()).unwrap()
}

fn report(mut input: PlaceInput) -> Report {
    let key = input.fleet.placements().next().unwrap().key.clone();
    input.fleet.report(&key, &input.judge, Timestamp::UNIX_EPOCH).unwrap()
}

fn told(warnings: &[Problem]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn an_expression_sees_what_the_definition_fills_in() {
    let asks = "{predicates: [{requiredClusterSelector: {celSelector: \
                {celExpressions: ['managedCluster.spec.leaseDurationSeconds == 60']}}}]}";
    for (why, cluster, selected) in [
        ("not said: the definition says 60", "{hubAcceptsClient: true}", 1),
        ("another one", "{leaseDurationSeconds: 30}", 0),
    ] {
        let outcome = report(read(&fleet(cluster, asks))).outcome;
        assert_eq!(outcome.selected.len(), selected, "{why}: {:?}", outcome.conditions);
    }
}

#[test]
fn an_unknown_field_is_told_once_and_not_seen() {
    let asks = "{colour: red, predicates: [{requiredClusterSelector: {celSelector: \
                {celExpressions: ['has(managedCluster.spec.colour)']}}}]}";
    let input = read(&fleet("{colour: blue}", asks));
    assert_eq!(
        told(&input.warnings),
        [
            "fleet.yaml: document 1: spec.colour: unknown field, overlooked",
            "fleet.yaml: document 4: spec.colour: unknown field, overlooked",
        ]
    );
    assert!(report(input).outcome.selected.is_empty());
}

#[test]
fn a_status_was_observed_and_stays_as_it_is() {
    let decision = format!(
        "{{apiVersion: {GROUP}/v1beta1, kind: PlacementDecision, metadata: {{name: p-decision-1, namespace: ns}},
           status: {{decisions: [{{clusterName: a, reason: '', colour: blue}}]}}}}"
    );
    let input = read(&format!("{}\n---\n{decision}", fleet("{}", "{}")));
    assert_eq!(told(&input.warnings), Vec::<String>::new());
    let written = input.decisions.values().next().unwrap();
    assert_eq!(written["status"]["decisions"][0]["colour"], "blue");
}

#[test]
fn what_the_api_server_would_refuse_is_refused_with_everything_else() {
    let text = fleet("{taints: [{key: k, effect: NoSchedule}]}", "{numberOfClusters: -1}") + "---\nkind: 3\n";
    let read = PlaceInput::read(Manifests::parse("fleet.yaml", &text, PlaceInput::KINDS), Options::default());
    assert_eq!(
        read.unwrap_err().to_string(),
        "fleet.yaml: document 1: spec.taints[0].effect: expected one of \"NoSelect\", \"PreferNoSelect\", \"NoSelectIfNew\", found \"NoSchedule\"\n\
         fleet.yaml: document 4: spec.numberOfClusters: expected it to be greater than or equal to 0, found -1\n\
         fleet.yaml: document 5: kind: expected a kind such as Pod, found the number 3"
    );
}

#[test]
fn what_others_wrote_into_a_hub_keeps_nobody_from_an_answer_about_a_placement() {
    // A taint our definition does not know, and a placement and a set that cannot be read.
    let text = fleet("{taints: [{key: k, effect: NoSchedule}]}", "{numberOfClusters: 1}")
        + &format!(
            "---\n{{apiVersion: {GROUP}/v1beta1, kind: Placement, metadata: {{name: odd, namespace: ns}}, \
             spec: {{numberOfClusters: many}}}}\n\
             ---\n{{apiVersion: {GROUP}/v1beta2, kind: ManagedClusterSet, metadata: {{name: odd}}, \
             spec: {{clusterSelector: 7}}}}\n---\nkind: 3\n"
        );
    let live = || Manifests::parse("hub", &text, PlaceInput::KINDS);
    let input = PlaceInput::of_hub(live(), Options::default(), &Key::new("ns", "p")).unwrap();
    let warnings = told(&input.warnings);
    for part in ["document 5: spec.numberOfClusters", "document 6: spec.clusterSelector", "document 7: kind"]
    {
        let about: Vec<_> = warnings.iter().filter(|warning| warning.contains(part)).collect();
        assert!(matches!(about[..], [one] if one.ends_with("; it is left out")), "{part}: {warnings:?}");
    }
    let found = report(input);
    assert_eq!(found.clusters.len(), 1, "the cluster counts, as it does for a controller: {found:?}");
    let wrong =
        PlaceInput::of_hub(live(), Options::default(), &Key::new("ns", "odd")).unwrap_err().to_string();
    assert!(wrong.starts_with("hub: document 5: spec.numberOfClusters: "), "{wrong}");
    assert_eq!(wrong.lines().count(), 1, "{wrong}");
}

//! Which clusters are wanted? A `Placement`.

use super::{DISABLED, LOAD_MAX_AGE, LOAD_SOURCE, MARGIN, MIN_DWELL, MISSING_DATA, STICKY_GROUPS, defaults};
use crate::context::key;
use crate::duration;
use crate::json::Tree;
use crate::read::{At, Error, Warning, tolerant};
use jiff::SignedDuration;
use loadline_core::place::{
    Configuration, Constraint, Coordinate, Extra, GroupRule, GroupSize, Missing, Placement, Predicate,
    SortBy, Source, Status, Toleration, TopologyKind,
};
use loadline_core::select::LabelSelector;

/// Reads a `Placement`. An annotation of ours that does not read is left out with a warning.
///
/// # Errors
/// When the object is not what it should be.
pub fn read(value: &Tree<'_>) -> Result<(Placement, Vec<Warning>), Error> {
    tolerant("Placement", value, |root| {
        let (metadata, spec, status) = (root.get("metadata"), root.get("spec"), root.get("status"));
        let annotations = metadata.get("annotations");
        let (policy, spread) = (spec.get("prioritizerPolicy"), spec.get("spreadPolicy"));
        let strategy = spec.get("decisionStrategy");
        let strategy = strategy.get("groupStrategy");
        if !spec.is_set() {
            spec.fail("expected an object, found nothing");
        }
        let (predicates, configurations) = (spec.get("predicates"), policy.get("configurations"));
        let (tolerations, terms) = (spec.get("tolerations"), spread.get("spreadConstraints"));
        let groups = strategy.get("decisionGroups");
        Placement {
            key: key(&metadata),
            uid: metadata.get("uid").string(),
            generation: metadata.get("generation").int(),
            disabled: annotations.get(DISABLED).text() == Some("true"),
            cluster_sets: spec.get("clusterSets").strings(),
            count: spec.get("numberOfClusters").int32(),
            predicates: predicates.items().map(|at| predicate(&at)).collect(),
            mode: policy.get("mode").text().unwrap_or(defaults::PRIORITIZER_MODE).to_owned(),
            configurations: configurations.items().map(|at| configuration(&at)).collect(),
            tolerations: tolerations.items().map(|at| toleration(&at)).collect(),
            spread: terms.items().map(|at| constraint(&at)).collect(),
            groups: groups.items().map(|at| group(&at)).collect(),
            group_size: group_size(&strategy.get("clustersPerDecisionGroup")),
            sort_by: match spec.get("sortBy").text().unwrap_or(defaults::SORT_BY) {
                "Score" => SortBy::Score,
                _ => SortBy::Name,
            },
            score_rate: score_rate(&spec.get("scoreRateLimit")),
            extra: extra(&annotations),
            status: last(&status),
        }
    })
}

fn selector(at: &At<'_, '_>) -> LabelSelector {
    at.some().and_then(|at| at.parse()).unwrap_or_default()
}

fn predicate(at: &At<'_, '_>) -> Predicate {
    let required = at.get("requiredClusterSelector");
    let (claims, cel) = (required.get("claimSelector"), required.get("celSelector"));
    Predicate {
        labels: selector(&required.get("labelSelector")),
        claims: claims.get("matchExpressions").list(),
        cel: cel.get("celExpressions").strings(),
    }
}

/// Named by a coordinate, or, as the first version had it, by a name.
fn configuration(at: &At<'_, '_>) -> Configuration {
    let (coordinate, name) = (at.get("scoreCoordinate"), at.get("name"));
    let named = || Some(Coordinate::BuiltIn(name.text()?.to_owned()));
    Configuration {
        coordinate: if coordinate.is_set() { Some(scored(&coordinate)) } else { named() },
        weight: at.get("weight").int32().unwrap_or(defaults::WEIGHT),
    }
}

fn scored(at: &At<'_, '_>) -> Coordinate {
    let add_on = at.get("addOn");
    match at.get("type").text().unwrap_or(defaults::SCORE_TYPE) {
        "AddOn" => Coordinate::AddOn(
            add_on.is_set().then(|| (add_on.get("resourceName").string(), add_on.get("scoreName").string())),
        ),
        _ => Coordinate::BuiltIn(at.get("builtIn").string()),
    }
}

fn toleration(at: &At<'_, '_>) -> Toleration {
    Toleration {
        key: at.get("key").string(),
        operator: at.get("operator").text().unwrap_or(defaults::TOLERATION_OPERATOR).to_owned(),
        value: at.get("value").string(),
        effect: at.get("effect").string(),
        seconds: at.get("tolerationSeconds").int(),
    }
}

fn constraint(at: &At<'_, '_>) -> Constraint {
    Constraint {
        key: at.get("topologyKey").needed(),
        kind: match at.get("topologyKeyType").text() {
            Some("Claim") => TopologyKind::Claim,
            _ => TopologyKind::Label,
        },
        max_skew: at.get("maxSkew").int().unwrap_or(defaults::MAX_SKEW.into()).max(1),
        required: at.get("whenUnsatisfiable").text().unwrap_or(defaults::WHEN_UNSATISFIABLE)
            == "DoNotSchedule",
    }
}

fn group(at: &At<'_, '_>) -> GroupRule {
    let chosen = at.get("groupClusterSelector");
    let claims = chosen.get("claimSelector");
    GroupRule {
        name: at.get("groupName").string(),
        labels: selector(&chosen.get("labelSelector")),
        claims: claims.get("matchExpressions").list(),
    }
}

fn group_size(at: &At<'_, '_>) -> GroupSize {
    match at.value() {
        Tree::Null => GroupSize::Text(defaults::CLUSTERS_PER_DECISION_GROUP.to_owned()),
        Tree::String(text) => GroupSize::Text(text.clone().into_owned()),
        _ => at.int().map_or(GroupSize::All, GroupSize::Count),
    }
}

/// `90s`, `1m`, `2h`.
fn score_rate(at: &At<'_, '_>) -> Option<SignedDuration> {
    let text = at.text().unwrap_or(defaults::SCORE_RATE_LIMIT);
    let rate = duration::parse(text);
    if rate.is_none() {
        at.fail(format!("expected a time such as 30s, 1m or 1h, found {text:?}"));
    }
    rate
}

/// What only we know.
fn extra(annotations: &At<'_, '_>) -> Extra {
    let default = Extra::default();
    let span = |text: &str| duration::parse(text).filter(SignedDuration::is_positive);
    let source = |text: &str| match text {
        "static" => Some(Source::Static),
        "requested" => Some(Source::Requested),
        "measured" => Some(Source::Measured),
        _ => None,
    };
    let missing = |text: &str| match text {
        "middle" => Some(Missing::Middle),
        "worst" => Some(Missing::Worst),
        _ => None,
    };
    let points = |text: &str| text.parse().ok().filter(|points: &i64| *points >= 0);
    let truth = |text: &str| text.parse().ok();
    Extra {
        source: annotation(annotations, LOAD_SOURCE, "static, requested or measured", source)
            .unwrap_or_default(),
        max_age: annotation(annotations, LOAD_MAX_AGE, "a time such as 5m", span).unwrap_or(default.max_age),
        missing: annotation(annotations, MISSING_DATA, "middle or worst", missing),
        margin: annotation(annotations, MARGIN, "a number of points, 0 or more", points),
        dwell: annotation(annotations, MIN_DWELL, "a time such as 10m", span),
        sticky: annotation(annotations, STICKY_GROUPS, "true or false", truth).unwrap_or_default(),
    }
}

/// What an annotation says; none if it is not there, none and a warning if it does not read.
fn annotation<T>(
    annotations: &At<'_, '_>,
    key: &str,
    expected: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let at = annotations.get(key);
    let text = at.text()?;
    let found = read(text.trim());
    if found.is_none() {
        at.warn(format!("expected {expected}, found {text:?}; it is left out"));
    }
    found
}

/// What was last said. Nobody is asked to write a status better: what does not read was not said.
fn last(status: &At<'_, '_>) -> Status {
    let known = status.attempt(status.value(), |status| {
        let conditions = status.get("conditions");
        let one = |at: At<'_, '_>| {
            let since = at.get("lastTransitionTime").time()?;
            Some((at.get("type").string(), at.get("status").text() == Some("True"), since))
        };
        Status {
            conditions: conditions.items().filter_map(one).collect(),
            last_score_update: status.get("lastScoreUpdateTime").time(),
        }
    });
    known.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn placement(value: &Value) -> (Placement, Vec<String>) {
        let (placement, warnings) = read(&Tree::from(value)).unwrap();
        (placement, warnings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn both_spellings_of_a_prioritizer_are_read() {
        // Row A9: the coordinate wins over the name.
        let (read, warnings) = placement(&json!({
            "apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "Placement",
            "metadata": {"name": "p", "namespace": "ns1"},
            "spec": {"numberOfClusters": 3, "prioritizerPolicy": {"mode": "Exact", "configurations": [
                {"name": "ResourceRatioCPU"},
                {"name": "Steady", "weight": 0},
                {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Balance"}, "name": "Steady", "weight": -10},
                {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}}, "weight": 3},
                {"scoreCoordinate": {"type": "AddOn"}},
                {"weight": 2},
            ]}},
        }));
        let built_in = |name: &str| Some(Coordinate::BuiltIn(name.to_owned()));
        let want = [
            (built_in("ResourceRatioCPU"), 1),
            (built_in("Steady"), 0),
            (built_in("Balance"), -10),
            (Some(Coordinate::AddOn(Some(("r".into(), "s".into())))), 3),
            (Some(Coordinate::AddOn(None)), 1),
            (None, 2),
        ];
        let want = want.map(|(coordinate, weight)| Configuration { coordinate, weight });
        assert_eq!(
            (read.key.to_string().as_str(), read.count, read.mode.as_str()),
            ("ns1/p", Some(3), "Exact")
        );
        assert_eq!((read.configurations.as_slice(), warnings.len()), (&want[..], 0));
    }

    #[test]
    fn everything_a_placement_can_say_is_read() {
        let (read, _) = placement(&json!({
            "metadata": {"name": "p", "uid": "u1", "generation": 7, "annotations": {super::DISABLED: "true"}},
            "spec": {
                "clusterSets": ["a"],
                "predicates": [{"requiredClusterSelector": {
                    "labelSelector": {"matchLabels": {"x": "y"}},
                    "claimSelector": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
                    "celSelector": {"celExpressions": ["true"]}}}],
                "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSelect", "tolerationSeconds": 30}],
                "spreadPolicy": {"spreadConstraints": [
                    {"topologyKey": "zone", "topologyKeyType": "Claim", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}]},
                "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "25%", "decisionGroups": [
                    {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"c": "1"}}}}]}},
                "sortBy": "Score", "scoreRateLimit": "90s",
            },
            "status": {"lastScoreUpdateTime": "2025-01-01T00:00:00Z", "conditions": [
                {"type": "PlacementSatisfied", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}]},
        }));
        assert!(read.disabled && read.spread[0].required && read.spread[0].kind == TopologyKind::Claim);
        assert_eq!((read.uid.as_str(), read.generation, read.predicates[0].cel.len()), ("u1", Some(7), 1));
        assert_eq!((read.predicates[0].claims.len(), read.tolerations[0].seconds), (1, Some(30)));
        assert_eq!(
            (read.groups[0].name.as_str(), &read.group_size),
            ("canary", &GroupSize::Text("25%".into()))
        );
        assert_eq!((read.sort_by, read.score_rate), (SortBy::Score, Some(SignedDuration::from_secs(90))));
        assert_eq!(read.status.conditions.len(), 1);
    }

    #[test]
    fn a_bad_annotation_changes_nothing_and_is_told() {
        let annotations = json!({
            super::LOAD_SOURCE: "guessed", super::MARGIN: "-3", super::MIN_DWELL: "10m", super::STICKY_GROUPS: "yes",
            super::MISSING_DATA: "worst", super::LOAD_MAX_AGE: "90s",
        });
        let (read, warnings) =
            placement(&json!({"metadata": {"name": "p", "annotations": annotations}, "spec": {}}));
        let want = Extra {
            dwell: Some(SignedDuration::from_mins(10)),
            missing: Some(Missing::Worst),
            max_age: SignedDuration::from_secs(90),
            ..Extra::default()
        };
        assert_eq!(read.extra, want);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert_eq!(
            warnings[0],
            "Placement p: metadata.annotations[loadline.dev/load-source]: expected static, requested or measured, found \"guessed\"; it is left out"
        );
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let bad = json!({"metadata": {"name": ""}, "spec": {"numberOfClusters": "three", "clusterSets": "a", "tolerations": [1]}});
        let error = read(&Tree::from(&bad)).unwrap_err();
        let paths: Vec<_> = error.problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(
            paths,
            ["metadata.name", "spec.clusterSets", "spec.numberOfClusters", "spec.tolerations[0]"]
        );
    }

    /// What the API server would write into an object, by the schema of its kind.
    fn fill(schema: &Value, object: &mut Value) {
        if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), object.as_object_mut()) {
            for (name, schema) in properties {
                if let Some(default) = schema.get("default") {
                    fields.entry(name).or_insert_with(|| default.clone());
                }
                if let Some(object) = fields.get_mut(name) {
                    fill(schema, object);
                }
            }
        }
        for item in object.as_array_mut().into_iter().flatten() {
            fill(&schema["items"], item);
        }
    }

    #[test]
    fn an_object_reads_the_same_before_and_after_a_server_has_filled_it_in() {
        let text = super::super::DEFINITIONS.iter().find(|text| text.contains("kind: Placement\n")).unwrap();
        let definition: Value = serde_saphyr::from_str(text).unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for (spec, filled) in [
            (json!({}), 2),
            (json!({"prioritizerPolicy": {}}), 3),
            (
                json!({"prioritizerPolicy": {"configurations": [{"name": "Steady"}, {"scoreCoordinate": {"builtIn": "Steady"}}]}}),
                6,
            ),
            (json!({"tolerations": [{"key": "k"}, {"operator": "Exists"}]}), 3),
            (
                json!({"spreadPolicy": {"spreadConstraints": [{"topologyKey": "zone", "topologyKeyType": "Label"}]}}),
                4,
            ),
            (json!({"decisionStrategy": {"groupStrategy": {}}}), 3),
            (json!({"sortBy": "Score", "scoreRateLimit": "5m"}), 0),
        ] {
            let raw = json!({"metadata": {"name": "p"}, "spec": spec});
            let mut full = raw.clone();
            fill(schema, &mut full);
            let more = full.to_string().matches(':').count() - raw.to_string().matches(':').count();
            assert_eq!(more, filled, "{full}");
            assert_eq!(placement(&raw), placement(&full), "{raw}");
        }
    }
}

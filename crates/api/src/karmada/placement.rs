//! Where may it go, and how is it divided?

use crate::read::At;
use loadline_core::divide::{Affinity, By, Division, Group, Placement, Spread, Weights};

/// How many characters the name of an affinity group may have.
const NAME: usize = 32;

/// Who wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// A policy: admission has filled in what is missing.
    Admitted,
    /// A binding, as it is.
    AsIs,
}

pub(super) fn placement(at: &At<'_, '_>, written: Written) -> Placement {
    let group = |at: At<'_, '_>| Group {
        name: group_name(&at),
        affinity: affinity(&at),
        overflow: at
            .get("overflowAffinities")
            .items()
            .map(|at| {
                group_name(&at);
                affinity(&at)
            })
            .collect(),
    };
    if at.get("workloadAffinity").is_set() {
        at.get("workloadAffinity").warn("nearness to other workloads is not looked at");
    }
    Placement {
        affinity: at.get("clusterAffinity").some().map(|at| affinity(&at)),
        groups: at.get("clusterAffinities").items().map(group).collect(),
        tolerations: at.get("clusterTolerations").list(),
        spread: at.get("spreadConstraints").items().map(|at| spread(&at, written)).collect(),
        division: division(&at.get("replicaScheduling"), written),
    }
}

fn group_name(at: &At<'_, '_>) -> String {
    let at = at.get("affinityName");
    let name = at.needed();
    if name.chars().count() > NAME {
        at.fail(format!("expected at most {NAME} characters, found {}", name.chars().count()));
    }
    name
}

pub(super) fn affinity(at: &At<'_, '_>) -> Affinity {
    let fields = at.get("fieldSelector");
    Affinity {
        labels: at.get("labelSelector").parse(),
        fields: fields.is_set().then(|| fields.get("matchExpressions").list()),
        names: at.get("clusterNames").strings(),
        exclude: at.get("exclude").strings(),
    }
}

fn spread(at: &At<'_, '_>, written: Written) -> Spread {
    let (field, label) = (at.get("spreadByField"), at.get("spreadByLabel"));
    let by = match (field.text(), label.text()) {
        (Some(_), Some(_)) => {
            label.fail("spreadByField and spreadByLabel exclude each other");
            By::Unsaid
        }
        (None, Some(key)) => By::Label(key.to_owned()),
        (None, None) if written == Written::Admitted => By::Cluster,
        (None, None) => By::Unsaid,
        (Some("cluster"), _) => By::Cluster,
        (Some("region"), _) => By::Region,
        (Some("zone"), _) => By::Zone,
        (Some("provider"), _) => By::Provider,
        (Some(other), _) => {
            field.fail(format!("expected cluster, region, zone or provider, found {other:?}"));
            By::Unsaid
        }
    };
    let min = at.get("minGroups").int().unwrap_or_default();
    Spread {
        by,
        min: if min == 0 && written == Written::Admitted { 1 } else { min },
        max: at.get("maxGroups").int().unwrap_or_default(),
    }
}

fn division(at: &At<'_, '_>, written: Written) -> Division {
    if !at.is_set() {
        return Division::Duplicated;
    }
    let (kind, preference) = (at.get("replicaSchedulingType"), at.get("replicaDivisionPreference"));
    let weights = at.get("weightPreference").some().map(|at| weights(&at));
    match (kind.text(), preference.text()) {
        (Some("Duplicated"), _) => Division::Duplicated,
        // The schema itself makes it divided.
        (Some("Divided") | None, Some("Aggregated")) => Division::Aggregated,
        (Some("Divided") | None, Some("Weighted")) => Division::Weighted(weights),
        (Some("Divided") | None, None) if written == Written::Admitted => Division::Weighted(weights),
        (Some("Divided") | None, None) => {
            Division::Unknown { kind: "Divided".into(), preference: String::new() }
        }
        (Some("Divided") | None, Some(other)) => {
            preference.fail(format!("expected Aggregated or Weighted, found {other:?}"));
            Division::Duplicated
        }
        (Some(other), _) => {
            kind.fail(format!("expected Duplicated or Divided, found {other:?}"));
            Division::Duplicated
        }
    }
}

fn weights(at: &At<'_, '_>) -> Weights {
    let rule = |at: At<'_, '_>| {
        let weight = at.get("weight");
        let number = weight.int().unwrap_or_default();
        if number < 1 {
            weight.fail(format!("expected 1 or more, found {number}"));
        }
        (affinity(&at.get("targetCluster")), number)
    };
    let dynamic = at.get("dynamicWeight");
    if let Some(other) = dynamic.text().filter(|text| *text != "AvailableReplicas") {
        dynamic.fail(format!("expected AvailableReplicas, found {other:?}"));
    }
    Weights {
        fixed: at.get("staticWeightList").items().map(rule).collect(),
        dynamic: dynamic.text().is_some(),
    }
}

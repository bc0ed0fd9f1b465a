//! May accounts do what components need? Asked of the API server, one question for each verb.

use super::read::Reader;
use crate::cluster::resource::Resource;
use futures::future::join_all;
use loadline_core::doctor::{Component, Failed, Known, Need, Permission, Workload, needs};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SELF: Resource =
    Resource::new("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview");
const OTHER: Resource =
    Resource::new("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview");

/// What the account that asks may do as these components, with the flags that need most.
pub(super) async fn own(reader: &Reader, components: &[Component]) -> Known<Vec<Permission>> {
    if components.is_empty() {
        return Known::Unasked;
    }
    let flags = ["--act", "--leader-elect", "--load"].map(str::to_owned);
    let of = |one: Component| needs(one, &flags).into_iter().map(move |need| (one, need));
    let all: Vec<(Component, Need)> = components.iter().copied().flat_map(of).collect();
    let asked = join_all(all.into_iter().map(|(component, need)| one(reader, "", component, need))).await;
    asked.into_iter().collect::<Result<Vec<_>, Failed>>().into()
}

/// What the accounts of components that run in the cluster may do.
pub(super) async fn of_accounts(
    reader: &Reader,
    workloads: Option<&Vec<Workload>>,
) -> Known<Vec<Permission>> {
    let mut wanted: BTreeSet<(String, Component, Need)> = BTreeSet::new();
    for workload in workloads.into_iter().flatten() {
        let Some((component, flags)) = Component::of(workload) else { continue };
        if !component.is_itself(flags) {
            continue;
        }
        let account = format!("system:serviceaccount:{}:{}", workload.key.namespace, workload.account);
        for need in needs(component, flags) {
            wanted.insert((account.clone(), component, need));
        }
    }
    if wanted.is_empty() {
        return Known::Unasked;
    }
    let asked =
        wanted.iter().map(|(account, component, need)| one(reader, account, *component, need.clone()));
    join_all(asked).await.into_iter().collect::<Result<Vec<_>, Failed>>().into()
}

/// One question; an empty account is whoever asks.
async fn one(reader: &Reader, account: &str, component: Component, need: Need) -> Result<Permission, Failed> {
    let resource = if account.is_empty() { SELF } else { OTHER };
    let mut spec = json!({"resourceAttributes": {
        "verb": need.verb, "group": need.group, "resource": need.resource,
        "subresource": need.subresource, "namespace": need.namespace,
    }});
    if !account.is_empty() {
        spec["user"] = Value::from(account);
        // By these, roles are bound to all accounts of a namespace.
        let namespace = account.split(':').nth(2).unwrap_or_default();
        spec["groups"] = json!([
            "system:serviceaccounts",
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated"
        ]);
    }
    let review = json!({"apiVersion": resource.api_version(), "kind": resource.kind, "spec": spec});
    let allowed = reader.review(resource, review.to_string().into_bytes()).await?;
    Ok(Permission { account: account.to_owned(), component, need, allowed })
}

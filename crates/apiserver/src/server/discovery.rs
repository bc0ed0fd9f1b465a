//! What the server tells about itself: groups, resources, schemas, version and health.

use super::{Answer, ApiServer, encode, finish};
use crate::registry::{Group, Registry, Resource, group_version};
use crate::request::Path;
use crate::schema::openapi;
use crate::status::Status;
use http::Method;
use serde_json::{Value, json};

/// The release whose behaviour this server follows.
const MINOR: &str = "36";

impl ApiServer {
    pub(super) fn meta_path(
        &self,
        method: &Method,
        path: &Path,
        accept: Option<&str>,
    ) -> Result<Answer, Status> {
        let registry = self.registry();
        match path {
            Path::Unknown => return Err(finish::unknown_path()),
            Path::Malformed => return Err(finish::malformed_path()),
            Path::EmptyNamespace => return Err(Status::bad_request("Namespace parameter required.")),
            _ => {}
        }
        // Upstream lists groups whatever the method is.
        if method != Method::GET && method != Method::HEAD && *path != Path::Groups {
            return Err(Status::method_not_allowed());
        }
        let aggregated = accept.is_some_and(|a| a.split(',').any(|c| c.contains("as=APIGroupDiscoveryList")));
        let value = match path {
            Path::Health => return Ok(Answer::Text(200, "ok".to_owned())),
            Path::Root => root(&registry),
            Path::Version => version(),
            Path::Legacy | Path::Groups if aggregated => {
                let core = *path == Path::Legacy;
                return Ok(discovery_list(&registry, accept, |g| g.name.is_empty() == core));
            }
            Path::Legacy => json!({
                "kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
            }),
            Path::Groups => {
                let groups: Vec<Value> =
                    registry.groups().iter().filter(|g| !g.name.is_empty()).map(group).collect();
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            }
            Path::Group(name) => {
                let found = registry.groups().iter().find(|g| g.name == *name && !name.is_empty());
                let mut value = group(found.ok_or_else(finish::unknown_path)?);
                value["kind"] = json!("APIGroup");
                value["apiVersion"] = json!("v1");
                value
            }
            Path::GroupVersion(group, version) => resource_list(&registry, group, version)?,
            Path::OpenApiV3(None) => {
                return Ok(Answer::Special(
                    "text/plain; charset=utf-8",
                    encode::to_bytes(&openapi_index(&registry)),
                ));
            }
            Path::OpenApiV3(Some(path)) => match openapi_document(&registry, path) {
                Some(document) => document,
                None => return Ok(Answer::Bare(404)),
            },
            Path::OpenApiV2 => {
                let document = openapi::v2(&served(&registry));
                if accept.is_some_and(|a| openapi::gnostic::ASKED.iter().any(|media| a.contains(media))) {
                    let body = openapi::gnostic::encode(&document).into();
                    return Ok(Answer::Special(openapi::gnostic::MEDIA, body));
                }
                document
            }
            _ => return Err(finish::unknown_path()),
        };
        Ok(Answer::Json(200, encode::to_bytes(&value)))
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR, "gitVersion": format!("v1.{MINOR}.0+loadline"), "gitCommit": "", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
    })
}

fn root(registry: &Registry) -> Value {
    let mut paths: Vec<String> = [
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    for group in registry.groups().iter().filter(|g| !g.name.is_empty()) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|v| format!("/apis/{}/{v}", group.name)));
    }
    paths.sort();
    json!({"paths": paths})
}

fn group(group: &Group) -> Value {
    let version = |v: &String| json!({"groupVersion": group_version(&group.name, v), "version": v});
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    json!({"name": group.name, "versions": versions, "preferredVersion": versions.first()})
}

fn resource_list(registry: &Registry, group: &str, version: &str) -> Result<Value, Status> {
    let mut resources = Vec::new();
    for resource in registry.resources(group, version) {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": resource.verbs,
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        resources.push(entry);
        for sub in &resource.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
                "namespaced": resource.namespaced, "kind": sub.kind, "verbs": sub.verbs,
            });
            if !sub.group.is_empty() || !sub.version.is_empty() {
                entry["group"] = json!(sub.group);
                entry["version"] = json!(sub.version);
            }
            resources.push(entry);
        }
    }
    if resources.is_empty() {
        return Err(finish::no_such_resource(registry, group));
    }
    let mut list = json!({
        "kind": "APIResourceList", "groupVersion": group_version(group, version), "resources": resources,
    });
    // The oldest part of the API leaves this out.
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Ok(list)
}

/// Everything about the groups that `pick` picks, in one answer.
fn discovery_list(registry: &Registry, accept: Option<&str>, pick: impl Fn(&Group) -> bool) -> Answer {
    let accept = accept.unwrap_or_default();
    let newest = accept.contains("v=v2;") || accept.contains("v=v2,") || accept.ends_with("v=v2");
    let items: Vec<Value> = registry
        .groups()
        .iter()
        .filter(|g| pick(g))
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        registry.resources(&group.name, version).map(|r| discovered(r)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let (version, media) = if newest || !accept.contains("v=v2beta1") {
        ("v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
    } else {
        ("v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList")
    };
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {},
        "items": items,
    });
    Answer::Special(media, encode::to_bytes(&list))
}

fn discovered(resource: &Resource) -> Value {
    // Built-in resources leave out what is theirs anyway.
    let (group, version) = match &resource.custom {
        Some(_) => (resource.group.as_str(), resource.version.as_str()),
        None => ("", ""),
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": {"group": group, "version": version, "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let subresources: Vec<Value> = resource
        .subresources
        .iter()
        .map(|sub| {
            let (group, version) = if sub.version.is_empty() {
                (group, version)
            } else {
                (sub.group.as_str(), sub.version.as_str())
            };
            json!({
                "subresource": sub.name, "verbs": sub.verbs,
                "responseKind": {"group": group, "version": version, "kind": sub.kind},
            })
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = json!(subresources);
    }
    entry
}

/// What is served, as the OpenAPI writer wants it.
fn served(registry: &Registry) -> Vec<openapi::GroupVersion> {
    let mut all = Vec::new();
    for group in registry.groups() {
        for version in &group.versions {
            all.push(openapi::GroupVersion {
                group: group.name.clone(),
                version: version.clone(),
                resources: registry.resources(&group.name, version).map(|r| described(r)).collect(),
            });
        }
    }
    all
}

fn described(resource: &Resource) -> openapi::Resource {
    openapi::Resource {
        plural: resource.plural.clone(),
        kind: resource.kind.clone(),
        list_kind: resource.list_kind(),
        namespaced: resource.namespaced,
        verbs: resource.verbs.clone(),
        subresources: resource
            .subresources
            .iter()
            .map(|sub| openapi::Subresource {
                name: sub.name.clone(),
                kind: (!sub.version.is_empty())
                    .then(|| (sub.group.clone(), sub.version.clone(), sub.kind.clone())),
                verbs: sub.verbs.clone(),
            })
            .collect(),
        custom: resource.custom.as_ref().map(|c| {
            c.raw_schema()
                .cloned()
                .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))
        }),
    }
}

fn openapi_path(served: &openapi::GroupVersion) -> String {
    if served.group.is_empty() {
        format!("api/{}", served.version)
    } else {
        format!("apis/{}/{}", served.group, served.version)
    }
}

fn openapi_index(registry: &Registry) -> Value {
    let hashed: Vec<(String, String)> =
        served(registry).iter().map(|gv| (openapi_path(gv), openapi::hash(&openapi::document(gv)))).collect();
    openapi::index(hashed.iter().map(|(path, hash)| (path.as_str(), hash.as_str())))
}

fn openapi_document(registry: &Registry, path: &str) -> Option<Value> {
    let found = served(registry).into_iter().find(|gv| openapi_path(gv) == path);
    found.map(|gv| openapi::document(&gv))
}

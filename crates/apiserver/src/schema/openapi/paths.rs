//! The operations of a group and version.

use super::{DELETE_OPTIONS, GroupVersion, PATCH, Resource, STATUS, definition, reference};
use serde_json::{Map, Value, json};

/// What an operation is called in paths and in the documents.
struct Operation<'a> {
    /// Verb of discovery.
    verb: &'a str,
    /// HTTP method.
    method: &'a str,
    /// What upstream calls it.
    action: &'a str,
    /// How its id begins.
    word: &'a str,
}

const COLLECTION: [Operation<'_>; 3] = [
    Operation { verb: "list", method: "get", action: "list", word: "list" },
    Operation { verb: "create", method: "post", action: "post", word: "create" },
    Operation { verb: "deletecollection", method: "delete", action: "deletecollection", word: "delete" },
];
const ITEM: [Operation<'_>; 5] = [
    Operation { verb: "get", method: "get", action: "get", word: "read" },
    Operation { verb: "update", method: "put", action: "put", word: "replace" },
    Operation { verb: "patch", method: "patch", action: "patch", word: "patch" },
    Operation { verb: "delete", method: "delete", action: "delete", word: "delete" },
    // Subresources such as `binding` are created below an object.
    Operation { verb: "create", method: "post", action: "post", word: "create" },
];

/// What operations on one path have in common.
struct Place<'a> {
    served: &'a GroupVersion,
    kind: (&'a str, &'a str, &'a str),
    /// What is returned by a list.
    list: String,
    /// End of the ids of the operations.
    id: String,
    custom: bool,
}

/// All paths with their operations.
pub(super) fn paths(served: &GroupVersion) -> Map<String, Value> {
    let mut out = Map::new();
    let base = format!("/{}", served.path());
    for resource in &served.resources {
        let Resource { plural, kind, .. } = resource;
        let scoped = if resource.namespaced {
            format!("{base}/namespaces/{{namespace}}/{plural}")
        } else {
            format!("{base}/{plural}")
        };
        let scope = if resource.namespaced { "Namespaced" } else { "" };
        let place = |kind, id: String| Place {
            served,
            kind,
            list: served.definition(&resource.list_kind()),
            id,
            custom: resource.custom.is_some(),
        };
        let own = (served.group.as_str(), served.version.as_str(), kind.as_str());
        let verbs = &resource.verbs;
        add(&mut out, &scoped, place(own, format!("{scope}{kind}")).operations(&COLLECTION, verbs));
        if resource.namespaced {
            let everywhere = place(own, format!("{kind}ForAllNamespaces"));
            add(&mut out, &format!("{base}/{plural}"), everywhere.operations(&COLLECTION[..1], verbs));
        }
        let item = format!("{scoped}/{{name}}");
        add(&mut out, &item, place(own, format!("{scope}{kind}")).operations(&ITEM[..4], verbs));
        for sub in &resource.subresources {
            let kind_of = sub.kind.as_ref().map_or(own, |(group, version, kind)| (group, version, kind));
            let id = format!("{scope}{kind}{}", capital(&sub.name));
            add(&mut out, &format!("{item}/{}", sub.name), place(kind_of, id).operations(&ITEM, &sub.verbs));
        }
    }
    out
}

fn add(out: &mut Map<String, Value>, path: &str, mut operations: Map<String, Value>) {
    if operations.is_empty() {
        return;
    }
    let mut parameters = Vec::new();
    for name in ["name", "namespace"] {
        if path.contains(&format!("{{{name}}}")) {
            parameters
                .push(json!({"name": name, "in": "path", "required": true, "schema": unique("string")}));
        }
    }
    parameters.push(query("pretty", "string"));
    operations.insert("parameters".to_owned(), Value::Array(parameters));
    out.insert(path.to_owned(), Value::Object(operations));
}

impl Place<'_> {
    fn operations(&self, known: &[Operation<'_>], verbs: &[String]) -> Map<String, Value> {
        let served = known.iter().filter(|operation| verbs.iter().any(|verb| verb == operation.verb));
        served.map(|operation| (operation.method.to_owned(), self.operation(operation))).collect()
    }

    fn operation(&self, operation: &Operation<'_>) -> Value {
        let (group, version, kind) = self.kind;
        let object = definition(group, version, kind);
        let returned = match operation.action {
            "list" => self.list.as_str(),
            "delete" | "deletecollection" => STATUS,
            _ => object.as_str(),
        };
        let (prefix, tag) = names(self.served);
        let middle = if operation.action == "deletecollection" { "Collection" } else { "" };
        let mut out = json!({
            "tags": [tag],
            "operationId": format!("{}{prefix}{middle}{}", operation.word, self.id),
            "parameters": parameters(operation.action),
            "responses": {
                "200": {"description": "OK", "content": {"application/json": {"schema": reference(returned)}}},
                "401": {"description": "Unauthorized"},
            },
            "x-kubernetes-action": operation.action,
            "x-kubernetes-group-version-kind": {"group": group, "kind": kind, "version": version},
        });
        if let Some((types, schema)) = self.body(operation.action, &object) {
            let content: Map<String, Value> =
                types.iter().map(|ty| ((*ty).to_owned(), json!({"schema": reference(schema)}))).collect();
            out["requestBody"] = json!({"content": content});
            if operation.action != "delete" {
                out["requestBody"]["required"] = json!(true);
            }
        }
        out
    }

    /// Types and schema of what is sent.
    fn body<'a>(&self, action: &str, object: &'a str) -> Option<(&'static [&'static str], &'a str)> {
        const PATCHES: [&str; 4] = [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            // Needs to know how lists are merged, which custom resources cannot say.
            "application/strategic-merge-patch+json",
        ];
        const WHOLE: [&str; 2] = ["application/json", "application/yaml"];
        match action {
            "patch" => Some((if self.custom { &PATCHES[..3] } else { &PATCHES }, PATCH)),
            "post" | "put" => Some((&WHOLE, object)),
            "delete" => Some((&WHOLE, DELETE_OPTIONS)),
            _ => None,
        }
    }
}

/// How a group and version begins ids, and its tag.
fn names(served: &GroupVersion) -> (String, String) {
    let group = match served.group.strip_suffix(".k8s.io") {
        _ if served.group.is_empty() => "core".to_owned(),
        Some(short) => short.split('.').next().unwrap_or(short).to_owned(),
        None => served.group.clone(),
    };
    let words: String = group.split(['.', '-']).map(capital).collect();
    let mut letters = words.chars();
    let tag = letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect());
    (format!("{words}{}", capital(&served.version)), format!("{tag}_{}", served.version))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn parameters(action: &str) -> Vec<Value> {
    const LIST: [(&str, &str); 10] = [
        ("allowWatchBookmarks", "boolean"),
        ("continue", "string"),
        ("fieldSelector", "string"),
        ("labelSelector", "string"),
        ("limit", "integer"),
        ("resourceVersion", "string"),
        ("resourceVersionMatch", "string"),
        ("sendInitialEvents", "boolean"),
        ("timeoutSeconds", "integer"),
        ("watch", "boolean"),
    ];
    const WRITE: [(&str, &str); 4] = [
        ("dryRun", "string"),
        ("fieldManager", "string"),
        ("fieldValidation", "string"),
        ("force", "boolean"),
    ];
    const DELETE: [(&str, &str); 4] = [
        ("dryRun", "string"),
        ("gracePeriodSeconds", "integer"),
        ("orphanDependents", "boolean"),
        ("propagationPolicy", "string"),
    ];
    let known: &[(&str, &str)] = match action {
        "list" | "deletecollection" => &LIST,
        "patch" => &WRITE,
        "post" | "put" => &WRITE[..3],
        "delete" => &DELETE,
        _ => &[],
    };
    known.iter().map(|(name, ty)| query(name, ty)).collect()
}

fn query(name: &str, ty: &str) -> Value {
    json!({"name": name, "in": "query", "schema": unique(ty)})
}

fn unique(ty: &str) -> Value {
    json!({"type": ty, "uniqueItems": true})
}

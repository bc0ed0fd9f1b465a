//! The same in the older form, for clients that have not moved on.

use super::{GroupVersion, SCHEMAS, paths, schemas};
use serde_json::{Map, Value, json};

/// The OpenAPI v2 document at `/openapi/v2` of everything served.
#[must_use]
pub(crate) fn v2(served: &[GroupVersion]) -> Value {
    let mut definitions = Map::new();
    let mut all = Map::new();
    for one in served {
        for (name, schema) in schemas(one) {
            definitions.entry(name).or_insert_with(|| older(&schema));
        }
        for (path, item) in paths::paths(one) {
            all.insert(path, operations(&item));
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": all,
        "definitions": definitions,
    })
}

/// One schema in the older form: a reference stands alone, alternatives are left out.
fn older(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let wrapped = fields.get("allOf").and_then(Value::as_array).and_then(|all| match all.as_slice() {
        [one] => one.get("$ref"),
        _ => None,
    });
    let int_or_string = fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let mut out = Map::new();
    for (key, value) in fields {
        let value = match (key.as_str(), value) {
            ("oneOf" | "anyOf" | "allOf" | "not" | "nullable", _) => continue,
            ("default", _) if wrapped.is_some() => continue,
            ("$ref", Value::String(to)) => Value::from(to.replace(SCHEMAS, "#/definitions/")),
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, property)| (name.clone(), older(property))).collect()
            }
            ("items" | "additionalProperties", below) => older(below),
            (_, value) => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    if let Some(Value::String(to)) = wrapped {
        out.insert("$ref".to_owned(), Value::from(to.replace(SCHEMAS, "#/definitions/")));
    }
    if fields.contains_key("oneOf") && !fields.contains_key("type") {
        // Amounts and ports: the older form knows one type only.
        out.insert("type".to_owned(), json!("string"));
    }
    if int_or_string {
        out.remove("type");
    }
    Value::Object(out)
}

/// The operations of a path in the older form: bodies become parameters and lists of types.
fn operations(item: &Value) -> Value {
    let Value::Object(fields) = item else { return json!({}) };
    let convert = |(method, operation): (&String, &Value)| {
        if method == "parameters" {
            return (method.clone(), flat(operation));
        }
        let body = &operation["requestBody"]["content"];
        let consumes: Vec<&String> = body.as_object().into_iter().flatten().map(|(ty, _)| ty).collect();
        let mut parameters = flat(&operation["parameters"]);
        if let (Some(list), Some(first)) = (parameters.as_array_mut(), consumes.first()) {
            list.push(
                json!({"name": "body", "in": "body", "schema": older(&body[first.as_str()]["schema"])}),
            );
        }
        let returned = older(&operation["responses"]["200"]["content"]["application/json"]["schema"]);
        let converted = json!({
            "consumes": consumes,
            "produces": ["application/json"],
            "operationId": operation["operationId"],
            "parameters": parameters,
            "responses": {
                "200": {"description": "OK", "schema": returned},
                "401": {"description": "Unauthorized"},
            },
            "tags": operation["tags"],
            "x-kubernetes-action": operation["x-kubernetes-action"],
            "x-kubernetes-group-version-kind": operation["x-kubernetes-group-version-kind"],
        });
        (method.clone(), converted)
    };
    Value::Object(fields.iter().map(convert).collect())
}

/// Parameters with their type in place.
fn flat(parameters: &Value) -> Value {
    let one = |parameter: &Value| {
        let mut out = parameter.clone();
        if let Some(Value::Object(schema)) = out.as_object_mut().and_then(|fields| fields.remove("schema")) {
            schema.into_iter().for_each(|(key, value)| out[key.as_str()] = value);
        }
        out
    };
    parameters.as_array().into_iter().flatten().map(one).collect()
}

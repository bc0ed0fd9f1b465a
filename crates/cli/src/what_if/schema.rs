//! Would the API server take these objects? They are held to the definitions that come with the program.

use super::world::Build;
use crate::documents::Document;
use loadline_apiserver::schema::{Definitions, Schema, structural};
use loadline_apiserver::status::{FieldError, Mistake};
use serde_json::Value;
use std::collections::BTreeMap;

/// The schemas by kind. Versions of a kind differ in nothing that matters here.
pub struct Schemas {
    definitions: Definitions,
    by_kind: BTreeMap<String, Schema>,
}

impl Schemas {
    /// Of these definitions, in YAML.
    pub fn new(definitions: &[&str]) -> Self {
        let definitions = definitions.iter().filter_map(|text| serde_saphyr::from_str::<Value>(text).ok());
        let by_kind = definitions.filter_map(|definition| {
            let kind = definition["spec"]["names"]["kind"].as_str()?.to_owned();
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            Some((kind, Schema::from_openapi(schema)))
        });
        Self { by_kind: by_kind.collect(), definitions: Definitions::default() }
    }

    /// Those that would be taken. What is wrong with the others is noted; what was only observed may be anything.
    pub fn sift(&self, documents: Vec<Document>, build: &mut Build) -> Vec<Document> {
        let fine = |document: &Document| {
            let Some(schema) = self.by_kind.get(document.kind) else { return true };
            let view = schema.standalone(&self.definitions);
            let mut value = document.value.clone();
            if let Value::Object(fields) = &mut value {
                fields.remove("status");
            }
            match structural::coerce(view, &mut value) {
                Ok(unknown) => {
                    // Other versions of a cluster may say more.
                    let told = unknown.into_iter().filter(|_| document.kind != "ManagedCluster");
                    build.warnings.extend(
                        told.map(|path| document.problem(path, "unknown field, overlooked").to_string()),
                    );
                }
                Err(error) => {
                    build.problems.push(document.problem("metadata", error.0));
                    return false;
                }
            }
            structural::default(view, &mut value);
            let errors = structural::validate(view, &value, None);
            // That none of several is there is told again, for the first of them, with its path.
            let told = errors.iter().filter(|error| error.field != "<nil>");
            let problems = told.map(|error| document.problem(error.field.clone(), words(error)));
            build.problems.extend(problems);
            errors.is_empty()
        };
        let mut fine = fine;
        documents.into_iter().filter(|document| fine(document)).collect()
    }
}

/// What was expected and what was found, in the words used everywhere else.
fn words(error: &FieldError) -> String {
    let found = error.value.as_deref().unwrap_or("nothing");
    let detail =
        error.detail.strip_prefix(error.field.as_str()).and_then(|rest| rest.strip_prefix(" in body "));
    let expected = match (error.mistake, detail.unwrap_or(&error.detail)) {
        (Mistake::Required, _) => return "expected a value, found nothing".to_owned(),
        (Mistake::NotSupported, detail) => detail
            .strip_prefix("supported values: ")
            .map_or_else(|| detail.to_owned(), |all| format!("one of {all}")),
        (_, detail) => {
            let rule = detail.strip_prefix("should ").or_else(|| detail.strip_prefix("must "));
            // Rules speak for themselves.
            let Some(rule) = rule else { return detail.to_owned() };
            // Types are told with what was found.
            format!("it to {}", rule.split(": \"").next().unwrap_or(rule))
        }
    };
    format!("expected {expected}, found {found}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_api::{ocm, qos};

    #[test]
    fn every_definition_is_understood() {
        for definitions in [&ocm::DEFINITIONS[..], &qos::DEFINITIONS] {
            let schemas = Schemas::new(definitions);
            assert_eq!(schemas.by_kind.len(), definitions.len());
            for (kind, schema) in &schemas.by_kind {
                assert_eq!(structural::check(&schema.raw, "schema"), [], "{kind}");
            }
        }
    }

    #[test]
    fn both_versions_of_a_placement_have_one_schema() {
        let text = ocm::DEFINITIONS.iter().find(|text| text.contains("kind: Placement\n")).unwrap();
        let definition: Value = serde_saphyr::from_str(text).unwrap();
        let versions = &definition["spec"]["versions"];
        assert_eq!(versions[0]["schema"], versions[1]["schema"]);
        assert_eq!((&versions[0]["name"], &versions[1]["name"]), (&"v1beta1".into(), &"v1alpha1".into()));
    }
}

//! Would the API server take these objects? They are held to the definitions that come with the program.

use crate::kind::Kind;
use crate::shape::Findings;
use crate::text;
use loadline_apiserver::validation::{CustomSchema, FieldError, Mistake};
use serde_json::Value;
use std::collections::BTreeMap;

/// `CustomResourceDefinition`s by kind. Versions of a kind differ in nothing that matters here.
pub struct Definitions {
    by_kind: BTreeMap<String, CustomSchema>,
}

impl Definitions {
    /// Of these definitions, in YAML.
    pub fn new(definitions: &[&str]) -> Self {
        let definitions = definitions.iter().filter_map(|definition| text::document(definition).ok());
        let by_kind = definitions.filter_map(|definition| {
            let kind = definition["spec"]["names"]["kind"].as_str()?.to_owned();
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            Some((kind, CustomSchema::new(schema)))
        });
        Self { by_kind: by_kind.collect() }
    }

    /// Makes of an object what the API server would store, and says what it would refuse. Its status was observed and
    /// stays as it is.
    pub fn complete(&self, kind: Kind, object: &mut Value) -> Findings {
        let Some(schema) = self.by_kind.get(kind.name) else { return Findings::default() };
        let status = object.as_object_mut().and_then(|fields| fields.remove("status"));
        let unknown = match schema.prepare(object) {
            Ok(unknown) => unknown,
            Err(error) => {
                let problems = vec![("metadata".to_owned(), error.to_string())];
                return Findings { problems, ..Findings::default() };
            }
        };
        let errors = schema.validate(object);
        if let (Some(status), Some(fields)) = (status, object.as_object_mut()) {
            fields.insert("status".to_owned(), status);
        }
        // That none of several is there is told again, for the first of them, with its path.
        let told = errors.iter().filter(|error| error.field != "<nil>");
        Findings {
            problems: told
                .map(|error| twice(error).unwrap_or_else(|| (error.field.clone(), words(error))))
                .collect(),
            warnings: unknown
                .into_iter()
                .map(|path| (path, "unknown field, overlooked".to_owned()))
                .collect(),
        }
    }
}

/// Of something that is there a second time: where, and what. Items of a list are told apart by one of their fields.
fn twice(error: &FieldError) -> Option<(String, String)> {
    (error.mistake == Mistake::Duplicate).then_some(())?;
    let found = error.value.as_deref().unwrap_or_default();
    let keys: Option<serde_json::Map<String, Value>> = serde_json::from_str(found).ok();
    let only = keys.filter(|keys| keys.len() == 1).and_then(|keys| keys.into_iter().next());
    Some(match only {
        Some((key, value)) => {
            (format!("{}.{key}", error.field), format!("expected each {key} once, found {value} again"))
        }
        None => (error.field.clone(), format!("expected each item once, found {found} again")),
    })
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
            let known = Definitions::new(definitions);
            assert_eq!(known.by_kind.len(), definitions.len());
            for (kind, schema) in &known.by_kind {
                assert_eq!(schema.problems(), [], "{kind}");
            }
        }
    }

    #[test]
    fn both_versions_of_a_placement_have_one_schema() {
        let text = ocm::DEFINITIONS.iter().find(|text| text.contains("kind: Placement\n")).unwrap();
        let definition: Value = text::document(text).unwrap();
        let versions = &definition["spec"]["versions"];
        assert_eq!(versions[0]["schema"], versions[1]["schema"]);
        assert_eq!((&versions[0]["name"], &versions[1]["name"]), (&"v1beta1".into(), &"v1alpha1".into()));
    }
}

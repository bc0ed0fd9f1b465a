//! How does the record stand in the object?

use crate::cluster::resource::LEASES;
use loadline_core::lease::{Record, Revision};
use loadline_core::object::Key;
use serde_json::{Map, Value, json};

/// A Lease as it is on the wire, whole: what we do not know stays in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease(Value);

impl Lease {
    /// A new one.
    pub fn new(lease: &Key, record: &Record) -> Self {
        Self(json!({
            "apiVersion": LEASES.api_version(), "kind": LEASES.kind,
            "metadata": {"namespace": &*lease.namespace, "name": &*lease.name}, "spec": record,
        }))
    }

    /// From an answer.
    ///
    /// # Errors
    /// When it is no Lease that was stored.
    pub fn read(answer: &[u8]) -> Result<(Self, Record, Revision), String> {
        let mut object: Value = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
        let record = match &object["spec"] {
            Value::Null => Record::default(),
            spec => serde_json::from_value(spec.clone()).map_err(|error| format!("spec: {error}"))?,
        };
        let revision = object["metadata"]["resourceVersion"].as_str().filter(|revision| !revision.is_empty());
        let revision = revision.map(|revision| Revision(revision.to_owned()));
        let revision = revision.ok_or_else(|| "the Lease has no resourceVersion".to_owned())?;
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // The server keeps them; an update without them is shorter.
            metadata.remove("managedFields");
        }
        Ok((Self(object), record, revision))
    }

    /// The same with another record, to replace that revision. It keeps its uid: an update would make a Lease that has
    /// been deleted anew, but not one with another uid.
    pub fn with(&self, record: &Record, revision: &Revision) -> Self {
        let mut object = self.0.clone();
        object["metadata"]["resourceVersion"] = json!(revision.0);
        let mut spec = match object["spec"].take() {
            Value::Object(spec) => spec,
            _ => Map::new(),
        };
        if let Value::Object(written) = json!(record) {
            spec.extend(written);
        }
        object["spec"] = Value::Object(spec);
        Self(object)
    }

    pub fn uid(&self) -> &str {
        self.0["metadata"]["uid"].as_str().unwrap_or_default()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_changes_the_record_and_nothing_else() {
        let stored = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "labels": {"c": "d"},
                "managedFields": [{"manager": "e"}]},
            "spec": {"holderIdentity": "other", "leaseTransitions": 4, "strategy": "s", "fieldOfTheFuture": [1]},
        });
        let (lease, record, revision) = Lease::read(stored.to_string().as_bytes()).unwrap();
        assert_eq!((record.holder(), lease.uid(), &*revision.0), (Some("other"), "u", "7"));
        let mine = Record { holder_identity: Some("me".into()), lease_transitions: Some(5), ..record };
        let mut expected = stored;
        expected["metadata"]["resourceVersion"] = json!("9");
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        expected["spec"]["holderIdentity"] = json!("me");
        expected["spec"]["leaseTransitions"] = json!(5);
        assert_eq!(lease.with(&mine, &Revision("9".into())).0, expected);
    }

    #[test]
    fn what_is_no_stored_lease_is_refused() {
        for (answer, why) in [
            ("{", "no JSON"),
            (r#"{"metadata": {"resourceVersion": ""}}"#, "no revision"),
            (r#"{"spec": {}}"#, "no metadata"),
            (r#"{"metadata": {"resourceVersion": "1"}, "spec": {"renewTime": "soon"}}"#, "no time"),
        ] {
            assert!(Lease::read(answer.as_bytes()).is_err(), "{why}");
        }
    }
}

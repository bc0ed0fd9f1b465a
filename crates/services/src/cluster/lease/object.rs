//! How does the record stand in the object?

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use loadline_core::lease::{Lock, Record, Revision};

/// The record and the revision of an object; none if it has no revision, which no stored object lacks.
pub fn read(lease: &Lease) -> Option<(Record, Revision)> {
    let revision = lease.metadata.resource_version.clone().filter(|revision| !revision.is_empty())?;
    let spec = lease.spec.clone().unwrap_or_default();
    let record = Record {
        holder_identity: spec.holder_identity,
        lease_duration_seconds: spec.lease_duration_seconds,
        acquire_time: spec.acquire_time.map(|time| time.0),
        renew_time: spec.renew_time.map(|time| time.0),
        lease_transitions: spec.lease_transitions,
        preferred_holder: spec.preferred_holder,
        strategy: spec.strategy,
    };
    Some((record, Revision(revision)))
}

fn spec(record: Record) -> LeaseSpec {
    LeaseSpec {
        holder_identity: record.holder_identity,
        lease_duration_seconds: record.lease_duration_seconds,
        acquire_time: record.acquire_time.map(MicroTime),
        renew_time: record.renew_time.map(MicroTime),
        lease_transitions: record.lease_transitions,
        preferred_holder: record.preferred_holder,
        strategy: record.strategy,
    }
}

/// A new Lease.
pub fn new(lock: &Lock, record: Record) -> Lease {
    let metadata = ObjectMeta {
        name: Some(lock.name.clone()),
        namespace: Some(lock.namespace.clone()),
        ..ObjectMeta::default()
    };
    Lease { metadata, spec: Some(spec(record)) }
}

/// The Lease as it was read, with another record: labels and everything else stay.
pub fn replaced(before: &Lease, record: Record, revision: &Revision) -> Lease {
    let metadata = ObjectMeta {
        resource_version: Some(revision.0.clone()),
        // The server keeps them.
        managed_fields: None,
        ..before.metadata.clone()
    };
    Lease { metadata, spec: Some(spec(record)) }
}

/// What an Event is about.
pub fn reference(lock: &Lock, lease: Option<&Lease>) -> ObjectReference {
    let metadata = lease.map(|lease| &lease.metadata);
    ObjectReference {
        api_version: Some("coordination.k8s.io/v1".into()),
        kind: Some("Lease".into()),
        namespace: Some(lock.namespace.clone()),
        name: Some(lock.name.clone()),
        uid: metadata.and_then(|metadata| metadata.uid.clone()),
        resource_version: metadata.and_then(|metadata| metadata.resource_version.clone()),
        field_path: None,
    }
}

//! The bodies of the fuzz targets: what must hold for any bytes.
//!
//! They live here so that the fuzzer and the ordinary test over the committed corpus run the same code.

use crate::estimator::{self, pb};
use crate::json::{Skip, Tree};
use crate::qos::snapshot::{read_state, render_state};
use crate::{extender, prometheus};
use jiff::Timestamp;
use loadline_core::cluster::Verdict;
use loadline_core::lease::Record;
use prost::Message as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What another scheduler may ask: anything. Every candidate is answered about, in JSON.
///
/// # Panics
/// When one is not: that is a finding.
pub fn fuzz_extender(data: &[u8]) {
    let reads = |answer: Vec<u8>| -> Value {
        let read = serde_json::from_slice(&answer);
        assert!(read.is_ok(), "{:?} is no JSON", String::from_utf8_lossy(&answer));
        read.unwrap_or_default()
    };
    if let Ok(asked) = extender::args(data) {
        let count = asked.names.len();
        assert_eq!(asked.names.iter().count(), count, "{:?}", asked.names);
        for verdict in [Verdict::Passes, Verdict::Unknown, Verdict::Outranked] {
            reads(extender::filtered(&asked.form, &asked.names, &vec![verdict; count]));
        }
        let levels = reads(extender::prioritized(&asked.names, &vec![7; count]));
        assert_eq!(levels.as_array().map(Vec::len), Some(count), "{levels}");
    }
    if let Ok(asked) = extender::bind_args(data) {
        assert!(!asked.node.is_empty() && !asked.pod.key.name.is_empty(), "{asked:?}");
    }
    if let Ok(asked) = extender::preempt_args(data) {
        let all: BTreeMap<_, _> = asked.victims.iter().map(|(node, all)| (node.as_str(), all)).collect();
        let answer = reads(extender::preempted(&all));
        let told = answer["NodeNameToMetaVictims"].as_object().map(serde_json::Map::len);
        assert_eq!(told, Some(all.len()), "{answer}");
    }
}

/// What a Prometheus may answer: anything. By which label nodes are named changes who is known, not how many there are.
///
/// # Panics
/// When it does: that is a finding.
pub fn fuzz_prometheus(data: &[u8]) {
    if let (Ok(usual), Ok(named)) = (prometheus::read(data, None), prometheus::read(data, Some("node"))) {
        let count = |answer: &prometheus::Answer| answer.series.len() + answer.unlabelled;
        assert_eq!(count(&usual), count(&named));
        assert!(usual.series.iter().all(|one| !one.whose.is_empty()), "{usual:?}");
    }
    let _ = prometheus::read_range(data);
    let _ = (prometheus::recording_rules(data), prometheus::scrape_intervals(data));
}

/// What an agent may find in its journal: anything. What reads is kept as it is.
///
/// # Panics
/// When it is not: that is a finding.
pub fn fuzz_journal(data: &[u8]) {
    let read = |text: &[u8]| Some(read_state(&Tree::parse(text, Skip::NOTHING).ok()?).ok()?.0);
    let Some(state) = read(data) else { return };
    let written = json!({"state": render_state(&state)}).to_string();
    assert_eq!(read(written.as_bytes()).as_ref(), Some(&state), "{written} is another state");
}

/// The year 0, before which a time is none of RFC 3339.
const FIRST: Timestamp = Timestamp::constant(-62_167_219_200, 0);

/// What the record of a Lease may say: anything. What reads is the same once it was written, but for parts of a microsecond.
///
/// # Panics
/// When it is not: that is a finding.
pub fn fuzz_lease(data: &[u8]) {
    let write = |record: &Record| serde_json::to_string(record);
    let Ok(record) = serde_json::from_slice::<Record>(data) else { return };
    // Nor is it Go's, so that no API server has one.
    let is_before_years = |time: Option<Timestamp>| time.is_some_and(|time| time < FIRST);
    if is_before_years(record.acquire_time) || is_before_years(record.renew_time) {
        return;
    }
    let written = write(&record);
    assert!(written.is_ok(), "{record:?} cannot be written");
    let Ok(written) = written else { return };
    let again = serde_json::from_str::<Record>(&written);
    assert!(again.is_ok(), "{written} does not read back: {again:?}");
    let Ok(again) = again else { return };
    assert_eq!(again.holder(), record.holder(), "{written}");
    assert_eq!(write(&again).ok(), Some(written), "{record:?}");
}

/// What an estimator may be asked, by the first byte: one of the three messages, or something that is none.
///
/// # Panics
/// When one cannot be read or refused: that is a finding.
pub fn fuzz_estimator(data: &[u8]) {
    let Some((which, body)) = data.split_first() else { return };
    let problem = match which % 3 {
        0 => pb::MaxAvailableReplicasRequest::decode(body)
            .ok()
            .and_then(|asked| estimator::replicas(&asked).err()),
        1 => pb::MaxAvailableComponentSetsRequest::decode(body)
            .ok()
            .and_then(|asked| estimator::sets(&asked).err()),
        _ => pb::UnschedulableReplicasRequest::decode(body)
            .ok()
            .and_then(|asked| estimator::unschedulable(&asked).err()),
    };
    // It has to fit into a header.
    assert!(problem.is_none_or(|problem| problem.to_string().len() < 16 << 10), "too much is told");
}

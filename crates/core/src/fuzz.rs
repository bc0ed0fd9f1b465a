//! The bodies of the fuzz targets: what must hold for any bytes.
//!
//! They live here so that the fuzzer and the ordinary test over the committed corpus run the same code.

use crate::load::annotation;
use crate::load::policy::Figure;
use crate::load::ratio::Ratio;
use crate::qos::Level;
use crate::qos::cgroup::{
    Version, bare_id, cpu_usage_ns, quota, quota_text, run_queue_wait_ns, shares, throttled, unreclaimable,
    working_set,
};
use crate::qos::collect::{Look, Machine, Stall, stalled};
use crate::qos::metric::Catalogue;
use std::time::Duration;

/// What a node's annotation may hold: anything. What reads must survive writing, never smaller, and crane must be able
/// to read what we write.
///
/// # Panics
/// When it does not: that is a finding.
pub fn fuzz_annotation(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = annotation::read_upstream(text, None);
    let Ok(reading) = annotation::read(text, None) else { return };
    let Ok(Figure::Exact(value)) = reading.value else { return };
    assert!(value >= Ratio::ZERO, "{text:?} reads as less than nothing");
    let written = annotation::write(value, reading.at, None);
    let again = annotation::read(&written, None).ok();
    // The second it is in, also before 1970.
    let second = |at: jiff::Timestamp| at.as_nanosecond().div_euclid(1_000_000_000);
    let (value, at) = (Some(value), Some(second(reading.at)));
    assert!(again.and_then(|a| a.value.ok()?.ratio()) >= value, "{written:?} is less than {text:?}");
    assert_eq!(again.map(|a| second(a.at)), at, "{written:?} is of another time than {text:?}");
    assert!(annotation::read_upstream(&written, None).is_ok(), "crane does not read {written:?}");
}

/// What a file of the kernel may say: a text, or two of them one after the other with a zero byte between. Nothing measured is
/// less than nothing, and a quota that was read is the same once it was written.
///
/// # Panics
/// When it is not: that is a finding.
pub fn fuzz_kernel(data: &[u8]) {
    let Ok(all) = std::str::from_utf8(data) else { return };
    let (before, text) = all.split_once('\0').map_or((None, all), |(before, text)| (Some(before), text));
    let known =
        Machine { cores: 2, interfaces: vec!["eth0".into()], disks: vec!["sda".into()], count_iowait: true };
    let (first, then) = (Duration::from_secs(1), Duration::from_secs(2));
    for machine in [Machine::default(), known] {
        for metric in Catalogue::default().iter() {
            let Some(collector) = metric.collect else { continue };
            let before = before.map(|text| Look { text, at: first });
            for found in (collector.read)(&machine, Look { text, at: then }, before) {
                let is_amount = found.value.is_none_or(|value| value >= Level::ZERO);
                assert!(is_amount, "{} of {all:?} is {found:?}", metric.name);
            }
        }
    }
    for version in [Version::V1, Version::V2] {
        let _ = (cpu_usage_ns(version, text), throttled(version, text), shares(version, text));
        let _ = (working_set(version, text, text), unreclaimable(version, text));
        let Some(read) = quota(version, text, Some(text)) else { continue };
        let Some(written) = quota_text(version, read.quota, read.period_us) else { continue };
        let again = quota(version, &written, Some(&format!("{}\n", read.period_us)));
        assert_eq!(again, Some(read), "{written:?} of {text:?} is another quota");
    }
    let _ = (run_queue_wait_ns(text), bare_id(text));
    for who in [Stall::Some, Stall::Full] {
        let read = stalled(text, who);
        assert!(
            read.is_none_or(|read| read.avg10 <= Level::whole(100)),
            "{text:?}: more than all of the time"
        );
    }
}

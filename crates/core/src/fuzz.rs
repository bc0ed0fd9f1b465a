//! The bodies of the fuzz targets: what must hold for any bytes.
//!
//! They live here so that the fuzzer and the ordinary test over the committed corpus run the same code.

use crate::load::annotation;
use crate::load::policy::Figure;
use crate::load::ratio::Ratio;

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
    let (value, at) = (Some(value), Some(reading.at.as_second()));
    assert!(again.and_then(|a| a.value.ok()?.ratio()) >= value, "{written:?} is less than {text:?}");
    assert_eq!(again.map(|a| a.at.as_second()), at, "{written:?} is of another time than {text:?}");
    assert!(annotation::read_upstream(&written, None).is_ok(), "crane does not read {written:?}");
}

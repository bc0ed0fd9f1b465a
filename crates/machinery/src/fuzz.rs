//! The bodies of the fuzz targets: what must hold for any bytes.
//!
//! They live here so that the fuzzer and the ordinary test over the committed corpus run the same code.

use crate::json::{Skip, Tree};
use crate::label::Selector;
use crate::protobuf::{Envelope, Error, Event, List};
use crate::quantity::{Quantity, stored};
use std::collections::BTreeMap;

/// Two lines: what parses must survive printing, and arithmetic must be consistent.
///
/// # Panics
/// When it is not: that is a finding.
pub fn fuzz_quantity(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed: Vec<Quantity> = text.split('\n').take(2).filter_map(|line| line.parse().ok()).collect();
    for a in &parsed {
        let printed = a.to_string();
        assert_eq!(printed.parse(), Ok(*a), "{printed:?} reads back as another amount");
        assert!(a.minus(*a).is_zero() && a.plus(Quantity::ZERO) == *a, "{printed:?} and nothing");
        let (whole, milli) = (i128::from(a.value()), i128::from(a.milli_value()));
        assert!(whole.abs() * 1000 >= milli.abs(), "{printed:?} rounds away from zero");
    }
    for line in text.split('\n').take(2) {
        assert_eq!(stored(line).is_ok(), line.trim().parse::<Quantity>().is_ok(), "{line:?}");
    }
    if let [a, b] = parsed[..] {
        let sum = a.plus(b);
        assert_eq!(sum, b.plus(a), "order of {a} + {b} matters");
        assert_eq!(a.cmp(&b), b.cmp(&a).reverse(), "{a} and {b} are in two orders");
        if let (Some(m), Some(n)) = (a.nano_value(), b.nano_value())
            && let Some(exact) = m.checked_add(n)
        {
            assert_eq!(sum.nano_value(), Some(exact), "{a} + {b}");
            assert_eq!(sum.minus(b), a, "{a} + {b} - {b}");
        }
    }
}

/// A selector, then lines `key=value`: what parses must mean the same after printing.
///
/// # Panics
/// When it does not: that is a finding.
pub fn fuzz_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let Ok(selector) = lines.next().unwrap_or_default().parse::<Selector>() else { return };
    let labels: BTreeMap<String, String> =
        lines.filter_map(|l| l.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect();
    let printed = selector.to_string();
    match printed.parse::<Selector>() {
        Ok(again) => {
            assert_eq!(again, selector, "{printed:?} reads back as another selector");
            assert_eq!(again.matches(&labels), selector.matches(&labels), "{printed:?} on {labels:?}");
        }
        Err(e) => assert!(printed.is_empty(), "{printed:?} does not read back: {e}"),
    }
}

/// A body as API servers send it: an object, a list or an event of a watch. What reads must be JSON that reads.
///
/// # Panics
/// When it is not: that is a finding.
pub fn fuzz_protobuf(data: &[u8]) {
    let reads = |object: Result<Tree<'_>, Error>| {
        let Ok(object) = object else { return };
        let text = object.to_string();
        let again = Tree::parse(text.as_bytes(), Skip::NOTHING);
        assert!(again.is_ok_and(|again| again.to_string() == text), "{text:?} reads back as something else");
    };
    if let Ok(envelope) = Envelope::read(data) {
        reads(envelope.object(Skip::NOTHING));
    }
    if let Ok(list) = List::read(data) {
        list.items(Skip::NOTHING).for_each(reads);
    }
    if let Ok(event) = Event::read(data) {
        reads(event.object.object(Skip::NOTHING));
    }
}

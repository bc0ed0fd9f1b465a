//! How often is memory asked for while a watch event becomes facts? Counted, and held to.
//!
//! ```sh
//! cargo test --package loadline-api --test allocations -- --nocapture
//! ```

mod decode;

use allocation_counter::measure;
use decode::{EVENT, FRAME, framed, now, then, tree};
use loadline_api::{object, pod};

/// How often the event of a pod may ask for memory, all in all.
const LIMIT: u64 = 210;
/// And in protobuf, whose times are numbers that become texts.
const FRAME_LIMIT: u64 = 220;
/// How often to build the tree alone.
const TREE_LIMIT: u64 = 80;

/// How often something asks for memory.
fn counted<T>(what: &str, work: impl FnOnce() -> T) -> u64 {
    let mut kept = None;
    let info = measure(|| kept = Some(work()));
    println!(
        "{what:<24} {:>4} allocations of {:>6} bytes, {:>4} of {:>6} bytes stay",
        info.count_total, info.bytes_total, info.count_current, info.bytes_current
    );
    drop(kept);
    info.count_total
}

#[test]
fn a_watched_pod_becomes_facts_with_few_allocations() {
    println!("an event of {} bytes", EVENT.len());
    let before = counted("before: owned values", || then(EVENT).expect("a pod"));
    let borrowed = counted("now: borrowed tree", || tree(EVENT, pod::SKIP).expect("a pod"));
    let lean = tree(EVENT, pod::SKIP).expect("a pod");
    let facts = counted("both: facts of the tree", || (object::meta(&lean), pod::read(&lean)));
    let all = counted("now: text to facts", || now(EVENT).expect("a pod"));

    assert!(now(EVENT).expect("a pod").pod.is_ok());
    assert!(all <= LIMIT, "{all} allocations, expected at most {LIMIT}");
    assert!(borrowed <= TREE_LIMIT, "{borrowed} allocations, expected at most {TREE_LIMIT}");
    assert!(2 * all < before + facts, "less than half of what it was: {all}, {before} + {facts}");
}

#[test]
fn a_pod_in_protobuf_becomes_the_same_facts_with_few_allocations() {
    println!("a frame of {} bytes", FRAME.len());
    // Which fields messages have is read once.
    assert!(framed(FRAME).is_some());
    let all = counted("protobuf to facts", || framed(FRAME).expect("a pod"));
    let (text, frame) = (now(EVENT).expect("a pod"), framed(FRAME).expect("a pod"));
    assert_eq!(format!("{:?}", (frame.meta, frame.pod)), format!("{:?}", (text.meta, text.pod)));
    assert!(all <= FRAME_LIMIT, "{all} allocations, expected at most {FRAME_LIMIT}");
}

#[test]
fn fields_that_are_skipped_cost_nothing() {
    let lean = tree(EVENT, pod::SKIP).expect("a pod").to_string();
    let event = format!("{{\"type\":\"MODIFIED\",\"object\":{lean}}}\n");
    assert!(2 * event.len() < EVENT.len(), "most of it is skipped");
    let count = |event: &[u8]| measure(|| drop(tree(event, pod::SKIP).expect("a pod"))).count_total;
    let (whole, lean) = (count(EVENT), count(event.as_bytes()));
    // The parser remembers in one text of its own how deep it is in what it passes over.
    assert!(whole <= lean + 1, "{whole} allocations, and {lean} without what is skipped");
}

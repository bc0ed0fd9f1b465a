//! How long does a watch event take from text to facts? Beside it, the tree of owned values it went through before.
//!
//! `cargo test --package loadline-api --test allocations -- --nocapture` counts the allocations of the same event.

#[path = "../tests/decode/mod.rs"]
mod decode;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use decode::{EVENT, FRAME, framed, now, then, tree};
use loadline_api::{object, pod};
use std::hint::black_box;

fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Bytes(EVENT.len() as u64));
    group.bench_function("before: owned values", |b| b.iter(|| then(black_box(EVENT))));
    group.bench_function("now: borrowed tree", |b| b.iter(|| tree(black_box(EVENT), pod::SKIP)));
    let lean = tree(EVENT, pod::SKIP);
    group.bench_function("both: facts of the tree", |b| {
        b.iter(|| lean.as_ref().map(|lean| (object::meta(lean), pod::read(lean))));
    });
    group.bench_function("now: text to facts", |b| b.iter(|| now(black_box(EVENT))));
    group.bench_function("now: protobuf to facts", |b| b.iter(|| framed(black_box(FRAME))));
    group.finish();
}

criterion_group!(benches, decoding);
criterion_main!(benches);

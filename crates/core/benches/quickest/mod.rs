//! How long does it take at best?

use std::time::{Duration, Instant};

/// The quickest of many runs, in microseconds.
pub fn micros(mut work: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut best = Duration::MAX;
    let mut runs = 0;
    while runs < 5 || begun.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed());
        runs += 1;
    }
    best.as_secs_f64() * 1e6
}

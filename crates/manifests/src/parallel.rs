//! How is much of the same done quickly? On all cores, in pieces small enough for all of them to end together.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// At most so many are handed out at once.
const LARGEST: usize = 256;

/// Does something with each of many; the answers are in the order of what is given.
pub fn map<T: Send, R: Send>(given: Vec<T>, each: impl Fn(T) -> R + Sync) -> Vec<R> {
    let mut work: Vec<(Option<T>, Option<R>)> = given.into_iter().map(|one| (Some(one), None)).collect();
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = (work.len() / (threads * 8)).clamp(1, LARGEST);
    let count = work.len().div_ceil(share);
    let rest = Mutex::new(work.chunks_mut(share));
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some(some) = next() {
            for (given, answer) in some {
                *answer = given.take().map(&each);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            scope.spawn(run);
        }
        run();
    });
    work.into_iter().filter_map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_in_its_place() {
        for count in [0, 1, 2, 17, 5_000] {
            let texts: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            let mapped = map((0..count).collect(), |number: usize| number.to_string());
            assert_eq!(mapped, texts);
        }
    }
}

//! Did anything panic? A task that does ends by itself, and those beside it go on as if nothing had happened.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    /// Where there were panics on this thread since the last look. A run is on one thread.
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// From now on panics of every thread are noted, and told as before.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let at = info.location().map_or_else(String::new, ToString::to_string);
            SEEN.with_borrow_mut(|seen| seen.push(at));
            told(info);
        }));
    });
    take();
}

/// Where there were any on this thread.
pub(crate) fn take() -> Vec<String> {
    SEEN.with_borrow_mut(std::mem::take)
}

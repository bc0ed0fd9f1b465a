//! Holds two programs under guard until it is killed: `hold FOLDER`. What `tests/guard.rs` kills.

use loadline_testkit::guard::Guard;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    let sleep = |name| Guard::start(name, Path::new(&folder), Path::new("sleep"), &["1000"]);
    let _guards = [sleep("first")?, sleep("second")?];
    loop {
        std::thread::park();
    }
}

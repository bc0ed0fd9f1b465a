//! Holds a real node with a busy pod until it is killed, and says what its cgroup is called. What `tests/node.rs` kills.
//! Ends at once where there can be no node.

use loadline_testkit::{ControlPlane, RealNode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(plane) = ControlPlane::start_or_skip() else { return Ok(()) };
    let Some(node) = RealNode::start_or_skip(&plane) else { return Ok(()) };
    node.run("busy", &["burn", "100"])?;
    println!("{}", node.cgroup());
    loop {
        std::thread::park();
    }
}

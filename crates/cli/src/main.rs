//! The one binary of Loadline.
fn main() {}

//! Which program is this, made from what?

/// Set by whoever builds what others will run: `cargo xtask image`.
const COMMIT: Option<&str> = option_env!("LOADLINE_COMMIT");

/// Such as `loadline 0.1.0 (commit 1a2b3c4, release build for x86_64 linux)`.
pub fn text() -> String {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let commit = COMMIT.unwrap_or("unknown");
    format!("loadline {} (commit {commit}, {build} build for {arch} {os})", env!("CARGO_PKG_VERSION"))
}

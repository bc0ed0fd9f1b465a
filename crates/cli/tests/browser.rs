//! What does somebody see who opens the dashboard? A real Chromium opens the one of `loadline up`.
//!
//! The tests themselves are in `web/test`; here is what they look at.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use common::Up;
use loadline_testkit::parts;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian and others put it.
const BROWSERS: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// The folder of the page, where a browser, Node.js and what drives the one from the other are there.
fn web_or_skip() -> Option<PathBuf> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let named = std::env::var_os("CHROMIUM").is_some_and(|path| Path::new(&path).is_file());
    let node = Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success());
    let missing: Vec<&str> = [
        (named || BROWSERS.iter().any(|path| Path::new(path).is_file()), "chromium (your system's package)"),
        (node, "node (Node.js 20 or later)"),
        (web.join("node_modules/playwright-core").is_dir(), "playwright-core (cd web && npm ci)"),
    ]
    .into_iter()
    .filter_map(|(there, name)| (!there).then_some(name))
    .collect();
    let avoided = parts::Policy::from_env() == Ok(parts::Policy::Never);
    if missing.is_empty() && !avoided {
        return Some(web);
    }
    let what = if avoided { "a real browser".to_owned() } else { missing.join(", ") };
    parts::skip(&format!("needs {what}"));
    None
}

/// Runs one file of tests in the browser, told what to look at.
fn look(web: &Path, file: &str, told: &[(&str, &str)]) {
    let output = Command::new("node")
        .args(["--test", "--test-reporter=spec", &format!("test/{file}")])
        .current_dir(web)
        .envs(told.iter().copied())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    println!("{}", said[0]);
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
}

#[test]
fn the_first_minute_of_up_is_seen_in_a_browser() {
    let Some(web) = web_or_skip() else { return };
    let up = Up::start_as_is(&["--nodes", "10", "--for", "10m"]);
    let kubeconfig = up.kubeconfig().display().to_string();
    let told = [
        ("DASHBOARD", up.said("dashboard")),
        ("KUBECONFIG", kubeconfig),
        ("LOADLINE", env!("CARGO_BIN_EXE_loadline").to_owned()),
    ];
    look(&web, "up.mjs", &told.each_ref().map(|(name, value)| (*name, value.as_str())));
}

#[test]
fn a_fleet_is_seen_with_why_a_placement_gets_whom_it_gets() {
    let Some(web) = web_or_skip() else { return };
    let up = Up::start(&["--scenario", "totals", "--for", "10m"]);
    look(
        &web,
        "fleet.mjs",
        &[
            ("DASHBOARD", &up.said("dashboard")),
            ("LOADLINE", env!("CARGO_BIN_EXE_loadline")),
            ("KUBECONFIG", &up.kubeconfig().display().to_string()),
            ("CONTROLLER", &up.said("controller")),
        ],
    );
}

#[test]
fn of_a_thousand_nodes_few_rows_are_drawn_at_a_time() {
    let Some(web) = web_or_skip() else { return };
    let up = Up::start(&["--nodes", "1000", "--without", "agent", "--for", "10m"]);
    look(&web, "many.mjs", &[("DASHBOARD", &up.said("dashboard")), ("NODES", "1000")]);
}

#[test]
fn the_page_bears_what_a_made_up_cluster_does_to_it() {
    let Some(web) = web_or_skip() else { return };
    look(&web, "browser.mjs", &[]);
}

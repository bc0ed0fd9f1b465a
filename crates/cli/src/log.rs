//! Where do log lines go? To stderr, and only as many as asked for.

use crate::args::{Format, Log};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging. A service tells what happens without being asked to. `RUST_LOG` wins over `-v`.
pub fn start(log: &Log, is_service: bool) {
    let level = match log.verbose {
        0 if is_service => "info,kube_client::client::builder=off",
        // Failed requests are told by whoever made them.
        0 => "warn,kube_client::client::builder=off",
        1 => "info",
        2 => "info,loadline=debug,loadline_sim=debug,loadline_apiserver=debug,loadline_services=debug",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match log.log_format {
        Format::Text => lines.with_ansi(std::io::stderr().is_terminal()).init(),
        Format::Json => lines.json().init(),
    }
}

//! Where do log lines go? To stderr, and only as many as asked for, at the start or later.

use crate::args::{Format, Log};
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload::{Handle, Layer};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt};

/// What decides which lines are written; one process has one log.
static FILTER: OnceLock<Handle<EnvFilter, Registry>> = OnceLock::new();

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
    let (filter, handle) = Layer::new(filter);
    let _ = FILTER.set(handle);
    let lines = fmt::layer().with_writer(std::io::stderr);
    let all = tracing_subscriber::registry().with(filter);
    match log.log_format {
        Format::Text => all.with(lines.with_ansi(std::io::stderr().is_terminal())).init(),
        Format::Json => all.with(lines.json()).init(),
    }
}

/// What is written now, as [`set`] takes it.
pub fn current() -> Option<String> {
    FILTER.get()?.with_current(ToString::to_string).ok()
}

/// From now on, what this filter says is written: levels, for everything or for what a target begins with, with commas between.
///
/// # Errors
/// Everything that is wrong with it.
pub fn set(text: &str) -> Result<(), Vec<String>> {
    let filter = parse(text)?;
    let Some(handle) = FILTER.get() else { return Err(vec!["there is no log".to_owned()]) };
    handle.reload(filter).map_err(|error| vec![error.to_string()])
}

/// Stricter than the filter itself, which takes a misspelled level for a target.
fn parse(text: &str) -> Result<EnvFilter, Vec<String>> {
    // Nothing at all reads as a level, and so do numbers.
    let is_level = |word: &str| {
        let is_word = !word.is_empty() && !word.bytes().any(|b| b.is_ascii_digit());
        is_word && word.parse::<LevelFilter>().is_ok()
    };
    let problem = |part: &str| {
        let good = match part.split_once('=') {
            None => is_level(part),
            Some((target, level)) => {
                let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
                !target.is_empty() && target.chars().all(fine) && is_level(level)
            }
        };
        let expected = "expected LEVEL or TARGET=LEVEL, and for LEVEL off, error, warn, info, debug or trace";
        (!good).then(|| format!("{expected}, found {part:?}"))
    };
    let problems: Vec<String> = text.split(',').map(str::trim).filter_map(problem).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    EnvFilter::try_new(text).map_err(|error| vec![error.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_levels_and_everything_else_is_told_at_once() {
        for good in ["info", "DEBUG", "off", "warn,loadline_services=debug,kube_client::client=off"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for (bad, count) in [
            ("", 1),
            ("inof", 1),
            ("3", 1),
            ("loadline_services", 1),
            ("info,=debug,x=loud", 2),
            ("info,", 1),
            ("a b=info", 1),
        ] {
            let problems = parse(bad).unwrap_err();
            assert_eq!(problems.len(), count, "{bad}: {problems:?}");
            assert!(
                problems.iter().all(|problem| problem.contains("expected LEVEL or TARGET=LEVEL")),
                "{bad}"
            );
        }
    }
}

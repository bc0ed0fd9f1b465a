//! What `loadline replay` can be told.

use crate::out::Output;
use crate::prometheus::{Credentials, matcher};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use loadline_replay::policy::{Placing, Policy};
use loadline_replay::trace::built_in;
use loadline_services::sources::prometheus::Target;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// What is told after the options.
pub fn after_help() -> String {
    let mut text = "Policies, each also with +rebalance behind its name, which moves pods away from nodes that turned\nout too full as `loadline rebalance` plans it, or with +moves, by a plain rule; and with +protection\nbehind that, which slows pods down on nodes that want more than 90 % as `loadline agent` plans it:\n".to_owned();
    for placing in Placing::ALL {
        let _ = writeln!(text, "  {:<18}{}", placing.name(), placing.about());
    }
    text += "\nData that is built in:\n";
    for data in built_in::ALL {
        let _ = writeln!(text, "  {:<18}{}", data.name, data.about);
    }
    text += "
Examples:
  loadline replay                                     what does looking at load change?
  loadline replay --data google --seeds 5             on steady workloads, five worlds
  loadline replay --policy requests,line,oracle --density 40%
  loadline replay --nodes fewest --violations 1%      how few nodes would have been enough?
  loadline replay use.csv --unit cores -o json        what your own workloads used
  loadline replay --html report.html                  one page with plots
  loadline replay --prometheus http://prometheus:9090 --since 7d --kubeconfig admin.kubeconfig
      the last week of your own cluster: its nodes, its pods, and what these used

A file has rows of a name and numbers, one every five minutes; or the header time,name,cpu and one
sample a line. Plain or gzip-compressed.

Exit status: 0 when it was replayed, 2 for bad input: every problem is a line on stderr.";
    text
}

/// What draws worlds, and has no meaning where there is one.
const DRAWN: [&str; 10] = [
    "files",
    "data",
    "unit",
    "machine_cores",
    "density",
    "pods",
    "days",
    "replicas",
    "request_error",
    "seeds",
];

#[derive(Debug, Args)]
pub struct Replay {
    /// Files of what workloads used, instead of data that is built in
    #[arg(value_name = "FILE", conflicts_with = "data")]
    pub files: Vec<PathBuf>,
    /// Which of the data that is built in
    #[arg(long, value_name = "NAME", default_value = "bitbrains", value_parser = data)]
    pub data: built_in::Data,
    /// What the numbers in the files are; without it, millicores where the name says so, else percent
    #[arg(long, value_name = "UNIT", requires = "files")]
    pub unit: Option<UnitName>,
    /// How many cores a machine has whose use is told in percent
    #[arg(long, value_name = "CORES", default_value_t = built_in::CORES, value_parser = positive)]
    pub machine_cores: f64,
    /// Which policies, in this order; see below
    #[arg(long = "policy", value_name = "NAME", value_delimiter = ',', default_values_t = usual())]
    pub policies: Vec<Policy>,
    /// How many nodes: a number, or `fewest` to look for as few as are enough
    #[arg(long, value_name = "N", value_parser = nodes, conflicts_with = "density")]
    pub nodes: Option<Nodes>,
    /// As many nodes as are used by that share on average
    #[arg(long, value_name = "SHARE", default_value = "30%", value_parser = share)]
    pub density: f64,
    /// What is enough with `--nodes fewest`: so much of nodes' time may be over 100 %
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share)]
    pub violations: f64,
    /// The cores of a node
    #[arg(long, value_name = "CORES", default_value_t = 16.0, value_parser = positive)]
    pub node_cores: f64,
    /// How full nodes are meant to be at most
    #[arg(long, value_name = "SHARE", default_value = "65%", value_parser = share)]
    pub target: f64,
    /// How many pods +rebalance moves within an hour at most; without, as many as `loadline rebalance` does
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub budget: Option<u32>,
    /// How many pods come
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub pods: u32,
    /// Over how many days; the first is not counted
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=60))]
    pub days: u32,
    /// How many replicas a workload has on average
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub replicas: u32,
    /// How wrong requests are: the deviation of the logarithm of their error
    #[arg(long, value_name = "SIGMA", default_value_t = 0.8, value_parser = deviation)]
    pub request_error: f64,
    /// What the world is drawn from: the same seed, the same world
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// How many worlds, from that seed on; figures are means
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub seeds: u32,
    /// Write one page with plots as well
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// How the answer is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub recorded: Recorded,
}

/// What a cluster of your own used.
#[derive(Debug, Args)]
#[command(next_help_heading = "Your own cluster")]
pub struct Recorded {
    /// Replay what a cluster used, as its Prometheus knows it: an address with a scheme
    #[arg(id = "prometheus_address", long = "prometheus", value_name = "URL", value_parser = Target::new, conflicts_with_all = DRAWN)]
    pub prometheus: Option<Target>,
    /// How far back: hours or days, such as 12h or 7d
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = since, requires = "prometheus_address")]
    pub since: SignedDuration,
    /// Up to when, such as 2026-01-31T12:00:00Z; without, now
    #[arg(long, value_name = "TIME", value_parser = until, requires = "prometheus_address")]
    pub until: Option<Timestamp>,
    /// How to reach the cluster, which knows nodes and requests; without, as the pod this runs in
    #[arg(long, value_name = "FILE", requires = "prometheus_address")]
    pub kubeconfig: Option<PathBuf>,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::args::duration, requires = "prometheus_address")]
    pub prometheus_timeout: Duration,
    /// Matcher for what pods used, such as cluster="a"; may be given several times
    #[arg(long = "prometheus-matcher", value_name = "MATCHER", value_parser = matcher, requires = "prometheus_address")]
    pub matchers: Vec<String>,
    /// What pods used in place of the usual: cores, with the labels `namespace` and `pod`
    #[arg(long, value_name = "PROMQL", conflicts_with = "matchers", requires = "prometheus_address")]
    pub prometheus_query: Option<String>,
    #[command(flatten)]
    pub credentials: Credentials,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum UnitName {
    Percent,
    Cores,
    Millicores,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    Fixed(usize),
    Fewest,
}

fn usual() -> Vec<Policy> {
    let placing = [Placing::Requests, Placing::Crane, Placing::Line, Placing::Learned, Placing::Oracle];
    placing.into_iter().map(Policy::placing).collect()
}

fn data(text: &str) -> Result<built_in::Data, String> {
    built_in::Data::find(text).ok_or_else(|| {
        let all: Vec<_> = built_in::ALL.iter().map(|data| data.name).collect();
        format!("there are {}", all.join(", "))
    })
}

fn nodes(text: &str) -> Result<Nodes, String> {
    if text == "fewest" {
        return Ok(Nodes::Fewest);
    }
    let number = text.parse().ok().filter(|number| (1..=100_000).contains(number));
    number.map(Nodes::Fixed).ok_or_else(|| "expected a number from 1 to 100000, or fewest".to_owned())
}

/// Hours, days or weeks.
fn since(text: &str) -> Result<SignedDuration, String> {
    let expected = || "expected from 1h to 60d, such as 12h or 7d".to_owned();
    let (number, hours) = match text.char_indices().last() {
        Some((end, 'h')) => (&text[..end], 1),
        Some((end, 'd')) => (&text[..end], 24),
        Some((end, 'w')) => (&text[..end], 7 * 24),
        _ => return Err(expected()),
    };
    let hours = number.parse::<i64>().ok().and_then(|number| number.checked_mul(hours));
    hours.filter(|hours| (1..=60 * 24).contains(hours)).map(SignedDuration::from_hours).ok_or_else(expected)
}

fn until(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "expected a moment such as 2026-01-31T12:00:00Z".to_owned())
}

/// `30%` or `0.3`.
fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|number| number / 100.0),
        None => text.parse(),
    };
    let inside = number.ok().filter(|number| *number > 0.0 && *number <= 1.0);
    inside.ok_or_else(|| "expected a share above 0 and up to 1, such as 0.3 or 30%".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    let inside = text.parse().ok().filter(|number| (0.001..=100_000.0).contains(number));
    inside.ok_or_else(|| "expected a number of cores, such as 16".to_owned())
}

fn deviation(text: &str) -> Result<f64, String> {
    let inside = text.parse().ok().filter(|number| (0.0..=3.0).contains(number));
    inside.ok_or_else(|| "expected a number from 0, as if everybody knew, to 3".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_back_is_told_in_hours_days_or_weeks() {
        for (text, hours) in [
            ("1h", Some(1)),
            ("7d", Some(168)),
            ("2w", Some(336)),
            ("60d", Some(1440)),
            ("61d", None),
            ("0h", None),
            ("30m", None),
            ("7", None),
            ("-1d", None),
            ("99999999999999999999d", None),
            ("", None),
            ("7\u{e4}", None),
        ] {
            assert_eq!(since(text).ok(), hours.map(SignedDuration::from_hours), "{text:?}");
        }
    }
}

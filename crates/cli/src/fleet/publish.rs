//! `loadline fleet --publish`: how much of a member is requested and used.

use super::args::Fleet;
use crate::component;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use jiff::SignedDuration;
use loadline_core::load::ratio::Ratio;
use loadline_core::member::Rules;
use loadline_services::cluster::{Access, lease};
use loadline_services::fleet::publish::{self, Options};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How many times a summary is made, at least, while one holds: what is lost once or twice is made up for in time.
const TIMES: u32 = 4;

/// What its flags are listed under.
pub const HEADING: &str = "Publishing (--publish)";

/// The flags of `--publish`.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub struct Publish {
    /// Name of the `ManagedCluster` of the member this runs in, or of the one behind --member-kubeconfig
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,
    /// How to reach that member; without, as the pod this runs in
    #[arg(long, value_name = "FILE", requires = "cluster_name")]
    pub member_kubeconfig: Option<PathBuf>,
    /// A member and its kubeconfig; may be given several times
    #[arg(long = "member", value_name = "NAME=FILE", value_parser = member)]
    pub members: Vec<(String, PathBuf)>,
    /// How often each member is measured and summed up
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::args::duration)]
    pub publish_interval: Duration,
    /// Name of the `AddOnPlacementScore`s
    #[arg(long, value_name = "NAME", default_value = "loadline")]
    pub score_name: String,
    /// How long what is published holds from when it was measured; four intervals at least
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = crate::args::duration)]
    pub score_validity: Duration,
    /// Objects written per second, on average
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = crate::annotator::args::rate)]
    pub publish_qps: f64,
    /// By how much of the whole a resource must have changed to be published before it is renewed anyway
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    pub min_change: Ratio,
    /// How much of a member must be measured for its use to be known
    #[arg(long, value_name = "PERCENT", default_value = "80", value_parser = percent)]
    pub min_measured: Ratio,
}

pub async fn run(args: &Fleet) -> Result<()> {
    let identity = lease::identity().context("this machine has no name")?;
    let mut problems = Vec::new();
    let hub = args.kubeconfig.clone().map_or(Access::InCluster, Access::Kubeconfig);
    if let Err(problem) = hub.connect().await {
        let hint = if args.kubeconfig.is_none() { "; give --kubeconfig" } else { "" };
        problems.push(format!("the hub: {problem}{hint}"));
    }
    let members = members(&args.publishing, &mut problems).await;
    let rules = rules(&args.publishing, &mut problems);
    let lease = match args.election.lease(&lease_name(&args.publishing), &identity) {
        Ok(lease) => lease,
        Err(problem) => {
            problems.push(problem.to_string());
            None
        }
    };
    if !problems.is_empty() {
        bail!("nothing can be published:\n  {}", problems.join("\n  "));
    }
    let options = Options {
        every: args.publishing.publish_interval,
        rules,
        score_name: args.publishing.score_name.clone(),
        rate: args.publishing.publish_qps,
        lease,
        ..Options::new(hub, members)
    };
    let status = options.status.clone();
    let start = |ctx| publish::run(ctx, options);
    component::run(&identity, args.http_bind_address, move || status.readiness(), start).await
}

/// Members do not exclude each other: each has a lease of its own. One process for many shares theirs.
fn lease_name(args: &Publish) -> String {
    match &args.cluster_name {
        Some(name) => format!("loadline-publish-{name}"),
        None => "loadline-publish".to_owned(),
    }
}

/// Which members, and how each is reached. One of them must be good; the others may become so.
async fn members(args: &Publish, problems: &mut Vec<String>) -> BTreeMap<String, Access> {
    let mut given = Vec::new();
    if let Some(name) = &args.cluster_name {
        let access = args.member_kubeconfig.clone().map_or(Access::InCluster, Access::Kubeconfig);
        given.push(("--cluster-name", name.clone(), access));
    }
    let named =
        |(name, file): &(String, PathBuf)| ("--member", name.clone(), Access::Kubeconfig(file.clone()));
    given.extend(args.members.iter().map(named));
    if given.is_empty() {
        problems
            .push("no member: give --cluster-name NAME in a member, or --member NAME=KUBECONFIG".to_owned());
    }
    let (mut members, mut unreachable) = (BTreeMap::new(), Vec::new());
    for (flag, name, access) in given {
        if !is_dns_label(&name) {
            problems.push(format!(
                "{flag}: {name:?} given, expected the name of a ManagedCluster: lower-case letters, digits and '-', at most 63"
            ));
        }
        if let Err(problem) = access.connect().await {
            let hint = if matches!(access, Access::InCluster) { "; give --member-kubeconfig" } else { "" };
            unreachable.push(format!("member {name}: {problem}{hint}"));
        }
        if members.insert(name.clone(), access).is_some() {
            problems.push(format!("member {name:?} is given twice: names must differ"));
        }
    }
    if unreachable.len() >= members.len() {
        problems.append(&mut unreachable);
    }
    for problem in unreachable {
        tracing::warn!(problem, "a member cannot be reached yet");
    }
    members
}

fn rules(args: &Publish, problems: &mut Vec<String>) -> Rules {
    let (interval, validity) = (args.publish_interval, args.score_validity);
    if validity < interval.saturating_mul(TIMES) {
        problems.push(format!(
            "--score-validity: {validity:?} given, expected at least {TIMES} times --publish-interval, which is {interval:?}"
        ));
    }
    if args.min_measured <= Ratio::ZERO {
        problems.push("--min-measured: 0 given, expected more: what nobody measured is not known".to_owned());
    }
    let name = &args.score_name;
    if name.len() > 253 || !name.split('.').all(is_dns_label) {
        problems.push(format!(
            "--score-name: {name:?} given, expected lower-case letters, digits, '-' and '.', at most 253"
        ));
    }
    Rules {
        validity: SignedDuration::try_from(validity).unwrap_or(SignedDuration::MAX),
        enough: args.min_measured,
        min_change: args.min_change,
    }
}

fn is_dns_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn member(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err(format!("expected NAME=KUBECONFIG such as m1=m1.kubeconfig, not {text:?}")),
    }
}

/// `1`, `0.5` or `1%`, as a share.
fn percent(text: &str) -> Result<Ratio, String> {
    let expected = || format!("expected 0 to 100, a percentage, not {text:?}");
    let percent: f64 = text.strip_suffix('%').unwrap_or(text).parse().map_err(|_| expected())?;
    if !(0.0..=100.0).contains(&percent) {
        return Err(expected());
    }
    Ratio::from_f64(percent / 100.0).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_an_exact_share() {
        for (text, want) in [
            ("1", Some(10_000_000)),
            ("0.5%", Some(5_000_000)),
            ("100", Some(1_000_000_000)),
            ("0", Some(0)),
            ("101", None),
            ("-1", None),
            ("NaN", None),
            ("some", None),
        ] {
            assert_eq!(percent(text).ok().map(Ratio::nano), want, "{text}");
        }
    }

    #[test]
    fn a_member_has_a_name_and_a_file() {
        assert_eq!(member("m1=a=b"), Ok(("m1".into(), "a=b".into())));
        for wrong in ["m1", "=file", "m1="] {
            assert!(member(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_those_of_clusters() {
        for (name, good) in
            [("m1", true), ("a-b", true), ("", false), ("M1", false), ("-a", false), ("a.b", false)]
        {
            assert_eq!(is_dns_label(name), good, "{name}");
        }
        assert!(!is_dns_label(&"a".repeat(64)));
    }
}

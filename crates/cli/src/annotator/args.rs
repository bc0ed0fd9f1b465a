//! What can be said to `loadline annotator`.

use crate::leader_election::LeaderElection;
use crate::prometheus::{Credentials, matcher};
use anyhow::{Result, bail};
use clap::Args;
use jiff::SignedDuration;
use loadline_core::load::ratio::Ratio;
use loadline_core::load::taints;
use loadline_core::object::Key;
use loadline_services::annotator::Monitoring;
use loadline_services::sources::prometheus::Target;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  loadline annotator --kubeconfig admin.kubeconfig
      from the metrics API alone, by crane's default policy
  loadline annotator --kubeconfig admin.kubeconfig \\
        --prometheus-address http://prometheus.monitoring:9090 --prometheus-matcher 'cluster=\"a\"'
      longer ranges from the recording rules of a Prometheus that several clusters share
  loadline annotator --kubeconfig admin.kubeconfig --prometheus-address https://thanos.example.com \\
        --prometheus-bearer-token-file /var/run/secrets/token \\
        --prometheus-query 'cpu_usage_avg_5m=100 - 100 * avg by (instance) (rate(node_cpu_seconds_total{mode=\"idle\"}[5m]))'
      without recording rules: an expression of your own, in percent
  loadline annotator --leader-elect --policy-configmap kube-system/load-policy --http-bind-address 0.0.0.0:8090
      in a cluster, one of several, by a policy that may change at any time

What its account must be allowed:
  list, watch    nodes, pods
  patch          nodes
  list           nodes.metrics.k8s.io
  list, watch    configmaps, the one named, with --policy-configmap
  get, create, patch
                 configmaps loadline-load-history-0, -1, …, unless --history-namespace is empty
  create, patch  events.events.k8s.io
  get, create, update
                 leases.coordination.k8s.io, with --leader-elect

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

/// The flags.
#[derive(Debug, Args)]
pub struct Annotator {
    /// How to reach the cluster; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A file with a load policy (`DynamicSchedulerPolicy`) and, if wanted, settings; read again when it changes
    #[arg(long, alias = "policy-config-path", value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// A `ConfigMap` with the same, and which of its entries if it has several; followed as it changes
    #[arg(long, value_name = "NAMESPACE/NAME[/ENTRY]", conflicts_with = "policy", value_parser = config_map)]
    pub policy_configmap: Option<(Key, Option<String>)>,
    /// How often the metrics API is asked; more often than the metrics server measures is useless
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = crate::args::duration)]
    pub metrics_interval: Duration,
    /// Do not ask the metrics API
    #[arg(long, requires = "prometheus_address")]
    pub no_metrics_api: bool,
    /// Namespace of the `ConfigMap`s that keep the past of nodes for the next start; empty keeps it in memory only
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    pub history_namespace: String,
    /// Patches of nodes per second, on average
    #[arg(long, value_name = "N", default_value_t = 25.0, value_parser = rate)]
    pub patch_qps: f64,
    /// Address of /healthz, /readyz and /metrics, such as 127.0.0.1:8090; none without
    #[arg(long, value_name = "ADDRESS")]
    pub http_bind_address: Option<SocketAddr>,

    #[command(flatten)]
    pub taints: Taints,
    #[command(flatten)]
    pub prometheus: Prometheus,
    #[command(flatten)]
    pub election: LeaderElection,
}

/// Which nodes bear taints for their load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load taints")]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub struct Taints {
    /// Taint nodes near or over a limit of the policy, so that any scheduler avoids them: loadline.dev/load=high with
    /// `PreferNoSchedule`, then loadline.dev/load=over with `NoSchedule`; without this flag, taints left by an earlier run go
    #[arg(long)]
    pub taints: bool,
    /// Share of a limit above which a node is tainted high
    #[arg(long, value_name = "RATIO", default_value = "0.9", value_parser = ratio)]
    pub taint_soft: Ratio,
    /// Share of a limit above which it is tainted over
    #[arg(long, value_name = "RATIO", default_value = "1", value_parser = ratio)]
    pub taint_hard: Ratio,
    /// How far below its line load must be for a taint to go, as a share of the line
    #[arg(long, value_name = "RATIO", default_value = "0.1", value_parser = ratio)]
    pub taint_hysteresis: Ratio,
    /// How long a taint stays at least
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = crate::args::duration)]
    pub taint_dwell: Duration,
    /// Share of all nodes that may be tainted at once; the hottest are
    #[arg(long, value_name = "RATIO", default_value = "0.3", value_parser = ratio)]
    pub taint_share: Ratio,
}

impl Taints {
    /// By which lines, if at all.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn options(&self) -> Result<Option<taints::Options>> {
        let options = taints::Options {
            soft: self.taint_soft,
            hard: self.taint_hard,
            hysteresis: self.taint_hysteresis,
            dwell: SignedDuration::try_from(self.taint_dwell)?,
            share: self.taint_share,
        };
        let problems: Vec<String> = taints::check(&options)
            .iter()
            .map(|problem| {
                let (flag, message) = (problem.path.trim_start_matches("taints."), &problem.message);
                format!("--taint-{flag}: {message}")
            })
            .collect();
        if problems.is_empty() { Ok(self.taints.then_some(options)) } else { bail!(problems.join("\n")) }
    }
}

/// How Prometheus is reached and asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Prometheus")]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub struct Prometheus {
    /// Where it is, with a scheme: `http://prometheus.monitoring:9090`
    #[arg(long, alias = "prometheus", value_name = "URL", value_parser = Target::new)]
    pub prometheus_address: Option<Target>,
    /// How often it is asked
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::args::duration, requires = "prometheus_address")]
    pub prometheus_interval: Duration,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::args::duration, requires = "prometheus_address")]
    pub prometheus_timeout: Duration,
    /// Matcher for series asked for by name, such as cluster="a"; may be given several times
    #[arg(long = "prometheus-matcher", value_name = "MATCHER", value_parser = matcher, requires = "prometheus_address")]
    pub matchers: Vec<String>,
    /// Label that names the node, by name or address; without, `instance`, then `node`
    #[arg(long, value_name = "LABEL", requires = "prometheus_address")]
    pub prometheus_node_label: Option<String>,
    /// An expression in place of the series of that name, in percent of the node; may be given several times
    #[arg(long = "prometheus-query", value_name = "METRIC=PROMQL", value_parser = query, requires = "prometheus_address")]
    pub queries: Vec<(String, String)>,
    #[command(flatten)]
    pub credentials: Credentials,
}

impl Prometheus {
    /// How it is asked, if it is.
    ///
    /// # Errors
    /// All files that cannot be used.
    pub async fn monitoring(&self) -> Result<Option<Monitoring>> {
        let Some(target) = &self.prometheus_address else { return Ok(None) };
        let target = self.credentials.target(target).await?;
        Ok(Some(Monitoring {
            target,
            every: self.prometheus_interval,
            timeout: self.prometheus_timeout,
            label: self.prometheus_node_label.clone(),
            matchers: self.matchers.clone(),
            expressions: self.queries.clone(),
        }))
    }
}

fn config_map(text: &str) -> Result<(Key, Option<String>), String> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => {
            Ok((Key::new(namespace, name), None))
        }
        [namespace, name, entry] if !namespace.is_empty() && !name.is_empty() && !entry.is_empty() => {
            Ok((Key::new(namespace, name), Some(entry.to_owned())))
        }
        _ => Err("expected NAMESPACE/NAME or NAMESPACE/NAME/ENTRY".to_owned()),
    }
}

fn ratio(text: &str) -> Result<Ratio, String> {
    let number: Option<f64> = text.parse().ok();
    number.and_then(Ratio::from_f64).ok_or_else(|| "expected a ratio such as 0.9".to_owned())
}

pub fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (0.1..=1000.0).contains(&rate) { Ok(rate) } else { Err("expected 0.1 to 1000".to_owned()) }
}

fn query(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((metric, query)) if !metric.trim().is_empty() && !query.trim().is_empty() => {
            Ok((metric.trim().to_owned(), query.trim().to_owned()))
        }
        _ => Err("expected METRIC=PROMQL, such as cpu_usage_avg_5m=100 * my_cpu_ratio".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_taints_that_make_no_sense_are_told_all_at_once() {
        let taints = |flags: &[&str]| {
            #[derive(clap::Parser)]
            struct Only {
                #[command(flatten)]
                taints: Taints,
            }
            let words = ["annotator"].iter().chain(flags);
            <Only as clap::Parser>::try_parse_from(words).map(|only| only.taints.options())
        };
        assert_eq!(taints(&[]).unwrap().unwrap(), None, "off unless asked for");
        assert_eq!(
            taints(&["--taints"]).unwrap().unwrap(),
            Some(taints::Options::default()),
            "as documented"
        );
        let told = taints(&["--taint-soft=1.2", "--taint-share=2"]).unwrap().unwrap_err().to_string();
        assert_eq!(
            told,
            "--taint-soft: expected less than the hard line (1), not 1.2\n--taint-share: 2 is not a ratio 0..1"
        );
        assert!(taints(&["--taint-soft=NaN"]).is_err() && taints(&["--taint-soft=high"]).is_err());
    }

    #[test]
    fn a_config_map_may_be_given_with_its_entry() {
        assert_eq!(config_map("a/b"), Ok((Key::new("a", "b"), None)));
        assert_eq!(config_map("a/b/c"), Ok((Key::new("a", "b"), Some("c".to_owned()))));
        for wrong in ["a", "/b", "a/", "a/b/", "a/b/c/d", ""] {
            assert!(config_map(wrong).is_err(), "{wrong:?}");
        }
    }
}

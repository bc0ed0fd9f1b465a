//! `loadline fleet --api karmada`: which clusters get how many replicas. Flags of karmada-scheduler and karmada-descheduler
//! keep their names where they mean the same.

use super::args::Fleet;
use crate::args::DivideMode;
use crate::component;
use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::extract::Path;
use axum::response::IntoResponse as _;
use axum::routing::get;
use clap::{ArgAction, Args, ValueEnum};
use http::{StatusCode, header};
use loadline_core::divide::{self, Mode, Shortfall};
use loadline_core::object::Key;
use loadline_services::ask;
use loadline_services::cluster::lease;
use loadline_services::fleet::binding::explain::Asker;
use loadline_services::fleet::binding::{self, Deschedule, Options};
use loadline_services::fleet::estimators::transport::Servers;
use loadline_services::fleet::estimators::{self, Addresses, Tls};
use std::path::PathBuf;
use std::time::Duration;

/// What its flags are listed under.
pub const HEADING: &str = "Bindings (--api karmada)";

/// The flags of `--api karmada`.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct Bindings {
    /// Whose bindings are decided: those with this spec.schedulerName
    #[arg(long, value_name = "NAME", default_value = "default-scheduler")]
    pub scheduler_name: String,
    /// Ask the estimator of each cluster how many replicas fit there
    #[arg(long, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set, default_value_t = false)]
    pub enable_scheduler_estimator: bool,
    /// Ask no estimators of clusters that fetch their work themselves
    #[arg(long)]
    pub disable_scheduler_estimator_in_pull_mode: bool,
    /// Where an estimator listens: CLUSTER=HOST:PORT, may be given several times; HOST:PORT for one that answers for all
    #[arg(long = "estimator", value_name = "[CLUSTER=]HOST:PORT", value_parser = estimator)]
    pub estimators: Vec<(Option<String>, String)>,
    /// How long each estimator may take; one that takes longer loses its own vote
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = crate::args::duration)]
    pub scheduler_estimator_timeout: Duration,
    /// Namespace of the Services that say where estimators are
    #[arg(long, value_name = "NAME", default_value = "karmada-system")]
    pub scheduler_estimator_service_namespace: String,
    /// What their names begin with; a dash and the cluster follow
    #[arg(long, value_name = "NAME", default_value = "karmada-scheduler-estimator")]
    pub scheduler_estimator_service_prefix: String,
    /// Port of estimators
    #[arg(long, value_name = "PORT", default_value_t = 10352)]
    pub scheduler_estimator_port: u16,
    #[command(flatten)]
    pub transport: Transport,
    /// How long an answer to the same question is used again
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::args::duration)]
    pub estimate_freshness: Duration,
    /// Whose number counts: that of estimators where there is one, the least, or only what clusters say of themselves
    #[arg(long, value_name = "MODE", default_value = "accurate-first")]
    pub estimator_mode: EstimatorMode,
    /// How long room is kept for replicas that were assigned and are not to be seen in their cluster
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = crate::args::duration)]
    pub promise_duration: Duration,
    /// Give clusters the workload that get none of its replicas
    #[arg(long)]
    pub enable_empty_workload_propagation: bool,
    /// Place what fits when not everything does, and tell of the rest
    #[arg(long)]
    pub allow_partial: bool,
    /// Whose way replicas are divided
    #[arg(long, value_name = "MODE", default_value = "default")]
    pub mode: DivideMode,
    /// Take replicas from clusters that have found no node for them; without a value it is only told which
    #[arg(long, value_name = "HOW", default_missing_value = "preview", num_args = 0..=1, require_equals = true)]
    pub deschedule: Option<How>,
    /// Time between two passes of --deschedule
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = crate::args::duration)]
    pub descheduling_interval: Duration,
    /// How long replicas must have waited for a node
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = crate::args::duration)]
    pub unschedulable_threshold: Duration,
    /// Bindings looked at per second by --deschedule, on average
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    pub deschedule_qps: f64,
}

/// How estimators are talked to.
#[derive(Debug, Args)]
pub struct Transport {
    /// Who must have signed the certificates of estimators; without, they are talked to in plain text
    #[arg(long, value_name = "FILE")]
    pub scheduler_estimator_ca_file: Option<PathBuf>,
    /// Our certificate for them
    #[arg(long, value_name = "FILE", requires = "scheduler_estimator_key_file")]
    pub scheduler_estimator_cert_file: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", requires = "scheduler_estimator_cert_file")]
    pub scheduler_estimator_key_file: Option<PathBuf>,
    /// Use TLS, but trust whoever answers
    #[arg(long)]
    pub insecure_skip_estimator_verify: bool,
}

impl Transport {
    /// In plain text without.
    pub fn tls(&self) -> Option<Tls> {
        let servers = match (&self.scheduler_estimator_ca_file, self.insecure_skip_estimator_verify) {
            (_, true) => Servers::Anyone,
            (Some(file), false) => Servers::SignedBy(file.clone()),
            (None, false) => return None,
        };
        let identity =
            self.scheduler_estimator_cert_file.clone().zip(self.scheduler_estimator_key_file.clone());
        Some(Tls { servers, identity })
    }
}

/// Whose estimate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EstimatorMode {
    AccurateFirst,
    Min,
    General,
}

/// How replicas are taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// Say which would be
    Preview,
    /// Take them
    Apply,
}

/// `m1=10.0.0.7:10352`, or `10.0.0.7:10352` for all clusters.
pub fn estimator(text: &str) -> Result<(Option<String>, String), String> {
    let wrong = || format!("expected CLUSTER=HOST:PORT or HOST:PORT, not {text:?}");
    let (cluster, address) = match text.split_once('=') {
        Some((cluster, address)) => (Some(cluster.to_owned()), address),
        None => (None, text),
    };
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    if host.is_empty() || port.parse::<u16>().is_err() || cluster.as_ref().is_some_and(String::is_empty) {
        return Err(wrong());
    }
    Ok((cluster, address.to_owned()))
}

impl Bindings {
    fn addresses(&self) -> Result<Addresses> {
        let mut addresses = Addresses {
            namespace: self.scheduler_estimator_service_namespace.clone(),
            prefix: self.scheduler_estimator_service_prefix.clone(),
            port: self.scheduler_estimator_port,
            ..Addresses::default()
        };
        for (cluster, address) in &self.estimators {
            let twice = match cluster {
                Some(cluster) => addresses.fixed.insert(cluster.clone(), address.clone()).is_some(),
                None => addresses.shared.replace(address.clone()).is_some(),
            };
            if twice {
                bail!(
                    "--estimator: {} is given twice",
                    cluster.as_deref().unwrap_or("the one for all clusters")
                );
            }
        }
        Ok(addresses)
    }

    fn asking(&self) -> Result<Option<estimators::Options>> {
        if !self.enable_scheduler_estimator && self.estimators.is_empty() {
            if self.deschedule.is_some() {
                bail!("--deschedule asks estimators: give --enable-scheduler-estimator or --estimator");
            }
            return Ok(None);
        }
        let options = estimators::Options {
            addresses: self.addresses()?,
            tls: self.transport.tls(),
            timeout: self.scheduler_estimator_timeout,
            fresh: self.estimate_freshness,
        };
        Ok(Some(options))
    }

    fn divide(&self) -> divide::Options {
        divide::Options {
            mode: match self.estimator_mode {
                EstimatorMode::AccurateFirst => Mode::AccurateFirst,
                EstimatorMode::Min => Mode::Min,
                EstimatorMode::General => Mode::General,
            },
            shortfall: if self.allow_partial { Shortfall::Partial } else { Shortfall::Fail },
            empty: self.enable_empty_workload_propagation,
            upstream: self.mode == DivideMode::Upstream,
            ..divide::Options::default()
        }
    }
}

pub async fn run(args: &Fleet) -> Result<()> {
    let flags = &args.bindings;
    let identity = lease::identity().context("this machine has no name")?;
    let lease = args.election.lease(binding::COMPONENT, &identity)?;
    let estimators = flags.asking()?;
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    let (asker, questions) = ask::channel();
    let options = Options {
        scheduler: flags.scheduler_name.clone(),
        divide: flags.divide(),
        estimators,
        pulling: !flags.disable_scheduler_estimator_in_pull_mode,
        promise: flags.promise_duration,
        deschedule: flags.deschedule.map(|how| Deschedule {
            apply: how == How::Apply,
            every: flags.descheduling_interval,
            threshold: flags.unschedulable_threshold,
            rate: flags.deschedule_qps,
        }),
        lease,
        asked: questions,
        ..Options::new(cluster)
    };
    let status = options.status.clone();
    let start = |ctx| binding::run(ctx, options);
    let readiness = move || status.readiness();
    component::run_with(&identity, args.http_bind_address, readiness, router(asker), start).await
}

/// Answers questions about bindings.
pub fn router(asker: Asker) -> Router {
    let answer = move |key: Key| {
        let asker = asker.clone();
        async move {
            match asker.ask(key).await {
                Ok(Some(answer)) => {
                    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
                }
                Ok(None) => (StatusCode::NOT_FOUND, "no such binding\n").into_response(),
                Err(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")).into_response(),
            }
        }
    };
    let of_cluster = answer.clone();
    Router::new()
        .route(
            "/debug/explain/bindings/{namespace}/{name}",
            get(move |Path((namespace, name)): Path<(String, String)>| answer(Key::new(namespace, name))),
        )
        .route(
            "/debug/explain/bindings/{name}",
            get(move |Path(name): Path<String>| of_cluster(Key::new("", name))),
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        bindings: Bindings,
    }

    #[test]
    fn whose_way_replicas_are_divided_is_said_by_a_flag() {
        let divide = |flags: &[&str]| {
            let all = std::iter::once("fleet").chain(flags.iter().copied());
            Flags::try_parse_from(all).map(|flags| flags.bindings.divide()).expect("flags")
        };
        assert_eq!(divide(&[]), divide::Options::default());
        let upstream = divide::Options { upstream: true, ..divide::Options::default() };
        assert_eq!(divide(&["--mode", "upstream"]), upstream);
    }

    #[test]
    fn an_estimator_is_said_for_one_cluster_or_for_all() {
        let at = |cluster: Option<&str>, address: &str| Ok((cluster.map(str::to_owned), address.to_owned()));
        assert_eq!(estimator("m1=10.0.0.7:10352"), at(Some("m1"), "10.0.0.7:10352"));
        assert_eq!(estimator("estimators.example:10352"), at(None, "estimators.example:10352"));
        assert_eq!(estimator("m1=[::1]:1"), at(Some("m1"), "[::1]:1"));
        for wrong in ["m1", "=h:1", "m1=h", "m1=:1", "m1=h:port", ""] {
            assert!(estimator(wrong).is_err(), "{wrong}");
        }
    }
}

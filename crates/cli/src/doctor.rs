//! `loadline doctor`: what is wrong with a cluster, or with how Loadline is set up in it, and what is to be done?

pub mod args;
mod table;

use crate::component;
use crate::out::{self, Detail};
use crate::up::load_rules;
use anyhow::{Result, anyhow};
use args::Doctor;
use jiff::Timestamp;
use loadline_core::doctor::{Facts, Finding, Known, Severity, examine};
use loadline_core::load::policy::Rules;
use loadline_core::qos::policy::Policy;
use loadline_manifests::{CheckInput, DoctorInput, Manifests, Problem};
use loadline_services::cluster::{Access, access};
use loadline_services::doctor::{Beside, Options, Served, beside, gather};
use serde::Serialize;
use std::process::ExitCode;

/// Something is broken, as documented.
const BROKEN: u8 = 1;

/// Looks at everything and says what is wrong.
///
/// # Errors
/// Bad input.
pub async fn run(args: &Doctor) -> Result<ExitCode> {
    let policy = args.policy.as_deref().map(load_rules).transpose()?;
    let agent_rules = if args.agent_rules.is_empty() { None } else { Some(agent_rules(args)?) };
    let addresses = args.estimator.iter().cloned().map(Served::At);
    let files = args.certificate.iter().cloned().map(Served::File);
    let others = Beside {
        prometheus: args.prometheus.monitoring().await?,
        certificates: addresses.chain(files).collect(),
        deadline: args.timeout,
    };
    let mut facts = if args.files.is_empty() {
        from_cluster(args, policy, others).await?
    } else {
        from_files(args, policy, &others).await?
    };
    if let Some(rules) = agent_rules {
        facts.lines = Known::Read(rules);
    }
    facts.without = args.without.iter().copied().map(Into::into).collect();
    let answer = Answer { findings: examine(&facts) };
    out::answer(&answer, args.output)?;
    let worst = answer.findings.iter().map(|one| one.severity).max();
    Ok(if worst == Some(Severity::Broken) { ExitCode::from(BROKEN) } else { ExitCode::SUCCESS })
}

async fn from_cluster(args: &Doctor, policy: Option<Rules>, others: Beside) -> Result<Facts> {
    let options = Options {
        rules: policy.unwrap_or_default(),
        beside: others,
        components: args.component.iter().copied().map(Into::into).collect(),
        preflight: args.preflight,
        ..Options::new(cluster(args).await?)
    };
    // It holds everything that is asked at once.
    Ok(Box::pin(gather(options)).await?)
}

async fn from_files(args: &Doctor, policy: Option<Rules>, others: &Beside) -> Result<Facts> {
    let manifests = Manifests::gather(&args.files, DoctorInput::KINDS);
    let DoctorInput { mut facts, warnings } =
        DoctorInput::read(manifests, args.now.unwrap_or_else(Timestamp::now))?;
    tell(&warnings);
    facts.preflight = args.preflight;
    if let Some(rules) = policy {
        facts.rules = rules;
    }
    let rules = facts.rules.clone();
    Ok(beside(others, &rules, facts).await)
}

/// The cluster that is meant: of the kubeconfig, or as kubectl finds it.
async fn cluster(args: &Doctor) -> Result<Access> {
    if let Some(file) = &args.kubeconfig {
        return component::access(Some(file)).await;
    }
    let found = kube::Config::infer().await;
    let config = found.map_err(|error| anyhow!("no cluster is known: {error}; give --kubeconfig or -f"))?;
    let client = access::client(config).map_err(|error| anyhow!("cannot talk to the cluster: {error}"))?;
    Ok(Access::Client(client))
}

fn agent_rules(args: &Doctor) -> Result<Policy> {
    let manifests = Manifests::gather(&args.agent_rules, CheckInput::KINDS);
    let CheckInput { policy, warnings, .. } = CheckInput::read(manifests)?;
    tell(&warnings);
    Ok(policy)
}

fn tell(warnings: &[Problem]) {
    let lines: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    crate::what_if::warn(&lines);
}

/// What was found.
struct Answer {
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Document<'a> {
    broken: usize,
    warnings: usize,
    findings: &'a [Finding],
}

impl Answer {
    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|one| one.severity == severity).count()
    }
}

impl out::Answer for Answer {
    const KIND: &'static str = "DoctorReport";

    fn table(&self, detail: Detail) -> String {
        table::render(self, detail)
    }

    fn document(&self) -> impl Serialize {
        Document {
            broken: self.count(Severity::Broken),
            warnings: self.count(Severity::Warning),
            findings: &self.findings,
        }
    }
}

//! What is Prometheus asked for? The metrics of the policy in force, one query each.

use super::watched::Message;
use crate::ctx::Ctx;
use crate::sources::prometheus;
use loadline_api::prometheus::Query;
use loadline_core::load::policy::Rules;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How Prometheus is asked for the metrics of the policy.
#[derive(Clone, Debug)]
pub struct Monitoring {
    pub target: prometheus::Target,
    pub every: Duration,
    pub timeout: Duration,
    pub label: Option<String>,
    /// Matchers for series asked for by name, such as `cluster="a"`.
    pub matchers: Vec<String>,
    /// Expressions in place of the series of that name.
    pub expressions: Vec<(String, String)>,
}

impl Monitoring {
    /// What is asked for the metrics of a policy.
    pub(crate) fn options(&self, rules: &Rules) -> prometheus::Options {
        let fetched = rules.metrics().iter().filter(|metric| metric.period.is_some());
        let query = |name: &str| match self.expressions.iter().find(|(metric, _)| metric == name) {
            Some((_, text)) => Query::Expression(text.clone()),
            None => Query::Rule { name: name.to_owned(), matchers: self.matchers.clone() },
        };
        prometheus::Options {
            target: self.target.clone(),
            every: self.every,
            timeout: self.timeout,
            label: self.label.clone(),
            queries: fetched.map(|metric| (metric.name.clone(), query(&metric.name))).collect(),
        }
    }
}

/// Asks Prometheus, if it is to be asked.
#[derive(Debug)]
pub(super) struct Asking {
    monitoring: Option<Monitoring>,
    asked: Option<prometheus::Options>,
    tasks: JoinSet<()>,
}

impl Asking {
    pub fn new(monitoring: Option<Monitoring>) -> Self {
        Self { monitoring, asked: None, tasks: JoinSet::new() }
    }

    /// Another policy is another set of queries.
    pub fn follow(&mut self, rules: &Rules, ctx: &Ctx, events: impl FnOnce() -> mpsc::Sender<Message>) {
        let Some(monitoring) = &self.monitoring else { return };
        let wanted = monitoring.options(rules);
        if self.asked.as_ref().is_none_or(|asked| asked.queries != wanted.queries) {
            self.tasks.abort_all();
            self.tasks.spawn(prometheus::poll(wanted.clone(), ctx.seed(), events(), Message::Answered));
            self.asked = Some(wanted);
        }
    }
}

//! Which of several leads? The flags are those of Kubernetes' own components.

use anyhow::Result;
use clap::{ArgAction, Args};
use loadline_core::lease::Settings;
use loadline_services::cluster::lease;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(next_help_heading = "Leader election")]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub struct LeaderElection {
    /// Let one of several lead, by a lease; the others stand by
    #[arg(long, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set, default_value_t = false)]
    pub leader_elect: bool,
    /// How long the others wait before they take over from a leader they hear nothing of
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = crate::args::duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long a leader that cannot renew its lease goes on; shorter than the lease
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::args::duration)]
    pub leader_elect_renew_deadline: Duration,
    /// Time between two attempts to get or renew the lease
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = crate::args::duration)]
    pub leader_elect_retry_period: Duration,
    /// What the lock is kept in; there is only one way
    #[arg(long, value_name = "KIND", default_value = "leases")]
    pub leader_elect_resource_lock: String,
    /// Name of the lease; by default that of the component, such as loadline-scheduler
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_name: Option<String>,
    /// Namespace of the lease
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    pub leader_elect_resource_namespace: String,
}

impl LeaderElection {
    /// The election of a component, if there is one.
    ///
    /// # Errors
    /// Everything that is wrong with its flags.
    pub fn lease(&self, component: &str, identity: &str) -> Result<Option<lease::Checked>> {
        let options = lease::Options {
            leader_elect: self.leader_elect,
            settings: Settings {
                lease_duration: self.leader_elect_lease_duration,
                renew_deadline: self.leader_elect_renew_deadline,
                retry_period: self.leader_elect_retry_period,
            },
            resource_lock: self.leader_elect_resource_lock.clone(),
            resource_name: self.leader_elect_resource_name.clone().unwrap_or_else(|| component.to_owned()),
            resource_namespace: self.leader_elect_resource_namespace.clone(),
        };
        let checked = options.check(&options.lock(identity))?;
        Ok(self.leader_elect.then_some(checked))
    }
}

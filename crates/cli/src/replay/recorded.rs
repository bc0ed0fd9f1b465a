//! What a cluster of one's own used, as a world to replay.

use super::args::Replay;
use super::{Input, told};
use crate::component;
use anyhow::{Context as _, Result};
use jiff::Timestamp;
use loadline_replay::recorded::{self, Recorded};
use loadline_replay::world::World;
use loadline_services::sources::prometheus::Target;
use loadline_services::sources::recording::{self, Options, STEP};

/// Asks, and makes a world of it.
pub fn read(args: &Replay, target: &Target) -> Result<Input> {
    let flags = &args.recorded;
    let until = flags.until.unwrap_or_else(Timestamp::now).as_second();
    let until = Timestamp::from_second(until - until.rem_euclid(STEP))?;
    let steps = usize::try_from(flags.since.as_secs() / STEP).unwrap_or(0);
    let bar = super::progress::Bar::reading();
    let asked = async {
        // What can be said of both is said at once.
        let (cluster, target) =
            tokio::join!(component::access(flags.kubeconfig.as_deref()), flags.credentials.target(target));
        let (cluster, target) = match (cluster, target) {
            (Err(one), Err(other)) => return told(&[one.to_string(), other.to_string()]).map(|()| None),
            (cluster, target) => (cluster?, target?),
        };
        let usual = || Options::usual_query(&flags.matchers);
        let options = Options {
            cluster,
            target,
            timeout: flags.prometheus_timeout,
            query: flags.prometheus_query.clone().unwrap_or_else(usual),
            steps,
            until,
        };
        match recording::read(&options, |share| bar.tell(share)).await {
            Ok(recording) => Ok(Some(recording)),
            Err(problems) => told(&problems).map(|()| None),
        }
    };
    let found = tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(asked);
    bar.end();
    let found = found?.context("nothing was recorded")?;
    let pods: Vec<Recorded> = found
        .pods
        .into_iter()
        .map(|one| Recorded {
            workload: one.workload.into(),
            request_milli: one.request_milli,
            arrives: one.arrives,
            milli: one.milli,
        })
        .collect();
    let world = recorded::world(found.nodes.iter().map(|node| node.milli).collect(), &pods, found.steps);
    let name = format!("{} until {until}", target.address.to_string().trim_end_matches('/'));
    Ok(Input { name, series: Vec::new(), world: Some(world), notes: found.notes })
}

/// The cores of the smallest and of the largest node.
#[expect(clippy::cast_precision_loss, reason = "cores of a machine")]
pub fn sizes(world: &World) -> (f64, f64) {
    let cores = |milli: Option<&i64>| (milli.copied().unwrap_or(0) as f64 / 100.0).round() / 10.0;
    (cores(world.nodes.iter().min()), cores(world.nodes.iter().max()))
}

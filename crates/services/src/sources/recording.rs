//! What did a cluster use? Asked of its Prometheus, piece by piece, and of its API server, which knows requests, owners and
//! nodes; put together to pods that come, use what they used, and leave.
//!
//! Only what every kubelet serves is needed (`/metrics/cadvisor`), no kube-state-metrics: a pod is there from its first
//! measurement to its last.

mod gaps;
mod join;
mod workload;

use super::prometheus::{Client, Range, Target, Trouble};
use crate::cluster::resource::{NODES, PODS};
use crate::cluster::watch::{Watches, logged, watched};
use crate::cluster::{Access, Connection, Event};
use jiff::Timestamp;
use loadline_api::prometheus::{RangeAnswer, Refused, read_range};
use loadline_core::object::Key;
use loadline_core::view::{NodeFacts, PodFacts};
use std::collections::BTreeMap;
use std::time::Duration;

/// Seconds between two measurements, and how long each looks back.
pub const STEP: i64 = 300;
/// How many measurements are asked for at once, at first and at most: an hour, a day.
const FIRST_PIECE: usize = 12;
const LARGEST_PIECE: usize = 288;
/// Below this many bytes of an answer, the next may be twice as long.
const ROOMY: usize = 4 << 20;
/// The most that is kept: a week of a hundred thousand pods.
const MOST_SAMPLES: usize = 200_000_000;
/// How long reading the cluster may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;

/// Of whom, and since when.
#[derive(Clone, Debug)]
pub struct Options {
    pub cluster: Access,
    pub target: Target,
    /// How long an answer may take.
    pub timeout: Duration,
    /// What is asked: the cores pods use, with the labels `namespace` and `pod`.
    pub query: String,
    /// In whole steps before `until`.
    pub steps: usize,
    /// A whole number of steps since 1970.
    pub until: Timestamp,
}

impl Options {
    pub const TIMEOUT: Duration = Duration::from_mins(1);

    /// What is asked unless somebody knows better, of series that match.
    #[must_use]
    pub fn usual_query(matchers: &[String]) -> String {
        let mut all = vec!["container!=\"\"".to_owned(), "container!=\"POD\"".to_owned()];
        all.extend_from_slice(matchers);
        format!("sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{{{}}}[5m]))", all.join(","))
    }

    fn since(&self) -> i64 {
        self.until.as_second() - i64::try_from(self.steps).unwrap_or(i64::MAX / STEP) * STEP
    }
}

/// What a cluster used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Sorted by name.
    pub nodes: Vec<Machine>,
    /// By when they came, then by age and name.
    pub pods: Vec<Recorded>,
    pub steps: usize,
    /// What a reader should know, in sentences.
    pub notes: Vec<String>,
}

/// A node, and the CPU it has for pods that may be anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub name: String,
    pub milli: i64,
}

/// A pod, and what it used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub pod: Key,
    /// Pods of the same belong together.
    pub workload: String,
    /// Nobody knows what pods that are gone asked for, unless one of the same workload is still there.
    pub request_milli: Option<i64>,
    /// The step at which it came.
    pub arrives: usize,
    /// What it used in each step, in thousandths of a core.
    pub milli: Vec<u32>,
}

/// What Prometheus knows: by pod, the step and thousandths of a core, by step.
#[derive(Clone, Debug, Default)]
struct Used {
    pods: BTreeMap<Key, Vec<(u32, u32)>>,
    samples: usize,
    unlabelled: usize,
    warnings: Vec<String>,
}

/// What the API server knows.
#[derive(Debug, Default)]
struct Objects {
    nodes: Vec<NodeFacts>,
    pods: Vec<PodFacts>,
}

/// Asks, and puts together what was answered. `told` gets the share that is there.
///
/// # Errors
/// Everything that is wrong, a sentence each.
pub async fn read(options: &Options, told: impl Fn(f64)) -> Result<Recording, Vec<String>> {
    let (objects, used) = tokio::join!(objects(&options.cluster), used(options, told));
    match (objects, used) {
        (Ok(objects), Ok(used)) => join::join(&objects, used, options),
        (objects, used) => Err(objects.err().into_iter().chain(used.err()).collect()),
    }
}

async fn used(options: &Options, told: impl Fn(f64)) -> Result<Used, String> {
    let prefix = |why: &dyn std::fmt::Display| format!("prometheus: {why}");
    let client = Client::new(options.target.clone()).await.map_err(|why| prefix(&why))?;
    let (mut used, mut done) = (Used::default(), 0);
    let (mut piece, mut most) = (FIRST_PIECE, LARGEST_PIECE);
    while done < options.steps {
        let count = piece.min(options.steps - done);
        match ask(&client, options, done, count).await {
            Ok((answer, bytes)) => {
                used.take(answer, options).map_err(|why| prefix(&why))?;
                done += count;
                told(share(done, options.steps));
                if bytes < ROOMY {
                    piece = (piece * 2).min(most);
                }
            }
            // Less at once, and never that much again.
            Err(Trouble::TooMuch(_)) if count > 1 => (piece, most) = (count / 2, count / 2),
            Err(trouble) => return Err(prefix(&trouble)),
        }
    }
    Ok(used)
}

#[expect(clippy::cast_precision_loss, reason = "steps of some weeks")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// One piece: so many steps from one on.
async fn ask(
    client: &Client,
    options: &Options,
    from: usize,
    count: usize,
) -> Result<(RangeAnswer, usize), Trouble> {
    // What is answered for a moment was used in the five minutes before it.
    let moment = |step: usize| options.since() + i64::try_from(step + 1).unwrap_or(i64::MAX / STEP) * STEP;
    let range = Range { first: moment(from), last: moment(from + count - 1), step: STEP };
    let body = client.query_range(&options.query, range, options.timeout).await?;
    let address = &options.target.address;
    let answer = read_range(&body).map_err(|refused| match &refused {
        // It has limits of its own.
        Refused::Failed { kind, .. } if kind == "execution" || kind == "timeout" => {
            Trouble::TooMuch(format!("{address}: {refused}"))
        }
        _ => Trouble::Other(format!("{address}: {refused}")),
    })?;
    Ok((answer, body.len()))
}

impl Used {
    fn take(&mut self, answer: RangeAnswer, options: &Options) -> Result<(), String> {
        self.unlabelled = self.unlabelled.max(answer.unlabelled);
        for warning in answer.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        for one in answer.pods {
            let row = self.pods.entry(one.pod.clone()).or_default();
            for (second, cores) in one.samples {
                let step = u32::try_from((second - options.since()) / STEP - 1);
                let Some(step) = step.ok().filter(|step| (*step as usize) < options.steps) else { continue };
                if row.last().is_some_and(|(last, _)| *last >= step) {
                    return Err(format!(
                        "several series for the pod {}: the query must sum by (namespace, pod)",
                        one.pod
                    ));
                }
                row.push((
                    step,
                    milli(cores).ok_or_else(|| {
                        format!("{cores} for the pod {}: expected cores, from 0 to 100000", one.pod)
                    })?,
                ));
                self.samples += 1;
            }
        }
        if self.samples > MOST_SAMPLES {
            return Err(format!("more than {MOST_SAMPLES} measurements: give a shorter --since"));
        }
        Ok(())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
fn milli(cores: f64) -> Option<u32> {
    (0.0..=100_000.0).contains(&cores).then(|| (cores * 1000.0).round() as u32)
}

watched!(Nodes: NODES, skip loadline_api::node::SKIP, NodeFacts, |o| loadline_api::node::facts(o).map(logged));
watched!(Pods: PODS, skip loadline_api::pod::SKIP, Box<PodFacts>, |o| loadline_api::pod::read(o).map(logged).map(|pod| Box::new(pod.facts)));

enum Message {
    Node(Event<NodeFacts>),
    Pod(Event<Box<PodFacts>>),
}

/// All nodes and pods, once.
async fn objects(cluster: &Access) -> Result<Objects, String> {
    let (client, _) = cluster.connect().await?;
    let (mut watches, mut messages) = Watches::new(Connection::new(client), WAITING);
    watches.add::<Nodes>(Message::Node);
    watches.add::<Pods>(Message::Pod);
    let (mut objects, mut nodes_listed, mut pods_listed) = (Objects::default(), false, false);
    let read = async {
        while !(nodes_listed && pods_listed) {
            match messages.recv().await {
                Some(Message::Node(Event::Applied(_, Ok(node)))) if !nodes_listed => objects.nodes.push(node),
                Some(Message::Pod(Event::Applied(_, Ok(pod)))) if !pods_listed => objects.pods.push(*pod),
                Some(Message::Node(Event::Listed(_))) => nodes_listed = true,
                Some(Message::Pod(Event::Listed(_))) => pods_listed = true,
                // A page that is not there any more begins the list again.
                Some(Message::Node(Event::ListStarted)) => objects.nodes.clear(),
                Some(Message::Pod(Event::ListStarted)) => objects.pods.clear(),
                Some(
                    Message::Node(Event::Failed(why) | Event::Forbidden(why))
                    | Message::Pod(Event::Failed(why) | Event::Forbidden(why)),
                ) => return Err(format!("cluster: {why}")),
                Some(_) => {}
                None => return Err("cluster: not read to the end".to_owned()),
            }
        }
        Ok(())
    };
    match tokio::time::timeout(PATIENCE, read).await {
        Ok(read) => read?,
        Err(_) => return Err(format!("cluster: not read within {} s", PATIENCE.as_secs())),
    }
    Ok(objects)
}

#[cfg(test)]
mod tests;

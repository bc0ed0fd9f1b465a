//! How does a test get many decisions at once, decisions about what was decided before, and another fleet?
//!
//! A [`Batch`] watches all bindings of a namespace from its beginning, so no decision is missed, whatever comes after
//! it: a placement that duplicates is decided about again as soon as its own result is written.
//!
//! [`Scheduler::change_fleet`] returns when the scheduler knows the new clusters and has queued all it will queue for
//! them. The proof is a binding for which no cluster is fit, so that it is not tried again, until the last cluster
//! gets a label. The scheduler hears of clusters in the order in which they are written, and looks through bindings
//! for one after the other.

use super::{Decision, Scheduler, decision};
use crate::control_plane::Error;
use crate::running::PATIENCE;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};

const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

/// The label that the last cluster of a fleet gets, with a value that was never there.
const SETTLED: &str = "loadline.dev/settled";

/// The scheduler passes over bindings without it.
const LABELS: &str = "/metadata/labels";

/// Bindings of one namespace that are decided about together. They stay when it goes, see [`Batch::clear`].
#[derive(Debug)]
pub struct Batch<'a> {
    scheduler: &'a Scheduler<'a>,
    list: String,
    events: Receiver<io::Result<Value>>,
    latest: BTreeMap<String, Value>,
}

/// A binding, and what the scheduler made of it.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The binding as the scheduler got it.
    pub binding: Value,
    /// What it decided first.
    pub decision: Decision,
}

impl<'a> Scheduler<'a> {
    /// Watches the bindings of a namespace, from now on.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn batch(&'a self, namespace: &str) -> Result<Batch<'a>, Error> {
        let list = format!("/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings");
        let now = self.plane.get(&list)?;
        let version = text(&now, "/metadata/resourceVersion");
        let path = format!("{list}?watch=1&resourceVersion={version}");
        let watch = self.plane.watch(&path, PATIENCE).map_err(Error::io("watch bindings"))?;
        let (sender, events) = channel();
        // The API server ends watches that are not read. The thread ends with its watch, or at the first event nobody
        // wants any more.
        std::thread::spawn(move || {
            for event in watch {
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
        Ok(Batch { scheduler: self, list, events, latest: BTreeMap::new() })
    }

    /// Makes the clusters what these objects say, status included, and waits until the scheduler goes by it. One with
    /// a time of deletion is deleted; it needs a finalizer, to stay. Bindings that are there may be decided about again.
    ///
    /// # Errors
    /// When the API server refuses, or the scheduler takes no notice.
    pub fn change_fleet(&self, clusters: &[Value]) -> Result<(), Error> {
        static MARKS: AtomicU64 = AtomicU64::new(0);
        let mark = format!("mark-{}", MARKS.fetch_add(1, Ordering::Relaxed));
        let mut batch = self.batch("default")?;
        let labelled = json!({"clusterAffinity": {"labelSelector": {"matchLabels": {SETTLED: mark}}},
            "clusterTolerations": [{"operator": "Exists"}]});
        let mut binding = super::deployment(&mark, 0, &Value::Null, &labelled);
        let resource = json!({"apiVersion": SETTLED, "kind": "Settled", "name": mark});
        binding["spec"]["resource"] = resource;
        batch.create(&[binding])?;
        for cluster in clusters {
            self.write(cluster)?;
        }
        if let Some(last) = clusters.last() {
            let label = json!({"metadata": {"labels": {SETTLED: mark}}});
            self.plane.patch(&format!("{CLUSTERS}/{}", text(last, "/metadata/name")), &label)?;
            batch.until(&mark, |binding| decision(binding).is_some_and(|known| known.reason == "Success"))?;
        }
        self.plane.delete(&format!("{}/{mark}", batch.list))
    }

    fn write(&self, cluster: &Value) -> Result<(), Error> {
        let path = format!("{CLUSTERS}/{}", text(cluster, "/metadata/name"));
        let mut new = cluster.clone();
        let leaves =
            new["metadata"].as_object_mut().is_some_and(|all| all.remove("deletionTimestamp").is_some());
        let version = self.plane.get(&path)?["metadata"]["resourceVersion"].clone();
        new["metadata"]["resourceVersion"] = version;
        let enabled = json!({"groupVersion": SETTLED, "resources": [{"kind": "Settled", "name": "settled"}]});
        match new["status"]["apiEnablements"].as_array_mut() {
            Some(all) => all.push(enabled),
            None => new["status"]["apiEnablements"] = json!([enabled]),
        }
        let written = self.plane.replace(&path, &new)?;
        new["metadata"]["resourceVersion"] = written["metadata"]["resourceVersion"].clone();
        self.plane.replace(&format!("{path}/status"), &new)?;
        if leaves { self.plane.delete(&path) } else { Ok(()) }
    }
}

impl Batch<'_> {
    /// Makes these bindings and waits for the first decision about each; in their order. What is in their status is
    /// there when the scheduler hears of them.
    ///
    /// # Errors
    /// When the API server refuses one, or the scheduler says nothing for minutes.
    pub fn create(&mut self, bindings: &[Value]) -> Result<Vec<Decided>, Error> {
        let mut written = Vec::new();
        for binding in bindings {
            let mut hidden = binding.clone();
            let Some(status) = hidden.as_object_mut().and_then(|fields| fields.remove("status")) else {
                written.push(self.scheduler.plane.create(&self.list, binding)?);
                continue;
            };
            let labels = hidden.pointer_mut(LABELS).map(Value::take).unwrap_or_default();
            self.scheduler.plane.create(&self.list, &hidden)?;
            let path = self.path(binding);
            self.scheduler.plane.patch(&format!("{path}/status"), &json!({"status": status}))?;
            written.push(self.scheduler.plane.patch(&path, &json!({"metadata": {"labels": labels}}))?);
        }
        self.decisions(written)
    }

    /// Waits until nothing is left to do about these bindings, which have been scheduled; answers what has become of
    /// them.
    ///
    /// # Errors
    /// When one is never at rest.
    pub fn rest(&mut self, names: &[String]) -> Result<Vec<Value>, Error> {
        let at_rest = |binding: &Value| {
            let generation = binding.pointer("/metadata/generation");
            decision(binding).is_some_and(|known| known.reason == "Success")
                && generation == binding.pointer("/status/schedulerObservedGeneration")
        };
        names.iter().map(|name| self.until(name, at_rest)).collect()
    }

    /// Changes bindings that are at rest to these, and waits until the scheduler has seen to each; in their order.
    /// Where it found nothing to decide, its decision is the one there was.
    ///
    /// # Errors
    /// As [`Batch::create`].
    pub fn change(&mut self, bindings: &[Value]) -> Result<Vec<Decided>, Error> {
        let mut written = Vec::new();
        for binding in bindings {
            written.push(self.scheduler.plane.replace(&self.path(binding), binding)?);
        }
        self.decisions(written)
    }

    /// Removes all bindings of the namespace.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn clear(self) -> Result<(), Error> {
        self.scheduler.plane.delete(&self.list)
    }

    fn path(&self, binding: &Value) -> String {
        format!("{}/{}", self.list, text(binding, "/metadata/name"))
    }

    fn decisions(&mut self, written: Vec<Value>) -> Result<Vec<Decided>, Error> {
        let mut open: BTreeMap<String, usize> =
            written.iter().map(|binding| text(binding, "/metadata/name").to_owned()).zip(0..).collect();
        let mut made: Vec<Option<Decision>> = written.iter().map(unchanged).collect();
        open.retain(|_, at| made[*at].is_none());
        while let Some(name) = open.keys().next().cloned() {
            let changed = self.next(&name)?;
            if let Some(at) = open.get(&changed)
                && let Some(found) = decided(&self.latest[&changed], &written[*at])
            {
                made[*at] = Some(found);
                open.remove(&changed);
            }
        }
        let pairs = written.into_iter().zip(made);
        Ok(pairs.filter_map(|(binding, made)| Some(Decided { binding, decision: made? })).collect())
    }

    /// Reads on until this is true of the binding of that name.
    fn until(&mut self, name: &str, done: impl Fn(&Value) -> bool) -> Result<Value, Error> {
        loop {
            if let Some(binding) = self.latest.get(name).filter(|binding| done(binding)) {
                return Ok(binding.clone());
            }
            self.next(name)?;
        }
    }

    /// The name of the binding that the next event is about.
    fn next(&mut self, awaited: &str) -> Result<String, Error> {
        let silent = || self.scheduler.running.failure(format!("has not seen to {awaited}"));
        let event = match self.events.recv() {
            Ok(Ok(event)) => event,
            Ok(Err(error)) if error.kind() == io::ErrorKind::TimedOut => return Err(silent()),
            Ok(Err(error)) => return Err(Error::io("watch bindings")(error)),
            Err(_) => return Err(silent()),
        };
        let name = text(&event["object"], "/metadata/name").to_owned();
        self.latest.insert(name.clone(), event["object"].clone());
        Ok(name)
    }
}

/// The decision there was, if what was written says nothing new: the scheduler will not look at it.
fn unchanged(written: &Value) -> Option<Decision> {
    let seen = written.pointer("/status/schedulerObservedGeneration")?;
    decision(written).filter(|_| written.pointer("/metadata/generation") == Some(seen))
}

/// The decision in a later state of a binding about what was written: a success says which state it is about, and a
/// failure follows a success.
fn decided(now: &Value, written: &Value) -> Option<Decision> {
    let count = |binding: &Value, pointer: &str| {
        let value = binding.pointer(pointer)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    };
    let version = |binding: &Value| count(binding, "/metadata/resourceVersion");
    let made = decision(now).filter(|_| version(now) > version(written))?;
    let about = count(now, "/status/schedulerObservedGeneration");
    (made.reason != "Success" || about >= count(written, "/metadata/generation")).then_some(made)
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_about_the_state_it_names() {
        let binding = |version: &str, generation: i64, about: i64, reason: &str| {
            json!({"metadata": {"resourceVersion": version, "generation": generation},
                "status": {"schedulerObservedGeneration": about,
                    "conditions": [{"type": "Scheduled", "reason": reason, "message": ""}]}})
        };
        let written = binding("10", 3, 2, "Success");
        for (why, now, want) in [
            ("an event of before", binding("9", 2, 2, "Success"), false),
            ("the write itself", binding("10", 3, 2, "Success"), false),
            ("only the clusters are written", binding("11", 4, 2, "Success"), false),
            ("about this state", binding("12", 4, 3, "Success"), true),
            ("a failure says nothing of states", binding("12", 3, 2, "NoClusterFit"), true),
        ] {
            assert_eq!(decided(&now, &written).is_some(), want, "{why}");
        }
    }
}

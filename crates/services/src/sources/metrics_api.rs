//! What do nodes and pods use, as the metrics API says?
//!
//! Late, and sometimes not at all: a request that fails is told and made up for by the next. No request ever holds up a
//! decision: measurements come as messages, like everything else.

use crate::cluster::connection::{Ask, Connection, Verb};
use crate::cluster::resource::{NODE_METRICS, POD_METRICS, Resource};
use loadline_api::json::Tree;
use loadline_api::{Error, metrics};
use loadline_core::ledger::Sample;
use loadline_core::object::Key;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// How long measurements may take to come, where they are asked for more often than that.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often the metrics API is asked, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// As often as the metrics server measures, by its defaults.
    pub every: Duration,
    pub of: Of,
}

impl Default for Options {
    fn default() -> Self {
        Self { every: Duration::from_secs(15), of: Of::NodesAndPods }
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Figures of pods are many and change little.
    Nodes,
    NodesAndPods,
    /// Pods alone, container by container.
    Containers,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub nodes: Vec<(String, Sample)>,
    pub pods: Vec<(Key, Sample)>,
    /// Of each pod, its containers.
    pub containers: Vec<(Key, Vec<(String, Sample)>)>,
}

/// What was measured, or why that is not known.
pub type Measurements = Result<Measured, String>;

/// Asks until nobody listens any more.
pub async fn poll<M: Send + 'static>(
    connection: Connection,
    options: Options,
    events: mpsc::Sender<M>,
    wrap: fn(Measurements) -> M,
) {
    let mut ticks = interval(options.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = events.closed() => return,
            _ = ticks.tick() => {}
        }
        if events.send(wrap(measure(&connection, options).await)).await.is_err() {
            return;
        }
    }
}

/// Asks once.
///
/// # Errors
/// Why there are no measurements.
pub async fn once(connection: &Connection, of: Of) -> Measurements {
    measure(connection, Options { of, ..Options::default() }).await
}

async fn measure(connection: &Connection, options: Options) -> Measurements {
    let timeout = options.every.max(TIMEOUT);
    if options.of == Of::Containers {
        let containers = list(connection, POD_METRICS, timeout, metrics::containers).await?;
        return Ok(Measured { containers, ..Measured::default() });
    }
    let nodes = list(connection, NODE_METRICS, timeout, metrics::node);
    if options.of == Of::Nodes {
        return Ok(Measured { nodes: nodes.await?, ..Measured::default() });
    }
    let pods = list(connection, POD_METRICS, timeout, metrics::pod);
    let (nodes, pods) = tokio::join!(nodes, pods);
    let pods = pods.inspect_err(|problem| tracing::debug!(problem, "no measurements of pods"));
    Ok(Measured { nodes: nodes?, pods: pods.unwrap_or_default(), ..Measured::default() })
}

async fn list<T>(
    connection: &Connection,
    of: Resource,
    timeout: Duration,
    read: impl Fn(&Tree<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("measurements of {}: {why}", of.plural);
    let ask = Ask::read(Verb::List, of, of.collection(""));
    let text = connection.call(ask, timeout).await.map_err(|failure| failed(&failure.message))?;
    let sample = |value: &Tree<'_>| {
        read(value).inspect_err(|error| tracing::debug!(%error, "measurement cannot be read")).ok()
    };
    let mut reader = serde_json::Deserializer::from_slice(&text);
    let items = List(&sample).deserialize(&mut reader).map_err(|error| failed(&error))?;
    reader.end().map_err(|error| failed(&error))?;
    Ok(items)
}

/// Reads the items of a list one by one: no more than one of thousands is in memory as a tree.
struct List<'r, F>(&'r F);

/// The items themselves.
struct Items<'r, F>(&'r F);

impl<'de, T, F: Fn(&Tree<'_>) -> Option<T>> DeserializeSeed<'de> for List<'_, F> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T, F: Fn(&Tree<'_>) -> Option<T>> Visitor<'de> for List<'_, F> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(field) = map.next_key::<String>()? {
            if field == "items" {
                items = map.next_value_seed(Items(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(items)
    }
}

impl<'de, T, F: Fn(&Tree<'_>) -> Option<T>> DeserializeSeed<'de> for Items<'_, F> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T, F: Fn(&Tree<'_>) -> Option<T>> Visitor<'de> for Items<'_, F> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items")
    }

    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = items.next_element::<Tree<'de>>()? {
            out.extend((self.0)(&item));
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_item_by_item_and_what_is_none_is_told() {
        let name = |tree: &Tree<'_>| tree.get("n").and_then(Tree::as_str).map(str::to_owned);
        let read = |text: &str| {
            let mut reader = serde_json::Deserializer::from_str(text);
            let items = List(&name).deserialize(&mut reader)?;
            reader.end().map(|()| items)
        };
        for (text, want) in [
            (
                r#"{"kind": "L", "items": [{"n": "a"}, {"x": 1}, {"n": "b"}], "metadata": {}}"#,
                Some(vec!["a", "b"]),
            ),
            (r#"{"items": null}"#, Some(vec![])),
            (r#"{"kind": "L"}"#, Some(vec![])),
            (r#"{"items": {"n": "a"}}"#, None),
            (r#"{"items": [{"n": "a"}"#, None),
            (r#"{"items": []} more"#, None),
            ("<html>", None),
            ("[]", None),
        ] {
            assert_eq!(
                read(text).ok(),
                want.map(|all| all.into_iter().map(str::to_owned).collect()),
                "{text}"
            );
        }
    }
}

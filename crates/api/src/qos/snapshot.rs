//! What was measured of a node, and what is remembered? A `NodeSnapshot`, to read; its state, to write.

use super::pod::{measured, measurement, named};
use super::write::{self, reply};
use super::{PREVIEW, rule_name};
use crate::json::{Skip, Tree};
use crate::read::{At, Error, Warning, tolerant};
use jiff::Timestamp;
use loadline_core::object::Key;
use loadline_core::qos::{
    Eviction, Latest, Level, Missing, Node, NodeSnapshot, Options, Order, Planner, Pod, RuleState, Series,
    State, Throttled,
};
use loadline_core::select::Taint;
use loadline_core::select::taint::Effect;
use loadline_core::view::{Budget, Labels};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// API version and kind.
pub const SNAPSHOT: (&str, &str) = ("loadline.dev/v1alpha1", "NodeSnapshot");

/// What [`node()`] does not read. Annotations stay: some say what an agent may do.
pub const SKIP_NODE: Skip = crate::node::SKIP_BUT_CONDITIONS;

/// The node of a `Node`.
///
/// # Errors
/// When the object is not what it should be.
pub fn node(value: &Tree<'_>) -> Result<(Node, Vec<Warning>), Error> {
    tolerant("Node", value, |root| {
        let (metadata, spec, status) = (root.get("metadata"), root.get("spec"), root.get("status"));
        let annotations = metadata.get("annotations");
        let capacity = status.get("capacity").known_amounts();
        let of = |name: &str, scale| {
            capacity.get(name).and_then(Level::from_quantity).map(|level| level.times(scale, 1))
        };
        let taints = spec.get("taints");
        let taints: Vec<Taint> = taints.list();
        Node {
            name: metadata.get("name").needed().into(),
            labels: Labels::plain(&metadata.get("labels").texts()),
            cpu: of("cpu", 1000),
            memory: of("memory", 1),
            taints,
            preview: annotations.get(PREVIEW).text() == Some("true"),
        }
    })
}

/// What else is known of the node when a snapshot is read.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Nodes, by name.
    pub nodes: BTreeMap<Arc<str>, Node>,
    /// Pods and the node each is on.
    pub pods: BTreeMap<Key, (Pod, Option<String>)>,
    /// Disruption budgets.
    pub budgets: Vec<Budget>,
}

const FIELDS: [&str; 10] = [
    "apiVersion",
    "kind",
    "metadata",
    "timestamp",
    "node",
    "metrics",
    "latestMetrics",
    "pods",
    "state",
    "options",
];
/// `countIowait` is for whoever measures.
const OPTIONS: [&str; 13] = [
    "executeExcess",
    "order",
    "planner",
    "missingMetricPolicy",
    "maxEvictionsPerCycle",
    "maxEvictionsPerHour",
    "collectIntervalSeconds",
    "minPodAgeSeconds",
    "protectedNamespaces",
    "agent",
    "taintEffect",
    "dryRun",
    "countIowait",
];

/// Reads a snapshot, on top of what is known. `now` is its own time unless given.
///
/// # Errors
/// When the object is not what it should be.
pub fn read(
    value: &Tree<'_>,
    known: Known,
    now: Option<Timestamp>,
) -> Result<(NodeSnapshot, Vec<Warning>), Error> {
    tolerant("NodeSnapshot", value, |root| {
        root.only(&FIELDS);
        let metadata = root.get("metadata");
        let name: Arc<str> = metadata.get("name").needed().into();
        let at = root.get("timestamp");
        let time = at.time();
        if !at.is_set() {
            at.fail("expected a time such as 2025-01-31T12:00:00Z, found nothing");
        }
        let time = time.unwrap_or_default();
        let mut node =
            known.nodes.get(&name).cloned().unwrap_or_else(|| Node { name: name.clone(), ..Node::default() });
        let own = root.get("node");
        own.only(&["cpuCores", "memoryTotal"]);
        node.cpu = positive(&own.get("cpuCores"), 1000).or(node.cpu);
        node.memory = positive(&own.get("memoryTotal"), 1).or(node.memory);
        let pods = pods(root, &name, known.pods);
        let (metrics, latest) = (root.get("metrics"), root.get("latestMetrics"));
        NodeSnapshot {
            now: now.unwrap_or(time),
            node,
            series: metrics.items().map(|at| series(&at, time)).collect(),
            latest: latest.items().map(|at| again(&at)).collect(),
            pods,
            budgets: known.budgets,
            state: state(&root.get("state")),
            options: options(&root.get("options")),
        }
    })
}

/// An amount that there must be some of.
fn positive(at: &At<'_, '_>, scale: i128) -> Option<Level> {
    let value = at.number()?;
    let level = Level::from_f64(value).filter(|level| *level > Level::ZERO);
    if level.is_none() {
        at.fail(format!("expected a number above 0, found {value}"));
    }
    level.map(|level| level.times(scale, 1))
}

fn pods(root: &At<'_, '_>, node: &str, known: BTreeMap<Key, (Pod, Option<String>)>) -> Vec<Pod> {
    let mut all: BTreeMap<Key, (Pod, bool)> = BTreeMap::new();
    for (key, (pod, on)) in known {
        let here = on.as_deref().is_some_and(|on| on == node);
        all.insert(key, (pod, here));
    }
    let mut seen = std::collections::BTreeSet::new();
    for at in root.get("pods").items() {
        let plain = named(at.get("namespace").text(), &at.get("name").needed());
        if !seen.insert(plain.key.clone()) {
            at.get("name").fail(format!("expected each pod once, found {} again", plain.key));
        }
        let (pod, here) = all.entry(plain.key.clone()).or_insert((plain, true));
        *here = true;
        measured(pod, &at);
    }
    all.into_values().filter_map(|(pod, here)| here.then_some(pod)).collect()
}

/// The value of a sample, or none; what is no number is told.
fn sample(at: &At<'_, '_>) -> Option<Level> {
    let value = measurement(at)?;
    let level = Level::from_f64(value);
    if level.is_none_or(|level| level < Level::ZERO) {
        at.warn(format!("{value} is no measurement"));
    }
    level
}

fn series(at: &At<'_, '_>, time: Timestamp) -> Series {
    at.only(&["name", "labels", "value", "timestamp"]);
    let value = at.get("value");
    if !value.is_set() {
        value.warn("expected a number, found nothing: the sample is missing");
    }
    Series {
        name: at.get("name").needed().into(),
        labels: Labels::plain(&at.get("labels").texts()),
        value: sample(&value),
        at: at.get("timestamp").time().unwrap_or(time),
    }
}

fn again(at: &At<'_, '_>) -> Latest {
    Latest {
        name: at.get("name").needed().into(),
        labels: Labels::plain(&at.get("labels").texts()),
        value: sample(&at.get("value")),
    }
}

/// One of several words.
fn word<T: Copy>(at: &At<'_, '_>, words: &[(&str, T)], otherwise: T) -> T {
    let Some(text) = at.text() else { return otherwise };
    let known = words.iter().find(|(word, _)| *word == text);
    known.map_or_else(
        || {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            at.fail(format!("expected one of {}, found {text:?}", all.join(", ")));
            otherwise
        },
        |(_, value)| *value,
    )
}

const MISSING: [(&str, Missing); 3] =
    [("ActAll", Missing::ActAll), ("Paced", Missing::Paced), ("Skip", Missing::Skip)];

fn options(at: &At<'_, '_>) -> Options {
    let plain = Options::default();
    at.only(&OPTIONS);
    let missing = at.get("missingMetricPolicy");
    missing.only(&["throttle", "evict"]);
    let count = |key: &str, otherwise: i64| {
        let at = at.get(key);
        let given = at.int().unwrap_or(otherwise);
        if given < 0 {
            at.fail(format!("expected 0 or more, found {given}"));
        }
        given.max(0)
    };
    let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    let excess = at.get("executeExcess");
    let excess = match excess.number() {
        None => plain.excess,
        Some(share) if (0.0..=1.0).contains(&share) => {
            Level::from_f64(share).and_then(|level| i64::try_from(level.nano()).ok()).unwrap_or(plain.excess)
        }
        Some(share) => {
            excess.fail(format!("expected a share from 0 to 1, found {share}"));
            plain.excess
        }
    };
    let interval = at.get("collectIntervalSeconds");
    let interval_seconds = interval.int().unwrap_or(plain.interval_seconds);
    if interval_seconds < 1 {
        interval.fail(format!("expected 1 or more, found {interval_seconds}"));
    }
    let namespaces = at.get("protectedNamespaces");
    let strings = |at: &At<'_, '_>| at.strings().into_iter().map(Arc::<str>::from).collect();
    Options {
        excess,
        restore_margin: plain.restore_margin,
        order: word(
            &at.get("order"),
            &[("priority-first", Order::PriorityFirst), ("class-first", Order::ClassFirst)],
            plain.order,
        ),
        planner: word(
            &at.get("planner"),
            &[("greedy", Planner::Greedy), ("minimal", Planner::Minimal)],
            plain.planner,
        ),
        missing_throttle: word(&missing.get("throttle"), &MISSING, plain.missing_throttle),
        missing_evict: word(&missing.get("evict"), &MISSING, plain.missing_evict),
        max_per_cycle: size(count("maxEvictionsPerCycle", 5)),
        max_per_hour: size(count("maxEvictionsPerHour", 60)),
        interval_seconds: interval_seconds.max(1),
        min_age_seconds: count("minPodAgeSeconds", 0),
        grace_cycles: plain.grace_cycles,
        protected_namespaces: if namespaces.is_set() {
            strings(&namespaces)
        } else {
            plain.protected_namespaces
        },
        agent: at.get("agent").text().map(Key::parse),
        taint: if word(&at.get("taintEffect"), &[("PreferNoSchedule", false), ("NoSchedule", true)], false) {
            Effect::NoSchedule
        } else {
            Effect::PreferNoSchedule
        },
        dry_run: at.get("dryRun").flag(),
    }
}

fn state(at: &At<'_, '_>) -> State {
    let (rules, throttled, evictions) = (at.get("rules"), at.get("throttled"), at.get("evictions"));
    at.only(&["cyclesSinceStart", "rules", "throttled", "evictions"]);
    let cycles = at.get("cyclesSinceStart");
    let rule = |at: At<'_, '_>| {
        let counted = |key: &str| {
            let at = at.get(key);
            let count = at.int32().unwrap_or_default();
            if count < 0 {
                at.fail(format!("expected 0 or more, found {count}"));
            }
            count.max(0)
        };
        let state = RuleState {
            above: counted("above"),
            below: counted("below"),
            active: at.get("active").flag(),
            restoring: at.get("restoring").flag(),
            only_said: at.get("onlySaid").flag(),
            last_triggered: at.get("lastTriggeredTime").time(),
            definition: at.get("definition").text().map(Arc::from),
            cool_down_seconds: at.get("coolDownSeconds").int(),
        };
        (Arc::new(rule_name(&at.get("rule"))), state)
    };
    let entry = |at: At<'_, '_>| {
        let us = |key: &str| {
            let at = at.get(key);
            if !at.is_set() {
                at.fail("expected a quota in microseconds or -1, found nothing");
            }
            at.int().unwrap_or(-1)
        };
        let rules = at.get("rules");
        Throttled {
            pod: Key::parse(&at.get("pod").needed()),
            uid: at.get("uid").string().into(),
            container: at.get("container").needed().into(),
            original_us: us("originalQuotaUs"),
            written_us: us("writtenQuotaUs"),
            unsure_us: {
                let unsure = at.get("unsureQuotasUs");
                unsure.items().filter_map(|at| at.int()).collect()
            },
            rules: rules.items().map(|at| Arc::new(rule_name(&at))).collect(),
            back_since: at.get("givenBackTime").time(),
        }
    };
    let eviction = |at: At<'_, '_>| {
        let time = at.get("time");
        if !time.is_set() {
            time.fail("expected a time such as 2025-01-31T12:00:00Z, found nothing");
        }
        let status = at.get("status");
        let code = status.int().unwrap_or(201);
        Eviction {
            pod: Key::parse(&at.get("pod").needed()),
            uid: at.get("uid").string().into(),
            at: time.time().unwrap_or_default(),
            reply: reply(u16::try_from(code).ok().filter(|code| (100..600).contains(code)).unwrap_or_else(
                || {
                    status.fail(format!("expected the status of an answer such as 201, found {code}"));
                    500
                },
            )),
            grace_seconds: at.get("graceSeconds").int(),
        }
    };
    State {
        cycles: cycles.int().and_then(|count| {
            u64::try_from(count).map_err(|_| cycles.fail(format!("expected 0 or more, found {count}"))).ok()
        }),
        rules: rules.items().map(rule).collect(),
        throttled: throttled.items().map(entry).collect(),
        evictions: evictions.items().map(eviction).collect(),
        leaving: Vec::new(),
    }
}

/// Reads a state as [`render_state`] writes it.
///
/// # Errors
/// When it is not what it should be.
pub fn read_state(value: &Tree<'_>) -> Result<(State, Vec<Warning>), Error> {
    tolerant("AgentJournal", value, |root| state(&root.get("state")))
}

/// The state as the next snapshot carries it.
#[must_use]
pub fn render_state(state: &State) -> Value {
    let rule = |(name, rule): (&Arc<loadline_core::qos::policy::RuleName>, &RuleState)| {
        let mut out = json!({
            "rule": name.to_string(), "above": rule.above, "below": rule.below,
            "active": rule.active, "restoring": rule.restoring,
            "lastTriggeredTime": rule.last_triggered.map(|time| time.to_string()),
        });
        if rule.only_said {
            out["onlySaid"] = json!(true);
        }
        if let Some(definition) = &rule.definition {
            out["definition"] = json!(&**definition);
        }
        if let Some(seconds) = rule.cool_down_seconds {
            out["coolDownSeconds"] = json!(seconds);
        }
        out
    };
    let entry = |entry: &Throttled| {
        let rules: Vec<String> = entry.rules.iter().map(ToString::to_string).collect();
        let mut out = json!({
            "pod": entry.pod.to_string(), "container": &*entry.container, "originalQuotaUs": entry.original_us,
            "writtenQuotaUs": entry.written_us, "rules": rules,
        });
        if !entry.uid.is_empty() {
            out["uid"] = json!(&*entry.uid);
        }
        if !entry.unsure_us.is_empty() {
            out["unsureQuotasUs"] = json!(entry.unsure_us);
        }
        if let Some(since) = entry.back_since {
            out["givenBackTime"] = json!(since.to_string());
        }
        out
    };
    let eviction = |one: &Eviction| {
        let mut out = json!({"pod": one.pod.to_string(), "time": one.at.to_string(), "status": write::status(one.reply)});
        if !one.uid.is_empty() {
            out["uid"] = json!(&*one.uid);
        }
        if let Some(seconds) = one.grace_seconds {
            out["graceSeconds"] = json!(seconds);
        }
        out
    };
    let mut out = Map::new();
    if let Some(cycles) = state.cycles {
        out.insert("cyclesSinceStart".to_owned(), json!(cycles));
    }
    out.insert("rules".to_owned(), state.rules.iter().map(rule).collect());
    out.insert("throttled".to_owned(), state.throttled.iter().map(entry).collect());
    out.insert("evictions".to_owned(), state.evictions.iter().map(eviction).collect());
    Value::Object(out)
}

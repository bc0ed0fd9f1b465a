//! What counts though the pod does not speak of it: images that are there already, and who belongs with it.

use super::generate::{Maker, Theme};
use super::{Pod, Service, Workload, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const MB: i64 = 1 << 20;

/// Every image: its names on nodes and its size. Of one that had several sizes, kube-scheduler would take the one it
/// heard of first.
const IMAGES: &[(&[&str], i64)] = &[
    (&["shop/web:latest"], 180 * MB + 12_345),
    (
        &["shop/web:1", "shop/web@sha256:1111111111111111111111111111111111111111111111111111111111111111"],
        700 * MB,
    ),
    (&["registry.local:5000/db:latest", "registry.local:5000/db:16"], 2500 * MB + 1),
    (&["cache"], 90 * MB),
    (&["cache:latest"], 23 * MB),
    (&["tiny:1"], 4 * MB),
    (&["none:latest"], 55 * MB),
    (&["huge:1"], 5000 * MB),
];

/// What pods call them, and some that are nowhere.
const ASKED: &[&str] = &[
    "shop/web",
    "shop/web",
    "shop/web:1",
    "shop/web@sha256:1111111111111111111111111111111111111111111111111111111111111111",
    "registry.local:5000/db",
    "registry.local:5000/db:16",
    "cache",
    "tiny:1",
    "huge:1",
    "nowhere:3",
];

const OWNERS: &[&str] = &[
    "ReplicaSet",
    "ReplicaSet",
    "ReplicaSet",
    "StatefulSet",
    "StatefulSet",
    "ReplicationController",
    "ReplicationController",
    "Job",
];

impl Maker {
    /// Gives nodes images, and the pod some of them.
    pub(super) fn images(&mut self, world: &mut World) {
        if !self.about(Theme::Images, 10, 100) {
            return;
        }
        for node in &mut world.nodes {
            let percent = self.dice.range(10, 70);
            for (names, size) in IMAGES {
                if self.dice.chance(percent) {
                    node.images.push((names.iter().map(ToString::to_string).collect(), *size));
                }
            }
        }
        let pod = &mut world.pod;
        let count = pod.asks.len() + pod.init.len();
        pod.images = (0..count).map(|_| self.dice.pick(ASKED).to_owned()).collect();
        if self.dice.chance(20) {
            let volume = json!({"name": "v", "image": {"reference": self.dice.pick(ASKED)}});
            pod.spec.insert("volumes".into(), json!([volume]));
        }
    }

    /// Services that select pods, and who made the one that looks for a place.
    pub(super) fn siblings(&mut self, world: &mut World) {
        let most = if self.theme == Theme::Siblings { 3 } else { 1 };
        while world.services.len() < most && self.about(Theme::Siblings, 12, 70) {
            let service = self.service(format!("s{}", world.services.len()), &world.pod);
            world.services.push(service);
        }
        if self.about(Theme::Siblings, 8, 65) {
            self.owner(world);
        }
    }

    fn service(&mut self, name: String, pod: &Pod) -> Service {
        let namespace = if self.dice.chance(90) { pod.namespace.clone() } else { "blue".to_owned() };
        let selector = match self.dice.below(100) {
            0..5 => None,
            5..10 => Some(BTreeMap::new()),
            10..25 => Some(self.labels()),
            _ => Some(self.part(&pod.labels)),
        };
        Service { name, namespace, selector }
    }

    fn labels(&mut self) -> BTreeMap<String, String> {
        let app = self.dice.pick(&["web", "db", "cache"]);
        [("app".to_owned(), app.to_owned())].into()
    }

    /// Some of these labels, at least one if there is one.
    fn part(&mut self, labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let at = self.dice.below(labels.len());
        let all = labels.iter().enumerate();
        let some: Vec<_> =
            all.filter(|(i, _)| *i == at || self.dice.chance(30)).map(|(_, pair)| pair).collect();
        some.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    fn owner(&mut self, world: &mut World) {
        let kind = self.dice.pick(OWNERS).to_owned();
        let name = "maker".to_owned();
        world.pod.owner = Some((kind.clone(), name.clone()));
        // Some are gone already.
        if kind == "Job" || self.dice.chance(6) {
            return;
        }
        // Some have changed since: the pod is not theirs any more by its labels.
        let own = !self.dice.chance(8) && !world.pod.labels.is_empty();
        let labels = if own { world.pod.labels.clone() } else { self.labels() };
        let namespace = if self.dice.chance(95) { world.pod.namespace.clone() } else { "green".to_owned() };
        let part = self.part(&labels);
        let selector = if kind == "ReplicationController" { json!(part) } else { self.selecting(part) };
        world.workloads.push(Workload { kind, name, namespace, selector, labels });
    }

    /// A selector that these labels meet.
    fn selecting(&mut self, mut labels: BTreeMap<String, String>) -> Value {
        let mut expressions = Vec::new();
        if self.dice.chance(40)
            && let Some((key, value)) = labels.pop_first()
        {
            expressions.push(match self.dice.below(3) {
                0 => json!({"key": key, "operator": "In", "values": [value, "other"]}),
                1 => json!({"key": key, "operator": "NotIn", "values": ["other"]}),
                _ => json!({"key": key, "operator": "Exists"}),
            });
        }
        if self.dice.chance(15) {
            expressions.push(json!({"key": "missing", "operator": "DoesNotExist"}));
        }
        json!({"matchLabels": labels, "matchExpressions": expressions})
    }
}

//! Worlds that are full: somebody has to go, or nobody can help.
//!
//! No two pods of a world started at the same time, so that two of them are never equally important and no two nodes
//! are cleared at the same cost: which of two equal nodes kube-scheduler takes depends on chance.

use super::dice::Dice;
use super::generate::{Maker, Theme};
use super::{Budget, Pod, State, World};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const THEMES: [Theme; 12] = [
    Theme::Amounts,
    Theme::Amounts,
    Theme::Amounts,
    Theme::Amounts,
    Theme::Taints,
    Theme::Nodes,
    Theme::Ports,
    Theme::Spread,
    Theme::Near,
    Theme::Apart,
    Theme::Volumes,
    Theme::Everything,
];

/// The world of that number under that seed.
pub fn world(seed: u64, number: usize) -> World {
    let mut dice = Dice::new(seed ^ 0x5eed, number);
    let theme = THEMES[dice.below(THEMES.len())];
    let nodes = dice.range(1, 5);
    let mut maker = Maker { dice, theme, nodes };
    let pods = maker.dice.range(nodes * 3, nodes * 6);
    let mut world = World {
        nodes: (1..=nodes).map(|at| maker.node(at)).collect(),
        pods: (1..=pods).map(|at| maker.settled(at)).collect(),
        pod: maker.seeker(),
        ..World::default()
    };
    if theme == Theme::Volumes {
        maker.storage(&mut world);
    }
    maker.crowd(&mut world);
    have_ports_of_their_own(&mut world.pods);
    share_no_exclusive_claim(&mut world);
    none_leaves_where_pods_are_spread(&mut world);
    world
}

/// Where a pod must be spread, none of the others is leaving: kube-scheduler does not count those, and takes them off all the
/// same, see `differences.md`.
fn none_leaves_where_pods_are_spread(world: &mut World) {
    let constraints = world.pod.spec.get("topologySpreadConstraints").and_then(Value::as_array);
    let is_hard = |constraint: &Value| constraint["whenUnsatisfiable"] == "DoNotSchedule";
    if constraints.is_some_and(|all| all.iter().any(is_hard)) {
        for pod in world.pods.iter_mut().filter(|pod| pod.state == State::Leaving) {
            pod.state = State::There;
        }
    }
}

/// Of pods that use a claim meant for one pod alone only the first keeps its volumes: kube-scheduler takes the claim for
/// free as soon as one of its users goes, see `differences.md`.
fn share_no_exclusive_claim(world: &mut World) {
    let exclusive = |claim: &Value| {
        let alone = claim["spec"]["accessModes"]
            .as_array()
            .is_some_and(|modes| modes.contains(&"ReadWriteOncePod".into()));
        let name = |field: &str| claim["metadata"][field].as_str().unwrap_or_default().to_owned();
        (alone && claim["kind"] == "PersistentVolumeClaim").then(|| (name("namespace"), name("name")))
    };
    let exclusive: BTreeSet<(String, String)> = world.storage.iter().filter_map(exclusive).collect();
    let mut taken = BTreeSet::new();
    for pod in &mut world.pods {
        let volumes = pod.spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
        let used: Vec<(String, String)> = volumes
            .filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
            .map(|claim| (pod.namespace.clone(), claim.to_owned()))
            .filter(|claim| exclusive.contains(claim))
            .collect();
        if used.iter().any(|claim| taken.contains(claim)) {
            pod.spec.remove("volumes");
        } else {
            taken.extend(used);
        }
    }
}

/// Of pods on one node that have a port in common only the first keeps its ports: kube-scheduler forgets a port as soon
/// as one of them goes, see `differences.md`.
fn have_ports_of_their_own(pods: &mut [Pod]) {
    let mut taken = BTreeSet::new();
    for pod in pods {
        let ports: Vec<String> = pod
            .ports
            .iter()
            .map(|p| format!("{} {} {}", pod.on, p["containerPort"], p["protocol"]))
            .collect();
        if ports.iter().any(|port| taken.contains(port)) {
            pod.ports.clear();
        } else {
            taken.extend(ports);
        }
    }
}

fn set(to: &mut BTreeMap<String, String>, name: &str, amount: &str) {
    to.insert(name.to_owned(), amount.to_owned());
}

impl Maker {
    fn crowd(&mut self, world: &mut World) {
        // Where the world is about something else than amounts, that should decide more often than they do.
        let tight = self.about(Theme::Amounts, 60, 95);
        if tight {
            for node in &mut world.nodes {
                set(&mut node.has, "cpu", self.dice.pick(&["1", "2", "2", "3", "4"]));
                set(&mut node.has, "memory", self.dice.pick(&["2Gi", "4Gi", "4Gi", "8Gi"]));
                set(&mut node.has, "pods", self.dice.pick(&["110", "110", "110", "4", "3", "2"]));
            }
        }
        let mut seconds: Vec<u32> =
            (0..world.pods.len()).map(|at| 60 * u32::try_from(at).expect("few")).collect();
        for pod in &mut world.pods {
            pod.class = self
                .dice
                .pick(&["batch", "batch", "base", "base", "base", "serve", "low", "low", "urgent"])
                .into();
            pod.started = Some(seconds.swap_remove(self.dice.below(seconds.len())));
            if tight {
                set(&mut pod.asks[0], "cpu", self.dice.pick(&["250m", "500m", "500m", "1", "1", "2"]));
            }
        }
        let classes =
            ["urgent", "urgent", "urgent", "urgent", "urgent", "urgent", "serve", "serve", "base", "patient"];
        world.pod.class = self.dice.pick(&classes).into();
        // What hardly any node has keeps the pod away from all of them: seldom.
        if self.dice.chance(85) {
            let odd = |name: &String| name.contains('/') || name.contains('-');
            let init = world.pod.init.iter_mut().map(|(asks, _)| asks);
            world.pod.asks.iter_mut().chain(init).for_each(|asks| asks.retain(|name, _| !odd(name)));
        }
        if tight {
            set(
                &mut world.pod.asks[0],
                "cpu",
                self.dice.pick(&["500m", "1", "1", "1500m", "1500m", "2", "2", "3"]),
            );
        }
        for at in 0..*self.dice.pick(&[&0, &1, &2, &3, &4]) {
            let budget = self.budget(format!("b{at}"), &world.pods);
            world.budgets.push(budget);
        }
    }

    fn budget(&mut self, name: String, pods: &[Pod]) -> Budget {
        let namespace = if self.dice.chance(80) { "red" } else { self.dice.pick(&["blue", "green"]) };
        let selector: Value = match self.dice.below(100) {
            0..6 => json!({}),
            6..70 => json!({"matchLabels": {"app": self.dice.pick(&["web", "db", "cache"])}}),
            70..85 => json!({"matchLabels": {"tier": self.dice.pick(&["front", "back"])}}),
            _ => {
                let operator = self.dice.pick(&["NotIn", "In"]);
                json!({"matchExpressions": [{"key": "app", "operator": operator, "values": ["web", "db"]}]})
            }
        };
        let allowed = *self.dice.pick(&[&0, &0, &0, &0, &1, &2]);
        let mut disrupted = Vec::new();
        if self.dice.chance(15) && !pods.is_empty() {
            disrupted.push(pods[self.dice.below(pods.len())].name.clone());
        }
        Budget { name, namespace: namespace.into(), selector, allowed, disrupted }
    }
}

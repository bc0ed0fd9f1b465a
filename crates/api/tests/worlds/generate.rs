//! Worlds made by chance.
//!
//! Names, labels and amounts come from small pools, so that things meet: selectors match some, ports conflict,
//! nodes are full or more than full. Every world is about one thing mostly; the others happen now and then.

use super::dice::Dice;
use super::{CLASSES, NAMESPACES, Node, Pod, State, World};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const HOST: &str = "kubernetes.io/hostname";
const KEYS: &[&str] = &["zone", "rack", HOST];
const APPS: &[&str] = &["web", "db", "cache"];

/// What a world is about mostly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    Amounts,
    Taints,
    Nodes,
    Ports,
    Spread,
    Near,
    Apart,
    Images,
    Siblings,
    Volumes,
    Everything,
}

pub(super) const THEMES: [Theme; 13] = [
    Theme::Amounts,
    Theme::Taints,
    Theme::Nodes,
    Theme::Nodes,
    Theme::Ports,
    Theme::Spread,
    Theme::Spread,
    Theme::Near,
    Theme::Apart,
    Theme::Images,
    Theme::Siblings,
    Theme::Siblings,
    Theme::Everything,
];

pub(super) struct Maker {
    pub(super) dice: Dice,
    pub(super) theme: Theme,
    pub(super) nodes: usize,
}

/// The world of that number under that seed.
pub fn world(seed: u64, number: usize) -> World {
    let mut dice = Dice::new(seed, number);
    let theme = THEMES[dice.below(THEMES.len())];
    themed(dice, theme)
}

/// One that is about volumes.
pub fn volume_world(seed: u64, number: usize) -> World {
    let mut world = themed(Dice::new(seed, number), Theme::Volumes);
    let dice = Dice::new(seed, usize::MAX - number);
    let mut maker = Maker { dice, theme: Theme::Volumes, nodes: world.nodes.len() };
    maker.storage(&mut world);
    world
}

fn themed(mut dice: Dice, theme: Theme) -> World {
    let nodes = if dice.chance(1) { 0 } else { dice.range(1, 7) };
    let mut maker = Maker { dice, theme, nodes };
    let crowd =
        if matches!(theme, Theme::Spread | Theme::Near | Theme::Apart | Theme::Siblings) { 13 } else { 9 };
    let pods = if maker.dice.chance(5) { 0 } else { maker.dice.range(1, crowd) };
    let mut world = World {
        nodes: (1..=nodes).map(|at| maker.node(at)).collect(),
        pods: (1..=pods).map(|at| maker.settled(at)).collect(),
        pod: maker.seeker(),
        ..World::default()
    };
    maker.images(&mut world);
    maker.siblings(&mut world);
    share_no_port_with_the_dead(&mut world.pods);
    world
}

/// A pod that ended while another one on its node has the same port is still there instead: which ports are taken
/// then depends on who came first, see `differences.md`.
pub(super) fn share_no_port_with_the_dead(pods: &mut [Pod]) {
    let ports = |pod: &Pod| -> Vec<(Value, Value)> {
        pod.ports.iter().map(|p| (p["containerPort"].clone(), p["protocol"].clone())).collect()
    };
    for at in 0..pods.len() {
        let own = ports(&pods[at]);
        let shares = |(i, other): (usize, &Pod)| {
            i != at && other.on == pods[at].on && ports(other).iter().any(|p| own.contains(p))
        };
        if pods[at].state.over().is_some() && pods.iter().enumerate().any(shares) {
            pods[at].state = State::There;
        }
    }
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
}

impl Maker {
    /// How likely a feature is, in a hundred: often where the world is about it.
    pub(super) fn about(&mut self, theme: Theme, rarely: usize, often: usize) -> bool {
        let percent = if self.theme == theme {
            often
        } else if self.theme == Theme::Everything {
            usize::midpoint(rarely, often)
        } else {
            rarely
        };
        self.dice.chance(percent)
    }

    pub(super) fn node(&mut self, at: usize) -> Node {
        let name = format!("@{at}");
        let mut labels = BTreeMap::new();
        let d = &mut self.dice;
        if d.chance(95) {
            labels.insert(HOST.to_owned(), name.clone());
        }
        for (key, values, percent) in [
            ("zone", &["a", "b", "c"][..], 88),
            ("topology.kubernetes.io/zone", &["a", "b", "c"], 80),
            ("rack", &["r1", "r2"], 70),
            ("disk", &["ssd", "hdd"], 60),
            ("size", &["1", "5", "10", "x"], 50),
        ] {
            if d.chance(percent) {
                labels.insert(key.to_owned(), d.pick(values).to_owned());
            }
        }
        let mut taints = Vec::new();
        // Spreading may or may not count nodes whose taints keep the pod away.
        let rarely = if self.theme == Theme::Spread { 22 } else { 8 };
        while taints.len() < 3 && self.about(Theme::Taints, rarely, 55) {
            taints.push(self.taint(&taints));
        }
        Node {
            name,
            labels,
            taints,
            cordoned: self.about(Theme::Taints, 4, 20),
            has: self.room(),
            ..Node::default()
        }
    }

    /// A taint unlike those already there.
    fn taint(&mut self, there: &[Value]) -> Value {
        loop {
            let key = self.dice.pick(&["gpu", "spot", "node.kubernetes.io/unschedulable"]);
            let value = self.dice.pick(&["", "yes", "no"]);
            let effect = self.dice.pick(&["NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"]);
            if !there.iter().any(|t| t["key"] == key && t["effect"] == effect) {
                return json!({"key": key, "value": value, "effect": effect});
            }
        }
    }

    fn room(&mut self) -> BTreeMap<String, String> {
        let tight = self.about(Theme::Amounts, 12, 70);
        let d = &mut self.dice;
        let mut has = if tight {
            texts(&[
                ("cpu", d.pick(&["1", "2", "2", "4", "4", "3900m", "0"])),
                ("memory", d.pick(&["1Gi", "2Gi", "4Gi", "4Gi", "8Gi", "7777777777", "0"])),
                ("pods", d.pick(&["110", "110", "110", "4", "2", "0"])),
            ])
        } else {
            texts(&[
                ("cpu", d.pick(&["4", "8", "8", "16", "7910m", "96"])),
                ("memory", d.pick(&["8Gi", "16Gi", "16Gi", "31805Mi", "64G"])),
                ("pods", "110"),
            ])
        };
        if tight && d.chance(10) {
            has.remove(d.pick(&["cpu", "memory", "pods"]));
        }
        for (name, amounts, percent) in [
            ("ephemeral-storage", &["1Gi", "10Gi"][..], 40),
            ("example.com/gpu", &["1", "2", "8"], 35),
            ("hugepages-2Mi", &["2Mi", "64Mi"], 10),
        ] {
            if d.chance(percent) {
                has.insert(name.to_owned(), d.pick(amounts).to_owned());
            }
        }
        has
    }

    fn amounts(&mut self) -> BTreeMap<String, String> {
        let mut asks = BTreeMap::new();
        let busy = self.theme == Theme::Amounts;
        let d = &mut self.dice;
        for (name, amounts, percent) in [
            ("cpu", &["100m", "250m", "500m", "500m", "1", "1500m", "0", "1m"][..], 60),
            ("memory", &["64Mi", "256Mi", "500M", "1Gi", "1Gi", "2Gi", "1", "0"], 60),
            ("ephemeral-storage", &["100Mi", "1Gi", "2Gi"], if busy { 25 } else { 5 }),
            ("example.com/gpu", &["1", "1", "2", "0"], if busy { 25 } else { 4 }),
        ] {
            if d.chance(percent) {
                asks.insert(name.to_owned(), d.pick(amounts).to_owned());
            }
        }
        // Huge pages are only for pods that also ask for CPU or memory.
        if asks.contains_key("cpu") && d.chance(if busy { 10 } else { 1 }) {
            asks.insert("hugepages-2Mi".to_owned(), d.pick(&["2Mi", "4Mi"]).to_owned());
        }
        asks
    }

    /// What every pod may have.
    fn pod(&mut self, name: String) -> Pod {
        let names: Vec<&str> = NAMESPACES.iter().map(|(name, _)| *name).collect();
        // Most are in one namespace: they have more to do with each other.
        let near = if matches!(self.theme, Theme::Spread | Theme::Siblings) { 85 } else { 65 };
        let namespace = if self.dice.chance(near) { "red" } else { self.dice.pick(&names) };
        let mut labels = BTreeMap::new();
        for (key, values, percent) in
            [("app", APPS, 85), ("tier", &["front", "back"][..], 40), ("rev", &["1", "2"], 30)]
        {
            if self.dice.chance(percent) {
                labels.insert(key.to_owned(), self.dice.pick(values).to_owned());
            }
        }
        // Spreading is about pods of one kind.
        if matches!(self.theme, Theme::Spread | Theme::Siblings) && self.dice.chance(70) {
            labels.insert("app".to_owned(), "web".to_owned());
        }
        let containers = if self.dice.chance(15) { 2 } else { 1 };
        let asks = (0..containers).map(|_| self.amounts()).collect();
        let mut init = Vec::new();
        if self.about(Theme::Amounts, 4, 25) {
            init.push((self.amounts(), self.dice.chance(50)));
        }
        let classes: Vec<&str> = CLASSES.iter().map(|(name, _)| *name).collect();
        let class = self.dice.pick(&classes).to_owned();
        let mut out = Pod { name, namespace: namespace.into(), labels, asks, init, class, ..Pod::default() };
        if self.about(Theme::Ports, 4, 75) {
            self.ports(&mut out);
        }
        out
    }

    fn ports(&mut self, pod: &mut Pod) {
        let own_network = !self.dice.chance(20);
        let mut seen = Vec::new();
        for _ in 0..self.dice.range(1, 2) {
            let d = &mut self.dice;
            let (port, protocol) = (d.range(8080, 8081), d.pick(&["TCP", "TCP", "TCP", "UDP"]));
            let ip = d.pick(&["", "", "0.0.0.0", "10.0.0.1", "10.0.0.2", "127.0.0.1", "::"]);
            let written = !d.chance(15);
            if seen.contains(&port) {
                continue;
            }
            seen.push(port);
            let mut out = json!({"containerPort": port, "protocol": protocol});
            if written {
                out["hostPort"] = port.into();
                if !ip.is_empty() {
                    out["hostIP"] = ip.into();
                }
            }
            pod.ports.push(out);
        }
        if !own_network {
            pod.spec.insert("hostNetwork".into(), true.into());
        }
    }

    /// A pod that is somewhere already.
    pub(super) fn settled(&mut self, at: usize) -> Pod {
        let mut pod = self.pod(format!("p{at}"));
        // The first half of the nodes gets more, so that things are uneven.
        let nodes = if self.dice.chance(40) { self.nodes.div_ceil(2) } else { self.nodes };
        let node = if self.dice.chance(3) { 99 } else { self.dice.range(1, nodes.max(1)) };
        pod.on = format!("@{node}");
        pod.state = match self.dice.below(100) {
            0..6 => State::Leaving,
            6..9 => State::Succeeded,
            9..11 => State::Failed,
            _ => State::There,
        };
        let mut affinity = Map::new();
        self.pod_affinities(&mut affinity, false);
        if !affinity.is_empty() {
            pod.spec.insert("affinity".into(), affinity.into());
        }
        pod
    }

    /// The pod that looks for a place.
    pub(super) fn seeker(&mut self) -> Pod {
        let mut pod = self.pod("seeker".to_owned());
        let mut affinity = Map::new();
        if self.about(Theme::Nodes, 4, 30) {
            let keys = self.dice.some(&["zone", "disk", "rack"], 40);
            let wanted: Map<String, Value> =
                keys.into_iter().map(|k| (k.to_owned(), self.node_value(k).into())).collect();
            pod.spec.insert("nodeSelector".into(), wanted.into());
        }
        let mut node = Map::new();
        if self.about(Theme::Nodes, 5, 40) {
            let terms: Vec<Value> = (0..self.dice.range(1, 3)).map(|_| self.node_term(true)).collect();
            let required = json!({"nodeSelectorTerms": terms});
            node.insert("requiredDuringSchedulingIgnoredDuringExecution".into(), required);
        }
        if self.about(Theme::Nodes, 8, 75) {
            let weighted = |maker: &mut Self| {
                let weight = maker.weight();
                json!({"weight": weight, "preference": maker.node_term(false)})
            };
            let preferred: Vec<Value> = (0..self.dice.range(1, 3)).map(|_| weighted(self)).collect();
            node.insert("preferredDuringSchedulingIgnoredDuringExecution".into(), preferred.into());
        }
        if !node.is_empty() {
            affinity.insert("nodeAffinity".into(), node.into());
        }
        self.pod_affinities(&mut affinity, true);
        if !affinity.is_empty() {
            pod.spec.insert("affinity".into(), affinity.into());
        }
        let mut tolerations = Vec::new();
        while tolerations.len() < 3 && self.about(Theme::Taints, 10, 55) {
            tolerations.push(self.toleration());
        }
        if !tolerations.is_empty() {
            pod.spec.insert("tolerations".into(), tolerations.into());
        }
        let spread = self.spread();
        if !spread.is_empty() {
            pod.spec.insert("topologySpreadConstraints".into(), spread.into());
        }
        pod
    }

    fn toleration(&mut self) -> Value {
        let d = &mut self.dice;
        let key = d.pick(&["gpu", "spot", "node.kubernetes.io/unschedulable", ""]);
        let effect = d.pick(&["", "NoSchedule", "PreferNoSchedule", "NoExecute"]);
        let mut out = json!({"key": key});
        if key.is_empty() || d.chance(50) {
            out["operator"] = "Exists".into();
        } else {
            out["value"] = d.pick(&["", "yes", "no"]).into();
            if d.chance(50) {
                out["operator"] = "Equal".into();
            }
        }
        if !effect.is_empty() {
            out["effect"] = effect.into();
        }
        if effect == "NoExecute" && d.chance(50) {
            out["tolerationSeconds"] = 60.into();
        }
        out
    }

    fn weight(&mut self) -> usize {
        self.dice.range(1, 100)
    }

    fn node_value(&mut self, key: &str) -> String {
        let d = &mut self.dice;
        match key {
            "zone" => d.pick(&["a", "b", "c"]).to_owned(),
            "rack" => d.pick(&["r1", "r2", "r3"]).to_owned(),
            "disk" => d.pick(&["ssd", "hdd"]).to_owned(),
            "size" => d.pick(&["1", "5", "10", "x"]).to_owned(),
            _ => format!("@{}", d.range(1, self.nodes.max(1))),
        }
    }

    fn node_term(&mut self, required: bool) -> Value {
        let mut term = Map::new();
        let count = if self.dice.chance(75) { 1 } else { self.dice.below(3) };
        let expressions: Vec<Value> = (0..count).map(|_| self.node_expression(required)).collect();
        if !expressions.is_empty() {
            term.insert("matchExpressions".into(), expressions.into());
        }
        if self.dice.chance(18) {
            let count = if self.dice.chance(20) { 2 } else { 1 };
            let fields = (0..count).map(|_| {
                let value = format!("@{}", self.dice.range(1, self.nodes.max(1) + 1));
                let operator = self.dice.pick(&["In", "In", "NotIn"]);
                json!({"key": "metadata.name", "operator": operator, "values": [value]})
            });
            term.insert("matchFields".into(), fields.collect());
        }
        term.into()
    }

    fn node_expression(&mut self, required: bool) -> Value {
        let key = self.dice.pick(&["zone", "rack", "disk", "size", HOST, "missing"]);
        let operator = match key {
            "size" => self.dice.pick(&["Gt", "Lt", "In", "Exists"]),
            _ => self.dice.pick(&["In", "In", "NotIn", "Exists", "DoesNotExist", "Gt"]),
        };
        let mut out = json!({"key": key, "operator": operator});
        match operator {
            "In" | "NotIn" => {
                let count = self.dice.range(1, 2);
                out["values"] = (0..count).map(|_| self.node_value(key)).collect();
            }
            "Gt" | "Lt" => {
                // One that is no number matches nothing, where it is demanded.
                let odd = required && self.dice.chance(5);
                let bound = if odd { "many" } else { self.dice.pick(&["0", "4", "5", "9", "007"]) };
                out["values"] = json!([bound]);
            }
            _ => {}
        }
        out
    }

    /// A selector of pods; none matches nothing, one without conditions everything.
    fn selector(&mut self) -> Option<Value> {
        match self.dice.below(100) {
            0..4 => None,
            4..9 => Some(json!({})),
            9..70 => {
                let main = self.theme == Theme::Spread && self.dice.chance(80);
                Some(json!({"matchLabels": {"app": if main { "web" } else { self.dice.pick(APPS) }}}))
            }
            70..80 => Some(json!({"matchLabels": {"tier": self.dice.pick(&["front", "back"])}})),
            _ => {
                let key = self.dice.pick(&["app", "tier", "missing"]);
                let operator = self.dice.pick(&["In", "NotIn", "Exists", "DoesNotExist"]);
                let mut out = json!({"key": key, "operator": operator});
                if matches!(operator, "In" | "NotIn") {
                    out["values"] = self.dice.some(&["web", "db", "front", "other"], 50).into();
                    if out["values"] == json!([]) {
                        out["values"] = json!(["web"]);
                    }
                }
                Some(json!({"matchExpressions": [out]}))
            }
        }
    }

    fn pod_term(&mut self) -> Value {
        let mut term = json!({"topologyKey": self.dice.pick(KEYS)});
        let selector = self.selector();
        if let Some(selector) = selector {
            if self.dice.chance(10) {
                term["matchLabelKeys"] = json!(["rev"]);
            } else if self.dice.chance(6) {
                term["mismatchLabelKeys"] = json!(["rev"]);
            }
            term["labelSelector"] = selector;
        }
        let d = &mut self.dice;
        if d.chance(15) {
            term["namespaces"] = d.some(&["red", "blue", "green", "elsewhere"], 50).into();
        }
        if d.chance(20) {
            term["namespaceSelector"] = match d.below(5) {
                0 => json!({}),
                1 => json!({"matchLabels": {"team": "a"}}),
                2 => json!({"matchLabels": {"kubernetes.io/metadata.name": d.pick(&["red", "plain"])}}),
                3 => json!({"matchExpressions": [{"key": "stage", "operator": "DoesNotExist"}]}),
                _ => json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]}),
            };
        }
        term
    }

    fn pod_affinities(&mut self, affinity: &mut Map<String, Value>, seeker: bool) {
        for (name, theme) in [("podAffinity", Theme::Near), ("podAntiAffinity", Theme::Apart)] {
            let mut out = Map::new();
            // Of settled pods there are many, and each one may keep others away.
            let often = if seeker { 60 } else { 25 };
            if self.about(theme, 3, often) {
                let terms: Vec<Value> = (0..self.dice.range(1, 2)).map(|_| self.pod_term()).collect();
                out.insert("requiredDuringSchedulingIgnoredDuringExecution".into(), terms.into());
            }
            if self.about(theme, 5, if seeker { 55 } else { 30 }) {
                let weighted = |maker: &mut Self| {
                    let weight = maker.weight();
                    json!({"weight": weight, "podAffinityTerm": maker.pod_term()})
                };
                let terms: Vec<Value> = (0..self.dice.range(1, 2)).map(|_| weighted(self)).collect();
                out.insert("preferredDuringSchedulingIgnoredDuringExecution".into(), terms.into());
            }
            if !out.is_empty() {
                affinity.insert(name.into(), out.into());
            }
        }
    }

    fn spread(&mut self) -> Vec<Value> {
        let mut out: Vec<Value> = Vec::new();
        while out.len() < 3 && self.about(Theme::Spread, 6, if out.is_empty() { 100 } else { 45 }) {
            let when = self.dice.pick(&["DoNotSchedule", "ScheduleAnyway"]);
            let key = self.dice.pick(KEYS);
            if out.iter().any(|c| c["topologyKey"] == key && c["whenUnsatisfiable"] == when) {
                break;
            }
            let skew = self.dice.pick(&[&1, &1, &1, &1, &2, &3]);
            let mut one = json!({"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when});
            if let Some(selector) = self.selector() {
                one["labelSelector"] = selector;
                if self.dice.chance(15) {
                    one["matchLabelKeys"] = json!(["rev"]);
                }
            }
            let d = &mut self.dice;
            if when == "DoNotSchedule" && d.chance(25) {
                one["minDomains"] = d.range(1, 4).into();
            }
            for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
                if d.chance(45) {
                    one[policy] = d.pick(&["Honor", "Ignore"]).into();
                }
            }
            out.push(one);
        }
        out
    }
}

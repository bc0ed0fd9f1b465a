//! Volumes: claims that have one, claims that get one together with a node, and what they can get.
//!
//! No two volumes of a world are of the same size: which of two equal ones kube-scheduler takes depends on chance.

use super::World;
use super::generate::{Maker, Theme};
use serde_json::{Value, json};

const DRIVER: &str = "@disk.example.com";
const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";

/// Of several volumes meant for one claim only the first stays so: which one kube-scheduler looks at depends on chance.
fn meant_for_one(volumes: &mut [Value]) {
    let mut seen = Vec::new();
    for volume in volumes {
        let claim = volume["spec"]["claimRef"]["name"].clone();
        if seen.contains(&claim) {
            volume["spec"].as_object_mut().expect("it has a spec").remove("claimRef");
        } else if claim.is_string() {
            seen.push(claim);
        }
    }
}

impl Maker {
    /// Gives a world storage, and pods claims.
    pub(super) fn storage(&mut self, world: &mut World) {
        debug_assert_eq!(self.theme, Theme::Volumes);
        let space = world.pod.namespace.clone();
        let mut out = self.classes();
        // In any order of size.
        let mut sizes: Vec<usize> = (1..=24).collect();
        for at in 0..self.dice.range(0, 9) {
            let size = sizes.swap_remove(self.dice.below(sizes.len()));
            out.push(self.volume(&format!("@v{at}"), size, &space));
        }
        meant_for_one(&mut out);
        for at in 0..5 {
            let (claim, volume) = self.claim(at, &space);
            out.push(claim);
            out.extend(volume);
        }
        for node in &world.nodes {
            if self.dice.chance(45) {
                let count = self.dice.below(4);
                out.push(json!({"kind": "CSINode", "metadata": {"name": node.name},
                    "spec": {"drivers": [{"name": DRIVER, "nodeID": "x", "allocatable": {"count": count}}]}}));
            }
        }
        // Most disks are of one kind, so that pods have the same.
        let kind = self.dice.below(4);
        for pod in &mut world.pods {
            if pod.namespace == space && self.dice.chance(35) {
                let count = self.dice.range(1, 2);
                pod.spec.insert("volumes".into(), self.mentions(count, kind, false));
            } else if self.dice.chance(60) {
                pod.spec.insert("volumes".into(), json!([self.disk(kind)]));
            }
        }
        let count = self.dice.range(1, 3);
        let volumes = self.mentions(count, kind, true);
        world.pod.spec.insert("volumes".into(), volumes);
        world.storage = out;
    }

    fn classes(&mut self) -> Vec<Value> {
        let class = |name: &str, mode: &str, provisioner: &str| {
            json!({"kind": "StorageClass", "metadata": {"name": name},
                "provisioner": provisioner, "volumeBindingMode": mode})
        };
        let mut made = class("@make", "WaitForFirstConsumer", DRIVER);
        if self.dice.chance(35) {
            let key = self.dice.pick(&["zone", "rack", "disk"]);
            let values: &[&str] = match key {
                "zone" => &["a", "b"],
                "rack" => &["r1"],
                _ => &["ssd"],
            };
            made["allowedTopologies"] = json!([{"matchLabelExpressions": [{"key": key, "values": values}]}]);
        }
        let mut out = vec![
            class("@wait", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"),
            made,
            class("@now", "Immediate", DRIVER),
        ];
        if self.dice.chance(60) {
            let counts = self.dice.chance(75);
            out.push(json!({"kind": "CSIDriver", "metadata": {"name": DRIVER},
                "spec": {"storageCapacity": counts}}));
        }
        for at in 0..self.dice.range(0, 4) {
            let topology = match self.dice.below(10) {
                0 => Value::Null,
                1 => json!({}),
                2..6 => json!({"matchLabels": {"zone": self.dice.pick(&["a", "b", "c"])}}),
                _ => json!({"matchLabels": {HOST: self.some_node()}}),
            };
            let mut one = json!({"kind": "CSIStorageCapacity",
                "metadata": {"name": format!("@k{at}"), "namespace": "blue"},
                "storageClassName": self.dice.pick(&["@make", "@make", "@make", "@now"])});
            if !topology.is_null() {
                one["nodeTopology"] = topology;
            }
            if self.dice.chance(90) {
                one["capacity"] = self.dice.pick(&["1Gi", "4Gi", "8Gi", "20Gi"]).into();
            }
            if self.dice.chance(25) {
                one["maximumVolumeSize"] = self.dice.pick(&["2Gi", "6Gi", "30Gi"]).into();
            }
            out.push(one);
        }
        out
    }

    fn some_node(&mut self) -> String {
        format!("@{}", self.dice.range(1, self.nodes.max(1)))
    }

    /// Which nodes reach a volume; none said is all.
    fn affinity(&mut self) -> Option<Value> {
        let (key, values) = match self.dice.below(10) {
            0..5 => (HOST, vec![self.some_node()]),
            5 => (HOST, vec![self.some_node(), self.some_node()]),
            6..8 => ("zone", vec![self.dice.pick(&["a", "b", "c"]).to_owned()]),
            _ => return None,
        };
        Some(json!({"required": {"nodeSelectorTerms": [{"matchExpressions":
            [{"key": key, "operator": "In", "values": values}]}]}}))
    }

    fn marks(&mut self, zoned: usize) -> Value {
        let mut labels = json!({});
        if self.dice.chance(50) {
            labels["mark"] = self.dice.pick(&["fast", "slow"]).into();
        }
        if self.dice.chance(zoned) {
            let key = self.dice.pick(&[ZONE, ZONE, OLD_ZONE]);
            labels[key] = self.dice.pick(&["a", "b", "a__b", "b__c", "a____b"]).into();
        }
        labels
    }

    fn modes(&mut self) -> Value {
        match self.dice.below(20) {
            0..13 => json!(["ReadWriteOnce"]),
            13..16 => json!(["ReadWriteOnce", "ReadOnlyMany"]),
            16..18 => json!(["ReadWriteMany", "ReadWriteOnce"]),
            _ => json!(["ReadWriteOncePod"]),
        }
    }

    /// A volume that may be had.
    fn volume(&mut self, name: &str, size: usize, space: &str) -> Value {
        let class = self.dice.pick(&["@wait", "@wait", "@wait", "@make"]);
        let affinity = self.affinity();
        let mut out = json!({"kind": "PersistentVolume",
            "metadata": {"name": name, "labels": self.marks(15)},
            "spec": {"storageClassName": class, "capacity": {"storage": format!("{size}Gi")},
                "accessModes": self.modes(), "hostPath": {"path": "/nowhere"}},
            "status": {"phase": if self.dice.chance(90) { "Available" } else { "Released" }}});
        if let Some(affinity) = affinity {
            out["spec"]["nodeAffinity"] = affinity;
        }
        if self.dice.chance(7) {
            out["spec"]["volumeMode"] = "Block".into();
        }
        if self.dice.chance(12) {
            let claim = format!("@c{}", self.dice.below(6));
            out["spec"]["claimRef"] = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": space, "name": claim});
            if self.dice.chance(30) {
                out["spec"]["claimRef"]["uid"] = "another".into();
            }
        }
        out
    }

    /// A claim, and its volume if it has one.
    fn claim(&mut self, at: usize, space: &str) -> (Value, Option<Value>) {
        let class = match self.dice.below(100) {
            0..52 => "@wait",
            52..88 => "@make",
            88..98 => "@now",
            // Nobody made it.
            _ => "@gone",
        };
        let modes = match self.dice.below(10) {
            0..6 => json!(["ReadWriteOnce"]),
            6 => json!(["ReadOnlyMany"]),
            7 => json!(["ReadWriteMany"]),
            _ => json!(["ReadWriteOncePod"]),
        };
        let size = format!("{}Gi", self.dice.range(1, 12));
        let mut out = json!({"kind": "PersistentVolumeClaim",
            "metadata": {"name": format!("@c{at}"), "namespace": space},
            "spec": {"storageClassName": class, "accessModes": modes, "resources": {"requests": {"storage": size}}}});
        // An immediate one is bound by the time its pod comes, mostly.
        let is_bound = self.dice.chance(if class == "@now" { 92 } else { 40 });
        if !is_bound {
            if self.dice.chance(8) {
                out["spec"]["selector"] = json!({"matchLabels": {"mark": self.dice.pick(&["fast", "slow"])}});
            }
            if self.dice.chance(5) {
                out["spec"]["volumeMode"] = "Block".into();
            }
            if class == "@make" && self.dice.chance(15) {
                let node = self.some_node();
                out["metadata"]["annotations"] = json!({"volume.kubernetes.io/selected-node": node});
            } else if self.dice.chance(3) {
                out["spec"]["volumeName"] = "@v0".into();
            }
            return (out, None);
        }
        let name = format!("@b{at}");
        out["spec"]["volumeName"] = name.as_str().into();
        out["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
        if self.dice.chance(2) {
            out["status"] = json!({"phase": "Lost"});
        }
        let (affinity, labels) = (self.affinity().filter(|_| self.dice.chance(35)), self.marks(75));
        let mut volume = json!({"kind": "PersistentVolume",
            "metadata": {"name": name, "labels": labels},
            "spec": {"storageClassName": class, "capacity": {"storage": "50Gi"}, "accessModes": modes,
                "csi": {"driver": DRIVER, "volumeHandle": format!("h{at}")},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": space,
                    "name": format!("@c{at}")}},
            "status": {"phase": "Bound"}});
        if let Some(affinity) = affinity {
            volume["spec"]["nodeAffinity"] = affinity;
        }
        (out, Some(volume).filter(|_| !self.dice.chance(2)))
    }

    /// Volumes of a pod: so many different claims, now and then a disk, and for one that looks for a place a claim
    /// nobody made.
    fn mentions(&mut self, count: usize, kind: usize, seeker: bool) -> Value {
        let mut claims: Vec<usize> = (0..5).collect();
        let mut out = Vec::new();
        for at in 0..count {
            let claim = if seeker && self.dice.chance(2) {
                99
            } else {
                claims.swap_remove(self.dice.below(claims.len()))
            };
            let claim = format!("@c{claim}");
            out.push(json!({"name": format!("d{at}"), "persistentVolumeClaim": {"claimName": claim}}));
        }
        if self.dice.chance(40) {
            out.push(self.disk(kind));
        }
        out.into()
    }

    /// A disk written in a pod, of a kind that pods cannot always share.
    fn disk(&mut self, mostly: usize) -> Value {
        let name = self.dice.pick(&["a", "a", "b"]);
        let read_only = self.dice.chance(40);
        let kind = if self.dice.chance(80) { mostly } else { self.dice.below(4) };
        let iqn = format!("iqn.2001-04.com.example:{name}");
        let source = match kind {
            0 => json!({"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}),
            1 => json!({"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}),
            2 => json!({"iscsi": {"targetPortal": "10.0.0.1", "iqn": iqn, "lun": 0, "readOnly": read_only}}),
            _ => {
                let monitors: &[&str] = if self.dice.chance(50) { &["m1", "m2"] } else { &["m2"] };
                json!({"rbd": {"monitors": monitors, "image": name, "readOnly": read_only}})
            }
        };
        let mut out = source;
        out["name"] = "disk".into();
        out
    }
}

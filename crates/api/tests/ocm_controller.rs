//! We place as Open Cluster Management's own controller does: the same clusters in the same slices, the same status,
//! the same points.
//!
//! Random fleets and placements are applied to a real kube-apiserver and decided by the real controller; the same
//! objects are read by us. Everything changes between rounds, clusters as well as wishes, and what was selected before
//! counts. What differs on purpose is in `docs/placement-differences.md`, recognised by `places/listed.rs`.
//!
//! Two things would make the controller's answers a matter of luck, and are kept out:
//!
//! - Changes that reach it one by one, with decisions in between. All are made while it does not run.
//! - Balance: what a placement selects depends on what others have selected by then, and the controller takes
//!   placements in no known order. So placements that mind balance are switched off (by the annotation for that) until
//!   all others are decided, and then switched on one by one.
//!
//! | variable | meaning |
//! |---|---|
//! | `LOADLINE_SEED` | another seed than the usual one |

mod places;

use loadline_core::place::{Code, Report};
use loadline_testkit::ocm::{self, Controller, Ocm, path};
use places::dice::Dice;
use places::generate::{self, NAMESPACES, SCORED, cluster_name, object};
use places::listed::theirs_for;
use places::ours::{Objects, Ours, read};
use places::{key, text, written};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::time::Instant;

const SEED: u64 = 1;

/// Fleets: how many clusters, how many placements, and how many more that mind balance.
const FLEETS: [(usize, usize, usize); 4] = [(4, 120, 10), (16, 120, 10), (40, 120, 10), (150, 120, 10)];

/// How often everything changes, the first time included.
const ROUNDS: usize = 3;

const DISABLED: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";

/// What came out so far.
#[derive(Debug, Default)]
struct Tally {
    compared: usize,
    listed: BTreeMap<&'static str, usize>,
    tables: usize,
    told: usize,
    faults: Vec<String>,
}

#[test]
fn random_placements_are_decided_as_the_controller_decides_them() {
    let Some(plane) = ocm::plane_or_skip() else { return };
    let ocm = Ocm::install(&plane).expect("the definitions");
    let scored = (0..SCORED).map(cluster_name);
    for name in NAMESPACES.map(str::to_owned).into_iter().chain(scored) {
        ocm.namespace(&name).expect("a namespace");
    }
    let seed = env::var("LOADLINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    let started = Instant::now();
    let mut tally = Tally::default();
    for (number, (clusters, placements, balanced)) in FLEETS.into_iter().enumerate() {
        let mut stage = Stage { ocm, dice: Dice::new(seed, number), clusters, tally: &mut tally };
        stage.build(placements, balanced);
        for round in 0..ROUNDS {
            if round > 0 {
                stage.change();
            }
            stage.round(&format!("seed {seed} fleet {number} round {round}"));
        }
        let namespaces: Vec<String> =
            NAMESPACES.map(str::to_owned).into_iter().chain((0..SCORED).map(cluster_name)).collect();
        ocm.clear(&namespaces.iter().map(String::as_str).collect::<Vec<_>>()).expect("cleared");
    }
    let Tally { compared, listed, tables, told, faults } = &tally;
    let all: usize = FLEETS.iter().map(|(_, placements, balanced)| placements + balanced).sum();
    println!(
        "{all} placements, {compared} decisions compared, listed: {listed:?}; {tables} tables and {told} events of points; {:?}",
        started.elapsed()
    );
    let shown = faults.iter().take(10).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(faults.is_empty(), "{} of {compared} differ\n{shown}", faults.len());
    if seed == SEED {
        assert!(*compared >= 1500 && *tables >= 1000 && *told >= 700, "{compared}, {tables}, {told} only");
        for (row, least) in [("at-once", 10), ("bad-group", 5), ("why-none", 100), ("words", 30)] {
            let times = listed.get(row).copied().unwrap_or(0);
            assert!(times >= least, "{row} was the difference {times} times, expected {least}");
        }
    }
}

#[test]
fn what_differs_is_listed_and_still_differs() {
    let Some(plane) = ocm::plane_or_skip() else { return };
    places::rows::show(Ocm::install(&plane).expect("the definitions"));
}

#[test]
fn the_document_lists_what_is_shown() {
    let text = include_str!("../../../docs/placement-differences.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let listed: Vec<&str> = rows.map(|(name, _)| name).collect();
    let shown: Vec<&str> = places::rows::ROWS.iter().map(|row| row.name).collect();
    assert_eq!(listed, shown);
}

/// Namespace and name.
type Id = (String, String);

/// What is told about a placement.
#[derive(Debug, Default, PartialEq)]
struct Told {
    /// `cluster:total` of everybody in question.
    totals: BTreeSet<String>,
    /// The words of a warning, in any order, as clusters are named in any order.
    warning: Option<BTreeSet<String>>,
}

impl Told {
    fn of(report: &Report) -> Self {
        if !report.outcome.code.decided() {
            return Self::default();
        }
        let clusters = report.clusters.iter();
        let totals = clusters.filter_map(|one| Some(format!("{}:{}", one.cluster, one.total?))).collect();
        // With several scores expired, the one that is told is a matter of luck.
        let scores = report.clusters.iter().flat_map(|one| &one.scores).map(|score| &score.name);
        let several = scores.filter(|name| name.starts_with("AddOn/")).collect::<BTreeSet<_>>().len() > 1;
        let warning = match &report.outcome.code {
            Code::Warning { plugin, message } if !several => {
                Some(format!("{message} in plugin {plugin}").split(' ').map(str::to_owned).collect())
            }
            _ => None,
        };
        Self { totals, warning }
    }
}

/// A fleet and who is asked.
struct Stage<'a> {
    ocm: Ocm<'a>,
    dice: Dice,
    clusters: usize,
    tally: &'a mut Tally,
}

impl Stage<'_> {
    fn create(&self, plural: &str, objects: &[Value]) {
        for one in objects {
            self.ocm.create(plural, one).expect("accepted");
        }
    }

    fn patch(&self, plural: &str, object: &Value, change: &Value, status: bool) {
        let (namespace, name) = key(object);
        let namespace = Some(namespace.as_str()).filter(|name| !name.is_empty());
        let end = if status { "/status" } else { "" };
        let path = format!("{}/{name}{end}", path(plural, namespace));
        self.ocm.plane().patch(&path, change).expect("accepted");
    }

    fn objects(&self) -> Objects {
        let all = |plural: &str| self.ocm.all(plural).expect("a list");
        // Marks are no part of the fleet.
        let ours = |plural: &str| {
            all(plural).into_iter().filter(|one| NAMESPACES.contains(&key(one).0.as_str())).collect()
        };
        Objects {
            clusters: all("managedclusters"),
            sets: all("managedclustersets"),
            bindings: all("managedclustersetbindings"),
            scores: all("addonplacementscores"),
            placements: ours("placements"),
            decisions: ours("placementdecisions"),
        }
    }

    /// What the controller has written about one placement.
    fn written(&self, placement: &Value) -> BTreeMap<Id, places::Result> {
        let (namespace, name) = key(placement);
        let get = |path: &str| self.ocm.plane().get(path).expect("an object");
        let placement = get(&format!("{}/{name}", path("placements", Some(&namespace))));
        let label = format!("labelSelector=cluster.open-cluster-management.io%2Fplacement%3D{name}");
        let decisions = get(&format!("{}?{label}", path("placementdecisions", Some(&namespace))));
        written(&[placement], decisions["items"].as_array().expect("a list"))
    }

    /// The fleet as it is at first.
    fn build(&mut self, placements: usize, balanced: usize) {
        self.create("managedclustersets", &generate::sets());
        let bindings = generate::bindings(&mut self.dice);
        self.create("managedclustersetbindings", &bindings);
        for number in 0..self.clusters {
            let cluster = generate::cluster(&mut self.dice, number, number == 3);
            self.create("managedclusters", &[cluster]);
            if number < SCORED {
                let scores = generate::scores(&mut self.dice, &cluster_name(number));
                self.create("addonplacementscores", &scores);
            }
        }
        // One cluster is on its way out.
        let leaving = format!("{}/{}", path("managedclusters", None), cluster_name(3));
        self.ocm.plane().delete(&leaving).expect("accepted");
        let foreign = generate::foreign(&mut self.dice, self.clusters);
        self.create("placementdecisions", &foreign);
        for number in 0..placements + balanced {
            let minds = number >= placements;
            let name = format!("{}-{number}", if minds { "balanced" } else { "p" });
            let spec = generate::wish(&mut self.dice, minds);
            // Most are where there is something to choose from.
            let namespace = NAMESPACES[[0, 0, 0, 1, 1, 2, 2, 3][self.dice.below(8)]];
            let metadata = json!({"name": name, "namespace": namespace});
            self.create("placements", &[object("Placement", "v1beta1", metadata, spec)]);
        }
    }

    /// Clusters change, come and go; so do scores, and so do wishes.
    fn change(&mut self) {
        let all = self.objects();
        for cluster in &all.clusters {
            let number =
                (0..1000).find(|number| cluster_name(*number) == key(cluster).1).expect("one of ours");
            if number == 3 || !self.dice.chance(30) {
                continue;
            }
            if self.dice.chance(10) {
                let gone = format!("{}/{}", path("managedclusters", None), cluster_name(number));
                self.ocm.plane().delete(&gone).expect("accepted");
                continue;
            }
            let mut new = generate::cluster(&mut self.dice, number, false);
            let status = new["status"].take();
            // What is not said any more must go.
            let old = cluster.pointer("/metadata/labels").and_then(Value::as_object);
            for label in old.into_iter().flatten().map(|(label, _)| label) {
                let labels = new["metadata"]["labels"].as_object_mut().expect("labels");
                labels.entry(label).or_insert(Value::Null);
            }
            let taints = new["spec"]["taints"].take();
            let change =
                json!({"metadata": {"labels": new["metadata"]["labels"]}, "spec": {"taints": taints}});
            self.patch("managedclusters", cluster, &change, false);
            self.patch(
                "managedclusters",
                cluster,
                &json!({"status": {"allocatable": null, "capacity": null}}),
                true,
            );
            self.patch("managedclusters", cluster, &json!({ "status": status }), true);
        }
        for number in self.clusters..self.clusters + 2 {
            let cluster = generate::cluster(&mut self.dice, number, false);
            self.create("managedclusters", &[cluster]);
        }
        self.clusters += 2;
        for one in &all.scores {
            if self.dice.chance(20) {
                let new = generate::scores(&mut self.dice, &key(one).0);
                if let Some(new) = new.iter().find(|new| key(new) == key(one)) {
                    self.patch("addonplacementscores", one, &json!({"status": new["status"]}), true);
                }
            }
        }
        for one in &all.placements {
            let minds = key(one).1.starts_with("balanced");
            let disabled = if minds { json!("true") } else { Value::Null };
            let mut change = json!({"metadata": {"annotations": {DISABLED: disabled}}});
            if self.dice.chance(40) {
                // Replaced as a whole: what is not wished any more must go.
                let mut spec = generate::wish(&mut self.dice, minds);
                for field in one["spec"].as_object().into_iter().flatten().map(|(field, _)| field) {
                    if spec.get(field).is_none() {
                        spec[field] = Value::Null;
                    }
                }
                let groups = &mut spec["decisionStrategy"]["groupStrategy"];
                for field in ["clustersPerDecisionGroup", "decisionGroups"] {
                    if groups.get(field).is_none() {
                        groups[field] = Value::Null;
                    }
                }
                change["spec"] = spec;
            } else if !one.to_string().contains("Steady") && self.dice.chance(40) {
                // The same wish, but for another number: whoever is selected has an advantage.
                change["spec"] = json!({"numberOfClusters": self.dice.range(1, 12)});
            }
            if minds || change.get("spec").is_some() {
                self.patch("placements", one, &change, false);
            }
        }
    }

    /// Both decide.
    fn round(&mut self, name: &str) {
        self.ocm.clear_events(&NAMESPACES).expect("forgotten");
        for one in self.objects().placements.iter().filter(|one| key(one).1.starts_with("balanced")) {
            self.patch("placements", one, &json!({"metadata": {"annotations": {DISABLED: "true"}}}), false);
        }
        let before = self.objects();
        let mut ours = Ours::parity(&before);
        ours.settle();
        let controller = self.ocm.controller().expect("the controller");
        let agree = |theirs: &BTreeMap<Id, places::Result>| {
            let mut all = before.placements.iter().filter(|one| !key(one).1.starts_with("balanced"));
            all.all(|one| {
                theirs.get(&key(one)).is_some_and(|theirs| theirs_for(&ours, &read(one), theirs).0 == *theirs)
            })
        };
        let (after, theirs) = self.turns(&controller, agree);
        for one in before.placements.iter().filter(|one| !key(one).1.starts_with("balanced")) {
            self.compare(name, &ours, one, theirs.get(&key(one)));
        }
        self.balanced(name, &controller, &after);
        let after = self.objects();
        self.tables(name, &controller, &after);
        // Not of those that mind balance: now and then their event has other totals than we expect at that moment, and
        // why is not known. Their points are compared by the tables, as they are now.
        let mut ours = Ours::parity(&after);
        let steady = after.placements.iter().filter(|one| !key(one).1.starts_with("balanced"));
        let told = steady.map(|one| (key(one), Told::of(&ours.report(&key(one))))).collect();
        self.events(name, &controller, &after, told);
    }

    /// What the controller has written once it has settled. Labels are written a turn after the clusters, so it gets
    /// some more turns if it has not come as far as expected.
    fn turns(
        &self,
        controller: &Controller<'_>,
        agree: impl Fn(&BTreeMap<Id, places::Result>) -> bool,
    ) -> (Objects, BTreeMap<Id, places::Result>) {
        let mut turns = 5;
        loop {
            turns -= 1;
            controller.settle().expect("settled");
            let after = self.objects();
            let theirs = written(&after.placements, &after.decisions);
            if turns == 0 || agree(&theirs) {
                return (after, theirs);
            }
        }
    }

    fn fault(&mut self, name: &str, placement: &Value, what: &str) {
        let spec = &placement["spec"];
        self.tally.faults.push(format!("{name}: {}\n  {spec}\n{what}", key(placement).1));
    }

    fn compare(&mut self, name: &str, ours: &Ours, placement: &Value, theirs: Option<&places::Result>) {
        self.tally.compared += 1;
        let Some(theirs) = theirs else {
            return self.fault(name, placement, "  the controller says nothing");
        };
        let (expected, rows) = theirs_for(ours, &read(placement), theirs);
        if expected == *theirs {
            for row in rows {
                *self.tally.listed.entry(row).or_default() += 1;
            }
            return;
        }
        let what = format!("  theirs:   {theirs:?}\n  expected: {expected:?} {rows:?}");
        self.fault(name, placement, &what);
    }

    /// Those that mind balance, one by one.
    fn balanced(&mut self, name: &str, controller: &Controller<'_>, all: &Objects) {
        let minding: Vec<&Value> =
            all.placements.iter().filter(|one| key(one).1.starts_with("balanced")).collect();
        let mut ours = Ours::parity(all);
        for one in minding {
            let mut placement = read(one);
            placement.disabled = false;
            ours.set(placement);
            ours.settle();
            self.patch("placements", one, &json!({"metadata": {"annotations": {DISABLED: null}}}), false);
            let mut turns = 5;
            let theirs = loop {
                turns -= 1;
                controller.settle().expect("settled");
                let theirs = self.written(one);
                let agree = |theirs: &places::Result| theirs_for(&ours, &read(one), theirs).0 == *theirs;
                if turns == 0 || theirs.get(&key(one)).is_some_and(agree) {
                    break theirs;
                }
            };
            self.compare(name, &ours, one, theirs.get(&key(one)));
        }
    }

    /// Points as the controller tells them when asked.
    fn tables(&mut self, name: &str, controller: &Controller<'_>, all: &Objects) {
        let mut ours = Ours::asked(all);
        for one in &all.placements {
            let id = key(one);
            let report = ours.report(&id);
            if !report.outcome.code.decided() {
                continue;
            }
            let theirs = controller.tables(&id.0, &id.1).expect("tables");
            let mut points: BTreeMap<String, (i64, BTreeMap<String, i64>)> = BTreeMap::new();
            for table in theirs["prioritizeResults"].as_array().into_iter().flatten() {
                // The same score named twice counts twice.
                let entry = points.entry(text(table, "/name").to_owned()).or_default();
                entry.0 += table["weight"].as_i64().expect("a weight");
                entry.1 = serde_json::from_value(table["scores"].clone()).expect("points");
            }
            points.retain(|_, (weight, _)| *weight != 0);
            let mut expected: BTreeMap<String, (i64, BTreeMap<String, i64>)> = BTreeMap::new();
            let survivors = report.clusters.iter().filter(|one| one.total.is_some());
            for cluster in survivors.clone() {
                for score in &cluster.scores {
                    let entry = expected.entry(score.name.clone()).or_default();
                    entry.0 = score.weight;
                    // Nothing known is told as 0 of the scores of others, and not told of resources.
                    let known = score.raw.or_else(|| score.name.starts_with("AddOn/").then_some(0));
                    entry.1.extend(known.map(|raw| (cluster.cluster.to_string(), raw)));
                }
            }
            if survivors.clone().next().is_none() {
                for (_, points) in points.values() {
                    assert!(points.is_empty(), "points for nobody: {theirs}");
                }
                continue;
            }
            self.tally.tables += 1;
            let left = theirs["filteredPiplieResults"].as_array().into_iter().flatten();
            let last = left.max_by_key(|table| text(table, "/name").len());
            let clusters = last.and_then(|table| table["filteredClusters"].as_array()).into_iter().flatten();
            let kept: BTreeSet<&str> = clusters.filter_map(Value::as_str).collect();
            let ours: BTreeSet<&str> = survivors.map(|one| &*one.cluster).collect();
            if (&points, &kept) != (&expected, &ours) {
                let what = format!("  tables:   {points:?} {kept:?}\n  expected: {expected:?} {ours:?}");
                self.fault(name, one, &what);
            }
        }
    }

    /// Points as the controller tells them by itself, and warnings of scores that have expired.
    fn events(
        &mut self,
        name: &str,
        controller: &Controller<'_>,
        all: &Objects,
        mut wanted: BTreeMap<Id, Told>,
    ) {
        wanted.retain(|_, told| !told.totals.is_empty());
        // Events are sent while other things go on: a few more turns may be needed.
        for _ in 0..20 {
            for event in self.ocm.events().expect("events") {
                let id = (
                    text(&event, "/regarding/namespace").to_owned(),
                    text(&event, "/regarding/name").to_owned(),
                );
                let Some(Told { totals, warning }) = wanted.get_mut(&id) else { continue };
                let note = text(&event, "/note");
                if event["reason"] == "ScoreUpdate" {
                    // A long list is cut, at no particular place, for it is in no particular order.
                    let (listed, cut) = match note.strip_suffix("......") {
                        Some(listed) => (listed, true),
                        None => (note, false),
                    };
                    let said: BTreeSet<&str> = listed.split_whitespace().collect();
                    let known = said.iter().all(|one| totals.contains(*one));
                    if known && !said.is_empty() && (cut || said.len() == totals.len()) {
                        totals.clear();
                        self.tally.told += 1;
                    }
                }
                let said =
                    note.split_once(": ").map(|(_, said)| said.split(' ').map(str::to_owned).collect());
                if event["type"] == "Warning" && warning.is_some() && *warning == said {
                    *warning = None;
                }
            }
            wanted.retain(|_, told| *told != Told::default());
            if wanted.is_empty() {
                return;
            }
            controller.settle().expect("settled");
        }
        for (id, missing) in wanted {
            let one = all.placements.iter().find(|one| key(one) == id).expect("one of them");
            self.fault(name, one, &format!("  not told: {missing:?}"));
        }
    }
}

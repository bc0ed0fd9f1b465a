//! `loadline fleet --api karmada` on a real hub, beside the unmodified karmada-scheduler and in its place.
//!
//! Cluster a has ten nodes of 8 cpu and Karmada's own estimator, b has two of 16 and ours; both are found by their Services.
//! What is judged is what the API server has.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_testkit::karmada::{self, Channel, Decision, Karmada, Scheduler, Version};
use loadline_testkit::running::PATIENCE;
use loadline_testkit::{ControlPlane, Running};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

const BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings";

/// Two clusters: a's API server is also the hub.
struct Fleet {
    a: ControlPlane,
    b: ControlPlane,
}

impl Fleet {
    fn start_or_skip() -> Option<Self> {
        let fleet = Self { a: karmada::plane_or_skip()?, b: ControlPlane::start_or_skip()? };
        for (plane, count, cpu) in [(&fleet.a, 10, 8), (&fleet.b, 2, 16)] {
            let room = json!({"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"});
            for index in 0..count {
                plane.add_node(&format!("node-{index}"), &Value::Null, &room).unwrap();
            }
        }
        Some(fleet)
    }

    /// Registers both clusters, with estimators on these ports.
    fn register(&self, a: u16, b: u16) -> Karmada<'_> {
        let karmada = Karmada::install(&self.a).unwrap();
        karmada.cluster("a", &summary(10, 8), a).unwrap();
        karmada.cluster("b", &summary(2, 16), b).unwrap();
        karmada
    }

    /// Karmada's estimator for a.
    fn theirs(&self, version: Version) -> Running {
        let running = karmada::estimator(version, &self.a.kubeconfig(), "a", &Channel::Plain, &[]).unwrap();
        karmada::settle(&running, &self.a).unwrap();
        running
    }

    /// Ours for b.
    fn ours(&self) -> Running {
        let config = self.b.kubeconfig();
        let running = start(|port| {
            vec![
                "estimator".to_owned(),
                format!("--cluster=b={}", config.display()),
                "--bind-address=127.0.0.1".into(),
                format!("--server-port={port}"),
                "--health-probe-bind-address=0".into(),
                "--metrics-bind-address=0".into(),
            ]
        });
        running.wait_until(|said| said.contains("ready clusters=1 nodes=2")).unwrap();
        running
    }

    /// Our controller, for bindings that name this scheduler.
    fn controller(&self, scheduler: &str, flags: &[&str]) -> Running {
        let config = self.a.kubeconfig();
        start(|port| {
            let mut all = vec![
                "fleet".to_owned(),
                "--api=karmada".into(),
                format!("--kubeconfig={}", config.display()),
                format!("--scheduler-name={scheduler}"),
                format!("--http-bind-address=127.0.0.1:{port}"),
                "--enable-scheduler-estimator".into(),
            ];
            all.extend(flags.iter().map(|&flag| flag.to_owned()));
            all
        })
    }

    /// Makes a binding and waits for the first decision about it, whoever makes it.
    fn bind(&self, by: &Running, binding: &Value) -> Decision {
        let name = binding["metadata"]["name"].as_str().unwrap();
        self.a.create(BINDINGS, binding).unwrap();
        let path = format!("{BINDINGS}?watch=1&fieldSelector=metadata.name%3D{name}");
        for event in self.a.watch(&path, PATIENCE).unwrap() {
            let object = event.unwrap()["object"].take();
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            if let Some(told) = conditions.iter().find(|condition| condition["type"] == "Scheduled") {
                let text = |field: &str| told[field].as_str().unwrap().to_owned();
                return Decision {
                    clusters: targets(&object),
                    reason: text("reason"),
                    message: text("message"),
                };
            }
        }
        unreachable!("{name} was not decided about: {}", by.output())
    }

    fn binding(&self, name: &str) -> Value {
        self.a.get(&format!("{BINDINGS}/{name}")).unwrap()
    }

    /// Who wrote to a binding.
    fn writers(&self, name: &str) -> Vec<String> {
        let fields = self.binding(name)["metadata"]["managedFields"].clone();
        let mut names: Vec<String> = fields
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["manager"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn start(flags: impl Fn(u16) -> Vec<String>) -> Running {
    Running::start("loadline", Path::new(env!("CARGO_BIN_EXE_loadline")), flags).unwrap()
}

/// What our controller answers.
fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// What a cluster of so many nodes of that size says of itself: the sums.
fn summary(nodes: u32, cpu: u32) -> Value {
    let sum = |each: u32| (nodes * each).to_string();
    json!({"allocatable": {"cpu": sum(cpu), "memory": format!("{}Gi", nodes * 64), "pods": sum(110)}})
}

fn targets(object: &Value) -> Vec<(String, i64)> {
    let clusters = object["spec"]["clusters"].as_array().cloned().unwrap_or_default();
    let one = |c: &Value| (c["name"].as_str().unwrap().to_owned(), c["replicas"].as_i64().unwrap_or(0));
    let mut all: Vec<_> = clusters.iter().map(one).collect();
    all.sort();
    all
}

fn pairs(decision: &Decision) -> Vec<(&str, i64)> {
    decision.clusters.iter().map(|(name, replicas)| (name.as_str(), *replicas)).collect()
}

fn weighted() -> Value {
    json!({"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"}}})
}

/// A binding of so many replicas of so much cpu, for that scheduler.
fn asks(scheduler: &str, name: &str, replicas: i64, cpu: &str, placement: &Value) -> Value {
    let requirements = json!({"resourceRequest": {"cpu": cpu}});
    let mut binding = karmada::deployment(name, replicas, &requirements, placement);
    binding["spec"]["schedulerName"] = scheduler.into();
    binding
}

/// What both are asked: name, replicas, cpu of each, placement.
fn questions() -> Vec<(&'static str, i64, &'static str, Value)> {
    let mut only_b = karmada::aggregated();
    only_b["clusterAffinity"] = json!({"clusterNames": ["b"]});
    let mut nowhere = weighted();
    nowhere["clusterAffinity"] = json!({"clusterNames": ["z"]});
    vec![
        // By sums 6 fit in a and 2 in b, by nodes none and 2.
        ("large", 1, "12", karmada::aggregated()),
        ("too-many", 3, "12", karmada::aggregated()),
        // By nodes 10 × ⌊8/3⌋ = 20 and 2 × ⌊16/3⌋ = 10: 8 and 4.
        ("many", 12, "3", weighted()),
        ("only-b", 2, "9", only_b),
        ("nowhere", 2, "1", nowhere),
        ("everywhere", 2, "1", json!({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}})),
    ]
}

/// What `loadline explain binding` prints for people says what the document does.
fn explained(port: u16, name: &str, told: &Value) {
    let url = format!("http://127.0.0.1:{port}");
    let args = ["explain", "binding", name, "--controller", &url];
    let output = Command::new(env!("CARGO_BIN_EXE_loadline")).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8_lossy(&output.stdout);
    let (decision, text) = (&told["decision"], |value: &Value| value.as_str().unwrap().to_owned());
    let row = |name: &str| {
        let row = table.lines().find(|line| line.split_whitespace().next() == Some(name));
        row.unwrap_or_else(|| panic!("no {name} in {table}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let head = format!("{} → {}\n", text(&told["binding"]), "b 1");
    let condition =
        format!("  {}: {}\n", text(&told["condition"]["reason"]), text(&told["condition"]["message"]));
    let when = format!("  decided {}: {}\n", text(&decision["at"]), text(&decision["why"]));
    assert!(table.starts_with(&format!("{head}{condition}{when}")), "{table}");
    for one in decision["feasible"].as_array().unwrap() {
        let name = text(&one["name"]);
        let target = decision["targets"].as_array().unwrap().iter().find(|target| target["name"] == *name);
        let gets = target.map_or_else(String::new, |target| format!("{} ", target["replicas"]));
        let start = format!("{name} {gets}{} {} ", one["available"], one["score"]);
        assert!(row(&name).starts_with(&start), "{start:?}: {table}");
        for estimate in one["estimates"].as_array().unwrap() {
            let said = format!("{} {}", text(&estimate["by"]), estimate["count"]);
            assert!(row(&name).contains(&said), "{said}: {table}");
        }
    }
    for one in decision["filtered"].as_array().unwrap() {
        assert!(row(&text(&one["name"])).ends_with(&text(&one["reason"])), "{one}: {table}");
    }
}

/// Karmada's own client library reads what was written, whoever wrote it, and a strict reader has nothing against it.
fn read_by_their_library(fleet: &Fleet) {
    let Some(read) = karmada::read(&fleet.a) else { return };
    let read = read.unwrap();
    assert_eq!(read["problems"], json!([]), "{read}");
    let all = read["bindings"].as_array().unwrap();
    for (name, ..) in questions() {
        let of = |by: &str| all.iter().find(|one| one["name"] == format!("{by}-{name}")).unwrap();
        let (own, other) = (of("own"), of("other"));
        let object = fleet.binding(&format!("own-{name}"));
        let (said, listed) = (&own["scheduled"], json!({"spec": {"clusters": own["clusters"]}}));
        assert_eq!(targets(&listed), targets(&object), "{name}: {own}");
        for field in ["status", "reason"] {
            assert_eq!(said[field], other["scheduled"][field], "{name}: {own}, {other}");
        }
        for field in ["applied", "observedAffinity", "hasTime"] {
            assert_eq!(own[field], other[field], "{name}, {field}: {own}, {other}");
        }
        if said["status"] == "True" {
            assert_eq!(own["observedGeneration"], object["metadata"]["generation"], "{name}: {own}");
            assert_eq!((&own["applied"], &own["hasTime"]), (&json!(true), &json!(true)), "{name}: {own}");
        }
    }
}

#[test]
fn beside_karmadas_each_decides_about_its_own_and_both_decide_alike() {
    let Some(fleet) = Fleet::start_or_skip() else { return };
    let (theirs, ours) = (fleet.theirs(Version::V1_18), fleet.ours());
    let karmada = fleet.register(theirs.port(), ours.port());
    let scheduler: Scheduler<'_> = karmada.scheduler(Version::V1_18, &Channel::Plain, &[]).unwrap();
    // It keeps room for what it assigned, and theirs does not: for comparing, only for a moment.
    let controller = fleet.controller("loadline", &["--promise-duration=1ms"]);
    for (name, replicas, cpu, placement) in questions() {
        let (own, other) = (format!("own-{name}"), format!("other-{name}"));
        let made = fleet.bind(&controller, &asks("loadline", &own, replicas, cpu, &placement));
        let expected = scheduler.bind(&asks("default-scheduler", &other, replicas, cpu, &placement)).unwrap();
        assert_eq!(pairs(&made), pairs(&expected), "{name}: {made:?}, {expected:?}");
        assert_eq!(made.reason, expected.reason, "{name}");
        // Theirs says first in which step it was.
        assert!(expected.message.ends_with(&made.message), "{name}: {made:?}, {expected:?}");
        let applied = "/metadata/annotations/policy.karmada.io~1applied-placement";
        let read = |name: &str| {
            let text = fleet.binding(name).pointer(applied).cloned().unwrap_or_default();
            text.as_str().map(|text| serde_json::from_str::<Value>(text).unwrap())
        };
        assert_eq!(read(&own), read(&other), "{name}");
    }
    for (name, ..) in questions() {
        let (own, other) = (fleet.writers(&format!("own-{name}")), fleet.writers(&format!("other-{name}")));
        assert!(own.iter().any(|by| by == "loadline-fleet"), "{name}: {own:?}");
        assert!(!other.iter().any(|by| by == "loadline-fleet"), "{name}: {other:?}");
        assert!(!own.iter().any(|by| other.contains(by) && by.contains("scheduler")), "{name}: {own:?}");
    }
    // Told to whoever looks at the Deployment.
    let told = || {
        let events = fleet.a.get("/apis/events.k8s.io/v1/namespaces/default/events").unwrap();
        events["items"].as_array().unwrap().iter().any(|event| {
            event["reportingController"] == "loadline-fleet"
                && event["reason"] == "ScheduleBindingSucceed"
                && event["regarding"]["kind"] == "Deployment"
                && event["note"] == "Binding has been scheduled successfully. Result: {b:1}"
        })
    };
    controller.wait_until(|_| told()).unwrap();

    // And in full to whoever asks.
    let told = get(controller.port(), "/debug/explain/bindings/default/own-large");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["decision"]["targets"], json!([{"name": "b", "replicas": 1}]), "{told}");
    let feasible = told["decision"]["feasible"].as_array().unwrap();
    let counts = feasible.iter().flat_map(|one| one["estimates"].as_array().unwrap());
    let counts = counts.filter(|one| one["by"] == "scheduler-estimator").map(|one| one["count"].as_i64());
    assert_eq!(counts.collect::<Vec<_>>(), [Some(2), Some(0)], "b, which is chosen first, and a: {told}");
    explained(controller.port(), "default/own-large", &told);
    read_by_their_library(&fleet);
    let metrics = get(controller.port(), "/metrics");
    let attempts =
        "karmada_scheduler_schedule_attempts_total{result=\"scheduled\",schedule_type=\"ReconcileSchedule\"}";
    assert!(metrics.contains(attempts), "{metrics}");
    let ready = "active\nclusters 2, bindings 12, ";
    controller.wait_until(|_| get(controller.port(), "/readyz").starts_with(ready)).unwrap();

    // Karmada's estimator of a goes away. Theirs would go by sums for b, too, and choose a; ours still knows of b. It is
    // asked something new: what was answered a moment ago would be used again.
    drop(theirs);
    let made = fleet.bind(&controller, &asks("loadline", "own-alone", 1, "13", &karmada::aggregated()));
    assert_eq!(pairs(&made), [("b", 1)], "{made:?}");
    assert!(made.message.contains("Without estimates of a: "), "{made:?}");
}

#[test]
fn in_the_place_of_karmadas_nothing_moves_and_back_neither() {
    let Some(fleet) = Fleet::start_or_skip() else { return };
    // One that knows only the older form of questions.
    let (theirs, ours) = (fleet.theirs(Version::V1_17), fleet.ours());
    let karmada = fleet.register(theirs.port(), ours.port());
    let name = |by: &str, name: &str| format!("{by}-{name}");
    let default = "default-scheduler";
    let state = |by: &str| -> Vec<(Vec<(String, i64)>, Value)> {
        let read = |(question, ..): (&str, i64, &str, Value)| {
            let object = fleet.binding(&name(by, question));
            (targets(&object), object["metadata"]["generation"].clone())
        };
        questions().into_iter().map(read).collect()
    };

    let scheduler = karmada.scheduler(Version::V1_18, &Channel::Plain, &[]).unwrap();
    for (question, replicas, cpu, placement) in questions() {
        scheduler.bind(&asks(default, &name("old", question), replicas, cpu, &placement)).unwrap();
    }
    drop(scheduler);
    let before = state("old");

    // Ours takes over. What is new is decided about; what was there is looked at before, and left where it is.
    let controller = fleet.controller(default, &["--leader-elect", "--promise-duration=1ms"]);
    for (question, replicas, cpu, placement) in questions() {
        fleet.bind(&controller, &asks(default, &name("new", question), replicas, cpu, &placement));
    }
    assert_eq!(state("old"), before, "nothing moved: {}", controller.output());
    drop(controller);

    // And back.
    let after = state("new");
    let scheduler = karmada.scheduler(Version::V1_18, &Channel::Plain, &[]).unwrap();
    let last = scheduler.bind(&asks(default, "last", 1, "12", &karmada::aggregated())).unwrap();
    assert_eq!(pairs(&last), [("b", 1)], "{last:?}");
    assert_eq!((state("old"), state("new")), (before, after), "nothing moved");
}

/// A kubeconfig for an account that may do what the guide says it must be allowed, and nothing else.
fn least_privilege(plane: &ControlPlane) -> String {
    const PAGE: &str = include_str!("../../../docs/guide/fleet-karmada.md");
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let group = "rbac.authorization.k8s.io";
    let block = PAGE.split("```yaml\n").find(|block| block.contains("kind: ClusterRole\n")).unwrap();
    let roles: Vec<Value> = serde_saphyr::from_multiple(block.split("```").next().unwrap()).unwrap();
    let name = &roles[0]["metadata"]["name"];
    for role in &roles {
        let kind = role["kind"].as_str().unwrap();
        let (within, plural) = match role["metadata"]["namespace"].as_str() {
            Some(namespace) => (format!("{RBAC}/namespaces/{namespace}"), ["roles", "rolebindings"]),
            None => (RBAC.to_owned(), ["clusterroles", "clusterrolebindings"]),
        };
        plane.create(&format!("{within}/{}", plural[0]), role).unwrap();
        let binding = json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": kind, "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": name}]});
        plane.create(&format!("{within}/{}", plural[1]), &binding).unwrap();
    }
    let mut config: Value =
        serde_json::from_str(&std::fs::read_to_string(plane.kubeconfig()).unwrap()).unwrap();
    config["users"][0]["user"]["as"] = name.clone();
    let file = plane.folder().join("least-privilege");
    std::fs::write(&file, config.to_string()).unwrap();
    file.display().to_string()
}

#[test]
fn with_the_account_of_the_guide_and_karmadas_lease_it_waits_takes_over_and_gives_back() {
    let Some(plane) = karmada::plane_or_skip() else { return };
    let hub = Karmada::install(&plane).unwrap();
    // Nobody listens there, and nobody is asked.
    hub.cluster("a", &summary(10, 8), 1).unwrap();
    // Short enough to wait for, long enough for a busy machine.
    let short = [
        "--leader-elect-lease-duration=8s",
        "--leader-elect-renew-deadline=5s",
        "--leader-elect-retry-period=1s",
    ];
    let elected = [&["--leader-elect=true", "--enable-scheduler-estimator=false"], &short[..]].concat();
    let theirs = hub.scheduler(Version::V1_18, &Channel::Plain, &elected).unwrap();
    let lease = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/karmada-scheduler";
    let holder = || {
        let lease = plane.get(lease).ok()?;
        lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(str::to_owned)
    };
    theirs.running().wait_until(|_| holder().is_some()).unwrap();
    let first = holder();

    let account = least_privilege(&plane);
    let ours = start(|port| {
        let mut all = vec![
            "fleet".to_owned(),
            "--api=karmada".into(),
            format!("--kubeconfig={account}"),
            format!("--http-bind-address=127.0.0.1:{port}"),
            "--leader-elect".into(),
            "--leader-elect-resource-name=karmada-scheduler".into(),
            "--leader-elect-resource-namespace=karmada-system".into(),
        ];
        all.extend(short.map(str::to_owned));
        all
    });
    let says = |what: &str| ours.wait_until(|_| get(ours.port(), "/readyz").starts_with(what)).unwrap();
    says("standing by: another one leads\nclusters 1, ");
    let divided = |name: &str| asks("default-scheduler", name, 3, "1", &karmada::aggregated());
    let decision = theirs.bind(&divided("by-theirs")).unwrap();
    assert_eq!(pairs(&decision), [("a", 3)], "{decision:?}");
    let state = |name: &str| plane.get(&format!("{BINDINGS}/{name}")).unwrap();
    let writers = |name: &str| state(name)["metadata"]["managedFields"].to_string();
    assert!(!writers("by-theirs").contains("loadline"), "who stands by writes nothing");

    let before = state("by-theirs");
    drop(theirs);
    ours.wait_until(|_| holder().is_some_and(|now| Some(now) != first)).unwrap();
    says("active");
    plane.create(BINDINGS, &divided("by-ours")).unwrap();
    let done =
        || targets(&state("by-ours")) == [("a".to_owned(), 3)] && !state("by-ours")["status"].is_null();
    ours.wait_until(|_| done()).unwrap();
    assert!(writers("by-ours").contains("loadline-fleet"), "{}", state("by-ours"));
    let spec = |object: &Value| (object["spec"].clone(), object["metadata"]["generation"].clone());
    assert_eq!(spec(&state("by-theirs")), spec(&before), "nothing moved");

    let before = (state("by-theirs"), state("by-ours"));
    drop(ours);
    let theirs = hub.scheduler(Version::V1_18, &Channel::Plain, &elected).unwrap();
    theirs.bind(&divided("again-by-theirs")).unwrap();
    assert!(!writers("again-by-theirs").contains("loadline"), "given back");
    assert_eq!(spec(&state("by-theirs")), spec(&before.0), "nothing moved");
    assert_eq!(spec(&state("by-ours")), spec(&before.1), "nothing moved");
}

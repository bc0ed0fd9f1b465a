//! `loadline scheduler` on a real kube-apiserver, in bursts and while things go wrong. Who was bound, and how often, is
//! read from the audit log of the API server.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::{ControlPlane, Line};
use serde_json::{Value, json};
use service::{PATIENCE, Service, until};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Half of a node may be used. Nobody measures pods here, so each counts as what it requests.
const POLICY: &str = "apiVersion: loadline.dev/v1alpha1
kind: LoadSettings
spec:
  targets: {cpu: 0.5}
";

/// Pods of a burst.
const BURST: usize = 200;
/// How many of them are bound when something goes wrong.
const MIDDLE: usize = 50;

/// Pods that somebody else binds while we are about to: fewer than we write about at a time.
const FIRST: usize = 30;

/// What a node has, what is used of it, and what a pod requests, in thousandths of a core. Up to its line of 4000 a calm node
/// has room for (4000 - 320) / 100 = 36 pods, a busy one for (4000 - 3120) / 100 = 8; one more would be 20 over it.
const LINE: usize = 8000 / 2;
const CALM: usize = 320;
const BUSY: usize = 3120;
const POD: usize = 100;
/// All that fit under the lines of five calm and five busy nodes: 5 · 36 + 5 · 8.
const ROOM: usize = 5 * ((LINE - CALM) / POD) + 5 * ((LINE - BUSY) / POD);

/// One control plane at a time is enough for a small machine.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A control plane that writes down what is asked of it, and nodes with some load.
struct Bench {
    plane: ControlPlane,
}

impl Bench {
    /// Five calm nodes, five busy ones and a hot one.
    fn start() -> Option<Self> {
        let plane = ControlPlane::setup().audited().start_or_skip()?;
        std::fs::write(plane.folder().join("policy.yaml"), POLICY).unwrap();
        let bench = Self { plane };
        for i in 0..5 {
            bench.node(&format!("calm-{i}"), CALM);
            bench.node(&format!("busy-{i}"), BUSY);
        }
        bench.node("hot", 7200);
        Some(bench)
    }

    /// A node of eight cores, so many thousandths of one used.
    fn node(&self, name: &str, used: usize) {
        let has = json!({"cpu": "8", "memory": "64Gi", "pods": "500"});
        self.plane.add_node(name, &json!({}), &has).unwrap();
        self.annotate(name, used);
    }

    fn annotate(&self, name: &str, used: usize) {
        let share = format!("0.{:05}", used * 100_000 / 8000);
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
        let annotations = json!({"cpu_usage_avg_5m": format!("{share},{now}")});
        self.change(name, &json!({"metadata": {"annotations": annotations}}));
    }

    fn change(&self, node: &str, change: &Value) {
        self.plane.patch(&format!("{NODES}/{node}"), change).unwrap();
    }

    /// A scheduler, by that kubeconfig.
    fn scheduler_by(&self, kubeconfig: &str, more: &[&str]) -> Service {
        let file = |name: &str| self.plane.folder().join(name).display().to_string();
        let (kubeconfig, policy) = (file(kubeconfig), file("policy.yaml"));
        let mut args = vec!["scheduler", "--kubeconfig", &kubeconfig, "--policy", &policy];
        args.extend(more);
        Service::start(&args)
    }

    /// The only scheduler, at work.
    fn scheduler(&self) -> Service {
        let service = self.scheduler_by("kubeconfig", &[]);
        service.until("active");
        service
    }

    /// The same at the end of a line.
    fn scheduler_on(&self, line: &Line) -> Service {
        let direct = std::fs::read_to_string(self.plane.kubeconfig()).unwrap();
        let by_line = direct.replace(self.plane.url(), &format!("https://127.0.0.1:{}", line.port()));
        assert_ne!(direct, by_line);
        std::fs::write(self.plane.folder().join("by-line"), by_line).unwrap();
        let service = self.scheduler_by("by-line", &[]);
        service.until("active");
        service
    }

    /// Makes a pod, unless it is there; says whether it is there now.
    fn pod(&self, name: &str, cpu: &str) -> bool {
        let requests = json!({"cpu": cpu, "memory": "16Mi"});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "schedulerName": "loadline",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}});
        self.plane.request("POST", PODS, Some(&pod)).is_ok_and(|reply| [201, 409].contains(&reply.status))
    }

    /// Makes pods, some at a time; each is handed on. Says who could not be made.
    fn make<'a>(&self, names: &'a [String], then: impl Fn(&str) + Sync) -> Vec<&'a String> {
        let make = |some: &'a [String]| {
            let (made, missing): (Vec<_>, Vec<_>) = some.iter().partition(|name| {
                let made = self.pod(name, &format!("{POD}m"));
                if made {
                    then(name);
                }
                made
            });
            drop(made);
            missing
        };
        thread::scope(|scope| {
            let some = names.chunks(names.len().div_ceil(4));
            let makers: Vec<_> = some.map(|some| scope.spawn(move || make(some))).collect();
            makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect()
        })
    }

    /// Makes pods, and lets something happen once some of them are bound; asserts that others are not yet, and says who
    /// could not be made.
    fn interrupted<'a>(&self, names: &'a [String], happens: impl FnOnce()) -> Vec<&'a String> {
        thread::scope(|scope| {
            let makers = scope.spawn(|| self.make(names, |_| ()));
            self.bound_reaches(MIDDLE);
            happens();
            let bound = self.bound();
            println!("it happened with {bound} of {} pods bound", names.len());
            assert!((MIDDLE..names.len()).contains(&bound), "too late: {bound} pods are bound");
            makers.join().unwrap()
        })
    }

    /// Waits until so many pods are bound, and not a moment longer.
    fn bound_reaches(&self, count: usize) {
        let begun = Instant::now();
        while self.bound() < count {
            assert!(begun.elapsed() < PATIENCE, "waited too long for {count} bound pods");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// How many pods are bound, says the audit log.
    fn bound(&self) -> usize {
        self.bindings().values().filter(|asked| asked.iter().any(Asked::is_done)).count()
    }

    fn pods(&self) -> Vec<Value> {
        self.plane.get(PODS).unwrap()["items"].as_array().unwrap().clone()
    }

    /// Pods per node, once so many have one.
    #[track_caller]
    fn placed(&self, count: usize) -> BTreeMap<String, usize> {
        let nodes = until("all pods to be bound", || {
            let nodes: Vec<String> = self
                .pods()
                .iter()
                .filter_map(|pod| Some(pod["spec"]["nodeName"].as_str()?.to_owned()))
                .collect();
            (nodes.len() >= count).then_some(nodes)
        });
        let mut placed = BTreeMap::new();
        for node in nodes {
            *placed.entry(node).or_default() += 1;
        }
        println!("{placed:?}");
        placed
    }

    /// Everything that was asked about each pod's binding.
    fn bindings(&self) -> BTreeMap<String, Vec<Asked>> {
        let log = self.plane.audit().unwrap();
        let is_binding = |entry: &&Value| entry["objectRef"]["subresource"] == "binding";
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (received, answered): (Vec<&Value>, Vec<&Value>) =
            log.iter().filter(is_binding).partition(|entry| entry["stage"] == "RequestReceived");
        let ids: BTreeSet<String> = answered.iter().map(|entry| text(&entry["auditID"])).collect();
        let lost = received.into_iter().filter(|entry| !ids.contains(&text(&entry["auditID"])));
        let mut out: BTreeMap<String, Vec<Asked>> = BTreeMap::new();
        for entry in answered.into_iter().chain(lost) {
            out.entry(text(&entry["objectRef"]["name"])).or_default().push(Asked {
                code: entry["responseStatus"]["code"].as_u64(),
                node: text(&entry["requestObject"]["target"]["name"]),
                uid: text(&entry["requestObject"]["metadata"]["uid"]),
            });
        }
        out
    }

    /// Asserts that every pod was bound exactly once, to the node it is on. Says how many of them by a request that was
    /// carried out without the server writing so: it was killed before, or who asked had gone.
    #[track_caller]
    fn bound_once(&self, count: usize) -> usize {
        let bindings = self.bindings();
        let pods = self.pods();
        assert_eq!(pods.len(), count);
        let mut unwritten = 0;
        for pod in pods {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let asked = &bindings[name];
            let done: Vec<&Asked> = asked.iter().filter(|asked| asked.is_done()).collect();
            match done[..] {
                [once] => {
                    assert_eq!(pod["spec"]["nodeName"], once.node, "{name}: {asked:?}");
                    assert_eq!(pod["metadata"]["uid"], once.uid, "{name}: {asked:?}");
                }
                [] => {
                    let node = pod["spec"]["nodeName"].as_str().unwrap();
                    let could =
                        |asked: &Asked| asked.is_lost() && (asked.code.is_none() || asked.node == node);
                    assert!(asked.iter().any(could), "{name} on {node}: {asked:?}");
                    unwritten += 1;
                }
                _ => panic!("{name} was bound more than once: {asked:?}"),
            }
        }
        let count = |is: fn(&Asked) -> bool| bindings.values().flatten().filter(|asked| is(asked)).count();
        let conflicts = count(|asked| asked.code == Some(409));
        println!(
            "{conflicts} conflicts, {} lost, {unwritten} done and not written down",
            count(Asked::is_lost)
        );
        unwritten
    }
}

/// One request to bind a pod.
#[derive(Debug)]
struct Asked {
    /// None if it was never answered.
    code: Option<u64>,
    node: String,
    uid: String,
}

impl Asked {
    fn is_done(&self) -> bool {
        self.code.is_some_and(|code| (200..300).contains(&code))
    }

    /// Does the log not know what became of it? Who asked may have gone before it was answered.
    fn is_lost(&self) -> bool {
        self.code.is_none_or(|code| code >= 499)
    }
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{prefix}-{i}")).collect()
}

/// No node has more than fits under its line, and who is over it from the beginning has nobody.
#[track_caller]
fn under_the_line(placed: &BTreeMap<String, usize>) {
    for (node, count) in placed {
        let used = match node.split('-').next().unwrap() {
            "calm" => CALM,
            "busy" => BUSY,
            "aside" => continue,
            other => panic!("nobody may be on {other}: {placed:?}"),
        };
        assert!(used + count * POD <= LINE, "{node} is over its line with {count} pods: {placed:?}");
    }
}

#[test]
fn a_node_that_is_not_ready_gets_nobody_and_takes_who_waits_once_it_is() {
    let _alone = alone();
    let Some(plane) = ControlPlane::setup().tainted_by_condition().audited().start_or_skip() else { return };
    std::fs::write(plane.folder().join("policy.yaml"), POLICY).unwrap();
    let bench = Bench { plane };
    bench.node("asleep", CALM);
    let has = json!({"cpu": "8", "memory": "64Gi", "pods": "1"});
    bench.plane.add_node("awake", &json!({}), &has).unwrap();
    bench.annotate("awake", CALM);
    // A kubelet says so again and again; one that does not is taken for lost.
    let says = |name: &str, ready: &str| {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let condition = json!({"type": "Ready", "status": ready, "lastHeartbeatTime": now});
        let status = json!({"status": {"conditions": [condition]}});
        bench.plane.patch(&format!("{NODES}/{name}/status"), &status).unwrap();
    };
    let taint = |name: &str| {
        let node = bench.plane.get(&format!("{NODES}/{name}")).unwrap();
        node["spec"]["taints"][0]["key"].as_str().map(str::to_owned)
    };
    until("taints as conditions are", || {
        says("asleep", "False");
        says("awake", "True");
        (taint("asleep").as_deref() == Some("node.kubernetes.io/not-ready") && taint("awake").is_none())
            .then_some(())
    });

    let scheduler = bench.scheduler();
    assert!(bench.pod("first", "100m") && bench.pod("second", "100m"));
    // The one that is ready has room for one of them, whoever comes first.
    let waits = until("one to be bound and one to be told that it waits", || {
        says("awake", "True");
        let pods = bench.pods();
        let (bound, free): (Vec<_>, Vec<_>) =
            pods.into_iter().partition(|pod| pod["spec"]["nodeName"].is_string());
        let [on] = &bound[..] else { return None };
        assert_eq!(on["spec"]["nodeName"], "awake");
        let told = free[0]["status"]["conditions"][0]["message"].as_str()?;
        assert!(told.contains("untolerated taint"), "{told}");
        Some(free[0]["metadata"]["name"].as_str().unwrap().to_owned())
    });
    assert_eq!(bench.bindings().values().flatten().filter(|asked| asked.node == "asleep").count(), 0);

    let placed = until("it to be bound", || {
        says("asleep", "True");
        let pod = bench.plane.get(&format!("{PODS}/{waits}")).unwrap();
        pod["spec"]["nodeName"].as_str().map(str::to_owned)
    });
    assert_eq!(placed, "asleep", "it is ready");
    assert_eq!(bench.bound_once(2), 0);
    assert!(scheduler.ends());
}

#[test]
fn a_burst_avoids_hot_nodes_and_passes_no_line() {
    let _alone = alone();
    let Some(bench) = Bench::start() else { return };
    let scheduler = bench.scheduler();
    assert_eq!(bench.make(&names("one", BURST), |_| ()), Vec::<&String>::new());
    under_the_line(&bench.placed(BURST));
    assert_eq!(bench.bound_once(BURST), 0);
    assert!(scheduler.ends());
}

#[test]
fn an_api_server_that_is_killed_in_a_burst_leaves_every_pod_bound_once() {
    let _alone = alone();
    let Some(mut bench) = Bench::start() else { return };
    let scheduler = bench.scheduler();
    let burst = names("one", BURST);
    let missing: Vec<String> =
        bench.interrupted(&burst, || bench.plane.kill_apiserver().unwrap()).into_iter().cloned().collect();
    assert!(!missing.is_empty(), "it was away");
    bench.plane.start_apiserver_again().unwrap();
    assert_eq!(bench.make(&missing, |_| ()), Vec::<&String>::new());
    under_the_line(&bench.placed(BURST));
    bench.bound_once(BURST);
    assert!(scheduler.ends());
}

#[test]
fn watches_that_are_cut_in_a_burst_leave_every_pod_bound_once() {
    let _alone = alone();
    let Some(bench) = Bench::start() else { return };
    let line = Line::to(bench.plane.port()).unwrap();
    let scheduler = bench.scheduler_on(&line);
    let burst = names("one", BURST);
    // Away until all pods are there, and a second time only for a moment.
    let missing = bench.interrupted(&burst, || line.cut());
    assert_eq!(missing, Vec::<&String>::new());
    let before = bench.bound();
    assert!(before < BURST, "the scheduler is cut off");
    line.mend();
    bench.bound_reaches(before + MIDDLE);
    line.cut();
    line.mend();
    let between = bench.bound();
    assert!(between < BURST, "too late: {between} pods are bound");
    under_the_line(&bench.placed(BURST));
    bench.bound_once(BURST);
    assert!(scheduler.ends());
}

#[test]
fn a_leader_that_is_killed_in_a_burst_leaves_every_pod_bound_once() {
    let _alone = alone();
    let Some(bench) = Bench::start() else { return };
    // Short enough to wait for, long enough for a busy machine.
    let election =
        ["--leader-elect", "--leader-elect-lease-duration", "8s", "--leader-elect-renew-deadline", "5s"];
    let election = [&election[..], &["--leader-elect-retry-period", "1s"]].concat();
    let first = bench.scheduler_by("kubeconfig", &election);
    first.until("active");
    let second = bench.scheduler_by("kubeconfig", &election);
    second.until("standing by");
    let burst = names("one", BURST);
    let missing = bench.interrupted(&burst, || first.signal("KILL"));
    assert_eq!(missing, Vec::<&String>::new());
    assert!(second.sum("loadline_scheduler_pods_bound_total") < 0.5, "it stands by");
    second.until("active");
    under_the_line(&bench.placed(BURST));
    bench.bound_once(BURST);
    assert!(second.ends());
}

#[test]
fn the_only_scheduler_that_is_killed_in_a_burst_and_started_again_binds_the_rest_once() {
    let _alone = alone();
    let Some(bench) = Bench::start() else { return };
    let first = bench.scheduler();
    let burst = names("one", BURST);
    let missing = bench.interrupted(&burst, || first.signal("KILL"));
    assert_eq!(missing, Vec::<&String>::new());
    let before = bench.bound();
    assert!(before < BURST, "nobody is there to bind the others");
    let second = bench.scheduler();
    under_the_line(&bench.placed(BURST));
    bench.bound_once(BURST);
    assert!(second.ends());
}

/// Somebody else binds pods to a node that nobody here is given.
fn bind_aside(bench: &Bench, name: &str) -> u16 {
    let path = format!("{PODS}/{name}");
    let uid = bench.plane.get(&path).unwrap()["metadata"]["uid"].clone();
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "aside"}});
    bench.plane.request("POST", &format!("{path}/binding"), Some(&binding)).unwrap().status
}

#[test]
fn pods_that_somebody_else_binds_first_are_bound_once_and_charged_nowhere_else() {
    let _alone = alone();
    let Some(bench) = Bench::start() else { return };
    bench.node("aside", 0);
    bench.change("aside", &json!({"spec": {"unschedulable": true}}));
    let line = Line::to(bench.plane.port()).unwrap();
    let scheduler = bench.scheduler_on(&line);

    // Decided on by us, bound by somebody else before we are heard: we are refused every time.
    line.hold();
    let first = names("first", FIRST);
    assert_eq!(bench.make(&first, |_| ()), Vec::<&String>::new());
    until("all of them to be decided on", || {
        let assumed = scheduler.sum("scheduler_cache_size{type=\"assumed_pods\"}");
        ((assumed - 30.0).abs() < 0.5).then_some(())
    });
    for name in &first {
        assert_eq!(bind_aside(&bench, name), 201);
    }
    line.let_go();
    until("all of them to be refused", || {
        let bindings = bench.bindings();
        let refused = |name: &&String| bindings[*name].iter().any(|asked| asked.code == Some(409));
        (first.iter().filter(refused).count() == FIRST).then_some(())
    });

    // A race that either may win.
    let second = names("second", 100);
    assert_eq!(
        bench.make(&second, |name| assert!([201, 409].contains(&bind_aside(&bench, name)))),
        Vec::<&String>::new()
    );
    let placed = bench.placed(FIRST + 100);
    under_the_line(&placed);
    let aside = placed["aside"];
    assert!(aside >= FIRST);

    // Nothing is charged for those who are elsewhere: as many fit as ever, and not one more.
    let third = names("third", ROOM + aside - FIRST - 100);
    assert_eq!(bench.make(&third, |_| ()), Vec::<&String>::new());
    let placed = bench.placed(ROOM + aside);
    under_the_line(&placed);
    assert_eq!(bench.bound_once(ROOM + aside), 0);
    assert!(bench.pod("one-more", &format!("{POD}m")));
    until("the last one to be told that it waits", || {
        let pod = bench.plane.get(&format!("{PODS}/one-more")).unwrap();
        let told = pod["status"]["conditions"][0]["message"].as_str()?;
        assert!(told.contains("would pass the load line"), "{told}");
        Some(())
    });
    assert!(scheduler.ends());
}

/// How often a pod was told that it waits: writes of its status, and Events.
fn told(bench: &Bench, name: &str) -> (usize, u64) {
    let log = bench.plane.audit().unwrap();
    let about = |entry: &&Value| {
        let object = &entry["objectRef"];
        object["resource"] == "pods" && object["subresource"] == "status" && object["name"] == name
    };
    let events = bench.plane.get("/apis/events.k8s.io/v1/namespaces/default/events").unwrap();
    let events = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["regarding"]["name"] == name && event["reason"] == "FailedScheduling");
    let times = |event: &Value| event["series"]["count"].as_u64().unwrap_or(1);
    (log.iter().filter(about).count(), events.map(times).sum())
}

#[test]
fn pods_that_ask_the_impossible_are_told_once_for_each_reason() {
    let _alone = alone();
    let Some(bench) = Bench::start() else { return };
    let scheduler = bench.scheduler();
    // One is too large for every node, one for what may be used of any.
    assert!(bench.pod("impossible", "9") && bench.pod("over-the-line", "4500m"));
    let tries = || scheduler.sum("scheduler_schedule_attempts_total{result=\"unschedulable\"");
    until("both to be tried", || (tries() > 1.5).then_some(()));
    let again = || {
        for i in 0..5 {
            let before = tries();
            bench.change("calm-0", &json!({"metadata": {"labels": {"turn": i.to_string()}}}));
            // What is used changes, too, and never so that one of them fits.
            bench.annotate("calm-1", CALM + i * 80);
            until("both to be tried again", || (tries() > before + 1.5).then_some(()));
        }
    };
    let both = || ["impossible", "over-the-line"].map(|name| told(&bench, name));
    again();
    until("the events", || both().iter().all(|(_, events)| *events > 0).then_some(()));
    assert_eq!(both(), [(1, 1); 2]);

    // There is something new to say: one more node.
    bench.node("calm-5", CALM);
    again();
    until("the events", || both().iter().all(|(_, events)| *events > 1).then_some(()));
    println!("{:?} after {} tries", both(), tries());
    assert_eq!(both(), [(2, 2); 2]);
    assert!(scheduler.ends());
}

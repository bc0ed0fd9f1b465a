//! `loadline replay --prometheus`: what a cluster used becomes a world. Once from a Prometheus that says what the test wants it to,
//! over a socket, and once from a real one with a day of data.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use loadline_apiserver::ApiServer;
use loadline_testkit::parts::find_or_skip;
use serde_json::{Value, from_value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const STEP: i64 = 300;
/// A day.
const STEPS: i64 = 288;
const NODES: usize = 4;
/// Of each node.
const CORES: i64 = 4;
/// What the pod of the daemon set uses on each.
const LOGS: i64 = 100;

/// A pod, when it was there, and how it was named; those that are gone are not in the cluster.
struct Was {
    name: String,
    node: usize,
    from: i64,
    to: i64,
    owner: &'static str,
    level: i64,
}

impl Was {
    /// Thousandths of a core: high in the afternoon, different for each.
    fn uses(&self, step: i64) -> i64 {
        if self.owner == "DaemonSet" {
            return LOGS;
        }
        let afternoon = if (144..216).contains(&step) { 2 } else { 1 };
        self.level * afternoon + (step * 7 + self.level) % 50
    }

    fn is_there(&self) -> bool {
        self.to >= STEPS
    }
}

/// Four nodes with a daemon each; twelve web pods, of which two are gone; a database; a job that is gone and has no sibling.
fn pods() -> Vec<Was> {
    let mut all: Vec<Was> = (0..NODES)
        .map(|node| Was {
            name: format!("logs-x2x4{}", ["b", "c", "d", "f"][node]),
            node,
            from: 0,
            to: STEPS,
            owner: "DaemonSet",
            level: LOGS,
        })
        .collect();
    for at in 0_usize..12 {
        let letter = ["b", "c", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p"][at];
        let (from, to) = match at {
            0 => (0, 100),
            1 => (20, 200),
            2 => (101, STEPS),
            _ => (0, STEPS),
        };
        let level = 200 + i64::try_from(at).unwrap() * 20;
        all.push(Was {
            name: format!("web-7d9c8b6f5-x2x4{letter}"),
            node: at % NODES,
            from,
            to,
            owner: "ReplicaSet",
            level,
        });
    }
    all.push(Was { name: "db-0".into(), node: 1, from: 0, to: STEPS, owner: "StatefulSet", level: 500 });
    all.push(Was {
        name: "nightly-28391230-x2x4z".into(),
        node: 2,
        from: 50,
        to: 60,
        owner: "Job",
        level: 900,
    });
    all
}

/// The cluster of these pods, and how to reach it.
struct Here {
    folder: tempfile::TempDir,
    config: PathBuf,
    until: i64,
}

impl Here {
    async fn start() -> Self {
        let server = ApiServer::default();
        let client = Client::new(server.clone(), "shop");
        let listening = server.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let url = listening.url();
        tokio::spawn(listening.serve(std::future::pending()));
        let now = jiff::Timestamp::now().as_second();
        let until = now - now.rem_euclid(STEP);
        let nodes: Api<Node> = Api::all(client.clone());
        let has = json!({"cpu": CORES.to_string(), "memory": "64Gi", "pods": "110"});
        for at in 0..NODES {
            let status = json!({"capacity": has, "allocatable": has});
            let node = from_value(json!({"metadata": {"name": format!("n{at}")}, "status": status})).unwrap();
            nodes.create(&PostParams::default(), &node).await.unwrap();
        }
        let master = json!({"metadata": {"name": "master"}, "status": {"capacity": has, "allocatable": has},
            "spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}});
        nodes.create(&PostParams::default(), &from_value(master).unwrap()).await.unwrap();
        let namespace = from_value(json!({"metadata": {"name": "shop"}})).unwrap();
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        let api: Api<Pod> = Api::namespaced(client, "shop");
        let long_ago = jiff::Timestamp::from_second(until - 2 * STEPS * STEP).unwrap().to_string();
        for pod in pods().iter().filter(|pod| pod.is_there()) {
            let owner = json!({"apiVersion": "apps/v1", "kind": pod.owner, "name": "x", "uid": "u", "controller": true});
            let main = json!({"name": "main", "image": "i", "resources": {"requests": {"cpu": "300m"}}});
            let object = json!({"metadata": {"name": pod.name, "ownerReferences": [owner]},
                "spec": {"nodeName": format!("n{}", pod.node), "containers": [main]}});
            api.create(&PostParams::default(), &from_value(object).unwrap()).await.unwrap();
            let status = json!({"status": {"phase": "Running", "startTime": long_ago}});
            api.patch_status(&pod.name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": url}}],
            "users": [{"name": "me", "user": {}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        });
        std::fs::write(&config, text.to_string()).unwrap();
        Self { folder, config, until }
    }

    fn since(&self) -> i64 {
        self.until - STEPS * STEP
    }

    async fn replay(&self, prometheus: &str, more: &[&str]) -> Output {
        let until = jiff::Timestamp::from_second(self.until).unwrap().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        command.args([
            "replay",
            "--prometheus",
            prometheus,
            "--since",
            "1d",
            "--until",
            &until,
            "--kubeconfig",
        ]);
        command.arg(&self.config).args(more);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// What it says is wrong; nothing else, and it ends as it should.
    async fn told(&self, prometheus: &str, more: &[&str]) -> Vec<String> {
        let output = self.replay(prometheus, more).await;
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{told}");
        told.lines().map(|line| line.strip_prefix("error: ").unwrap_or(line).to_owned()).collect()
    }
}

/// Is it what these pods did, whoever told it?
fn check(answer: &Value, bridged: bool) {
    assert_eq!((&answer["pods"], &answer["days"]), (&json!(14), &json!(1)), "all but the daemons: {answer}");
    assert_eq!(answer["nodeCores"], json!(3.9), "4 cores less the 100m of the daemon");
    // From the seventh hour on: what all pods used, of what four nodes have.
    let counted = STEPS / 4..STEPS;
    let all = pods();
    let free: Vec<&Was> = all.iter().filter(|pod| pod.owner != "DaemonSet").collect();
    let used: i64 = counted
        .clone()
        .flat_map(|step| {
            free.iter().filter(move |pod| (pod.from..pod.to).contains(&step)).map(move |pod| pod.uses(step))
        })
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let want = used as f64 / (4 * (CORES * 1000 - LOGS) * (STEPS - STEPS / 4)) as f64;
    assert!(want > 0.2, "it is a day worth looking at: {want}");
    for policy in answer["policies"].as_array().unwrap() {
        let mean = &policy["mean"];
        assert_eq!((&mean["nodes"], &mean["podsPending"], &mean["pods"]), (&json!(4), &json!(0), &json!(14)));
        let found = mean["meanUse"].as_f64().unwrap();
        assert!((found - want).abs() < 0.005 * want, "{}: {found}, not {want}", policy["policy"]);
    }
    let notes = answer["notes"].to_string();
    assert!(notes.contains("4 pods stay with their nodes"), "{notes}");
    assert!(notes.contains("1 pods are gone, and none of their workload is left"), "the job: {notes}");
    assert!(notes.contains("1 nodes of the control plane"), "{notes}");
    assert_eq!(notes.contains("2 measurements were missing"), bridged, "{notes}");
}

/// What the Prometheus of the test leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Whole,
    Nothing,
    Unlabelled,
    /// Pods of another cluster.
    Others,
    HalfOfTheNodes,
    /// Two measurements of one pod.
    ShortHole,
    /// An hour of everybody.
    LongHole,
    /// Three hours, not a day.
    ShortPast,
    Percent,
    NoJson,
}

#[derive(Clone)]
struct Fake {
    mood: Arc<Mutex<Mood>>,
    since: i64,
    asked: Arc<Mutex<Vec<(i64, i64)>>>,
}

async fn answer(State(fake): State<Fake>, body: String) -> String {
    let form: HashMap<String, String> = body
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let number = |name: &str| form[name].parse::<i64>().unwrap();
    let (start, end, mood) = (number("start"), number("end"), *fake.mood.lock().unwrap());
    assert_eq!(number("step"), STEP);
    assert!(form["query"].contains("container_cpu_usage_seconds_total"), "{form:?}");
    fake.asked.lock().unwrap().push((start, end));
    if mood == Mood::NoJson {
        return "<html>a proxy</html>".to_owned();
    }
    let mut result = Vec::new();
    for pod in pods().iter().filter(|pod| mood != Mood::HalfOfTheNodes || pod.node < 2) {
        let mut values = Vec::new();
        for moment in (start..=end).step_by(300) {
            let step = (moment - fake.since) / STEP - 1;
            let missing = match mood {
                Mood::Nothing => true,
                Mood::ShortHole => pod.name == "db-0" && (70..72).contains(&step),
                Mood::LongHole => (70..82).contains(&step),
                Mood::ShortPast => step < STEPS - 36,
                _ => false,
            };
            if (pod.from..pod.to).contains(&step) && !missing {
                let milli = pod.uses(step);
                let text = if mood == Mood::Percent {
                    milli.to_string()
                } else {
                    format!("{}.{:03}", milli / 1000, milli % 1000)
                };
                values.push(json!([moment, text]));
            }
        }
        let namespace = if mood == Mood::Others { "elsewhere" } else { "shop" };
        let metric = if mood == Mood::Unlabelled {
            json!({})
        } else {
            json!({"namespace": namespace, "pod": pod.name})
        };
        if !values.is_empty() {
            result.push(json!({"metric": metric, "values": values}));
        }
    }
    json!({"status": "success", "data": {"resultType": "matrix", "result": result}}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cluster_used_is_replayed_and_what_is_missing_is_told() {
    let here = Here::start().await;
    let mood = Arc::new(Mutex::new(Mood::Whole));
    let asked = Arc::<Mutex<Vec<(i64, i64)>>>::default();
    let fake = Fake { mood: mood.clone(), since: here.since(), asked: asked.clone() };
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/api/v1/query_range", post(answer)).with_state(fake);
    tokio::spawn(async move { axum::serve(listener, router).await });

    let json = ["-o", "json", "--policy", "requests,line,line+rebalance"];
    let output = here.replay(&url, &json).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let first: Value = serde_json::from_slice(&output.stdout).unwrap();
    check(&first, false);
    // In pieces that follow each other, from the first five minutes to the last.
    let pieces = std::mem::take(&mut *asked.lock().unwrap());
    assert!(pieces.len() > 2, "{pieces:?}");
    assert_eq!((pieces[0].0, pieces[pieces.len() - 1].1), (here.since() + STEP, here.until));
    assert!(pieces.windows(2).all(|two| two[1].0 == two[0].1 + STEP), "{pieces:?}");

    *mood.lock().unwrap() = Mood::ShortHole;
    let output = here.replay(&url, &json).await;
    check(&serde_json::from_slice(&output.stdout).unwrap(), true);
    let table = here.replay(&url, &["--policy", "requests"]).await;
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains(": 14 pods in 1 days on 4 nodes of 3.9 cores, used by "), "{table}");
    assert!(table.contains("the first 6 h left out; as it was recorded."), "{table}");
    let few =
        here.replay(&url, &["--policy", "requests,oracle", "--nodes", "fewest", "--node-cores", "8"]).await;
    assert!(String::from_utf8_lossy(&few.stdout).contains("as few nodes of 8 cores"), "{few:?}");

    let hole = jiff::Timestamp::from_second(here.since() + 70 * STEP).unwrap();
    for (left_out, want) in [
        (Mood::Nothing, vec!["nothing was measured; asked for sum by (namespace, pod)".to_owned()]),
        (Mood::Unlabelled, vec!["none with the labels namespace and pod".to_owned()]),
        (
            Mood::Others,
            vec!["none of the 15 pods that run here is among the 18 that were measured".to_owned()],
        ),
        (
            Mood::HalfOfTheNodes,
            vec!["2 of 4 nodes with pods are not measured: n2, n3; are their kubelets scraped?".to_owned()],
        ),
        (Mood::LongHole, vec![format!("from {hole} to ")]),
        (Mood::ShortPast, vec!["nothing was measured before ".to_owned()]),
        (
            Mood::Percent,
            vec!["used more than the largest node has, 4000m: is the query in cores?".to_owned()],
        ),
        (
            Mood::NoJson,
            vec![
                "not an answer of Prometheus: expected value at line 1 column 1: <html>a proxy</html>"
                    .to_owned(),
            ],
        ),
    ] {
        *mood.lock().unwrap() = left_out;
        let told = here.told(&url, &[]).await;
        assert_eq!(told.len(), want.len(), "{left_out:?}: {told:?}");
        assert!(told.iter().zip(&want).all(|(told, want)| told.contains(want)), "{left_out:?}: {told:?}");
    }

    // Nobody there, and nobody there either: both are told.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    std::fs::write(
        &here.config,
        std::fs::read_to_string(&here.config).unwrap().replace("http://127.0.0.1:", "http://127.0.0.1:1"),
    )
    .unwrap();
    let told = here.told(&format!("http://{free}"), &[]).await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("cluster: ") && told[1].starts_with("prometheus: "), "{told:?}");
    let told = here.told("prometheus:9090", &[]).await.join("\n");
    assert!(told.contains("is neither http nor https") || told.contains("has no scheme"), "{told}");
}

/// A Prometheus with what these pods used, scraped every minute, in its blocks.
struct Real {
    child: std::process::Child,
    url: String,
}

impl Real {
    fn start(folder: &Path, prometheus: &Path, promtool: &Path, until: i64) -> Self {
        let since = until - STEPS * STEP;
        let mut text = "# TYPE container_cpu_usage_seconds counter\n".to_owned();
        for pod in pods() {
            for (container, part) in [("main", 3), ("side", 1)] {
                // What the two use is the pod's, three to one; what the pod as a whole has must not count again.
                let mut milliseconds = 5_000_000;
                for minute in pod.from * 5..=pod.to * 5 {
                    let second = since + minute * 60;
                    let _ = writeln!(
                        text,
                        "container_cpu_usage_seconds_total{{namespace=\"shop\",pod=\"{}\",container=\"{container}\"}} {}.{:03} {second}",
                        pod.name,
                        milliseconds / 1000,
                        milliseconds % 1000
                    );
                    milliseconds += pod.uses(minute / 5) * 60 * part / 4;
                }
            }
            let _ = writeln!(
                text,
                "container_cpu_usage_seconds_total{{namespace=\"shop\",pod=\"{}\",container=\"\"}} 1 {since}",
                pod.name
            );
        }
        text += "# EOF\n";
        std::fs::write(folder.join("day.om"), text).unwrap();
        let filled = Command::new(promtool)
            .current_dir(folder)
            .args(["tsdb", "create-blocks-from", "openmetrics", "day.om", "data"])
            .output()
            .unwrap();
        assert!(filled.status.success(), "{}", String::from_utf8_lossy(&filled.stderr));
        std::fs::write(folder.join("prometheus.yml"), "global: {}\n").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(prometheus)
            .current_dir(folder)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"])
            .args(["--storage.tsdb.retention.time=60d"])
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_mins(2), "Prometheus does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { child, url: format!("http://127.0.0.1:{port}") }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_of_a_real_prometheus_is_replayed() {
    let (Some(prometheus), Some(promtool)) = (find_or_skip("prometheus"), find_or_skip("promtool")) else {
        return;
    };
    let here = Here::start().await;
    let (folder, until) = (here.folder.path().to_owned(), here.until);
    let real = tokio::task::spawn_blocking(move || Real::start(&folder, &prometheus, &promtool, until))
        .await
        .unwrap();
    let output = loop {
        let output =
            here.replay(&real.url, &["-o", "json", "--policy", "requests,line,line+rebalance"]).await;
        // It listens before it answers.
        if !String::from_utf8_lossy(&output.stderr).contains("answered 503") {
            break output;
        }
    };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    check(&serde_json::from_slice(&output.stdout).unwrap(), false);
    // What it does not have is told here as well.
    let told = here
        .told(&real.url, &["--prometheus-query", "sum by (namespace, pod) (rate(other_total[5m]))"])
        .await;
    assert!(told.len() == 1 && told[0].contains("nothing was measured; asked for sum by"), "{told:?}");
    let told = here.told(&real.url, &["--prometheus-query", "sum by ("]).await;
    assert!(told.len() == 1 && told[0].contains("the query is refused: "), "{told:?}");
}

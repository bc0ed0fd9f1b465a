//! Which settings hold while the scheduler runs? Those of its file as it is now. On the in-memory API server, which keeps
//! bindings waiting.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use http::Request;
use kube::Client;
use kube::client::Body;
use loadline_api::json::Tree;
use loadline_api::scheduler::{Configuration, read};
use loadline_apiserver::ApiServer;
use loadline_services::Ctx;
use loadline_services::cluster::resource::{NODES, PODS};
use loadline_services::cluster::{Access, Connection, Writer};
use loadline_services::reload::Source;
use loadline_services::scheduler::{self, Options};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Time passes only while nothing else does, and files are read again every five seconds.
const AFTER_A_READ: Duration = Duration::from_secs(6);

fn parse(text: &str) -> Result<Configuration, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    read(&Tree::from(&document)).map(|(read, _)| read).map_err(|problems| format!("{problems:?}"))
}

fn write(file: &Path, parallel_writes: &Value) {
    let document = json!({
        "apiVersion": "loadline.dev/v1alpha1", "kind": "SchedulerConfiguration",
        "parallelWrites": parallel_writes, "profiles": [{"schedulerName": "loadline", "loadAware": false}],
    });
    std::fs::write(file, document.to_string()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn how_many_writes_are_under_way_at_a_time_follows_the_file() {
    let server = ApiServer::default();
    let writer = Writer::new(Connection::new(Client::new(server.clone(), "default")), "test");
    let has = json!({"cpu": "64", "memory": "256Gi", "pods": "100"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": {"capacity": has, "allocatable": has}});
    writer.create(NODES, "", &node).await.unwrap();
    for i in 0..30 {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{i:02}")},
            "spec": {"schedulerName": "loadline", "containers": [{"name": "c", "image": "i"}]}});
        writer.create(PODS, "default", &pod).await.unwrap();
    }
    let (held, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (count, open) = (held.clone(), gate.clone());
    let slow = tower::service_fn(move |request: Request<Body>| {
        let (server, count, open) = (server.clone(), count.clone(), open.clone());
        async move {
            if request.uri().path().ends_with("/binding") {
                count.fetch_add(1, Ordering::SeqCst);
                open.acquire().await.unwrap().forget();
                count.fetch_sub(1, Ordering::SeqCst);
            }
            server.oneshot(request).await
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scheduler.json");
    write(&file, &json!(2));
    let ctx = Ctx::new("test", CancellationToken::new());
    let configuration = Source::file(file.clone(), parse);
    let access = Access::Client(Client::new(slow, "default"));
    let options = Options { configuration, ..Options::new(access) };
    let status = options.status.clone();
    let running = tokio::spawn(scheduler::run(ctx.clone(), options));

    // All but the first two are answered each time: a write is given up after a quarter of a minute.
    let table = [
        (json!(2), 2, 2, "as it was when it began"),
        (json!(5), 5, 5, "more at once, though no answer has come"),
        (json!("many"), 5, 5, "what cannot be used changes nothing"),
        (json!(1), 5, 1, "fewer: what is under way is waited for, and only one follows"),
        (json!(1), 1, 1, "and it stays so"),
    ];
    for (writes, before, after, why) in table {
        write(&file, &writes);
        tokio::time::sleep(AFTER_A_READ).await;
        assert_eq!(held.load(Ordering::SeqCst), before, "{why}");
        if before > 2 {
            gate.add_permits(before);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(held.load(Ordering::SeqCst), after, "{why}");
    }
    assert_eq!(status.problem(), None, "what was wrong is mended");
    gate.add_permits(Semaphore::MAX_PERMITS / 2);
    ctx.stop.cancel();
    running.await.unwrap().unwrap();
}

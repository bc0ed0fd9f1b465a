//! kubectl's typed commands write protobuf; real kubectl gets through with it, and reads our JSON answers.

use loadline_apiserver::ApiServer;
use loadline_testkit::parts;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio_util::sync::CancellationToken;

/// One server and a kubectl that knows it.
struct Place {
    kubectl: PathBuf,
    url: String,
    folder: tempfile::TempDir,
}

impl Place {
    /// Runs kubectl to its end; it must succeed. What it says of its requests comes second.
    fn kubectl(&self, args: &str) -> (String, String) {
        let done = Command::new(&self.kubectl)
            .args(["--server", &self.url, "--v=8"])
            .args(args.split(' '))
            .env("KUBECONFIG", Path::new("/dev/null"))
            .env("KUBECACHEDIR", self.folder.path())
            .output()
            .expect("kubectl starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("kubectl prints text");
        let (out, log) = (text(done.stdout), text(done.stderr));
        assert!(done.status.success(), "kubectl {args}\n{out}\n{log}");
        (out, log)
    }

    fn get(&self, what: &str) -> Value {
        serde_json::from_str(&self.kubectl(&format!("get {what} -o json")).0).expect("JSON")
    }
}

/// Serves until `visit` is through, which runs on a thread of its own.
async fn serve(visit: impl FnOnce(Place) + Send + 'static) {
    let Some(kubectl) = parts::find_or_skip("kubectl") else { return };
    let listening = ApiServer::default().listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a free port");
    let place = Place { kubectl, url: listening.url(), folder: tempfile::tempdir().expect("a folder") };
    let stop = CancellationToken::new();
    let done = tokio::spawn(listening.serve(stop.clone().cancelled_owned()));
    let visited = tokio::task::spawn_blocking(move || visit(place)).await;
    stop.cancel();
    done.await.expect("no panic").expect("served to the end");
    visited.expect("the visit went well");
}

#[tokio::test]
async fn kubectl_creates_objects_in_protobuf() {
    serve(|place| {
        let mut typed = 0;
        for (args, what, pointer, want) in [
            ("create namespace n", "namespace n", "/status/phase", json!("Active")),
            (
                "create deployment d --image=i --replicas=3 --port=80",
                "deployment d",
                "/spec/template/spec/containers/0/ports/0/containerPort",
                json!(80),
            ),
            (
                "create configmap c --from-literal=a=b --from-literal=x=",
                "configmap c",
                "/data",
                json!({"a": "b", "x": ""}),
            ),
            ("create secret generic s --from-literal=a=b", "secret s", "/data", json!({"a": "Yg=="})),
            (
                "run p --image=i --labels=k=v --env=A=1",
                "pod p",
                "/spec/containers/0/env",
                json!([{"name": "A", "value": "1"}]),
            ),
            (
                "create poddisruptionbudget b --selector=k=v --min-available=50%",
                "pdb b",
                "/spec/minAvailable",
                json!("50%"),
            ),
            (
                "create service clusterip svc --tcp=80:8080",
                "service svc",
                "/spec/ports/0/targetPort",
                json!(8080),
            ),
            (
                "create job j --image=i -- sleep 1",
                "job j",
                "/spec/template/spec/restartPolicy",
                json!("Never"),
            ),
            (
                "create clusterrole r --verb=get --resource=pods",
                "clusterrole r",
                "/rules",
                json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
            ),
            ("scale deployment d --replicas=0", "deployment d", "/spec/replicas", json!(0)),
        ] {
            let (_, log) = place.kubectl(args);
            typed += usize::from(log.contains("Content-Type: application/vnd.kubernetes.protobuf"));
            let found = place.get(what);
            assert_eq!(found.pointer(pointer), Some(&want), "kubectl {args}: {found}");
        }
        assert!(typed >= 5, "only {typed} commands wrote protobuf: this test shows nothing");
    })
    .await;
}

//! A real one-node cluster with everything installed, to look at: `cargo xtask real`. Ends, and takes everything with it, when its
//! standard input does.

use loadline_testkit::install::{self, NAMESPACE};
use loadline_testkit::{MetricsServer, NodeRoot, RealNode};
use serde_json::json;
use std::io::Read as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = std::env::args().nth(1).ok_or("expected the program to install")?;
    eprintln!("starting etcd, kube-apiserver, kube-controller-manager and kube-scheduler");
    let plane = install::setup().start()?;
    eprintln!("starting containerd and kubelet");
    let node = RealNode::start_joined(&plane)?;
    let root = NodeRoot::start(&node, 2)?;
    eprintln!("starting metrics-server");
    let _metrics = MetricsServer::start(&plane, &node)?;
    eprintln!("making the image");
    install::import(&node, Path::new(&program))?;
    let state = plane.folder().join("agent");
    let mut values = install::values(&plane, &node, &root, &state);
    for component in ["rebalance", "dashboard"] {
        values[component] = json!({"enabled": true});
    }
    let file = plane.folder().join("values.json");
    std::fs::write(&file, values.to_string())?;
    let mut helm = install::helm(&plane)?;
    helm.args(["install", "loadline"]).arg(install::chart()).args(["-n", NAMESPACE, "--create-namespace"]);
    helm.arg("--values").arg(&file).args(["--wait", "--timeout", "4m"]);
    eprintln!(
        "helm install loadline deploy/chart -n {NAMESPACE} --create-namespace --values {}",
        file.display()
    );
    if !helm.status()?.success() {
        return Err("helm did not install it".into());
    }
    println!("\nA real node with Loadline on it. In another terminal:");
    println!("  export KUBECONFIG={}", plane.kubeconfig().display());
    println!("  kubectl -n {NAMESPACE} get pods");
    println!("  kubectl get node {} -o yaml | grep usage", node.name());
    println!(
        "  helm -n {NAMESPACE} upgrade loadline deploy/chart --reset-then-reuse-values --set agent.act=true"
    );
    println!(
        "(kubectl and helm are in $(cargo xtask control-plane --node --dir).) Ctrl-C ends it, and nothing stays."
    );
    let mut nothing = [0];
    while let Ok(1..) = std::io::stdin().read(&mut nothing) {}
    eprintln!("ending");
    Ok(())
}

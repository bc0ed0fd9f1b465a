//! A tour with real kubectl, against `loadline up` and against a real control plane with the same simulated
//! nodes and binder. Every step must end with the same exit code and print the same, after names, ages,
//! addresses and other accidents are masked. Steps that are meant to differ are listed, with the reason, in
//! `tour/differences.txt`.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

#[path = "common/mod.rs"]
mod common;
#[path = "tour/mask.rs"]
mod mask;
#[path = "tour/steps.rs"]
mod steps;

use loadline_sim::node::Sink;
use loadline_sim::{Options, World};
use loadline_testkit::{ControlPlane, WORKLOADS, parts};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use steps::{STEPS, Step};

const NODES: &str = "6";
const DIFFERENCES: &str = include_str!("tour/differences.txt");

/// What a step did.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    text: String,
}

struct Place<'a> {
    kubectl: &'a Path,
    kubeconfig: PathBuf,
    folder: PathBuf,
}

impl Place<'_> {
    fn tour(&self) -> Vec<Outcome> {
        STEPS.iter().map(|step| self.step(step)).collect()
    }

    fn step(&self, step: &Step) -> Outcome {
        let mut kubectl = common::kubectl(self.kubectl, &self.kubeconfig, &self.folder);
        kubectl.args(step.args.split_whitespace());
        let (code, text) = run(&mut kubectl, step.input);
        Outcome { code, text: mask::apply(step.view, &text) }
    }
}

fn run(command: &mut Command, input: &str) -> (Option<i32>, String) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code(), text.concat())
}

/// The tour against the real control plane, with our nodes and binder as its clients.
fn real(kubectl: &Path, plane: &ControlPlane) -> Vec<Outcome> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let options = Options { nodes: NODES.parse().unwrap(), controllers: false, ..Options::default() };
    let world = runtime.block_on(async {
        let client = common::client(&plane.kubeconfig()).await;
        World::start(client, &options, Sink::none()).await.unwrap()
    });
    let there = Place { kubectl, kubeconfig: plane.kubeconfig(), folder: plane.folder().to_owned() };
    let outcomes = there.tour();
    runtime.block_on(world.stop());
    outcomes
}

fn ours(kubectl: &Path) -> Vec<Outcome> {
    // What is written on nodes is not the same where nobody writes.
    let up = common::Up::start(&["--nodes", NODES, "--for", "30m", "--seed", "1", "--without", "annotator"]);
    let place = Place { kubectl, kubeconfig: up.kubeconfig(), folder: up.folder().to_owned() };
    place.tour()
}

/// Reasons by the name of the step.
fn differences() -> BTreeMap<&'static str, &'static str> {
    let lines = DIFFERENCES.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once(": ").expect("every line is `step: reason`")).collect()
}

#[test]
fn kubectl_sees_the_same_on_both_servers() {
    let Some(kubectl) = parts::find_or_skip("kubectl") else { return };
    let Some(plane) = ControlPlane::setup().controllers(WORKLOADS).start_or_skip() else { return };
    let (ours, real) = (ours(&kubectl), real(&kubectl, &plane));
    let intended = differences();
    let mut wrong = Vec::new();
    for ((step, ours), real) in STEPS.iter().zip(&ours).zip(&real) {
        let differs = ours != real;
        let listed = intended.contains_key(step.name);
        if differs && !listed {
            let show = |o: &Outcome| format!("exit {:?}\n{}", o.code, o.text);
            let (real, ours) = (show(real), show(ours));
            wrong.push(format!("{}: kubectl {}\n--- real: {real}\n--- ours: {ours}", step.name, step.args));
        } else if listed && !differs {
            wrong.push(format!("{} is listed as a difference and is none", step.name));
        }
    }
    let unknown = intended.keys().filter(|name| STEPS.iter().all(|step| step.name != **name));
    wrong.extend(unknown.map(|name| format!("{name} is listed as a difference and is no step")));
    assert!(wrong.is_empty(), "\n=== {}", wrong.join("\n=== "));
    println!("{} steps the same, {} intended differences", STEPS.len() - intended.len(), intended.len());
}

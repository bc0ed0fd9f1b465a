//! How fast is it? One row per benchmark; the figures they print belong in `docs/benchmarks.md`.

use crate::{peers, shell};
use anyhow::{Context as _, Result};
use std::ffi::OsStr;

struct Bench {
    name: &'static str,
    about: &'static str,
    cargo: &'static [&'static str],
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "apiserver",
        about: "memory and writes per second of the in-memory API server at full size",
        cargo: &["run", "--release", "--package", "loadline-apiserver", "--example", "scale"],
    },
    Bench {
        name: "decode",
        about: "microseconds from the text of a watched pod to facts",
        cargo: &["bench", "--package", "loadline-api", "--bench", "decode"],
    },
    Bench {
        name: "schedule",
        about: "decisions per second at 100 to 20 000 nodes",
        cargo: &["run", "--release", "--package", "loadline-core", "--example", "schedule"],
    },
    Bench {
        name: "ledger",
        about: "events per second and memory of the ledger at 100 to 20 000 nodes",
        cargo: &["bench", "--package", "loadline-core", "--bench", "ledger"],
    },
    Bench {
        name: "estimate",
        about: "microseconds per estimate and event at 100 to 20 000 nodes",
        cargo: &["bench", "--package", "loadline-core", "--bench", "estimate"],
    },
    Bench {
        name: "divide",
        about: "microseconds to divide one binding over 100 to 20 000 clusters",
        cargo: &["bench", "--package", "loadline-core", "--bench", "divide"],
    },
    Bench {
        name: "placement",
        about: "milliseconds to place all of a fleet, and after one change, at 100 to 10 000 clusters",
        cargo: &["bench", "--package", "loadline-core", "--bench", "placement"],
    },
    Bench {
        name: "preempt",
        about: "microseconds to find out who has to go for a pod, or that nobody's going helps, at 100 to 20 000 nodes",
        cargo: &["bench", "--package", "loadline-core", "--bench", "preempt"],
    },
    Bench {
        name: "protect",
        about: "microseconds to plan one cycle of a node with 30 to 1 000 pods",
        cargo: &["bench", "--package", "loadline-core", "--bench", "protect"],
    },
    Bench {
        name: "agent",
        about: "CPU time and memory of the agent on a node with 50 to 1 000 pods, beside reading the same files alone (needs root)",
        cargo: &["bench", "--package", "loadline", "--bench", "agent"],
    },
    Bench {
        name: "instructions",
        about: "instructions per decision and event (needs valgrind and gungraun-runner)",
        cargo: &["bench", "--package", "loadline-core", "--bench", "instructions"],
    },
    Bench {
        name: "estimator",
        about: "answers per second, latency and memory over gRPC, beside Karmada's estimator",
        cargo: &["bench", "--package", "loadline", "--bench", "estimator"],
    },
    Bench {
        name: "extender",
        about: "how long kube-scheduler waits for the extender's answers at 5 000 nodes",
        cargo: &["bench", "--package", "loadline", "--bench", "extender"],
    },
    Bench {
        name: "scheduler",
        about: "pods a second and memory on a real kube-apiserver, beside kube-scheduler, a client that only binds, and extenders",
        cargo: &["bench", "--package", "loadline", "--bench", "scheduler"],
    },
    Bench {
        name: "fleet",
        about: "placements and bindings a second on a real kube-apiserver, and how soon a change is published, beside OCM's and Karmada's",
        cargo: &["bench", "--package", "loadline", "--bench", "fleet"],
    },
    Bench {
        name: "load",
        about: "CPU time and memory of the annotator at 5 000 nodes and the recommender at 10 000 workloads",
        cargo: &["bench", "--package", "loadline", "--bench", "load"],
    },
    Bench {
        name: "replay",
        about: "seconds to replay a week of 1 000 nodes and 20 000 pods, for one policy after another",
        cargo: &["run", "--release", "--package", "loadline-replay", "--example", "week"],
    },
    Bench {
        name: "input",
        about: "seconds from text to a decision, by our YAML reader and by the complete parser",
        cargo: &["bench", "--package", "loadline-manifests", "--bench", "input"],
    },
    Bench {
        name: "what-if",
        about: "seconds from files of 5 000 nodes and 20 000 pods to an answer",
        cargo: &["bench", "--package", "loadline", "--bench", "what_if"],
    },
];

/// All peers in one run, by several of the above.
const PEERS: &str = "peers";

/// Their names, for the command line.
pub fn names() -> Vec<&'static str> {
    BENCHES.iter().map(|bench| bench.name).chain([PEERS]).collect()
}

/// Runs the one called `name`, or all; `args` go to the benchmark itself.
pub fn run(name: Option<&str>, args: &[String]) -> Result<()> {
    match name {
        Some(PEERS) => peers::run(args),
        Some(name) => one(name, args, &[]),
        None => BENCHES.iter().try_for_each(|bench| one(bench.name, args, &[])),
    }
}

/// Runs one of them with these variables.
pub fn one(name: &str, args: &[String], variables: &[(&str, &OsStr)]) -> Result<()> {
    let bench = BENCHES.iter().find(|bench| bench.name == name);
    let bench = bench.with_context(|| format!("there is no benchmark {name}"))?;
    eprintln!("{}: {}", bench.name, bench.about);
    let mut cargo = shell::cargo(bench.cargo);
    cargo.envs(variables.iter().copied());
    if !args.is_empty() {
        cargo.arg("--").args(args);
    }
    shell::run(&mut cargo)
}

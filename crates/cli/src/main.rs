//! The one binary of Loadline: wiring only. What each command does is in the module of its name.

mod agent;
mod annotator;
mod apiserver;
mod args;
mod cleanup;
mod component;
mod config;
mod dashboard;
mod debug;
mod doctor;
mod estimator;
mod explain;
mod fleet;
mod kubeconfig;
mod leader_election;
mod log;
mod out;
mod plugin;
mod policy;
mod prometheus;
mod rebalance;
mod recommender;
mod reference;
mod replay;
mod scheduler;
mod signal;
mod table;
mod up;
mod version;
mod what_if;

use args::{Command, Config, Loadline, Policy};
use clap::CommandFactory;
use loadline_manifests::Problems;
use std::process::ExitCode;

/// Bad input or usage, as documented.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let args = Loadline::read();
    let is_service = matches!(
        args.command,
        Command::Agent(_)
            | Command::Dashboard(_)
            | Command::Estimator(_)
            | Command::Fleet(_)
            | Command::Scheduler(_)
            | Command::Annotator(_)
            | Command::Rebalance(_)
            | Command::Recommender(_)
    );
    log::start(&args.log, is_service);
    match run(args.command) {
        Ok(code) => code,
        Err(error) => {
            if let Some(problems) = error.downcast_ref::<Problems>() {
                eprintln!("{problems}");
            } else {
                eprintln!("error: {error:#}");
            }
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Does it, and says how that ended where there is more to say than that it did.
fn run(command: Command) -> anyhow::Result<ExitCode> {
    let done = match command {
        Command::Up(args) => block_on(up::run(&args)),
        Command::Apiserver(args) => block_on(apiserver::run(&args)),
        Command::Agent(args) => block_on_one(agent::run(&args)),
        Command::Annotator(args) => block_on_one(annotator::run(&args)),
        Command::Rebalance(args) => block_on_one(rebalance::run(&args)),
        Command::Recommender(args) => block_on_one(recommender::run(&args)),
        Command::Scheduler(args) => block_on_one(scheduler::run(&args)),
        Command::Estimator(args) => block_on(estimator::run(&args)),
        Command::Fleet(args) => block_on_one(fleet::run(&args)),
        Command::Dashboard(args) => block_on_one(dashboard::run(&args)),
        Command::Explain(explain::args::Explain::Pod(args)) => block_on(explain::pod(&args)),
        Command::Explain(explain::args::Explain::Node(args)) => block_on_one(explain::node::run(&args)),
        Command::Explain(explain::args::Explain::Binding(args)) => block_on_one(explain::binding::run(&args)),
        Command::Explain(explain::args::Explain::Placement(args)) => {
            block_on_one(what_if::place::explain(&args))
        }
        Command::Explain(explain::args::Explain::Estimate(args)) => {
            block_on_one(explain::estimate::run(&args))
        }
        Command::Doctor(args) => return block_on(doctor::run(&args)),
        Command::WhatIf(engine) => what_if::run(&engine),
        Command::Replay(args) => replay::run(&args),
        Command::Config { command: Config::Print(args) } => config::print(&args),
        Command::Policy { command: Policy::Check(args) } => return policy::check(&args),
        Command::Cleanup(args) => block_on_one(cleanup::run(&args)),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Loadline::command(), "loadline", &mut script);
            out::print(&String::from_utf8_lossy(&script));
            Ok(())
        }
        Command::Version => {
            out::line(&version::text());
            Ok(())
        }
        Command::Reference { folder } => block_on_one(reference::run(&folder)),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// The same on one thread, for those with one task that does most of it: nothing has to be handed from thread to thread,
/// which takes long where other programs want the cores, and memory that threads set aside for themselves is saved.
fn block_on_one<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Runtime::new()?.block_on(work)
}

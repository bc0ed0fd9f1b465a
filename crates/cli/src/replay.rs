//! `loadline replay`: what would have happened. Series in, a comparison of policies out.

pub mod args;
mod page;
mod progress;
mod recorded;
mod table;

use crate::out;
use anyhow::{Context, Result, bail};
use args::{Nodes, Replay, UnitName};
use loadline_replay::compare::{self, Comparison};
use loadline_replay::fewest::Enough;
use loadline_replay::figures::Figures;
use loadline_replay::policy::{Moving, Policy};
use loadline_replay::run::Options;
use loadline_replay::trace::{self, Series, Unit};
use loadline_replay::world::{Plan, World};
use loadline_replay::{DAY, HOUR};
use serde::Serialize;
use std::path::Path;
use table::Said;

/// Replays, and tells what came of it.
///
/// # Errors
/// Bad input; a page that cannot be written.
pub fn run(args: &Replay) -> Result<()> {
    if args.budget.is_some() && !args.policies.iter().any(|policy| policy.moving == Moving::Rebalance) {
        bail!(
            "--budget: no policy moves pods by a plan; say +rebalance behind one, such as requests+rebalance"
        );
    }
    let input = match &args.recorded.prometheus {
        Some(target) => recorded::read(args, target)?,
        None => read(args)?,
    };
    let seeds: Vec<u64> = (0..u64::from(args.seeds)).map(|more| args.seed.wrapping_add(more)).collect();
    let comparison = Comparison {
        recorded: input.world.as_ref(),
        series: &input.series,
        policies: &args.policies,
        seeds: &seeds,
        plan: Plan {
            pods: args.pods as usize,
            days: args.days as usize,
            replicas: args.replicas as usize,
            error: args.request_error,
            seed: args.seed,
            ..Plan::default()
        },
        nodes: match (args.nodes, &input.world) {
            (Some(Nodes::Fixed(nodes)), _) => compare::Nodes::Fixed(nodes),
            (Some(Nodes::Fewest), _) => compare::Nodes::Fewest(Enough { over_full: args.violations }),
            (None, Some(_)) => compare::Nodes::Own,
            (None, None) => compare::Nodes::Density(args.density),
        },
        node_milli: milli(args.node_cores),
        options: Options { target: args.target, budget: args.budget, ..Options::default() },
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bar = progress::Bar::new(comparison.runs());
    let rows = comparison.rows(threads, |done| bar.tell(done));
    bar.end();
    let rows = rows?;
    let answer = Answer::new(input, args, &rows);
    if let Some(path) = &args.html {
        let page = page::render(&answer, &rows);
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    out::answer(&answer, args.output)
}

#[expect(clippy::cast_possible_truncation, reason = "at most a hundred thousand cores")]
fn milli(cores: f64) -> i64 {
    (cores * 1000.0).round() as i64
}

/// What is replayed.
struct Input {
    /// What it is called.
    name: String,
    /// What worlds are drawn from,
    series: Vec<Series>,
    /// or one that is there.
    world: Option<World>,
    /// What a reader should know of it.
    notes: Vec<String>,
}

impl Input {
    fn drawn(name: String, series: Vec<Series>) -> Self {
        Self { name, series, world: None, notes: Vec::new() }
    }
}

/// Series of files, or those that are built in.
fn read(args: &Replay) -> Result<Input> {
    if args.files.is_empty() {
        return Ok(Input::drawn(args.data.name.to_owned(), args.data.series()));
    }
    let (mut series, mut problems, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for path in &args.files {
        let shown = path.display().to_string();
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let unit = match args.unit {
            Some(UnitName::Percent) => Unit::Percent(args.machine_cores),
            Some(UnitName::Cores) => Unit::Cores,
            Some(UnitName::Millicores) => Unit::Millicores,
            None => Unit::guess(&file, args.machine_cores),
        };
        match bytes(path).map(|bytes| trace::read(&shown, &bytes, unit)) {
            Ok(Ok(more)) => {
                notes.extend(trace::doubt(&more, unit).map(|doubt| format!("{shown}: {doubt}")));
                series.extend(more);
            }
            Ok(Err(found)) => problems.extend(found.iter().map(ToString::to_string)),
            Err(error) => problems.push(format!("{shown}: {error}")),
        }
    }
    told(&problems)?;
    let names: Vec<_> = args.files.iter().map(|path| path.display().to_string()).collect();
    Ok(Input { notes, ..Input::drawn(names.join(", "), series) })
}

/// Tells all problems, if there are any.
fn told(problems: &[String]) -> Result<()> {
    let Some((last, others)) = problems.split_last() else { return Ok(()) };
    for problem in others {
        eprintln!("error: {problem}");
    }
    bail!("{last}")
}

fn bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes)?;
        return Ok(bytes);
    }
    std::fs::read(path)
}

/// What there is to say.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    pub data: String,
    pub pods: usize,
    #[serde(serialize_with = "days")]
    pub days: f64,
    /// The smallest node has so many cores,
    pub node_cores: f64,
    /// and the largest so many, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_node_cores: Option<f64>,
    /// Hours at the beginning that are not counted.
    #[serde(skip)]
    pub left_out: usize,
    /// Is it what was, not drawn?
    #[serde(skip)]
    pub is_recorded: bool,
    pub target: f64,
    /// With `--nodes fewest`: what is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violations: Option<f64>,
    pub seeds: Vec<u64>,
    pub policies: Vec<PolicyAnswer>,
    /// What a reader should know of the data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Without a fraction where there is none.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn days<S: serde::Serializer>(days: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few weeks")]
    if days.fract() == 0.0 { serializer.serialize_u64(*days as u64) } else { serializer.serialize_f64(*days) }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAnswer {
    pub policy: String,
    pub about: &'static str,
    /// Over all seeds; nothing if, in one of them, no number of nodes is enough.
    pub mean: Option<Figures>,
    /// With `--nodes fewest`: how much more the first policy would have to have, of what this one needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_gained: Option<f64>,
    /// One for each seed.
    pub runs: Vec<Option<Figures>>,
}

impl Answer {
    fn new(input: Input, args: &Replay, rows: &[compare::Row]) -> Self {
        let is_fewest = args.nodes == Some(Nodes::Fewest);
        let of = |policy: &Policy| {
            let runs: Vec<Option<Figures>> =
                rows.iter().filter(|row| row.policy == *policy).map(|row| row.figures.clone()).collect();
            let mean = compare::mean(runs.iter().map(Option::as_ref));
            let (policy, about) = (policy.to_string(), policy.placing.about());
            PolicyAnswer { policy, about, mean, capacity_gained: None, runs }
        };
        let mut policies: Vec<PolicyAnswer> = args.policies.iter().map(of).collect();
        let needed = |one: &PolicyAnswer| {
            one.runs.iter().map(|run| run.as_ref().map(|figures| figures.nodes)).sum::<Option<usize>>()
        };
        if let Some(first) = policies.first().filter(|_| is_fewest).and_then(needed) {
            for one in &mut policies {
                one.capacity_gained = needed(one).map(|nodes| ratio(first, nodes) - 1.0);
            }
        }
        let (world, own) = (input.world.as_ref(), input.world.as_ref().filter(|_| args.nodes.is_none()));
        let (least, most) = own.map_or((args.node_cores, args.node_cores), recorded::sizes);
        Self {
            pods: world.map_or(args.pods as usize, |world| world.pods.len()),
            days: world.map_or(f64::from(args.days), |world| ratio(world.steps, DAY)),
            node_cores: least,
            largest_node_cores: (most > least).then_some(most),
            left_out: world.map_or(24, |world| world.counted.start / HOUR),
            is_recorded: input.world.is_some(),
            target: args.target,
            violations: is_fewest.then_some(args.violations),
            seeds: (0..u64::from(args.seeds)).map(|more| args.seed.wrapping_add(more)).collect(),
            policies,
            data: input.name,
            notes: input.notes,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of nodes")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / (whole as f64).max(1.0)
}

impl out::Answer for Answer {
    const KIND: &'static str = "Replay";

    fn table(&self, detail: out::Detail) -> String {
        Said { answer: self, detail }.to_string()
    }

    fn document(&self) -> impl Serialize {
        self
    }
}

//! `loadline what-if estimate`: how many more would really fit?

use super::estimate_input::{self, Input, Unclear};
use super::estimate_result::{
    ComponentResult, EstimateResult, LoadResult, Most, NodeResult, Preempting, QuotaResult,
};
use super::world::{self, Build, News, World};
use super::{estimate_table, live, now, warn};
use crate::args::Estimate;
use crate::documents;
use crate::out::{self, Output, Refused};
use anyhow::Result;
use loadline_api::Context;
use loadline_api::workload::{Of, Question};
use loadline_core::cluster::{Cluster, Mark};
use loadline_core::estimate::{Answer, Ask, Assumed, Component, Given, Index, NodeAnswer, View};
use loadline_core::load::admit::Basis;
use loadline_core::load::estimate::nanocores;
use loadline_core::load::{Load, Metered};
use loadline_core::object::Key;
use loadline_core::quantity::Quantity;
use loadline_core::view::{NodeId, PodFacts};
use std::collections::BTreeMap;

/// Reads, counts and prints.
///
/// # Errors
/// Bad input, or a cluster that cannot be read.
pub fn run(args: &Estimate) -> Result<()> {
    let kinds = estimate_input::kinds();
    let (mut read, problems) = documents::scan(&args.input.files, &kinds);
    let files = read.objects.len();
    if args.from.live && problems.is_empty() {
        live::add(&args.from, args.load, &mut read, &kinds)?;
    }
    // What is asked must be clear and everything right: whatever is not is told at once.
    let input = estimate_input::split(&mut read, files);
    let mut index = Index::new();
    let mut tell = |news: News<'_>| match news {
        News::Node(facts) => index.set_node(facts),
        News::Pod(facts) => index.set_pod(facts),
        News::Controlled(workload, by) => index.controlled(workload.clone(), by.cloned()),
    };
    let world = world::build(read, now(args.input.now), &mut tell);
    let asked = ask(input, world, index, problems)?;
    let result = asked.answer(args)?;
    warn(&result.warnings);
    match args.output {
        Output::Table | Output::Wide => {
            out::print(&estimate_table::render(&result, args.output == Output::Wide));
            Ok(())
        }
        format => out::document(format, &result),
    }
}

/// Everything an answer is made from.
struct Asked {
    question: Question,
    assumed: Vec<Assumed>,
    index: Index,
    cluster: Cluster,
    /// How many pods have no node.
    waiting: usize,
    warnings: Vec<String>,
}

/// Puts together what was read, or says everything that is wrong.
fn ask(
    input: Result<Input, Unclear>,
    world: Result<World, Vec<documents::Problem>>,
    mut index: Index,
    problems: Vec<documents::Problem>,
) -> Result<Asked> {
    let mut build = Build { problems, ..Build::default() };
    let nothing = Context::new();
    let context = world.as_ref().map_or(&nothing, |world| &world.context);
    let read = input.as_ref().ok().map(|input| {
        input.quotas(&mut index, &mut build);
        (input.question(context, &mut build), input.assumed(context, &mut build))
    });
    let Build { mut problems, warnings } = build;
    match (world, read) {
        (Ok(mut world), Some((Some(question), assumed))) if problems.is_empty() => {
            world.warnings.extend(warnings);
            Ok(Asked {
                question,
                assumed,
                index,
                cluster: world.cluster,
                waiting: world.waiting.len(),
                warnings: world.warnings,
            })
        }
        (world, _) => {
            problems.extend(world.err().unwrap_or_default());
            let mut told: Vec<String> = documents::sorted(problems).iter().map(ToString::to_string).collect();
            match input {
                // It may be among what could not be read.
                Err(Unclear::None(_)) if !told.is_empty() => {}
                Err(unclear) => told.push(unclear.to_string()),
                Ok(_) => {}
            }
            Err(Refused::new(told).into())
        }
    }
}

impl Asked {
    fn answer(mut self, args: &Estimate) -> Result<EstimateResult> {
        self.count_waiting(args.pending);
        let load = args.load && !self.is_exempt();
        let heads = if load { self.prepare_load() } else { BTreeMap::new() };
        let Self { question, assumed, index, mut warnings, .. } = self;
        let view = index.publish();
        let given = Given {
            assumed: &assumed,
            pending: args.pending,
            load,
            preempting: args.preempting,
            ..Given::default()
        };
        if view.node_count() == 0 {
            warnings.push("there is no node in the input".to_owned());
        }
        let exempt = args.load && !load;
        if exempt {
            warnings.push("the settings exempt this workload from the load line".to_owned());
        }
        let (answer, mut result) = match &question.of {
            Of::Replicas(ask) => {
                let (answer, nodes) = (view.replicas(ask, &given)?, view.nodes(ask, &given)?);
                let mut result = result(&question, Most::Replicas(0), &answer, exempt);
                let under = |node: &NodeAnswer| under_load(node, ask, heads.get(&node.node).copied());
                if let Some(load) = &mut result.load {
                    load.nodes = if exempt {
                        nodes.iter().cloned().map(node_result).collect()
                    } else {
                        nodes.iter().filter_map(under).collect()
                    };
                }
                result.nodes = nodes.into_iter().map(node_result).collect();
                (answer, result)
            }
            Of::Sets(sets) => {
                let answer = view.sets(&question.namespace, sets, &given)?;
                let mut result = result(&question, Most::Sets(0), &answer, exempt);
                result.components = alone(&view, sets, &given)?;
                (answer, result)
            }
        };
        if args.preempting && answer.by_preempting.is_none() {
            warnings.push(no_preempting(&question));
        }
        if load && answer.by_load.is_none() {
            warnings.push("there is no node whose load is known, so the load line is not counted".to_owned());
        }
        result.warnings = warnings;
        Ok(result)
    }

    /// Pods without a node either count, or it is said that they do not.
    fn count_waiting(&mut self, count: bool) {
        let waiting = self.waiting;
        if waiting > 0 && !count {
            let pods = if waiting == 1 {
                "1 pod without a node is"
            } else {
                &format!("{waiting} pods without a node are")
            };
            let it = if waiting == 1 { "it" } else { "them" };
            self.warnings.push(format!("{pods} not counted (--pending counts {it})"));
        }
    }

    /// Do the settings let it through whatever the load?
    fn is_exempt(&mut self) -> bool {
        let key = Key::new(&*self.question.namespace, "");
        let pod = self.question.pod.clone().unwrap_or(PodFacts { key, ..PodFacts::default() });
        let pod = self.cluster.view(&pod);
        self.cluster.is_exempt(&pod)
    }

    /// Tells the index how much load each node takes, and the question how much a replica brings. How much each
    /// takes is also given back.
    fn prepare_load(&mut self) -> BTreeMap<String, Load> {
        let (_, rooms) = self.cluster.rooms(Mark::default());
        let mut heads = BTreeMap::new();
        for (name, room) in rooms {
            heads.insert(name.to_string(), room.head);
            self.index.set_room(&name, Some(room));
        }
        let ids: Vec<NodeId> = self.cluster.snapshot().nodes().map(|node| node.id).collect();
        let unmeasured = ids.iter().filter(|id| !self.is_measured(**id)).count();
        if unmeasured > 0 {
            self.warnings.push(format!(
                "the load of {unmeasured} of {} nodes was not measured; what their pods are expected to use stands in",
                ids.len()
            ));
        }
        if let (Of::Replicas(ask), Some(pod)) = (&mut self.question.of, &self.question.pod) {
            ask.load = Some(self.cluster.estimate(pod).load);
        }
        heads
    }

    /// Does every line of the node rest on a measurement?
    fn is_measured(&mut self, id: NodeId) -> bool {
        self.cluster.load(id).is_some_and(|load| {
            Metered::ALL.into_iter().all(|resource| {
                let line = load.lines.get(resource);
                line.target.is_none() || !matches!(line.basis, Basis::Estimates | Basis::Nothing)
            })
        })
    }
}

/// Why nothing can be said about evicting.
fn no_preempting(question: &Question) -> String {
    match &question.of {
        Of::Sets(_) => "evicting is not counted for sets of components".to_owned(),
        Of::Replicas(ask) if ask.priority_class.is_empty() => {
            "nothing is evicted for this workload, so evicting is not counted".to_owned()
        }
        Of::Replicas(ask) => format!(
            "nothing is evicted for pods of the PriorityClass {:?}, or it is not known, so evicting is not counted",
            ask.priority_class
        ),
    }
}

/// What each component would find if it came alone.
fn alone(view: &View, sets: &[Component], given: &Given<'_>) -> Result<Vec<ComponentResult>> {
    let given = Given { load: false, preempting: false, quotas: false, ..*given };
    let one = |component: &Component| -> Result<ComponentResult> {
        let ask: &Ask = &component.ask;
        Ok(ComponentResult {
            name: component.name.clone(),
            replicas: component.replicas,
            max_replicas: view.replicas(ask, &given)?.by_nodes,
            nodes: view.nodes(ask, &given)?.into_iter().map(node_result).collect(),
        })
    };
    sets.iter().map(one).collect()
}

fn node_result(answer: NodeAnswer) -> NodeResult {
    let NodeAnswer { node, replicas, limited_by, reason, .. } = answer;
    let detail = reason.filter(|_| replicas == 0);
    let limited_by = limited_by.filter(|_| detail.is_none());
    NodeResult { node, replicas, limited_by, reason: detail.as_ref().map(ToString::to_string), detail }
}

/// The same node under the load line.
fn under_load(answer: &NodeAnswer, ask: &Ask, head: Option<Load>) -> Option<NodeResult> {
    let replicas = answer.by_load?;
    let limited_by = if replicas == answer.replicas { answer.limited_by.clone() } else { tighter(ask, head) };
    Some(node_result(NodeAnswer { replicas, limited_by, ..answer.clone() }))
}

/// The metered resource that reaches its line first when replicas come.
fn tighter(ask: &Ask, head: Option<Load>) -> Option<String> {
    let asked = |resource: Metered| match (&ask.load, ask.requests.get(resource.name())) {
        (Some(load), _) => load.get(resource),
        (None, Some(amount)) if resource == Metered::Cpu => nanocores(amount),
        (None, amount) => amount.map_or(0, Quantity::value),
    };
    let times = |resource: Metered| Some((head?.get(resource).checked_div(asked(resource))?, resource));
    let (_, first) = Metered::ALL.into_iter().filter_map(times).min()?;
    Some(first.name().to_owned())
}

/// The answer without what nodes say.
fn result(question: &Question, unit: Most, answer: &Answer, exempt: bool) -> EstimateResult {
    let bound = answer.by_quota.as_ref();
    // What the nodes take, and which quota allows less.
    let held = |by_nodes: i32| match bound.filter(|bound| bound.allows < by_nodes) {
        Some(bound) => (unit.with(bound.allows), Some(bound.quota.clone())),
        None => (unit.with(by_nodes), None),
    };
    let (most, limited_by) = held(answer.by_nodes);
    let by_load = if exempt { Some(answer.by_nodes) } else { answer.by_load };
    EstimateResult {
        api_version: "loadline.dev/v1alpha1",
        kind: "EstimateResult",
        workload: question.target.to_string(),
        most,
        limited_by,
        quota: bound.map(|bound| QuotaResult {
            name: bound.quota.clone(),
            resource: bound.resource.clone(),
            most: unit.with(bound.allows),
        }),
        nodes: Vec::new(),
        components: Vec::new(),
        load: by_load.map(|by_load| {
            let (most, limited_by) = held(by_load);
            LoadResult { most, limited_by, nodes: Vec::new() }
        }),
        preempting: answer.by_preempting.map(|count| Preempting { most: held(count).0 }),
        warnings: Vec::new(),
    }
}

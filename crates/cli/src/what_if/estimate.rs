//! `loadline what-if estimate`: how many more would really fit?

pub mod result;
pub mod table;

use super::{lines, live, now, warn};
use crate::args::Estimate;
use crate::out::{self, Detail};
use anyhow::Result;
use loadline_api::workload::{Of, Question};
use loadline_core::cluster::{Cluster, Mark};
use loadline_core::estimate::{Answer, Ask, Component, Given, Index, NodeAnswer, View};
use loadline_core::load::admit::Basis;
use loadline_core::load::estimate::nanocores;
use loadline_core::load::{Load, Metered};
use loadline_core::object::Key;
use loadline_core::quantity::Quantity;
use loadline_core::view::{NodeId, PodFacts};
use loadline_manifests::{EstimateInput, Manifests};
use result::{ComponentResult, EstimateResult, LoadResult, Most, NodeResult, Preempting, QuotaResult};
use serde::Serialize;
use std::collections::BTreeMap;

/// Reads, counts and prints.
///
/// # Errors
/// Bad input, or a cluster that cannot be read.
pub fn run(args: &Estimate) -> Result<()> {
    let manifests = Manifests::gather(&args.input.files, EstimateInput::KINDS);
    let live = live::read(&args.from, args.load, &manifests)?;
    let input = EstimateInput::read(manifests, live, now(args.input.now))?;
    let answer = count(input, args)?;
    warn(&answer.warnings);
    out::answer(&answer, args.output)
}

impl out::Answer for EstimateResult {
    const KIND: &'static str = "EstimateResult";

    fn table(&self, detail: Detail) -> String {
        table::render(self, detail)
    }

    fn document(&self) -> impl Serialize {
        self
    }
}

/// What counts, and what is odd about it.
struct Counting<'a> {
    view: View,
    given: Given<'a>,
    /// How much load each node takes.
    heads: BTreeMap<String, Load>,
    /// Is the load line asked for, but not for this workload?
    exempt: bool,
    warnings: Vec<String>,
}

fn count(input: EstimateInput, args: &Estimate) -> Result<EstimateResult> {
    let EstimateInput { mut question, assumed, mut index, mut cluster, pending, warnings } = input;
    let mut warnings = lines(&warnings);
    if pending > 0 && !args.pending {
        warnings.push(not_counted(pending));
    }
    let exempt = args.load && is_exempt(&mut cluster, &question);
    let load = args.load && !exempt;
    let mut heads = BTreeMap::new();
    if load {
        heads = prepare_load(&mut cluster, &mut index, &mut question);
        warnings.extend(unmeasured(&mut cluster));
    }
    let view = index.publish();
    if view.node_count() == 0 {
        warnings.push("there is no node in the input".to_owned());
    }
    if exempt {
        warnings.push("the settings exempt this workload from the load line".to_owned());
    }
    let (pending, preempting) = (args.pending, args.preempting);
    let given = Given { assumed: &assumed, pending, load, preempting, ..Given::default() };
    Counting { view, given, heads, exempt, warnings }.answer(&question)
}

/// Pods without a node either count, or it is said that they do not.
fn not_counted(pending: usize) -> String {
    if pending == 1 {
        return "1 pod without a node is not counted (--pending counts it)".to_owned();
    }
    format!("{pending} pods without a node are not counted (--pending counts them)")
}

/// Do the settings let it through whatever the load?
fn is_exempt(cluster: &mut Cluster, question: &Question) -> bool {
    let key = Key::new(&*question.namespace, "");
    let pod = question.pod.clone().unwrap_or(PodFacts { key, ..PodFacts::default() });
    let pod = cluster.view(&pod);
    cluster.is_exempt(&pod)
}

/// Tells the index how much load each node takes, and the question how much a replica brings. How much each
/// takes is also given back.
fn prepare_load(cluster: &mut Cluster, index: &mut Index, question: &mut Question) -> BTreeMap<String, Load> {
    let (_, rooms) = cluster.rooms(Mark::default());
    let mut heads = BTreeMap::new();
    for (name, room) in rooms {
        heads.insert(name.to_string(), room.head);
        index.set_room(&name, Some(room));
    }
    if let (Of::Replicas(ask), Some(pod)) = (&mut question.of, &question.pod) {
        ask.load = Some(cluster.estimate(pod).load);
    }
    heads
}

/// How many nodes say nothing of their load, if any.
fn unmeasured(cluster: &mut Cluster) -> Option<String> {
    let ids: Vec<NodeId> = cluster.snapshot().nodes().map(|node| node.id).collect();
    let unmeasured = ids.iter().filter(|id| !is_measured(cluster, **id)).count();
    (unmeasured > 0).then(|| {
        format!(
            "the load of {unmeasured} of {} nodes was not measured; what their pods are expected to use stands in",
            ids.len()
        )
    })
}

/// Does every line of the node rest on a measurement?
fn is_measured(cluster: &mut Cluster, id: NodeId) -> bool {
    cluster.load(id).is_some_and(|load| {
        Metered::ALL.into_iter().all(|resource| {
            let line = load.lines.get(resource);
            line.target.is_none() || !matches!(line.basis, Basis::Estimates | Basis::Nothing)
        })
    })
}

impl Counting<'_> {
    fn answer(mut self, question: &Question) -> Result<EstimateResult> {
        let (answer, mut result) = match &question.of {
            Of::Replicas(ask) => self.replicas(question, ask)?,
            Of::Sets(sets) => self.sets(question, sets)?,
        };
        if self.given.preempting && answer.by_preempting.is_none() {
            self.warnings.push(no_preempting(question));
        }
        if self.given.load && answer.by_load.is_none() {
            let none = "there is no node whose load is known, so the load line is not counted";
            self.warnings.push(none.to_owned());
        }
        result.warnings = self.warnings;
        Ok(result)
    }

    fn replicas(&self, question: &Question, ask: &Ask) -> Result<(Answer, EstimateResult)> {
        let answer = self.view.replicas(ask, &self.given)?;
        let nodes = self.view.nodes(ask, &self.given)?;
        let mut result = result(question, Most::Replicas(0), &answer, self.exempt);
        if let Some(load) = &mut result.load {
            let under = |node: &NodeAnswer| under_load(node, ask, self.heads.get(&node.node).copied());
            load.nodes = if self.exempt {
                nodes.iter().cloned().map(node_result).collect()
            } else {
                nodes.iter().filter_map(under).collect()
            };
        }
        result.nodes = nodes.into_iter().map(node_result).collect();
        Ok((answer, result))
    }

    fn sets(&self, question: &Question, sets: &[Component]) -> Result<(Answer, EstimateResult)> {
        let answer = self.view.sets(&question.namespace, sets, &self.given)?;
        let mut result = result(question, Most::Sets(0), &answer, self.exempt);
        result.components = alone(&self.view, sets, &self.given)?;
        Ok((answer, result))
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

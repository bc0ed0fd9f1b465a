//! What do we make of a world?

use super::queue::Queue;
use super::{NAMESPACES, Outcome, Pod, World, classes, differences, unnamed};
use loadline_api::json::Tree;
use loadline_api::{Context, cluster, node, owners, pod};
use loadline_core::cycle::{Examined, Input, Memo, decide, examine, make_room, message, planned, preempt};
use loadline_core::view::{Budget, Labels, Live, NamespaceFacts, PodView, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The prefix names of nodes get here.
const PREFIX: &str = "n";

/// Where the pod goes, with every other node that would do, or why it goes nowhere.
pub fn outcome(world: &World) -> Outcome {
    let (at, view) = &view(world);
    let mut found = answer(at, view, &budgets(world));
    if let Outcome::Bound { node, volumes: given, .. } = &mut found {
        *given = volumes(world, node);
    }
    found
}

/// The same for pods that come one after the other and go where kube-scheduler sent them, each with what is known of
/// it; gives up after the first difference.
pub fn follows(
    queue: &Queue,
    theirs: &[Outcome],
    agree: fn(&Outcome, &Outcome) -> bool,
) -> Result<(), String> {
    let (context, mut live) = settled(&queue.world);
    let read = |live: &mut Live, pod: &Pod| {
        let object = World { pod: pod.clone(), ..World::default() }.objects(PREFIX).pod;
        let (facts, _) = pod::facts(&Tree::from(&object), &context).expect("a pod");
        live.view(&facts, facts.asks.effective)
    };
    for (at, (pod, theirs)) in queue.pods.iter().zip(theirs).enumerate() {
        let asked = Arc::new(read(&mut live, &differences::heard_from(pod)));
        let ours = answer(live.snapshot(), &asked, &[]);
        if !agree(&ours, theirs) {
            return Err(format!("pod {at}: {pod:?}\n  kube-scheduler: {theirs:?}\n  ours: {ours:?}"));
        }
        match theirs {
            Outcome::Bound { node, .. } => {
                let mut view = read(&mut live, &queue.started(at));
                // Nobody gave them any, and pods are told apart by it.
                view.uid = view.key.to_string().into();
                live.set_pod(view, Some(&node.replacen('@', PREFIX, 1)));
            }
            Outcome::Preempts { victims, .. } => {
                for victim in victims {
                    live.remove_pod(victim);
                }
            }
            Outcome::Refused(_) => {}
        }
    }
    Ok(())
}

fn answer(at: &Snapshot, view: &Arc<PodView>, budgets: &[Budget]) -> Outcome {
    let (input, memo) = (Input::new(at), &mut Memo::default());
    let decision = decide(&input, view, memo);
    let name = |id| at[id].name.replacen(PREFIX, "@", 1);
    let Some(node) = decision.node else {
        let why = unnamed(&message(&input, view, &decision), PREFIX);
        return match make_room(&input, view, true, budgets, None, memo) {
            Err(vain) => Outcome::Refused(vain.words().map_or(why.clone(), |more| format!("{why} {more}"))),
            Ok(plan) => Outcome::Preempts {
                why,
                node: name(plan.node),
                victims: plan.victims.iter().map(|v| v.key.to_string()).collect(),
            },
        };
    };
    let found = examine(&input, view);
    let fitting: Vec<_> = found.iter().filter(|e| e.rule.is_none()).map(|e| (e.node, e.total)).collect();
    assert!(fitting.contains(&(node, decision.score)), "decided for {node:?}, found {fitting:?}");
    assert_eq!(fitting.len(), decision.feasible as usize, "all are counted");
    // With one node there is nothing to compare.
    let compared = if fitting.len() > 1 { fitting.as_slice() } else { &[] };
    let behind = compared.iter().map(|(id, total)| (name(*id), decision.score - total)).collect();
    Outcome::Bound { node: name(node), behind, volumes: BTreeMap::new() }
}

/// How many of the victims overdraw a budget.
pub fn violations(world: &World) -> u32 {
    let (at, view) = &view(world);
    let plan = preempt(&Input::new(at), view, &budgets(world), None, &mut Memo::default());
    plan.map_or(0, |plan| plan.budget_violations)
}

fn budgets(world: &World) -> Vec<Budget> {
    let objects = world.budgets.iter().map(super::budget);
    objects.map(|object| cluster::budget(&Tree::from(&object)).expect("a budget").0).collect()
}

/// Which claims get which volumes that are there, on that node.
pub fn volumes(world: &World, node: &str) -> BTreeMap<String, String> {
    let (at, view) = &view(world);
    let short = |name: &str| name.replacen(PREFIX, "@", 1);
    let id = at.find_node(&node.replacen('@', PREFIX, 1)).expect("the node is there").id;
    let given = planned(at, view, id).into_iter();
    given.filter_map(|one| Some((short(&one.claim.key.name), short(&one.volume?)))).collect()
}

/// How many claims of the pod get their volume together with its node.
pub fn unbound(world: &World) -> usize {
    view(world).1.wants.claims.len()
}

/// What every rule and every score says of every node.
pub fn examined(world: &World) -> Vec<Examined> {
    let (at, view) = view(world);
    examine(&Input::new(&at), &view)
}

/// The world and the pod, as decisions see them.
fn view(world: &World) -> (Snapshot, Arc<PodView>) {
    let (context, mut live) = settled(world);
    let (facts, _) = pod::facts(&Tree::from(&world.objects(PREFIX).pod), &context).expect("a pod");
    let view = Arc::new(live.view(&facts, facts.asks.effective));
    (live.snapshot().clone(), view)
}

/// All of a world but the pod.
fn settled(world: &World) -> (Context, Live) {
    let objects = world.objects(PREFIX);
    let mut context = Context::new();
    for class in classes() {
        context.priority_class(&Tree::from(&class)).expect("a class");
    }
    for object in &objects.storage {
        let tree = Tree::from(object);
        let read = match object["kind"].as_str().expect("objects say what they are") {
            "StorageClass" => context.storage_class(&tree),
            "PersistentVolume" => context.volume(&tree),
            "PersistentVolumeClaim" => context.claim(&tree),
            "CSINode" => context.csi_node(&tree),
            "CSIDriver" => context.csi_driver(&tree),
            _ => context.storage_capacity(&tree),
        };
        read.expect("storage");
    }
    let mut live = Live::default();
    context.offer(live.storage_mut());
    for (name, labels) in NAMESPACES {
        live.set_namespace(NamespaceFacts { name: (*name).into(), labels: labels_of(name, labels) });
    }
    for object in &objects.nodes {
        let (mut facts, warnings) = node::with_images(&Tree::from(object)).expect("a node");
        assert!(warnings.is_empty(), "{warnings:?}");
        context.complete(&mut facts);
        live.set_node(&facts);
    }
    for object in &objects.selecting {
        let tree = Tree::from(object);
        if object["kind"] == "Service" {
            let service = cluster::service(&tree).expect("a service");
            live.set_service(&service.key, &service.selector);
        } else if object["kind"] != "PodDisruptionBudget" {
            let (workload, _) = owners::read(&tree).expect("a workload");
            let (maker, selector) = workload.selects.expect("it selects pods");
            live.set_workload(maker, &workload.target.key, selector);
        }
    }
    for (state, object) in &objects.pods {
        let mut object = object.clone();
        if let Some(phase) = state.over() {
            object["status"]["phase"] = phase.into();
        }
        if *state == super::State::Leaving {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let (facts, _) = pod::facts(&Tree::from(&object), &context).expect("a pod");
        let view = live.view(&facts, facts.asks.effective);
        live.set_pod(view, facts.node.as_deref());
    }
    (context, live)
}

fn labels_of(name: &str, labels: &[(&str, &str)]) -> Labels {
    let mut all: BTreeMap<String, String> = labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    all.insert("kubernetes.io/metadata.name".into(), name.into());
    Labels::plain(&all)
}

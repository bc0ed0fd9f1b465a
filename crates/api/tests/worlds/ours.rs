//! What do we make of a world?

use super::{CLASSES, NAMESPACES, Outcome, World};
use loadline_api::json::Tree;
use loadline_api::{Context, cluster, node, owners, pod};
use loadline_core::cycle::{Examined, Input, Memo, decide, examine, message};
use loadline_core::view::{Labels, Live, NamespaceFacts, PodView, Snapshot};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The prefix names of nodes get here.
const PREFIX: &str = "n";

/// Where the pod goes, with every other node that would do, or why it goes nowhere.
pub fn outcome(world: &World) -> Outcome {
    let (at, view) = &view(world);
    let input = Input::new(at);
    let decision = decide(&input, view, &mut Memo::default());
    let Some(node) = decision.node else { return Outcome::Refused(message(&input, view, &decision)) };
    let found = examine(&input, view);
    let fitting: Vec<_> = found.iter().filter(|e| e.rule.is_none()).map(|e| (e.node, e.total)).collect();
    assert!(fitting.contains(&(node, decision.score)), "decided for {node:?}, found {fitting:?}");
    assert_eq!(fitting.len(), decision.feasible as usize, "all are counted");
    let name = |id| at[id].name.replacen(PREFIX, "@", 1);
    // With one node there is nothing to compare.
    let compared = if fitting.len() > 1 { fitting.as_slice() } else { &[] };
    let behind = compared.iter().map(|(id, total)| (name(*id), decision.score - total)).collect();
    Outcome::Bound { node: name(node), behind }
}

/// What every rule and every score says of every node.
pub fn examined(world: &World) -> Vec<Examined> {
    let (at, view) = view(world);
    examine(&Input::new(&at), &view)
}

/// The world and the pod, as decisions see them.
fn view(world: &World) -> (Snapshot, Arc<PodView>) {
    let objects = world.objects(PREFIX);
    let mut context = Context::new();
    for (name, value) in CLASSES {
        let class = json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"});
        context.priority_class(&Tree::from(&class)).expect("a class");
    }
    let mut live = Live::default();
    for (name, labels) in NAMESPACES {
        live.set_namespace(NamespaceFacts { name: (*name).into(), labels: labels_of(name, labels) });
    }
    for object in &objects.nodes {
        let (facts, warnings) = node::with_images(&Tree::from(object)).expect("a node");
        assert!(warnings.is_empty(), "{warnings:?}");
        live.set_node(&facts);
    }
    for object in &objects.selecting {
        let tree = Tree::from(object);
        if object["kind"] == "Service" {
            let service = cluster::service(&tree).expect("a service");
            live.set_service(&service.key, &service.selector);
        } else {
            let (workload, _) = owners::read(&tree).expect("a workload");
            let (maker, selector) = workload.selects.expect("it selects pods");
            live.set_workload(maker, &workload.target.key, selector);
        }
    }
    for (state, object) in &objects.pods {
        let mut object = object.clone();
        if let Some(phase) = state.over() {
            object["status"] = json!({"phase": phase});
        }
        if *state == super::State::Leaving {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let (facts, _) = pod::facts(&Tree::from(&object), &context).expect("a pod");
        let view = live.view(&facts, facts.asks.effective);
        live.set_pod(view, facts.node.as_deref());
    }
    let (facts, _) = pod::facts(&Tree::from(&objects.pod), &context).expect("a pod");
    let view = Arc::new(live.view(&facts, facts.asks.effective));
    (live.snapshot().clone(), view)
}

fn labels_of(name: &str, labels: &[(&str, &str)]) -> Labels {
    let mut all: BTreeMap<String, String> = labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    all.insert("kubernetes.io/metadata.name".into(), name.into());
    Labels::plain(&all)
}

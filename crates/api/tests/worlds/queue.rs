//! Large worlds: many nodes, and many pods that look for a place one after the other.

use super::dice::Dice;
use super::generate::{Maker, THEMES, Theme};
use super::{Pod, Service, World};
use serde::{Deserialize, Serialize};

const NODES: usize = 50;
const PODS: usize = 200;

/// A world, and who comes to it. The world's own pod is not asked about.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    pub world: World,
    pub pods: Vec<Pod>,
}

/// The one of that number under that seed.
pub fn queue(seed: u64, number: usize) -> Queue {
    let mut maker = Maker { dice: Dice::new(seed ^ 0x0a11, number), theme: Theme::Everything, nodes: NODES };
    let mut world = World::default();
    for at in 1..=NODES {
        // Small ones, so that some get full.
        maker.theme = if at % 2 == 0 { Theme::Amounts } else { Theme::Nodes };
        world.nodes.push(maker.node(at));
    }
    world.pod = maker.seeker();
    world.services = ["web", "db"].map(service).into();
    let pods = (0..PODS).map(|at| {
        maker.theme = THEMES[maker.dice.below(THEMES.len())];
        Pod { name: format!("s{at}"), ..maker.seeker() }
    });
    Queue { pods: pods.collect(), world }
}

fn service(app: &str) -> Service {
    let selector = Some([("app".to_owned(), app.to_owned())].into());
    Service { name: app.to_owned(), namespace: "red".to_owned(), selector }
}

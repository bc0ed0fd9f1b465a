//! Large worlds: many nodes, and many pods that look for a place one after the other. They are worth more or less, so that
//! those that come late push others away.

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

impl Queue {
    /// The pod of that number once it is on its node: no two start at the same time.
    pub fn started(&self, at: usize) -> Pod {
        Pod { started: Some(60 * u32::try_from(at).expect("few")), ..self.pods[at].clone() }
    }
}

/// What they are worth.
const CLASSES: [&str; 8] = ["batch", "batch", "base", "base", "serve", "serve", "urgent", "patient"];

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
        let pod = maker.seeker();
        Pod { name: format!("s{at}"), class: (*maker.dice.pick(&CLASSES)).to_owned(), ..pod }
    });
    Queue { pods: pods.collect(), world }
}

fn service(app: &str) -> Service {
    let selector = Some([("app".to_owned(), app.to_owned())].into());
    Service { name: app.to_owned(), namespace: "red".to_owned(), selector }
}

//! What would it have been by requests alone? The same world once more, unseen, without load rules and without agents.

use super::compare::{self, Kind, Outcome};
use crate::args::Up;
use anyhow::Result;
use loadline_sim::{Scenario, World};
use std::time::Duration;

/// The other world, beside the one that is shown.
pub struct Twin {
    world: Option<World>,
    /// How long the story takes that both are told.
    pub story: Duration,
    /// What is to be said about it, once the story is over.
    said: Option<String>,
}

impl Twin {
    /// Starts it, if there is a story with an end.
    pub async fn start(args: &Up, scenario: Option<Scenario>) -> Result<Option<Self>> {
        let Some(story) = scenario.and_then(Scenario::ends) else { return Ok(None) };
        let world = Some(compare::start(args, Kind::RequestsOnly).await?);
        Ok(Some(Self { world, story, said: None }))
    }

    /// What it would have been, compared now. It ends with that, and says the same from then on.
    pub async fn told(&mut self, shown: &World) -> String {
        if let Some(world) = self.world.take() {
            self.said = Some(compared(&Seen::of(shown), &Seen::of(&world)));
            world.stop().await;
        }
        self.said.clone().unwrap_or_default()
    }
}

/// What there was to be seen in a world.
struct Seen {
    outcome: Outcome,
    /// Pods of the burst, and those of them on busy nodes.
    burst: (usize, usize),
}

impl Seen {
    fn of(world: &World) -> Self {
        Self { outcome: Outcome::of(world), burst: Scenario::burst_on_busy_nodes(world) }
    }
}

fn compared(shown: &Seen, other: &Seen) -> String {
    let worst = |seen: &Seen| {
        seen.outcome.worst_node.as_ref().map_or_else(String::new, |worst| {
            format!(", {} at {:.0}% {}", worst.name, worst.peak * 100.0, worst.resource)
        })
    };
    let line = |seen: &Seen| {
        let (pods, busy) = seen.burst;
        let over = seen.outcome.node_seconds_over_target;
        format!("{busy} of {pods} pods of web on busy nodes, {over} node-seconds over target{}", worst(seen))
    };
    format!("by requests alone, and without agents: {}; here: {}", line(other), line(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_worlds_are_in_one_sentence() {
        let seen =
            |seconds, peak, burst| Seen { outcome: Outcome::with(seconds, Some(("node-02", peak))), burst };
        assert_eq!(
            compared(&seen(20, 0.87, (6, 0)), &seen(140, 1.04, (6, 2))),
            "by requests alone, and without agents: 2 of 6 pods of web on busy nodes, 140 node-seconds over target, \
             node-02 at 104% cpu; here: 0 of 6 pods of web on busy nodes, 20 node-seconds over target, node-02 at \
             87% cpu"
        );
    }
}

//! What was used on each node, step by step: kept whole, so that what happened can be looked up and what will can be known by
//! those who may.

use crate::world::World;

/// What is used on every node at every step if nobody is moved any more, and what is asked for there now.
#[derive(Clone, Debug)]
pub struct Books {
    steps: usize,
    /// Thousandths of a core; the steps of the first node, then those of the second.
    load: Vec<i32>,
    /// By node, in thousandths of a core.
    pub requested: Vec<i64>,
    /// Who is on each node, by their place in the world, in no order that means anything.
    pub on: Vec<Vec<usize>>,
    /// Where each pod is.
    pub place: Vec<Option<usize>>,
}

impl Books {
    pub fn new(world: &World) -> Self {
        let nodes = world.nodes.len();
        Self {
            steps: world.steps,
            load: vec![0; nodes * world.steps],
            requested: vec![0; nodes],
            on: vec![Vec::new(); nodes],
            place: vec![None; world.pods.len()],
        }
    }

    /// A pod is on a node from that step to its end.
    pub fn put(&mut self, world: &World, pod: usize, node: usize, from: usize) {
        self.shift(world, pod, node, from, 1);
        self.requested[node] += world.pods[pod].request_milli;
        self.on[node].push(pod);
        self.place[pod] = Some(node);
    }

    /// It leaves at that step, or has left as it was to.
    pub fn take(&mut self, world: &World, pod: usize, from: usize) {
        let Some(node) = self.place[pod].take() else { return };
        self.shift(world, pod, node, from, -1);
        self.requested[node] -= world.pods[pod].request_milli;
        self.on[node].retain(|other| *other != pod);
    }

    fn shift(&mut self, world: &World, pod: usize, node: usize, from: usize, sign: i32) {
        let to = world.pods[pod].leaves.min(self.steps);
        let row = &mut self.load[node * self.steps..(node + 1) * self.steps];
        for (step, load) in row.iter_mut().enumerate().take(to).skip(from) {
            *load += sign * i32::try_from(world.usage(pod, step)).unwrap_or(i32::MAX / 1024);
        }
    }

    /// What a node uses at each step.
    pub fn row(&self, node: usize) -> &[i32] {
        &self.load[node * self.steps..(node + 1) * self.steps]
    }
}

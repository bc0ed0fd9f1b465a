//! What do the load rules say of every node right now? One column per answer, for scans over all nodes.

/// Why the load rules keep pods off a node, whatever the pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closed {
    /// They do not.
    #[default]
    No,
    /// A load is over its threshold.
    Threshold,
    /// Nothing is known of its load, and the settings say to keep off then.
    Unknown,
    /// It has just been relieved and is to stay so for a while.
    Cooling,
}

/// The load rules' answers, by node.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// Is the node closed to pods the load rules govern?
    pub closed: Vec<Closed>,
    /// How much more load stays under the line: CPU in billionths of a core, then memory in bytes. Negative
    /// where the line is passed already, the largest number where there is no line.
    pub head: [Vec<i64>; 2],
    /// The load score, 0 to 100, hot value taken off.
    pub score: Vec<i64>,
}

impl Board {
    /// Makes room for so many nodes; new ones are open, without a line, and neutral.
    pub fn grow(&mut self, nodes: usize) {
        let nodes = nodes.max(self.closed.len());
        self.closed.resize(nodes, Closed::No);
        for column in &mut self.head {
            column.resize(nodes, i64::MAX);
        }
        self.score.resize(nodes, 50);
    }
}

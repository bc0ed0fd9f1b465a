//! Which programs are asked for together, and what does a developer type to get them?

/// Programs that are asked for together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Kubernetes and its store.
    ControlPlane,
    /// Programs of other projects that ours stand beside.
    Peers,
    /// What measures nodes where no metrics API is asked.
    Monitoring,
    /// What runs pods on this machine, and the metrics API that tells what they use.
    Node,
}

impl Group {
    /// All of them.
    pub const ALL: &[Self] = &[Self::ControlPlane, Self::Peers, Self::Monitoring, Self::Node];

    /// What a developer types to get the programs of these groups. A control plane always comes with them.
    #[must_use]
    pub fn command(groups: &[Self]) -> String {
        let flags = Self::ALL.iter().filter(|group| groups.contains(group)).filter_map(|group| group.flag());
        flags.fold("cargo xtask control-plane".to_owned(), |command, flag| format!("{command} {flag}"))
    }

    fn flag(self) -> Option<&'static str> {
        match self {
            Self::ControlPlane => None,
            Self::Peers => Some("--peers"),
            Self::Monitoring => Some("--monitoring"),
            Self::Node => Some("--node"),
        }
    }
}

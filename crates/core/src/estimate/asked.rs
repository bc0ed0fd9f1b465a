//! What one replica asks for, resource by resource, ready to be divided by.

use super::Ask;
use crate::load::{Load, Metered};
use crate::resources::{List, Names, Resource, is_extended};

/// Requests as positions and amounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Every resource of which more than nothing is asked, but `pods`: CPU in thousandths, bytes, pieces.
    pub amounts: Vec<(usize, i64)>,
    /// A resource is asked for that no node has ever had.
    pub unknown: Option<(String, i64)>,
}

impl Asked {
    pub fn of(requests: &List, names: &Names) -> Self {
        let mut out = Self::default();
        for (name, quantity) in requests {
            let amount = |cpu: bool| if cpu { quantity.milli_value() } else { quantity.value() };
            match names.find(name) {
                // Every replica costs one, whatever is written.
                Some(Resource::PODS) => {}
                Some(resource) => {
                    let amount = amount(resource == Resource::CPU);
                    if amount > 0 {
                        out.amounts.push((resource.index(), amount));
                    }
                }
                None if is_extended(name) && quantity.value() > 0 => {
                    out.unknown.get_or_insert_with(|| (name.clone(), amount(false)));
                }
                // Names that are no resources of nodes are not looked at, as in Kubernetes.
                None => {}
            }
        }
        out.amounts.sort_unstable();
        out
    }
}

/// What a replica will use: what it is expected to, or else what it requests.
pub(super) fn load(ask: &Ask) -> Load {
    ask.load.unwrap_or_else(|| {
        let requested = |resource: Metered| ask.requests.get(resource.name());
        Load {
            cpu_nano: requested(Metered::Cpu).map_or(0, crate::load::estimate::nanocores),
            memory_bytes: requested(Metered::Memory).map_or(0, crate::quantity::Quantity::value),
        }
    })
}

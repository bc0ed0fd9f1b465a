//! Which nodes have which images? An index by image, so that a pod asks about its own few.
//!
//! Names are long, nodes have up to a hundred of them, and all anybody asks is whether two are the same: a name is
//! kept as a number of 64 bits. A name on a node then costs eight bytes.

use super::NodeId;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher as _;

/// The name of an image, short.
///
/// Two of a million names share a number with a chance of one in ten million, and then a node is preferred a little
/// without cause, so collisions are not handled. The number is good in this process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageName(u64);

impl ImageName {
    /// As a node says it.
    #[must_use]
    pub fn held(name: &str) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(name.as_bytes());
        Self(hasher.finish())
    }

    /// As a pod says it: without tag and digest, the tag is `latest`. What is before the last slash is no tag but the
    /// port of a registry.
    #[must_use]
    pub fn asked(name: &str) -> Self {
        let last = name.rsplit('/').next().unwrap_or(name);
        if last.contains(':') { Self::held(name) } else { Self::held(&format!("{name}:latest")) }
    }
}

/// The images a pod needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    /// One per container, init container and volume made of an image; two that are the same count twice.
    pub names: Box<[ImageName]>,
    /// How many containers and init containers it has.
    pub containers: u32,
}

/// The nodes by image.
#[derive(Clone, Debug, Default)]
pub struct Index {
    ids: FxHashMap<ImageName, u32>,
    slots: Vec<Image>,
    free: Vec<u32>,
    /// By node: its images, by number, sorted.
    held: Vec<Box<[u32]>>,
    clock: u64,
}

/// One image.
#[derive(Clone, Debug)]
pub struct Image {
    name: ImageName,
    /// How large it is in bytes, but for the odd ones.
    size: i64,
    /// Who has it, sorted.
    nodes: Vec<u32>,
    /// Nodes that say another size, sorted: an image for several kinds of machines has several.
    odd: Vec<(u32, i64)>,
    changed: u64,
}

impl Image {
    /// When this was last different; no two changes have the same number.
    pub(crate) fn changed(&self) -> u64 {
        self.changed
    }

    /// Which nodes have it, and how large it is there.
    #[must_use]
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (usize, i64)> {
        self.nodes.iter().map(|node| (*node as usize, self.size_on(*node)))
    }

    fn size_on(&self, node: u32) -> i64 {
        let odd = self.odd.binary_search_by_key(&node, |(node, _)| *node);
        odd.map_or(self.size, |at| self.odd[at].1)
    }

    /// Is that different from before?
    fn put(&mut self, node: u32, size: i64) -> bool {
        match self.nodes.binary_search(&node) {
            Ok(_) if self.size_on(node) == size => return false,
            Ok(_) => {}
            Err(at) => self.nodes.insert(at, node),
        }
        match self.odd.binary_search_by_key(&node, |(node, _)| *node) {
            Ok(at) if size == self.size => drop(self.odd.remove(at)),
            Ok(at) => self.odd[at].1 = size,
            Err(_) if size == self.size => {}
            Err(at) => self.odd.insert(at, (node, size)),
        }
        true
    }

    fn take(&mut self, node: u32) {
        self.nodes.retain(|n| *n != node);
        self.odd.retain(|(n, _)| *n != node);
    }
}

impl Index {
    /// An image, if any node has it.
    #[must_use]
    pub fn get(&self, name: ImageName) -> Option<&Image> {
        self.ids.get(&name).map(|id| &self.slots[*id as usize])
    }

    /// Is this what is known of the node already?
    pub(super) fn is(&self, node: NodeId, images: &[(ImageName, i64)]) -> bool {
        let held: &[u32] = self.held.get(node.index()).map_or(&[], |held| held);
        let place = |(name, size): &(ImageName, i64)| {
            let id = self.ids.get(name)?;
            let place = held.binary_search(id).ok()?;
            (self.slots[*id as usize].size_on(node.0) == *size).then_some(place)
        };
        let Some(mut places) = images.iter().map(place).collect::<Option<Vec<usize>>>() else { return false };
        // A name that comes twice stands for one.
        places.sort_unstable();
        places.dedup();
        places.len() == held.len()
    }

    /// A node has these images; of a name that comes twice, the first counts.
    pub(super) fn set(&mut self, node: NodeId, images: &[(ImageName, i64)]) {
        let mut held: Vec<u32> = Vec::with_capacity(images.len());
        for (name, size) in images {
            let id = self.ids.get(name).copied().unwrap_or_else(|| self.make(*name, *size));
            if let Err(at) = held.binary_search(&id) {
                held.insert(at, id);
                if self.slots[id as usize].put(node.0, *size) {
                    self.note(id);
                }
            }
        }
        if self.held.len() <= node.index() {
            self.held.resize_with(node.index() + 1, Box::default);
        }
        let before = std::mem::replace(&mut self.held[node.index()], held.into());
        for id in before {
            if self.held[node.index()].binary_search(&id).is_err() {
                self.slots[id as usize].take(node.0);
                self.note(id);
                if self.slots[id as usize].nodes.is_empty() {
                    self.ids.remove(&self.slots[id as usize].name);
                    self.free.push(id);
                }
            }
        }
    }

    fn note(&mut self, id: u32) {
        self.clock += 1;
        self.slots[id as usize].changed = self.clock;
    }

    fn make(&mut self, name: ImageName, size: i64) -> u32 {
        let new = Image { name, size, nodes: Vec::new(), odd: Vec::new(), changed: 0 };
        let id = self.free.pop().unwrap_or_else(|| u32::try_from(self.slots.len()).unwrap_or(u32::MAX));
        match self.slots.get_mut(id as usize) {
            Some(slot) => *slot = new,
            None => self.slots.push(new),
        }
        self.ids.insert(name, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_pod_means_latest_unless_it_says_a_tag_or_a_digest() {
        for (asked, held, why) in [
            ("nginx", "nginx:latest", "neither"),
            ("nginx:1.27", "nginx:1.27", "a tag"),
            ("shop.example/web", "shop.example/web:latest", "neither, below a registry"),
            ("shop.example:5000/web", "shop.example:5000/web:latest", "that is the port of the registry"),
            ("shop.example:5000/web:2", "shop.example:5000/web:2", "a port and a tag"),
            ("web@sha256:00ff", "web@sha256:00ff", "a digest"),
            ("", ":latest", "nothing at all"),
        ] {
            assert_eq!(ImageName::asked(asked), ImageName::held(held), "{asked}: {why}");
        }
        assert_ne!(
            ImageName::held("nginx"),
            ImageName::held("nginx:latest"),
            "nodes are taken at their word"
        );
    }

    proptest! {
        // Whatever nodes say one after another, the index knows what a plain map of what each said last knows.
        #[test]
        fn the_index_is_what_nodes_said_last(
            told in proptest::collection::vec((0..4u32, proptest::collection::vec((0..6u64, 1..4i64), 0..6)), 0..40),
        ) {
            let mut index = Index::default();
            let mut said: BTreeMap<u32, BTreeMap<u64, i64>> = BTreeMap::new();
            for (node, images) in told {
                let list: Vec<_> = images.iter().map(|(name, size)| (ImageName(*name), *size)).collect();
                let mut plain = BTreeMap::new();
                for (name, size) in &images {
                    plain.entry(*name).or_insert(*size);
                }
                let same = said.get(&node).cloned().unwrap_or_default() == plain;
                if index.is(NodeId(node), &list) {
                    prop_assert!(same, "nothing new is not taken for old");
                } else {
                    prop_assert!(!same || plain.len() < list.len(), "only what comes twice is set again");
                    index.set(NodeId(node), &list);
                }
                prop_assert!(index.is(NodeId(node), &list) || plain.len() < list.len());
                said.insert(node, plain);
                for name in 0..6 {
                    let want: Vec<(usize, i64)> = said
                        .iter()
                        .filter_map(|(node, images)| Some((*node as usize, *images.get(&name)?)))
                        .collect();
                    let found = index.get(ImageName(name)).map(|image| image.nodes().collect::<Vec<_>>());
                    prop_assert_eq!(found.unwrap_or_default(), want, "image {}", name);
                }
            }
        }
    }
}

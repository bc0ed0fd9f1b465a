//! Which pods are there? A store of 56 bytes a pod, found by identity, chained by node.
//!
//! The table from identity to place is open and probed in a row: a byte of the hash and the place, five bytes,
//! at most seven eighths full. The standard map would hold the identity a second time.

use super::chunks::Chunks;
use super::uid::Uid;
use crate::load::Load;
use std::ops::{Index, IndexMut};

/// No place: the end of a chain.
pub(super) const NONE: u32 = u32::MAX;

/// A pod that is not known to have started.
pub(super) const NEVER: i64 = i64::MAX;

const SETTLED: u32 = 1 << 31;
const RESERVED: u32 = 1 << 30;
const UNSAMPLED: u32 = RESERVED - 1;

/// What a pod was measured to use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) at: i64,
    pub(super) usage: Load,
}

/// A pod on a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pod {
    uid: [u64; 2],
    pub(super) estimate: Load,
    /// Since when it runs, or [`NEVER`]; of a reservation, when it expires.
    pub(super) moment: i64,
    /// Its slot; [`NONE`] where there is no pod.
    pub(super) node: u32,
    pub(super) prev: u32,
    pub(super) next: u32,
    /// The place of its sample or [`UNSAMPLED`], and two flags: each pod counts, so they share a word.
    mark: u32,
}

impl Pod {
    pub(super) fn uid(&self) -> Uid {
        Uid(u128::from(self.uid[0]) << 64 | u128::from(self.uid[1]))
    }

    pub(super) fn is_settled(&self) -> bool {
        self.mark & SETTLED != 0
    }

    pub(super) fn set_settled(&mut self, yes: bool) {
        self.mark = if yes { self.mark | SETTLED } else { self.mark & !SETTLED };
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.mark & RESERVED != 0
    }

    pub(super) fn set_reserved(&mut self, yes: bool) {
        self.mark = if yes { self.mark | RESERVED } else { self.mark & !RESERVED };
    }

    fn sample(&self) -> Option<usize> {
        let place = self.mark & UNSAMPLED;
        (place != UNSAMPLED).then_some(place as usize)
    }

    fn set_sample(&mut self, place: Option<u32>) {
        self.mark = self.mark & !UNSAMPLED | place.unwrap_or(UNSAMPLED);
    }
}

/// All pods.
#[derive(Clone, Debug)]
pub(super) struct Pods {
    all: Chunks<Pod, 1024>,
    /// The first unused place; the others follow by `next`.
    free: u32,
    len: usize,
    table: Table,
    samples: Chunks<Measured, 1024>,
    free_samples: Vec<u32>,
}

impl Pods {
    pub(super) const fn new() -> Self {
        Self {
            all: Chunks::new(),
            free: NONE,
            len: 0,
            table: Table::new(),
            samples: Chunks::new(),
            free_samples: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn find(&self, uid: Uid) -> Option<u32> {
        let uid = halves(uid);
        self.table.find(hash(uid), |place| self.all[place as usize].uid == uid)
    }

    /// Adds one that is not there yet. It is in no chain.
    pub(super) fn insert(&mut self, uid: Uid, node: u32, estimate: Load, moment: i64) -> u32 {
        let uid = halves(uid);
        let pod = Pod { uid, estimate, moment, node, prev: NONE, next: NONE, mark: UNSAMPLED };
        let place = if self.free == NONE {
            let place = u32::try_from(self.all.len()).expect("memory ends long before four billion pods");
            self.all.push(pod);
            place
        } else {
            let place = self.free;
            self.free = self.all[place as usize].next;
            self.all[place as usize] = pod;
            place
        };
        self.len += 1;
        if self.table.is_full() {
            // In the order of their places, one after the other in memory: the new one is among them.
            let all = self.all.iter().zip(0..).filter(|(pod, _)| pod.node != NONE);
            self.table = Table::of(self.len, all.map(|(pod, place)| (hash(pod.uid), place)));
        } else {
            self.table.put(hash(uid), place);
        }
        place
    }

    /// Forgets one that is in no chain any more.
    pub(super) fn remove(&mut self, place: u32) {
        self.set_measured(place, None);
        let pod = &mut self.all[place as usize];
        (pod.node, pod.next) = (NONE, self.free);
        self.free = place;
        self.len -= 1;
        self.table.remove(hash(pod.uid), place);
    }

    pub(super) fn measured(&self, place: u32) -> Option<Measured> {
        self[place].sample().map(|at| self.samples[at])
    }

    pub(super) fn set_measured(&mut self, place: u32, to: Option<Measured>) {
        match (self[place].sample(), to) {
            (None, None) => {}
            (Some(at), Some(to)) => self.samples[at] = to,
            (Some(at), None) => {
                self.free_samples.push(u32::try_from(at).expect("came from a u32"));
                self[place].set_sample(None);
            }
            (None, Some(to)) => {
                let new = self.free_samples.pop().inspect(|at| self.samples[*at as usize] = to);
                let at = new.or_else(|| {
                    // A billion samples are more than fit; the one too many counts as none.
                    let at = u32::try_from(self.samples.len()).ok().filter(|at| *at < UNSAMPLED)?;
                    self.samples.push(to);
                    Some(at)
                });
                self[place].set_sample(at);
            }
        }
    }

    /// The pods of a chain.
    pub(super) fn chain(&self, head: u32) -> impl Iterator<Item = (u32, &Pod)> {
        let pod = |place: u32| (place != NONE).then(|| (place, &self[place]));
        std::iter::successors(pod(head), move |(_, p)| pod(p.next))
    }

    /// Puts a pod at the head of a chain.
    pub(super) fn link(&mut self, head: &mut u32, place: u32) {
        self[place].prev = NONE;
        self[place].next = *head;
        if *head != NONE {
            self[*head].prev = place;
        }
        *head = place;
    }

    /// Takes a pod out of its chain.
    pub(super) fn unlink(&mut self, head: &mut u32, place: u32) {
        let Pod { prev, next, .. } = self[place];
        match prev {
            NONE => *head = next,
            prev => self[prev].next = next,
        }
        if next != NONE {
            self[next].prev = prev;
        }
    }

    /// Allocated bytes.
    pub(super) fn bytes(&self) -> usize {
        self.all.bytes()
            + self.table.bytes()
            + self.samples.bytes()
            + self.free_samples.capacity() * size_of::<u32>()
    }
}

impl Index<u32> for Pods {
    type Output = Pod;

    fn index(&self, place: u32) -> &Pod {
        &self.all[place as usize]
    }
}

impl IndexMut<u32> for Pods {
    fn index_mut(&mut self, place: u32) -> &mut Pod {
        &mut self.all[place as usize]
    }
}

fn halves(uid: Uid) -> [u64; 2] {
    let low = u128::from(u64::MAX);
    [uid.0 >> 64, uid.0 & low].map(|half| u64::try_from(half).expect("64 bits"))
}

/// Spreads identities over all numbers: the two halves multiplied, high and low part folded together.
fn hash(uid: [u64; 2]) -> u64 {
    let product =
        u128::from(uid[0] ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(u128::from(uid[1] ^ 0xd1b5_4a32_d192_ed03));
    let [high, low] = halves(Uid(product));
    high ^ low
}

const EMPTY: u8 = 0;
const GONE: u8 = 1;

/// Places by hash.
#[derive(Clone, Debug)]
struct Table {
    /// [`EMPTY`], [`GONE`], or a byte of the hash.
    tags: Vec<u8>,
    places: Vec<u32>,
    /// How many tags are not empty.
    used: usize,
}

impl Table {
    const fn new() -> Self {
        Self { tags: Vec::new(), places: Vec::new(), used: 0 }
    }

    fn tag(hash: u64) -> u8 {
        u8::try_from(hash & 0xff).expect("a byte").max(GONE + 1)
    }

    /// Where looking for a hash starts: its upper half as a share of the length.
    fn home(&self, hash: u64) -> usize {
        let share = ((hash >> 32) * self.tags.len() as u64) >> 32;
        usize::try_from(share).expect("less than the length")
    }

    fn after(&self, i: usize) -> usize {
        if i + 1 == self.tags.len() { 0 } else { i + 1 }
    }

    fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        if self.tags.is_empty() {
            return None;
        }
        let (tag, mut i) = (Self::tag(hash), self.home(hash));
        loop {
            match self.tags[i] {
                EMPTY => return None,
                t if t == tag && is(self.places[i]) => return Some(self.places[i]),
                _ => i = self.after(i),
            }
        }
    }

    /// Is there no room for one more? A table is made seven tenths full and may become seven eighths, so the
    /// next is due only after a sixth of its length in insertions.
    fn is_full(&self) -> bool {
        self.used + 1 > self.tags.len() / 8 * 7
    }

    /// A table of so many.
    fn of(held: usize, all: impl Iterator<Item = (u64, u32)>) -> Self {
        let len = (held * 10 / 7 + 16).next_multiple_of(8);
        let mut table = Self { tags: vec![EMPTY; len], places: vec![0; len], used: 0 };
        for (hash, place) in all {
            table.put(hash, place);
        }
        table
    }

    fn put(&mut self, hash: u64, place: u32) {
        let mut i = self.home(hash);
        while self.tags[i] > GONE {
            i = self.after(i);
        }
        self.used += usize::from(self.tags[i] == EMPTY);
        self.tags[i] = Self::tag(hash);
        self.places[i] = place;
    }

    fn remove(&mut self, hash: u64, place: u32) {
        if self.tags.is_empty() {
            return;
        }
        let mut i = self.home(hash);
        loop {
            if self.tags[i] == EMPTY {
                return;
            }
            if self.tags[i] > GONE && self.places[i] == place {
                break;
            }
            i = self.after(i);
        }
        if self.tags[self.after(i)] == EMPTY {
            self.tags[i] = EMPTY;
            self.used -= 1;
        } else {
            self.tags[i] = GONE;
        }
    }

    fn bytes(&self) -> usize {
        self.tags.capacity() + self.places.capacity() * size_of::<u32>()
    }
}

//! Does it fit, what is left, how many more? Resources as dense vectors of whole numbers.
//!
//! CPU is counted in thousandths, memory and storage in bytes, everything else in pieces. The four resources
//! every node has come first; extended resources (`example.com/gpu`, `hugepages-2Mi`, …) get the next free
//! index from [`Names`], which all vectors of one snapshot share. What is not mentioned is zero.
//!
//! A pod takes one of `pods`, so "too many pods" is an ordinary lack. Nothing asked is never lacking, not
//! even where nothing or less than nothing is free: asking zero CPU of an overcommitted node is fine.

use crate::quantity::{Format, Quantity};
use crate::select::label;
use indexmap::IndexSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A resource list as Kubernetes writes it: amounts by resource name.
pub type List = BTreeMap<String, Quantity>;

/// Which resource: an index into every [`Amounts`] of the same [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(u32);

impl Resource {
    /// CPU, in thousandths of a core.
    pub const CPU: Self = Self(0);
    /// Memory, in bytes.
    pub const MEMORY: Self = Self(1);
    /// Local scratch space, in bytes.
    pub const EPHEMERAL_STORAGE: Self = Self(2);
    /// Pods: how many a node takes, and one for each.
    pub const PODS: Self = Self(3);

    /// Every index there can be, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u32::MAX).map(Self)
    }

    /// Position in a dense vector.
    #[must_use]
    pub fn index(self) -> usize {
        // u32 always fits the usize of the platforms Kubernetes runs on.
        self.0 as usize
    }
}

const BASE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pods"];

/// The names behind the indices. Grows, never forgets: an index stays valid.
#[derive(Clone, Debug, Default)]
pub struct Names {
    extended: IndexSet<Arc<str>>,
}

impl Names {
    /// Only the four every node has.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many resources are known.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "the four base resources are always there")]
    pub fn len(&self) -> usize {
        BASE.len() + self.extended.len()
    }

    /// The index of a name, new or known. `None` for names that scheduling does not count.
    pub fn intern(&mut self, name: &str) -> Option<Resource> {
        if let Some(known) = self.find(name) {
            return Some(known);
        }
        if !is_extended(name) {
            return None;
        }
        let (i, _) = self.extended.insert_full(name.into());
        dense(BASE.len() + i)
    }

    /// The index of a known name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Resource> {
        let base = BASE.iter().position(|b| *b == name);
        base.or_else(|| self.extended.get_index_of(name).map(|i| BASE.len() + i)).and_then(dense)
    }

    /// The name of a resource; the empty text for an index of other names.
    #[must_use]
    pub fn name(&self, resource: Resource) -> &str {
        let i = resource.index();
        BASE.get(i)
            .copied()
            .or_else(|| self.extended.get_index(i - BASE.len()).map(AsRef::as_ref))
            .unwrap_or("")
    }

    /// The vector of a resource list. CPU rounds up to a thousandth, everything else to a whole.
    pub fn amounts(&mut self, list: &List) -> Amounts {
        let mut out = Amounts::default();
        for (name, quantity) in list {
            if let Some(resource) = self.intern(name) {
                out.set(resource, units(resource, quantity));
            }
        }
        out
    }

    /// The vector of a resource list, if no name in it is new; see [`Names::amounts`].
    #[must_use]
    pub fn find_all(&self, list: &List) -> Option<Amounts> {
        let mut out = Amounts::default();
        for (name, quantity) in list {
            match self.find(name) {
                Some(resource) => out.set(resource, units(resource, quantity)),
                None if is_extended(name) => return None,
                None => {}
            }
        }
        Some(out)
    }

    /// The resource list of a vector, leaving out zeros.
    #[must_use]
    pub fn list(&self, amounts: &Amounts) -> List {
        let of = |(r, amount): (Resource, i64)| (self.name(r).to_owned(), quantity(self.name(r), amount));
        amounts.iter().filter(|(_, amount)| *amount != 0).map(of).collect()
    }
}

fn dense(index: usize) -> Option<Resource> {
    u32::try_from(index).ok().map(Resource)
}

fn units(resource: Resource, quantity: &Quantity) -> i64 {
    if resource == Resource::CPU { quantity.milli_value() } else { quantity.value() }
}

/// An amount of a named resource, in the unit and style people read it in.
#[must_use]
pub fn quantity(name: &str, amount: i64) -> Quantity {
    match name {
        "cpu" => Quantity::from_milli(amount),
        "memory" | "ephemeral-storage" => Quantity::from_bytes(amount),
        _ if name.starts_with("hugepages-") => Quantity::from_bytes(amount),
        _ => Quantity::new(amount, Format::DecimalSi),
    }
}

/// Does scheduling count this name, beyond the four base resources? Extended resources carry a domain;
/// huge pages and attachable volumes are known by their prefix; anything else (`storage`) is no node resource.
#[must_use]
pub fn is_extended(name: &str) -> bool {
    let native = name.contains("kubernetes.io/");
    let domain = name.contains('/')
        && !name.starts_with("requests.")
        && label::check_key(&format!("requests.{name}")).is_ok();
    native || domain || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")
}

/// One amount per resource. Missing is zero; equality says so too.
#[derive(Clone, Debug, Default)]
pub struct Amounts {
    base: [i64; BASE.len()],
    extended: Vec<i64>,
}

/// One resource of which not enough is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Which one.
    pub resource: Resource,
    /// What was asked.
    pub asked: i64,
    /// What is free; negative where more is promised than there is.
    pub free: i64,
}

/// How many times something fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Nothing was asked, so nothing limits.
    Unlimited,
    /// So often, and which resource ends first.
    Limited {
        /// How often.
        count: u64,
        /// The resource that runs out.
        by: Resource,
    },
}

impl Times {
    /// The count, at most `most`.
    #[must_use]
    pub fn at_most(self, most: u64) -> u64 {
        match self {
            Self::Unlimited => most,
            Self::Limited { count, .. } => count.min(most),
        }
    }
}

impl Amounts {
    /// CPU in thousandths and memory in bytes, and nothing else.
    #[must_use]
    pub fn of(cpu_milli: i64, memory_bytes: i64) -> Self {
        Self { base: [cpu_milli, memory_bytes, 0, 0], extended: Vec::new() }
    }

    /// The amount of one resource.
    #[must_use]
    pub fn get(&self, resource: Resource) -> i64 {
        let i = resource.index();
        self.base.get(i).or_else(|| self.extended.get(i - BASE.len())).copied().unwrap_or(0)
    }

    /// Sets the amount of one resource.
    pub fn set(&mut self, resource: Resource, amount: i64) {
        let i = resource.index();
        if let Some(slot) = self.base.get_mut(i) {
            *slot = amount;
            return;
        }
        let i = i - BASE.len();
        if i >= self.extended.len() {
            if amount == 0 {
                return;
            }
            self.extended.resize(i + 1, 0);
        }
        self.extended[i] = amount;
    }

    /// The same with another amount of one resource.
    #[must_use]
    pub fn with(mut self, resource: Resource, amount: i64) -> Self {
        self.set(resource, amount);
        self
    }

    /// Every resource this vector holds a place for, zeros included, in index order.
    pub fn iter(&self) -> impl Iterator<Item = (Resource, i64)> {
        self.base.iter().chain(&self.extended).zip(0..).map(|(amount, i)| (Resource(i), *amount))
    }

    /// Is everything zero?
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.iter().all(|(_, amount)| amount == 0)
    }

    fn merge(&mut self, other: &Self, f: impl Fn(i64, i64) -> i64) {
        if self.extended.len() < other.extended.len() {
            self.extended.resize(other.extended.len(), 0);
        }
        let theirs = other.base.iter().chain(&other.extended).copied().chain(std::iter::repeat(0));
        for (mine, theirs) in self.base.iter_mut().chain(&mut self.extended).zip(theirs) {
            *mine = f(*mine, theirs);
        }
    }

    /// Adds, holding at the ends of the range.
    pub fn add(&mut self, other: &Self) {
        self.merge(other, i64::saturating_add);
    }

    /// Takes away. The result may be negative: a node can be promised more than it has.
    pub fn sub(&mut self, other: &Self) {
        self.merge(other, i64::saturating_sub);
    }

    /// Keeps the larger amount of each.
    pub fn max(&mut self, other: &Self) {
        self.merge(other, i64::max);
    }

    /// This minus the other, as a new vector.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.sub(other);
        out
    }

    /// What is asked here but not free there, in index order.
    pub fn lacking<'a>(&'a self, free: &'a Self) -> impl Iterator<Item = Lack> + 'a {
        self.asked()
            .map(|(resource, asked)| Lack { resource, asked, free: free.get(resource) })
            .filter(|l| l.asked > l.free)
    }

    /// Is enough of everything free there?
    #[must_use]
    pub fn fits(&self, free: &Self) -> bool {
        self.lacking(free).next().is_none()
    }

    /// How many times this fits there; the first resource in index order that ends first is named.
    #[must_use]
    pub fn times(&self, free: &Self) -> Times {
        let each = self.asked().map(|(by, asked)| {
            // asked > 0 and the free amount is not negative, so neither is the quotient.
            (u64::try_from(free.get(by).max(0) / asked).unwrap_or(0), by)
        });
        each.min().map_or(Times::Unlimited, |(count, by)| Times::Limited { count, by })
    }

    fn asked(&self) -> impl Iterator<Item = (Resource, i64)> {
        self.iter().filter(|(_, asked)| *asked > 0)
    }
}

impl PartialEq for Amounts {
    fn eq(&self, other: &Self) -> bool {
        let long = self.extended.len().max(other.extended.len());
        let padded =
            |v: &Self| v.extended.iter().copied().chain(std::iter::repeat(0)).take(long).collect::<Vec<_>>();
        self.base == other.base && padded(self) == padded(other)
    }
}

impl Eq for Amounts {}

#[cfg(test)]
mod tests;

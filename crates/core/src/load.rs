//! How loaded is it, and may more come aboard? Load-aware filtering and scoring.
//!
//! A [`Load`] is what is used of the two resources whose use is measured: CPU and memory. Everything the load
//! rules compare is one, in whole numbers.

use crate::quantity::Quantity;
use serde::Serialize;
use std::fmt;

pub mod admit;
pub mod annotation;
pub mod board;
pub mod estimate;
pub mod filter;
pub mod hot;
pub mod join;
pub mod policy;
pub mod publish;
pub mod ratio;
pub mod recommend;
pub mod score;
pub mod settings;
pub mod taints;
pub mod term;

/// A resource whose use is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Metered {
    Cpu,
    Memory,
}

impl Metered {
    /// Both, in the order answers list them.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Memory];

    /// An amount of it as people write it.
    #[must_use]
    pub fn quantity(self, amount: i64) -> Quantity {
        match self {
            Self::Cpu => Quantity::from_nano(amount),
            Self::Memory => Quantity::from_bytes(amount),
        }
    }

    /// An amount of it as people read it: to the nearest thousandth of a core, or mebibyte. What is less than ten of these is told
    /// exactly, so that a little is never nothing.
    #[must_use]
    pub fn rounded(self, amount: i64) -> Quantity {
        let unit: i64 = match self {
            Self::Cpu => 1_000_000,
            Self::Memory => 1 << 20,
        };
        if amount.unsigned_abs() < 10 * unit.unsigned_abs() {
            return self.quantity(amount);
        }
        let half = amount.signum() * (unit / 2);
        self.quantity(amount.checked_add(half).map_or(amount, |near| near / unit * unit))
    }

    /// Its name as a Kubernetes resource.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An amount of CPU and memory in use, or expected to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Load {
    /// CPU in billionths of a core, the unit the metrics API measures in.
    pub cpu_nano: i64,
    pub memory_bytes: i64,
}

impl Load {
    /// Nothing.
    pub const ZERO: Self = Self { cpu_nano: 0, memory_bytes: 0 };

    /// From both parts.
    #[must_use]
    pub const fn new(cpu_nano: i64, memory_bytes: i64) -> Self {
        Self { cpu_nano, memory_bytes }
    }

    /// One of the two.
    #[must_use]
    pub const fn get(self, resource: Metered) -> i64 {
        match resource {
            Metered::Cpu => self.cpu_nano,
            Metered::Memory => self.memory_bytes,
        }
    }

    /// The same with one of the two replaced.
    #[must_use]
    pub const fn with(mut self, resource: Metered, amount: i64) -> Self {
        match resource {
            Metered::Cpu => self.cpu_nano = amount,
            Metered::Memory => self.memory_bytes = amount,
        }
        self
    }

    /// Computes each part from the parts of two.
    #[must_use]
    pub fn zip(self, other: Self, f: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            cpu_nano: f(self.cpu_nano, other.cpu_nano),
            memory_bytes: f(self.memory_bytes, other.memory_bytes),
        }
    }

    /// The sum, held within `i64`.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, i64::saturating_add)
    }

    /// The difference, held within `i64`; it may be negative.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.zip(other, i64::saturating_sub)
    }

    /// The larger of each part.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.zip(other, i64::max)
    }
}

/// One value per metered resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Both<T> {
    pub cpu: T,
    pub memory: T,
}

impl<T: Copy> Both<T> {
    /// One of the two.
    pub fn get(&self, resource: Metered) -> T {
        match resource {
            Metered::Cpu => self.cpu,
            Metered::Memory => self.memory,
        }
    }

    /// Sets one of the two.
    pub fn set(&mut self, resource: Metered, value: T) {
        match resource {
            Metered::Cpu => self.cpu = value,
            Metered::Memory => self.memory = value,
        }
    }
}

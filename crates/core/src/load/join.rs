//! Which node is a series about? Monitoring names a node by its name or by an address, with or without a port.
//!
//! Every series of a metric comes in one answer, and is joined here: by the text of a label, which is looked up as it
//! is, without its port, and as an address however it is written (`10.0.0.7`, `10.0.0.7:9100`, `fd00::7`, `[fd00:0::7]:9100`).
//! A node's name counts before anybody's address. An address that two nodes have belongs to neither: a value that could
//! be either's is nobody's. Of several series of one node the largest value counts, and that there were several is told.

use super::annotation::decimal;
use super::ratio::Ratio;
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A value and when it was so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub share: Ratio,
    pub at: Timestamp,
}

/// One series of an instant vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The texts of the labels that may say whose it is; the first that names a node does.
    pub whose: Vec<String>,
    /// In percent, as it is written: `43.012`, `NaN`, `+Inf`.
    pub percent: String,
    pub at: Timestamp,
}

/// The share that a percentage is, rounded up to a billionth; `None` if it is no amount: not a number, infinite, negative.
#[must_use]
pub fn share(percent: &str) -> Option<Ratio> {
    let hundredfold = decimal(percent)?.nano();
    (hundredfold >= 0).then(|| Ratio::from_nano(hundredfold / 100 + i64::from(hundredfold % 100 != 0)))
}

/// By which texts nodes are found.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_name: FxHashMap<Arc<str>, usize>,
    /// By address or host name; `None` for one that several nodes have.
    by_address: FxHashMap<Arc<str>, Option<usize>>,
}

/// Whose a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Node(usize),
    Nobody,
    /// Several nodes have that address.
    Several,
}

impl Names {
    /// Nodes in the order of their places, with their names and addresses.
    pub fn new<'a>(nodes: impl IntoIterator<Item = (&'a Arc<str>, &'a [Arc<str>])>) -> Self {
        Self::at(nodes.into_iter().enumerate().map(|(place, (name, addresses))| (place, name, addresses)))
    }

    /// Nodes with their places, names and addresses.
    pub fn at<'a>(nodes: impl IntoIterator<Item = (usize, &'a Arc<str>, &'a [Arc<str>])>) -> Self {
        let mut names = Self::default();
        for (place, name, addresses) in nodes {
            names.by_name.insert(name.clone(), place);
            for address in addresses {
                let held = names.by_address.entry(canonical(address)).or_insert(Some(place));
                if *held != Some(place) {
                    *held = None;
                }
            }
        }
        names
    }

    /// Whose is a series? The first of its texts that says so counts.
    #[must_use]
    pub fn whose(&self, series: &Series) -> Found {
        let found = series.whose.iter().map(|text| self.find(text));
        found.into_iter().find(|found| *found != Found::Nobody).unwrap_or(Found::Nobody)
    }

    /// Whose is it? The text as it is, then without its port, then as an address.
    #[must_use]
    pub fn find(&self, text: &str) -> Found {
        if let Some(place) = self.by_name.get(text) {
            return Found::Node(*place);
        }
        let bare = without_port(text);
        if let Some(place) = self.by_name.get(bare) {
            return Found::Node(*place);
        }
        match self.by_address.get(&*canonical(bare)) {
            Some(Some(place)) => Found::Node(*place),
            Some(None) => Found::Several,
            None => Found::Nobody,
        }
    }
}

/// An address in the one way it is written; any other text as it is.
pub(crate) fn canonical(text: &str) -> Arc<str> {
    text.parse::<IpAddr>().map_or_else(|_| text.into(), |address| address.to_canonical().to_string().into())
}

/// `host` of `host:port`, `::1` of `[::1]:port` and of `[::1]`; an address without port stays whole.
pub(crate) fn without_port(text: &str) -> &str {
    let inner = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    if let Some((address, port)) = inner
        && (port.is_empty() || port.starts_with(':'))
    {
        return address;
    }
    if text.parse::<IpAddr>().is_ok() {
        return text;
    }
    if text.parse::<SocketAddr>().is_ok() || text.matches(':').count() == 1 {
        return text.rsplit_once(':').map_or(text, |(host, _)| host);
    }
    text
}

/// What came of joining.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// By place of the node.
    pub values: Vec<Option<Value>>,
    /// Series that are no node's, and the first of them.
    pub nobodys: usize,
    pub first_nobodys: Option<String>,
    /// Series with an address that several nodes have.
    pub shared: usize,
    /// Series beyond the first of a node.
    pub repeated: usize,
    /// Series whose value is no amount.
    pub invalid: usize,
}

impl Joined {
    /// Adds what came of joining again the series that were nobody's.
    pub fn join_more(&mut self, more: Self) {
        self.values.resize(self.values.len().max(more.values.len()), None);
        for (held, value) in self.values.iter_mut().zip(more.values) {
            *held = value.or(*held);
        }
        (self.nobodys, self.first_nobodys, self.shared) = (more.nobodys, more.first_nobodys, more.shared);
        self.repeated += more.repeated;
        self.invalid += more.invalid;
    }
}

/// Gives every series to its node, of so many.
#[must_use]
pub fn join(names: &Names, nodes: usize, series: &[Series]) -> Joined {
    let mut joined = Joined { values: vec![None; nodes], ..Joined::default() };
    for one in series {
        let place = match names.whose(one) {
            Found::Node(place) if place < nodes => place,
            Found::Several => {
                joined.shared += 1;
                continue;
            }
            _ => {
                joined.nobodys += 1;
                joined.first_nobodys.get_or_insert_with(|| one.whose.join(", "));
                continue;
            }
        };
        let Some(share) = share(&one.percent) else {
            joined.invalid += 1;
            continue;
        };
        let held = &mut joined.values[place];
        joined.repeated += usize::from(held.is_some());
        if held.is_none_or(|held| (share, one.at) > (held.share, held.at)) {
            *held = Some(Value { share, at: one.at });
        }
    }
    joined
}

#[cfg(test)]
mod tests;

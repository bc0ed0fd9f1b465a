//! What of the ledger survives a restart? How loaded each node has been; the rest is soon seen again.
//!
//! [`Ledger::checkpoint`] is the history of one node in about a hundred bytes, [`encode`] many of them by name,
//! in parts that each fit into an object of the API server. Each part stands for itself: one that is lost or
//! damaged costs its own nodes their history and nothing else.
//!
//! ```text
//! part   format, entry …, checksum      1 byte, entries, 4 bytes (FNV-1a, the low byte first)
//! entry  start, end, length, text       how much of the name before it begins and ends with, and what is between
//!        length, bytes                  the history
//! ```
//!
//! What comes back is what an uninterrupted ledger would say had it not been told the samples of the time in between,
//! never less, but for this:
//!
//! - Peaks are the same to the last digit as long as they are in range.
//! - Up to five samples of the last five minutes are kept as they are, rounded up to ten-thousandths of a core
//!   and 16 KiB. Of more, those of 75 seconds become one, as large as the largest mean of its last ones: for
//!   the next five minutes means may be overstated by what load varied within 75 seconds. Samples whose windows
//!   leave gaps lose where these were.
//! - The newest sample itself does not come back. Until a new one is taken, nothing is known of present usage.

mod bytes;

pub(super) use bytes::{Reader, put, put_signed};

use super::Ledger;
use super::history::Past;
use super::time::nanos;
use crate::load::term::AHEAD;
use crate::view::NodeId;
use jiff::{SignedDuration, Timestamp};

/// The format written; the only one read.
pub(super) const FORMAT: u8 = 1;

/// As long as names of nodes may be. What claims more is not ours, and would be made out of nothing.
const LONGEST_NAME: usize = 253;

/// How old a checkpoint may be: of a range of a day nothing would be left.
const OLDEST: SignedDuration = SignedDuration::from_hours(24);

/// Why bytes are no checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCheckpoint {
    /// Another version wrote it.
    #[error("checkpoint has format {0}, expected {FORMAT}")]
    Format(u8),
    /// It is cut short, too long, or says what cannot be.
    #[error("checkpoint is damaged")]
    Damaged,
    #[error("checkpoint does not match its checksum")]
    Checksum,
}

/// What became of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// It counts.
    Done,
    /// It is older than a day.
    TooOld,
    /// It is from the future: some clock is wrong, and nothing would be newer.
    Ahead,
    /// The node is not there.
    NoNode,
}

impl Ledger {
    /// How loaded the node has been, to be kept elsewhere; none without a sample.
    #[must_use]
    pub fn checkpoint(&self, id: NodeId) -> Option<Vec<u8>> {
        self.nodes.get(id.index())?.past.as_ref().map(|past| past.write())
    }

    /// Brings back how loaded the node was. Samples taken already stay: those that are newer count on top, the
    /// others are in the checkpoint.
    ///
    /// # Errors
    /// If the bytes are no checkpoint; nothing is changed then.
    pub fn restore(&mut self, id: NodeId, bytes: &[u8], now: Timestamp) -> Result<Restored, BadCheckpoint> {
        let past = Past::read(bytes)?;
        let age = SignedDuration::from_nanos(nanos(now).saturating_sub(past.newest()));
        if age < -AHEAD {
            return Ok(Restored::Ahead);
        }
        if age > OLDEST {
            return Ok(Restored::TooOld);
        }
        let Some(node) = self.nodes.get(id.index()).filter(|node| node.present) else {
            return Ok(Restored::NoNode);
        };
        let joined = match &node.past {
            Some(held) => past.join(held),
            None => past,
        };
        self.nodes[id.index()].past = Some(Box::new(joined));
        self.touch(id);
        Ok(Restored::Done)
    }
}

/// Many checkpoints as few parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// By name of node from part to part, each of at most as many bytes as asked for.
    pub parts: Vec<Vec<u8>>,
    /// How many nodes fit into no part, or have a name no node can have.
    pub left_out: usize,
}

/// Writes the checkpoints of many nodes into parts of at most `limit` bytes.
pub fn encode<N, B>(nodes: impl IntoIterator<Item = (N, B)>, limit: usize) -> Encoded
where
    N: AsRef<str>,
    B: AsRef<[u8]>,
{
    let mut nodes: Vec<(N, B)> = nodes.into_iter().collect();
    nodes.sort_by(|(a, _), (b, _)| a.as_ref().cmp(b.as_ref()));
    let room = limit.saturating_sub(size_of::<u32>());
    let (mut out, mut part, mut before) = (Encoded::default(), vec![FORMAT], "");
    for (name, bytes) in &nodes {
        let (name, bytes) = (name.as_ref(), bytes.as_ref());
        let mut next = entry(before, name, bytes);
        if part.len() + next.len() > room && part.len() > 1 {
            out.parts.push(sealed(std::mem::replace(&mut part, vec![FORMAT])));
            before = "";
            next = entry(before, name, bytes);
        }
        if part.len() + next.len() > room || name.len() > LONGEST_NAME {
            out.left_out += 1;
            continue;
        }
        part.append(&mut next);
        before = name;
    }
    if part.len() > 1 {
        out.parts.push(sealed(part));
    }
    out
}

fn entry(before: &str, name: &str, bytes: &[u8]) -> Vec<u8> {
    let (old, new) = (before.as_bytes(), name.as_bytes());
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let mut out = Vec::with_capacity(new.len() + bytes.len() + 8);
    put(&mut out, start as u64);
    put(&mut out, end as u64);
    for text in [&new[..new.len() - end], bytes] {
        put(&mut out, text.len() as u64);
        out.extend_from_slice(text);
    }
    out
}

fn sealed(mut part: Vec<u8>) -> Vec<u8> {
    part.extend_from_slice(&checksum(&part).to_le_bytes());
    part
}

/// Reads one part: the names of nodes and what [`Ledger::restore`] takes.
///
/// # Errors
/// If the bytes are no part, or not all of one.
pub fn decode(part: &[u8]) -> Result<Vec<(String, &[u8])>, BadCheckpoint> {
    let mut reader = Reader::new(part);
    // Who cannot read a format does not know where it keeps its checksum either.
    let format = reader.byte()?;
    if format != FORMAT {
        return Err(BadCheckpoint::Format(format));
    }
    let (body, sum) = part.split_last_chunk().ok_or(BadCheckpoint::Damaged)?;
    if checksum(body) != u32::from_le_bytes(*sum) {
        return Err(BadCheckpoint::Checksum);
    }
    let mut reader = Reader::new(body.get(1..).ok_or(BadCheckpoint::Damaged)?);
    let (mut out, mut name) = (Vec::new(), String::new());
    while !reader.is_empty() {
        let (start, end): (usize, usize) = (reader.small()?, reader.small()?);
        let length = reader.number()?;
        let between = reader.take(length)?;
        let (head, rest) = name.as_bytes().split_at_checked(start).ok_or(BadCheckpoint::Damaged)?;
        let tail = rest.len().checked_sub(end).map(|at| &rest[at..]).ok_or(BadCheckpoint::Damaged)?;
        if start + between.len() + end > LONGEST_NAME {
            return Err(BadCheckpoint::Damaged);
        }
        name = String::from_utf8([head, between, tail].concat()).map_err(|_| BadCheckpoint::Damaged)?;
        let length = reader.number()?;
        out.push((name.clone(), reader.take(length)?));
    }
    Ok(out)
}

/// FNV-1a: any single byte that changes, changes it.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

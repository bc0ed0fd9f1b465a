//! What did the judge say of this cluster? Expressions are dear: each is put to a cluster once, for all placements that have
//! it, and again only when the cluster or its scores are others.

use super::Book;
use super::index::{Id, at};
use jiff::Timestamp;
use rustc_hash::FxHashMap;

/// An answer, and from when until when it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    pub holds: bool,
    from: Timestamp,
    /// The first of the scores it could look at expires; it stands at that moment, too.
    pub until: Option<Timestamp>,
}

impl Verdict {
    pub fn new(holds: bool, book: &Book<'_>) -> Self {
        Self { holds, from: book.now, until: book.all().filter_map(|(_, scores)| scores.valid_until).min() }
    }

    fn stands(&self, now: Timestamp) -> bool {
        self.from <= now && self.until.is_none_or(|until| now <= until)
    }
}

/// The answers to one list of expressions, by the number of the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    of: Vec<Option<Verdict>>,
}

impl Answers {
    /// What is known, or what is answered now.
    pub fn get(&mut self, id: Id, now: Timestamp, ask: impl FnOnce() -> Verdict) -> Verdict {
        if self.of.len() <= at(id) {
            self.of.resize(at(id) + 1, None);
        }
        let known = self.of[at(id)].filter(|known| known.stands(now));
        let verdict = known.unwrap_or_else(ask);
        self.of[at(id)] = Some(verdict);
        verdict
    }
}

/// All answers that may still stand, by the expressions that must hold together.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdicts {
    of: FxHashMap<Vec<String>, Answers>,
}

impl Verdicts {
    pub fn of(&mut self, expressions: &[String]) -> &mut Answers {
        if !self.of.contains_key(expressions) {
            self.of.insert(expressions.to_vec(), Answers::default());
        }
        self.of.get_mut(expressions).expect("it was put there if it was not")
    }

    /// A cluster, or one of its scores, is another.
    pub fn forget(&mut self, id: Id) {
        for answers in self.of.values_mut() {
            if let Some(known) = answers.of.get_mut(at(id)) {
                *known = None;
            }
        }
    }

    /// Nobody asks the others any more.
    pub fn keep(&mut self, asked: impl Fn(&[String]) -> bool) {
        self.of.retain(|expressions, _| asked(expressions));
    }
}

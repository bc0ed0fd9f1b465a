//! How do objects become facts? Kind by kind, everything wrong noted on the way.
//!
//! What is *wanted* (the spec of a pod) must be right. What was only *observed* (a node's status, a metric) may be
//! anything, since production is like that: what cannot be read there is left out, with a warning.

use super::{Manifest, Manifests};
use crate::definition::Definitions;
use crate::kind::Kind;
use crate::parallel;
use crate::problem::{Problem, Problems};
use loadline_api::json::Tree;
use loadline_api::{Error, Warning};
use loadline_core::object::Key;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What was read of an object, and what is odd about it.
pub type Facts<T> = Result<(T, Vec<Warning>), Error>;

impl Manifests {
    /// Takes out the objects of a kind, each once. The same object again is the same; another one of the same name is a
    /// problem, since the order of documents must not matter.
    pub(crate) fn take(&mut self, kind: Kind) -> Vec<Manifest> {
        let all = self.take_all(kind);
        self.unique(all)
    }

    /// Takes out the objects of a kind, also those of the same name.
    pub(crate) fn take_all(&mut self, kind: Kind) -> Vec<Manifest> {
        self.objects.extract_if(.., |object| object.kind == kind).collect()
    }

    pub(crate) fn unique(&mut self, all: Vec<Manifest>) -> Vec<Manifest> {
        let mut known: BTreeMap<Key, usize> = BTreeMap::new();
        let mut kept: Vec<Manifest> = Vec::with_capacity(all.len());
        for object in all {
            match known.entry(object.full_key()) {
                Entry::Vacant(place) => {
                    place.insert(kept.len());
                    kept.push(object);
                }
                Entry::Occupied(first) => {
                    let first = &kept[*first.get()];
                    if first.value != object.value {
                        let message = format!(
                            "expected each {} once, found another one of this name in {}",
                            object.kind.name, first.location
                        );
                        self.problems.push(object.problem("metadata.name", message));
                    }
                }
            }
        }
        kept
    }

    /// Fills in the defaults of the definitions and keeps the objects the API server would take.
    pub(crate) fn validate(&mut self, definitions: &Definitions) {
        let objects = std::mem::take(&mut self.objects);
        let checked = parallel::map(objects, |mut object| {
            let findings = definitions.complete(object.kind, &mut object.value);
            (object, findings)
        });
        self.keep_fine(checked);
    }

    /// Takes out the objects of a kind and reads them. They must be right; everything that is not is a problem.
    pub(crate) fn required_all<T: Send>(
        &mut self,
        kind: Kind,
        read: impl Fn(&Tree<'_>) -> Facts<T> + Sync,
    ) -> Vec<T> {
        let objects = self.take(kind);
        let found = read_all(objects, read).into_iter();
        found.filter_map(|(object, found)| self.required(&object, |_| found)).collect()
    }

    /// The same, of objects whose status need not be right: it is taken out if it is wrong.
    pub(crate) fn tolerant_all<T: Send>(
        &mut self,
        kind: Kind,
        read: impl Fn(&Tree<'_>) -> Facts<T> + Sync,
    ) -> Vec<T> {
        let objects = self.take(kind);
        let mut kept = Vec::with_capacity(objects.len());
        for (mut object, first) in read_all(objects, &read) {
            if let Some((value, warnings)) = self.or_without_status(&mut object, first, &read) {
                self.warn_of(&object, warnings);
                kept.push(value);
            }
        }
        kept
    }

    /// One object that must be right.
    pub(crate) fn required<T>(
        &mut self,
        object: &Manifest,
        read: impl FnOnce(&Tree<'_>) -> Facts<T>,
    ) -> Option<T> {
        let (value, warnings) = self.must(object, read)?;
        self.warn_of(object, warnings);
        Some(value)
    }

    /// The same, for whoever keeps what is odd, or of which nothing is.
    pub(crate) fn must<T>(
        &mut self,
        object: &Manifest,
        read: impl FnOnce(&Tree<'_>) -> Result<T, Error>,
    ) -> Option<T> {
        read(&object.tree()).map_err(|error| self.refuse(object, error)).ok()
    }

    fn refuse(&mut self, object: &Manifest, error: Error) {
        self.problems.extend(error.problems.into_iter().map(|one| object.problem(one.path, one.problem)));
    }

    /// What was only observed: as good as absent if it cannot be read.
    pub(crate) fn optional<T>(
        &mut self,
        object: &Manifest,
        read: impl FnOnce(&Tree<'_>) -> Facts<T>,
    ) -> Option<T> {
        match read(&object.tree()) {
            Ok((value, warnings)) => {
                self.warn_of(object, warnings);
                Some(value)
            }
            Err(error) => {
                let name = object.kind.name;
                for one in error.problems {
                    self.warn(object.problem(one.path, one.problem).and(format_args!("{name} is left out")));
                }
                None
            }
        }
    }

    /// One object whose status need not be right.
    pub(crate) fn tolerant<T>(
        &mut self,
        object: &mut Manifest,
        read: impl Fn(&Tree<'_>) -> Facts<T>,
    ) -> Option<T> {
        let first = read(&object.tree());
        let (value, warnings) = self.or_without_status(object, first, read)?;
        self.warn_of(object, warnings);
        Some(value)
    }

    /// What was read first, or else what can be read without the status, if only that is wrong.
    pub(crate) fn or_without_status<T>(
        &mut self,
        object: &mut Manifest,
        first: Facts<T>,
        read: impl FnOnce(&Tree<'_>) -> Facts<T>,
    ) -> Option<(T, Vec<Warning>)> {
        let error = match first {
            Ok(found) => return Some(found),
            Err(error) => error,
        };
        if error.problems.iter().any(|one| !one.path.starts_with("status")) {
            self.refuse(object, error);
            return None;
        }
        for one in error.problems {
            self.warn(object.problem(one.path, one.problem).and("the status is left out"));
        }
        if let Value::Object(fields) = &mut object.value {
            fields.remove("status");
        }
        self.must(object, read)
    }

    /// Notes what is odd about an object.
    pub(crate) fn warn_of(&mut self, object: &Manifest, warnings: Vec<Warning>) {
        let told = warnings.into_iter().map(|one| object.problem(one.problem.path, one.problem.problem));
        self.warnings.extend(told);
    }

    /// The answer and the warnings, if nothing is wrong.
    ///
    /// # Errors
    /// Every problem there is.
    pub(crate) fn finish<T>(self, answer: Option<T>) -> Result<(T, Vec<Problem>), Problems> {
        match answer {
            Some(answer) if self.problems.is_empty() => Ok((answer, self.warnings)),
            _ => Err(Problems::new(self.problems)),
        }
    }
}

/// Reads many objects side by side. What was read well is not needed any more, and there may be much of it.
pub fn read_all<T: Send>(
    objects: Vec<Manifest>,
    read: impl Fn(&Tree<'_>) -> Facts<T> + Sync,
) -> Vec<(Manifest, Facts<T>)> {
    parallel::map(objects, |mut object| {
        let found = read(&object.tree());
        if found.is_ok() {
            object.value = Value::Null;
        }
        (object, found)
    })
}

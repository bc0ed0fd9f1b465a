//! Which load rules hold? Those of the one policy and the one set of settings among some documents.

use crate::documents::{Document, Kind, Problem};
use loadline_api::json::Tree;
use loadline_api::policy::{self, POLICY, SETTINGS};
use loadline_core::load::policy::{Origin, Problem as Wrong, Rules};

/// The rules, and what is worth a warning about them; the defaults for a document that is not there.
///
/// # Errors
/// Everything wrong with either document, and every further one of its kind, in the order of the files.
pub fn read(objects: &[Document]) -> Result<(Rules, Vec<Problem>), Vec<Problem>> {
    let mut problems = Vec::new();
    let [policy, settings] = [POLICY, SETTINGS].map(|kind| sole(objects, kind, &mut problems));
    let place = |wrong: Wrong| {
        let document = match wrong.origin {
            Origin::Policy => policy,
            Origin::Settings => settings,
        };
        document.map(|document| document.problem(wrong.path, wrong.message))
    };
    let (read, own) = (policy.map(|d| Tree::from(&d.value)), settings.map(|d| Tree::from(&d.value)));
    match policy::rules(read.as_ref(), own.as_ref()) {
        Ok((rules, warnings)) if problems.is_empty() => {
            Ok((rules, warnings.into_iter().filter_map(place).collect()))
        }
        answer => {
            problems.extend(answer.err().unwrap_or_default().into_iter().filter_map(place));
            problems.sort_by_key(|problem| (problem.place.number, problem.place.item));
            Err(problems)
        }
    }
}

/// The document of that kind; more than one is a problem.
fn sole<'a>(
    objects: &'a [Document],
    (version, kind): Kind,
    problems: &mut Vec<Problem>,
) -> Option<&'a Document> {
    let mut of_kind = objects.iter().filter(|o| (o.api_version, o.kind) == (version, kind));
    let first = of_kind.next()?;
    let again = || format!("expected one {kind}, found a second one; the first is in {}", first.place);
    problems.extend(of_kind.map(|more| more.problem("", again())));
    Some(first)
}

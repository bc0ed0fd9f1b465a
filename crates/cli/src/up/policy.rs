//! Which load rules hold? Those of a file, everything wrong with it told at once.

use std::path::Path;

use anyhow::Result;
use loadline_api::policy::{self, POLICY, SETTINGS};
use loadline_core::load::policy::{Origin, Rules};

use crate::documents::{self, Document};
use crate::out::Refused;

/// Reads a policy and settings, either of which may be missing.
pub fn read(path: &Path) -> Result<Rules> {
    let read = documents::read(&[path.to_owned()], &[POLICY, SETTINGS]).map_err(Refused::new)?;
    let (mut policy, mut settings, mut problems) = (None, None, Vec::new());
    for document in &read.objects {
        let first: &mut Option<&Document> =
            if document.kind == POLICY.1 { &mut policy } else { &mut settings };
        if first.is_some() {
            problems.push(document.problem("kind", format!("expected one {}, found another", document.kind)));
        }
        first.get_or_insert(document);
    }
    let value = |document: Option<&Document>| document.map(|document| document.value.clone());
    let rules = policy::rules(value(policy).as_ref(), value(settings).as_ref());
    if let Err(wrong) = &rules {
        for problem in wrong {
            let document = if problem.origin == Origin::Policy { policy } else { settings };
            problems.extend(document.map(|document| document.problem(&problem.path, &problem.message)));
        }
    }
    match rules {
        Ok((rules, warnings)) if problems.is_empty() => {
            for warning in warnings {
                tracing::warn!(%warning, "load policy");
            }
            Ok(rules)
        }
        _ => Err(Refused::new(problems).into()),
    }
}

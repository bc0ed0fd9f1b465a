//! `loadline what-if place`: which clusters would these placements select, and why these?

mod result;
mod table;

use super::{lines, live, now, warn};
use crate::args::Place;
use crate::explain::args as explain;
use crate::out::{self, Detail};
use anyhow::{Result, bail};
use jiff::Timestamp;
use loadline_core::object::Key;
use loadline_core::place::{Placement, Report, Source};
use loadline_manifests::{Manifests, PlaceInput};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads, decides and prints.
///
/// # Errors
/// Bad input.
pub fn run(args: &Place) -> Result<()> {
    let manifests = Manifests::gather(&args.input.files, PlaceInput::KINDS);
    let input = PlaceInput::read(manifests, args.rules.options())?;
    let answer = decide(input, now(args.input.now));
    warn(&answer.warnings);
    out::answer(&answer, args.output)
}

/// Reads a hub, decides one placement and prints that.
///
/// # Errors
/// When the hub cannot be read, or has no such placement.
pub async fn explain(args: &explain::Placement) -> Result<()> {
    let key = crate::explain::key(&args.name)?;
    let input = PlaceInput::read(live::fleet(&args.hub).await?, args.rules.options())?;
    let mut answer = decide(input, Timestamp::now());
    answer.placements.retain(|one| one.placement.key == key);
    if answer.placements.is_empty() {
        bail!("the hub has no placement {key}");
    }
    out::answer(&answer, args.output)
}

/// What each placement selects.
struct Answer {
    /// By namespace and name.
    placements: Vec<PlacementAnswer>,
    /// What is published, as it was written.
    published: BTreeMap<Key, Value>,
    now: Timestamp,
    /// What was odd about the input as a whole.
    warnings: Vec<String>,
}

/// What one placement selects.
struct PlacementAnswer {
    placement: Arc<Placement>,
    report: Report,
    /// What is odd about it.
    warnings: Vec<String>,
}

impl PlacementAnswer {
    /// How old is the oldest load that was used, in seconds?
    fn load_age(&self, now: Timestamp) -> Option<i64> {
        self.report.oldest_load.map(|time| now.duration_since(time).as_secs())
    }

    /// Does it go by what is used of clusters, not only by what they have?
    fn goes_by_load(&self) -> bool {
        self.report.weighs_resources && self.report.source != Source::Static
    }
}

impl out::Answer for Answer {
    const KIND: &'static str = "PlaceResult";

    fn table(&self, detail: Detail) -> String {
        table::render(self, detail)
    }

    fn document(&self) -> impl Serialize {
        result::of(self)
    }
}

/// Decides every placement as if it were alone: what one selects, the others do not see before it is published.
fn decide(input: PlaceInput, now: Timestamp) -> Answer {
    let PlaceInput { mut fleet, judge, decisions, mut notes, warnings } = input;
    let all: Vec<Arc<Placement>> = fleet.placements().cloned().collect();
    let decide_one = |placement: Arc<Placement>| {
        let report = fleet.report(&placement.key, &judge, now)?;
        let mut warnings = notes.remove(&placement.key).unwrap_or_default();
        warnings.extend(report.outcome.warnings.iter().cloned());
        Some(PlacementAnswer { placement, report, warnings })
    };
    Answer {
        placements: all.into_iter().filter_map(decide_one).collect(),
        published: decisions,
        now,
        warnings: lines(&warnings),
    }
}

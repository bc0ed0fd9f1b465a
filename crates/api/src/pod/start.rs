//! Since when has a pod been running in full?

use super::is_sidecar;
use crate::read::At;
use jiff::Timestamp;

/// The latest first start of the regular containers and sidecars; none while one has never started, or does not
/// say when. A container that has been restarted started long ago: the load it brings is nothing new.
pub(super) fn started(spec: &At<'_, '_>, status: &At<'_, '_>) -> Option<Timestamp> {
    let (regular, init) = (spec.get("containers"), spec.get("initContainers"));
    let (reports, init_reports) = (status.get("containerStatuses"), status.get("initContainerStatuses"));
    let regular = regular.items().map(|container| first_start(&container, &reports));
    let sidecars = init.items().filter(is_sidecar).map(|container| first_start(&container, &init_reports));
    // One that has not started makes the whole none; without containers there is no latest.
    regular
        .chain(sidecars)
        .try_fold(None, |latest: Option<Timestamp>, start| Some(latest.max(Some(start?))))?
}

fn first_start(container: &At<'_, '_>, reports: &At<'_, '_>) -> Option<Timestamp> {
    let name = container.get("name").text()?;
    let report = reports.items().find(|report| report.get("name").text() == Some(name))?;
    if report.get("restartCount").int().unwrap_or_default() > 0 {
        return Some(Timestamp::MIN);
    }
    let (now, before) = (report.get("state"), report.get("lastState"));
    // Without a restart there was one start at most, wherever it is told.
    [(&now, "running"), (&now, "terminated"), (&before, "running"), (&before, "terminated")]
        .into_iter()
        .find_map(|(state, kind)| state.get(kind).get("startedAt").time())
}

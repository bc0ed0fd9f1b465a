//! Can numbers be meant in the unit they were read in? Some cannot, and are refused where they are read; others only look wrong.

use super::{Series, Unit};

/// Hardly a workload uses more cores than this at once, while percent go up to a hundred.
const MANY_CORES: f64 = 48.0;
/// Percent do not go further; what does is probably in millicores.
const MOST_PERCENT: f64 = 150.0;
/// Millicores of anything worth placing pass this now and then: a tenth of a core.
const FEW_MILLI: f64 = 100.0;

/// By so much the largest number of a series may be below that of the series in the middle, or above it. Real ones of percent differ
/// less than cores and percent of one machine do; those of whole machines differ by more than thirty, and by less than this.
const LESS_PERCENT: f64 = 30.0;
const LESS: f64 = 200.0;
const MORE: f64 = 100.0;
/// Fewer than this have no middle.
const SOME: usize = 3;

/// What looks wrong about the unit of series, of all of them or of some among others.
#[must_use]
pub fn doubt(series: &[Series], unit: Unit) -> Option<String> {
    whole(series, unit).or_else(|| mixed(series, unit))
}

/// Series that are in another unit than most, by the largest number of each.
fn mixed(series: &[Series], unit: Unit) -> Option<String> {
    let most = |one: &Series| one.milli.iter().copied().max().filter(|most| *most > 0).map(f64::from);
    let mut all: Vec<f64> = series.iter().filter_map(most).collect();
    if all.len() < SOME {
        return None;
    }
    all.sort_by(f64::total_cmp);
    let middle = all[all.len() / 2];
    let (low, high) = match unit {
        // What is far more than percent is refused where it is read.
        Unit::Percent(_) => (middle / LESS_PERCENT, f64::INFINITY),
        Unit::Cores | Unit::Millicores => (middle / LESS, middle * MORE),
    };
    let odd = |one: &&Series| most(one).is_some_and(|most| most < low || most > high);
    let first = series.iter().find(odd)?;
    let others = match series.iter().filter(odd).count() - 1 {
        0 => String::new(),
        1 => " (and another one)".to_owned(),
        more => format!(" (and {more} others)"),
    };
    Some(format!(
        "{:?}{others} never uses more than {} millicores, and the series in the middle {middle}: is it in another unit than the others?",
        first.name,
        most(first).unwrap_or(0.0)
    ))
}

/// What looks wrong about all of them, by the largest number there is.
fn whole(series: &[Series], unit: Unit) -> Option<String> {
    let most = f64::from(series.iter().flat_map(|one| &one.milli).copied().max()?);
    if most == 0.0 {
        return Some("nobody uses as much as a millicore: are the numbers in another unit?".to_owned());
    }
    match unit {
        // One percent of one core: shares of 1 and cores of small machines stay below.
        Unit::Percent(cores) if most <= cores * 10.0 => {
            Some("no number is above 1 %: are they cores, or shares of 1, and not percent?".to_owned())
        }
        Unit::Cores if most > MOST_PERCENT * 1000.0 => Some(format!(
            "a workload uses {:.0} cores: are the numbers millicores, and not cores?",
            most / 1000.0
        )),
        Unit::Cores if most > MANY_CORES * 1000.0 => Some(format!(
            "a workload uses {:.0} cores: are the numbers percent, and not cores?",
            most / 1000.0
        )),
        Unit::Millicores if most <= FEW_MILLI => Some(format!(
            "no workload ever uses more than {most} millicores: are the numbers percent or cores, and not millicores?"
        )),
        _ => None,
    }
}

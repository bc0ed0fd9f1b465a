//! Can numbers be meant in the unit they were read in? Some cannot, and are refused where they are read; others only look wrong.

use super::{Series, Unit};

/// Hardly a workload uses more cores than this at once, while percent go up to a hundred.
const MANY_CORES: f64 = 48.0;
/// Percent do not go further; what does is probably in millicores.
const MOST_PERCENT: f64 = 150.0;
/// Millicores of anything worth placing pass this now and then: a tenth of a core.
const FEW_MILLI: f64 = 100.0;

/// What looks wrong about the unit of series as a whole, by the largest number there is.
#[must_use]
pub fn doubt(series: &[Series], unit: Unit) -> Option<String> {
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

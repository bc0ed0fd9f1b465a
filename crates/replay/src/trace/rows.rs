//! One row a series: a name, then numbers.

use super::{Problems, Series, Unit};
use rustc_hash::FxHashMap;

pub(super) fn read(text: &str, unit: Unit, problems: &mut Problems<'_>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    let mut seen: FxHashMap<&str, usize> = FxHashMap::default();
    let mut length = None;
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = place + 1;
        let mut cells = line.split(',').map(str::trim);
        let name = cells.next().unwrap_or_default();
        if let Some(first) = seen.insert(name, number) {
            problems.add(number, format!("{name:?} is there twice: first in line {first}"));
        }
        let mut milli = Vec::new();
        let mut wrong = None;
        for (column, cell) in cells.enumerate() {
            let value = match cell.parse::<f64>() {
                _ if cell.is_empty() => Err("nothing: a hole".to_owned()),
                Ok(value) => unit.milli(value),
                Err(_) => Err(format!("{cell:?} is not a number")),
            };
            match value {
                Ok(value) => milli.push(value),
                // One word a row: what is wrong with it is mostly wrong all along.
                Err(why) => wrong = wrong.or(Some((column + 1, why))),
            }
        }
        if let Some((sample, why)) = wrong {
            problems.add(number, format!("{name:?}, sample {sample}: {why}"));
            continue;
        }
        let (found, expected) = (milli.len(), *length.get_or_insert(milli.len()));
        if found == 0 {
            problems.add(number, format!("{name:?} has no samples"));
        } else if found != expected {
            problems.add(number, format!("{name:?} has {found} samples, expected {expected} as before"));
        }
        series.push(Series { name: name.into(), milli });
    }
    series
}

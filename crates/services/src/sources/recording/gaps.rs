//! Where was nothing measured? A short gap of a pod is bridged; after a longer one it came again; where many have one at the
//! same time, it is the measuring that had it, and nobody knows what was used.

use super::STEP;
use jiff::Timestamp;

/// So many measurements may be missing between two; they are taken to lie on the line between them.
const BRIDGED: usize = 3;
/// One pod of so many may be gone for a while; where more are, they were not measured.
const MANY: usize = 5;

/// A pod that was there without a break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    pub arrives: usize,
    pub milli: Vec<u32>,
}

/// What was made of the measurements of all pods.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mended {
    /// By pod, as they were given.
    pub stays: Vec<Vec<Stay>>,
    /// How many measurements were made up.
    pub bridged: usize,
}

/// Bridges what may be bridged; `rows` are steps and thousandths of a core, by step.
///
/// # Errors
/// Where many were not measured, a sentence each.
pub(super) fn mend<'r>(
    rows: impl Iterator<Item = &'r [(u32, u32)]>,
    steps: usize,
    since: i64,
) -> Result<Mended, Vec<String>> {
    let mut mended = Mended::default();
    // By step: who was there or came again later, and who of them was not measured for longer.
    let (mut there, mut missing) = (vec![0_usize; steps], vec![0_usize; steps]);
    for row in rows {
        let mut stays: Vec<Stay> = Vec::new();
        if let (Some((first, _)), Some((last, _))) = (row.first(), row.last()) {
            for count in &mut there[*first as usize..=*last as usize] {
                *count += 1;
            }
        }
        for (step, milli) in row {
            let step = *step as usize;
            let end = stays.last().map(|stay| stay.arrives + stay.milli.len());
            match (end, stays.last_mut()) {
                (Some(end), Some(stay)) if step - end <= BRIDGED => {
                    mended.bridged += step - end;
                    bridge(&mut stay.milli, *milli, step - end);
                }
                (end, _) => {
                    if let Some(end) = end {
                        missing[end..step].iter_mut().for_each(|count| *count += 1);
                    }
                    stays.push(Stay { arrives: step, milli: vec![*milli] });
                }
            }
        }
        mended.stays.push(stays);
    }
    let problems = holes(&there, &missing, since);
    if problems.is_empty() { Ok(mended) } else { Err(problems) }
}

/// Adds a measurement, and before it those on the line to it.
fn bridge(milli: &mut Vec<u32>, sample: u32, missing: usize) {
    let (before, after) = (u64::from(milli.last().copied().unwrap_or(sample)), u64::from(sample));
    let all = missing as u64 + 1;
    for step in 1..all {
        milli.push(u32::try_from((before * (all - step) + after * step) / all).unwrap_or(sample));
    }
    milli.push(sample);
}

fn holes(there: &[usize], missing: &[usize], since: i64) -> Vec<String> {
    let steps = there.len();
    let moment = |step: usize| {
        let second = since + i64::try_from(step).unwrap_or(0) * STEP;
        Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
    };
    let mut problems = Vec::new();
    let measured = |step: &usize| there[*step] > 0;
    if let Some(first) = (0..steps).find(measured).filter(|first| *first > BRIDGED) {
        problems.push(format!("nothing was measured before {}: give a shorter --since", moment(first)));
    }
    if let Some(last) = (0..steps).rfind(measured).filter(|last| last + BRIDGED + 1 < steps) {
        problems.push(format!("nothing was measured after {}: give --until", moment(last + 1)));
    }
    let is_hole = |step: usize| missing[step] * MANY > there[step];
    let mut step = 0;
    while step < steps {
        if !is_hole(step) {
            step += 1;
            continue;
        }
        let from = step;
        while step < steps && is_hole(step) {
            step += 1;
        }
        let (gone, all) = (from..step).map(|at| (missing[at], there[at])).max().unwrap_or_default();
        problems.push(format!(
            "from {} to {}, {gone} of {all} pods were not measured, though they were before and after: give --since or --until that leave it out",
            moment(from),
            moment(step)
        ));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(steps: &[u32]) -> Vec<(u32, u32)> {
        steps.iter().map(|step| (*step, 100 + step * 10)).collect()
    }

    #[test]
    fn a_short_gap_is_bridged_and_after_a_longer_one_a_pod_came_again() {
        let always: Vec<u32> = (0..12).collect();
        let mut rows = vec![row(&always); 30];
        rows[0] = row(&[0, 1, 4, 5]);
        rows[1] = row(&[0, 5, 6]);
        let mended = mend(rows.iter().map(Vec::as_slice), 12, 0).unwrap();
        let stay = |arrives, milli: &[u32]| Stay { arrives, milli: milli.into() };
        // From 110 to 140 over two: 120, 130.
        assert_eq!(mended.stays[0], [stay(0, &[100, 110, 120, 130, 140, 150])]);
        assert_eq!(mended.stays[1], [stay(0, &[100]), stay(5, &[150, 160])], "four missing are one too many");
        assert_eq!(mended.bridged, 2);
    }

    #[test]
    fn where_many_were_not_measured_it_is_said_from_when_to_when() {
        let told = |rows: &[Vec<(u32, u32)>]| mend(rows.iter().map(Vec::as_slice), 12, 0).unwrap_err();
        let half: Vec<u32> = (0..12).filter(|step| !(3..8).contains(step)).collect();
        let always: Vec<u32> = (0..12).collect();
        assert_eq!(
            told(&[row(&half), row(&always)]),
            [
                "from 1970-01-01T00:15:00Z to 1970-01-01T00:40:00Z, 1 of 2 pods were not measured, though they were before and after: give --since or --until that leave it out"
            ]
        );
        assert_eq!(
            told(&[row(&[5, 6, 7])]),
            [
                "nothing was measured before 1970-01-01T00:25:00Z: give a shorter --since",
                "nothing was measured after 1970-01-01T00:40:00Z: give --until"
            ]
        );
    }
}

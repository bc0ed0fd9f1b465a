//! The page.

use crate::sheet::{Sheet, Sheets};
use crate::wanted;
use loadline_replay::figures::Figures;
use loadline_replay::protect::WATERLINE_PERCENT;
use std::fmt::{Error, Write};

const HEAD: &str = "\
# Decision quality

What each policy would have done, by `loadline replay`. This page is written by `cargo xtask quality` from the data that is built in
([where it is from](../scenarios/replay/README.md)) and from nothing else; run it again and the same comes out. What the policies are is in
`loadline replay --help`; how a world is made, in [the guide](guide/replay.md). What of it was wanted and is met is [at the
end](#what-is-wanted-and-what-is-met).

1 000 pods in five days on nodes of 16 cores, of which the first day is not counted; three densities (how much of all nodes is used on
average), five seeds each. *Over 100 %* is the share of nodes' time in which more CPU was wanted than there is: the mean of the seeds,
and in brackets the least and the most. CPU only. All that fits by requests may be placed; where the rule of a policy allows no node,
the best of them is taken.

*Of requests* is time over 100 % beside requests only: the geometric mean over the worlds of the data set in which requests only was over
100 % for 0.1 % of the time or more. Less than 0.1 % counts as that. Not served, p99 and moves are means over densities and seeds.

![Time over 100 % beside requests only](pictures/quality.svg)

What these figures cannot say:

- The series of Google and PlanetLab are one day each, over and over. A policy that goes by the time of day (`day`, `day-growth`, `bursts`)
  has seen tomorrow there as soon as it has seen today. Only Bitbrains has a week, and days that differ.
- PlanetLab's machines hardly use anything: nobody is ever over 100 % for long, so it gives none of the worlds that count.
- Demand is replayed, not served work: a pod that got less CPU wants no more later.
- `slack` of rebalance was chosen among 14 variants on these very worlds of Bitbrains (seeds 1 to 5), so figures of `+rebalance` there may be better than on
  worlds nobody has looked at. On seeds 6 to 10, tried afterwards, `line+rebalance` was at 0.14 of requests only and 0.16 of crane with 0.08 moves per pod and
  day, and `line` alone at 0.89; until when what was learned counts for a pod was chosen among three lengths in the same way, and `learned+rebalance` was at 0.14 on seeds 6 to
  10 (`loadline replay --pods 1000 --days 5 --node-cores 16 --density 0.22 --seed 6 --seeds 5`, then 0.30 and 0.38).
";

/// Everything.
pub fn page(sheets: &Sheets) -> Result<String, Error> {
    let mut text = HEAD.to_owned();
    for sheet in &sheets.all {
        placed(&mut text, sheets, sheet)?;
    }
    fewest(&mut text, sheets)?;
    protection(&mut text, sheets)?;
    together(&mut text, sheets)?;
    wanted::write(&mut text, sheets)?;
    Ok(text)
}

fn placed(text: &mut String, sheets: &Sheets, sheet: &Sheet) -> Result<(), Error> {
    write!(text, "\n## {}: {}\n\n| policy |", sheet.data.name, sheet.data.about)?;
    for density in sheet.densities {
        write!(text, " over 100 %, {:.0} % used |", density * 100.0)?;
    }
    writeln!(
        text,
        " of requests | not served | p99 use | moves per pod and day |\n|---|---|---|---|---|---|---|---|"
    )?;
    for policy in &sheets.policies {
        let policy = policy.to_string();
        write!(text, "| {policy} |")?;
        for density in 0..sheet.densities.len() {
            write!(text, " {} |", spread(&sheet.at(density, &policy)))?;
        }
        writeln!(
            text,
            " {} | {:.2} % | {:.0} % | {:.2} |",
            ratio(sheet.beside(&policy, "requests").ratio()),
            sheet.mean(&policy, |f| f.not_served) * 100.0,
            sheet.mean(&policy, |f| f.p99_use) * 100.0,
            sheet.mean(&policy, |f| f.moves_per_pod_day)
        )?;
    }
    Ok(())
}

/// The mean, and the least and the most.
fn spread(figures: &[&Figures]) -> String {
    let mean = figures.iter().map(|f| f.over_full).sum::<f64>() / figures.len().max(1) as f64;
    let (least, most) = figures.iter().fold((f64::MAX, 0.0), |(least, most): (f64, f64), f| {
        (least.min(f.over_full), most.max(f.over_full))
    });
    format!("{:.2} % ({:.2} to {:.2})", mean * 100.0, least * 100.0, most * 100.0)
}

/// Two places, or a dash.
pub fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn fewest(text: &mut String, sheets: &Sheets) -> Result<(), Error> {
    writeln!(
        text,
        "\n## The fewest nodes at equal overload\n\nAs few nodes as are over 100 % for {:.0} % of their time or less, with at most 1 % of pods \
         waiting: the mean of five seeds, and beside it\nhow that compares with requests only. Pods must fit by their requests, so where people \
         ask for far too much it is requests that decide for\neverybody; here they guess better than above (σ = {}).\n",
        crate::VIOLATIONS * 100.0,
        crate::GUESS
    )?;
    write!(text, "| policy |")?;
    sheets.all.iter().try_for_each(|sheet| write!(text, " {} |", sheet.data.name))?;
    writeln!(text, "\n|---|{}", "---|".repeat(sheets.all.len()))?;
    for policy in &sheets.sparing {
        let policy = policy.to_string();
        write!(text, "| {policy} |")?;
        for sheet in &sheets.all {
            match (sheet.nodes(&policy), sheet.nodes("requests")) {
                (Some(mine), Some(theirs)) => {
                    write!(text, " {mine:.1} ({:+.0} %) |", (mine / theirs - 1.0) * 100.0)?;
                }
                (Some(mine), None) => write!(text, " {mine:.1} |")?,
                (None, _) => write!(text, " – |")?,
            }
        }
        text.push('\n');
    }
    Ok(())
}

fn protection(text: &mut String, sheets: &Sheets) -> Result<(), Error> {
    writeln!(
        text,
        "\n## Protection\n\nAgents slow pods down on nodes that want more than {WATERLINE_PERCENT} %, exactly as far as needed, by the engine of \
         `loadline agent`; *by all* is whom an\nagent that cannot tell how much is enough would have slowed down. Pods, added up over densities and \
         seeds; *over 100 % even so* is time\nin which more was wanted than there is after that.\n\n| data | policy | slowed down | by all | of \
         that | over 100 % | over 100 % even so |\n|---|---|---|---|---|---|---|"
    )?;
    for sheet in &sheets.all {
        for policy in sheets.policies.iter().filter(|policy| policy.protection) {
            let policy = policy.to_string();
            let (slowed, by_all) = slowed(sheet, &policy);
            writeln!(
                text,
                "| {} | {policy} | {slowed} | {by_all} | {} | {:.2} % | {:.2} % |",
                sheet.data.name,
                ratio((by_all > 0).then(|| slowed as f64 / by_all as f64)),
                sheet.mean(&policy, |f| f.over_full) * 100.0,
                sheet.mean(&policy, |f| f.protection.map_or(0.0, |p| p.over_full)) * 100.0
            )?;
        }
    }
    Ok(())
}

/// How many pods were slowed down, and would have been by acting on all.
pub fn slowed(sheet: &Sheet, policy: &str) -> (usize, usize) {
    let all = sheet.figures(policy);
    let all = || all.iter().filter_map(|figures| figures.protection);
    (all().map(|p| p.pods_slowed).sum(), all().map(|p| p.pods_slowed_by_all).sum())
}

fn together(text: &mut String, sheets: &Sheets) -> Result<(), Error> {
    let worlds = sheets.beside("requests", "requests").0.len();
    writeln!(
        text,
        "\n## All together\n\nTime over 100 % beside requests only: the geometric mean over the {worlds} worlds in which requests only was over \
         100 % for 0.1 % of the\ntime or more.\n\n| policy | of requests only | worlds in which it was worse |\n|---|---|---|"
    )?;
    for policy in sheets.policies.iter().filter(|policy| !policy.protection) {
        let logs = sheets.beside(&policy.to_string(), "requests");
        writeln!(text, "| {policy} | {} | {} of {worlds} |", ratio(logs.ratio()), logs.worse())?;
    }
    Ok(())
}

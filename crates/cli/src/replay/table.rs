//! The comparison for people.

use super::{Answer, PolicyAnswer};
use crate::out::{Detail, bold, dim};
use crate::table::{Align, Table};
use loadline_replay::figures::Figures;
use std::fmt;

pub struct Said<'a> {
    pub answer: &'a Answer,
    pub detail: Detail,
}

/// Two places after the point: a hundredth of a percent of a node's time is eight seconds a day.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// How much more the first policy would have to have, with its sign.
pub fn gained(one: &PolicyAnswer) -> String {
    one.capacity_gained.map_or_else(|| "-".to_owned(), |gained| format!("{:+.0} %", gained * 100.0))
}

fn whole(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// `3`, or `3 to 5` where seeds differ.
fn nodes(one: &PolicyAnswer) -> String {
    let all = || one.runs.iter().flatten().map(|figures| figures.nodes);
    match (all().min(), all().max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "-".to_owned(),
    }
}

/// The mean, and how far seeds are from each other.
fn spread(one: &PolicyAnswer, mean: f64, of: fn(&Figures) -> f64) -> String {
    let all = || one.runs.iter().flatten().map(of);
    let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
    if one.runs.len() < 2 {
        return percent(mean);
    }
    format!("{} ({:.2} to {:.2})", percent(mean), least * 100.0, most * 100.0)
}

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Answer { data, pods, days, node_cores, target, violations, seeds, policies, .. } = self.answer;
        let node_cores = match self.answer.largest_node_cores {
            Some(largest) => format!("{node_cores} to {largest}"),
            None => node_cores.to_string(),
        };
        let worlds = match seeds[..] {
            _ if self.answer.is_recorded => "as it was recorded".to_owned(),
            [seed] => format!("seed {seed}"),
            _ => format!("means of {} seeds", seeds.len()),
        };
        let same = policies.iter().all(|one| nodes(one) == nodes(&policies[0]));
        let on = match (violations, policies.first()) {
            (Some(rate), _) => {
                format!(
                    "as few nodes of {node_cores} cores as are over 100 % for {} of their time or less",
                    percent(*rate)
                )
            }
            (None, Some(first)) if same => format!("{} nodes of {node_cores} cores", nodes(first)),
            _ => format!("nodes of {node_cores} cores"),
        };
        let used = policies.first().and_then(|one| one.mean.as_ref()).filter(|_| violations.is_none());
        let used =
            used.map(|mean| format!(", used by {} on average", whole(mean.mean_use))).unwrap_or_default();
        writeln!(f, "{}", bold(&format!("{data}: {pods} pods in {days} days on {on}{used}")))?;
        let over = format!("OVER {}", whole(*target));
        let mut columns = vec![
            ("POLICY", Align::Left),
            ("NODES", Align::Right),
            ("OVER 100 %", Align::Right),
            (over.as_str(), Align::Right),
            ("NOT SERVED", Align::Right),
            ("P99 USE", Align::Right),
            ("PENDING", Align::Right),
            ("MOVED", Align::Right),
            ("DISTURBED", Align::Right),
        ];
        let protection = |one: &PolicyAnswer| one.mean.as_ref().and_then(|mean| mean.protection);
        let is_protected = policies.iter().any(|one| protection(one).is_some());
        if is_protected {
            columns.extend([("SLOWED", Align::Right), ("BY ALL", Align::Right)]);
        }
        if violations.is_some() {
            columns.push(("CAPACITY GAINED", Align::Right));
        }
        if self.detail == Detail::Wide {
            columns.push(("GOES BY", Align::Left));
        }
        let mut table = Table::of(&columns);
        for one in policies {
            let mut cells = vec![one.policy.clone(), nodes(one)];
            match &one.mean {
                Some(mean) => cells.extend([
                    spread(one, mean.over_full, |figures| figures.over_full),
                    percent(mean.over_target),
                    percent(mean.not_served),
                    whole(mean.p99_use),
                    mean.pods_pending.to_string(),
                    mean.moves.to_string(),
                    mean.pods_disturbed.to_string(),
                ]),
                None => cells.extend(std::iter::repeat_n("-".to_owned(), 7)),
            }
            if is_protected {
                let (slowed, by_all) = protection(one)
                    .map(|p| (p.pods_slowed.to_string(), p.pods_slowed_by_all.to_string()))
                    .unzip();
                cells.extend([slowed, by_all].map(|cell| cell.unwrap_or_else(|| "-".to_owned())));
            }
            if violations.is_some() {
                cells.push(gained(one));
            }
            if self.detail == Detail::Wide {
                cells.push(one.about.to_owned());
            }
            table.row(cells);
        }
        f.write_str(&table.render(2))?;
        let first = match self.answer.left_out {
            24 => "the first day".to_owned(),
            hours => format!("the first {hours} h"),
        };
        writeln!(f, "{}", dim(&format!("Shares of nodes' time, {first} left out; {worlds}.")))?;
        for note in &self.answer.notes {
            let end = if note.ends_with('?') { "" } else { "." };
            writeln!(f, "{}", dim(&format!("{note}{end}")))?;
        }
        Ok(())
    }
}

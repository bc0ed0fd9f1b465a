//! What was found, for people: what is wrong in full, what is right in a line.

use super::Answer;
use crate::out::{Detail, bold, dim};
use crate::table::{Align, Table};
use loadline_core::doctor::{Finding, Severity};
use std::fmt::Write as _;

pub fn render(answer: &Answer, detail: Detail) -> String {
    let mut text = String::new();
    for one in answer.findings.iter().filter(|one| one.severity != Severity::Ok) {
        finding(&mut text, one, detail);
    }
    let fine: Vec<&Finding> = answer.findings.iter().filter(|one| one.severity == Severity::Ok).collect();
    if !fine.is_empty() {
        let mut table = Table::new([("OK", Align::Left), ("WHAT", Align::Left)]);
        for one in fine {
            table.row([one.check.to_owned(), one.what.clone()]);
        }
        let _ = writeln!(text, "{}", table.render(0));
    }
    let count = |severity| answer.count(severity);
    let (broken, warnings, fine) = (count(Severity::Broken), count(Severity::Warning), count(Severity::Ok));
    let several = if warnings == 1 { "" } else { "s" };
    let _ = writeln!(text, "{broken} broken, {warnings} warning{several}, {fine} ok");
    text
}

fn finding(text: &mut String, one: &Finding, detail: Detail) {
    let severity = one.severity.to_string().to_uppercase();
    let _ = writeln!(text, "{} {}: {}", bold(&severity), one.check, one.what);
    for (name, value) in [("why", &one.why), ("do", &one.fix), ("show", &one.command)] {
        let _ = writeln!(text, "  {} {value}", dim(&format!("{name:<4}")));
    }
    if detail == Detail::Wide && !one.about.is_empty() {
        let _ = writeln!(text, "  {} {}", dim("of  "), one.about.join(", "));
    }
    text.push('\n');
}

//! The answer of `what-if protect` for people: which lines are passed, who is touched for it and who is not.

use super::Answer;
use crate::out::{Detail, bold};
use crate::table::{Align, Table};
use loadline_core::qos::gap::{Category, Gap};
use loadline_core::qos::{CpuQuota, Level, Plan, Steps};
use loadline_manifests::ProtectInput;
use std::fmt::Write as _;

/// Of more pods than this, only so many are shown, unless everything is asked for.
const SHOWN: usize = 20;

/// The whole answer.
pub fn render(answer: &Answer, detail: Detail) -> String {
    let Answer { input, plan, .. } = answer;
    let snapshot = &input.snapshot;
    let mut text = headline(input, plan);
    if !plan.rules.is_empty() {
        text.push_str(&rules(plan));
    }
    text.push_str(&steps(&plan.steps, detail));
    if let Some(preview) = &plan.preview {
        let _ = writeln!(text, "\n{}", bold("Preview: what the rules that only say would do"));
        text.push_str(&steps(preview, detail));
    }
    let closed = &plan.closed;
    if closed.present || snapshot.node.taints.len() != closed.taints.len() {
        let what = if closed.present { "closed for new pods" } else { "open for new pods again" };
        let _ = writeln!(text, "\n{} is {what}: {}", snapshot.node.name, closed.message);
    }
    text
}

fn headline(input: &ProtectInput, plan: &Plan) -> String {
    let node = bold(&input.snapshot.node.name);
    if plan.rules.is_empty() {
        let why = if input.policy.is_empty() {
            "has no rule"
        } else {
            "is selected by no NodeQOS, by the labels its Node has"
        };
        return format!("{node} {why}: nothing to do\n");
    }
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (writes, victims) = (&plan.steps.writes, plan.steps.victims.len());
    let pods = |category| {
        let mut all: Vec<_> = writes.iter().filter(|w| w.category == category).map(|w| &w.pod).collect();
        all.dedup();
        all.len()
    };
    let (down, up) = (pods(Category::ThrottleDown), pods(Category::ThrottleUp));
    let mut parts = Vec::new();
    if down > 0 {
        parts.push(format!("throttles {}", count(down, "pod")));
    }
    if !plan.steps.reclaims.is_empty() {
        parts.push(format!("asks {} for page cache", count(plan.steps.reclaims.len(), "pod")));
    }
    if victims > 0 {
        parts.push(format!("evicts {}", count(victims, "pod")));
    }
    if up > 0 {
        parts.push(format!("gives back to {}", count(up, "pod")));
    }
    if parts.is_empty() {
        parts.push("leaves every pod alone".to_owned());
    }
    let naive = plan.steps.naive.pods_disturbed;
    let compared = if naive > down + victims { format!(" (acting on all: {naive})") } else { String::new() };
    format!("{node} {}{compared}\n", bold(&parts.join(", ")))
}

fn rules(plan: &Plan) -> String {
    let mut table = Table::new([
        ("RULE", Align::Left),
        ("METRIC", Align::Left),
        ("LINE", Align::Right),
        ("ACTION", Align::Left),
        ("PHASE", Align::Left),
    ]);
    for rule in &plan.rules {
        table.row([
            rule.rule.to_string(),
            rule.metric.to_owned(),
            plain(rule.value, rule.unit),
            rule.action.to_string(),
            rule.phase.as_str().to_owned(),
        ]);
    }
    table.render(2)
}

fn steps(steps: &Steps, detail: Detail) -> String {
    let mut text = String::new();
    if !steps.targets.is_empty() {
        text.push_str("\n  how far it is:\n");
        text.push_str(&gaps(&steps.targets));
    }
    if !steps.credited.is_empty() {
        let names: Vec<String> =
            steps.credited.iter().map(|one| format!("{} ({})", one.pod, one.reason.as_str())).collect();
        let _ = writeln!(text, "  counted already: {}", names.join(", "));
    }
    if !steps.writes.is_empty() || !steps.reclaims.is_empty() || !steps.victims.is_empty() {
        text.push_str("\n  steps, in order:\n");
        text.push_str(&actions(steps));
    }
    for one in &steps.blocked {
        let _ = writeln!(text, "  not evicted: {} ({})", one.pod, one.reason.as_str());
    }
    for one in &steps.unclosed {
        let _ = writeln!(
            text,
            "  left open: {} of {}: {}",
            plain(one.left, unit(steps, one.metric)),
            one.metric,
            one.reason
        );
    }
    if detail == Detail::Wide {
        for (metric, pods) in &steps.order {
            let shown: Vec<String> = pods.iter().take(SHOWN).map(ToString::to_string).collect();
            let more = if pods.len() > SHOWN { ", …" } else { "" };
            let _ = writeln!(text, "  order by {metric}: {}{more}", shown.join(", "));
        }
        for (pod, why) in &steps.protected {
            let _ = writeln!(text, "  protected: {pod} ({})", why.as_str());
        }
    }
    text
}

fn gaps(targets: &[Gap]) -> String {
    let mut table = Table::new([
        ("TO", Align::Left),
        ("METRIC", Align::Left),
        ("USED", Align::Right),
        ("LINE", Align::Right),
        ("GAP", Align::Right),
        ("AFTER", Align::Right),
        ("UNIT", Align::Left),
    ]);
    for target in targets {
        let unit = target.metric.unit;
        let known =
            |level: Option<Level>| level.map_or_else(|| "unknown".to_owned(), |level| plain(level, unit));
        // Used and line are in the metric's own unit, which for shares is another.
        let own = if target.metric.percent { "%" } else { unit };
        let of_metric =
            |level: Option<Level>| level.map_or_else(|| "unknown".to_owned(), |level| plain(level, own));
        let lowest = target.bounds.first();
        table.row([
            target.category.as_str().to_owned(),
            target.metric.name.to_owned(),
            of_metric(target.used),
            of_metric(lowest.map(|bound| bound.value)),
            known(lowest.and_then(|bound| bound.before)),
            known(target.gap()),
            target.metric.unit.to_owned(),
        ]);
    }
    table.render(2)
}

fn actions(steps: &Steps) -> String {
    let mut table = Table::new([
        ("POD", Align::Left),
        ("STEP", Align::Left),
        ("MOVES", Align::Right),
        ("GAP", Align::Right),
        ("AFTER", Align::Right),
        ("BECAUSE OF", Align::Left),
    ]);
    let known = |level: Option<Level>, unit: &str| {
        level.map_or_else(|| "unknown".to_owned(), |level| plain(level, unit))
    };
    for write in &steps.writes {
        let to = match write.quota {
            CpuQuota::Us(us) => format!("{us} of {} µs", write.period_us),
            _ => "unlimited".to_owned(),
        };
        table.row([
            write.pod.to_string(),
            format!("{} quota {to}", write.container),
            plain(write.moved, "millicores"),
            known(write.before, "millicores"),
            known(write.after, "millicores"),
            write.rule.to_string(),
        ]);
    }
    for one in &steps.reclaims {
        // What comes of it nobody knows, so it moves no gap.
        let none = || "-".to_owned();
        let step = format!("ask for {} of page cache", plain(Level::whole(one.bytes), "bytes"));
        let because = format!("{} on {}", one.rule, one.metric);
        table.row([one.pod.to_string(), step, none(), none(), none(), because]);
    }
    for victim in &steps.victims {
        let unit = unit(steps, victim.metric);
        table.row([
            victim.pod.to_string(),
            "evict".to_owned(),
            plain(victim.release.get(victim.metric).copied().unwrap_or_default(), unit),
            known(victim.before, unit),
            known(victim.after, unit),
            format!("{} on {}", victim.rule, victim.metric),
        ]);
    }
    table.render(2)
}

/// An amount without needless digits; bytes in the largest unit that leaves something before the point.
fn plain(level: Level, unit: &str) -> String {
    let value = level.to_f64();
    let (value, suffix) = if unit == "bytes" { scaled(value) } else { (value, "") };
    let digits = usize::from((value - value.round()).abs() >= 0.05);
    format!("{value:.digits$}{suffix}")
}

fn scaled(bytes: f64) -> (f64, &'static str) {
    let mut value = bytes;
    for suffix in ["", "Ki", "Mi", "Gi"] {
        if value.abs() < 1024.0 {
            return (value, suffix);
        }
        value /= 1024.0;
    }
    (value, "Ti")
}

/// The unit of a metric among these.
fn unit(steps: &Steps, metric: &str) -> &'static str {
    let of = steps.targets.iter().find(|target| target.metric.name == metric);
    of.map_or("", |target| target.metric.unit)
}

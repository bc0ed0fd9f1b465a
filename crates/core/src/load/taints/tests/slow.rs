//! The obvious way: one place after the other is given to whoever deserves it most, by whole percents.

use std::collections::BTreeMap;

/// A node: load and limit in percent, what it bears (1 high, 2 over) and since which second, whether it takes pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    pub load: Option<(i128, i128)>,
    pub held: Option<(u8, i64)>,
    pub open: bool,
}

/// Lines, hysteresis and share in percent, dwell in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    pub soft: i128,
    pub hard: i128,
    pub hysteresis: i128,
    pub dwell: i64,
    pub share: usize,
}

/// What each node bears then: 0 for nothing.
pub fn decide(nodes: &BTreeMap<String, Spot>, law: Law, now: i64) -> BTreeMap<String, u8> {
    let mut out: BTreeMap<String, u8> = nodes.keys().map(|name| (name.clone(), 0)).collect();
    let mut waiting: BTreeMap<&String, u8> = BTreeMap::new();
    for (name, spot) in nodes {
        let grade = alone(spot, law, now);
        if spot.open && grade > 0 {
            waiting.insert(name, grade);
        } else {
            out.insert(name.clone(), grade);
        }
    }
    let open = nodes.values().filter(|spot| spot.open).count();
    let mut places = (open * law.share / 100).max(1).min(open.saturating_sub(1));
    if law.share == 0 {
        places = 0;
    }
    for _ in 0..places {
        let mut best: Option<&String> = None;
        for name in waiting.keys().copied() {
            if best.is_none_or(|other| beats(name, other, nodes, &waiting, law, now)) {
                best = Some(name);
            }
        }
        let Some(name) = best else { break };
        out.insert(name.clone(), waiting.remove(name).unwrap_or(0));
    }
    out
}

fn fresh(spot: &Spot, law: Law, now: i64) -> bool {
    spot.held.is_some_and(|(_, since)| now < since + law.dwell)
}

fn alone(spot: &Spot, law: Law, now: i64) -> u8 {
    let held = spot.held.map_or(0, |(grade, _)| grade);
    let stay = if fresh(spot, law, now) { held } else { 0 };
    let Some((value, limit)) = spot.load.filter(|_| spot.open) else { return stay };
    // In ten-thousandths of the limit, multiplied by the limit.
    let heat = value * 10_000;
    let above = |line: i128| heat > limit * line * 100;
    let clear = |line: i128| heat < limit * line * (100 - law.hysteresis);
    let mut grade = 0;
    if above(law.soft) || (held >= 1 && !clear(law.soft)) {
        grade = 1;
    }
    if above(law.hard) || (held == 2 && !clear(law.hard)) {
        grade = 2;
    }
    grade.max(stay)
}

fn beats(
    name: &String,
    other: &String,
    nodes: &BTreeMap<String, Spot>,
    grades: &BTreeMap<&String, u8>,
    law: Law,
    now: i64,
) -> bool {
    let (a, b) = (&nodes[name], &nodes[other]);
    if fresh(a, law, now) != fresh(b, law, now) {
        return fresh(a, law, now);
    }
    if grades[name] != grades[other] {
        return grades[name] > grades[other];
    }
    let counts = |spot: &Spot| {
        let (value, limit) = spot.load?;
        Some((value * 100, limit * if spot.held.is_some() { 100 - law.hysteresis } else { 100 }))
    };
    let (left, right) = match (counts(a), counts(b)) {
        (Some((heat, of)), Some((other, its))) => (heat * its, other * of),
        (x, y) => (i128::from(x.is_some()), i128::from(y.is_some())),
    };
    if left != right {
        return left > right;
    }
    if a.held.is_some() != b.held.is_some() {
        return a.held.is_some();
    }
    name < other
}

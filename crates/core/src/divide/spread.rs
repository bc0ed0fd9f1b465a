//! Which of the clusters that could have it? By the spread constraints.
//!
//! By cluster, the first so many are taken, and exchanged for roomier ones until all replicas fit. By region, zone,
//! provider or label, the best groups are chosen, each gives its first cluster, and the rest is filled up in order.
//! Several such constraints are kept one inside the other, from the coarsest to the finest. Where the clusters of the
//! best groups have not enough room, the next best groups are tried.

use super::estimates::Candidate;
use super::groups::{self, Choices, Region, Wanted};
use super::outcome::{Answer, Failure};
use super::{By, Case, Division, Shortfall};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// So many combinations of groups are tried for room, all constraints together.
const TRIES: usize = 64;

/// A constraint in usable numbers.
#[derive(Clone, Debug)]
struct Limit {
    by: By,
    min: usize,
    max: usize,
}

impl Case<'_> {
    /// Positions of the clusters chosen, in order.
    pub fn select(&self, candidates: &[Candidate<'_>], answer: &mut Answer) -> Result<Vec<usize>, Failure> {
        let spread = &self.placement.spread;
        if spread.is_empty() || ignores(&self.placement.division) {
            return Ok((0..candidates.len()).collect());
        }
        let mut limits = if self.given.options.upstream { self.original() } else { self.limits()? };
        let cluster = limits.iter().position(|limit| limit.by == By::Cluster).map(|at| limits.remove(at));
        if limits.is_empty() {
            let Some(cluster) = cluster else {
                return Err(Failure::Spread("just support cluster and region spread constraint".into()));
            };
            return self.by_cluster(candidates, &cluster);
        }
        let unlimited = if self.given.options.upstream { 0 } else { usize::MAX };
        let cluster = cluster.unwrap_or(Limit { by: By::Cluster, min: 0, max: unlimited });
        let mut search = Search {
            case: self,
            candidates,
            limits: &limits,
            cluster: &cluster,
            tries: TRIES,
            roomless: None,
            problem: None,
            plain: false,
            cut: false,
        };
        let found = search.within(0, &(0..candidates.len()).collect::<Vec<_>>(), &mut Vec::new());
        if search.plain {
            answer
                .warnings
                .push("too many groups to weigh every combination: the highest scores are taken".into());
        }
        if search.cut && found.is_none() {
            let told = format!(
                "{TRIES} combinations of groups were tried and have no room for all replicas; there are more, which were not tried"
            );
            answer.warnings.push(told.clone());
            answer.limit = Some(told);
        }
        match found.or(search.roomless).filter(|found| !found.is_empty()) {
            Some(found) => Ok(found),
            None => Err(Failure::Spread(search.problem.unwrap_or_else(|| {
                "the number of clusters is less than the cluster spreadConstraint.MinGroups".into()
            }))),
        }
    }

    /// Is capacity looked at, and how much is needed?
    fn needed(&self) -> Option<i64> {
        (self.placement.division != Division::Duplicated).then(|| self.need().into())
    }

    /// The constraints, coarsest first, checked.
    fn limits(&self) -> Result<Vec<Limit>, Failure> {
        let mut out: Vec<Limit> = Vec::new();
        for spread in &self.placement.spread {
            let name = name(&spread.by);
            let wrong = |problem: String| Failure::Error(format!("spread constraint by {name}: {problem}"));
            if spread.by == By::Unsaid {
                return Err(wrong("expected spreadByField or spreadByLabel".into()));
            }
            if out.iter().any(|known| known.by == spread.by) {
                return Err(wrong("given more than once".into()));
            }
            let (Ok(min), Ok(max)) = (usize::try_from(spread.min), usize::try_from(spread.max)) else {
                return Err(wrong("minGroups and maxGroups must not be negative".into()));
            };
            if max > 0 && max < min {
                return Err(wrong(format!("maxGroups {max} is less than minGroups {min}")));
            }
            let max = if max == 0 { usize::MAX } else { max };
            out.push(Limit { by: spread.by.clone(), min: min.max(1), max });
        }
        out.sort_by_key(|limit| rank(&limit.by));
        if let Some(cluster) = out.iter().find(|limit| limit.by == By::Cluster)
            && let Some(more) = out.iter().find(|limit| limit.min > cluster.max)
        {
            let problem = format!(
                "at least {} different in {} do not go into at most {} clusters",
                more.min,
                name(&more.by),
                cluster.max
            );
            return Err(Failure::Spread(problem));
        }
        Ok(out)
    }

    /// What Karmada makes of them: regions and clusters only, nothing checked, no maximum is a maximum of none.
    fn original(&self) -> Vec<Limit> {
        let count = |n: i64| usize::try_from(n).unwrap_or(0);
        let last = |by: &By| self.placement.spread.iter().rfind(|spread| spread.by == *by);
        [By::Region, By::Cluster]
            .into_iter()
            .filter_map(|by| last(&by).map(|s| Limit { by, min: count(s.min), max: count(s.max) }))
            .collect()
    }

    fn by_cluster(&self, candidates: &[Candidate<'_>], limit: &Limit) -> Result<Vec<usize>, Failure> {
        let all = candidates.len();
        if all < limit.min {
            let problem = "the number of feasible clusters is less than spreadConstraint.MinGroups";
            return Err(Failure::Spread(problem.into()));
        }
        let count = all.min(limit.max);
        let mut picked: Vec<usize> = (0..count).collect();
        let Some(need) = self.needed() else { return Ok(picked) };
        let room = |at: usize| candidates[at].available;
        let mut sum: i64 = picked.iter().map(|at| room(*at)).sum();
        if sum >= need && !picked.is_empty() {
            return Ok(picked);
        }
        // The roomiest outsider, the earliest among equals.
        let mut outside: BinaryHeap<_> = (count..all).map(|at| (room(at), Reverse(at), at)).collect();
        for place in picked.iter_mut().rev() {
            if sum >= need {
                break;
            }
            let Some((most, slot, at)) = outside.peek().copied() else { break };
            if most > room(*place) {
                outside.pop();
                outside.push((room(*place), slot, *place));
                sum += most - room(*place);
                *place = at;
            }
        }
        let partial = self.given.options.shortfall == Shortfall::Partial;
        if picked.is_empty() || sum < need && !partial {
            return Err(Failure::Spread(format!("no enough resource when selecting {count} clusters")));
        }
        Ok(picked)
    }
}

/// Static weights look at no constraint.
fn ignores(division: &Division) -> bool {
    match division {
        Division::Weighted(None) => true,
        Division::Weighted(Some(weights)) => !weights.dynamic && !weights.fixed.is_empty(),
        _ => false,
    }
}

fn rank(by: &By) -> u8 {
    match by {
        By::Provider => 0,
        By::Region => 1,
        By::Zone => 2,
        By::Label(_) => 3,
        By::Cluster | By::Unsaid => 4,
    }
}

fn name(by: &By) -> &str {
    match by {
        By::Cluster => "cluster",
        By::Region => "region",
        By::Zone => "zone",
        By::Provider => "provider",
        By::Label(key) => key,
        By::Unsaid => "nothing",
    }
}

/// Looking for groups, constraint by constraint.
struct Search<'s, 'a> {
    case: &'s Case<'a>,
    candidates: &'s [Candidate<'a>],
    limits: &'s [Limit],
    cluster: &'s Limit,
    tries: usize,
    /// The first choice that kept the constraints but has not enough room.
    roomless: Option<Vec<usize>>,
    problem: Option<String>,
    /// There were too many groups to weigh combinations.
    plain: bool,
    /// There were combinations left when no more were tried.
    cut: bool,
}

impl<'s> Search<'s, '_> {
    /// Chooses groups for the constraints from `level` on, among these clusters.
    fn within(
        &mut self,
        level: usize,
        among: &[usize],
        chosen: &mut Vec<Vec<Vec<usize>>>,
    ) -> Option<Vec<usize>> {
        let Some(limit) = self.limits.get(level) else { return self.fill(among, chosen) };
        let groups = self.groups(limit, among);
        if groups.len() < limit.min {
            let what = name(&limit.by);
            self.problem.get_or_insert_with(|| {
                format!("the number of feasible {what} is less than spreadConstraint.MinGroups")
            });
            return None;
        }
        let regions: Vec<Region<'_>> = groups
            .iter()
            .map(|(name, members)| Region {
                name,
                clusters: i64::try_from(members.len()).unwrap_or(i64::MAX),
                score: self.score(members, limit.min),
            })
            .collect();
        let wanted = Wanted {
            min: limit.min,
            max: limit.max,
            clusters: i64::try_from(self.cluster.min).unwrap_or(i64::MAX),
        };
        let members: Vec<&Vec<usize>> = groups.values().collect();
        let mut choices = Choices::new(&regions, wanted);
        let mut next = if let Some(choices) = &mut choices {
            let first = choices.first();
            // The first is cut short; from here on all are taken as they are listed.
            choices.restart();
            first
        } else {
            self.plain = true;
            groups::plainly(&regions, wanted)
        };
        while let Some(picked) = next {
            let picked: Vec<Vec<usize>> = picked.into_iter().map(|at| members[at].clone()).collect();
            let inside: FixedBitSet = picked.iter().flatten().copied().collect();
            let inside: Vec<usize> = inside.ones().collect();
            chosen.push(picked);
            let found = self.within(level + 1, &inside, chosen);
            chosen.pop();
            if found.is_some() || self.case.given.options.upstream {
                return found;
            }
            self.tries = self.tries.saturating_sub(1);
            next = choices.as_mut().and_then(Iterator::next);
            if self.tries == 0 && next.is_some() {
                self.cut = true;
                return None;
            }
        }
        None
    }

    /// Clusters by what they are told apart by; each in order.
    fn groups(&self, limit: &Limit, among: &[usize]) -> BTreeMap<&'s str, Vec<usize>> {
        // Names are few and clusters many: they are brought into order at the end.
        let mut out: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for at in among {
            let member = self.candidates[*at].member;
            let mut put = |name: &'s str| {
                let group = out.entry(name).or_default();
                // A zone may be listed twice.
                if group.last() != Some(at) {
                    group.push(*at);
                }
            };
            match &limit.by {
                By::Region => put(&member.region),
                By::Provider => put(&member.provider),
                By::Zone => member.zones.iter().for_each(|zone| put(zone)),
                By::Label(key) => member.labels.get(key).into_iter().for_each(|value| put(value)),
                By::Cluster | By::Unsaid => put(&member.name),
            }
        }
        out.into_iter().collect()
    }

    /// How good a group is: how many replicas it takes of its share, then how many of its clusters have some already.
    fn score(&self, members: &[usize], min: usize) -> i64 {
        let replicas = i64::from(self.case.need());
        let clusters = || members.iter().map(|at| &self.candidates[*at]);
        if self.case.placement.division == Division::Duplicated {
            let valid = || clusters().filter(|candidate| candidate.available >= replicas);
            let (count, sum) = (valid().map(|_| 1).sum::<i64>(), valid().map(|c| c.score).sum::<i64>());
            return if count == 0 { 0 } else { 1000 * count + sum / count };
        }
        let groups = i64::try_from(min).unwrap_or(i64::MAX).max(1);
        let share = replicas / groups + i64::from(replicas % groups != 0);
        let least = min.max(self.cluster.min);
        let (mut room, mut sum, mut taken) = (0_i64, 0, 0_usize);
        for candidate in clusters() {
            room = room.saturating_add(candidate.available);
            sum += candidate.score;
            taken += 1;
            if taken >= least && room >= share {
                break;
            }
        }
        let mean = |count: usize| sum / i64::try_from(count).unwrap_or(i64::MAX).max(1);
        if room < share { 1000 * room + mean(members.len()) } else { 1000 * share + mean(taken) }
    }

    /// One cluster of each group chosen, then more in order, as many as may be.
    fn fill(&mut self, among: &[usize], chosen: &[Vec<Vec<usize>>]) -> Option<Vec<usize>> {
        let upstream = self.case.given.options.upstream;
        let allowed: FixedBitSet = among.iter().copied().collect();
        let mut picked: Vec<usize> = Vec::new();
        let mut taken = FixedBitSet::with_capacity(self.candidates.len());
        for group in chosen.iter().flatten() {
            if group.iter().any(|at| taken.contains(*at)) {
                continue;
            }
            // Another constraint may have left nothing of this group.
            let first = *group.iter().find(|at| allowed.contains(**at))?;
            picked.push(first);
            taken.insert(first);
        }
        if !upstream && picked.len() > self.cluster.max {
            self.problem
                .get_or_insert_with(|| format!("the groups need more than {} clusters", self.cluster.max));
            return None;
        }
        let room = self.cluster.max.saturating_sub(picked.len());
        picked.extend(among.iter().copied().filter(|at| !taken.contains(*at)).take(room));
        if !upstream && picked.len() < self.cluster.min {
            return None;
        }
        let sum: i64 = picked.iter().map(|at| self.candidates[*at].available).sum();
        if upstream || self.case.needed().is_none_or(|need| sum >= need) {
            return Some(picked);
        }
        self.roomless.get_or_insert(picked);
        None
    }
}

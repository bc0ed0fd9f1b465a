//! A slow, obvious division, written from `docs/division-differences.md` and `docs/guide/divide.md` and from nothing else: it
//! shares types with the engine and no line of code. Every combination of groups is listed, every replica handed out one by
//! one. How many replicas fit by the sums of a cluster is given, as that is compared elsewhere.

#![allow(
    clippy::panic,
    clippy::needless_for_each,
    clippy::needless_pass_by_value,
    clippy::single_match_else,
    reason = "it is to be read, and a question nobody thought of fails the test"
)]

use loadline_core::divide::{
    Affinity, Binding, By, Division, Estimator, Group, Member, Mode, Opinion, Options, Placement, Shortfall,
};
use loadline_core::select::label::Expression;
use loadline_core::select::taint::{Effect, Operator};
use loadline_core::select::{LabelSelector, Taint, Toleration};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What is asked.
#[derive(Clone)]
pub struct Question<'a> {
    pub members: &'a [Member],
    pub binding: &'a Binding,
    /// What the sums of each cluster allow: replicas, or complete sets of components.
    pub sums: BTreeMap<String, i32>,
    pub estimators: &'a [Estimator],
    /// Numbers that stand for all estimates of a cluster.
    pub replaced: BTreeMap<String, i32>,
    pub options: Options,
}

/// What should come out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// Replicas by cluster; `None` for what is not divided.
    pub clusters: BTreeMap<String, Option<i64>>,
    pub reason: &'static str,
    pub message: String,
    pub shortfall: i64,
    pub affinity: Option<String>,
    /// In the order of choosing: name, tier, how many more fit, and with what is there.
    pub feasible: Vec<(String, usize, i64, i64)>,
}

/// A cluster that may have it.
#[derive(Clone, Debug)]
struct Cluster<'a> {
    member: &'a Member,
    tier: usize,
    /// It is there already, with perhaps no replicas.
    there: bool,
    has: i64,
    fits: i64,
    available: i64,
    confirmed: bool,
}

type Failure = (&'static str, String);

const DONE: &str = "Binding has been scheduled successfully.";

pub fn expected(q: &Question<'_>) -> Expected {
    let failed = |(reason, message): Failure| Expected {
        reason,
        message,
        shortfall: q.wanted(),
        ..Expected::default()
    };
    let Some(placement) = &q.binding.placement else {
        return failed(("SchedulerError", "the binding has no placement".into()));
    };
    if q.binding.replicas < 0 {
        let message = format!("spec.replicas: expected 0 or more, found {}", q.binding.replicas);
        return failed(("SchedulerError", message));
    }
    if placement.affinity.is_some() && !placement.groups.is_empty() {
        let message = "placement: clusterAffinity and clusterAffinities exclude each other";
        return failed(("SchedulerError", message.into()));
    }
    if placement.groups.is_empty() {
        return q.attempt(placement, None);
    }
    // From the group it is in, and from the first if it is to be divided anew.
    let known = placement.groups.iter().position(|group| group.name == q.binding.observed).unwrap_or(0);
    let from = if q.anew() { 0 } else { known };
    let mut first = None;
    for group in &placement.groups[from..] {
        let mut out = q.attempt(placement, Some(group));
        if out.reason == "Success" {
            out.affinity = Some(group.name.clone());
            return out;
        }
        first.get_or_insert(out);
    }
    first.expect("there is a group")
}

impl Question<'_> {
    fn anew(&self) -> bool {
        match (self.binding.rescheduled, self.binding.scheduled) {
            (Some(asked), Some(done)) => asked > done,
            _ => false,
        }
    }

    fn sets(&self) -> bool {
        !self.binding.components.is_empty()
    }

    /// How many must fit in what is chosen.
    fn need(&self) -> i64 {
        if self.sets() { 1 } else { self.binding.replicas.into() }
    }

    /// How many are to be assigned in all, where they are divided.
    fn wanted(&self) -> i64 {
        let divided = self
            .binding
            .placement
            .as_ref()
            .is_some_and(|placement| placement.division != Division::Duplicated);
        if divided && !self.sets() { self.binding.replicas.max(0).into() } else { 0 }
    }

    fn attempt(&self, placement: &Placement, group: Option<&Group>) -> Expected {
        let mut by_name: BTreeMap<&str, &Member> = BTreeMap::new();
        for member in self.members {
            by_name.entry(&member.name).or_insert(member);
        }
        let all = by_name.len();
        let mut refused: BTreeMap<String, usize> = BTreeMap::new();
        let mut clusters = Vec::new();
        for member in by_name.into_values().filter(|member| !member.deleting) {
            match self.tier(placement, group, member) {
                Ok(tier) => clusters.push(self.estimated(member, tier)),
                Err(why) => *refused.entry(why).or_default() += 1,
            }
        }
        // Part of a set does not run: where none fits and none is, it does not go.
        let full = |one: &Cluster<'_>| self.sets() && one.fits <= 0 && !one.there;
        let roomless = clusters.iter().any(full);
        clusters.retain(|one| !full(one));
        clusters.sort_by_key(|one| {
            (one.tier, !one.there, !one.confirmed, Reverse(one.available), one.member.name.clone())
        });
        let mut out = Expected { shortfall: self.wanted(), ..Expected::default() };
        if clusters.is_empty() && roomless {
            (out.reason, out.message) = ("Unschedulable", short(0));
            return out;
        }
        if clusters.is_empty() {
            let mut told: Vec<String> = refused.iter().map(|(why, count)| format!("{count} {why}")).collect();
            told.sort();
            let told = if told.is_empty() { "no cluster exists".to_owned() } else { told.join(", ") };
            out.reason = "NoClusterFit";
            out.message = format!("0/{all} clusters are available: {told}.");
            return out;
        }
        let told = |one: &Cluster<'_>| (one.member.name.to_string(), one.tier, one.fits, one.available);
        out.feasible = clusters.iter().map(told).collect();
        let overflow = group.is_some_and(|group| !group.overflow.is_empty());
        let chosen = self.selected(placement, &clusters);
        match chosen.and_then(|chosen| self.assigned(placement, &chosen, overflow)) {
            Ok((targets, lacking)) => {
                out.clusters = targets;
                out.reason = "Success";
                out.message = DONE.into();
                out.shortfall = 0;
                if let Some((left, room)) = lacking {
                    out.shortfall = left;
                    out.message = format!("{DONE} {left} replicas are left over: {}", short(room));
                }
            }
            Err((reason, message)) => (out.reason, out.message) = (reason, message),
        }
        out
    }

    /// The tier of a cluster, or why it may not have it.
    fn tier(&self, placement: &Placement, group: Option<&Group>, member: &Member) -> Result<usize, String> {
        let binding = self.binding;
        if binding.evicting.contains(&*member.name) {
            return Err("cluster(s) is in the process of eviction".into());
        }
        let runs_pods = binding.replicas > 0 || binding.ask.is_some() || self.sets();
        let mut meant: Vec<&Affinity> = placement.affinity.iter().collect();
        if let Some(group) = group {
            meant = vec![&group.affinity];
            if runs_pods {
                meant.extend(&group.overflow);
            }
        }
        let tier = if meant.is_empty() { Some(0) } else { meant.iter().position(|one| means(one, member)) };
        let Some(tier) = tier else {
            return Err("cluster(s) did not match the placement cluster affinity constraint".into());
        };
        if !binding.clusters.iter().any(|known| known.name == *member.name) {
            let repels = |taint: &&Taint| {
                matches!(taint.effect, Effect::NoSchedule | Effect::NoExecute)
                    && !placement.tolerations.iter().any(|one| tolerates(one, taint))
            };
            if let Some(taint) = member.taints.iter().find(repels) {
                return Err(format!("cluster(s) had untolerated taint {{{taint}}}"));
            }
            let kinds = member.apis.get(&binding.resource.api_version);
            if !kinds.is_some_and(|kinds| kinds.contains(&binding.resource.kind)) {
                return Err("cluster(s) did not have the API resource".into());
            }
        }
        for spread in &placement.spread {
            let lacks = match &spread.by {
                By::Provider => member.provider.is_empty().then_some("provider property".to_owned()),
                By::Region => member.region.is_empty().then_some("region property".to_owned()),
                By::Zone => member.zones.is_empty().then_some("zones property".to_owned()),
                By::Label(key) => (!member.labels.contains_key(key)).then(|| format!("the label {key}")),
                By::Cluster | By::Unsaid => None,
            };
            if let Some(what) = lacks {
                return Err(format!("cluster(s) did not have {what}"));
            }
        }
        Ok(tier)
    }

    /// What an estimator says counts alone where one says anything; one that failed is not heard for that cluster.
    fn estimated<'a>(&self, member: &'a Member, tier: usize) -> Cluster<'a> {
        let name = &*member.name;
        let known = self.binding.clusters.iter().find(|known| known.name == name);
        let has = i64::from(known.map_or(0, |known| known.replicas.max(0)));
        let mut confirmed = true;
        let counted = self.binding.replicas > 0 || self.sets();
        let mut fits = i64::from(i32::MAX);
        if counted {
            if let Some(count) = self.replaced.get(name) {
                fits = i64::from(*count).max(0);
            } else {
                let opinions = || self.estimators.iter().filter_map(|one| one.opinions.get(name));
                let said = opinions().filter_map(|opinion| match opinion {
                    Opinion::Count(-1) | Opinion::Failed(_) => None,
                    Opinion::Count(count) => Some(i64::from(*count).max(0)),
                });
                let (said, sums) = (said.min(), i64::from(self.sums[name]));
                fits = match (self.options.mode, said) {
                    (Mode::General, _) | (_, None) => sums,
                    (Mode::AccurateFirst, Some(said)) => said,
                    (Mode::Min, Some(said)) => said.min(sums),
                };
                let failed = opinions().any(|opinion| matches!(opinion, Opinion::Failed(_)));
                confirmed = self.options.mode == Mode::General || said.is_some() || !failed;
            }
            if fits == i64::from(i32::MAX) {
                fits = self.need();
            }
        }
        let mut available = fits + has;
        if self.binding.changed && counted {
            (available, fits) = (fits, (fits - has).max(0));
        }
        Cluster { member, tier, there: known.is_some(), has, fits, available, confirmed }
    }

    /// Which clusters, by the spread constraints.
    fn selected<'a>(
        &self,
        placement: &Placement,
        clusters: &[Cluster<'a>],
    ) -> Result<Vec<Cluster<'a>>, Failure> {
        let fixed = match &placement.division {
            Division::Weighted(None) => true,
            Division::Weighted(Some(weights)) => !weights.dynamic && !weights.fixed.is_empty(),
            _ => false,
        };
        if placement.spread.is_empty() || fixed {
            return Ok(clusters.to_vec());
        }
        let mut limits = limits(placement)?;
        let cluster = limits.iter().position(|limit| limit.by == By::Cluster).map(|at| limits.remove(at));
        let need = (placement.division != Division::Duplicated).then(|| self.need());
        if let (Some(cluster), true) = (&cluster, limits.is_empty()) {
            return self.by_cluster(clusters, cluster, need);
        }
        let cluster = cluster.unwrap_or(Limit { by: By::Cluster, min: 0, max: usize::MAX });
        let mut search = Search {
            question: self,
            limits: &limits,
            cluster: &cluster,
            need,
            roomless: None,
            problem: None,
        };
        let found = search.choose(0, clusters.to_vec(), &mut Vec::new());
        match found.or(search.roomless) {
            Some(found) => Ok(found),
            None => Err((
                "Unschedulable",
                search.problem.unwrap_or_else(|| {
                    "the number of clusters is less than the cluster spreadConstraint.MinGroups".into()
                }),
            )),
        }
    }

    /// The first so many, the last of them exchanged for the roomiest outsider until all replicas fit.
    fn by_cluster<'a>(
        &self,
        clusters: &[Cluster<'a>],
        limit: &Limit,
        need: Option<i64>,
    ) -> Result<Vec<Cluster<'a>>, Failure> {
        if clusters.len() < limit.min {
            let message = "the number of feasible clusters is less than spreadConstraint.MinGroups";
            return Err(("Unschedulable", message.into()));
        }
        let count = clusters.len().min(limit.max);
        let (mut inside, mut outside) = (clusters[..count].to_vec(), clusters[count..].to_vec());
        let Some(need) = need else { return Ok(inside) };
        for place in (0..count).rev() {
            if room(&inside) >= need {
                break;
            }
            let most = outside.iter().map(|one| one.available).max();
            let Some(at) = outside.iter().position(|one| Some(one.available) == most) else { break };
            if outside[at].available > inside[place].available {
                std::mem::swap(&mut inside[place], &mut outside[at]);
            }
        }
        if room(&inside) < need && self.options.shortfall == Shortfall::Fail {
            return Err(("Unschedulable", format!("no enough resource when selecting {count} clusters")));
        }
        Ok(inside)
    }

    /// Replicas by cluster, and if not all fit, how many are left and how many would.
    #[allow(clippy::type_complexity, reason = "read once")]
    fn assigned(
        &self,
        placement: &Placement,
        chosen: &[Cluster<'_>],
        overflow: bool,
    ) -> Result<(BTreeMap<String, Option<i64>>, Option<(i64, i64)>), Failure> {
        let name = |one: &Cluster<'_>| one.member.name.to_string();
        if self.sets() || self.binding.replicas == 0 && self.binding.ask.is_none() {
            return Ok((chosen.iter().map(|one| (name(one), None)).collect(), None));
        }
        let wanted = i64::from(self.binding.replicas);
        let (mut shares, mut lacking) = (BTreeMap::new(), None);
        if overflow {
            let tiers: BTreeSet<usize> = chosen.iter().map(|one| one.tier).collect();
            let (mut left, mut all) = (wanted, 0);
            for tier in tiers {
                let inside: Vec<Cluster<'_>> =
                    chosen.iter().filter(|one| one.tier == tier).cloned().collect();
                let take = left.min(room(&inside));
                all += room(&inside);
                shares.extend(self.divided(placement, &inside, take)?.0);
                left -= take;
                if left == 0 {
                    break;
                }
            }
            if left > 0 {
                lacking = Some(self.lacks(left, all)?);
            }
        } else {
            (shares, lacking) = self.divided(placement, chosen, wanted)?;
        }
        let targets = chosen.iter().map(|one| (name(one), shares.get(&name(one)).copied().unwrap_or(0)));
        let kept = targets.filter(|(_, count)| *count > 0 || self.options.empty);
        Ok((kept.map(|(name, count)| (name, Some(count))).collect(), lacking))
    }

    /// Not all fit, which is a failure unless part of it will do.
    fn lacks(&self, left: i64, room: i64) -> Result<(i64, i64), Failure> {
        let something = room > 0 || self.binding.clusters.iter().any(|known| known.replicas > 0);
        if self.options.shortfall == Shortfall::Partial && something {
            Ok((left, room))
        } else {
            Err(("Unschedulable", short(room)))
        }
    }

    #[allow(clippy::type_complexity, reason = "read once")]
    fn divided(
        &self,
        placement: &Placement,
        chosen: &[Cluster<'_>],
        replicas: i64,
    ) -> Result<(BTreeMap<String, i64>, Option<(i64, i64)>), Failure> {
        let name = |one: &Cluster<'_>| one.member.name.to_string();
        let uid = &self.binding.resource.uid;
        match &placement.division {
            Division::Duplicated => Ok((chosen.iter().map(|one| (name(one), replicas)).collect(), None)),
            Division::Weighted(weights) if !weights.as_ref().is_some_and(|weights| weights.dynamic) => {
                let fixed = || weights.iter().flat_map(|weights| &weights.fixed);
                let weight = |one: &Cluster<'_>| {
                    let mine = fixed().filter(|(affinity, _)| means(affinity, one.member));
                    mine.map(|(_, weight)| (*weight).max(0)).max().unwrap_or(0)
                };
                let mut votes: BTreeMap<String, i64> =
                    chosen.iter().map(|one| (name(one), weight(one))).collect();
                if votes.values().all(|votes| *votes == 0) {
                    votes.values_mut().for_each(|votes| *votes = 1);
                }
                Ok((handed_out(replicas, &votes, uid), None))
            }
            Division::Unknown { kind, preference } => Err((
                "SchedulerError",
                format!(
                    "unsupported replica scheduling strategy, replicaSchedulingType: {kind}, replicaDivisionPreference: {preference}, please try another scheduling strategy"
                ),
            )),
            division => self.by_room(chosen, replicas, *division == Division::Aggregated),
        }
    }

    /// What is there stays while the number grows, and gives back its share when it shrinks.
    #[allow(clippy::type_complexity, reason = "read once")]
    fn by_room(
        &self,
        chosen: &[Cluster<'_>],
        replicas: i64,
        aggregated: bool,
    ) -> Result<(BTreeMap<String, i64>, Option<(i64, i64)>), Failure> {
        let name = |one: &Cluster<'_>| one.member.name.to_string();
        let assigned: i64 = chosen.iter().map(|one| one.has).sum();
        let anew = self.anew() || self.options.rebalance && assigned == replicas;
        if !anew && assigned == replicas {
            return Ok((chosen.iter().map(|one| (name(one), one.has)).collect(), None));
        }
        let grows = !anew && assigned < replicas;
        let votes_of = |one: &Cluster<'_>| match (anew, grows) {
            (true, _) => one.available,
            (_, true) => one.fits,
            _ => one.has,
        };
        let mut target = if grows { replicas - assigned } else { replicas };
        let all: i64 = chosen.iter().map(votes_of).sum();
        let mut lacking = None;
        if all < target {
            lacking = Some(self.lacks(target - all, all)?);
            target = all;
        }
        let mut list: Vec<&Cluster<'_>> = chosen.iter().collect();
        if aggregated {
            if !anew && !grows {
                // As they are written in the binding, then the others.
                let place = |one: &&Cluster<'_>| {
                    let all = &self.binding.clusters;
                    all.iter().rposition(|known| known.name == *one.member.name).unwrap_or(usize::MAX)
                };
                list.sort_by_key(place);
            }
            list.sort_by_key(|one| (!(grows && one.has > 0), !one.confirmed, Reverse(votes_of(one))));
            let (mut sum, mut count) = (0, 0);
            for one in &list {
                (sum, count) = (sum + votes_of(one), count + 1);
                if sum >= target {
                    break;
                }
            }
            list.truncate(count);
        }
        let votes = list.iter().map(|one| (name(one), votes_of(one))).collect();
        let mut shares = handed_out(target, &votes, &self.binding.resource.uid);
        if grows {
            for one in chosen {
                *shares.entry(name(one)).or_default() += one.has;
            }
        }
        Ok((shares, lacking))
    }
}

fn short(room: i64) -> String {
    let room = room.min(i32::MAX.into());
    format!("Clusters available replicas {room} are not enough to schedule.")
}

fn room(clusters: &[Cluster<'_>]) -> i64 {
    clusters.iter().map(|one| one.available).sum()
}

/// Webster: one seat after the other to the largest votes / (2 × seats + 1); equal: fewer seats, then the name, upwards or
/// downwards by the parity of the 32-bit FNV-1a hash of the uid.
fn handed_out(seats: i64, votes: &BTreeMap<String, i64>, uid: &str) -> BTreeMap<String, i64> {
    let mut hash: u32 = 2_166_136_261;
    for byte in uid.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    }
    let downwards = !uid.is_empty() && hash % 2 == 1;
    let mut parties: Vec<(&String, i64, i64)> = votes.iter().map(|(name, votes)| (name, *votes, 0)).collect();
    if downwards {
        parties.reverse();
    }
    if parties.iter().any(|(_, votes, _)| *votes > 0) {
        for _ in 0..seats {
            let mut best = 0;
            for at in 1..parties.len() {
                let ((_, v, s), (_, w, t)) = (parties[at], parties[best]);
                let (ours, theirs) = (v * (2 * t + 1), w * (2 * s + 1));
                if ours > theirs || ours == theirs && s < t {
                    best = at;
                }
            }
            parties[best].2 += 1;
        }
    }
    parties.into_iter().map(|(name, _, seats)| (name.clone(), seats)).collect()
}

fn means(affinity: &Affinity, member: &Member) -> bool {
    let named = affinity.names.is_empty() || affinity.names.iter().any(|name| **name == *member.name);
    let excluded = affinity.exclude.iter().any(|name| **name == *member.name);
    let field = |rule: &Expression| {
        let one = |text: &String| if text.is_empty() { Vec::new() } else { vec![text.clone()] };
        let values = match rule.key.as_str() {
            "provider" => one(&member.provider),
            "region" => one(&member.region),
            "zone" => member.zones.clone(),
            _ => Vec::new(),
        };
        holds(rule, &values)
    };
    let label = |rule: &Expression| {
        let values: Vec<String> = member.labels.get(&rule.key).cloned().into_iter().collect();
        holds(rule, &values)
    };
    let labelled = |selector: &LabelSelector| {
        selector.match_labels.iter().all(|(key, value)| member.labels.get(key) == Some(value))
            && selector.match_expressions.iter().all(label)
    };
    named
        && !excluded
        && affinity.labels.as_ref().is_none_or(labelled)
        && affinity.fields.iter().flatten().all(field)
}

/// Does a condition hold for what has these values?
fn holds(rule: &Expression, values: &[String]) -> bool {
    let overlap = values.iter().any(|value| rule.values.contains(value));
    match rule.operator.as_str() {
        "In" => overlap,
        "NotIn" => !overlap,
        "Exists" => !values.is_empty(),
        "DoesNotExist" => values.is_empty(),
        other => panic!("no test asks for {other}"),
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_ref().is_none_or(|effect| *effect == taint.effect);
    let key = toleration.key.is_empty() || toleration.key == taint.key;
    let value = match toleration.operator {
        Operator::Exists => true,
        _ => !toleration.key.is_empty() && toleration.value == taint.value,
    };
    effect && key && value
}

/// A constraint in usable numbers.
struct Limit {
    by: By,
    min: usize,
    max: usize,
}

fn called(by: &By) -> &str {
    match by {
        By::Cluster => "cluster",
        By::Region => "region",
        By::Zone => "zone",
        By::Provider => "provider",
        By::Label(key) => key,
        By::Unsaid => "nothing",
    }
}

/// The constraints, the coarsest first, if they make sense.
fn limits(placement: &Placement) -> Result<Vec<Limit>, Failure> {
    let mut out: Vec<Limit> = Vec::new();
    for spread in &placement.spread {
        let wrong = |problem: &str| {
            Err(("SchedulerError", format!("spread constraint by {}: {problem}", called(&spread.by))))
        };
        if spread.by == By::Unsaid {
            return wrong("expected spreadByField or spreadByLabel");
        }
        if out.iter().any(|known| known.by == spread.by) {
            return wrong("given more than once");
        }
        if spread.min < 0 || spread.max < 0 {
            return wrong("minGroups and maxGroups must not be negative");
        }
        if spread.max > 0 && spread.max < spread.min {
            return wrong(&format!("maxGroups {} is less than minGroups {}", spread.max, spread.min));
        }
        // A maximum that is not given is none.
        let max = if spread.max == 0 { usize::MAX } else { usize::try_from(spread.max).expect("small") };
        out.push(Limit {
            by: spread.by.clone(),
            min: usize::try_from(spread.min.max(1)).expect("small"),
            max,
        });
    }
    let coarse = |limit: &Limit| match &limit.by {
        By::Provider => 0,
        By::Region => 1,
        By::Zone => 2,
        By::Label(_) => 3,
        By::Cluster | By::Unsaid => 4,
    };
    out.sort_by_key(coarse);
    if let Some(most) = out.iter().find(|limit| limit.by == By::Cluster).map(|limit| limit.max)
        && let Some(more) = out.iter().find(|limit| limit.min > most)
    {
        let name = called(&more.by);
        let message =
            format!("at least {} different in {name} do not go into at most {most} clusters", more.min);
        return Err(("Unschedulable", message));
    }
    Ok(out)
}

/// Groups for one constraint inside those chosen for the coarser ones.
struct Search<'s, 'a> {
    question: &'s Question<'s>,
    limits: &'s [Limit],
    cluster: &'s Limit,
    need: Option<i64>,
    /// The first choice that is right but for its room.
    roomless: Option<Vec<Cluster<'a>>>,
    /// The first thing that was in the way.
    problem: Option<String>,
}

/// Clusters of one group, and how good that is.
#[derive(Clone)]
struct Scored<'a> {
    name: String,
    clusters: Vec<Cluster<'a>>,
    score: i64,
}

impl<'a> Search<'_, 'a> {
    fn choose(
        &mut self,
        level: usize,
        among: Vec<Cluster<'a>>,
        chosen: &mut Vec<Vec<Cluster<'a>>>,
    ) -> Option<Vec<Cluster<'a>>> {
        let Some(limit) = self.limits.get(level) else { return self.filled(&among, chosen) };
        let mut groups: BTreeMap<String, Vec<Cluster<'a>>> = BTreeMap::new();
        for one in &among {
            let values = match &limit.by {
                By::Region => BTreeSet::from([one.member.region.clone()]),
                By::Provider => BTreeSet::from([one.member.provider.clone()]),
                By::Zone => one.member.zones.iter().cloned().collect(),
                By::Label(key) => one.member.labels.get(key).cloned().into_iter().collect(),
                By::Cluster | By::Unsaid => unreachable!("those are no groups"),
            };
            for value in values {
                groups.entry(value).or_default().push(one.clone());
            }
        }
        if groups.len() < limit.min {
            let name = called(&limit.by);
            let problem = format!("the number of feasible {name} is less than spreadConstraint.MinGroups");
            self.problem.get_or_insert(problem);
            return None;
        }
        let groups: Vec<Scored<'a>> = groups
            .into_iter()
            .map(|(name, clusters)| Scored { score: self.score(&clusters, limit.min), name, clusters })
            .collect();
        for combination in combinations(groups, limit, self.cluster.min) {
            let names: BTreeSet<String> = combination
                .iter()
                .flat_map(|group| &group.clusters)
                .map(|one| one.member.name.to_string())
                .collect();
            let inside = among.iter().filter(|one| names.contains(&*one.member.name)).cloned().collect();
            let depth = chosen.len();
            chosen.extend(combination.into_iter().map(|group| group.clusters));
            let found = self.choose(level + 1, inside, chosen);
            chosen.truncate(depth);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// How many replicas it takes of its share, then how many of its clusters have some already.
    fn score(&self, clusters: &[Cluster<'a>], min: usize) -> i64 {
        let points = |one: &Cluster<'_>| if one.there { 100 } else { 0 };
        let count = |of: usize| i64::try_from(of).expect("few");
        let need = self.question.need();
        if self.need.is_none() {
            let valid: Vec<_> = clusters.iter().filter(|one| one.available >= need).collect();
            let sum: i64 = valid.iter().map(|one| points(one)).sum();
            return if valid.is_empty() { 0 } else { 1000 * count(valid.len()) + sum / count(valid.len()) };
        }
        let groups = count(min);
        let share = (need + groups - 1) / groups;
        let least = min.max(self.cluster.min);
        let enough = |taken: usize| taken >= least && room(&clusters[..taken]) >= share;
        match (1..=clusters.len()).find(|taken| enough(*taken)) {
            Some(taken) => {
                let sum: i64 = clusters[..taken].iter().map(points).sum();
                1000 * share + sum / count(taken)
            }
            None => {
                let sum: i64 = clusters.iter().map(points).sum();
                1000 * room(clusters).min(share) + sum / count(clusters.len())
            }
        }
    }

    /// One cluster of each group, then more in order.
    fn filled(&mut self, among: &[Cluster<'a>], chosen: &[Vec<Cluster<'a>>]) -> Option<Vec<Cluster<'a>>> {
        let is = |a: &Cluster<'_>, b: &Cluster<'_>| a.member.name == b.member.name;
        let mut picked: Vec<Cluster<'a>> = Vec::new();
        for group in chosen {
            if group.iter().any(|one| picked.iter().any(|known| is(one, known))) {
                continue;
            }
            picked.push(group.iter().find(|one| among.iter().any(|left| is(one, left)))?.clone());
        }
        let most = self.cluster.max;
        if picked.len() > most {
            self.problem.get_or_insert(format!("the groups need more than {most} clusters"));
            return None;
        }
        for one in among {
            if picked.len() < most && !picked.iter().any(|known| is(one, known)) {
                picked.push(one.clone());
            }
        }
        if picked.len() < self.cluster.min {
            return None;
        }
        if self.need.is_none_or(|need| room(&picked) >= need) {
            return Some(picked);
        }
        self.roomless.get_or_insert(picked);
        None
    }
}

/// Every combination that is enough, the best first; before all of them the best one without what it does not need.
fn combinations<'a>(mut groups: Vec<Scored<'a>>, limit: &Limit, clusters: usize) -> Vec<Vec<Scored<'a>>> {
    groups.sort_by_key(|group| (group.clusters.len(), Reverse(group.score), group.name.clone()));
    let mut paths = Vec::new();
    listed(&groups, limit, clusters, 0, &mut Vec::new(), &mut paths);
    let worth = |path: &Vec<usize>| {
        let score: i64 = path.iter().map(|at| groups[*at].score).sum();
        let count: usize = path.iter().map(|at| groups[*at].clusters.len()).sum();
        Reverse((score, count))
    };
    let known = paths.clone();
    paths.sort_by_key(worth);
    let by_score = |path: &[usize]| {
        let mut out: Vec<usize> = path.to_vec();
        out.sort_by_key(|at| (Reverse(groups[*at].score), groups[*at].name.clone()));
        out
    };
    let mut out: Vec<Vec<usize>> = paths.iter().map(|path| by_score(path)).collect();
    if let Some(best) = out.first().cloned() {
        let is_listed = |count: &usize| {
            let mut prefix = best[..*count].to_vec();
            prefix.sort_unstable();
            known.contains(&prefix)
        };
        if let Some(count) = (1..best.len()).find(is_listed) {
            out.insert(0, best[..count].to_vec());
        }
    }
    out.into_iter().map(|path| path.into_iter().map(|at| groups[at].clone()).collect()).collect()
}

fn listed(
    groups: &[Scored<'_>],
    limit: &Limit,
    clusters: usize,
    from: usize,
    path: &mut Vec<usize>,
    out: &mut Vec<Vec<usize>>,
) {
    let count: usize = path.iter().map(|at| groups[*at].clusters.len()).sum();
    if path.len() >= limit.min && path.len() <= limit.max && count >= clusters {
        out.push(path.clone());
        return;
    }
    if path.len() >= limit.max {
        return;
    }
    for at in from..groups.len() {
        path.push(at);
        listed(groups, limit, clusters, at + 1, path, out);
        path.pop();
    }
}

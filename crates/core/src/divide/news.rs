//! What is new about a cluster, and to whom does it matter? Most of what clusters report is neither: heartbeats.

use super::affinity::Matcher;
use super::{Binding, Member, Summary};

/// What is new, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum News {
    /// Nothing that decisions read, or only that there is less room.
    #[default]
    Nothing,
    /// There is more room, or it is told otherwise how much there is.
    Room,
    /// It came, or goes, or is another in what it is chosen by.
    Changed,
}

/// What is new about a cluster, which was not there before or is not there any more if there is `None`.
#[must_use]
pub fn news(was: Option<&Member>, is: Option<&Member>) -> News {
    let (Some(was), Some(is)) = (was, is) else {
        return if was.is_none() && is.is_none() { News::Nothing } else { News::Changed };
    };
    let same = was.labels == is.labels
        && (&was.provider, &was.region, &was.zones) == (&is.provider, &is.region, &is.zones)
        && was.taints == is.taints
        && was.deleting == is.deleting
        && was.apis == is.apis;
    if !same {
        News::Changed
    } else if was.models != is.models || grew(was.summary.as_ref(), is.summary.as_ref()) {
        News::Room
    } else {
        News::Nothing
    }
}

/// Is more of anything free?
fn grew(was: Option<&Summary>, is: Option<&Summary>) -> bool {
    let Some(is) = is else { return false };
    let Some(was) = was else { return true };
    was.grades != is.grades
        || is.free.iter().any(|(name, free)| was.free.get(name).is_none_or(|before| free > before))
}

/// Does it matter to a binding that something about this cluster is new?
#[must_use]
pub fn concerns(binding: &Binding, member: &Member) -> bool {
    let Some(placement) = &binding.placement else { return false };
    let matches = |affinity| Matcher::new(affinity).matches(member);
    let there = || binding.clusters.iter().any(|known| *known.name == *member.name);
    let meant = if placement.groups.is_empty() {
        placement.affinity.as_ref().is_none_or(matches)
    } else {
        let all = placement.groups.iter().flat_map(|g| std::iter::once(&g.affinity).chain(&g.overflow));
        all.into_iter().any(matches)
    };
    meant || there()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divide::{Affinity, Placement, Previous};
    use crate::resources::List;
    use crate::select::Taint;
    use crate::select::taint::Effect;

    fn list(entries: &[(&str, &str)]) -> List {
        entries.iter().map(|(name, text)| ((*name).to_owned(), text.parse().expect("a quantity"))).collect()
    }

    fn with_free(cpu: &str) -> Member {
        let summary = Summary::new(&list(&[("cpu", cpu), ("pods", "10")]), &List::new(), &List::new());
        Member { name: "a".into(), summary: Some(summary), ..Member::default() }
    }

    fn taint() -> Taint {
        Taint { key: "k".into(), value: String::new(), effect: Effect::NoSchedule, time_added: None }
    }

    #[test]
    fn more_room_is_news_and_less_is_not() {
        let (less, more) = (with_free("1"), with_free("2"));
        assert_eq!(news(Some(&less), Some(&more)), News::Room);
        assert_eq!(news(Some(&more), Some(&less)), News::Nothing);
        assert_eq!(news(Some(&more), Some(&more.clone())), News::Nothing, "a heartbeat");
        let unsaid = Member { summary: None, ..less.clone() };
        assert_eq!(news(Some(&unsaid), Some(&less)), News::Room);
    }

    #[test]
    fn what_clusters_are_chosen_by_is_news() {
        let was = with_free("1");
        let other = |change: fn(&mut Member)| {
            let mut is = was.clone();
            change(&mut is);
            news(Some(&was), Some(&is))
        };
        let changes: [fn(&mut Member); 6] = [
            |m| drop(m.labels.insert("k".into(), "v".into())),
            |m| m.region = "eu".into(),
            |m| m.zones = vec!["z".into()],
            |m| m.taints = vec![taint()],
            |m| m.deleting = true,
            |m| m.apis = std::sync::Arc::new([("v1".to_owned(), std::collections::BTreeSet::new())].into()),
        ];
        assert_eq!(changes.map(other), [News::Changed; 6]);
        assert_eq!(news(None, Some(&was)), News::Changed, "it came");
        assert_eq!(news(Some(&was), None), News::Changed, "it went");
    }

    #[test]
    fn a_cluster_matters_to_who_may_go_there_or_is_there() {
        let names = vec!["b".to_owned()];
        let only_b =
            Placement { affinity: Some(Affinity { names, ..Affinity::default() }), ..Placement::default() };
        let member = with_free("1");
        let mut binding = Binding { placement: Some(Placement::default()), ..Binding::default() };
        assert!(concerns(&binding, &member), "no affinity means every cluster");
        binding.placement = Some(only_b);
        assert!(!concerns(&binding, &member));
        binding.clusters = vec![Previous { name: "a".into(), replicas: 1 }];
        assert!(concerns(&binding, &member), "it has to leave");
    }
}

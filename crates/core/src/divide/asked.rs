//! Which clusters may have it, by any group that may be tried, and which of them must estimators be asked about?

use super::filter::Filter;
use super::{Binding, Case, Given, Known, Member, Options, needed, refused};
use std::sync::Arc;

/// Do estimates bear on the answer? If so, estimators must be asked about every cluster in [`reach`].
#[must_use]
pub fn counts(binding: &Binding) -> bool {
    let placement = binding.placement.as_ref();
    placement.is_some_and(|placement| needed(binding, placement) || !binding.components.is_empty())
}

/// The names of all clusters a binding may get anything in, in the order the clusters come in.
#[must_use]
pub fn reach(members: &[Member], binding: &Binding, options: Options) -> Vec<Arc<str>> {
    let Some(placement) = &binding.placement else { return Vec::new() };
    if refused(binding, placement).is_some() {
        return Vec::new();
    }
    let given = Given { options, ..Given::default() };
    let case = Case { binding, placement, given: &given, sets: false };
    let tried = case.tried();
    let filters: Vec<Filter<'_, '_>> = if tried.is_empty() {
        vec![Filter::new(&case, None)]
    } else {
        tried.iter().map(|group| Filter::new(&case, Some(group))).collect()
    };
    let previous = binding.previous();
    let may = |member: &Member| {
        let known = Known { member, previous: previous.get(&*member.name).copied() };
        filters.iter().any(|filter| filter.check(known).is_ok())
    };
    members
        .iter()
        .filter(|member| !member.deleting && may(member))
        .map(|member| member.name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divide::{Affinity, Division, Group, Placement, Previous};

    fn member(name: &str) -> Member {
        let apis = [("apps/v1".to_owned(), ["Deployment".to_owned()].into())];
        Member { name: name.into(), apis: Arc::new(apis.into()), ..Member::default() }
    }

    fn named(names: &[&str]) -> Affinity {
        Affinity { names: names.iter().map(|name| (*name).to_owned()).collect(), ..Affinity::default() }
    }

    fn binding(placement: Placement) -> Binding {
        let mut binding = Binding { replicas: 1, placement: Some(placement), ..Binding::default() };
        (binding.resource.api_version, binding.resource.kind) = ("apps/v1".into(), "Deployment".into());
        binding
    }

    fn names(members: &[Member], binding: &Binding) -> Vec<String> {
        reach(members, binding, Options::default()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_clusters_that_may_have_it_are_asked_about() {
        let mut members = ["a", "b", "c", "d"].map(member);
        members[2].deleting = true;
        members[3].apis = Arc::default();
        let aggregated = Placement { division: Division::Aggregated, ..Placement::default() };
        assert_eq!(names(&members, &binding(aggregated.clone())), ["a", "b"], "c goes, d does not serve it");
        let mut there = binding(aggregated);
        there.clusters = vec![Previous { name: "d".into(), replicas: 1 }];
        assert_eq!(names(&members, &there), ["a", "b", "d"], "it is on d already");
        assert!(counts(&there));
        let duplicated = binding(Placement::default());
        assert!(!counts(&duplicated), "every cluster gets all of it");
        assert_eq!(names(&members, &duplicated), ["a", "b"]);
    }

    #[test]
    fn every_group_that_may_be_tried_is_asked_about() {
        let group = |name: &str, names: &[&str]| Group {
            name: name.into(),
            affinity: named(names),
            ..Group::default()
        };
        let groups = vec![group("first", &["a"]), group("second", &["b"]), group("third", &["c"])];
        let placement = Placement { division: Division::Aggregated, groups, ..Placement::default() };
        let mut binding = binding(placement);
        let members = ["a", "b", "c"].map(member);
        assert_eq!(names(&members, &binding), ["a", "b", "c"]);
        binding.observed = "second".into();
        assert_eq!(names(&members, &binding), ["b", "c"], "it does not go back by itself");
    }
}

use super::*;
use crate::select::label::Expression;
use crate::select::taint::{Effect, Operator};

fn taint(key: &str, value: &str, effect: Effect) -> Taint {
    Taint { key: key.into(), value: value.into(), effect, time_added: None }
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Expression {
    Expression {
        key: key.into(),
        operator: operator.into(),
        values: values.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn every_filter_has_its_words_and_its_place() {
    let plain = || member("a", &[("cpu", "9")]);
    let tainted = Member { taints: vec![taint("gone", "", Effect::NoExecute)], ..plain() };
    let valued = Member { taints: vec![taint("gpu", "yes", Effect::NoSchedule)], ..plain() };
    let mild = Member { taints: vec![taint("gpu", "yes", Effect::PreferNoSchedule)], ..plain() };
    let bare = Member { apis: Arc::default(), ..plain() };
    let usual = || cores(1, dynamic());
    let evicted = Binding { evicting: BTreeSet::from(["a".to_owned()]), ..usual() };
    let other = |mut binding: Binding| binding.placing(|p| p.affinity = Some(named(&["b"])));
    let spread = |by: By| usual().spread(&[(by, 1, 0)]);
    let tolerant = usual().placing(|p| {
        p.tolerations =
            vec![Toleration { key: "gpu".into(), operator: Operator::Exists, ..Toleration::default() }];
    });
    for (why, member, binding, want) in vec![
        ("nothing against it", plain(), usual(), None),
        ("it is leaving there", plain(), evicted.clone(), Some("cluster(s) is in the process of eviction")),
        ("leaving comes first", plain(), other(evicted), Some("cluster(s) is in the process of eviction")),
        (
            "another is meant",
            plain(),
            other(usual()),
            Some("cluster(s) did not match the placement cluster affinity constraint"),
        ),
        (
            "affinity comes before taints",
            tainted.clone(),
            other(usual()),
            Some("cluster(s) did not match the placement cluster affinity constraint"),
        ),
        ("tainted", tainted.clone(), usual(), Some("cluster(s) had untolerated taint {gone:NoExecute}")),
        (
            "with a value",
            valued.clone(),
            usual(),
            Some("cluster(s) had untolerated taint {gpu=yes:NoSchedule}"),
        ),
        ("tolerated", valued, tolerant, None),
        ("only discouraged", mild, usual(), None),
        ("already there, tainted", tainted, usual().on(&[("a", 0)]), None),
        ("kind not served", bare.clone(), usual(), Some("cluster(s) did not have the API resource")),
        ("already there, kind not served", bare, usual().on(&[("a", 1)]), None),
        ("no provider", plain(), spread(By::Provider), Some("cluster(s) did not have provider property")),
        ("no region", plain(), spread(By::Region), Some("cluster(s) did not have region property")),
        ("no zones", plain(), spread(By::Zone), Some("cluster(s) did not have zones property")),
        (
            "no label",
            plain(),
            spread(By::Label("rack".into())),
            Some("cluster(s) did not have the label rack"),
        ),
    ] {
        let answer = divide(&[member], &binding, &Given::default());
        let reason = answer.filtered.first().map(|filtered| filtered.reason.to_string());
        assert_eq!(reason.as_deref(), want, "{why}");
        assert_eq!(answer.feasible.len(), usize::from(want.is_none()), "{why}");
    }
}

#[test]
fn what_fits_nowhere_says_why_in_one_sentence() {
    let mut members = fleet(&[("a", 9), ("b", 9), ("c", 9)]);
    members[0].apis = Arc::default();
    members[1].apis = Arc::default();
    members[2].taints = vec![taint("gone", "", Effect::NoExecute)];
    assert_eq!(
        decided(&members, &cores(1, dynamic())),
        "NoClusterFit: 0/3 clusters are available: 1 cluster(s) had untolerated taint {gone:NoExecute}, 2 cluster(s) did not have the API resource."
    );
    let nothing = divide(&[], &cores(1, dynamic()), &Given::default());
    assert_eq!(told(&nothing), "NoClusterFit: 0/0 clusters are available: no cluster exists.");
    assert_eq!(nothing.shortfall, 1);
    for member in &mut members {
        member.deleting = true;
    }
    let leaving = divide(&members, &cores(1, dynamic()), &Given::default());
    assert_eq!(told(&leaving), "NoClusterFit: 0/3 clusters are available: no cluster exists.");
    assert_eq!(leaving.filtered, []);
    assert_eq!(leaving.warnings.len(), 3);
}

#[test]
fn affinity_means_clusters_by_name_label_and_field() {
    let here = Member {
        labels: BTreeMap::from([("tier".to_owned(), "gold".to_owned())]),
        provider: "acme".into(),
        region: "north".into(),
        zones: vec!["n1".into(), "n2".into()],
        ..member("a", &[("cpu", "9")])
    };
    let nowhere =
        Member { provider: String::new(), region: String::new(), zones: Vec::new(), ..here.clone() };
    let labels = |key: &str, value: &str| {
        let all = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let selector =
            crate::select::LabelSelector { match_labels: all, ..crate::select::LabelSelector::default() };
        Affinity { labels: Some(selector), ..Affinity::default() }
    };
    let field = |key: &str, operator: &str, values: &[&str]| Affinity {
        fields: Some(vec![expression(key, operator, values)]),
        ..Affinity::default()
    };
    for (why, affinity, there, without) in [
        ("empty: all", Affinity::default(), true, true),
        ("by name", named(&["a", "b"]), true, true),
        ("another name", named(&["b"]), false, false),
        ("excluded", Affinity { exclude: vec!["a".into()], ..named(&["a"]) }, false, false),
        ("by label", labels("tier", "gold"), true, true),
        ("another label", labels("tier", "tin"), false, false),
        ("a selector that cannot be", labels("tier", "not a value"), false, false),
        ("by region", field("region", "In", &["north", "south"]), true, false),
        ("not in a region: no region is not in it", field("region", "NotIn", &["south"]), true, true),
        ("has a provider", field("provider", "Exists", &[]), true, false),
        ("has none", field("provider", "DoesNotExist", &[]), false, true),
        ("one zone is enough", field("zone", "In", &["n2", "s1"]), true, false),
        ("no zone may be there", field("zone", "NotIn", &["n2"]), false, true),
        ("has zones", field("zone", "Exists", &[]), true, false),
        ("has no zones", field("zone", "DoesNotExist", &[]), false, true),
        ("zones are no numbers", field("zone", "Gt", &["1"]), false, false),
        ("an operator that is none", field("region", "Near", &["north"]), false, false),
        ("a field that is none", field("planet", "In", &["earth"]), false, false),
    ] {
        for (member, want) in [(&here, there), (&nowhere, without)] {
            let binding = cores(1, dynamic()).placing(|p| p.affinity = Some(affinity.clone()));
            let answer = divide(std::slice::from_ref(member), &binding, &Given::default());
            assert_eq!(answer.filtered.is_empty(), want, "{why}, {:?}", member.region);
        }
    }
}

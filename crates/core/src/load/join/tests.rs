use super::*;
use proptest::prelude::*;

fn names(nodes: &[(&str, &[&str])]) -> Names {
    let nodes: Vec<(Arc<str>, Vec<Arc<str>>)> =
        nodes.iter().map(|(name, all)| ((*name).into(), all.iter().map(|a| (*a).into()).collect())).collect();
    Names::new(nodes.iter().map(|(name, all)| (name, &all[..])))
}

fn series(whose: &str, percent: &str, second: i64) -> Series {
    Series {
        whose: vec![whose.to_owned()],
        percent: percent.into(),
        at: Timestamp::from_second(second).expect("small"),
    }
}

fn value(nano: i64, second: i64) -> Value {
    Value { share: Ratio::from_nano(nano), at: Timestamp::from_second(second).expect("small") }
}

#[test]
fn a_series_is_joined_by_name_address_and_port_however_written() {
    let names = names(&[
        ("node-a.example.com", &["10.0.0.7", "node-a"]),
        ("node-b", &["fd00::7", "10.0.0.8"]),
        ("10.0.0.9", &["10.0.0.10"]),
        ("node-d", &["10.0.0.9", "10.0.0.11"]),
        ("node-e", &["10.0.0.11"]),
    ]);
    for (text, found, why) in [
        ("node-a.example.com", Found::Node(0), "its name"),
        ("node-a.example.com:9100", Found::Node(0), "its name with a port"),
        ("node-aXexample.com", Found::Nobody, "a dot is a dot, no pattern"),
        ("node-a", Found::Node(0), "its host name"),
        ("10.0.0.7", Found::Node(0), "its address"),
        ("10.0.0.7:9100", Found::Node(0), "with a port"),
        ("10.0.0.70:9100", Found::Nobody, "another address"),
        ("110.0.0.7", Found::Nobody, "not the end of one"),
        ("fd00::7", Found::Node(1), "IPv6"),
        ("fd00:0:0::7", Found::Node(1), "written longer"),
        ("[fd00::7]:9100", Found::Node(1), "in brackets, with a port"),
        ("[fd00::7]", Found::Node(1), "in brackets"),
        ("::ffff:10.0.0.8", Found::Node(1), "IPv4 written as IPv6"),
        ("10.0.0.9", Found::Node(2), "a name counts before an address"),
        ("10.0.0.11:9100", Found::Several, "two nodes have it"),
        ("", Found::Nobody, "no text"),
        (":9100", Found::Nobody, "a port alone"),
        ("[fd00::7:9100", Found::Nobody, "a bracket that is not closed"),
    ] {
        assert_eq!(names.find(text), found, "{text:?}: {why}");
    }
}

#[test]
fn the_largest_of_several_series_counts_and_what_is_no_amount_does_not() {
    let names =
        names(&[("a", &["10.0.0.1"]), ("b", &["10.0.0.2"]), ("c", &["10.0.0.3"]), ("d", &["10.0.0.3"])]);
    let all = [
        series("10.0.0.1:9100", "43.012", 60),
        series("a", "44", 50),
        series("10.0.0.1", "NaN", 60),
        series("b", "-1", 60),
        series("b:9100", "+Inf", 60),
        series("10.0.0.3:9100", "10", 60),
        series("10.9.9.9:9100", "99", 60),
        series("elsewhere", "99", 60),
    ];
    let joined = join(&names, 4, &all);
    let want = Joined {
        // 44 % at second 50 is more than 43.012 % at second 60.
        values: vec![Some(value(440_000_000, 50)), None, None, None],
        nobodys: 2,
        first_nobodys: Some("10.9.9.9:9100".into()),
        shared: 1,
        repeated: 1,
        invalid: 3,
    };
    assert_eq!(joined, want);
}

#[test]
fn the_first_label_that_names_a_node_says_whose_it_is() {
    let names = names(&[("a", &[]), ("b", &[])]);
    let both =
        |first: &str, second: &str| Series { whose: vec![first.into(), second.into()], ..series("", "1", 0) };
    let joined = join(&names, 2, &[both("exporter-7:9100", "a"), both("b", "a"), both("x", "y")]);
    assert_eq!(joined.values, [Some(value(10_000_000, 0)), Some(value(10_000_000, 0))]);
    assert_eq!((joined.nobodys, joined.first_nobodys.as_deref()), (1, Some("x, y")));
}

#[test]
fn a_percentage_is_a_share_rounded_up_and_anything_else_is_nothing() {
    for (text, nano) in [
        ("0", Some(0)),
        ("43.012", Some(430_120_000)),
        ("1e-7", Some(1)),
        ("0.00000001", Some(1)),
        ("33.333333333333336", Some(333_333_334)),
        ("250", Some(2_500_000_000)),
        ("-0", Some(0)),
        ("-0.1", None),
        ("NaN", None),
        ("+Inf", None),
        ("-Inf", None),
        ("", None),
        (" 1", None),
        ("1%", None),
    ] {
        assert_eq!(share(text).map(Ratio::nano), nano, "{text:?}");
    }
}

proptest! {
    /// Whatever the series say, a node has the largest value of those that are surely its own, and others change nothing.
    #[test]
    fn no_series_of_others_changes_a_node(
        all in prop::collection::vec((0_usize..6, 0_u32..3, 0_u32..2000), 0..40),
    ) {
        let names = names(&[("n0", &["10.0.0.1"]), ("n1", &["10.0.0.2"]), ("n2", &["fd00::3"])]);
        let texts = ["n0", "10.0.0.1:9100", "10.0.0.2", "[fd00::3]:9100", "n9", "10.0.0.99:1"];
        let owner = [Some(0), Some(0), Some(1), Some(2), None, None];
        let series: Vec<Series> =
            all.iter().map(|(text, at, tenth)| series(texts[*text], &format!("{}.{}", tenth / 10, tenth % 10), i64::from(*at))).collect();
        let joined = join(&names, 3, &series);
        for node in 0..3 {
            let mine = all.iter().filter(|(text, ..)| owner[*text] == Some(node));
            let largest = mine.map(|(_, _, tenth)| i64::from(*tenth) * 1_000_000).max();
            prop_assert_eq!(joined.values[node].map(|v| v.share.nano()), largest);
        }
        prop_assert_eq!(joined.nobodys, all.iter().filter(|(text, ..)| owner[*text].is_none()).count());
    }
}

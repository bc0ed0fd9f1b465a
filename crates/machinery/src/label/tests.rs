use super::*;
use proptest::prelude::*;

#[test]
fn errors_say_what_was_found_and_expected() {
    for (text, want) in [
        ("a in b", r#"selector "a in b" does not parse: found "b", expected '('"#),
        ("a,", r#"selector "a," does not parse: found the end, expected a label key after ','"#),
        ("a=b c", r#"selector "a=b c" does not parse: found "c", expected ',' or the end"#),
        ("n>x", r#"value "x" of label "n" is not valid: must be a whole number of 64 bits"#),
        (
            "-a",
            r#"label key "-a" is not valid: the name must be letters, digits, '-', '_' or '.', with a letter or digit at both ends"#,
        ),
        ("A_b/c", r#"label key "A_b/c" is not valid: the part before '/' must be a lower-case DNS domain"#),
    ] {
        assert_eq!(text.parse::<Selector>().map_err(|e| e.to_string()), Err(want.into()));
    }
    let bad = LabelSelector {
        match_expressions: vec![Expression {
            key: "a".into(),
            operator: "Gt".into(),
            values: vec!["1".into()],
        }],
        ..LabelSelector::default()
    };
    assert!(matches!(bad.selector(), Err(Error::Operator { .. })), "Gt is for nodes only");
}

/// The definition of each operator, written out for a list of pairs.
fn slow(r: &Requirement, labels: &[(String, String)]) -> bool {
    let here: Vec<&str> = labels.iter().filter(|(k, _)| k == r.key()).map(|(_, v)| v.as_str()).collect();
    let any = r.values().iter().any(|v| here.contains(&v.as_str()));
    match r.op() {
        Op::Equals | Op::DoubleEquals | Op::In => any,
        Op::NotEquals | Op::NotIn => !any,
        Op::Exists => !here.is_empty(),
        Op::DoesNotExist => here.is_empty(),
        op => here.iter().filter_map(|v| v.parse::<i64>().ok()).any(|n| {
            let bound: i64 = r.values()[0].parse().unwrap();
            if op == Op::Gt { n > bound } else { n < bound }
        }),
    }
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let op = prop::sample::select(vec![
        Op::Equals,
        Op::DoubleEquals,
        Op::NotEquals,
        Op::In,
        Op::NotIn,
        Op::Exists,
        Op::DoesNotExist,
        Op::Gt,
        Op::Lt,
    ]);
    ("[a-c]", op, prop::collection::vec("[0-3]|x|", 1..3)).prop_filter_map(
        "not valid",
        |(key, op, mut values)| {
            match op {
                Op::Exists | Op::DoesNotExist => values.clear(),
                Op::In | Op::NotIn => {}
                _ => values.truncate(1),
            }
            Requirement::new(key, op, values).ok()
        },
    )
}

proptest! {
    #[test]
    fn selectors_agree_with_the_slow_definition(
        all in prop::collection::vec(requirement(), 0..4),
        labels in prop::collection::btree_map("[a-c]", "[0-3]|x|", 0..3),
    ) {
        let pairs: Vec<_> = labels.clone().into_iter().collect();
        let want = all.iter().all(|r| slow(r, &pairs));
        let selector = Selector::all(all);
        prop_assert_eq!(selector.matches(&labels), want);
        let again: Selector = selector.to_string().parse().unwrap();
        prop_assert_eq!(again.matches(&labels), want, "{} means the same as text", selector);
        prop_assert_eq!(again.to_string().parse::<Selector>(), Ok(again));
    }

    #[test]
    fn any_text_parses_or_fails_without_panic(text in "[a-c0-9,=!<>() \\x00é/.-]{0,24}") {
        let _ = text.parse::<Selector>();
    }
}

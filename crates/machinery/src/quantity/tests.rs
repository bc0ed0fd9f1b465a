use super::*;
use proptest::prelude::*;

fn q(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn printing_is_canonical() {
    for (why, text, want) in [
        ("no fraction: 1.5 × 1024", "1.5Gi", "1536Mi"),
        ("the largest suffix that stays whole", "1048576Ki", "1Gi"),
        ("below one Ki the binary style has no suffix", "0.5Ki", "512"),
        ("binary fractions print as decimal", "1.0005Ki", "1024512m"),
        ("finer than nano rounds up", "0.1n", "1n"),
        ("and away from zero below it", "-0.1n", "-1n"),
        ("the exponent becomes a multiple of three", "1E4", "10e3"),
        ("E alone is exa", "2E", "2E"),
        ("past the last suffix, an exponent", "1000E", "1e21"),
        ("binary amounts stop at 2^63 - 1", "9Ei", "9223372036854775807"),
        ("nothing is nothing in every style", "0e9", "0"),
    ] {
        assert_eq!(q(text).to_string(), want, "{why}");
    }
}

#[test]
fn integers_hold_at_their_limits_instead_of_wrapping() {
    assert_eq!(q("1e100").value(), i64::MAX);
    assert_eq!(q("-1e100").milli_value(), i64::MIN);
    assert_eq!(q("9223372036854775807").milli_value(), i64::MAX);
    assert_eq!(q("1e2147483647").value(), i64::MAX);
}

#[test]
fn amounts_far_apart_add_up_quickly_and_never_shrink() {
    let huge = q("1e2147483647");
    assert_eq!(huge.plus(q("1n")).value(), i64::MAX);
    assert!(huge.plus(q("1n")) > huge);
    assert!(huge.minus(huge).is_zero());
    let most = Quantity::scaled(i128::MAX, i32::MAX, Format::DecimalSi);
    assert!(most.plus(most) >= most, "the very end holds");
    assert_eq!(q("1e40").plus(q("1e40")), q("2e40"));
    assert!(q("1e40").plus(q("-1n")) < q("1e40"));
    assert_eq!(huge.with_format(Format::DecimalSi).to_string(), "10e2147483646");
    assert_eq!(huge.with_format(Format::BinarySi).to_string(), "10e2147483646");
}

#[test]
fn errors_name_the_text_and_what_was_expected() {
    for (text, want) in [
        ("1 Gi", "quantity \"1 Gi\" must be a number with an optional suffix, such as 100m or 1.5Gi"),
        ("1GB", "quantity \"1GB\" must be a number with an optional suffix, such as 100m or 1.5Gi"),
        ("Pi", "quantity \"Pi\" has no digits"),
    ] {
        assert_eq!(text.parse::<Quantity>().map_err(|e| e.to_string()), Err(want.into()));
    }
    let unknown = "1K".parse::<Quantity>().unwrap_err().to_string();
    assert!(
        unknown.starts_with("quantity \"1K\" has the unknown suffix \"K\", expected one of"),
        "{unknown}"
    );
}

#[test]
fn json_takes_strings_and_numbers() {
    for (json, want) in [
        ("\"100m\"", "100m"),
        ("\" 1Gi \"", "1Gi"),
        ("5", "5"),
        ("-5", "-5"),
        ("0.1", "100m"),
        ("1e3", "1k"),
        ("18446744073709551615", "18446744073709551615"),
        ("null", "0"),
    ] {
        assert_eq!(serde_json::from_str::<Quantity>(json).unwrap().to_string(), want, "{json}");
    }
    for json in ["\"1 Gi\"", "true", "{}", "\"\""] {
        assert!(serde_json::from_str::<Quantity>(json).is_err(), "{json}");
    }
    assert_eq!(serde_json::to_string(&q("1.5Gi")).unwrap(), "\"1536Mi\"");
}

/// Text that is often a quantity.
fn text() -> impl Strategy<Value = String> {
    let suffix = prop::sample::select(vec![
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-4",
        "e+11", "e33",
    ]);
    ("[+-]?[0-9]{0,22}(\\.[0-9]{0,14})?", suffix).prop_map(|(number, suffix)| number + suffix)
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_the_same(text in text()) {
        if let Ok(a) = text.parse::<Quantity>() {
            let printed = a.to_string();
            let b = q(&printed);
            prop_assert_eq!(a, b);
            prop_assert_eq!(b.to_string(), printed);
        }
    }

    #[test]
    fn any_text_parses_or_fails_without_panic(text in "\\PC{0,12}") {
        let _ = text.parse::<Quantity>();
    }

    #[test]
    fn sums_and_order_agree_with_plain_integers(a in any::<i64>(), b in any::<i64>(), ea in -9_i32..=9, eb in -9_i32..=9) {
        // |a| × 10^(9+9) < 2^127, so both fit a plain count of nanos.
        let nano = |d: i64, e: i32| i128::from(d) * 10_i128.pow(e.abs_diff(NANO));
        let (x, y) = (Quantity::scaled(a.into(), ea, Format::DecimalSi), Quantity::scaled(b.into(), eb, Format::DecimalSi));
        let (m, n) = (nano(a, ea), nano(b, eb));
        prop_assert_eq!(x.plus(y).nano_value(), Some(m + n));
        prop_assert_eq!(x.minus(y).nano_value(), Some(m - n));
        prop_assert_eq!(x.cmp(&y), m.cmp(&n));
    }

    #[test]
    fn integers_are_the_exact_amount_rounded_away_from_zero(a in any::<i64>(), e in -9_i32..=9) {
        let nano = i128::from(a) * 10_i128.pow(e.abs_diff(NANO));
        let x = Quantity::scaled(a.into(), e, Format::DecimalSi);
        for (got, unit) in [(x.value(), 1_000_000_000), (x.milli_value(), 1_000_000)] {
            let away = nano / unit + (nano % unit).signum();
            prop_assert_eq!(i128::from(got), away.clamp(i64::MIN.into(), i64::MAX.into()));
        }
    }
}

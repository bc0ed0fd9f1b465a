use super::*;
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("tests write times")
}

fn exact(nano: i64) -> Figure {
    Figure::Exact(Ratio::from_nano(nano))
}

#[test]
fn a_value_and_a_time_are_read_exactly() {
    for (why, text, nano, time) in [
        ("as it is written", "0.43012,2026-01-31T12:00:00Z", 430_120_000, "2026-01-31T12:00:00Z"),
        ("above the whole", "1.2,2026-01-31T12:00:00Z", 1_200_000_000, "2026-01-31T12:00:00Z"),
        ("finer than a billionth rounds up", "0.0000000001,2026-01-31T12:00:00Z", 1, "2026-01-31T12:00:00Z"),
        ("exponents", "65e-2,2026-01-31T12:00:00Z", 650_000_000, "2026-01-31T12:00:00Z"),
        ("nothing, with a sign", "-0,2026-01-31T12:00:00Z", 0, "2026-01-31T12:00:00Z"),
        (
            "more than any ratio is the largest",
            "1e300,2026-01-31T12:00:00Z",
            i64::MAX,
            "2026-01-31T12:00:00Z",
        ),
        ("parts of a second", "0.5,2026-01-31T12:00:00.25Z", 500_000_000, "2026-01-31T12:00:00.25Z"),
    ] {
        assert_eq!(read(text, None), Ok(Reading { value: Ok(exact(nano)), at: at(time) }), "{why}");
    }
}

// D5: what is not a number is not idle either.
#[test]
fn what_is_no_value_and_time_is_unreadable() {
    use Unreadable::{Malformed, Negative};
    let stamp = "2026-01-31T12:00:00Z";
    for (number, want) in [
        ("NaN", Malformed),
        ("+Inf", Malformed),
        ("Infinity", Malformed),
        ("", Malformed),
        (".", Malformed),
        ("e5", Malformed),
        ("1e", Malformed),
        ("1e99999", Malformed),
        ("0x1p-2", Malformed),
        ("1_0", Malformed),
        (" 0.5", Malformed),
        ("0.5 ", Malformed),
        ("500m", Malformed),
        ("1Ki", Malformed),
        ("-0.1", Negative),
        ("-0.0000000001", Negative),
        ("-1e300", Negative),
    ] {
        let reading = read(&format!("{number},{stamp}"), None);
        assert_eq!(reading, Ok(Reading { at: at(stamp), value: Err(want) }), "{number:?}");
    }
    for text in [
        "",
        "0.5",
        "0.5,",
        ",",
        "0.5,2026-01-31T12:00:00Z,",
        "0.5,2026-01-31T12:00:00Z,1",
        "0.5,2026-01-31T12:00:00",
        "0.5,2026-01-31T12:00:00+08:00",
        "0.5,2026-01-31 12:00:00Z",
        "0.5,2026-01-31T12:00:00z",
        "0.5, 2026-01-31T12:00:00Z",
        "0.5,2026-02-30T12:00:00Z",
        "0.5,2026-01-31T24:00:00Z",
        "0.5,2026-01-31T12:00:60Z",
        "0.5,2026-01-31T9:00:00Z",
        "0.5,2026-01-31T12:00:00.Z",
        "0.5,1769860800",
        "0.5,٢٠٢٦-01-31T12:00:00Z",
    ] {
        assert_eq!(read(text, None), Err(Malformed), "{text:?}");
    }
}

// D3: the letter Z means nothing in what crane writes; the zone must be named.
#[test]
fn a_named_zone_is_the_clock_of_the_stamp() {
    let shanghai = TimeZone::posix("CST-8").unwrap();
    let got = read("0.5,2026-01-31T20:00:00Z", Some(&shanghai)).unwrap();
    assert_eq!(got.at, at("2026-01-31T12:00:00Z"), "eight hours east");
    let late = read_upstream("0.5,2026-01-31T20:00:00Z", Some(&shanghai)).unwrap();
    assert_eq!(late.at, got.at);
}

// D3: clocks in New York go back on 1 November 2026 at 06:00 UTC and forward on 8 March at 07:00 UTC; in Berlin
// back on 25 October at 01:00 UTC.
#[test]
fn one_clock_reading_can_mean_two_instants() {
    let new_york = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
    let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    for (why, zone, stamp, ours, crane) in [
        ("twice: we take the later", &new_york, "2026-11-01T01:30:00Z", "06:30", "05:30"),
        ("twice, east of Greenwich", &berlin, "2026-10-25T02:30:00Z", "01:30", "01:30"),
        ("never: on by the gap", &new_york, "2026-03-08T02:30:00Z", "07:30", "06:30"),
        ("once", &new_york, "2026-11-01T02:30:00Z", "07:30", "07:30"),
    ] {
        let text = format!("0.5,{stamp}");
        let day = &stamp[..11];
        assert_eq!(read(&text, Some(zone)).unwrap().at, at(&format!("{day}{ours}:00Z")), "{why}");
        assert_eq!(read_upstream(&text, Some(zone)).unwrap().at, at(&format!("{day}{crane}:00Z")), "{why}");
    }
}

#[test]
fn upstream_reads_floats_as_go_does() {
    use Unreadable::{Malformed, Negative};
    for (number, want) in [
        ("0.43012", Ok(0.43012)),
        (".5", Ok(0.5)),
        ("5.", Ok(5.0)),
        ("1e-3", Ok(0.001)),
        ("1e-400", Ok(0.0)),
        ("Inf", Ok(f64::INFINITY)),
        ("+iNfInItY", Ok(f64::INFINITY)),
        ("-0", Ok(-0.0)),
        ("-inf", Err(Negative)),
        ("-0.1", Err(Negative)),
        ("1e400", Err(Malformed)),
        ("+nan", Err(Malformed)),
        ("0x1p-2", Ok(0.25)),
        ("1_0", Ok(10.0)),
        (" 1", Err(Malformed)),
        ("", Err(Malformed)),
    ] {
        let late = read_upstream(&format!("{number},2026-01-31T12:00:00Z"), None).unwrap();
        assert_eq!(late.value, want.map(Figure::Float), "{number:?}");
    }
    let nan = read_upstream("nAn,2026-01-31T9:00:00Z", None).unwrap();
    assert!(nan.value.unwrap().to_f64().is_nan());
    assert_eq!(nan.at, at("2026-01-31T09:00:00Z"), "Go takes one digit for hours");
    for text in ["", "0.5", "0.5,soon", "x,soon", "0.5,2026-01-31T12:00:00+00:00", "1,2,2026-01-31T12:00:00Z"]
    {
        assert_eq!(read_upstream(text, None), Err(Malformed), "{text:?}");
    }
}

// Clocks are read up to the last second of 9999; our instants end a day before.
#[test]
fn a_stamp_past_the_end_of_time_is_from_the_future_and_not_malformed() {
    let kiribati = TimeZone::posix("<+14>-14").unwrap();
    let samoa = TimeZone::posix("<-11>11").unwrap();
    for stamp in ["9999-12-31T00:00:00Z", "9999-12-31T23:59:59Z"] {
        let text = format!("0.5,{stamp}");
        for zone in [None, Some(&samoa)] {
            assert_eq!(read(&text, zone).unwrap().at, Timestamp::MAX, "{stamp} {zone:?}");
            assert_eq!(read_upstream(&text, zone).unwrap().at, Timestamp::MAX, "{stamp} {zone:?}");
        }
        for got in [read(&text, Some(&kiribati)), read_upstream(&text, Some(&kiribati))] {
            assert!(got.unwrap().at > at("9999-12-30T09:00:00Z"), "{stamp}");
        }
    }
}

// D14: the stamp is the sample's time, in whole seconds of UTC.
#[test]
fn loads_are_written_with_five_decimals_rounded_up() {
    let time = at("2026-01-31T12:00:00.9Z");
    for (nano, want) in [
        (430_120_000, "0.43012,2026-01-31T12:00:00Z"),
        (430_120_001, "0.43013,2026-01-31T12:00:00Z"),
        (0, "0.00000,2026-01-31T12:00:00Z"),
        (1, "0.00001,2026-01-31T12:00:00Z"),
        (999_999_999, "1.00000,2026-01-31T12:00:00Z"),
        (12_345_678_900, "12.34568,2026-01-31T12:00:00Z"),
    ] {
        assert_eq!(write(Ratio::from_nano(nano), time, None), want);
    }
    assert_eq!(write_hot(3, time, None), "3,2026-01-31T12:00:00Z");
    let shanghai = TimeZone::posix("CST-8").unwrap();
    assert_eq!(write_hot(3, time, Some(&shanghai)), "3,2026-01-31T20:00:00Z", "for a reader in that zone");
}

proptest! {
    #[test]
    fn nothing_panics_and_the_strict_reader_takes_nothing_the_lax_one_refuses(text in "[-+0-9.eEnNiIfF_,TZ: ]{0,30}") {
        let lax = read_upstream(&text, None);
        if let Ok(reading) = read(&text, None) {
            let late = lax.unwrap();
            prop_assert_eq!(late.at, reading.at);
            // A number too large for Go is still a number.
            prop_assert!(reading.value.is_err() || late.value.is_ok() || reading.value == Ok(exact(i64::MAX)));
        }
    }

    #[test]
    fn what_is_written_reads_back_not_less_and_to_five_decimals(nano in 0..i64::MAX - 10_000, second in 0..4_000_000_000_i64) {
        let time = Timestamp::from_second(second).unwrap();
        let back = read(&write(Ratio::from_nano(nano), time, None), None).unwrap();
        let Ok(Figure::Exact(value)) = back.value else { panic!("exact by default") };
        prop_assert!((0..10_000).contains(&(value.nano() - nano)));
        prop_assert_eq!(back.at, time);
    }
}

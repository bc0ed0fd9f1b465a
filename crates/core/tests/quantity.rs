//! Quantities answer as recorded from Kubernetes.

mod recorded;

use loadline_core::quantity::{Format, Quantity};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    r#in: String,
    ok: bool,
    #[serde(default)]
    out: String,
    #[serde(default)]
    format: String,
    #[serde(default)]
    value: i64,
    #[serde(default)]
    milli: i64,
    exact_value: Option<i64>,
    exact_milli: Option<i64>,
    #[serde(default)]
    lossy: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pair {
    a: Quantity,
    b: Quantity,
    sum: String,
    sum_format: String,
    dif: String,
    dif_format: String,
    cmp: i8,
}

#[derive(Deserialize)]
struct File<T> {
    cases: Vec<T>,
}

fn name(format: Format) -> &'static str {
    match format {
        Format::BinarySi => "BinarySI",
        Format::DecimalSi => "DecimalSI",
        Format::DecimalExponent => "DecimalExponent",
    }
}

#[test]
fn every_recorded_text_is_read_and_printed_as_kubernetes_does() {
    let file: File<Case> = recorded::read("quantity.json");
    assert!(file.cases.len() >= 400);
    for c in file.cases {
        let got = c.r#in.parse::<Quantity>();
        assert_eq!(got.is_ok(), c.ok, "accepting {:?}: {got:?}", c.r#in);
        let Ok(got) = got else { continue };
        assert_eq!(name(got.format()), c.format, "style of {:?}", c.r#in);
        assert_eq!(got.value(), c.exact_value.unwrap_or(c.value), "value of {:?}", c.r#in);
        assert_eq!(got.milli_value(), c.exact_milli.unwrap_or(c.milli), "milli of {:?}", c.r#in);
        let digits = c.out.trim_end_matches(|c: char| !c.is_ascii_digit()).trim_end_matches('0').len();
        if digits > 38 && got.to_string() != c.out {
            // Beyond what we keep: near, and never less in size. The integers above were compared.
            let size = |text: &str| text.trim_start_matches('-').get(..30).map(ToOwned::to_owned);
            assert_eq!(size(&got.to_string()), size(&c.out), "first digits of {:?}", c.r#in);
        } else if c.lossy {
            assert_eq!(got.to_string().parse(), Ok(got), "{:?} survives printing with us", c.r#in);
        } else {
            assert_eq!(got.to_string(), c.out, "text of {:?}", c.r#in);
        }
    }
}

#[test]
fn recorded_sums_and_differences_agree_in_amount_and_style() {
    let file: File<Pair> = recorded::read("quantity-arithmetic.json");
    assert!(file.cases.len() >= 100);
    for c in file.cases {
        let (sum, dif) = (c.a.plus(c.b), c.a.minus(c.b));
        let who = format!("{} and {}", c.a, c.b);
        assert_eq!((sum.to_string(), name(sum.format())), (c.sum, c.sum_format.as_str()), "sum of {who}");
        assert_eq!(
            (dif.to_string(), name(dif.format())),
            (c.dif, c.dif_format.as_str()),
            "difference of {who}"
        );
        assert_eq!(c.a.cmp(&c.b) as i8, c.cmp, "order of {who}");
    }
}

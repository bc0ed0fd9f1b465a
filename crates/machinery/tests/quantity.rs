//! Quantities answer as recorded from Kubernetes.

mod recorded;

use loadline_machinery::quantity::{Format, Quantity, stored};
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
    /// How kube-apiserver writes it back, where that is not `out`.
    kept: Option<String>,
    #[serde(default)]
    err: String,
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
        if is_too_long(&c.out) && got.to_string() != c.out {
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

/// Does `text` have more digits than we keep?
fn is_too_long(text: &str) -> bool {
    text.trim_end_matches(|c: char| !c.is_ascii_digit()).trim_end_matches('0').len() > 38
}

#[test]
fn every_recorded_text_is_stored_as_kube_apiserver_stores_it() {
    let file: File<Case> = recorded::read("quantity.json");
    let mut kept = 0;
    for c in file.cases {
        let want = c.kept.as_ref().unwrap_or(&c.out);
        // Texts with spaces around come from JSON, where they are cut off first.
        if c.r#in.trim() != c.r#in || is_too_long(want) {
            continue;
        }
        match stored(&c.r#in) {
            Ok(text) => assert_eq!(&text, want, "{:?}", c.r#in),
            Err(error) => assert_eq!(error.in_kubernetes_words(), c.err, "{:?}", c.r#in),
        }
        kept += usize::from(c.kept.is_some());
    }
    assert!(kept > 50, "{kept} texts were kept as they were");
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

//! Label selectors answer as recorded from Kubernetes.

mod recorded;

use loadline_machinery::label::{LabelSelector, Selector};
use serde::Deserialize;
use std::collections::BTreeMap;

type Labels = BTreeMap<String, String>;

fn digits<T>(tried: &[T], f: impl Fn(&T) -> bool) -> String {
    tried.iter().map(|t| if f(t) { '1' } else { '0' }).collect()
}

#[derive(Deserialize)]
struct LabelFile {
    labels: Vec<Labels>,
    parsed: Vec<LabelCase>,
    structured: Vec<LabelCase>,
}

#[derive(Deserialize)]
struct LabelCase {
    r#in: Option<String>,
    selector: Option<LabelSelector>,
    ok: bool,
    #[serde(default)]
    out: String,
    #[serde(default)]
    r#match: String,
}

#[test]
fn every_recorded_label_selector_is_read_printed_and_matched_the_same() {
    let file: LabelFile = recorded::read("label-selector.json");
    assert!(file.parsed.len() >= 150);
    for c in file.parsed.iter().chain(&file.structured) {
        let (who, got) = match &c.r#in {
            Some(text) => (format!("{text:?}"), text.parse::<Selector>()),
            None => (format!("{:?}", c.selector), LabelSelector::prepare(c.selector.as_ref())),
        };
        assert_eq!(got.is_ok(), c.ok, "accepting {who}: {got:?}");
        let Ok(got) = got else { continue };
        assert_eq!(got.to_string(), c.out, "text of {who}");
        assert_eq!(digits(&file.labels, |l| got.matches(l)), c.r#match, "matches of {who}");
    }
}

//! Pods add up as recorded from Kubernetes.

mod recorded;

use loadline_core::requests::{NonZero, Options, Overhead, Pod, PodLevel, Source, limits, nonzero, requests};
use loadline_core::resources::List;
use serde::Deserialize;
use std::collections::BTreeMap;

type Text = BTreeMap<String, String>;

#[derive(Deserialize)]
struct File {
    written: Vec<Case>,
    drawn: Vec<Case>,
}

/// Answers that repeat `requests` or `limits` are left out of the file; `{"": ""}` stands for an empty one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    #[serde(default)]
    why: String,
    pod: Pod,
    requests: Text,
    limits: Text,
    container_status: Option<Text>,
    spec: Option<Text>,
    spec_limits: Option<Text>,
    bare: Option<Text>,
    non_zero: (i64, i64),
}

fn text(list: &List) -> Text {
    list.iter().map(|(name, amount)| (name.clone(), amount.to_string())).collect()
}

fn or<'a>(special: Option<&'a Text>, usual: &'a Text) -> Text {
    special
        .unwrap_or(usual)
        .iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(n, a)| (n.clone(), a.clone()))
        .collect()
}

#[test]
fn every_recorded_pod_adds_up_to_the_same_totals() {
    let file: File = recorded::read("pod-resources.json");
    assert!(file.written.len() >= 60 && file.drawn.len() >= 200);
    let all = Options::default();
    let written = Options { pod_level: PodLevel::Written, ..all };
    let spec = Options { source: Source::Spec, ..all };
    let bare = Options { pod_level: PodLevel::Ignored, overhead: Overhead::Excluded, ..all };
    for (i, c) in file.written.iter().chain(&file.drawn).enumerate() {
        let who = format!("pod {i} {:?}", c.why);
        assert_eq!(text(&requests(&c.pod, all)), c.requests, "requests of {who}");
        assert_eq!(text(&limits(&c.pod, all)), c.limits, "limits of {who}");
        assert_eq!(
            text(&requests(&c.pod, written)),
            or(c.container_status.as_ref(), &c.requests),
            "container status of {who}"
        );
        assert_eq!(text(&requests(&c.pod, spec)), or(c.spec.as_ref(), &c.requests), "spec of {who}");
        assert_eq!(
            text(&limits(&c.pod, spec)),
            or(c.spec_limits.as_ref(), &c.limits),
            "written limits of {who}"
        );
        assert_eq!(text(&requests(&c.pod, bare)), or(c.bare.as_ref(), &c.requests), "containers of {who}");
        let (cpu_milli, memory_bytes) = c.non_zero;
        assert_eq!(nonzero(&c.pod, all), NonZero { cpu_milli, memory_bytes }, "scoring requests of {who}");
    }
}

#[test]
fn null_fields_read_as_not_given() {
    let json = r#"{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":1,"memory":null},"limits":null}}],
        "initContainers":null,"overhead":null},"status":null}"#;
    let pod: Pod = serde_json::from_str(json).unwrap();
    assert_eq!(
        text(&requests(&pod, Options::default())),
        Text::from([("cpu".into(), "1".into()), ("memory".into(), "0".into())])
    );
}

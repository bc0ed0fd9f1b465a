//! What did pods use over some time? The body of `/api/v1/query_range`, as samples of pods.

use super::{Labels, Refused, open};
use loadline_core::object::Key;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// One pod, and what it used: seconds since 1970, cores.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUse {
    pub pod: Key,
    pub samples: Vec<(i64, f64)>,
}

/// What was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RangeAnswer {
    pub pods: Vec<PodUse>,
    /// Series without the labels `namespace` and `pod`.
    pub unlabelled: usize,
    /// What Prometheus says is odd about it.
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data<'a> {
    #[serde(borrow)]
    Matrix(Vec<Element<'a>>),
    Vector(IgnoredAny),
    Scalar(IgnoredAny),
    String(IgnoredAny),
}

#[derive(Deserialize)]
struct Element<'a> {
    #[serde(borrow)]
    metric: Labels<'a>,
    /// Seconds, and the value as text. Histograms have none.
    #[serde(borrow, default)]
    values: Vec<(f64, Cow<'a, str>)>,
}

/// Reads an answer. What is no number (`NaN`) is nothing.
///
/// # Errors
/// When it is no matrix, and what the server says of it.
pub fn read_range(body: &[u8]) -> Result<RangeAnswer, Refused> {
    let (data, warnings) = open::<Data<'_>>(body)?;
    let elements = match data {
        Data::Matrix(elements) => elements,
        Data::Vector(_) => return Err(Refused::NoMatrix("vector")),
        Data::Scalar(_) => return Err(Refused::NoMatrix("scalar")),
        Data::String(_) => return Err(Refused::NoMatrix("string")),
    };
    let mut answer = RangeAnswer { warnings, ..RangeAnswer::default() };
    for Element { metric, values } in elements {
        let named = |label: &str| metric.get(label).filter(|text| !text.is_empty());
        let (Some(namespace), Some(pod)) = (named("namespace"), named("pod")) else {
            answer.unlabelled += 1;
            continue;
        };
        #[expect(clippy::cast_possible_truncation, reason = "a float is held at the ends, where no time is")]
        let read = |(second, text): (f64, Cow<'_, str>)| {
            Some((second.round() as i64, text.parse().ok().filter(|value: &f64| !value.is_nan())?))
        };
        let samples = values.into_iter().filter_map(read).collect();
        answer.pods.push(PodUse { pod: Key::new(&**namespace, &**pod), samples });
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_by_pod() {
        let body = br#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"namespace":"shop","pod":"web-1"},"values":[[1769860800,"0.25"],[1769861100.4,"NaN"],[1769861400,"1e-3"]]},
            {"metric":{"pod":"web-2"},"values":[[1769860800,"1"]]},
            {"metric":{"namespace":"shop","pod":"h"},"histograms":[[1769860800,{}]]}
        ]},"warnings":["partial"]}"#;
        let answer = read_range(body).expect("an answer");
        let one = |name: &str, samples| PodUse { pod: Key::new("shop", name), samples };
        let pods = vec![one("web-1", vec![(1_769_860_800, 0.25), (1_769_861_400, 0.001)]), one("h", vec![])];
        assert_eq!(answer, RangeAnswer { pods, unlabelled: 1, warnings: vec!["partial".into()] });
    }

    #[test]
    fn what_is_no_matrix_is_told() {
        for (body, want) in [
            (
                r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#,
                "the answer is a vector, expected a matrix, as a range query has it",
            ),
            (
                r#"{"status":"error","errorType":"execution","error":"too many samples"}"#,
                "execution: too many samples",
            ),
            ("<html>", "not an answer of Prometheus: expected value at line 1 column 1: <html>"),
        ] {
            assert_eq!(read_range(body.as_bytes()).expect_err("no answer").to_string(), want);
        }
    }
}

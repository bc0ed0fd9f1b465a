//! What does Prometheus answer? The body of `/api/v1/query`, as series that name nodes.
//!
//! The answer says when a query was evaluated, not when its samples are from. For a [`Query::Rule`] every
//! series comes twice: as its value and, marked by a label, as the time of its newest sample; both are put together here.

mod range;
mod setup;

pub use range::{PodUse, RangeAnswer, read_range};
pub use setup::{recording_rules, scrape_intervals};

use jiff::Timestamp;
use loadline_core::load::join::Series;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// Marks the series that are times.
const STAMP: &str = "loadline_stamp";
/// The labels that name a node, if no other is said to.
const USUAL: [&str; 2] = ["instance", "node"];
/// How much of what is no answer is shown.
const SHOWN: usize = 80;

/// What is asked for one metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// A series by its name, such as a recording rule makes, of those that match: `cluster="a"`.
    Rule { name: String, matchers: Vec<String> },
    /// An expression, as it is.
    Expression(String),
}

impl Query {
    /// What is sent. A series is asked for with the time of its samples; an expression has none.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Expression(text) => text.clone(),
            Self::Rule { name, matchers } => {
                let series = format!("{name}{{{}}}", matchers.join(","));
                format!("{series} or label_replace(timestamp({series}),\"{STAMP}\",\"1\",\"\",\"\")")
            }
        }
    }
}

/// What was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub series: Vec<Series>,
    /// Series without any label that names a node.
    pub unlabelled: usize,
    /// What Prometheus says is odd about it.
    pub warnings: Vec<String>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The query is at fault, not the server: asking again does not help.
    #[error("the query is refused: {0}")]
    Query(String),
    #[error("{kind}: {message}")]
    Failed { kind: String, message: String },
    #[error("the answer is a {0}, expected an instant vector")]
    NoVector(&'static str),
    #[error("the answer is a {0}, expected a matrix, as a range query has it")]
    NoMatrix(&'static str),
    #[error("not an answer of Prometheus: {0}")]
    Other(String),
}

#[derive(Deserialize)]
struct Body<'a, D> {
    #[serde(borrow)]
    status: Cow<'a, str>,
    data: Option<D>,
    #[serde(rename = "errorType", default)]
    error_type: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data<'a> {
    #[serde(borrow)]
    Vector(Vec<Element<'a>>),
    Matrix(IgnoredAny),
    Scalar(IgnoredAny),
    String(IgnoredAny),
}

/// By name. There are ten thousand of these at a time, of four labels or so.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Labels<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Labels<'a> {
    fn get(&self, name: &str) -> Option<&Cow<'a, str>> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, text)| text)
    }

    /// Takes it out; says whether it was there.
    fn remove(&mut self, name: &str) -> bool {
        let count = self.0.len();
        self.0.retain(|(key, _)| key != name);
        self.0.len() < count
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Labels<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Vec<(Cow<'de, str>, Cow<'de, str>)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::with_capacity(4);
                while let Some((Text(name), Text(text))) = map.next_entry()? {
                    pairs.push((name, text));
                }
                Ok(pairs)
            }
        }

        let mut pairs = deserializer.deserialize_map(Pairs)?;
        pairs.sort_unstable();
        Ok(Self(pairs))
    }
}

/// Borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Element<'a> {
    #[serde(borrow)]
    metric: Labels<'a>,
    /// Seconds, and the value as text. Histograms have none.
    value: Option<(f64, Cow<'a, str>)>,
}

/// What an answer has, and what Prometheus says is odd about it.
fn open<'a, D: Deserialize<'a>>(body: &'a [u8]) -> Result<(D, Vec<String>), Refused> {
    let other = |error: &dyn fmt::Display| {
        let text = String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN)]);
        let start: String = text.trim().chars().take(SHOWN).collect();
        Refused::Other(if start.is_empty() { "it is empty".to_owned() } else { format!("{error}: {start}") })
    };
    let read: Body<'a, D> = serde_json::from_slice(body).map_err(|error| other(&error))?;
    if read.status != "success" {
        return Err(match &*read.error_type {
            "bad_data" => Refused::Query(read.error),
            _ => Refused::Failed { kind: read.error_type, message: read.error },
        });
    }
    Ok((read.data.ok_or_else(|| other(&"no data"))?, read.warnings))
}

/// Reads an answer; `label` names nodes, or one of the usual does.
///
/// # Errors
/// When it is no instant vector, and what the server says of it.
pub fn read(body: &[u8], label: Option<&str>) -> Result<Answer, Refused> {
    let (data, warnings) = open::<Data<'_>>(body)?;
    let elements = match data {
        Data::Vector(elements) => elements,
        Data::Matrix(_) => return Err(Refused::NoVector("matrix")),
        Data::Scalar(_) => return Err(Refused::NoVector("scalar")),
        Data::String(_) => return Err(Refused::NoVector("string")),
    };
    let mut answer = Answer { warnings, ..Answer::default() };
    let mut stamps: HashMap<Labels<'_>, f64> = HashMap::new();
    let mut values = Vec::with_capacity(elements.len());
    for Element { mut metric, value } in elements {
        metric.remove("__name__");
        let stamped = metric.remove(STAMP);
        let Some((evaluated, text)) = value else { continue };
        if !stamped {
            values.push((metric, evaluated, text));
        } else if let Ok(seconds) = text.parse() {
            stamps.insert(metric, seconds);
        }
    }
    for (labels, evaluated, percent) in values {
        let named = |label: &str| labels.get(label).filter(|text| !text.is_empty()).map(ToString::to_string);
        let whose: Vec<String> = match label {
            Some(label) => named(label).into_iter().collect(),
            None => USUAL.into_iter().filter_map(named).collect(),
        };
        let at = moment(stamps.get(&labels).copied().unwrap_or(evaluated));
        let (false, Some(at)) = (whose.is_empty(), at) else {
            answer.unlabelled += 1;
            continue;
        };
        answer.series.push(Series { whose, percent: percent.into_owned(), at });
    }
    Ok(answer)
}

/// Seconds with a fraction, to the millisecond, as Prometheus keeps time.
fn moment(seconds: f64) -> Option<Timestamp> {
    #[expect(clippy::cast_possible_truncation, reason = "a float is held at the ends, where no time is")]
    Timestamp::from_millisecond((seconds * 1000.0).round() as i64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(whose: &[&str], percent: &str, at: &str) -> Series {
        let whose = whose.iter().map(|text| (*text).to_owned()).collect();
        Series { whose, percent: percent.into(), at: at.parse().expect("a time") }
    }

    #[test]
    fn a_rule_is_asked_for_with_its_matchers_and_the_time_of_its_samples() {
        let matchers = vec!["cluster=\"a\"".to_owned(), "job=~\"node.*\"".to_owned()];
        let query = Query::Rule { name: "cpu_usage_avg_5m".into(), matchers };
        let series = "cpu_usage_avg_5m{cluster=\"a\",job=~\"node.*\"}";
        let want =
            format!("{series} or label_replace(timestamp({series}),\"loadline_stamp\",\"1\",\"\",\"\")");
        assert_eq!(query.text(), want);
        assert_eq!(Query::Expression("100 * up".into()).text(), "100 * up");
    }

    #[test]
    fn values_get_the_time_of_their_samples_where_it_is_known() {
        let body = br#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"__name__":"m","instance":"10.0.0.1:9100","job":"x"},"value":[1769860800.5,"43.012"]},
            {"metric":{"__name__":"m","instance":"10.0.0.2:9100","node":"b"},"value":[1769860800.5,"NaN"]},
            {"metric":{"job":"x"},"value":[1769860800.5,"1"]},
            {"metric":{"instance":"h"},"histogram":[1769860800.5,{}]},
            {"metric":{"instance":"10.0.0.1:9100","job":"x","loadline_stamp":"1"},"value":[1769860800.5,"1769860790.25"]},
            {"metric":{"instance":"10.0.0.1:9100","job":"y","loadline_stamp":"1"},"value":[1769860800.5,"1"]}
        ]},"warnings":["partial"],"infos":["x"]}"#;
        let answer = read(body, None).expect("an answer");
        let want = Answer {
            series: vec![
                series(&["10.0.0.1:9100"], "43.012", "2026-01-31T11:59:50.25Z"),
                series(&["10.0.0.2:9100", "b"], "NaN", "2026-01-31T12:00:00.5Z"),
            ],
            unlabelled: 1,
            warnings: vec!["partial".into()],
        };
        assert_eq!(answer, want);
        let named = read(body, Some("node")).expect("an answer");
        assert_eq!((named.series.len(), named.unlabelled), (1, 2), "only those that have the label");
    }

    #[test]
    fn what_is_no_vector_is_told_and_a_query_at_fault_is_told_apart() {
        for (body, want) in [
            (
                "<html><body>502 Bad Gateway</body></html>",
                "not an answer of Prometheus: expected value at line 1 column 1: <html><body>502 Bad Gateway</body></html>",
            ),
            ("", "not an answer of Prometheus: it is empty"),
            (
                r#"{"status":"error","errorType":"bad_data","error":"1:5: parse error"}"#,
                "the query is refused: 1:5: parse error",
            ),
            (r#"{"status":"error","errorType":"timeout","error":"too slow"}"#, "timeout: too slow"),
            (
                r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#,
                "the answer is a matrix, expected an instant vector",
            ),
            (r#"{"status":"success"}"#, r#"not an answer of Prometheus: no data: {"status":"success"}"#),
            (
                r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#,
                "the answer is a scalar, expected an instant vector",
            ),
        ] {
            assert_eq!(read(body.as_bytes(), None).expect_err("no answer").to_string(), want);
        }
    }
}

//! How are answers kept, compared, and which differences are meant?

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Answers of all cases, by area and name.
pub type Record = BTreeMap<(String, String), Vec<Value>>;

/// Longest line of a record, as far as its values allow.
const WIDTH: usize = 120;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// The files of cases with their text.
pub fn scripts() -> Vec<(String, String)> {
    let entries = fs::read_dir(folder().join("cases")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// What the real server answered when the record was made.
pub fn load(area: &str) -> Record {
    let Ok(text) = fs::read_to_string(folder().join(format!("recorded/{area}.json"))) else {
        return Record::new();
    };
    let cases: BTreeMap<String, Vec<Value>> = serde_json::from_str(&text).unwrap();
    cases.into_iter().map(|(name, answers)| ((area.to_owned(), name), answers)).collect()
}

/// Writes the record of one area.
pub fn save(area: &str, cases: &[(&str, &[Value])]) {
    let mut text = "{\n".to_owned();
    for (at, (name, answers)) in cases.iter().enumerate() {
        let comma = if at + 1 < cases.len() { "," } else { "" };
        let _ = writeln!(text, "{}: [", Value::from(*name));
        for (at, answer) in answers.iter().enumerate() {
            text.push_str("  ");
            print(answer, 2, &mut text);
            text.push_str(if at + 1 < answers.len() { ",\n" } else { "\n" });
        }
        let _ = writeln!(text, "]{comma}");
    }
    text.push_str("}\n");
    fs::write(folder().join(format!("recorded/{area}.json")), text).unwrap();
}

/// JSON that breaks lines only where they would get long.
fn print(value: &Value, indent: usize, out: &mut String) {
    let short = value.to_string();
    if indent + short.len() <= WIDTH || !(value.is_array() || value.is_object()) {
        out.push_str(&short);
        return;
    }
    let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
    let pairs: Vec<(Option<&String>, &Value)> = match value {
        Value::Array(items) => items.iter().map(|item| (None, item)).collect(),
        Value::Object(object) => object.iter().map(|(key, value)| (Some(key), value)).collect(),
        _ => Vec::new(),
    };
    out.push(open);
    for (at, (key, value)) in pairs.iter().enumerate() {
        out.push_str(if at > 0 { ",\n" } else { "\n" });
        out.push_str(&" ".repeat(indent + 2));
        if let Some(key) = key {
            let _ = write!(out, "{}: ", Value::from(key.as_str()));
        }
        print(value, indent + 2, out);
    }
    let _ = write!(out, "\n{}{close}", " ".repeat(indent));
}

/// One place where two answers differ.
pub struct Difference {
    pub path: String,
    pub want: Value,
    pub got: Value,
}

/// Every place where `got` differs from `want`. Paths start with the number of the step.
pub fn differences(want: &[Value], got: &[Value]) -> Vec<Difference> {
    let mut found = Vec::new();
    for at in 0..want.len().max(got.len()) {
        let (want, got) = (want.get(at).unwrap_or(&Value::Null), got.get(at).unwrap_or(&Value::Null));
        let path = format!("/{}", at + 1);
        if want["code"] == got["code"] {
            compare(&path, want, got, &mut found);
        } else {
            // An object against an error: every field differs, and none of that says more.
            found.push(Difference { path, want: want.clone(), got: got.clone() });
        }
    }
    found
}

fn compare(path: &str, want: &Value, got: &Value, found: &mut Vec<Difference>) {
    match (want, got) {
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (left.get(key), right.get(key)) {
                    (Some(left), Some(right)) => compare(&path, left, right, found),
                    (left, right) => found.push(Difference {
                        path,
                        want: left.cloned().unwrap_or_else(|| "(absent)".into()),
                        got: right.cloned().unwrap_or_else(|| "(absent)".into()),
                    }),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}/{at}"), left, right, found);
            }
        }
        _ if want == got => {}
        _ => found.push(Difference { path: path.to_owned(), want: want.clone(), got: got.clone() }),
    }
}

/// A difference that is meant.
pub struct Intended {
    pub case: String,
    pub paths: Vec<String>,
}

/// Reads `intended.md`: the rows of its table are case, paths, reason.
pub fn intended() -> Vec<Intended> {
    let text = fs::read_to_string(folder().join("intended.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 3 && !cells[2].is_empty(), "intended.md: a row is case, paths, reason: {row}");
        let paths = cells[1].split_whitespace().map(|path| path.trim_matches('`').to_owned()).collect();
        Intended { case: cells[0].to_owned(), paths }
    })
    .collect()
}

impl Intended {
    /// Whether a difference at this path is meant.
    pub fn covers(&self, path: &str) -> bool {
        self.paths
            .iter()
            .any(|own| path == own || path.strip_prefix(own).is_some_and(|rest| rest.starts_with('/')))
    }
}

//! How is a case written?
//!
//! A file of cases (`cases/*.txt`) is text:
//!
//! ```text
//! let cms = /api/v1/namespaces/<ns>/configmaps        a name for text, used as <cms>
//!
//! = a case starts with its name
//! # a remark
//! POST <cms>                                          a step: method and path,
//! Accept: application/json                            headers,
//! @save uid /metadata/uid                             what to do with the answer,
//! {"metadata": {"name": "a"}}                         and the body; a blank line ends the step
//! ```
//!
//! Methods beside HTTP's: `MERGE`, `JSON`, `STRATEGIC` and `APPLY` are patches of that type; `WATCH name path` opens
//! a watch; `EVENTS name 3` reads three of its events, `EVENTS name end` all until it ends.
//!
//! | line | meaning |
//! |---|---|
//! | `@save name /pointer` | remember part of the answer as `<name>` |
//! | `@until /pointer = JSON`, `@until /pointer absent`, `@until status = 404` | ask again until it is so |
//! | `@brief` | only the status code counts |
//! | `@only /pointer …` | only these parts of the body count |
//! | `@drop /pointer …` | these parts do not; `*` is any key or index |
//! | `@sort /pointer …` | the order of the array there does not |
//! | `@where /pointer key a,b` | of the array there only the elements whose `key` (or pointer) is one of these count |
//!
//! `<ns>` is the namespace of the case, `<repeat:TEXT:N>` the text N times, `<byte:ff>` one byte, `<now>` the time.

use std::collections::BTreeMap;

/// One file of cases.
pub struct Area {
    pub name: String,
    pub cases: Vec<Case>,
}

/// A sequence of requests with one story.
#[derive(Clone)]
pub struct Case {
    pub name: String,
    pub steps: Vec<Step>,
    pub lets: BTreeMap<String, String>,
}

/// One request and what to make of its answer.
#[derive(Clone, Default)]
pub struct Step {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub save: Vec<(String, String)>,
    pub until: Option<(String, Goal)>,
    pub brief: bool,
    pub only: Vec<String>,
    pub drop: Vec<String>,
    pub sort: Vec<String>,
    pub keep: Vec<(String, String, Vec<String>)>,
}

/// What a repeated request waits for.
#[derive(Clone)]
pub enum Goal {
    Is(String),
    Absent,
}

/// Reads a file of cases.
pub fn parse(name: &str, text: &str) -> Area {
    let mut lets = BTreeMap::new();
    let mut cases: Vec<Case> = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let bad = |what: &str| -> ! { panic!("{name}.txt:{}: {what}: {line}", at + 1) };
        if line.trim().is_empty() || line.starts_with('#') {
        } else if let Some(rest) = line.strip_prefix("let ") {
            let Some((key, value)) = rest.split_once(" = ") else { bad("expected let NAME = TEXT") };
            lets.insert(key.trim().to_owned(), value.to_owned());
        } else if let Some(title) = line.strip_prefix("= ") {
            cases.push(Case { name: title.to_owned(), steps: Vec::new(), lets: BTreeMap::new() });
        } else {
            let Some((method, path)) = line.split_once(' ') else { bad("expected METHOD PATH") };
            let mut step = Step { method: method.to_owned(), path: path.to_owned(), ..Step::default() };
            let mut body = Vec::new();
            while let Some((at, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
                if !body.is_empty() || !step.take(line) {
                    body.push(line);
                }
                assert!(!line.starts_with("= "), "{name}.txt:{}: a blank line is missing", at + 1);
            }
            step.body = body.join("\n");
            match cases.last_mut() {
                Some(case) => case.steps.push(step),
                None => bad("a step before the first case"),
            }
        }
    }
    for case in &mut cases {
        case.lets.clone_from(&lets);
    }
    Area { name: name.to_owned(), cases }
}

impl Step {
    /// Takes a header or an instruction; `false` when the line is neither.
    fn take(&mut self, line: &str) -> bool {
        let Some(rest) = line.strip_prefix('@') else {
            let header = line.split_once(": ").filter(|(key, _)| {
                key.starts_with(|c: char| c.is_ascii_uppercase())
                    && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            });
            if let Some((key, value)) = header {
                self.headers.push((key.to_owned(), value.to_owned()));
            }
            return header.is_some();
        };
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let words = || rest.split_whitespace().map(str::to_owned);
        match word {
            "save" => {
                let (name, pointer) = rest.split_once(' ').unwrap();
                self.save.push((name.to_owned(), pointer.to_owned()));
            }
            "until" => {
                self.until = Some(match rest.split_once(" = ") {
                    Some((pointer, value)) => (pointer.to_owned(), Goal::Is(value.to_owned())),
                    None => (rest.strip_suffix(" absent").unwrap().to_owned(), Goal::Absent),
                });
            }
            "brief" => self.brief = true,
            "only" => self.only.extend(words()),
            "drop" => self.drop.extend(words()),
            "sort" => self.sort.extend(words()),
            "where" => {
                let words: Vec<String> = words().collect();
                let values = words[2].split(',').map(str::to_owned).collect();
                self.keep.push((words[0].clone(), words[1].clone(), values));
            }
            _ => panic!("unknown instruction @{word}"),
        }
        true
    }
}

/// Replaces every `<name>` in a text.
pub fn expand(text: &str, values: &BTreeMap<String, String>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        out.extend_from_slice(&rest.as_bytes()[..start]);
        let end = rest[start..].find('>').map_or_else(|| panic!("no '>' in {text}"), |end| start + end);
        let name = &rest[start + 1..end];
        let mut words = name.split(':');
        match (words.next(), words.next(), words.next()) {
            (Some("repeat"), Some(piece), Some(count)) => {
                out.extend_from_slice(piece.repeat(count.parse().unwrap()).as_bytes());
            }
            (Some("byte"), Some(hex), None) => out.push(u8::from_str_radix(hex, 16).unwrap()),
            _ => match values.get(name) {
                Some(value) => out.extend(expand(value, values)),
                None => panic!("nothing is called <{name}> in {text}"),
            },
        }
        rest = &rest[end + 1..];
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

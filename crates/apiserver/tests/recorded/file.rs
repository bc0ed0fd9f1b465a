//! How are recorded answers read, compared and written?

use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What came of one list of questions.
pub struct Compared {
    pub what: &'static str,
    pub same: usize,
    pub differ: Vec<String>,
}

/// A file of `recorded/`: one list, or an object of lists.
pub struct File {
    name: &'static str,
    whole: Value,
}

impl File {
    pub fn read(name: &'static str) -> Self {
        let text = std::fs::read_to_string(path(name)).unwrap();
        Self { name, whole: serde_json::from_str(&text).unwrap() }
    }

    fn rows(&mut self, list: Option<&str>) -> &mut Vec<Value> {
        let rows = match list {
            Some(list) => &mut self.whole[list],
            None => &mut self.whole,
        };
        rows.as_array_mut().unwrap()
    }

    /// Asks every question of a list again, several at once. `ask` gives the row of a number with the answers of today,
    /// `mask` takes out what differs between any two runs.
    pub fn compare(
        mut self,
        list: Option<&'static str>,
        lanes: usize,
        ask: impl Fn(usize, &Value) -> Value + Sync,
        mask: impl Fn(&Value) -> Value,
    ) -> Compared {
        let mut out = Compared { what: list.unwrap_or(self.name), same: 0, differ: Vec::new() };
        let answers = answers(self.rows(list), lanes, ask);
        let mut changed = false;
        let name = self.name;
        for (row, today) in self.rows(list).iter_mut().zip(answers) {
            let (want, got) = (mask(row), mask(&today));
            if want == got {
                out.same += 1;
                continue;
            }
            if recording() {
                *row = today;
                changed = true;
                out.same += 1;
            } else {
                out.differ.push(format!("{name}\n  recorded {want}\n  got      {got}"));
            }
        }
        if changed {
            std::fs::write(path(self.name), self.text()).unwrap();
        }
        out
    }

    /// One row per line and keys in order, so that a diff shows what changed.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut whole = self.whole.clone();
        whole.sort_all_objects();
        match &whole {
            Value::Array(rows) => lines(&mut out, rows),
            Value::Object(lists) => {
                for (index, (name, rows)) in lists.iter().enumerate() {
                    let start = if index == 0 { "{" } else { "," };
                    write!(out, "{start}{}:", Value::from(name.as_str())).unwrap();
                    lines(&mut out, rows.as_array().unwrap());
                }
                out.push('}');
            }
            other => panic!("{} is {other}", self.name),
        }
        out.push('\n');
        out
    }
}

fn answers(rows: &[Value], lanes: usize, ask: impl Fn(usize, &Value) -> Value + Sync) -> Vec<Value> {
    let next = AtomicUsize::new(0);
    let lane = || {
        let mut out = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(row) = rows.get(number) else { return out };
            out.push((number, ask(number, row)));
        }
    };
    let mut all: Vec<(usize, Value)> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, row)| row).collect()
}

fn lines(out: &mut String, rows: &[Value]) {
    let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    write!(out, "[\n{}\n]", rows.join(",\n")).unwrap();
}

fn recording() -> bool {
    std::env::var_os("LOADLINE_RECORD").is_some_and(|value| value == "1")
}

pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("recorded").join(name)
}

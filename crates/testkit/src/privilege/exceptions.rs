//! What differs on purpose? Lines of a file, each with its reason.

use super::{Problem, Right};
use std::fs;
use std::path::Path;

/// Where they stand.
pub(super) const FILE: &str = "deploy/privilege.txt";

/// What is so?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of {
    /// Granted, and never used.
    Granted,
    /// Used, and not granted.
    Used,
    /// Granted, and used only when something goes wrong or happens twice: seen in some runs and not in others.
    Rarely,
}

/// A line: `granted COMPONENT VERB RESOURCE: REASON`, or `used …`, or `rarely …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exception {
    pub of: Of,
    pub component: String,
    pub right: Right,
    pub why: String,
}

impl Exception {
    pub fn difference(&self) -> (Of, String, Right) {
        (self.of, self.component.clone(), self.right.clone())
    }
}

/// # Errors
/// Every line that is none, at once.
pub(super) fn read(path: &Path) -> Result<Vec<Exception>, Problem> {
    let text = fs::read_to_string(path).map_err(|error| Problem::file(path, error))?;
    parse(&text).map_err(|problems| Problem::file(path, problems.join("\n")))
}

fn parse(text: &str) -> Result<Vec<Exception>, Vec<String>> {
    let (mut out, mut problems) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match parse_line(line) {
            Some(exception) => out.push(exception),
            None => problems.push(format!(
                "line {}: expected `granted|used|rarely COMPONENT VERB RESOURCE: REASON`, found {line:?}",
                index + 1
            )),
        }
    }
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

fn parse_line(line: &str) -> Option<Exception> {
    let (what, why) = line.split_once(": ")?;
    let [of, component, verb, resource] = what.split_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    let of = match of {
        "granted" => Of::Granted,
        "used" => Of::Used,
        "rarely" => Of::Rarely,
        _ => return None,
    };
    let right = Right { verb: verb.to_owned(), resource: resource.to_owned() };
    let why = why.trim().to_owned();
    (!why.is_empty()).then_some(Exception { of, component: component.to_owned(), right, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_reason_is_none() {
        let text =
            "# why\n\ngranted a get nodes: because\nused a get nodes\nheld a get nodes: x\nused a nodes: x\n";
        let problems = parse(text).unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].starts_with("line 4:"), "{problems:?}");
        let good = parse("granted a get nodes: because\n").unwrap();
        assert_eq!((good[0].of, good[0].right.to_string().as_str()), (Of::Granted, "get nodes"));
        assert_eq!(good[0].why, "because");
    }
}

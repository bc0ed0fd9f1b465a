//! What were components seen to ask?

use super::{Problem, Right, Used};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Everything in the files of a folder, by component.
///
/// # Errors
/// When there is nothing, or a line that no process of ours writes.
pub(super) fn read(folder: &Path) -> Result<BTreeMap<String, Used>, Problem> {
    let mut out: BTreeMap<String, Used> = BTreeMap::new();
    for file in fs::read_dir(folder).map_err(|error| Problem::file(folder, error))? {
        let path = file.map_err(|error| Problem::file(folder, error))?.path();
        if path.extension().is_none_or(|kind| kind != "jsonl") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| Problem::file(&path, error))?;
        // A process that was killed while it wrote leaves a line without an end.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let (component, right, namespaced) =
                read_line(line).ok_or_else(|| Problem::file(&path, format!("not a record: {line}")))?;
            let used = out.entry(component).or_default();
            if namespaced { &mut used.namespaced } else { &mut used.cluster }.insert(right);
        }
    }
    if out.is_empty() {
        return Err(Problem::file(folder, "expected files with what components asked of API servers"));
    }
    Ok(out)
}

fn read_line(line: &str) -> Option<(String, Right, bool)> {
    let line: Value = serde_json::from_str(line).ok()?;
    let text = |field: &str| line[field].as_str();
    let right = Right::new(text("verb")?, text("group")?, text("resource")?, text("subresource")?);
    Some((text("component")?.to_owned(), right, line["namespaced"].as_bool()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_all_processes_are_taken_together() {
        let folder = tempfile::tempdir().unwrap();
        let line = |verb: &str, namespaced: bool| {
            format!(
                "{{\"component\":\"c\",\"verb\":\"{verb}\",\"group\":\"apps\",\"resource\":\"deployments\",\
                 \"subresource\":\"status\",\"namespaced\":{namespaced}}}\n"
            )
        };
        fs::write(folder.path().join("1-1.jsonl"), line("get", false) + &line("get", true)).unwrap();
        fs::write(folder.path().join("2-1.jsonl"), line("patch", true) + "{\"compo").unwrap();
        let right = |verb: &str| Right::new(verb, "apps", "deployments", "status");
        assert_eq!(right("get").to_string(), "get deployments.apps/status");
        let used = Used { cluster: [right("get")].into(), namespaced: [right("get"), right("patch")].into() };
        assert_eq!(read(folder.path()).unwrap(), BTreeMap::from([("c".to_owned(), used)]));
    }

    #[test]
    fn nothing_recorded_is_not_nothing_used() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).is_err());
        assert!(read(&folder.path().join("none")).is_err());
        fs::write(folder.path().join("1-1.jsonl"), "{}\n").unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("not a record"));
    }
}

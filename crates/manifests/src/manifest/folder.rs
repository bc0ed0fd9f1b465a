//! Which files does a path stand for?

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How the names of files end that hold objects.
const ENDS: [&str; 3] = ["yaml", "yml", "json"];

/// What Kustomize and Helm call files of their own: these say how objects are made, and need not say what they are.
const OF_TOOLS: [&str; 5] =
    ["kustomization.yaml", "kustomization.yml", "Chart.yaml", "values.yaml", "values.schema.json"];
/// What makes a folder a chart of Helm's, and its folder whose files are no YAML before Helm has rendered them.
const CHART: (&str, &str) = ("Chart.yaml", "templates");

/// What a path stands for.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<PathBuf>,
    /// What was left out because of its name: how often, by that name.
    pub(super) left: BTreeMap<String, usize>,
}

/// The file itself, whatever its name, or every file of a folder, and of the folders in it, whose name says that objects
/// may be in it, by name. What is hidden is left alone, and so are links to folders: one may lead back. What belongs to
/// tools that make objects is left out and counted.
///
/// # Errors
/// When a folder cannot be read, or has no such file.
pub(super) fn files(path: &Path) -> Result<Found, String> {
    if !path.is_dir() {
        return Ok(Found { files: vec![path.to_owned()], ..Found::default() });
    }
    let mut found = Found::default();
    walk(path, &mut found)?;
    if found.files.is_empty() && found.left.is_empty() {
        return Err("expected files that end in .yaml, .yml or .json, found none".to_owned());
    }
    found.files.sort();
    Ok(found)
}

fn walk(folder: &Path, found: &mut Found) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot be read: {}: {error}", folder.display());
    let (chart, templates) = CHART;
    let is_chart = folder.join(chart).is_file();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(wrong)?);
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let ends = path.extension().and_then(|end| end.to_str());
        if kind.is_dir() && is_chart && name == templates {
            *found.left.entry(format!("{templates}/")).or_default() += 1;
        } else if kind.is_dir() {
            walk(&path, found)?;
        } else if OF_TOOLS.contains(&&*name) && path.is_file() {
            *found.left.entry(name).or_default() += 1;
        } else if ends.is_some_and(|end| ENDS.contains(&end)) && path.is_file() {
            found.files.push(path);
        }
    }
    Ok(())
}

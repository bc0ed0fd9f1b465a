//! Which files does a path stand for?

use std::fs;
use std::path::{Path, PathBuf};

/// How the names of files end that hold objects.
const ENDS: [&str; 3] = ["yaml", "yml", "json"];

/// The file itself, or every file of a folder, and of the folders in it, whose name says that objects may be in it, by
/// name. What is hidden is left alone, and so are links to folders: one may lead back.
///
/// # Errors
/// When a folder cannot be read, or has no such file.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    walk(path, &mut found)?;
    if found.is_empty() {
        return Err("expected files that end in .yaml, .yml or .json, found none".to_owned());
    }
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot be read: {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(wrong)?);
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let ends = path.extension().and_then(|end| end.to_str());
        if kind.is_dir() {
            walk(&path, found)?;
        } else if ends.is_some_and(|end| ENDS.contains(&end)) && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

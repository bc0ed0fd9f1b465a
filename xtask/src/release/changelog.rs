//! What is new: the files of `changes/`, put together.

use anyhow::{Context as _, Result, bail};
use cargo_metadata::semver::Version;
use std::fs;
use std::path::{Path, PathBuf};

/// What one file says.
#[derive(Debug)]
pub struct Change {
    pub file: PathBuf,
    pub text: String,
}

/// Everything in the folder, in the order of names: the same for everybody.
pub fn changes(folder: &Path) -> Result<Vec<Change>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            files.push(path);
        }
    }
    if files.is_empty() {
        bail!("{}: expected a file for each change users notice, found none", folder.display());
    }
    files.sort();
    let (mut out, mut empty) = (Vec::new(), Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        if text.trim().is_empty() {
            empty.push(format!("{}: expected what has changed, found nothing", file.display()));
        }
        out.push(Change { file, text });
    }
    if !empty.is_empty() {
        bail!("{}", empty.join("\n"));
    }
    Ok(out)
}

/// A version's part of the changelog: one item for each change.
pub fn section(version: &Version, date: &str, changes: &[Change]) -> String {
    let items: Vec<String> = changes.iter().map(|change| item(&change.text)).collect();
    format!("## {version} ({date})\n\n{}\n", items.join("\n"))
}

/// Links lead from the top of the clone there, one folder further up than from `changes/`.
fn item(text: &str) -> String {
    let text = text.trim().replace("](../", "](");
    let lines = text.lines().enumerate().map(|(index, line)| match (index, line.trim_end()) {
        (0, line) => format!("- {line}"),
        (_, "") => String::new(),
        (_, line) => format!("  {line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The versions that are listed.
pub fn versions(changelog: &str) -> Result<Vec<Version>> {
    let headings = changelog.lines().filter_map(|line| line.strip_prefix("## "));
    let version = |heading: &str| {
        let word = heading.split_whitespace().next().unwrap_or_default();
        word.parse().with_context(|| format!("CHANGELOG.md: expected a version in the heading {heading:?}"))
    };
    headings.filter(|heading| *heading != "Unreleased").map(version).collect()
}

/// The changelog with one more version, the newest first.
pub fn insert(changelog: &str, section: &str) -> String {
    let is_version = |rest: &str| !rest.starts_with("Unreleased");
    let at = changelog.match_indices("\n## ").find(|(at, head)| is_version(&changelog[at + head.len()..]));
    match at {
        Some((at, _)) => format!("{}{section}{}", &changelog[..=at], &changelog[at..]),
        None => format!("{}\n\n{section}", changelog.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str) -> Change {
        Change { file: PathBuf::new(), text: text.to_owned() }
    }

    #[test]
    fn changes_come_in_the_order_of_their_names_and_nothing_else_does() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["c.md", "a.md", "b.md", "note.txt"] {
            fs::write(temp.path().join(name), name).unwrap();
        }
        let texts: Vec<String> =
            changes(temp.path()).unwrap().into_iter().map(|change| change.text).collect();
        assert_eq!(texts, ["a.md", "b.md", "c.md"]);
        for name in ["b.md", "c.md"] {
            fs::write(temp.path().join(name), "\n").unwrap();
        }
        let error = changes(temp.path()).unwrap_err().to_string();
        assert!(error.contains("b.md: expected") && error.contains("c.md: expected"), "{error}");
        let gone = changes(&temp.path().join("nowhere")).unwrap_err().to_string();
        assert!(gone.contains("nowhere: expected a file"), "{gone}");
    }

    #[test]
    fn a_change_is_one_item_whatever_its_lines() {
        let all = [change("One\ntwo.\n\nThree, [page](../docs/a.md).\n"), change("Four.")];
        let text = section(&"1.2.3".parse().unwrap(), "2026-02-03", &all);
        assert_eq!(text, "## 1.2.3 (2026-02-03)\n\n- One\n  two.\n\n  Three, [page](docs/a.md).\n- Four.\n");
    }

    #[test]
    fn the_newest_comes_first_after_what_is_not_released() {
        let head = "# Changelog\n\n## Unreleased\n\nSee changes.\n";
        let one = insert(head, "## 0.1.0 (x)\n\n- a\n");
        assert_eq!(one, format!("{head}\n## 0.1.0 (x)\n\n- a\n"));
        let two = insert(&one, "## 0.2.0 (y)\n\n- b\n");
        assert_eq!(two, format!("{head}\n## 0.2.0 (y)\n\n- b\n\n## 0.1.0 (x)\n\n- a\n"));
        let listed: Vec<String> = versions(&two).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(listed, ["0.2.0", "0.1.0"]);
        assert!(versions("## Soon\n").unwrap_err().to_string().contains("Soon"));
    }

    #[test]
    fn the_changelog_and_the_changes_of_this_repository_can_be_released() {
        let root = crate::shell::root();
        versions(&fs::read_to_string(root.join("CHANGELOG.md")).unwrap()).unwrap();
        // Right after a release there is none.
        let mut names = fs::read_dir(root.join("changes")).into_iter().flatten().flatten();
        if names.any(|entry| entry.path().extension().is_some_and(|ending| ending == "md")) {
            for change in changes(&root.join("changes")).unwrap() {
                let text = item(&change.text);
                for rest in text.split("](").skip(1) {
                    let link = rest.split(')').next().unwrap_or_default();
                    let file = link.split('#').next().unwrap_or_default();
                    let leads = link.contains("://") || root.join(file).exists();
                    assert!(leads, "{}: {link} leads nowhere", change.file.display());
                }
            }
        }
    }
}

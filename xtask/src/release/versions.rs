//! Where the version stands: in the workspace, its locks and the chart. Lines are changed and nothing else, so that what people
//! wrote around them stays.

use anyhow::{Result, bail};
use cargo_metadata::semver::Version;

/// The version in the `Cargo.toml` of the workspace.
pub fn of_workspace(text: &str) -> Result<&str> {
    match version_line(text) {
        Some(line) => Ok(line.trim_start_matches("version = ").trim_matches('"')),
        None => bail!("Cargo.toml: expected version = \"…\" in [workspace.package]"),
    }
}

fn version_line(text: &str) -> Option<&str> {
    let section = text.lines().skip_while(|line| line.trim() != "[workspace.package]").skip(1);
    section.take_while(|line| !line.starts_with('[')).find(|line| line.starts_with("version = \""))
}

pub fn set_workspace(text: &str, version: &Version) -> Result<String> {
    of_workspace(text)?;
    let mut within = false;
    Ok(lines(text, |line| {
        if line.starts_with('[') {
            within = line.trim() == "[workspace.package]";
        }
        (within && line.starts_with("version = \"")).then(|| format!("version = \"{version}\""))
    }))
}

pub fn set_chart(text: &str, version: &Version) -> Result<String> {
    let mut set = 0;
    let out = lines(text, |line| {
        let key = ["version:", "appVersion:"].into_iter().find(|key| line.starts_with(key))?;
        set += 1;
        Some(format!("{key} {version}"))
    });
    if set != 2 {
        bail!("Chart.yaml: expected one version and one appVersion, found {set} of both");
    }
    Ok(out)
}

/// Our own crates come from no source and have the version of the workspace.
pub fn set_lock(text: &str, old: &str, version: &Version) -> String {
    let package = |block: &str| {
        let ours = block.contains(&format!("\nversion = \"{old}\"\n")) && !block.contains("\nsource = ");
        if ours {
            block.replace(&format!("\nversion = \"{old}\"\n"), &format!("\nversion = \"{version}\"\n"))
        } else {
            block.to_owned()
        }
    };
    text.split("[[package]]").map(package).collect::<Vec<_>>().join("[[package]]")
}

/// The text with some lines replaced.
fn lines(text: &str, mut replace: impl FnMut(&str) -> Option<String>) -> String {
    let line = |line: &str| {
        let body = line.trim_end_matches('\n');
        replace(body).map_or_else(|| line.to_owned(), |new| new + &line[body.len()..])
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;
    use std::fs;

    fn next() -> Version {
        "9.8.7".parse().unwrap()
    }

    #[test]
    fn only_the_version_of_the_workspace_changes() {
        let text = "[package]\nversion = \"5\"\n\n[workspace.package]\nedition = \"2024\"\nversion = \"0.1.0\"\n\n[dependencies]\nversion = \"1\"\n";
        assert_eq!(of_workspace(text).unwrap(), "0.1.0");
        assert_eq!(set_workspace(text, &next()).unwrap(), text.replace("0.1.0", "9.8.7"));
        assert!(set_workspace("[package]\nversion = \"5\"\n", &next()).is_err());
    }

    #[test]
    fn both_versions_of_the_chart_change_and_not_the_one_it_asks_of_kubernetes() {
        let text = "apiVersion: v2\nversion: 0.1.0\nappVersion: 0.0.9\nkubeVersion: \">=1.30.0-0\"\n";
        let want = "apiVersion: v2\nversion: 9.8.7\nappVersion: 9.8.7\nkubeVersion: \">=1.30.0-0\"\n";
        assert_eq!(set_chart(text, &next()).unwrap(), want);
        assert!(set_chart("version: 1\n", &next()).is_err());
    }

    #[test]
    fn a_lock_changes_for_our_own_crates_alone() {
        let text = "version = 4\n\n[[package]]\nname = \"loadline-core\"\nversion = \"0.1.0\"\n\n\
                    [[package]]\nname = \"adler\"\nversion = \"0.1.0\"\nsource = \"registry+x\"\n";
        let want = text.replacen("0.1.0", "9.8.7", 1);
        assert_eq!(set_lock(text, "0.1.0", &next()), want);
    }

    #[test]
    fn the_locks_of_this_repository_hold_the_version_of_the_workspace() {
        let root = shell::root();
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        let workspace = read("Cargo.toml");
        let old = of_workspace(&workspace).unwrap();
        for (lock, ours) in [("Cargo.lock", 10), ("fuzz/Cargo.lock", 5)] {
            let changed = set_lock(&read(lock), old, &next());
            assert!(changed.matches("version = \"9.8.7\"").count() >= ours, "{lock}");
        }
        assert!(set_chart(&read("deploy/chart/Chart.yaml"), &next()).is_ok());
    }
}

//! The chart as one file, as `helm package` makes it, but the same from the same files.

use anyhow::{Context as _, Result, bail};
use loadline_testkit::image::{File, tgz};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The archive: everything in the folder, below the name of the chart, but what `.helmignore` leaves out.
pub fn package(folder: &Path) -> Result<Vec<u8>> {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let chart = read("Chart.yaml")?;
    let Some(name) = chart.lines().find_map(|line| line.strip_prefix("name: ")) else {
        bail!("Chart.yaml: expected a name");
    };
    let ignored = ignored(&read(".helmignore")?)?;
    let mut files = BTreeMap::new();
    collect(folder, name.trim(), &ignored, &mut files)?;
    tgz(&files).context("cannot make the archive")
}

/// Folders at the top that are left out. Helm knows more patterns than that; one we do not know must not be passed over.
fn ignored(text: &str) -> Result<Vec<String>> {
    let patterns = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let folder = |pattern: &str| match pattern.strip_suffix('/') {
        Some(name) if !name.contains(['*', '?', '[', '!', '/']) => Ok(name.to_owned()),
        _ => bail!(".helmignore: expected the name of a folder and a slash, found {pattern}"),
    };
    patterns.map(folder).collect()
}

fn collect(folder: &Path, below: &str, ignored: &[String], files: &mut BTreeMap<String, File>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let to = format!("{below}/{name}");
        if path.is_dir() {
            if !ignored.contains(&name) {
                collect(&path, &to, ignored, files)?;
            }
        } else {
            let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(to, File { mode: 0o644, content });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;
    use loadline_testkit::parts;
    use std::process::Command;

    fn chart() -> std::path::PathBuf {
        shell::root().join("deploy/chart")
    }

    #[test]
    fn the_same_files_give_the_same_chart_whenever_and_wherever_they_are() {
        let temp = tempfile::tempdir().unwrap();
        // Another place, another order, another time, other rights.
        for (name, text) in [
            ("values.yaml", "a: 1\n"),
            ("migrate/x.yaml", "b: 1\n"),
            (".helmignore", "# not needed\nmigrate/\n"),
            ("Chart.yaml", "name: one\n"),
        ] {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let one = package(temp.path()).unwrap();
        let copy = tempfile::tempdir().unwrap();
        for name in ["Chart.yaml", ".helmignore", "values.yaml"] {
            fs::copy(temp.path().join(name), copy.path().join(name)).unwrap();
        }
        assert_eq!(package(copy.path()).unwrap(), one);
        fs::write(copy.path().join("values.yaml"), "a: 2\n").unwrap();
        assert_ne!(package(copy.path()).unwrap(), one);
    }

    #[test]
    fn a_pattern_we_do_not_know_is_not_passed_over() {
        assert_eq!(ignored("# why\n\nmigrate/\n").unwrap(), ["migrate"]);
        for pattern in ["*.tmp", "migrate", "!a/", "a/b/"] {
            assert!(ignored(pattern).unwrap_err().to_string().contains(pattern));
        }
    }

    #[test]
    fn tar_finds_the_chart_in_it() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("loadline.tgz");
        fs::write(&file, package(&chart()).unwrap()).unwrap();
        let output = Command::new("tar").arg("-tzf").arg(&file).output().unwrap();
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        for name in [
            "loadline/Chart.yaml",
            "loadline/values.schema.json",
            "loadline/templates/_rules.tpl",
            "loadline/files/crds/nodeqoss.yaml",
        ] {
            assert!(listed.lines().any(|line| line == name), "{name}: {listed}");
        }
        assert!(!listed.contains("migrate"), "{listed}");
    }

    #[test]
    fn helm_renders_the_archive_as_it_renders_the_folder() {
        let Some(helm) = parts::find_or_skip("helm") else { return };
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("loadline.tgz");
        fs::write(&file, package(&chart()).unwrap()).unwrap();
        let render = |from: &Path| {
            let output = Command::new(&helm)
                .args(["template", "loadline", "--kube-version", "1.36"])
                .arg(from)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(render(&file), render(&chart()));
    }
}

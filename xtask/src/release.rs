//! How is a version made that others install?
//!
//! Two steps with a commit between them, so that what is shipped is what is tagged: first the version and what is new in it are
//! written down, then, from that commit, the files people get are made.

mod changelog;
mod chart;
mod sbom;
mod versions;

use crate::{image, shell};
use anyhow::{Context as _, Result, bail};
use cargo_metadata::semver::Version;
use loadline_testkit::image::{architecture_of, digest};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where what is new is collected.
const CHANGELOG: &str = "CHANGELOG.md";

/// Changes that are named of many.
const SHOWN: usize = 5;

/// What is asked for.
pub struct Options {
    pub version: Version,
    /// The second step.
    pub build: bool,
    /// What the program is built for.
    pub target: Option<String>,
    pub dry_run: bool,
}

pub fn run(options: &Options) -> Result<()> {
    let root = shell::root();
    let git = Git { root: &root };
    if options.build {
        let text =
            fs::read_to_string(root.join(CHANGELOG)).with_context(|| format!("cannot read {CHANGELOG}"))?;
        refuse(vec![git.dirty()?, not_prepared(&text, &set_version(&root)?, &options.version)])?;
        let target = options.target.clone().unwrap_or_else(image::usual_target);
        let names = Names::new(&options.version, &target);
        let folder = root.join("target").join(format!("release-{}", options.version));
        if options.dry_run {
            println!("would make in {}:\n  {}", folder.display(), names.all().join("\n  "));
            return Ok(());
        }
        return build(&root, &folder, &names, options, &target);
    }
    let plan = Plan::new(&root, &options.version, &git.date("%Y-%m-%d")?);
    let (dirty, (plan, wrong)) =
        (git.dirty()?, plan.map_or_else(|error| (None, Some(error)), |plan| (Some(plan), None)));
    refuse(vec![dirty, wrong.map(|error| format!("{error:#}"))])?;
    let Some(plan) = plan else { return Ok(()) };
    if options.dry_run {
        print!("{}", plan.told(&root));
        return Ok(());
    }
    plan.apply()?;
    let version = &options.version;
    eprintln!("{version} is written down. Look at it, then:");
    eprintln!("  git commit --all --message 'Release {version}' && git tag v{version}");
    eprintln!("  cargo xtask release {version} --build");
    Ok(())
}

/// Fails with all that is wrong.
fn refuse(problems: Vec<Option<String>>) -> Result<()> {
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// The version the workspace has.
fn set_version(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
    versions::of_workspace(&text).map(str::to_owned)
}

/// Why this version cannot be built from here.
fn not_prepared(changelog: &str, set: &str, version: &Version) -> Option<String> {
    let listed = changelog::versions(changelog).is_ok_and(|listed| listed.contains(version));
    let ready = set == version.to_string() && listed;
    (!ready).then(|| {
        format!("expected version {version} in Cargo.toml, which has {set}, and in {CHANGELOG}: run this without --build first")
    })
}

/// All that is written and removed for a version.
#[derive(Debug)]
struct Plan {
    section: String,
    writes: Vec<(PathBuf, String)>,
    removes: Vec<PathBuf>,
}

impl Plan {
    fn new(root: &Path, version: &Version, date: &str) -> Result<Self> {
        let read =
            |name: &str| fs::read_to_string(root.join(name)).with_context(|| format!("cannot read {name}"));
        let text = read(CHANGELOG)?;
        let (mut problems, mut section) = (Vec::new(), String::new());
        match changelog::versions(&text) {
            Ok(versions) => {
                if let Some(last) = versions.iter().max().filter(|last| version <= last) {
                    problems.push(format!(
                        "{version}: expected a version after {last}, the last one in {CHANGELOG}"
                    ));
                }
            }
            Err(error) => problems.push(format!("{error:#}")),
        }
        let changes = changelog::changes(&root.join("changes"));
        match &changes {
            Ok(changes) => section = changelog::section(version, date, changes),
            Err(error) => problems.push(format!("{error:#}")),
        }
        refuse(problems.into_iter().map(Some).collect())?;
        let mut writes = vec![(root.join(CHANGELOG), changelog::insert(&text, &section))];
        writes.push((root.join("Cargo.toml"), versions::set_workspace(&read("Cargo.toml")?, version)?));
        let chart = "deploy/chart/Chart.yaml";
        writes.push((root.join(chart), versions::set_chart(&read(chart)?, version)?));
        let old = set_version(root)?;
        for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
            writes.push((root.join(lock), versions::set_lock(&read(lock)?, &old, version)));
        }
        Ok(Self { section, writes, removes: changes?.into_iter().map(|change| change.file).collect() })
    }

    fn told(&self, root: &Path) -> String {
        let mut text = String::new();
        let short = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
        for (path, _) in &self.writes {
            let _ = writeln!(text, "would write {}", short(path));
        }
        let _ = writeln!(text, "would remove {} files of changes/", self.removes.len());
        let _ = write!(text, "would add to {CHANGELOG}:\n\n{}", self.section);
        text
    }

    fn apply(&self) -> Result<()> {
        for (path, text) in &self.writes {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        for path in &self.removes {
            fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }
}

/// What the files are called.
struct Names {
    program: String,
    image: String,
    chart: String,
    sbom: String,
}

impl Names {
    fn new(version: &Version, target: &str) -> Self {
        let platform = format!("linux-{}", architecture_of(target));
        Self {
            program: format!("loadline-{version}-{platform}"),
            image: format!("loadline-{version}-{platform}-image.tar"),
            // As `helm package` calls it.
            chart: format!("loadline-{version}.tgz"),
            sbom: format!("loadline-{version}-{platform}.spdx.json"),
        }
    }

    fn all(&self) -> Vec<&str> {
        vec![&self.program, &self.image, &self.chart, &self.sbom, "SHA256SUMS"]
    }
}

fn build(root: &Path, folder: &Path, names: &Names, options: &Options, target: &str) -> Result<()> {
    // Files of another time would be shipped along.
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let version = &options.version;
    let program = image::build("dist", options.target.as_deref())?;
    fs::copy(&program, folder.join(&names.program)).context("cannot copy the program")?;
    image::run(&image::Options {
        binary: Some(program),
        name: format!("loadline:{version}"),
        profile: "dist".to_owned(),
        target: options.target.clone(),
        out: folder.join(&names.image),
    })?;
    let chart = chart::package(&root.join("deploy/chart"))?;
    fs::write(folder.join(&names.chart), chart).context("cannot write the chart")?;
    let git = Git { root };
    let made = sbom::Made {
        version: version.to_string(),
        commit: git.commit()?,
        at: git.date("%Y-%m-%dT%H:%M:%SZ")?,
    };
    let sbom = serde_json::to_string_pretty(&sbom::of_workspace(root, target, &made)?)?;
    fs::write(folder.join(&names.sbom), sbom + "\n").context("cannot write what it is made from")?;
    fs::write(folder.join("SHA256SUMS"), sums(folder)?).context("cannot write SHA256SUMS")?;
    eprintln!("{}: {}", folder.display(), names.all().join(", "));
    Ok(())
}

/// What `sha256sum --check` reads, about everything in the folder.
fn sums(folder: &Path) -> Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut text = String::new();
    for name in names.iter().filter(|name| *name != "SHA256SUMS") {
        let content = fs::read(folder.join(name)).with_context(|| format!("cannot read {name}"))?;
        let _ = writeln!(text, "{}  {name}", digest(&content));
    }
    Ok(text)
}

/// The clone. What is released has the time of its commit, whenever it is built.
struct Git<'a> {
    root: &'a Path,
}

impl Git<'_> {
    fn said(&self, args: &[&str]) -> Result<String> {
        let output = Command::new("git").args(args).current_dir(self.root).env("TZ", "UTC").output();
        let output = output.context("cannot start git")?;
        if !output.status.success() {
            bail!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// What is there and not committed, as a problem.
    fn dirty(&self) -> Result<Option<String>> {
        let changed = self.said(&["status", "--porcelain"])?;
        let lines: Vec<&str> = changed.lines().take(SHOWN).collect();
        let more = changed.lines().count().saturating_sub(SHOWN);
        let rest = if more == 0 { String::new() } else { format!("\nand {more} more") };
        Ok((!changed.is_empty()).then(|| {
            format!("expected a tree without changes; git status says:\n{}{rest}", lines.join("\n"))
        }))
    }

    fn commit(&self) -> Result<String> {
        self.said(&["rev-parse", "HEAD"])
    }

    /// When the commit was made, in UTC.
    fn date(&self, format: &str) -> Result<String> {
        self.said(&["log", "-1", "--format=%cd", &format!("--date=format-local:{format}")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    /// A small repository that has had one release.
    fn repository() -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in [
            (
                "CHANGELOG.md",
                "# Changelog\n\n## Unreleased\n\nSee changes.\n\n## 0.1.0 (2026-01-01)\n\n- First.\n",
            ),
            ("changes/b.md", "Second.\nMore of it, see [there](../docs/x.md).\n"),
            ("changes/a.md", "First.\n"),
            ("Cargo.toml", "[workspace.package]\nversion = \"0.1.0\"\n"),
            ("deploy/chart/Chart.yaml", "name: loadline\nversion: 0.1.0\nappVersion: 0.1.0\n"),
            ("Cargo.lock", "[[package]]\nname = \"loadline-core\"\nversion = \"0.1.0\"\n"),
            ("fuzz/Cargo.lock", "[[package]]\nname = \"loadline-core\"\nversion = \"0.1.0\"\n"),
        ] {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        temp
    }

    #[test]
    fn a_release_writes_the_version_everywhere_and_takes_the_changes_in() {
        let temp = repository();
        let root = temp.path();
        let plan = Plan::new(root, &version("0.2.0"), "2026-02-03").unwrap();
        let told = plan.told(root);
        assert!(
            told.contains("would write deploy/chart/Chart.yaml\n") && told.contains("## 0.2.0 (2026-02-03)"),
            "{told}"
        );
        assert!(root.join("changes/a.md").exists(), "nothing is done yet");
        plan.apply().unwrap();
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        assert_eq!(
            read("CHANGELOG.md"),
            "# Changelog\n\n## Unreleased\n\nSee changes.\n\n## 0.2.0 (2026-02-03)\n\n- First.\n\
             - Second.\n  More of it, see [there](docs/x.md).\n\n## 0.1.0 (2026-01-01)\n\n- First.\n"
        );
        assert_eq!(set_version(root).unwrap(), "0.2.0");
        assert_eq!(read("deploy/chart/Chart.yaml"), "name: loadline\nversion: 0.2.0\nappVersion: 0.2.0\n");
        for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
            assert!(read(lock).contains("version = \"0.2.0\""), "{lock}");
        }
        assert_eq!(fs::read_dir(root.join("changes")).unwrap().count(), 0);
        assert_eq!(not_prepared(&read("CHANGELOG.md"), "0.2.0", &version("0.2.0")), None);
        let again = Plan::new(root, &version("0.3.0"), "2026-02-04").unwrap_err();
        assert!(again.to_string().contains("changes"), "{again}");
    }

    #[test]
    fn a_version_that_is_not_after_the_last_is_refused_with_all_else_that_is_wrong() {
        let temp = repository();
        for (asked, refused, why) in [
            ("0.1.0", true, "the last one"),
            ("0.0.9", true, "before it"),
            ("0.1.0-rc.1", true, "what led to it"),
            ("0.1.1", false, "a fix"),
            ("0.10.0", false, "numbers, not letters"),
            ("0.2.0-rc.1", false, "what leads to the next"),
        ] {
            let plan = Plan::new(temp.path(), &version(asked), "2026-02-03");
            assert_eq!(plan.is_err(), refused, "{asked}: {why}");
        }
        fs::remove_dir_all(temp.path().join("changes")).unwrap();
        let error = Plan::new(temp.path(), &version("0.1.0"), "2026-02-03").unwrap_err().to_string();
        assert!(error.contains("after 0.1.0") && error.contains("changes"), "{error}");
    }

    #[test]
    fn only_what_is_written_down_is_built() {
        let listed = "# Changelog\n\n## 0.2.0 (2026-02-03)\n\n- First.\n";
        assert_eq!(not_prepared(listed, "0.2.0", &version("0.2.0")), None);
        for (text, set) in [(listed, "0.1.0"), ("# Changelog\n", "0.2.0")] {
            assert!(not_prepared(text, set, &version("0.2.0")).unwrap().contains("without --build"));
        }
    }

    #[test]
    fn a_tree_with_changes_is_told() {
        let temp = tempfile::tempdir().unwrap();
        let git = Git { root: temp.path() };
        git.said(&["init", "--quiet"]).unwrap();
        assert_eq!(git.dirty().unwrap(), None);
        fs::write(temp.path().join("new.md"), "x").unwrap();
        assert!(git.dirty().unwrap().unwrap().ends_with("?? new.md"));
        for number in 0..9 {
            fs::write(temp.path().join(format!("{number}.md")), "x").unwrap();
        }
        assert!(git.dirty().unwrap().unwrap().ends_with("?? 4.md\nand 5 more"));
    }

    #[test]
    fn sums_are_those_that_are_checked_by_sha256sum() {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in [("b", "abc"), ("a", ""), ("SHA256SUMS", "old")] {
            fs::write(temp.path().join(name), text).unwrap();
        }
        assert_eq!(
            sums(temp.path()).unwrap(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n\
             ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b\n"
        );
    }

    #[test]
    fn files_are_called_by_version_and_platform() {
        let names = Names::new(&version("0.2.0"), "aarch64-unknown-linux-musl");
        assert_eq!(
            names.all(),
            [
                "loadline-0.2.0-linux-arm64",
                "loadline-0.2.0-linux-arm64-image.tar",
                "loadline-0.2.0.tgz",
                "loadline-0.2.0-linux-arm64.spdx.json",
                "SHA256SUMS"
            ]
        );
    }
}

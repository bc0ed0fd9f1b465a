//! May everything we depend on come in? `deny.toml`, checked without `cargo-deny`.
//!
//! Building that program takes minutes on a fresh machine, and what is asked of it here is little: every licence is one of
//! the list, no crate is there twice or banned, everything comes from the one registry. `cargo deny check` reads the same
//! file; a line of it that is not understood here fails, so that nothing is written there and then not looked at.

use crate::shell;
use anyhow::{Context as _, Result, bail};
use cargo_metadata::MetadataCommand;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// What is allowed, as the file says it.
#[derive(Debug, Default, PartialEq)]
struct Lists {
    targets: Vec<String>,
    licences: Vec<String>,
    /// Crates that must not be there, but below these.
    banned: Vec<(String, Vec<String>)>,
    /// Versions of crates that may be there beside another.
    skipped: Vec<(String, String)>,
    registries: Vec<String>,
}

/// Lines that say something we always check, or that only `cargo-deny` has use for.
const AS_EXPECTED: [&str; 9] = [
    "[graph] all-features = true",
    "[licenses] confidence-threshold = 0.9",
    "[licenses.private] ignore = false",
    "[bans] multiple-versions = \"deny\"",
    "[bans] wildcards = \"deny\"",
    "[bans] allow-wildcard-paths = true",
    "[sources] unknown-registry = \"deny\"",
    "[sources] unknown-git = \"deny\"",
    // Said so that nobody looks for it.
    "[advisories]",
];

impl Lists {
    /// Reads the file: sections, `key = value` in a line, and lists with an item in a line or all in one.
    fn read(text: &str) -> Result<Self> {
        let mut lists = Self::default();
        let (mut section, mut open): (String, Option<String>) = (String::new(), None);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = || format!("deny.toml, line {}: {line}", number + 1);
            if let Some(key) = &open {
                if line == "]" {
                    open = None;
                } else {
                    lists.item(&section, key, line).with_context(place)?;
                }
            } else if line.starts_with('[') {
                line.clone_into(&mut section);
            } else if let Some((key, items)) = line.split_once(" = [") {
                match items.strip_suffix(']') {
                    Some(items) => {
                        for item in items.split(", ").filter(|item| !item.is_empty()) {
                            lists.item(&section, key, item).with_context(place)?;
                        }
                    }
                    None => open = Some(key.to_owned()),
                }
            } else if !AS_EXPECTED.contains(&format!("{section} {line}").as_str()) {
                bail!("{}: this is not looked at by xtask/src/deny.rs", place());
            }
        }
        Ok(lists)
    }

    fn item(&mut self, section: &str, key: &str, item: &str) -> Result<()> {
        let plain = || quoted(item).context("expected a text in quotes");
        let table = |name: &str| field(item, name).with_context(|| format!("expected {name}"));
        match (section, key) {
            ("[graph]", "targets") => self.targets.push(plain()?),
            ("[licenses]", "allow") => self.licences.push(plain()?),
            ("[sources]", "allow-registry") => self.registries.push(plain()?),
            ("[bans]", "deny") => {
                let wrappers = item.split_once("wrappers = [").and_then(|(_, rest)| rest.split_once(']'));
                let wrappers = wrappers.map_or("", |(list, _)| list).split(", ").filter_map(quoted).collect();
                self.banned.push((table("name")?, wrappers));
            }
            ("[bans]", "skip") => self.skipped.push((table("name")?, table("version")?)),
            _ => bail!("a list that is not looked at by xtask/src/deny.rs"),
        }
        Ok(())
    }
}

/// The first text in quotes.
fn quoted(text: &str) -> Option<String> {
    text.split('"').nth(1).map(str::to_owned)
}

/// A field of an inline table.
fn field(table: &str, name: &str) -> Option<String> {
    table.split_once(&format!("{name} = ")).and_then(|(_, rest)| quoted(rest))
}

/// A crate, as far as it is looked at.
#[derive(Clone, Debug, Default)]
struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    source: Option<String>,
    /// Dependencies of any version, of one of ours.
    wildcards: Vec<String>,
    /// The names of those that use it.
    used_by: BTreeSet<String>,
}

/// What one of the platforms is built from, all platforms together.
fn packages(targets: &[String]) -> Result<Vec<Package>> {
    let mut all: BTreeMap<String, Package> = BTreeMap::new();
    for target in targets {
        let mut command = MetadataCommand::new();
        command.manifest_path(shell::root().join("Cargo.toml"));
        command.features(cargo_metadata::CargoOpt::AllFeatures);
        command.other_options(["--filter-platform".to_owned(), target.clone()]);
        let metadata = command.exec()?;
        let known: BTreeMap<_, _> = metadata.packages.iter().map(|package| (&package.id, package)).collect();
        let nodes = metadata.resolve.as_ref().map_or(&[][..], |resolve| &resolve.nodes);
        for node in nodes {
            let package = known[&node.id];
            let ours = metadata.workspace_members.contains(&node.id);
            let any = |dependency: &&cargo_metadata::Dependency| {
                ours && dependency.path.is_none() && dependency.req.to_string() == "*"
            };
            let one = all.entry(node.id.repr.clone()).or_default();
            one.name = package.name.to_string();
            one.version = package.version.to_string();
            one.licence.clone_from(&package.license);
            one.source = package.source.as_ref().map(|source| source.repr.clone());
            one.wildcards = package.dependencies.iter().filter(any).map(|it| it.name.clone()).collect();
        }
        for node in nodes {
            for used in &node.dependencies {
                let user = known[&node.id].name.to_string();
                all.entry(used.repr.clone()).or_default().used_by.insert(user);
            }
        }
    }
    Ok(all.into_values().collect())
}

/// Every fault, as a sentence each.
fn faults(lists: &Lists, packages: &[Package]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let (name, version) = (package.name.as_str(), package.version.as_str());
        match &package.licence {
            None => faults.push(format!("{name} {version} names no licence")),
            Some(licence) if !is_allowed(licence, &lists.licences) => {
                faults.push(format!("{name} {version} is under {licence}, which is not in the list"));
            }
            Some(_) => {}
        }
        let registry = package.source.as_deref().map(|source| source.split_once('+').unwrap_or(("", source)));
        if let Some((kind, address)) = registry
            && !(matches!(kind, "registry" | "sparse")
                && lists.registries.iter().any(|known| known == address))
        {
            faults.push(format!("{name} {version} comes from {kind} {address}"));
        }
        for any in &package.wildcards {
            faults.push(format!("{name} depends on any version of {any}"));
        }
        if let Some((_, wrappers)) = lists.banned.iter().find(|(banned, _)| banned == name) {
            for user in package.used_by.iter().filter(|user| !wrappers.contains(user)) {
                faults.push(format!("{name} is banned, and {user} uses it"));
            }
        }
        let skipped = |(of, which): &&(String, String)| of == name && is_within(version, which);
        if lists.skipped.iter().find(skipped).is_none() {
            versions.entry(name).or_default().insert(version);
        }
    }
    for (name, versions) in versions.into_iter().filter(|(_, versions)| versions.len() > 1) {
        let versions: Vec<&str> = versions.into_iter().collect();
        faults.push(format!("{name} is there in several versions: {}", versions.join(", ")));
    }
    for (name, version) in &lists.skipped {
        if !packages.iter().any(|one| one.name == *name && is_within(&one.version, version)) {
            faults.push(format!("{name} {version} is skipped, and nobody uses it any more"));
        }
    }
    faults.sort();
    faults
}

/// Is it of that version, as far as that is said?
fn is_within(version: &str, said: &str) -> bool {
    version == said || version.strip_prefix(said).is_some_and(|rest| rest.starts_with('.'))
}

/// May it be used under these licences? `OR` is a choice, `AND` binds tighter and is none; an old `/` is an `OR`.
fn is_allowed(expression: &str, licences: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let spaced = spaced.replace(" or ", " OR ").replace(" and ", " AND ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    either(&words, &mut at, licences) && at == words.len()
}

fn either(words: &[&str], at: &mut usize, licences: &[String]) -> bool {
    let mut allowed = both(words, at, licences);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        allowed |= both(words, at, licences);
    }
    allowed
}

fn both(words: &[&str], at: &mut usize, licences: &[String]) -> bool {
    let mut allowed = one(words, at, licences);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        allowed &= one(words, at, licences);
    }
    allowed
}

fn one(words: &[&str], at: &mut usize, licences: &[String]) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let allowed = either(words, at, licences);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return allowed && closed;
    }
    let mut name = (*word).to_owned();
    // An exception makes a licence of its own.
    if words.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    licences.contains(&name)
}

/// Fails with everything that must not be there.
pub fn check_workspace() -> Result<()> {
    let text = fs::read_to_string(shell::root().join("deny.toml")).context("cannot read deny.toml")?;
    let lists = Lists::read(&text)?;
    let faults = faults(&lists, &packages(&lists.targets)?);
    if !faults.is_empty() {
        bail!("dependencies that deny.toml does not let in:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

/// What is known of dependencies today, by `cargo-deny`, which brings the database.
pub fn check_advisories() -> Result<()> {
    let mut deny = shell::cargo(&["deny", "--all-features", "check", "advisories"]);
    shell::run(&mut deny).context("get it: cargo install cargo-deny --locked")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
# A comment.
[graph]
targets = ["x", "y"]
all-features = true
[licenses]
allow = [
    "MIT",
    "Apache-2.0",
]
[bans]
multiple-versions = "deny"
deny = [
    { name = "openssl", reason = "rustls" },
    { name = "chrono", wrappers = ["cel", "kube-cel"], reason = "jiff" },
]
skip = [
    { name = "syn", version = "2", reason = "macros" },
]
[sources]
allow-registry = ["https://one"]
"#;

    fn lists() -> Lists {
        Lists::read(FILE).unwrap()
    }

    #[test]
    fn the_file_is_read() {
        let text = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            lists(),
            Lists {
                targets: text(&["x", "y"]),
                licences: text(&["MIT", "Apache-2.0"]),
                banned: vec![("openssl".into(), vec![]), ("chrono".into(), text(&["cel", "kube-cel"]))],
                skipped: vec![("syn".into(), "2".into())],
                registries: text(&["https://one"]),
            }
        );
    }

    #[test]
    fn what_is_not_understood_fails() {
        for (line, what) in [
            ("[licenses]\nunused = \"allow\"", "not looked at"),
            ("[bans]\nwildcards = \"allow\"", "not looked at"),
            ("[bans]\nfeatures = [\n{ name = \"x\" },\n]", "features"),
            ("[bans]\nskip = [\n{ name = \"x\" },\n]", "skip"),
        ] {
            let error = Lists::read(line).unwrap_err();
            assert!(format!("{error:#}").contains("deny.toml, line"), "{what}: {error:#}");
        }
    }

    #[test]
    fn licences_are_expressions() {
        let allowed = ["MIT".to_owned(), "Apache-2.0".to_owned(), "Zlib WITH x".to_owned()];
        for (expression, want) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT or GPL-3.0", true),
            ("MIT and GPL-3.0", false),
            ("MIT AND GPL-3.0", false),
            ("MIT OR GPL-3.0 AND X", true),
            ("(MIT OR X) AND Apache-2.0", true),
            ("(MIT OR X) AND Y", false),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("Zlib WITH x", true),
            ("(MIT", false),
            ("MIT)", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), want, "{expression}");
        }
    }

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.into(),
            version: version.into(),
            licence: Some("MIT".into()),
            source: Some("registry+https://one".into()),
            ..Package::default()
        }
    }

    #[test]
    fn each_fault_is_named() {
        let banned =
            |name: &str, user: &str| Package { used_by: [user.to_owned()].into(), ..package(name, "1.0.0") };
        let both = [package("syn", "2.0.1"), package("syn", "1.0.0")];
        let fine = |more: Vec<Package>| faults(&lists(), &[both.to_vec(), more].concat());
        assert_eq!(fine(vec![banned("chrono", "cel")]), Vec::<String>::new());
        for (more, want) in [
            (vec![Package { licence: None, ..package("a", "1.0.0") }], "a 1.0.0 names no licence"),
            (
                vec![Package { licence: Some("GPL-3.0".into()), ..package("a", "1.0.0") }],
                "a 1.0.0 is under GPL-3.0, which is not in the list",
            ),
            (
                vec![Package { source: Some("git+https://one".into()), ..package("a", "1.0.0") }],
                "a 1.0.0 comes from git https://one",
            ),
            (
                vec![Package { source: Some("registry+https://two".into()), ..package("a", "1.0.0") }],
                "a 1.0.0 comes from registry https://two",
            ),
            (
                vec![Package { wildcards: vec!["b".into()], ..package("a", "1.0.0") }],
                "a depends on any version of b",
            ),
            (vec![banned("openssl", "a")], "openssl is banned, and a uses it"),
            (vec![banned("chrono", "a")], "chrono is banned, and a uses it"),
            (
                vec![package("a", "1.0.0"), package("a", "2.0.0")],
                "a is there in several versions: 1.0.0, 2.0.0",
            ),
            (vec![package("syn", "20.0.0")], "syn is there in several versions: 1.0.0, 20.0.0"),
        ] {
            assert_eq!(fine(more), [want]);
        }
        let gone = faults(&lists(), &[package("syn", "1.0.0")]);
        assert_eq!(gone, ["syn 2 is skipped, and nobody uses it any more"]);
    }

    #[test]
    fn the_workspace_keeps_to_the_file() {
        check_workspace().unwrap();
    }
}

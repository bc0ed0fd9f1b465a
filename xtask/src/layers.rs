//! Does every dependency point the right way?
//!
//! ```text
//! machinery ◄── core ◄── api ◄─┬─ services ◄── sim ◄─┬─ cli          testkit: depends on none of ours
//! machinery ◄── apiserver ◄────┴─ manifests ◄────────┘
//! ```
//!
//! Two tables say it exactly: [`RULES`] which of our crates a crate may use, [`BANNED`] what must never end up below
//! `core`, directly or through others. The check looks at the resolved graph, so nothing hides behind a feature.

use crate::shell;
use anyhow::{Result, bail};
use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, VecDeque};

/// What one of our crates may depend on among our crates.
struct Rule {
    name: &'static str,
    /// In what it ships.
    uses: &'static [&'static str],
    /// In its tests, examples and benches, besides `uses`.
    tests: &'static [&'static str],
}

/// One row per crate of the workspace; a crate without a row fails the check.
const RULES: &[Rule] = &[
    Rule { name: "loadline-machinery", uses: &[], tests: &[] },
    Rule { name: "loadline-core", uses: &["loadline-machinery"], tests: &[] },
    Rule { name: "loadline-replay", uses: &["loadline-core"], tests: &[] },
    Rule {
        name: "loadline-api",
        uses: &["loadline-core", "loadline-machinery"],
        tests: &["loadline-testkit"],
    },
    Rule {
        name: "loadline-manifests",
        uses: &["loadline-core", "loadline-api", "loadline-apiserver"],
        tests: &["loadline-testkit"],
    },
    Rule {
        name: "loadline-services",
        uses: &["loadline-core", "loadline-api"],
        tests: &["loadline-apiserver", "loadline-testkit"],
    },
    Rule {
        name: "loadline-sim",
        uses: &["loadline-core", "loadline-api", "loadline-services"],
        tests: &["loadline-apiserver", "loadline-testkit"],
    },
    Rule {
        name: "loadline",
        uses: &[
            "loadline-core",
            "loadline-replay",
            "loadline-api",
            "loadline-manifests",
            "loadline-services",
            "loadline-sim",
            "loadline-apiserver",
        ],
        tests: &["loadline-testkit"],
    },
    Rule {
        name: "loadline-chaos",
        uses: &["loadline-core", "loadline-api", "loadline-services", "loadline-apiserver"],
        tests: &[],
    },
    Rule { name: "loadline-apiserver", uses: &["loadline-machinery"], tests: &["loadline-testkit"] },
    Rule { name: "loadline-testkit", uses: &[], tests: &[] },
    Rule { name: "xtask", uses: &["loadline-testkit"], tests: &[] },
];

/// The arrows that are drawn, and so must be there: the simulator starts the components of production, not its own.
const DRAWN: &[(&str, &str)] = &[
    ("loadline-core", "loadline-machinery"),
    ("loadline-api", "loadline-core"),
    ("loadline-services", "loadline-api"),
    ("loadline-sim", "loadline-services"),
    ("loadline", "loadline-sim"),
];

/// The crate whose decisions must be pure.
const PURE: &str = "loadline-core";

/// What `core` must not ship with, and why. A trailing `*` stands for any ending.
const BANNED: &[(&str, &str)] = &[
    ("tokio*", "core has no async"),
    ("async-*", "core has no async"),
    ("futures*", "core has no async"),
    ("smol", "core has no async"),
    ("kube", "core has no Kubernetes client"),
    ("kube-*", "core has no Kubernetes client"),
    ("k8s-openapi", "core has its own lean views"),
    ("axum*", "core has no I/O"),
    ("tower*", "core has no I/O"),
    ("tonic*", "core has no I/O"),
    ("hyper*", "core has no I/O"),
    ("reqwest", "core has no I/O"),
    ("rustls*", "core has no I/O"),
    ("mio", "core has no I/O"),
    ("socket2", "core has no I/O"),
    ("tracing*", "core returns traces as values"),
    ("getrandom", "seeds are arguments"),
    ("chrono", "core uses jiff"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Part of what ships: normal and build dependencies.
    Ships,
    /// Only for tests, examples and benches.
    Tests,
}

/// The resolved dependency graph; keys tell versions of one crate apart.
#[derive(Debug, Default)]
struct Graph {
    packages: BTreeMap<String, Package>,
}

#[derive(Debug, Default)]
struct Package {
    name: String,
    ours: bool,
    uses: Vec<(String, Use)>,
}

impl Graph {
    fn read() -> Result<Self> {
        let mut command = MetadataCommand::new();
        command.manifest_path(shell::root().join("Cargo.toml"));
        command.features(cargo_metadata::CargoOpt::AllFeatures);
        let metadata = command.exec()?;
        let mut graph = Self::default();
        for package in &metadata.packages {
            let ours = metadata.workspace_members.contains(&package.id);
            let package_of = Package { name: package.name.to_string(), ours, uses: Vec::new() };
            graph.packages.insert(package.id.repr.clone(), package_of);
        }
        for node in metadata.resolve.into_iter().flat_map(|resolve| resolve.nodes) {
            let uses = node.deps.into_iter().flat_map(|dep| {
                let kinds = dep.dep_kinds.into_iter().map(|kind| match kind.kind {
                    DependencyKind::Development => Use::Tests,
                    _ => Use::Ships,
                });
                kinds.map(move |kind| (dep.pkg.repr.clone(), kind)).collect::<Vec<_>>()
            });
            if let Some(package) = graph.packages.get_mut(&node.id.repr) {
                package.uses.extend(uses);
            }
        }
        Ok(graph)
    }

    /// Every broken rule, as a sentence each.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for package in self.packages.values().filter(|package| package.ours) {
            self.wrong_arrows(package, &mut faults);
        }
        self.banned_below_core(&mut faults);
        faults.sort();
        faults.dedup();
        faults
    }

    fn wrong_arrows(&self, package: &Package, faults: &mut Vec<String>) {
        let name = &package.name;
        let Some(rule) = RULES.iter().find(|rule| rule.name == name) else {
            faults.push(format!("{name} has no row in RULES (xtask/src/layers.rs): say what it may use"));
            return;
        };
        for (key, kind) in &package.uses {
            let Some(used) = self.packages.get(key).filter(|used| used.ours) else { continue };
            let used = used.name.as_str();
            // A crate's tests may use the crate itself with more features.
            let itself = *kind == Use::Tests && used == name;
            let fine =
                itself || rule.uses.contains(&used) || (*kind == Use::Tests && rule.tests.contains(&used));
            if fine {
                continue;
            }
            let hint = if rule.tests.contains(&used) { " outside its tests" } else { "" };
            faults.push(format!("{name} must not depend on {used}{hint}"));
        }
    }

    /// Arrows that are drawn and not there.
    fn missing_arrows(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let ours =
            |name: &str| self.packages.iter().find(|(_, package)| package.ours && package.name == name);
        for (from, to) in DRAWN {
            let (Some((_, package)), Some((key, _))) = (ours(from), ours(to)) else { continue };
            if !package.uses.contains(&(key.clone(), Use::Ships)) {
                faults.push(format!("{from} does not depend on {to}, though ARCHITECTURE.md draws it"));
            }
        }
        faults
    }

    /// Breadth first, so that the way shown is the shortest one.
    fn banned_below_core(&self, faults: &mut Vec<String>) {
        let Some(start) = self.packages.iter().find(|(_, package)| package.ours && package.name == PURE)
        else {
            return;
        };
        let mut ways: BTreeMap<&str, String> = BTreeMap::from([(start.0.as_str(), PURE.to_owned())]);
        let mut queue = VecDeque::from([start.0.as_str()]);
        while let Some(key) = queue.pop_front() {
            let Some(package) = self.packages.get(key) else { continue };
            for (next, _) in package.uses.iter().filter(|(_, kind)| *kind == Use::Ships) {
                let Some(used) = self.packages.get(next) else { continue };
                if ways.contains_key(next.as_str()) {
                    continue;
                }
                let way = format!("{} → {}", ways[key], used.name);
                match BANNED.iter().find(|(pattern, _)| matches(pattern, &used.name)) {
                    // Not followed further: what is below a banned crate is no news.
                    Some((_, why)) => {
                        faults.push(format!("{PURE} must not depend on {} ({why}): {way}", used.name));
                    }
                    None => queue.push_back(next),
                }
                ways.insert(next, way);
            }
        }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

/// Fails with every broken rule of the workspace as it is.
pub fn check_workspace() -> Result<()> {
    let graph = Graph::read()?;
    let mut faults = graph.faults();
    faults.extend(graph.missing_arrows());
    if !faults.is_empty() {
        bail!("dependencies that point the wrong way, or are missing:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Use::{Ships, Tests};

    /// A graph from its arrows. Crates with a row in the table, and `stranger`, are ours.
    fn graph(arrows: &[(&str, Use, &str)]) -> Graph {
        let mut graph = Graph::default();
        for name in arrows.iter().flat_map(|(from, _, to)| [from, to]) {
            let ours = *name == "stranger" || RULES.iter().any(|rule| rule.name == *name);
            let package = Package { name: (*name).to_owned(), ours, uses: Vec::new() };
            graph.packages.entry((*name).to_owned()).or_insert(package);
        }
        for (from, kind, to) in arrows {
            graph.packages.get_mut(*from).unwrap().uses.push(((*to).to_owned(), *kind));
        }
        graph
    }

    #[test]
    fn the_workspace_keeps_its_rules() {
        let graph = Graph::read().unwrap();
        assert_eq!(graph.faults(), Vec::<String>::new());
        assert_eq!(graph.missing_arrows(), Vec::<String>::new());
        for rule in RULES {
            let named = graph.packages.values().any(|package| package.ours && package.name == rule.name);
            assert!(named, "{} has a row but no crate", rule.name);
        }
    }

    #[test]
    fn arrows_along_the_layers_are_fine() {
        let arrows = [
            ("loadline-core", Ships, "loadline-machinery"),
            ("loadline-apiserver", Ships, "loadline-machinery"),
            ("loadline-api", Ships, "loadline-core"),
            ("loadline-manifests", Ships, "loadline-api"),
            ("loadline-manifests", Ships, "loadline-apiserver"),
            ("loadline-services", Ships, "loadline-api"),
            ("loadline-sim", Ships, "loadline-services"),
            ("loadline-sim", Tests, "loadline-apiserver"),
            ("loadline", Ships, "loadline-sim"),
            ("loadline", Ships, "loadline-manifests"),
            ("loadline", Ships, "loadline-apiserver"),
            ("loadline-apiserver", Tests, "loadline-testkit"),
            ("loadline-apiserver", Ships, "tokio"),
            ("loadline-core", Ships, "serde"),
            ("loadline-core", Tests, "proptest"),
            ("loadline-core", Tests, "loadline-core"),
            ("proptest", Ships, "getrandom"),
            ("xtask", Ships, "loadline-testkit"),
        ];
        assert_eq!(graph(&arrows).faults(), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_that_is_drawn_and_not_there_is_named() {
        let arrows = [("loadline-sim", Tests, "loadline-services")];
        let missing = graph(&arrows).missing_arrows();
        assert_eq!(
            missing,
            ["loadline-sim does not depend on loadline-services, though ARCHITECTURE.md draws it"]
        );
    }

    #[test]
    fn each_wrong_arrow_is_named() {
        let cases = [
            (
                "up the layers",
                ("loadline-core", Ships, "loadline-api"),
                "loadline-core must not depend on loadline-api",
            ),
            (
                "up the layers in tests",
                ("loadline-api", Tests, "loadline-services"),
                "loadline-api must not depend on loadline-services",
            ),
            (
                "files are for the command line, not for what runs in a cluster",
                ("loadline-services", Ships, "loadline-manifests"),
                "loadline-services must not depend on loadline-manifests",
            ),
            (
                "the API server decides nothing",
                ("loadline-apiserver", Ships, "loadline-core"),
                "loadline-apiserver must not depend on loadline-core",
            ),
            (
                "what is shared knows nobody",
                ("loadline-machinery", Ships, "loadline-core"),
                "loadline-machinery must not depend on loadline-core",
            ),
            (
                "the test kit stands alone",
                ("loadline-testkit", Ships, "loadline-apiserver"),
                "loadline-testkit must not depend on loadline-apiserver",
            ),
            (
                "a test dependency that ships",
                ("loadline-sim", Ships, "loadline-apiserver"),
                "loadline-sim must not depend on loadline-apiserver outside its tests",
            ),
            (
                "a crate nobody thought about",
                ("stranger", Ships, "serde"),
                "stranger has no row in RULES (xtask/src/layers.rs): say what it may use",
            ),
        ];
        for (reason, arrow, fault) in cases {
            assert_eq!(graph(&[arrow]).faults(), [fault], "{reason}");
        }
    }

    #[test]
    fn a_banned_crate_below_core_is_named_with_the_way_to_it() {
        let arrows = [
            ("loadline-core", Ships, "serde"),
            ("loadline-core", Ships, "helper"),
            ("helper", Ships, "rand"),
            ("rand", Ships, "getrandom"),
            ("serde", Ships, "kube-client"),
        ];
        let expected = [
            "loadline-core must not depend on getrandom (seeds are arguments): loadline-core → helper → rand → getrandom",
            "loadline-core must not depend on kube-client (core has no Kubernetes client): loadline-core → serde → kube-client",
        ];
        assert_eq!(graph(&arrows).faults(), expected);
    }

    #[test]
    fn a_pattern_matches_whole_names_or_beginnings() {
        let cases = [("kube", "kube", true), ("kube", "kubelet", false), ("tokio*", "tokio-util", true)];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}

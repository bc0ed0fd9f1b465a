//! What is the program made from? As SPDX 2.3, which scanners read.
//!
//! Every crate the program is built from on its platform, with version, licence, checksum and what it depends on; what only tests
//! need is not in it. Features are those of the whole workspace, so that it may list a crate too many and never one too few.

use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What is shipped.
const PROGRAM: &str = "loadline";
/// Crates that come from where everybody gets them.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Which build it is about.
pub struct Made {
    pub version: String,
    pub commit: String,
    /// The time of the commit, in UTC.
    pub at: String,
}

/// A crate.
#[derive(Clone, Debug, Default)]
struct Part {
    name: String,
    version: String,
    licence: Option<String>,
    checksum: Option<String>,
    /// Is it from the registry?
    public: bool,
    /// By identity, and whether only to build it.
    uses: BTreeMap<String, bool>,
}

pub fn of_workspace(root: &Path, target: &str, made: &Made) -> Result<Value> {
    let mut command = MetadataCommand::new();
    command.manifest_path(root.join("Cargo.toml"));
    command.other_options(["--locked".to_owned(), "--filter-platform".to_owned(), target.to_owned()]);
    let metadata = command.exec().context("cannot ask cargo what the program is made from")?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    Ok(document(&parts(&metadata, &checksums(&lock))?, made))
}

/// What the lock file says about content, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let package = |block: &str| {
        let field = |name: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
            Some(line.trim_matches('"').to_owned())
        };
        Some(((field("name")?, field("version")?), field("checksum")?))
    };
    lock.split("[[package]]").filter_map(package).collect()
}

/// The program first, then everything that is reached from it.
fn parts(metadata: &Metadata, checksums: &BTreeMap<(String, String), String>) -> Result<Vec<Part>> {
    let packages: BTreeMap<&PackageId, _> = metadata.packages.iter().map(|one| (&one.id, one)).collect();
    let nodes = metadata.resolve.as_ref().map_or(&[][..], |resolve| &resolve.nodes);
    let nodes: BTreeMap<&PackageId, _> = nodes.iter().map(|node| (&node.id, node)).collect();
    let ours = |id: &&PackageId| metadata.workspace_members.contains(id);
    let program = nodes.keys().copied().filter(ours).find(|id| packages[id].name.as_str() == PROGRAM);
    let program = program.with_context(|| format!("expected the package {PROGRAM} in the workspace"))?;
    let (mut out, mut seen, mut next) = (Vec::new(), BTreeSet::from([program]), vec![program]);
    while let Some(id) = next.pop() {
        let package = packages[id];
        let mut part = Part {
            name: package.name.to_string(),
            version: package.version.to_string(),
            licence: package.license.clone(),
            public: package.source.as_ref().is_some_and(|source| source.repr == REGISTRY),
            ..Part::default()
        };
        part.checksum = checksums.get(&(part.name.clone(), part.version.clone())).cloned();
        for used in &nodes[id].deps {
            let is = |kind| used.dep_kinds.iter().any(|one| one.kind == kind);
            let (normal, build) = (is(DependencyKind::Normal), is(DependencyKind::Build));
            if normal || build {
                let of = packages[&used.pkg];
                part.uses.insert(identity(of.name.as_str(), &of.version.to_string()), !normal);
                if seen.insert(&used.pkg) {
                    next.push(&used.pkg);
                }
            }
        }
        out.push(part);
    }
    out[1..].sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(out)
}

/// Letters, digits, dots and dashes are allowed.
fn identity(name: &str, version: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' })
            .collect()
    };
    // A name may have an underscore where another has a dash; an underscore is told by a dot, which no name has.
    format!("SPDXRef-{}-{}", plain(&name.replace('_', ".")), plain(version))
}

/// The first part is what is described.
fn document(parts: &[Part], made: &Made) -> Value {
    let mut packages = Vec::new();
    let mut relations = Vec::new();
    let relation = |from: &str, kind: &str, to: &str| json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to});
    for (index, part) in parts.iter().enumerate() {
        let id = identity(&part.name, &part.version);
        let Part { name, version, .. } = part;
        let from = if part.public {
            format!("https://crates.io/api/v1/crates/{name}/{version}/download")
        } else {
            "NOASSERTION".to_owned()
        };
        // The old way of saying either.
        let licence =
            part.licence.as_deref().map_or("NOASSERTION".to_owned(), |text| text.replace('/', " OR "));
        let mut package = json!({
            "SPDXID": id, "name": name, "versionInfo": version, "downloadLocation": from, "filesAnalyzed": false,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": licence, "copyrightText": "NOASSERTION",
        });
        if let Some(sum) = &part.checksum {
            package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": sum}]);
        }
        if part.public {
            package["externalRefs"] = json!([{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": format!("pkg:cargo/{name}@{version}")}]);
        }
        if index == 0 {
            package["primaryPackagePurpose"] = json!("APPLICATION");
            relations.push(relation("SPDXRef-DOCUMENT", "DESCRIBES", &id));
        }
        packages.push(package);
        for (used, only_to_build) in &part.uses {
            relations.push(if *only_to_build {
                relation(used, "BUILD_DEPENDENCY_OF", &id)
            } else {
                relation(&id, "DEPENDS_ON", used)
            });
        }
    }
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("{PROGRAM}-{}", made.version),
        "documentNamespace": format!("urn:loadline:spdx:{}:{}", made.version, made.commit),
        "creationInfo": {"created": made.at, "creators": ["Tool: cargo-xtask-release"]},
        "packages": packages,
        "relationships": relations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    fn made() -> Made {
        Made { version: "0.2.0".into(), commit: "abc".into(), at: "2026-02-03T04:05:06Z".into() }
    }

    #[test]
    fn a_document_names_each_part_with_licence_checksum_and_origin() {
        let parts = [
            Part {
                name: "loadline".into(),
                version: "0.2.0".into(),
                licence: Some("Apache-2.0".into()),
                uses: [("SPDXRef-a.b-1.0.0".to_owned(), false), ("SPDXRef-cc-1.0.0".to_owned(), true)].into(),
                ..Part::default()
            },
            Part {
                name: "a_b".into(),
                version: "1.0.0".into(),
                licence: Some("MIT/Apache-2.0".into()),
                checksum: Some("00ff".into()),
                public: true,
                ..Part::default()
            },
        ];
        let document = document(&parts, &made());
        assert_eq!(document["packages"][0]["downloadLocation"], "NOASSERTION");
        assert_eq!(document["packages"][0].get("externalRefs"), None);
        let other = &document["packages"][1];
        assert_eq!(other["SPDXID"], "SPDXRef-a.b-1.0.0");
        assert_eq!(other["licenseDeclared"], "MIT OR Apache-2.0");
        assert_eq!(other["checksums"], json!([{"algorithm": "SHA256", "checksumValue": "00ff"}]));
        assert_eq!(other["externalRefs"][0]["referenceLocator"], "pkg:cargo/a_b@1.0.0");
        let relation = |from: &str, kind: &str, to: &str| json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to});
        assert_eq!(
            document["relationships"],
            json!([
                relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-loadline-0.2.0"),
                relation("SPDXRef-loadline-0.2.0", "DEPENDS_ON", "SPDXRef-a.b-1.0.0"),
                relation("SPDXRef-cc-1.0.0", "BUILD_DEPENDENCY_OF", "SPDXRef-loadline-0.2.0"),
            ])
        );
        assert_eq!(document["creationInfo"]["created"], "2026-02-03T04:05:06Z");
    }

    #[test]
    fn names_that_differ_in_an_underscore_are_not_the_same() {
        assert_ne!(identity("a_b", "1.0.0"), identity("a-b", "1.0.0"));
        assert_eq!(identity("a", "1.0.0+b_1"), "SPDXRef-a-1.0.0-b-1");
    }

    #[test]
    fn the_program_is_made_from_what_it_needs_at_run_time_and_not_from_what_tests_need() {
        let document = of_workspace(&shell::root(), "x86_64-unknown-linux-musl", &made()).unwrap();
        let packages = document["packages"].as_array().unwrap();
        let names: BTreeSet<&str> = packages.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(packages[0]["name"], "loadline");
        for name in ["loadline-core", "rustls", "tokio", "serde_json"] {
            assert!(names.contains(name), "{name}");
        }
        for name in ["loadline-testkit", "trycmd", "proptest", "criterion", "xtask", "windows-sys"] {
            assert!(!names.contains(name), "{name}");
        }
        // Identities are unique, and every relation leads somewhere.
        let ids: BTreeSet<&str> = packages.iter().map(|one| one["SPDXID"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), packages.len());
        for relation in document["relationships"].as_array().unwrap() {
            for end in ["spdxElementId", "relatedSpdxElement"] {
                let id = relation[end].as_str().unwrap();
                assert!(id == "SPDXRef-DOCUMENT" || ids.contains(id), "{id}");
            }
        }
        for package in packages.iter().filter(|one| one["downloadLocation"] != "NOASSERTION") {
            assert!(
                package["checksums"].is_array() && package["licenseDeclared"] != "NOASSERTION",
                "{package}"
            );
        }
    }
}

//! Which real programs exist for tests, where do they come from, and where do they live on this machine?
//!
//! [`COMPONENTS`] and [`PACKAGES`] are the only lists of them: `cargo xtask control-plane` builds the ones and unpacks the
//! others, tests look them up. A control plane is what most tests need; what only some need, such as other projects'
//! programs that ours are compared with, is in a [`Group`] of its own, so that nobody builds it by the way.
//!
//! Programs are sought in `KUBEBUILDER_ASSETS` first and then in the user's cache, in a folder whose name changes
//! with everything that goes into the build. Nothing here starts or builds anything.

mod group;
mod packages;
mod table;

pub use group::Group;
pub use packages::{PACKAGES, Package};
pub use table::{
    COMPONENTS, KARMADA_1_17, KARMADA_1_18, KARMADA_READER, KUBERNETES, METRICS_SERVER, OCM, WORKLOAD,
};

use std::env;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// When set to 1, a missing part is built by `cargo xtask test` and fails a test instead of skipping it.
pub const REQUIRE: &str = "LOADLINE_REQUIRE_REAL";

/// When set to 1, tests behave as if no part were there.
pub const AVOID: &str = "LOADLINE_NO_REAL";

/// A Go module of ours under `xtask/control-plane` that pins one upstream with everything it needs.
///
/// Upstreams pin different Kubernetes versions, hence one module for each.
#[derive(Debug)]
pub struct Module {
    /// Folder name under `xtask/control-plane`.
    pub folder: &'static str,
    /// The required module whose version names the build.
    pub upstream: &'static str,
    /// Go package whose `gitVersion`, `gitMajor` and `gitMinor` are set at link time: without them the servers
    /// call themselves v0.0.0 and clients complain.
    pub stamp: Option<&'static str>,
    /// Go build tags.
    pub tags: &'static [&'static str],
    go_mod: &'static str,
    go_sum: &'static str,
    /// The names of its programs, or the program itself.
    tools: &'static str,
}

/// One program: a row of the table.
#[derive(Debug)]
pub struct Component {
    /// File name of the program; with the minor version where several are kept side by side.
    pub name: &'static str,
    /// The module that pins it.
    pub module: &'static Module,
    /// What it belongs to.
    pub group: Group,
    /// Its Go package.
    pub package: &'static str,
}

impl Module {
    /// The upstream's version as `go.mod` requires it, such as `v1.36.3`.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.version_of(self.upstream)
    }

    /// The required version of the module that holds `package`: the one with the longest name it starts with. A package
    /// of the module itself has the version of this repository.
    fn version_of(&self, package: &str) -> &'static str {
        let required = self.go_mod.lines().filter_map(|line| {
            let mut words = line.trim_start().trim_start_matches("require ").split_whitespace();
            Some((words.next()?, words.next()?)).filter(|(_, version)| version.starts_with('v'))
        });
        let holds = |name: &str| {
            package.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let own = self
            .go_mod
            .lines()
            .filter_map(|line| Some((line.strip_prefix("module ")?, "of-this-repository")));
        let holder = required.chain(own).filter(|(name, _)| holds(name)).max_by_key(|(name, _)| name.len());
        holder.map_or("unknown", |(_, version)| version)
    }

    /// The oldest Go that builds it, as `go.mod` says, such as `1.26.0`.
    #[must_use]
    pub fn go(&self) -> &'static str {
        self.go_mod.lines().find_map(|line| line.strip_prefix("go ")).unwrap_or("1").trim()
    }

    /// What goes to `go build -ldflags`: no debug tables, and the version where the program looks for it.
    #[must_use]
    pub fn ldflags(&self) -> String {
        let mut flags = String::from("-s -w");
        if let Some(package) = self.stamp {
            let version = self.version();
            let mut numbers = version.trim_start_matches('v').split('.');
            let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
            for (name, value) in [("gitVersion", version), ("gitMajor", major), ("gitMinor", minor)] {
                flags.push_str(" -X ");
                flags.push_str(package);
                flags.push('.');
                flags.push_str(name);
                flags.push('=');
                flags.push_str(value);
            }
        }
        flags
    }

    /// Name of the cache folder: changes with the version and with every byte that goes into the build.
    #[must_use]
    pub fn key(&self) -> String {
        let mut hash = Fnv::new();
        for text in [self.go_mod, self.go_sum, self.tools, &self.ldflags(), &self.tags.join(",")] {
            hash.add(text.as_bytes());
        }
        format!("{}-{}-{:016x}", self.folder, self.version(), hash.0)
    }
}

impl Component {
    /// Its version as `go.mod` requires it.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.module.version_of(self.package)
    }
}

/// FNV-1a. The standard hasher may change between Rust releases, and with it every cache folder's name.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds `bytes` and a separator, so that moving a byte from one text to the next changes the hash.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().copied().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// The places on this machine where parts may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// A folder with ready programs (`KUBEBUILDER_ASSETS`); sought first.
    pub assets: Option<PathBuf>,
    /// The folder that holds one folder per [`Module::key`].
    pub cache: Option<PathBuf>,
}

impl Places {
    /// The places this process's environment names.
    #[must_use]
    pub fn from_env() -> Self {
        let var = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self::new(var("KUBEBUILDER_ASSETS"), var("XDG_CACHE_HOME"), var("HOME"))
    }

    /// By the XDG rules: a relative cache folder counts as none.
    fn new(assets: Option<PathBuf>, xdg: Option<PathBuf>, home: Option<PathBuf>) -> Self {
        let cache = xdg.filter(|path| path.is_absolute()).or_else(|| home.map(|home| home.join(".cache")));
        Self { assets, cache: cache.map(|path| path.join("loadline/control-plane")) }
    }

    /// Where the programs of `module` are put when they are built; none without a home folder.
    #[must_use]
    pub fn built(&self, module: &Module) -> Option<PathBuf> {
        self.cache.as_ref().map(|cache| cache.join(module.key()))
    }

    /// The program of that row, if it is there.
    #[must_use]
    pub fn find(&self, component: &Component) -> Option<PathBuf> {
        let folders = [self.assets.clone(), self.built(component.module)];
        folders.into_iter().flatten().map(|folder| folder.join(component.name)).find(|path| path.is_file())
    }

    /// The rows of these groups whose program is not there.
    #[must_use]
    pub fn missing(&self, groups: &[Group]) -> Vec<&'static Component> {
        of(groups).filter(|row| self.find(row).is_none()).collect()
    }

    /// Every folder in which a part of these groups was found, in the order of search: ready for a `PATH`.
    #[must_use]
    pub fn folders(&self, groups: &[Group]) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = Vec::new();
        for found in of(groups).filter_map(|row| self.find(row)) {
            if let Some(folder) = found.parent().map(Path::to_path_buf)
                && !folders.contains(&folder)
            {
                folders.push(folder);
            }
        }
        folders
    }
}

fn of(groups: &[Group]) -> impl Iterator<Item = &'static Component> {
    COMPONENTS.iter().filter(|row| groups.contains(&row.group))
}

/// Whether tests may, must or must not use real parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Used when there; else the test is skipped with a line that says so.
    IfThere,
    /// A missing part fails the test.
    Required,
    /// Treated as missing.
    Never,
}

impl Policy {
    /// What [`REQUIRE`] and [`AVOID`] say in this process's environment.
    ///
    /// # Errors
    /// When both are set: neither of them may quietly win.
    pub fn from_env() -> Result<Self, String> {
        let on = |name: &str| env::var(name).is_ok_and(|value| value == "1");
        Self::of(on(REQUIRE), on(AVOID))
    }

    fn of(require: bool, avoid: bool) -> Result<Self, String> {
        match (require, avoid) {
            (true, true) => Err(format!("{REQUIRE}=1 and {AVOID}=1 contradict each other: set one of them")),
            (true, false) => Ok(Self::Required),
            (false, true) => Ok(Self::Never),
            (false, false) => Ok(Self::IfThere),
        }
    }

    /// The same for a test, which cannot do anything else about it.
    fn of_test() -> Self {
        Self::from_env().expect("a test is told one thing about real parts")
    }
}

/// Parts a test needs and does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub names: Vec<String>,
}

impl Missing {
    /// These rows.
    #[must_use]
    pub fn rows(rows: &[&Component]) -> Self {
        Self { names: rows.iter().map(|row| row.name.to_owned()).collect() }
    }

    /// These packages.
    #[must_use]
    pub fn packages(packages: &[&Package]) -> Self {
        Self { names: packages.iter().map(|package| package.name.to_owned()).collect() }
    }

    /// What a developer types to get all of them.
    #[must_use]
    pub fn command(&self) -> String {
        let rows = COMPONENTS.iter().map(|row| (row.name, row.group));
        let packages = PACKAGES.iter().map(|package| (package.name, package.group));
        let named = rows.chain(packages).filter(|(name, _)| self.names.iter().any(|missing| missing == name));
        Group::command(&named.map(|(_, group)| group).collect::<Vec<_>>())
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {} ({})", self.names.join(", "), self.command())
    }
}

impl std::error::Error for Missing {}

/// The program called `name`, found by the environment's [`Places`] and [`Policy`].
///
/// # Errors
/// When it is not there, when it must not be used, or when no row of [`COMPONENTS`] or [`PACKAGES`] has that name.
pub fn find(name: &str) -> Result<PathBuf, Missing> {
    let missing = || Missing { names: vec![name.to_owned()] };
    if Policy::of_test() == Policy::Never {
        return Err(missing());
    }
    let places = Places::from_env();
    if let Some(package) = PACKAGES.iter().find(|package| package.name == name) {
        return package.find(&places).ok_or_else(missing);
    }
    let row = COMPONENTS.iter().find(|row| row.name == name).ok_or_else(missing)?;
    places.find(row).ok_or_else(missing)
}

/// [`find`] for several, so that all that are missing are told at once.
///
/// # Errors
/// As [`find`].
pub fn find_all(names: &[&str]) -> Result<(), Missing> {
    let missing = names.iter().filter_map(|name| find(name).err());
    let names: Vec<String> = missing.flat_map(|missing| missing.names).collect();
    if names.is_empty() { Ok(()) } else { Err(Missing { names }) }
}

/// [`find`] for a test: none means "return", and the reason has been printed.
///
/// # Panics
/// When the part is missing and [`REQUIRE`] says it must be there.
#[must_use]
pub fn find_or_skip(name: &str) -> Option<PathBuf> {
    find(name).map_err(|missing| skip(&missing)).ok()
}

/// Says why the calling test does nothing.
///
/// # Panics
/// When real parts are required: then a skipped test would hide that something was not tested.
pub fn skip(missing: &dyn fmt::Display) {
    assert!(Policy::of_test() != Policy::Required, "{missing}, and {REQUIRE}=1 forbids skipping");
    // Not `eprintln`, which the test harness swallows for tests that pass. A closed stderr is no reason to fail.
    let _ = writeln!(io::stderr(), "skipped: {missing}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn row(name: &str) -> &'static Component {
        COMPONENTS.iter().find(|row| row.name == name).unwrap()
    }

    #[test]
    fn parts_cannot_be_required_and_avoided_at_once() {
        assert_eq!(Policy::of(false, false), Ok(Policy::IfThere));
        assert_eq!(Policy::of(true, false), Ok(Policy::Required));
        assert_eq!(Policy::of(false, true), Ok(Policy::Never));
        let problem = Policy::of(true, true).unwrap_err();
        assert!(problem.contains(REQUIRE) && problem.contains(AVOID), "{problem}");
    }

    #[test]
    fn versions_are_read_from_go_mod() {
        assert!(KUBERNETES.go().starts_with("1."), "{}", KUBERNETES.go());
        for row in COMPONENTS {
            let start = match row.name {
                "etcd" | "helm" => "v3.",
                "metrics-server" => "v0.",
                "workload" | "karmada-reader" => "of-this-repository",
                _ => "v1.",
            };
            assert!(row.version().starts_with(start), "{} {}", row.name, row.version());
        }
        let text = "require a.b/c v1.2.3\nrequire (\n\ta.b/c/d v4.5.6 // indirect\n)\nreplace a.b/e => a.b/f v7.0.0\n";
        let module = Module { go_mod: text, ..KUBERNETES };
        let cases =
            [("a.b/c", "v1.2.3"), ("a.b/c/x", "v1.2.3"), ("a.b/c/d/x", "v4.5.6"), ("a.b/cc", "unknown")];
        for (package, version) in cases {
            assert_eq!(module.version_of(package), version, "{package}");
        }
    }

    #[test]
    fn ldflags_carry_the_version_the_servers_report() {
        let module = Module { go_mod: "require k8s.io/kubernetes v1.36.3\n", ..KUBERNETES };
        let stamp = "k8s.io/component-base/version";
        let expected =
            format!("-s -w -X {stamp}.gitVersion=v1.36.3 -X {stamp}.gitMajor=1 -X {stamp}.gitMinor=36");
        assert_eq!(module.ldflags(), expected);
    }

    #[test]
    fn key_changes_with_everything_that_goes_into_the_build() {
        let same = Module { ..KUBERNETES };
        assert_eq!(same.key(), KUBERNETES.key());
        let others = [
            ("a pinned dependency", Module { go_sum: "other", ..KUBERNETES }),
            ("a version", Module { go_mod: "k8s.io/kubernetes v1.0.0", ..KUBERNETES }),
            ("the list of programs", Module { tools: "other", ..KUBERNETES }),
            ("a build tag", Module { tags: &["other"], ..KUBERNETES }),
            ("the version stamp", Module { stamp: None, ..KUBERNETES }),
        ];
        for (what, other) in others {
            assert_ne!(other.key(), KUBERNETES.key(), "{what}");
        }
    }

    #[test]
    fn every_program_is_named_in_its_modules_tools_file() {
        // What is ours is the module itself.
        for row in COMPONENTS.iter().filter(|row| !row.package.starts_with("loadline.dev/")) {
            let import = format!("_ \"{}\"", row.package);
            assert!(row.module.tools.contains(&import), "{} is not pinned: no {import}", row.name);
        }
    }

    #[test]
    fn cache_folder_follows_the_xdg_rules() {
        let path = |text: &str| Some(PathBuf::from(text));
        let cases = [
            ("XDG wins", path("/xdg"), path("/home/a"), path("/xdg/loadline/control-plane")),
            ("home otherwise", None, path("/home/a"), path("/home/a/.cache/loadline/control-plane")),
            ("relative is none", path("xdg"), path("/h"), path("/h/.cache/loadline/control-plane")),
            ("neither", None, None, None),
        ];
        for (reason, xdg, home, cache) in cases {
            assert_eq!(Places::new(None, xdg, home).cache, cache, "{reason}");
        }
    }

    #[test]
    fn ready_programs_come_before_built_ones_and_the_rest_is_missing() {
        let temp = tempfile::tempdir().unwrap();
        let places =
            Places { assets: Some(temp.path().join("assets")), cache: Some(temp.path().join("cache")) };
        let built = places.built(&KUBERNETES).unwrap();
        let assets = places.assets.clone().unwrap();
        for folder in [&assets, &built] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("etcd"), "").unwrap();
        }
        fs::write(built.join("kubectl"), "").unwrap();

        assert_eq!(places.find(row("etcd")), Some(assets.join("etcd")));
        assert_eq!(places.find(row("kubectl")), Some(built.join("kubectl")));
        assert_eq!(places.find(row("kube-apiserver")), None);
        let groups = [Group::ControlPlane];
        assert_eq!(places.folders(&groups), [assets, built]);
        assert_eq!(
            Missing::rows(&places.missing(&groups)).names,
            ["kube-apiserver", "kube-scheduler", "kube-controller-manager"]
        );
    }

    #[test]
    fn a_group_is_missing_without_the_others() {
        let temp = tempfile::tempdir().unwrap();
        let places = Places { assets: Some(temp.path().to_owned()), cache: None };
        for row in COMPONENTS.iter().filter(|row| row.group == Group::ControlPlane) {
            fs::write(temp.path().join(row.name), "").unwrap();
        }
        assert_eq!(places.missing(&[Group::ControlPlane]).len(), 0);
        let names = |groups: &[Group]| Missing::rows(&places.missing(groups)).names;
        let peers = [
            "karmada-scheduler-1.17",
            "karmada-scheduler-estimator-1.17",
            "karmada-scheduler-1.18",
            "karmada-scheduler-estimator-1.18",
            "karmada-reader",
            "ocm-placement",
        ];
        assert_eq!(names(&[Group::Peers]), peers);
        let node = ["kubelet", "metrics-server", "workload", "helm"];
        assert_eq!(names(&[Group::Node]), node);
        assert_eq!(names(Group::ALL), [&peers[..], &node].concat());
        assert_eq!(places.folders(&[Group::Peers]), [] as [PathBuf; 0]);
    }

    #[test]
    fn no_two_programs_have_one_name() {
        let packaged = PACKAGES.iter().map(|package| package.name);
        let mut names: Vec<_> = COMPONENTS.iter().map(|row| row.name).chain(packaged).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COMPONENTS.len() + PACKAGES.len());
    }

    #[test]
    fn missing_says_what_to_type() {
        let cases = [
            (vec!["etcd", "kube-apiserver"], "needs etcd, kube-apiserver (cargo xtask control-plane)"),
            (
                vec!["karmada-scheduler-1.18"],
                "needs karmada-scheduler-1.18 (cargo xtask control-plane --peers)",
            ),
            (
                vec!["karmada-scheduler-1.17", "etcd"],
                "needs karmada-scheduler-1.17, etcd (cargo xtask control-plane --peers)",
            ),
            (
                vec!["containerd", "kubelet", "prometheus"],
                "needs containerd, kubelet, prometheus (cargo xtask control-plane --monitoring --node)",
            ),
        ];
        for (names, expected) in cases {
            let names = names.into_iter().map(str::to_owned).collect();
            assert_eq!(Missing { names }.to_string(), expected);
        }
    }
}

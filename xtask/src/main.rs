//! Chores of this repository, as `cargo xtask COMMAND`.
//!
//! | question | module |
//! |---|---|
//! | how do I run it, how are programs called? | `shell` |
//! | is everything fine? | `test`; what failed only once: `again`; what fails now and then: `soak` |
//! | how do I get a real Kubernetes control plane? | `control_plane` |
//! | does every dependency point the right way? | `layers` |
//! | may everything we depend on come in? | `deny` |
//! | do roles grant what components do, and no more? | `calls` |
//! | do the fuzz targets hold? | `fuzz` |
//! | does all code look the same? | `style` |
//! | are generated files what their generator makes? | `fresh` |
//! | what is generated, and from what? | `codegen`, `crds`, `plain`, `protobuf`, `records`, `reference` |
//! | how is the image made that a cluster runs? | `image` |
//! | how do I see all of it on a real node? | `real` |
//! | how is a version made that others install? | `release` |
//! | how fast is it? | `bench`; beside every peer: `peers` |
//! | do we decide as kube-scheduler does? | `worlds` |
//! | what does it take to break a promise? | crate `loadline-chaos` |
//! | how good are our decisions? | `quality` |

mod again;
mod bench;
mod calls;
mod codegen;
mod control_plane;
mod crds;
mod deny;
mod fresh;
mod fuzz;
mod image;
mod layers;
mod page;
mod peers;
mod plain;
mod protobuf;
mod real;
mod records;
mod reference;
mod release;
mod shell;
mod soak;
mod style;
mod test;
mod worlds;

use anyhow::Result;
use clap::{Parser, Subcommand, builder::PossibleValuesParser};
use loadline_testkit::parts::Group;
use std::path::PathBuf;
use std::process::ExitCode;

/// Chores of this repository.
///
/// The two to know are `up` and `test`; both need nothing but Rust.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build loadline and run `loadline up`: a small cluster to look at, in one process
    ///
    /// The exit code is that of `loadline up`; Ctrl-C reaches it and ends it cleanly.
    #[command(after_help = "Examples:\n  cargo xtask up\n  cargo xtask up -- --nodes 20 --for 30s\n  \
                            cargo xtask up -- --help")]
    Up {
        /// What is passed on to `loadline up`
        #[arg(last = true, value_name = "ARGS")]
        args: Vec<String>,
    },
    /// Check everything: format, style, layers, dependencies, lints, fuzz targets, tests, documentation
    ///
    /// Tests against a real control plane run if `cargo xtask control-plane` has put its programs in place; what did
    /// not run is said at the end. With `LOADLINE_REQUIRE_REAL=1` missing programs of all kinds are fetched and built
    /// first, a test that cannot have them fails, and so does counting instructions without valgrind.
    #[command(after_help = "Examples:\n  cargo xtask test\n  cargo xtask test quantity\n  \
                            LOADLINE_REQUIRE_REAL=1 cargo xtask test")]
    Test {
        /// Leave the real control plane out even if it is there
        #[arg(long)]
        no_real: bool,
        /// Run only the tests whose name contains this, and none of the other checks
        filter: Option<String>,
    },
    /// Put etcd, kube-apiserver, kube-scheduler, kube-controller-manager and kubectl in the user's cache
    ///
    /// Programs in the folder `KUBEBUILDER_ASSETS` are used as they are. The others are built from their Go modules,
    /// pinned under xtask/control-plane, with the Go on the PATH: several minutes the first time, nothing afterwards.
    /// The folders that hold the programs are printed to standard output, ready for a PATH.
    ///
    /// Peers are programs of other projects that ours are compared with and talk to: karmada-scheduler and
    /// karmada-scheduler-estimator, in the two minor versions that differ in their wire form, and Open Cluster
    /// Management's placement controller.
    #[command(after_help = "Examples:\n  cargo xtask control-plane\n  cargo xtask control-plane --peers\n  \
                            cargo xtask control-plane --node\n  \
                            PATH=$(cargo xtask control-plane --dir):$PATH kubectl version --client")]
    ControlPlane {
        /// Build nothing; print where the programs are, or fail if some are missing
        #[arg(long)]
        dir: bool,
        /// The peers as well: some minutes more the first time
        #[arg(long)]
        peers: bool,
        /// Prometheus and node-exporter as well: packages of Debian, unpacked and not installed
        #[arg(long)]
        monitoring: bool,
        /// What a real node needs as well: kubelet, metrics-server, Helm and what its pods run are built, containerd and runc
        /// are packages of Debian, unpacked and not installed
        #[arg(long)]
        node: bool,
    },
    /// Bring up a real one-node cluster with everything installed, and say where to look
    ///
    /// etcd, the programs of Kubernetes, containerd and Helm are the real ones; pods run on this machine, in namespaces of their
    /// own. Needs Linux and root. Ctrl-C ends it, and nothing stays.
    Real,
    /// Make the container image, as an archive: one program, no shell, nobody's rights; no daemon is needed
    ///
    /// The same program gives the same image. Its name with its digest is printed to standard output.
    #[command(
        after_help = "Examples:\n  cargo xtask image\n  cargo xtask image --profile dist --name example.com/loadline:0.1.0\n  \
                            ctr --namespace k8s.io images import target/image/loadline.tar"
    )]
    Image {
        /// What it is called
        #[arg(long, default_value = concat!("loadline:", env!("CARGO_PKG_VERSION")))]
        name: String,
        /// Cargo's profile to build it with; `dist` is slower to build, smaller and faster
        #[arg(long, default_value = "release", conflicts_with = "binary")]
        profile: String,
        /// What it is for, as Rust calls it, such as aarch64-unknown-linux-musl; else for machines like this one
        #[arg(long)]
        target: Option<String>,
        /// A program that is there already, instead
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        /// Where the archive goes
        #[arg(long, value_name = "FILE", default_value = "target/image/loadline.tar")]
        out: PathBuf,
    },
    /// Make a release: the version and what is new in it; then, from the commit with that, the files people get
    ///
    /// Without `--build`: CHANGELOG.md gets what is in changes/, and the workspace and the chart the version. Commit that and tag
    /// it. With `--build`, from there: the program, the image, the chart, what all of it is made from (SPDX), and SHA256SUMS, in
    /// target/release-VERSION. A tree with changes, a version not after the last one and an empty changes/ are refused.
    #[command(
        after_help = "Examples:\n  cargo xtask release 0.2.0 --dry-run\n  cargo xtask release 0.2.0\n  \
                            cargo xtask release 0.2.0 --build"
    )]
    Release {
        /// Such as 0.2.0
        version: cargo_metadata::semver::Version,
        /// Make the files of the version that is committed
        #[arg(long)]
        build: bool,
        /// What they are for, as Rust calls it; else for machines like this one
        #[arg(long, requires = "build")]
        target: Option<String>,
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
    },
    /// Fail if a crate depends on one it must not know
    ///
    /// The rules are the two tables in xtask/src/layers.rs.
    CheckLayers,
    /// Fail if a dependency has a licence, a version or a source that deny.toml does not let in
    CheckDeny,
    /// Fail if something is known to be wrong with a dependency
    ///
    /// `cargo deny check advisories`, with the database of the day: it is run on a schedule, and not by `test`, so that a new advisory
    /// never stops an unrelated change.
    CheckAdvisories,
    /// Fail if a role we ship grants more or less than its component was seen to use
    ///
    /// The folder holds what processes recorded that ran with the variable `LOADLINE_RECORD_CALLS` set to it, such as all tests.
    /// What differs on purpose stands in deploy/privilege.txt. Needs Helm (`cargo xtask control-plane --node`).
    #[command(after_help = "Examples:\n  LOADLINE_RECORD_CALLS=/tmp/calls cargo test --workspace\n  \
                            cargo xtask check-calls /tmp/calls")]
    CheckCalls {
        /// Where records are
        folder: PathBuf,
    },
    /// Run the fuzz targets, or the one named, from their seeds on
    ///
    /// The ordinary compiler is enough, and a C++ compiler for libFuzzer. Seeds are in fuzz/corpus; what is found beside them
    /// stays in target/fuzz.
    #[command(after_help = "Examples:\n  cargo xtask fuzz\n  cargo xtask fuzz yaml --seconds 600")]
    Fuzz {
        /// Which one
        name: Option<String>,
        /// How long each runs
        #[arg(long, default_value_t = 30)]
        seconds: u32,
    },
    /// Run programs of tests over and over on a busy machine, and say which failed how often
    ///
    /// They are built as `cargo xtask test` builds them; nothing is tried again. Beside them, threads that do nothing useful
    /// keep the cores busy.
    #[command(
        after_help = "Examples:\n  cargo xtask soak leader\n  cargo xtask soak tour up --times 20 --busy 4"
    )]
    Soak {
        /// Which programs, by the names of their files below `tests`
        #[arg(required = true)]
        names: Vec<String>,
        /// How often each
        #[arg(long, default_value_t = 10)]
        times: u32,
        /// How many threads keep the machine busy; as many as there are cores, if not said
        #[arg(long)]
        busy: Option<usize>,
    },
    /// Write the generated files anew
    ///
    /// `schemas` are made from the Kubernetes module pinned under xtask/control-plane, which Go fetches if need be,
    /// `messages` from the protobuf files in crates/api/proto, `crds` from the types in crates/api, `plain` manifests
    /// from the chart by Helm, `reference` pages by the program itself.
    Codegen {
        /// Only these
        #[arg(value_parser = PossibleValuesParser::new(fresh::names()))]
        name: Option<String>,
    },
    /// Compare our decisions with those of the real kube-scheduler, in worlds made by chance
    ///
    /// Half of them are plain, 29 in a hundred are about preemption, 20 about volumes, and 1 has 50 nodes and 200 pods that
    /// come one after the other. The seed is printed: with it the same worlds can be had again.
    #[command(after_help = "Examples:\n  cargo xtask worlds --fresh 2000\n  \
                            cargo xtask worlds --fresh 100 --seed 7")]
    Worlds {
        /// How many
        #[arg(long, default_value_t = 2000)]
        fresh: u64,
        /// What they are made from; by chance if not given
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Run the whole system in simulated time, with faults by seed, and check what the API server saw
    ///
    /// A seed that breaks a promise is printed with the promise, what shows it, how to run it again, and the least that
    /// breaks it. The first ones are part of `cargo xtask test`.
    #[command(after_help = "Examples:\n  cargo xtask chaos --seeds 10000\n  \
                            cargo xtask chaos --seeds 1 --from 42 --trace")]
    Chaos {
        /// How many seeds
        #[arg(long, default_value_t = 1000)]
        seeds: u64,
        /// The first of them
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Show every plan, and every write the API server saw
        #[arg(long)]
        trace: bool,
        /// Go on after a seed that breaks a promise
        #[arg(long)]
        all: bool,
    },
    /// Write docs/quality.md: every policy on every data set that is built in
    ///
    /// Three densities and five seeds each, some minutes. What is written is the same everywhere.
    Quality,
    /// Run the benchmarks, or the one named
    Bench {
        /// Which one
        #[arg(value_parser = PossibleValuesParser::new(bench::names()))]
        name: Option<String>,
        /// What the benchmark itself takes, after `--`
        #[arg(last = true)]
        args: Vec<String>,
    },
}

/// Many seeds are worth an optimised build.
const CHAOS: [&str; 5] = ["run", "--release", "--package", "loadline-chaos", "--"];

/// The page is made by an example: it needs the engines and nothing else of the program.
const QUALITY: [&str; 8] =
    ["run", "--release", "--package", "loadline-replay", "--example", "quality", "--", "docs/quality.md"];

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Chore::Up { args } => return code(shell::up(&args)),
        Chore::Test { no_real, filter } => test::run(no_real, filter.as_deref()),
        Chore::ControlPlane { dir, peers, monitoring, node } => {
            let mut groups = vec![Group::ControlPlane];
            groups.extend(peers.then_some(Group::Peers));
            groups.extend(monitoring.then_some(Group::Monitoring));
            groups.extend(node.then_some(Group::Node));
            let ready = if dir {
                Ok(())
            } else {
                control_plane::ensure(&groups).and_then(|()| control_plane::unpack(&groups))
            };
            ready.and_then(|()| control_plane::print(&groups))
        }
        Chore::Real => return code(real::run()),
        Chore::Image { name, profile, target, binary, out } => {
            image::run(&image::Options { binary, name, profile, target, out })
        }
        Chore::Release { version, build, target, dry_run } => {
            release::run(&release::Options { version, build, target, dry_run })
        }
        Chore::CheckLayers => layers::check_workspace(),
        Chore::CheckDeny => deny::check_workspace(),
        Chore::CheckAdvisories => deny::check_advisories(),
        Chore::CheckCalls { folder } => shell::run(&mut calls::check(&folder)),
        Chore::Fuzz { name, seconds } => fuzz::run(name.as_deref(), seconds),
        Chore::Soak { names, times, busy } => {
            let cores = || std::thread::available_parallelism().map_or(1, usize::from);
            soak::run(&names, times, busy.unwrap_or_else(cores))
        }
        Chore::Codegen { name } => fresh::write(&shell::root(), name.as_deref()),
        Chore::Worlds { fresh, seed } => worlds::run(fresh, seed),
        Chore::Chaos { seeds, from, trace, all } => {
            let mut cargo = shell::cargo(&CHAOS);
            cargo.args(["--seeds", &seeds.to_string(), "--from", &from.to_string()]);
            cargo.args(trace.then_some("--trace")).args(all.then_some("--all"));
            shell::run(&mut cargo)
        }
        Chore::Quality => shell::run(&mut shell::cargo(&QUALITY)),
        Chore::Bench { name, args } => bench::run(name.as_deref(), &args),
    };
    code(done.map(|()| ExitCode::SUCCESS))
}

fn code(done: Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn workflows_call_chores_that_are_there_and_pin_what_they_use() {
        let mut chores = Vec::new();
        for file in std::fs::read_dir(shell::root().join(".github/workflows")).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let said = |line: &&str| !["#", "name:"].iter().any(|start| line.trim_start().starts_with(start));
            for line in text.lines().filter(said) {
                if let Some((_, used)) = line.split_once("uses: ") {
                    let pin = used.split(['@', ' ']).nth(1).unwrap_or_default();
                    let whole = pin.len() == 40 && pin.bytes().all(|byte| byte.is_ascii_hexdigit());
                    assert!(whole, "{}: {used}: expected a commit", path.display());
                }
                if let Some((_, chore)) = line.split_once("cargo xtask ") {
                    let words =
                        chore.replace("\"${GITHUB_REF_NAME#v}\"", "1.2.3").replace("\"$TARGET\"", "yaml");
                    let parsed =
                        Cli::try_parse_from(std::iter::once("xtask").chain(words.split_whitespace()));
                    assert!(parsed.is_ok(), "{}: {chore}", path.display());
                    chores.push(words);
                }
            }
        }
        for chore in ["release 1.2.3 --build", "check-advisories", "fuzz yaml --seconds 1800"] {
            assert!(chores.iter().any(|found| found == chore), "{chore}: {chores:?}");
        }
    }

    #[test]
    fn what_mutants_are_left_out_is_still_there_and_told() {
        let root = shell::root();
        let text = std::fs::read_to_string(root.join(".cargo/mutants.toml")).unwrap();
        let page = std::fs::read_to_string(root.join("docs/testing.md")).unwrap();
        let left: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix('\'')).collect();
        assert!(!left.is_empty());
        for pattern in left {
            // `FILE:.* what in TYPE::FUNCTION$',`
            let file = pattern.split_once(":.* ").unwrap().0.replace('\\', "");
            let function = pattern.rsplit_once("::").unwrap().1.trim_end_matches("$',");
            let code = std::fs::read_to_string(root.join(&file)).unwrap();
            assert!(code.contains(&format!("fn {function}")), "{function} is not in {file}");
            let short = file.split_once("/src/").unwrap().1;
            assert!(page.contains(&format!("| `{short}`, ")), "{short} is not explained");
        }
    }

    #[test]
    fn arguments_after_two_dashes_belong_to_up() {
        let cli = Cli::try_parse_from(["xtask", "up", "--", "--nodes", "20", "--for", "30s"]).unwrap();
        let Chore::Up { args } = cli.command else { panic!("not up") };
        assert_eq!(args, ["--nodes", "20", "--for", "30s"]);
    }
}

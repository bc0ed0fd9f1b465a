//! How is the image made that a cluster runs?
//!
//! One static program and nothing else: no shell, no package, no file that could be written. It is linked to musl, whose target
//! rustup has; without rustup, to the C library of this machine, which then comes along.

use crate::shell;
use anyhow::{Context as _, Result, bail};
use loadline_testkit::image::{Image, architecture_of};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is asked for.
pub struct Options {
    /// A program that is there already, instead of one that is built.
    pub binary: Option<PathBuf>,
    /// What the image is called, with a tag.
    pub name: String,
    /// Cargo's profile.
    pub profile: String,
    /// What it is built for, as Rust calls it; what this machine is, if nothing is said.
    pub target: Option<String>,
    pub out: PathBuf,
}

/// The name as containerd has it, which leaves nothing out.
pub fn full_name(name: &str) -> String {
    match name.split('/').collect::<Vec<_>>()[..] {
        [_] => format!("docker.io/library/{name}"),
        [first, ..] if first.contains(['.', ':']) || first == "localhost" => name.to_owned(),
        _ => format!("docker.io/{name}"),
    }
}

pub fn run(options: &Options) -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("an image holds a program for Linux: run this there, or use the Dockerfile");
    }
    let built;
    let program = if let Some(program) = &options.binary {
        program
    } else {
        built = build(&options.profile, options.target.as_deref())?;
        &built
    };
    // A program is what it is called by in the image.
    let mut image = Image::of_program(program, &full_name(&options.name))
        .with_context(|| format!("cannot read {}", program.display()))?;
    image.compressed = true;
    if let Some(target) = &options.target {
        architecture_of(target).clone_into(&mut image.architecture);
    }
    if let Some(commit) = commit() {
        image.labels.insert("org.opencontainers.image.revision".to_owned(), commit);
    }
    image.labels.insert("org.opencontainers.image.licenses".to_owned(), "Apache-2.0".to_owned());
    image.labels.insert("org.opencontainers.image.title".to_owned(), "loadline".to_owned());
    let linked = image.files.len() - 1;
    let (archive, digest) = image.archive().context("cannot make the archive")?;
    if let Some(folder) = options.out.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(&options.out, &archive).with_context(|| format!("cannot write {}", options.out.display()))?;
    let how = if linked == 0 { "static".to_owned() } else { format!("with {linked} shared libraries") };
    let size = archive.len() / 100_000;
    eprintln!("{} ({}.{} MB, {how})", options.out.display(), size / 10, size % 10);
    eprintln!("load it: ctr --namespace k8s.io images import {}", options.out.display());
    println!("{}@{digest}", image.name);
    Ok(())
}

/// The commit, marked if there is more than that; none outside of a clone.
pub fn commit() -> Option<String> {
    let git = |args: &[&str]| -> Option<String> {
        let output = Command::new("git").args(args).current_dir(shell::root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}-changed") })
}

/// What a program for an image is built for, unless somebody says something else.
pub fn usual_target() -> String {
    format!("{}-unknown-linux-musl", env::consts::ARCH)
}

/// Builds the program; gives its place. For another architecture than this machine's, a compiler and a linker for it have to be
/// named, as Cargo and the `cc` crate want them: `CC_aarch64_unknown_linux_musl`, `CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER`.
pub fn build(profile: &str, target: Option<&str>) -> Result<PathBuf> {
    let musl = target.map_or_else(usual_target, str::to_owned);
    let foreign = musl.split('-').next() != Some(env::consts::ARCH);
    let missing = if foreign { missing_tools(&musl, |name| env::var_os(name).is_some()) } else { Vec::new() };
    if !missing.is_empty() {
        bail!(
            "{musl} is not what this machine is: expected a compiler and a linker for it in {}",
            missing.join(" and ")
        );
    }
    let mut cargo = shell::cargo(&[
        "build",
        "--locked",
        "--package",
        "loadline",
        "--bin",
        "loadline",
        "--profile",
        profile,
    ]);
    if let Some(commit) = commit() {
        cargo.env("LOADLINE_COMMIT", commit);
    }
    let has_target =
        Command::new("rustup").args(["target", "add", &musl]).current_dir(shell::root()).output();
    let target = has_target.is_ok_and(|added| added.status.success()).then_some(musl.clone());
    if let Some(target) = &target {
        cargo.args(["--target", target]);
        let key = target.replace('-', "_");
        // The few C functions of ours need no C library, so any compiler will do.
        let compiler = format!("CC_{key}");
        if env::var_os(&compiler).is_none() {
            cargo.env(compiler, "cc");
        }
        // Where it was built is no part of what it is.
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home =
            home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"))).unwrap_or_default();
        let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
        let flags = [remap(&home, "/cargo"), remap(&shell::root(), "/loadline")].join(" ");
        cargo.env(format!("CARGO_TARGET_{}_RUSTFLAGS", key.to_uppercase()), flags);
    } else if foreign {
        bail!("rustup cannot get {musl}, and this machine is none");
    } else {
        eprintln!("rustup cannot get {musl}: the image gets this machine's C library");
    }
    shell::run(&mut cargo)?;
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| shell::root().join("target"), PathBuf::from);
    let folder = target.map_or_else(|| folder.clone(), |target| folder.join(target));
    Ok(folder.join(if profile == "dev" { "debug" } else { profile }).join("loadline"))
}

/// The variables that say how to build for another architecture, and that nobody has set.
fn missing_tools(target: &str, is_set: impl Fn(&str) -> bool) -> Vec<String> {
    let key = target.replace('-', "_");
    let names = [format!("CC_{key}"), format!("CARGO_TARGET_{}_LINKER", key.to_uppercase())];
    names.into_iter().filter(|name| !is_set(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_architecture_wants_a_compiler_and_a_linker_of_its_own() {
        let target = "aarch64-unknown-linux-musl";
        let (cc, linker) =
            ("CC_aarch64_unknown_linux_musl", "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER");
        assert_eq!(missing_tools(target, |_| false), [cc, linker]);
        assert_eq!(missing_tools(target, |name| name == cc), [linker]);
        assert_eq!(missing_tools(target, |_| true), [""; 0]);
    }

    #[test]
    fn names_leave_nothing_out() {
        for (name, full) in [
            ("loadline:1", "docker.io/library/loadline:1"),
            ("me/loadline:1", "docker.io/me/loadline:1"),
            ("ghcr.io/me/loadline:1", "ghcr.io/me/loadline:1"),
            ("localhost:5000/loadline:1", "localhost:5000/loadline:1"),
        ] {
            assert_eq!(full_name(name), full);
        }
    }
}

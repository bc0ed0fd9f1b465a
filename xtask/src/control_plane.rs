//! How do the real parts get onto this machine?
//!
//! The rows of [`parts::COMPONENTS`](loadline_testkit::parts::COMPONENTS) that are neither in `KUBEBUILDER_ASSETS` nor in the cache are built with Go, one
//! after the other so that progress can be told. A program appears under its name only when it is whole, so an
//! interrupted build leaves nothing that looks finished.

use crate::shell::{self, spoken};
use anyhow::{Context as _, Result, anyhow, bail};
use loadline_testkit::parts::{Component, Group, Missing, Module, PACKAGES, Places};
use std::env;
use std::fs;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Prints the folders that hold the parts of these groups, ready for a `PATH`, or fails if some are missing.
pub fn print(groups: &[Group]) -> Result<()> {
    let places = Places::from_env();
    let missing = Missing::rows(&places.missing(groups));
    if !missing.names.is_empty() {
        bail!("not there: {} (get them: {})", missing.names.join(", "), missing.command());
    }
    println!("{}", env::join_paths(places.folders(groups)).context("a folder's name has a colon")?.display());
    Ok(())
}

/// Builds what is missing of these groups.
pub fn ensure(groups: &[Group]) -> Result<()> {
    let places = Places::from_env();
    let missing = places.missing(groups);
    if missing.is_empty() {
        return Ok(());
    }
    for rows in missing.chunk_by(|a, b| a.module.folder == b.module.folder) {
        check_go(rows[0].module)?;
    }
    let started = Instant::now();
    for (index, row) in missing.iter().enumerate() {
        let title = format!("[{}/{}] {} {}", index + 1, missing.len(), row.name, row.version());
        build(row, &places, &title)?;
    }
    eprintln!("built {} in {}", counted(missing.len(), "program"), spoken(started.elapsed()));
    Ok(())
}

/// Fetches and unpacks the packages of these groups that are missing.
pub fn unpack(groups: &[Group]) -> Result<()> {
    let places = Places::from_env();
    let wanted = || PACKAGES.iter().filter(|package| groups.contains(&package.group));
    for package in wanted().filter(|package| package.find(&places).is_none()) {
        let folder =
            package.folder(&places).context("no folder for the parts: set HOME or XDG_CACHE_HOME")?;
        let fetched = folder.with_extension(format!("{}", std::process::id()));
        fs::create_dir_all(&fetched).with_context(|| format!("cannot make {}", fetched.display()))?;
        let remedy = format!(
            "{} comes as a package of Debian, with apt-get and dpkg-deb; elsewhere install it so that it is on the PATH",
            package.name
        );
        eprintln!("unpacking {}", package.package);
        let mut lists = Command::new("apt-get");
        lists.arg("update").stdout(Stdio::null()).stderr(Stdio::null());
        let mut download = Command::new("apt-get");
        download.args(["-o", "APT::Sandbox::User=root", "download", package.package]).current_dir(&fetched);
        // A machine may have no lists yet; one without the right to get them may have old ones.
        if !run(&mut download).unwrap_or(false) {
            let _ = lists.status();
            if !run(&mut download).context(remedy.clone())? {
                bail!("apt-get cannot download {}; {remedy}", package.package);
            }
        }
        for entry in fs::read_dir(&fetched)? {
            let mut unpack = Command::new("dpkg-deb");
            unpack.arg("-x").arg(entry?.path()).arg(&folder);
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            if !run(&mut unpack).context(remedy.clone())? {
                bail!("dpkg-deb cannot unpack {}", package.package);
            }
        }
        fs::remove_dir_all(&fetched).with_context(|| format!("cannot remove {}", fetched.display()))?;
    }
    let missing: Vec<_> = wanted().filter(|package| package.find(&places).is_none()).collect();
    if missing.is_empty() { Ok(()) } else { bail!("{}", Missing::packages(&missing)) }
}

fn run(command: &mut Command) -> Result<bool> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    Ok(status.with_context(|| format!("cannot start {}", command.get_program().display()))?.success())
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn module_folder(module: &Module) -> std::path::PathBuf {
    shell::root().join("xtask/control-plane").join(module.folder)
}

/// Fails in words if Go is absent or too old, before minutes are spent.
fn check_go(module: &Module) -> Result<()> {
    let remedy = format!(
        "the real parts are built from source and need Go {} or newer: install it from https://go.dev/doc/install or \
         your distribution, or set KUBEBUILDER_ASSETS to a folder that holds them",
        module.go()
    );
    // Asked inside the module: a Go that fetches the toolchain a module wants answers with that one.
    let mut go = Command::new("go");
    go.args(["env", "GOVERSION"]).current_dir(module_folder(module)).env("GOWORK", "off");
    let output = match go.output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("Go is not on the PATH; {remedy}"),
        Err(error) => return Err(error).context("cannot start go"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("Go cannot be used: {}; {remedy}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let found =
        go_version(&said).ok_or_else(|| anyhow!("cannot read Go's version from {:?}", said.trim()))?;
    let wanted = go_version(module.go()).ok_or_else(|| anyhow!("cannot read Go's version from go.mod"))?;
    if found < wanted {
        bail!("Go {} is too old; {remedy}", said.trim().trim_start_matches("go"));
    }
    Ok(())
}

/// Major and minor from `go1.26.8`, `1.26.0`, `go1.27rc1` or `devel go1.28-abcdef`.
fn go_version(text: &str) -> Option<(u32, u32)> {
    let word = text.split_whitespace().map(|word| word.trim_start_matches("go")).find(|word| {
        let starts_with_digit = word.starts_with(|first: char| first.is_ascii_digit());
        starts_with_digit && word.contains('.')
    })?;
    let (major, rest) = word.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn build(row: &Component, places: &Places, title: &str) -> Result<()> {
    let folder = places.built(row.module).context("no folder for the parts: set HOME or XDG_CACHE_HOME")?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // Of this process alone: two builds at the same time do not disturb each other.
    let unfinished = folder.join(format!(".{}.{}", row.name, std::process::id()));
    let built = compile(row, &unfinished, title);
    let done = built.and_then(|()| {
        fs::rename(&unfinished, folder.join(row.name)).with_context(|| format!("cannot place {}", row.name))
    });
    if done.is_err() {
        // Usually there is none; the reason of the failure matters more than this.
        let _ = fs::remove_file(&unfinished);
    }
    done
}

fn compile(row: &Component, output: &Path, title: &str) -> Result<()> {
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-trimpath", "-ldflags", &row.module.ldflags()]);
    if !row.module.tags.is_empty() {
        go.args(["-tags", &row.module.tags.join(",")]);
    }
    go.arg("-o").arg(output).arg(row.package).current_dir(module_folder(row.module));
    go.env("CGO_ENABLED", "0").env("GOWORK", "off");
    go.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = go.spawn().context("cannot start go")?;

    let (sender, lines) = mpsc::channel();
    if let Some(stderr) = child.stderr.take() {
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // Nobody listens only after a failure that is reported already.
                let _ = sender.send(line);
            }
        });
    } else {
        drop(sender);
    }
    let mut progress = Progress::new(title);
    let mut said: Vec<String> = Vec::new();
    loop {
        match lines.recv_timeout(progress.period) {
            Ok(line) => said.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        progress.tell(said.last().map_or("", |line| line));
    }
    let status = child.wait().context("cannot wait for go")?;
    progress.end();
    if !status.success() {
        let news: Vec<_> = said.iter().filter(|line| !line.starts_with("go: downloading")).cloned().collect();
        bail!("cannot build {}: go build {} ended with {status}\n{}", row.name, row.package, news.join("\n"));
    }
    Ok(())
}

/// One line per program: redrawn in place on a terminal, repeated now and then elsewhere.
struct Progress<'a> {
    title: &'a str,
    started: Instant,
    told: Option<Instant>,
    period: Duration,
    terminal: bool,
}

impl<'a> Progress<'a> {
    fn new(title: &'a str) -> Self {
        let terminal = io::stderr().is_terminal();
        let period = Duration::from_secs(if terminal { 1 } else { 10 });
        let mut progress = Self { title, started: Instant::now(), told: None, period, terminal };
        progress.tell("");
        progress
    }

    fn tell(&mut self, detail: &str) {
        if self.told.is_some_and(|told| told.elapsed() < self.period) {
            return;
        }
        self.told = Some(Instant::now());
        let mut line = format!("{} … {}", self.title, spoken(self.started.elapsed()));
        if !detail.is_empty() {
            line.push_str("  ");
            line.push_str(detail);
        }
        self.write(&line, !self.terminal);
    }

    fn end(&self) {
        self.write(&format!("{} took {}", self.title, spoken(self.started.elapsed())), true);
    }

    fn write(&self, line: &str, ends: bool) {
        // Longer lines would wrap, and a wrapped line cannot be redrawn.
        let line: String = line.chars().take(100).collect();
        let start = if self.terminal { "\r\x1b[K" } else { "" };
        let end = if ends { "\n" } else { "" };
        // Progress that cannot be shown is no reason to stop.
        let _ = write!(io::stderr(), "{start}{line}{end}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_are_read_in_every_form_go_prints_them() {
        let cases = [
            ("go1.26.8\n", Some((1, 26))),
            ("1.26.0", Some((1, 26))),
            ("go1.27rc1", Some((1, 27))),
            ("devel go1.28-abcdef Mon Jan 1", Some((1, 28))),
            ("go1.9", Some((1, 9))),
            ("gopher", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(go_version(text), expected, "{text:?}");
        }
        assert!(go_version("go1.9") < go_version("go1.26"), "numbers, not text");
    }

    #[test]
    fn every_module_has_its_folder() {
        for row in loadline_testkit::parts::COMPONENTS {
            assert!(module_folder(row.module).join("go.mod").is_file(), "{}", row.name);
        }
    }
}

//! `kubectl loadline …`: how is the program spoken to as a plugin of kubectl?
//!
//! kubectl runs `kubectl-loadline` for `kubectl loadline`, and `kubectl_complete-loadline` to complete it; both are links to the
//! one program. As a plugin it speaks of itself as `kubectl loadline`, and finds the cluster where kubectl does.

use clap::Command;
use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// As what the program was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    Loadline,
    /// By kubectl, to do something.
    Plugin,
    /// By kubectl, to say how a line could go on.
    Completion,
}

impl Called {
    /// By the name of the program, which may be a path.
    pub fn by(program: &OsStr) -> Self {
        match Path::new(program).file_stem().and_then(OsStr::to_str) {
            Some("kubectl-loadline") => Self::Plugin,
            Some("kubectl_complete-loadline") => Self::Completion,
            _ => Self::Loadline,
        }
    }
}

/// The same command line, as part of kubectl's. Usage lines take the name of the whole.
pub fn of_kubectl(command: Command) -> Command {
    renamed(command).bin_name("kubectl loadline")
}

/// The kubeconfig kubectl reads: those of `$KUBECONFIG` that are there, all of them, else the one in the home folder.
pub fn kubeconfig() -> Option<PathBuf> {
    let named = env::var_os("KUBECONFIG").filter(|files| !files.is_empty());
    let files = match &named {
        Some(files) => env::split_paths(files).collect(),
        None => vec![env::home_dir()?.join(".kube/config")],
    };
    there(files)
}

/// Of these files those that are there, named as in `$KUBECONFIG`.
fn there(files: Vec<PathBuf>) -> Option<PathBuf> {
    let files: Vec<PathBuf> = files.into_iter().filter(|file| file.is_file()).collect();
    env::join_paths(&files).ok().filter(|all| !all.is_empty()).map(PathBuf::from)
}

/// Texts that say how to call it say how to call it here.
fn renamed(mut command: Command) -> Command {
    if let Some(text) = command.get_long_about().map(|text| said(&text.to_string())) {
        command = command.long_about(text);
    }
    if let Some(text) = command.get_after_help().map(|text| said(&text.to_string())) {
        command = command.after_help(text);
    }
    command.mut_subcommands(renamed)
}

/// A text in which the program is called: at the beginning of a line of examples, or between backquotes.
pub fn said(text: &str) -> String {
    let text = text.replace("`loadline ", "`kubectl loadline ");
    let mut out = String::with_capacity(text.len() + 100);
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("  loadline ") {
            Some(rest) => drop(write!(out, "  kubectl loadline {rest}")),
            None => out.push_str(line),
        }
    }
    out
}

/// How the line could go on, as kubectl reads it: one candidate in a line with what it is, and what the shell may add.
pub fn complete(command: &Command, words: &[String]) -> String {
    /// Nothing but these makes sense.
    const ONLY_THESE: &str = ":4\n";
    /// A name of a file would do.
    const FILES: &str = ":0\n";
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut at = command;
    for word in before {
        if let Some(below) = at.find_subcommand(word) {
            at = below;
        }
    }
    let line = |name: &str, about: Option<String>| {
        let about = about.unwrap_or_default();
        format!("{name}\t{}\n", about.lines().next().unwrap_or_default())
    };
    let mut out = String::new();
    if last.starts_with('-') {
        for argument in at.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let name = argument.get_long().map(|long| format!("--{long}"));
            if let Some(name) = name.filter(|name| name.starts_with(last)) {
                out += &line(&name, argument.get_help().map(ToString::to_string));
            }
        }
        return out + ONLY_THESE;
    }
    for below in
        at.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name().starts_with(last))
    {
        out += &line(below.get_name(), below.get_about().map(ToString::to_string));
    }
    if out.is_empty() { FILES.to_owned() } else { out + ONLY_THESE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Loadline;
    use clap::CommandFactory as _;

    #[test]
    fn the_name_decides() {
        for (name, want) in [
            ("loadline", Called::Loadline),
            ("/usr/local/bin/kubectl-loadline", Called::Plugin),
            ("kubectl-loadline.exe", Called::Plugin),
            ("./kubectl_complete-loadline", Called::Completion),
            ("", Called::Loadline),
        ] {
            assert_eq!(Called::by(OsStr::new(name)), want, "{name}");
        }
    }

    #[test]
    fn all_kubeconfigs_that_are_there_count() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| folder.path().join(name));
        assert_eq!(there(vec![a.clone(), b.clone()]), None);
        for file in [&a, &c] {
            std::fs::write(file, "").unwrap();
        }
        let both = env::join_paths([&a, &c]).map(PathBuf::from).unwrap();
        assert_eq!(there(vec![a.clone(), b, c]), Some(both));
        assert_eq!(there(vec![a.clone()]), Some(a));
    }

    #[test]
    fn texts_say_how_to_call_it_through_kubectl() {
        let text = "Asks a running `loadline agent`:\n  loadline explain node\n      of a loadline agent\n";
        let want = "Asks a running `kubectl loadline agent`:\n  kubectl loadline explain node\n      of a loadline agent\n";
        assert_eq!(said(text), want);
        let mut command = of_kubectl(Loadline::command());
        command.build();
        let pod = command.find_subcommand_mut("explain").unwrap().find_subcommand_mut("pod").unwrap();
        let help = pod.render_long_help().to_string();
        assert!(help.contains("Usage: kubectl loadline explain pod"), "{help}");
        assert!(help.contains("\n  kubectl loadline explain pod default/web-1 --kubeconfig"), "{help}");
        assert!(!help.contains("\n  loadline "), "{help}");
    }

    #[test]
    fn a_line_goes_on_with_commands_flags_or_files() {
        let command = Loadline::command();
        let asked = |words: &[&str]| {
            complete(&command, &words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(asked(&["expl"]).lines().next().unwrap().split('\t').next(), Some("explain"));
        let below = asked(&["explain", ""]);
        for name in ["pod\t", "node\t", "placement\t", "binding\t"] {
            assert!(below.contains(name), "{name:?} in {below}");
        }
        assert!(below.ends_with(":4\n"));
        assert!(asked(&["explain", "pod", "--sch"]).starts_with("--scheduler\t"));
        assert_eq!(asked(&["explain", "pod", "default/"]), ":0\n");
        assert!(!asked(&[""]).contains("reference"), "what is hidden stays so");
    }
}

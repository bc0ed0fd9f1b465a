//! What can be said on the command line? Asked of the parser itself.

use super::cell;
use crate::args::Loadline;
use clap::{Arg, Command, CommandFactory as _};
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Commands and flags

What `loadline help COMMAND` says, on one page. `-v` (`--verbose`) and `--log-format text|json` go with every command. As a plugin of
kubectl (`ln -s loadline kubectl-loadline` somewhere on the `PATH`) all of it is called `kubectl loadline …`.
";

/// The page.
pub fn page() -> String {
    let mut command = Loadline::command();
    command.build();
    let mut page = INTRODUCTION.to_owned();
    for below in command.get_subcommands_mut().filter(|below| is_shown(below)) {
        describe(below, &mut page);
    }
    page
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn describe(command: &mut Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_default().to_owned();
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let _ = write!(page, "\n## `{name}`\n\n{}\n", about.unwrap_or_default().trim());
    if command.get_subcommands().any(is_shown) {
        command.get_subcommands_mut().filter(|below| is_shown(below)).for_each(|below| describe(below, page));
        return;
    }
    let usage = command.render_usage().to_string();
    let _ = write!(page, "\n```text\n{}\n```\n", usage.trim());
    let is_own = |argument: &&Arg| {
        !argument.is_hide_set()
            && !argument.is_global_set()
            && !["help", "version"].contains(&argument.get_id().as_str())
    };
    let mut heading = None;
    for argument in command.get_arguments().filter(is_own) {
        let under = argument.get_help_heading().unwrap_or("Flags");
        if heading != Some(under) {
            let _ = write!(page, "\n{under}:\n\n| flag | default | what |\n|---|---|---|\n");
            heading = Some(under);
        }
        let _ = writeln!(page, "{}", row(argument));
    }
    if let Some(more) = command.get_after_help() {
        let _ = write!(page, "\n```text\n{}\n```\n", more.to_string().trim());
    }
}

fn row(argument: &Arg) -> String {
    let values: Vec<String> =
        argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let takes = argument.get_action().takes_values();
    let value =
        if takes && !argument.is_positional() { format!(" {}", values.join(" ")) } else { String::new() };
    let name = match (argument.get_long(), argument.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long}{value}"),
        (Some(long), None) => format!("--{long}{value}"),
        (None, Some(short)) => format!("-{short}{value}"),
        (None, None) => values.join(" "),
    };
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    let choices: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| takes && !value.is_hide_set() && !["true", "false"].contains(&value.get_name()))
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let about = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let one_of = if choices.is_empty() { String::new() } else { format!(": {}", choices.join(", ")) };
    format!("| `{}` | {} | {}{one_of} |", name.replace('|', "\\|"), defaults.join(", "), cell(&about))
}

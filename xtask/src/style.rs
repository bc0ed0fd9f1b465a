//! Does all code look the same where rustfmt leaves a choice, and does each word mean one thing?
//!
//! Imports stand in one block, which rustfmt then sorts; a module with children is `name.rs` beside `name/`, never
//! `name/mod.rs` (but for what tests and benchmarks share, where Cargo would take the file for a test).

use crate::shell;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};

/// Checks every source file.
pub fn check_workspace() -> Result<()> {
    let mut problems = Vec::new();
    let root = shell::root();
    for part in ["crates", "xtask"] {
        for file in sources(&root.join(part))? {
            let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let name = file.strip_prefix(&root).unwrap_or(&file);
            problems.extend(check(name, &text));
        }
    }
    let glossary = root.join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&glossary).with_context(|| glossary.display().to_string())?;
    problems
        .extend(twice(&text).into_iter().map(|word| format!("ARCHITECTURE.md: {word:?} is explained twice")));
    let mut code = String::new();
    for file in sources(&root.join("crates"))? {
        code.push_str(&std::fs::read_to_string(&file).with_context(|| file.display().to_string())?);
    }
    for Step { file, functions } in steps(&text) {
        let Some((name, rest)) = file.split_once('/') else { continue };
        if !root.join("crates").join(name).join("src").join(rest).exists() {
            problems.push(format!("ARCHITECTURE.md: a walk names {file}, which does not exist"));
        }
        for function in functions.iter().filter(|name| !code.contains(&format!("fn {name}"))) {
            problems
                .push(format!("ARCHITECTURE.md: a walk names {function} in {file}, which does not exist"));
        }
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("generated") {
            out.extend(sources(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}

/// What is wrong with one file.
fn check(file: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let shared = file.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches");
    if file.ends_with("mod.rs") && !shared {
        problems.push(format!("{}: a module is NAME.rs beside NAME/", file.display()));
    }
    // Is the line within an import, or the last that was not empty the end of one?
    let (mut within, mut after, mut blank) = (false, false, false);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            blank = true;
            continue;
        }
        let starts = line.starts_with("use ");
        if starts && after && blank {
            problems.push(format!(
                "{}:{}: imports stand in one block, without empty lines",
                file.display(),
                index + 1
            ));
        }
        after = (within || starts) && line.ends_with(';');
        within = (within || starts) && !after;
        blank = false;
    }
    problems
}

/// Words of the glossary that have two meanings.
fn twice(architecture: &str) -> Vec<String> {
    let glossary = architecture.split("## Words").nth(1).unwrap_or_default();
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let mut words: Vec<&str> = rows.flat_map(|row| row.split(", ")).collect();
    words.sort_unstable();
    words.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_owned()).collect()
}

/// One row of a walk: a file below `crates`, without its `src`, and the functions it passes through.
#[derive(Debug, PartialEq)]
struct Step<'a> {
    file: &'a str,
    functions: Vec<&'a str>,
}

/// The rows of the walks.
fn steps(architecture: &str) -> Vec<Step<'_>> {
    let walks = architecture.split("### Four walks").nth(1).unwrap_or_default();
    let walks = walks.split("\n### ").next().unwrap_or_default();
    let step = |line| {
        let cells: Vec<&str> = str::split(line, '|').map(str::trim).collect();
        let [_, _, file, functions, _] = cells[..] else { return None };
        let quoted = |cell| str::split(cell, '`').skip(1).step_by(2);
        let functions = quoted(functions).map(|path| path.rsplit("::").next().unwrap_or(path)).collect();
        Some(Step { file: quoted(file).next()?, functions })
    };
    walks.lines().filter_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_explained_twice_is_told() {
        let text = "## Words\n\n| word | means |\n|---|---|\n| a, b | x |\n| c | y |\n| b | z |\n";
        assert_eq!(twice(text), ["b"]);
    }

    #[test]
    fn a_walk_names_files_and_functions() {
        let text = "### Four walks\n\n| step | file | function |\n|---|---|---|\n\
                    | decided | `core/cycle.rs` | `Cluster::decide` → `reserve` |\n\n### Else\n| a | `b` | `c` |\n";
        assert_eq!(steps(text), [Step { file: "core/cycle.rs", functions: vec!["decide", "reserve"] }]);
    }

    #[test]
    fn imports_in_two_blocks_and_old_module_files_are_told() {
        for (file, text, problems, why) in [
            ("a/src/b.rs", "use x::a;\nuse y::{\n    b,\n};\n\nfn f() {}\n", 0, "one block"),
            ("a/src/b.rs", "use x::a;\n\nuse y::b;\n", 1, "two blocks"),
            ("a/src/b.rs", "use y::{\n    b,\n};\n\nuse x::a;\n", 1, "after one of several lines"),
            ("a/src/b.rs", "pub use x::a;\n\nuse y::b;\n", 0, "what is passed on stands apart"),
            ("a/src/b.rs", "use x::a;\n\nfn f() {\n    use y::b;\n}\n", 0, "another scope"),
            ("a/src/b/mod.rs", "", 1, "an old module file"),
            ("a/tests/b/mod.rs", "", 0, "shared by tests"),
        ] {
            assert_eq!(check(Path::new(file), text).len(), problems, "{why}");
        }
    }
}

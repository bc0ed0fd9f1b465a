//! What is documented happens, word for word: the README, the guide, the scenarios and refusals. See `what_if/`.

#[test]
fn documents_show_what_happens() {
    // Paths in the documents start at the top of the repository.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    let cases = trycmd::TestCases::new();
    cases.case("crates/cli/tests/what_if/*.trycmd");
    cases.case("docs/guide/what-if.md");
    cases.case("docs/guide/place.md");
    cases.case("docs/guide/estimate.md");
    cases.case("docs/guide/divide.md");
    cases.case("docs/guide/protect.md");
    cases.case("docs/guide/rebalance.md");
    cases.case("docs/guide/replay.md");
    cases.case("docs/guide/doctor.md");
    cases.case("docs/guide/migrate-from-crane.md");
    cases.case("docs/understand/ideas.md");
    cases.case("docs/errors.md");
    cases.case("README.md");
}

/// Commands in fenced blocks that are not run above, because they go on for long or need a cluster: each is one line, or
/// several that end with a backslash.
fn commands(guide: &str) -> Vec<String> {
    let (mut out, mut fence, mut open): (Vec<String>, Option<&str>, bool) = (Vec::new(), None, false);
    for line in guide.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(kind) };
            open = false;
            continue;
        }
        if !matches!(fence, Some("sh" | "text" | "")) {
            continue;
        }
        let line = line.trim();
        if open {
            let last = out.last_mut().expect("it was begun");
            last.push(' ');
            last.push_str(line.trim_end_matches('\\'));
        } else if line.starts_with("loadline ") {
            out.push(line.trim_end_matches('\\').to_owned());
        } else {
            continue;
        }
        open = line.ends_with('\\');
    }
    out
}

#[test]
fn every_command_of_the_guides_is_one_the_program_takes() {
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_loadline"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut checked = 0;
    for file in std::fs::read_dir(format!("{top}/docs/guide")).unwrap() {
        let file = file.unwrap().path();
        for command in commands(&std::fs::read_to_string(&file).unwrap()) {
            // What follows is another program's, or a remark.
            let own = [" # ", " | ", " > ", " & ", " && ", "; "]
                .iter()
                .fold(command.as_str(), |line, end| line.split_once(end).map_or(line, |(own, _)| own));
            let own = own.trim_end_matches(" &");
            // With a flag the program does not know it is refused before it comes to this one.
            let ran = std::process::Command::new("sh")
                .args(["-c", &format!("{own} --help")])
                .env("PATH", &path)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{}: {command}\n{said}", file.display());
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked} commands only");
}

#[test]
fn whoever_evicts_asks_no_prometheus() {
    let refused = |component: &str| {
        let words = [component, "--prometheus-address", "http://prometheus:9090"];
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_loadline")).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        said.contains("unexpected argument '--prometheus-address'")
    };
    for component in ["agent", "rebalance", "scheduler"] {
        assert!(refused(component), "{component}");
    }
    assert!(!refused("doctor"), "who asks one knows the flag");
}

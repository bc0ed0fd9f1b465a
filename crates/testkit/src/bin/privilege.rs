//! Do the roles we ship grant what components were seen to use, and nothing else? `cargo xtask check-calls FOLDER`.

use loadline_testkit::privilege;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("expected a folder of records (LOADLINE_RECORD_CALLS)")?;
    let verdict = privilege::check(Path::new(&folder)).map_err(|problem| problem.to_string())?;
    for line in &verdict.wrong {
        eprintln!("{line}");
    }
    let (components, rights) = verdict.compared;
    eprintln!(
        "{components} components, {rights} rights granted and used, {} differences",
        verdict.wrong.len()
    );
    if verdict.wrong.is_empty() {
        return Ok(());
    }
    Err("roles differ from what components do: mend deploy/chart/templates/_rules.tpl and the files beside it, or give a reason in \
         deploy/privilege.txt"
        .into())
}

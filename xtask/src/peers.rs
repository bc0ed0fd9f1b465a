//! How do we stand beside every peer? `cargo xtask bench peers`: all of them on one machine, in turns, several rounds.
//!
//! A round runs the benchmarks with peers once each, so that the sides of a comparison are minutes apart and share the
//! weather of the machine. A ratio is of one round; what is told is the geometric mean of rounds with the lowest and the
//! highest. The table goes to the README and to `docs/benchmarks.md`, between the lines that mark it, with the rows we lose.

use crate::{bench, shell};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Where benchmarks leave what they measured.
const ROWS: &str = "LOADLINE_BENCH_ROWS";
const USUAL_ROUNDS: usize = 3;
/// More than anybody waits for.
const MOST_ROUNDS: usize = 1000;
/// What is run in a round: benchmarks with peers, and what they are given.
const PROGRAMS: [(&str, &[&str]); 4] =
    [("scheduler", &[]), ("fleet", &["placements"]), ("fleet", &["bindings"]), ("estimator", &[])];
/// Pages with the table; the first has the rows that matter most, those we lose among them.
const PAGES: [(&str, Rows); 2] = [("README.md", Rows::Headlines), ("docs/benchmarks.md", Rows::All)];
const BEGIN: &str = "<!-- peers: made by `cargo xtask bench peers` -->";
const END: &str = "<!-- /peers -->";

/// Which figure of a row is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    /// More is better.
    Rate,
    /// Less is better.
    Megabytes,
}

/// Which rows a page shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    Headlines,
    All,
}

struct Comparison {
    /// Of those everybody should see.
    headline: bool,
    /// What a reader sees.
    what: &'static str,
    beside: &'static str,
    /// How rows call it.
    bench: &'static str,
    ours: &'static str,
    theirs: &'static str,
    figure: Figure,
    /// At least this ratio for rates, at most for memory.
    wanted: Option<f64>,
}

const fn rate(
    what: &'static str,
    beside: &'static str,
    [bench, ours, theirs]: [&'static str; 3],
    wanted: Option<f64>,
) -> Comparison {
    Comparison { headline: false, what, beside, bench, ours, theirs, figure: Figure::Rate, wanted }
}

const fn memory(
    what: &'static str,
    beside: &'static str,
    [bench, ours, theirs]: [&'static str; 3],
    wanted: Option<f64>,
) -> Comparison {
    Comparison { headline: false, what, beside, bench, ours, theirs, figure: Figure::Megabytes, wanted }
}

impl Comparison {
    const fn headline(mut self) -> Self {
        self.headline = true;
        self
    }
}

const KUBE: &str = "kube-scheduler";
const EXTENDED: &str = "kube-scheduler+loadline-extender";
const OCM: &str = "OCM's placement controller";
const FLEET_OCM: &str = "loadline fleet --api ocm";
const FLEET_KARMADA: &str = "loadline fleet --api karmada";
const BEST: &str = "karmada-scheduler, unlimited";
const ESTIMATOR: &str = "karmada 1.18.2";

const PLAIN: &str = "estimator, plain, 8 at once";
const VARIED: &str = "estimator, varied, 8 at once";

const COMPARISONS: [Comparison; 20] = [
    rate("`loadline scheduler`: pods bound/s", "kube-scheduler", ["scheduler", "loadline", KUBE], Some(4.0))
        .headline(),
    rate(
        "`loadline scheduler`: pods bound/s",
        "a client that only binds",
        ["scheduler", "loadline", "bind-only"],
        Some(0.9),
    )
    .headline(),
    rate(
        "`loadline scheduler --requests-only`",
        "kube-scheduler",
        ["scheduler", "loadline-requests", KUBE],
        Some(4.0),
    ),
    rate(
        "`loadline scheduler --requests-only`",
        "a client that only binds",
        ["scheduler", "loadline-requests", "bind-only"],
        Some(0.9),
    ),
    memory("`loadline scheduler`: memory", "kube-scheduler", ["scheduler", "loadline", KUBE], Some(0.5))
        .headline(),
    rate(
        "our extender: pods bound/s",
        "an extender that does nothing",
        ["scheduler", EXTENDED, "kube-scheduler+no-op-extender"],
        Some(0.97),
    )
    .headline(),
    rate(
        "our extender: pods bound/s",
        "kube-scheduler without extenders",
        ["scheduler", EXTENDED, KUBE],
        None,
    )
    .headline(),
    rate(
        "our extender, filter alone",
        "filter and prioritize",
        ["scheduler", "kube-scheduler+loadline-filter", EXTENDED],
        Some(1.0),
    ),
    rate(
        "our extender, filter alone",
        "kube-scheduler without extenders",
        ["scheduler", "kube-scheduler+loadline-filter", KUBE],
        None,
    )
    .headline(),
    rate(
        "our taints on nodes",
        "our extender",
        ["scheduler", "kube-scheduler+loadline-taints", EXTENDED],
        Some(1.0),
    ),
    rate("`fleet --api ocm`: placements/s", "OCM's controller", ["placements", FLEET_OCM, OCM], Some(6.0))
        .headline(),
    rate(
        "`fleet --api ocm`: placements/s",
        "a client that only writes",
        ["placements", FLEET_OCM, "only writes"],
        Some(0.9),
    )
    .headline(),
    memory("`fleet --api ocm`: memory", "OCM's controller", ["placements", FLEET_OCM, OCM], None),
    rate(
        "`fleet --api karmada`: bindings/s",
        "karmada-scheduler",
        ["bindings", FLEET_KARMADA, "karmada-scheduler"],
        Some(10.0),
    )
    .headline(),
    rate(
        "`fleet --api karmada`: bindings/s",
        "karmada-scheduler, not held back",
        ["bindings", FLEET_KARMADA, BEST],
        Some(3.0),
    )
    .headline(),
    rate(
        "`fleet --api karmada`: bindings/s",
        "a client that only writes",
        ["bindings", FLEET_KARMADA, "only writes"],
        Some(0.85),
    ),
    memory("`fleet --api karmada`: memory", "karmada-scheduler", ["bindings", FLEET_KARMADA, BEST], None)
        .headline(),
    rate(
        "`loadline estimator`: answers/s, the same question",
        "Karmada's estimator",
        [PLAIN, "loadline", ESTIMATOR],
        Some(100.0),
    )
    .headline(),
    rate(
        "`loadline estimator`: answers/s, another question each time",
        "Karmada's estimator",
        [VARIED, "loadline", ESTIMATOR],
        None,
    )
    .headline(),
    memory("`loadline estimator`: memory", "Karmada's estimator", [PLAIN, "loadline", ESTIMATOR], None)
        .headline(),
];

/// What one round measured: `bench` and `side` to a row.
type Round = BTreeMap<(String, String), Value>;

/// What is asked for: so many rounds, and those of before as well, if they are wanted.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    more: usize,
    keep: bool,
}

fn asked(args: &[String]) -> Result<Asked> {
    let number = |word: &String| word.parse::<usize>().ok();
    match args {
        [] => Ok(Asked { more: USUAL_ROUNDS, keep: false }),
        [rounds] if number(rounds).is_some_and(|rounds| rounds > 0) => {
            Ok(Asked { more: number(rounds).unwrap_or_default(), keep: false })
        }
        [add, rounds] if add == "add" && number(rounds).is_some() => {
            Ok(Asked { more: number(rounds).unwrap_or_default(), keep: true })
        }
        other => bail!("{other:?} given, expected a number of rounds, or add and how many more"),
    }
}

/// Runs rounds and writes the table. They stay in `target/peers`, so that more can be added when the machine is quiet again.
pub fn run(args: &[String]) -> Result<()> {
    let Asked { more, keep } = asked(args)?;
    let folder = shell::root().join("target/peers");
    if !keep && folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let file = |round: usize| folder.join(format!("round-{round}.jsonl"));
    let before = (1..=MOST_ROUNDS).take_while(|round| file(*round).exists()).count();
    for round in before + 1..=before + more {
        // Only a whole round counts: half of one is nobody's.
        let part = folder.join("part.jsonl");
        if part.exists() {
            fs::remove_file(&part)?;
        }
        for (name, given) in PROGRAMS {
            eprintln!("round {round} of {}: {name} {}", before + more, given.join(" "));
            let given: Vec<String> = given.iter().map(|&word| word.to_owned()).collect();
            bench::one(name, &given, &[(ROWS, part.as_os_str())])?;
        }
        fs::rename(&part, file(round))?;
    }
    let files: Vec<PathBuf> = (1..=before + more).map(file).collect();
    let rounds = files.iter().map(|file| read(file)).collect::<Result<Vec<Round>>>()?;
    ensure!(!rounds.is_empty(), "there is no round in {}", folder.display());
    for (page, rows) in PAGES {
        let table = table(&rounds, rows)?;
        if rows == Rows::All {
            print!("{table}");
        }
        let path = shell::root().join(page);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        fs::write(&path, replaced(&text, &table).with_context(|| page.to_owned())?)?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<Round> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let rows = text.lines().map(|line| {
        let row: Value = serde_json::from_str(line)?;
        let word = |name: &str| row[name].as_str().map(str::to_owned).context("a row has a bench and a side");
        Ok(((word("bench")?, word("side")?), row))
    });
    rows.collect()
}

/// What one comparison came to.
struct Outcome {
    /// Geometric means of ours and theirs.
    ours: f64,
    theirs: f64,
    ratio: f64,
    lowest: f64,
    highest: f64,
}

fn outcome(comparison: &Comparison, rounds: &[Round]) -> Result<Outcome> {
    let key = match comparison.figure {
        Figure::Rate => "rate",
        Figure::Megabytes => "megabytes",
    };
    let figures = |side: &str| -> Result<Vec<f64>> {
        let of = |round: &Round| {
            let row = round.get(&(comparison.bench.to_owned(), side.to_owned()));
            let figure = row.and_then(|row| row[key].as_f64()).filter(|figure| *figure > 0.0);
            figure.with_context(|| format!("no {key} of {side} in {}", comparison.bench))
        };
        rounds.iter().map(of).collect()
    };
    let (ours, theirs) = (figures(comparison.ours)?, figures(comparison.theirs)?);
    let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
    ensure!(!ratios.is_empty(), "there is no round");
    Ok(Outcome {
        ours: mean(&ours),
        theirs: mean(&theirs),
        ratio: mean(&ratios),
        lowest: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        highest: ratios.iter().copied().fold(0.0, f64::max),
    })
}

/// Geometric: twice as good and half as good are as good.
fn mean(all: &[f64]) -> f64 {
    let count = u32::try_from(all.len()).map_or(f64::INFINITY, f64::from);
    (all.iter().map(|one| one.ln()).sum::<f64>() / count).exp()
}

fn table(rounds: &[Round], rows: Rows) -> Result<String> {
    // What was wanted says something to those who build it.
    let (heads, lines) = if rows == Rows::All { (" wanted | |", "---:|---|") } else { ("", "") };
    let mut text = format!(
        "| | beside | ours | theirs | ratio | rounds |{heads}\n|---|---|---:|---:|---:|---|{lines}\n"
    );
    for comparison in COMPARISONS.iter().filter(|one| rows == Rows::All || one.headline) {
        let found = outcome(comparison, rounds)?;
        let unit = if comparison.figure == Figure::Megabytes { " MB" } else { "" };
        let (wanted, verdict) = match (comparison.wanted, comparison.figure) {
            (None, _) => (String::new(), ""),
            (Some(wanted), Figure::Rate) => {
                (format!("≥ {wanted}"), if found.ratio >= wanted { "met" } else { "**not met**" })
            }
            (Some(wanted), Figure::Megabytes) => {
                (format!("≤ {wanted}"), if found.ratio <= wanted { "met" } else { "**not met**" })
            }
        };
        let judged = if rows == Rows::All { format!(" {wanted} | {verdict} |") } else { String::new() };
        writeln!(
            text,
            "| {} | {} | {}{unit} | {}{unit} | **{}** | {} to {} |{judged}",
            comparison.what,
            comparison.beside,
            short(found.ours),
            short(found.theirs),
            short(found.ratio),
            short(found.lowest),
            short(found.highest),
        )?;
    }
    let count = rounds.len();
    let rounds = if count == 1 { "1 round".to_owned() } else { format!("{count} rounds") };
    writeln!(text, "\n{rounds}: geometric mean, lowest and highest ratio.")?;
    Ok(text)
}

/// Two digits that matter, and whole numbers from ten on.
fn short(figure: f64) -> String {
    match figure {
        ..1.0 => format!("{figure:.2}"),
        ..10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
}

/// The page with the table between its marks.
fn replaced(page: &str, table: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("no line {END}"))?;
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn round(factor: f64) -> Round {
        let mut round = Round::new();
        for comparison in &COMPARISONS {
            for (side, times) in [(comparison.ours, factor), (comparison.theirs, 1.0)] {
                let key = (comparison.bench.to_owned(), side.to_owned());
                round.insert(key, json!({"rate": 100.0 * times, "megabytes": 40.0 * times}));
            }
        }
        round
    }

    #[test]
    fn ratios_are_of_one_round_and_their_mean_is_geometric() {
        let comparison = rate("ours", "theirs", ["bench", "a", "b"], Some(2.0));
        let rows = |ours: f64, theirs: f64| -> Round {
            [("a", ours), ("b", theirs)]
                .map(|(side, rate)| (("bench".to_owned(), side.to_owned()), json!({"rate": rate})))
                .into()
        };
        // 100 ÷ 50 = 2 and 400 ÷ 50 = 8: the geometric mean is 4, the arithmetic one would be 5.
        let found = outcome(&comparison, &[rows(100.0, 50.0), rows(400.0, 50.0)]).unwrap();
        assert!((found.ratio - 4.0).abs() < 1e-9, "{}", found.ratio);
        assert!((found.lowest - 2.0).abs() < 1e-9 && (found.highest - 8.0).abs() < 1e-9);
        // A machine that is slower in one round is slower for both sides: 2 and 2, not (100 + 40) ÷ (50 + 20).
        let found = outcome(&comparison, &[rows(100.0, 50.0), rows(40.0, 20.0)]).unwrap();
        assert!((found.ratio - 2.0).abs() < 1e-9 && (found.highest - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_side_that_measured_nothing_is_an_error_and_not_a_row() {
        let mut one = round(5.0);
        one.remove(&("placements".to_owned(), OCM.to_owned()));
        let error = table(&[one], Rows::All).unwrap_err().to_string();
        assert_eq!(error, format!("no rate of {OCM} in placements"));
    }

    #[test]
    fn what_is_wanted_and_not_reached_is_said() {
        let text = table(&[round(0.2)], Rows::All).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + COMPARISONS.len() + 2);
        assert_eq!(lines.last(), Some(&"1 round: geometric mean, lowest and highest ratio."));
        let top = table(&[round(0.2)], Rows::Headlines).unwrap();
        assert!(
            top.contains("| our extender: pods bound/s | kube-scheduler without extenders |"),
            "a row we lose"
        );
        assert!(top.lines().count() < lines.len());
        // An answer that was given before costs next to nothing: whoever sees that row sees what the others cost.
        for question in ["the same question", "another question each time"] {
            let row = format!("| `loadline estimator`: answers/s, {question} | Karmada's estimator |");
            assert!(top.contains(&row) && text.contains(&row), "{question}");
        }
        // A fifth of the rate is too slow; a fifth of the memory is what is wanted.
        assert_eq!(
            lines[2],
            "| `loadline scheduler`: pods bound/s | kube-scheduler | 20 | 100 | **0.20** | 0.20 to 0.20 | ≥ 4 | **not met** |"
        );
        assert_eq!(
            lines[6],
            "| `loadline scheduler`: memory | kube-scheduler | 8.0 MB | 40 MB | **0.20** | 0.20 to 0.20 | ≤ 0.5 | met |"
        );
    }

    #[test]
    fn rounds_are_asked_for_by_number_anew_or_added() {
        let asked = |words: &[&str]| asked(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(asked(&[]).unwrap(), Asked { more: 3, keep: false });
        assert_eq!(asked(&["1"]).unwrap(), Asked { more: 1, keep: false });
        assert_eq!(asked(&["add", "2"]).unwrap(), Asked { more: 2, keep: true });
        assert_eq!(asked(&["add", "0"]).unwrap(), Asked { more: 0, keep: true });
        for wrong in [&["0"][..], &["-1"], &["add"], &["add", "two"], &["1", "2", "3"]] {
            assert!(asked(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let new = replaced(&page, "| new |\n").unwrap();
        assert_eq!(new, format!("before\n{BEGIN}\n\n| new |\n\n{END}\nafter\n"));
        assert_eq!(replaced(&new, "| new |\n").unwrap(), new);
        assert!(replaced("no marks", "").is_err());
    }

    #[test]
    fn pages_have_the_marks() {
        for (page, _) in PAGES {
            let text = fs::read_to_string(shell::root().join(page)).unwrap();
            assert!(replaced(&text, "").is_ok(), "{page}");
        }
    }
}

//! Do the documents hold together? Links lead somewhere, diagrams are well-formed and show what components may do.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_services::node::files::LISTED;
use regex::Regex;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &Path, ending: &str, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, out);
        } else if path.extension().is_some_and(|found| found == ending) {
            out.push(path);
        }
    }
}

fn below(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    files(&Path::new(TOP).join(folder), ending, &mut out);
    out.sort();
    out
}

/// A page without what stands in fences and in backticks: links there are text.
fn prose(page: &str) -> String {
    let mut fenced = false;
    let lines = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    let text: Vec<&str> = lines.collect();
    Regex::new("`[^`]*`").unwrap().replace_all(&text.join("\n"), "code").into_owned()
}

/// What a heading is called in a link, as GitHub does it.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut out = BTreeSet::new();
    for line in page.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced && line.starts_with('#') {
            let text = line.trim_start_matches('#').trim().to_lowercase();
            let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            out.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    out
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading_that_are_there() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let mut pages = below("docs", "md");
    pages.push(Path::new(TOP).join("README.md"));
    let (mut checked, mut broken) = (0, Vec::new());
    for page in &pages {
        let text = read(page);
        for found in link.captures_iter(&prose(&text)) {
            let to = &found[1];
            if to.contains("://") || to.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, anchor) = to.split_once('#').unwrap_or((to, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let there = target.exists()
                && (anchor.is_empty()
                    || target.extension().is_none_or(|kind| kind != "md")
                    || anchors(&read(&target)).contains(anchor));
            if !there {
                broken.push(format!("{}: {to}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
    assert!(checked > 100, "{checked} links only");
}

#[test]
fn every_page_is_reached_from_the_index() {
    let link = Regex::new(r"\]\(([^)#\s]+)").unwrap();
    let docs = Path::new(TOP).join("docs");
    let start = docs.join("README.md");
    let index = prose(&read(&start));
    let linked: BTreeSet<PathBuf> =
        link.captures_iter(&index).filter_map(|found| docs.join(&found[1]).canonicalize().ok()).collect();
    // Decisions are a folder of their own, linked as one.
    let missing: Vec<_> = below("docs", "md")
        .into_iter()
        .map(|page| page.canonicalize().unwrap())
        .filter(|page| {
            *page != start.canonicalize().unwrap() && !page.components().any(|part| part.as_os_str() == "adr")
        })
        .filter(|page| !linked.contains(page))
        .collect();
    assert!(missing.is_empty(), "not in docs/README.md: {missing:?}");
}

/// What is wrong with a document as XML: tags that do not match, values without quotes, stray signs. Enough for what is drawn by
/// hand; declarations of types and sections of raw text are refused.
fn fault(text: &str) -> Option<String> {
    let attributes = Regex::new(r#"^(\s+[A-Za-z_:][\w:.-]*\s*=\s*("[^"<]*"|'[^'<]*'))*\s*$"#).unwrap();
    let entity = Regex::new(r"^&(amp|lt|gt|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);").unwrap();
    let stray = |text: &str| text.match_indices('&').any(|(at, _)| !entity.is_match(&text[at..]));
    let (mut open, mut roots, mut rest) = (Vec::new(), 0, text.trim());
    while let Some(at) = rest.find('<') {
        if stray(&rest[..at]) || (open.is_empty() && !rest[..at].trim().is_empty()) {
            return Some(format!("unexpected text {:?}", &rest[..at]));
        }
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = &comment[comment.find("-->")? + 3..];
            continue;
        }
        let Some(end) = rest.find('>') else { return Some("a tag without an end".to_owned()) };
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name.trim()) {
                return Some(format!("</{name}> closes something else"));
            }
            continue;
        }
        let (tag, alone) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, values) = tag.split_at(tag.find(char::is_whitespace).unwrap_or(tag.len()));
        if !name.starts_with(char::is_alphabetic) || !attributes.is_match(values) || stray(values) {
            return Some(format!("<{tag}> does not read"));
        }
        roots += usize::from(open.is_empty());
        if !alone {
            open.push(name);
        }
    }
    let clean = open.is_empty() && roots == 1 && rest.trim().is_empty();
    (!clean).then(|| format!("{roots} roots, {open:?} open at the end"))
}

#[test]
fn what_is_not_well_formed_is_noticed() {
    assert_eq!(fault("<a x=\"1\"><b/>5 &lt; 6<!-- < --></a>"), None);
    for bad in [
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "<a x=1/>",
        "<a>a & b</a>",
        "text",
        "<a x=\"a & b\"/>",
        "<a",
        "<a/>rest",
    ] {
        assert!(fault(bad).is_some(), "{bad}");
    }
}

#[test]
fn every_diagram_is_well_formed_and_says_what_it_shows() {
    let diagrams = below("docs", "svg");
    assert!(diagrams.len() >= 9, "{diagrams:?}");
    for path in diagrams {
        let text = read(&path);
        assert_eq!(fault(&text), None, "{}", path.display());
        for part in ["<title", "<desc", "viewBox=", "prefers-color-scheme:dark"] {
            assert!(text.contains(part), "{}: no {part}", path.display());
        }
    }
}

/// What the chart grants at most, whatever the values: resources that are read and that are written.
#[derive(Default, Debug, PartialEq, Eq)]
struct Grants {
    read: BTreeSet<String>,
    written: BTreeSet<String>,
}

fn block<'a>(rules: &'a str, name: &str) -> Option<&'a str> {
    let from = rules.find(&format!("define \"{name}\""))?;
    let rest = &rules[from..];
    Some(&rest[..rest[1..].find("define \"").map_or(rest.len(), |end| end + 1)])
}

fn collect(rules: &str, name: &str, grants: &mut Grants) {
    let include = Regex::new(r#"include "(loadline\.rules[\w.]+)""#).unwrap();
    let list = |line: &str, key: &str| -> Option<Vec<String>> {
        let (_, rest) = line.split_once(&format!("{key}: ["))?;
        Some(
            rest.trim_end_matches(']')
                .split(',')
                .map(|word| word.trim().trim_matches('"').to_owned())
                .collect(),
        )
    };
    let (mut groups, mut resources) = (Vec::new(), Vec::new());
    for line in block(rules, name).unwrap_or_else(|| panic!("no rules {name}")).lines() {
        if let Some(found) = include.captures(line) {
            collect(rules, &found[1], grants);
        }
        groups = list(line, "apiGroups").unwrap_or(groups);
        resources = list(line, "resources").unwrap_or(resources);
        let Some(verbs) = list(line, "verbs") else { continue };
        assert_eq!(groups.len(), 1, "{line}");
        let group = groups[0].clone();
        for resource in &resources {
            let full = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
            if verbs.iter().any(|verb| matches!(verb.as_str(), "get" | "list" | "watch")) {
                grants.read.insert(full.clone());
            }
            if verbs.iter().any(|verb| matches!(verb.as_str(), "create" | "patch" | "update" | "delete")) {
                grants.written.insert(full);
            }
        }
    }
}

#[test]
fn diagrams_show_exactly_what_the_chart_lets_components_read_and_write() {
    let templates = Path::new(TOP).join("deploy/chart/templates");
    let rules = read(templates.join("_rules.tpl"));
    let shown = Regex::new(r#"class="(read|written)"[^>]*>([^<]+)<"#).unwrap();
    let include = Regex::new(r#"include "(loadline\.rules[\w.]+)""#).unwrap();
    let mut checked = 0;
    for entry in fs::read_dir(&templates).unwrap() {
        let path = entry.unwrap().path();
        let template = read(&path);
        let mut granted = Grants::default();
        let names: Vec<_> = include.captures_iter(&template).collect();
        if names.is_empty() || path.extension().is_none_or(|kind| kind != "yaml") {
            continue;
        }
        for name in names {
            collect(&rules, &name[1], &mut granted);
        }
        let component = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let drawing = read(Path::new(TOP).join(format!("docs/diagrams/{component}.svg")));
        let mut drawn = Grants::default();
        for found in shown.captures_iter(&drawing) {
            let column = if &found[1] == "read" { &mut drawn.read } else { &mut drawn.written };
            column.insert(found[2].to_owned());
        }
        assert_eq!(drawn, granted, "{component}: drawn, and granted");
        checked += 1;
    }
    assert_eq!(checked, 10, "components with an account");
}

#[test]
fn the_page_of_the_agent_names_every_file_it_may_open() {
    let page = read(Path::new(TOP).join("docs/guide/agent.md"));
    let (_, rest) = page.split_once("## What it opens on a node").unwrap();
    let told: Vec<&str> = rest.lines().filter(|line| line.starts_with("| `/")).collect();
    let rows = LISTED.iter().map(|one| format!("| `/{}` | {} | {} |", one.path, one.how, one.why));
    assert_eq!(told, rows.collect::<Vec<_>>());
}

/// The cells of the row of a table that begins with these.
fn row<'a>(page: &'a str, begin: &[&str]) -> Vec<&'a str> {
    let cells = |line: &'a str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let mut rows = page.lines().filter(|line| line.starts_with('|')).map(cells);
    rows.find(|cells| cells.starts_with(begin)).unwrap_or_else(|| panic!("no row {begin:?}"))
}

#[test]
fn figures_that_pages_quote_are_those_of_the_tables_they_are_from() {
    let page = |name: &str| read(Path::new(TOP).join(name));
    let (benchmarks, quality) = (page("docs/benchmarks.md"), page("docs/quality.md"));
    let (sets, quality) = quality.split_once("## All together").unwrap();
    // Of the data set whose machines are bursty, on nodes of which less than 40 % is used.
    let (_, bursty) = sets.split_once("\n## bitbrains: ").unwrap();
    let bursty = bursty.split("\n## ").next().unwrap();
    let densities: Vec<u32> = bursty
        .split("over 100 %, ")
        .skip(1)
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(densities.len() == 3 && densities.iter().all(|used| *used < 40), "{densities:?}");
    // Of requests only, not served, p99, moves.
    let [of_requests, _, _, a_day] = row(bursty, &["line+rebalance"])[4..] else {
        panic!("other columns: {bursty}")
    };
    let (extender, limits) = (page("docs/guide/extender.md"), page("docs/understand/limits.md"));
    let readme = page("README.md");
    let peers = |ours: &str, beside: &str| {
        let cells = row(&benchmarks, &[ours, beside]);
        let number = |at: usize| cells[at].trim_matches('*').parse::<f64>().unwrap();
        (number(2), number(3), cells[4].trim_matches('*').to_owned())
    };
    let (_, alone, both) = peers("our extender: pods bound/s", "kube-scheduler without extenders");
    let (_, _, filter) = peers("our extender, filter alone", "kube-scheduler without extenders");
    let (tainted, ..) = peers("our taints on nodes", "our extender");
    let (_, _, own) = peers("`loadline scheduler`: pods bound/s", "kube-scheduler");
    let taints = format!("{:.2}", tainted / alone);
    let moved = row(quality, &["line+rebalance"]);
    let quoted = [
        (&extender, format!("| filter and prioritize, as in `extender.yaml` | {both} |")),
        (&extender, format!("| a filter alone, as in `filter-only.yaml` | {filter} |")),
        (&extender, format!(" of `loadline annotator` | {taints}: nobody is asked |")),
        (&extender, format!("no kube-scheduler involved: {own} |")),
        (&limits, format!("{both} of the pods a second there are without, {filter} as a filter alone")),
        (&limits, format!("it was {}, and worse in {}", moved[1], moved[2].replace("0 of 22", "none"))),
        (&limits, format!("over 100 % for {} of the time", row(quality, &["line"])[1])),
        (
            &readme,
            format!(
                "bursty real machines that are used by less than 40 %, placing by load and then moving few pods leaves nodes over 100 % for {of_requests} of\nthe time that requests alone do, with {a_day} moves per pod and day"
            ),
        ),
    ];
    for (page, words) in quoted {
        assert!(page.contains(&words), "not there, or an older figure: {words}");
    }
}

//! What can be set by files and objects? The configuration of a scheduler with every default, as the program writes it; and the
//! fields of the kinds that come with it, from their definitions.

use super::cell;
use anyhow::{Context as _, Result};
use loadline_api::scheduler::{Configuration, write};
use serde_json::Value;
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Settings

Flags are on [their own page](cli.md). Load policies are crane's `DynamicSchedulerPolicy`: `loadline policy check FILE` says what
follows from one, [the rules](../load-rules.md) say how it is used.

## `SchedulerConfiguration`

What `loadline scheduler --config FILE` and `loadline dashboard --config FILE` read. This is the default one, with everything filled in
(`loadline config print`):

";

const OBJECTS: &str = "
Fields of objects follow, as the definitions in `deploy/crds` have them. `[]` stands for each item of a list, `{}` for any key.
";

/// The page.
///
/// # Errors
/// When what the program ships cannot be read.
pub fn page() -> Result<String> {
    let mut page = INTRODUCTION.to_owned();
    let defaults = serde_saphyr::to_string(&write(&Configuration::default()))?;
    let _ = write!(page, "```yaml\n{}\n```\n{OBJECTS}", defaults.trim_end());
    let definitions =
        loadline_api::qos::DEFINITIONS.iter().chain([&loadline_api::recommendation::DEFINITION]);
    for text in definitions {
        let definition: Value = serde_saphyr::from_str(text).context("a definition that is shipped")?;
        let spec = &definition["spec"];
        for version in spec["versions"].as_array().into_iter().flatten() {
            let schema = &version["schema"]["openAPIV3Schema"];
            let (kind, about) = (spec["names"]["kind"].as_str(), schema["description"].as_str());
            let (group, version) = (spec["group"].as_str(), version["name"].as_str());
            let _ = write!(
                page,
                "\n## `{}`\n\n{} `{}/{}`\n\n| field | type | default | what |\n|---|---|---|---|\n",
                kind.unwrap_or_default(),
                about.unwrap_or_default(),
                group.unwrap_or_default(),
                version.unwrap_or_default(),
            );
            for part in ["spec", "status"] {
                fields(&schema["properties"][part], part, &mut page);
            }
        }
    }
    Ok(page)
}

/// A field and everything below it.
fn fields(schema: &Value, path: &str, page: &mut String) {
    if schema.is_null() {
        return;
    }
    let text = |field: &str| schema[field].as_str().unwrap_or_default();
    let default =
        if schema["default"].is_null() { String::new() } else { format!("`{}`", schema["default"]) };
    let choices: Vec<String> = schema["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| Some(format!("`{}`", one.as_str()?)))
        .collect();
    let one_of = if choices.is_empty() { String::new() } else { format!(" One of {}.", choices.join(", ")) };
    let kind = if schema["x-kubernetes-int-or-string"] == true { "integer or string" } else { text("type") };
    let _ =
        writeln!(page, "| `{path}` | {kind} | {} | {}{one_of} |", cell(&default), cell(text("description")));
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        fields(below, &format!("{path}.{name}"), page);
    }
    let each = [("items", "[]"), ("additionalProperties", "{}")];
    for (below, sign) in each.map(|(field, sign)| (&schema[field], sign)) {
        // Plain items are told by their list.
        if below["properties"].is_object() {
            for (name, field) in below["properties"].as_object().into_iter().flatten() {
                fields(field, &format!("{path}{sign}.{name}"), page);
            }
        }
    }
}

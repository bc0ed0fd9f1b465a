//! What becomes of schemas of custom resources, and of objects that have them?

use crate::Real;
use crate::file::{Compared, File};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Definitions made at the same time: a server takes a while to serve each.
const LANES: usize = 8;

/// `value` of the field `spec.a`, which has `schema`.
pub fn values(real: &Real) -> Compared {
    let ask = |number: usize, row: &Value| {
        let schema = json!({"type": "object", "properties":
            {"spec": {"type": "object", "properties": {"a": row["schema"]}}}});
        let things = Things::define(real, format!("v{number}.example.com"), &schema);
        answered(row, &things.create(&json!({"a": row["value"]})))
    };
    File::read("structural.json").compare(Some("values"), LANES, ask, unordered)
}

/// `schema` of a definition.
pub fn definitions(real: &Real) -> Compared {
    let ask = |_: usize, row: &Value| {
        let dry = format!("{DEFINITIONS}?dryRun=All");
        answered(row, &real.ask("POST", &dry, Some(&definition("d.example.com", &row["schema"]))).1)
    };
    File::read("structural.json").compare(Some("schemas"), LANES, ask, unordered)
}

/// `value` of `spec`, after `old` if that is not null, under a schema with rules.
pub fn rules(real: &Real) -> Compared {
    let ask = |number: usize, row: &Value| {
        let things = Things::define(real, format!("r{number}.example.com"), &row["schema"]);
        if row["old"].is_null() {
            return answered(row, &things.create(&row["value"]));
        }
        let mut object = things.create(&row["old"]);
        object["spec"] = row["value"].clone();
        answered(row, &real.ask("PUT", &format!("{}/n", things.path()), Some(&object)).1)
    };
    File::read("rules.json").compare(None, LANES, ask, unordered)
}

fn definition(group: &str, schema: &Value) -> Value {
    json!({
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// A kind of its own for one question.
struct Things<'a> {
    real: &'a Real,
    group: String,
}

impl<'a> Things<'a> {
    fn define(real: &'a Real, group: String, schema: &Value) -> Self {
        let (code, answer) = real.ask("POST", DEFINITIONS, Some(&definition(&group, schema)));
        assert_eq!(code, 201, "{schema}: {answer}");
        Self { real, group }
    }

    fn path(&self) -> String {
        format!("/apis/{}/v1/things", self.group)
    }

    /// The server tells some time after a definition was made that it serves it.
    fn create(&self, spec: &Value) -> Value {
        let version = format!("{}/v1", self.group);
        let mut object = json!({"apiVersion": version, "kind": "Thing", "metadata": {"name": "n"}});
        if !spec.is_null() {
            object["spec"] = spec.clone();
        }
        for _ in 0..3000 {
            let (code, answer) = self.real.ask("POST", &self.path(), Some(&object));
            if !matches!(code, 404 | 405 | 429 | 503) {
                return answer;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{} is not served", self.path());
    }
}

/// The row with what is wrong: `field: message|reason`, one line per mistake.
fn answered(row: &Value, answer: &Value) -> Value {
    let causes = answer.pointer("/details/causes").and_then(Value::as_array).into_iter().flatten();
    let lines = causes.map(|cause| {
        let text = |key: &str| cause[key].as_str().unwrap_or_default();
        format!("{}: {}|{}", text("field"), text("message"), text("reason"))
    });
    let mut row = row.clone();
    row["errors"] = lines.map(Value::from).collect();
    row
}

fn unordered(row: &Value) -> Value {
    let mut row = row.clone();
    if let Some(errors) = row["errors"].as_array_mut() {
        errors.sort_by_key(Value::to_string);
    }
    row
}

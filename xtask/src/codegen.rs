//! Which schemas do the built-in kinds have: recorded from the pinned Kubernetes module.
//!
//! The API server embeds the *structure* of the kinds it serves: names, types, references and merge markers,
//! read from the `OpenAPI` v3 documents that come with the module. Descriptions are left out; the few we show are
//! our own. Go type names, which appear in decoding errors and nowhere in `OpenAPI`, are read from the type
//! declarations. The result is committed, so nothing here is needed to build or to test.

use crate::fresh::Mode;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Group-versions whose kinds are served, or whose schemas are needed to understand a served kind.
const DOCUMENTS: &[&str] = &[
    "api__v1",
    "apis__admissionregistration.k8s.io__v1",
    "apis__apiextensions.k8s.io__v1",
    "apis__apps__v1",
    "apis__authentication.k8s.io__v1",
    "apis__authorization.k8s.io__v1",
    "apis__autoscaling__v1",
    "apis__autoscaling__v2",
    "apis__batch__v1",
    "apis__certificates.k8s.io__v1",
    "apis__coordination.k8s.io__v1",
    "apis__discovery.k8s.io__v1",
    "apis__events.k8s.io__v1",
    "apis__networking.k8s.io__v1",
    "apis__node.k8s.io__v1",
    "apis__policy__v1",
    "apis__rbac.authorization.k8s.io__v1",
    "apis__resource.k8s.io__v1",
    "apis__scheduling.k8s.io__v1",
    "apis__storage.k8s.io__v1",
];

/// Directories of type declarations, by the prefix of the schema names they declare.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("io.k8s.api.", "k8s.io/api", ""),
    ("io.k8s.apimachinery.pkg.", "k8s.io/apimachinery", "pkg"),
    ("io.k8s.apiextensions-apiserver.pkg.", "k8s.io/apiextensions-apiserver", "pkg"),
];

/// Where the recorded schemas live.
const SCHEMAS: &str = "crates/apiserver/schemas/kubernetes.json";
/// Where the recorded Go type names live.
const GO_TYPES: &str = "crates/apiserver/schemas/go-types.json";
/// The Go module that pins the Kubernetes version.
const PIN: &str = "xtask/control-plane/kubernetes";
/// The module whose `OpenAPI` documents are read.
const KUBERNETES: &str = "k8s.io/kubernetes";

/// Regenerates the recorded schemas below `root`, or compares them with what would be written.
///
/// Comparing without the Go module says that it did not.
pub fn run(root: &Path, mode: Mode) -> Result<()> {
    let pin = root.join(PIN);
    if mode != Mode::Compare {
        fetch(&pin)?;
    }
    let module = match module_dir(&pin, KUBERNETES) {
        Ok(dir) => dir,
        Err(error) if mode == Mode::Compare => {
            eprintln!("schemas: not compared, the pinned Kubernetes module is not here ({error:#})");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let schemas = record(&module.join("api/openapi-spec/v3"))?;
    let names = go_types(&pin, &schemas)?;
    let mut stale = Vec::new();
    for (path, value) in [(SCHEMAS, &schemas), (GO_TYPES, &names)] {
        let text = lines(value)?;
        let target = root.join(path);
        if mode == Mode::Write {
            std::fs::write(&target, text).with_context(|| format!("write {}", target.display()))?;
        } else if std::fs::read_to_string(&target).ok().as_deref() != Some(text.as_str()) {
            stale.push(path);
        }
    }
    if !stale.is_empty() {
        bail!("not fresh: {}; run `cargo xtask codegen`", stale.join(", "));
    }
    Ok(())
}

/// Has Go download the modules that are read.
fn fetch(pin: &Path) -> Result<()> {
    let modules = PACKAGES.iter().map(|(_, module, _)| *module);
    go(pin, &["mod", "download"], modules.chain([KUBERNETES])).map(drop)
}

fn module_dir(pin: &Path, module: &str) -> Result<PathBuf> {
    let dir = go(pin, &["list", "-mod=readonly", "-m", "-f", "{{.Dir}}"], [module])?;
    if dir.trim().is_empty() {
        bail!("{module} has not been downloaded");
    }
    Ok(PathBuf::from(dir.trim()))
}

fn go<'a>(pin: &Path, args: &[&str], modules: impl IntoIterator<Item = &'a str>) -> Result<String> {
    let mut go = Command::new("go");
    go.args(args).args(modules).current_dir(pin).env("GOWORK", "off");
    let output = go.output().context("cannot start go")?;
    if !output.status.success() {
        bail!("go {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("read the answer of go")
}

/// Reads and strips the schemas of all documents in `dir`.
fn record(dir: &Path) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for name in DOCUMENTS {
        let path = dir.join(format!("{name}_openapi.json"));
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let document: Value =
            serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))?;
        let schemas = document["components"]["schemas"].as_object().context("document without schemas")?;
        for (name, schema) in schemas {
            all.entry(name.clone()).or_insert_with(|| strip(name, schema));
        }
    }
    Ok(all)
}

/// One schema without its sentences.
fn strip(name: &str, schema: &Value) -> Value {
    let mut out = structure(schema);
    // Kinds every group shares are listed once per group upstream; the server adds the group it serves.
    if name.starts_with("io.k8s.apimachinery.")
        && let Some(kinds) = out.get_mut("x-kubernetes-group-version-kind").and_then(Value::as_array_mut)
    {
        kinds.retain(|kind| kind["group"] == "" && kind["version"] == "v1");
    }
    out
}

fn structure(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| *key != "description").map(|(key, value)| {
                let value = match (key.as_str(), value) {
                    // Below `properties` the keys are field names, and `description` may be one.
                    ("properties", Value::Object(properties)) => {
                        properties.iter().map(|(name, value)| (name.clone(), structure(value))).collect()
                    }
                    ("default" | "x-kubernetes-unions", value) => value.clone(),
                    (_, value) => structure(value),
                };
                (key.clone(), value)
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(structure).collect(),
        scalar => scalar.clone(),
    }
}

/// A JSON object with one entry per line: small, and readable in a diff.
fn lines(entries: &BTreeMap<String, Value>) -> Result<String> {
    let mut out = String::from("{\n");
    for (index, (name, value)) in entries.iter().enumerate() {
        let comma = if index + 1 == entries.len() { "" } else { "," };
        let value = serde_json::to_string(value).context("write a schema")?;
        writeln!(out, "{}:{value}{comma}", json!(name)).context("write a line")?;
    }
    out.push_str("}\n");
    Ok(out)
}

/// What the Go declarations of one package say.
#[derive(Default)]
struct Package {
    /// Types that are not structs: what their values are.
    named: BTreeMap<String, String>,
    /// Per struct: JSON field name to Go type.
    fields: BTreeMap<String, BTreeMap<String, String>>,
    /// Per struct: types embedded inline.
    embedded: BTreeMap<String, Vec<String>>,
}

/// Go type names of fields, and embedding prefixes, where they cannot be told from the schema.
///
/// An entry is `"field": "TYPE"`, or `"field": "PREFIX|TYPE"` for a field that comes from an embedded struct;
/// either half may be empty.
fn go_types(pin: &Path, schemas: &BTreeMap<String, Value>) -> Result<BTreeMap<String, Value>> {
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in schemas.keys() {
        if let Some((package, kind)) = name.rsplit_once('.') {
            wanted.entry(package).or_default().insert(kind);
        }
    }
    let mut out = BTreeMap::new();
    for (prefix, module, below) in PACKAGES {
        let dir = module_dir(pin, module)?.join(below);
        for (package, kinds) in &wanted {
            let Some(rest) = package.strip_prefix(prefix) else { continue };
            let declared = declarations(&dir.join(rest.replace('.', "/")))?;
            let version = rest.rsplit('.').next().unwrap_or(rest);
            for kind in kinds {
                let entry = remarkable(&declared, version, kind);
                if !entry.is_empty() {
                    out.insert(format!("{package}.{kind}"), Value::Object(entry));
                }
            }
        }
    }
    Ok(out)
}

fn declarations(dir: &Path) -> Result<Package> {
    let mut package = Package::default();
    let entries = std::fs::read_dir(dir).with_context(|| format!("list {}", dir.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|e| e.path())).collect();
    files.sort();
    for path in files {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let source = path.extension().is_some_and(|ext| ext == "go");
        if source && !name.starts_with("zz_generated") && !name.ends_with("_test.go") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            package.read(&text);
        }
    }
    Ok(package)
}

impl Package {
    /// Reads type declarations line by line: generated-API sources are formatted, one field per line.
    fn read(&mut self, text: &str) {
        let mut within: Option<String> = None;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().take_while(|w| !w.starts_with("//")).collect();
            match (&within, words.as_slice()) {
                (Some(_), ["}"]) => within = None,
                (None, ["type", name, "struct", "{"]) => within = Some((*name).to_owned()),
                (None, ["type", name, kind]) if *kind != "interface" => {
                    self.named.insert((*name).to_owned(), (*kind).to_owned());
                }
                (Some(of), [field, kind, tag @ ..]) => {
                    let tag = tag.first().copied().unwrap_or_default();
                    if let Some(json) = tag_name(tag) {
                        let fields = self.fields.entry(of.clone()).or_default();
                        fields.insert(json.to_owned(), (*kind).to_owned());
                    } else if kind.contains(",inline") {
                        self.embedded.entry(of.clone()).or_default().push((*field).to_owned());
                    }
                }
                _ => {}
            }
        }
    }
}

/// The name in a field's `json` tag.
fn tag_name(tag: &str) -> Option<&str> {
    let rest = tag.split("json:\"").nth(1)?;
    let name = rest.split(['"', ',']).next()?;
    (!name.is_empty() && name != "-").then_some(name)
}

/// Fields of `kind` whose Go type or path cannot be told from the schema.
fn remarkable(package: &Package, version: &str, kind: &str) -> Map<String, Value> {
    let mut out = Map::new();
    for (field, ty) in package.fields.get(kind).into_iter().flatten() {
        if let Some(ty) = named(package, version, ty) {
            out.insert(field.clone(), json!(ty));
        }
    }
    for embedded in package.embedded.get(kind).into_iter().flatten() {
        // `metav1.TypeMeta` is embedded everywhere; readers know its two fields.
        for (field, ty) in package.fields.get(embedded).into_iter().flatten() {
            let ty = named(package, version, ty).unwrap_or_default();
            out.insert(field.clone(), json!(format!("{embedded}|{ty}")));
        }
    }
    out
}

/// `v1.RestartPolicy` for a field of a named type that is not a struct, with `[]` and `map[]` around it.
fn named(package: &Package, version: &str, ty: &str) -> Option<String> {
    let ty = ty.trim_start_matches('*');
    if let Some(item) = ty.strip_prefix("[]") {
        return named(package, version, item).map(|item| format!("[]{item}"));
    }
    if let Some(rest) = ty.strip_prefix("map[") {
        let (key, value) = rest.split_once(']')?;
        let named_key = named(package, version, key);
        let named_value = named(package, version, value);
        if named_key.is_none() && named_value.is_none() {
            return None;
        }
        let key = named_key.unwrap_or_else(|| key.to_owned());
        let value = named_value.unwrap_or_else(|| value.to_owned());
        return Some(format!("map[{key}]{value}"));
    }
    match ty.split_once('.') {
        // Named scalars of other packages that kinds use.
        Some(("types", name)) => Some(format!("types.{name}")),
        Some(("v1" | "corev1", name)) if SHARED.contains(&name) => Some(format!("v1.{name}")),
        Some(("metav1", "LabelSelectorOperator" | "ConditionStatus")) => Some(ty.replacen("metav1", "v1", 1)),
        None if package.named.contains_key(ty) => Some(format!("{version}.{ty}")),
        _ => None,
    }
}

/// Named core types that other groups use for fields.
const SHARED: &[&str] = &[
    "ConditionStatus",
    "PersistentVolumeAccessMode",
    "PersistentVolumeReclaimPolicy",
    "PersistentVolumeMode",
    "PreemptionPolicy",
    "Protocol",
    "ResourceList",
    "ResourceName",
    "RestartPolicy",
    "ServiceAffinity",
    "TaintEffect",
    "UniqueVolumeName",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_left_out_but_fields_named_description_are_kept() {
        let schema = json!({
            "description": "words", "type": "object",
            "properties": {"description": {"type": "string", "description": "words"}},
        });
        let want = json!({"type": "object", "properties": {"description": {"type": "string"}}});
        assert_eq!(structure(&schema), want);
    }

    #[test]
    fn named_types_and_embedding_are_read_from_declarations() {
        let mut package = Package::default();
        package.read(
            "type Policy string\n\
             type Source struct {\n\tSize Policy `json:\"size,omitempty\"`\n}\n\
             type Spec struct {\n\tSource `json:\",inline\"`\n\t// why\n\tName string `json:\"name\"`\n\
             \tList []Policy `json:\"list\" protobuf:\"x\"`\n}\n",
        );
        let got = remarkable(&package, "v1", "Spec");
        assert_eq!(Value::Object(got), json!({"list": "[]v1.Policy", "size": "Source|v1.Policy"}));
    }
}

//! Syntax of names, labels and ports, with the sentences a server answers when they are wrong.

use regex::Regex;
use std::sync::LazyLock;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";

/// How the name of a kind is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// DNS subdomain (RFC 1123).
    Subdomain,
    /// DNS label (RFC 1123).
    Label,
    /// Anything that can be one segment of a URL path.
    PathSegment,
}

impl Rule {
    /// What is wrong with a name. The end of a prefix is not checked: something will be appended.
    pub(super) fn check(self, name: &str, prefix: bool) -> Vec<String> {
        let masked;
        let name = if prefix && self != Self::PathSegment && name.ends_with('-') && name.len() > 1 {
            // The dash and what stands before it count as one letter.
            let kept = name.char_indices().rev().nth(1).map_or(0, |(at, _)| at);
            masked = format!("{}a", &name[..kept]);
            masked.as_str()
        } else {
            name
        };
        match self {
            Self::Subdomain => subdomain(name),
            Self::Label => label(name),
            Self::PathSegment => path_segment(name, prefix),
        }
    }
}

fn whole(pattern: &str) -> Regex {
    Regex::new(&format!("^(?:{pattern})$")).expect("the pattern is a constant that tests compile")
}

macro_rules! matcher {
    ($name:ident, $pattern:expr) => {
        fn $name(text: &str) -> bool {
            static RE: LazyLock<Regex> = LazyLock::new(|| whole($pattern));
            // `$` also matches before a final line break elsewhere; here the whole text counts.
            RE.is_match(text)
        }
    };
}
matcher!(is_label, LABEL);
matcher!(is_subdomain, SUBDOMAIN);
matcher!(is_1035, DNS_1035);
matcher!(is_key, KEY);
matcher!(is_value, VALUE);
matcher!(is_config_key, CONFIG_KEY);
matcher!(is_percent, "[0-9]+%");

/// Labels and their prefixes are measured in bytes, other names in what upstream calls characters.
fn too_long(limit: usize, unit: &str) -> String {
    format!("must be no more than {limit} {unit}")
}

fn shape(what: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{what} (regex used for validation is '{regex}')");
    }
    let list: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{what} (e.g. {}regex used for validation is '{regex}')", list.join(" or "))
}

/// What keeps a text from being a DNS subdomain.
pub(super) fn subdomain(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 253 {
        out.push(too_long(253, "characters"));
    }
    if !is_subdomain(name) {
        let what = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                    '.', and must start and end with an alphanumeric character";
        out.push(shape(what, SUBDOMAIN, &["example.com"]));
    }
    out
}

/// What keeps a text from being a DNS label.
pub(super) fn label(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 63 {
        out.push(too_long(63, "characters"));
    }
    if !is_label(name) {
        out.push(if is_subdomain(name) {
            "must not contain dots".to_owned()
        } else {
            let what = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                        and must start and end with an alphanumeric character";
            shape(what, LABEL, &["my-name", "123-abc"])
        });
    }
    out
}

/// What keeps a text from being a DNS label that starts with a letter.
pub(super) fn label_1035(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 63 {
        out.push(too_long(63, "characters"));
    }
    if !is_1035(name) {
        let what = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                    alphabetic character, and end with an alphanumeric character";
        out.push(shape(what, DNS_1035, &["my-name", "abc-123"]));
    }
    out
}

/// What keeps a text from being one segment of a path.
pub(super) fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// What keeps a text from being a label key: an optional domain and a name.
pub(crate) fn qualified(key: &str) -> Vec<String> {
    let what = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                alphanumeric character";
    let spelled = shape(what, KEY, &["MyName", "my.name", "123-abc"]);
    let mut out = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                out.push("prefix part must be non-empty".to_owned());
            } else {
                let problems = subdomain(prefix).into_iter();
                out.extend(
                    problems.map(|m| format!("prefix part {}", m.replace("253 characters", "253 bytes"))),
                );
            }
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {spelled} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        out.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        out.push(format!("name part {}", too_long(63, "bytes")));
    }
    if !is_key(name) {
        out.push(format!("name part {spelled}"));
    }
    out
}

/// What keeps a text from being the value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut out = Vec::new();
    if value.len() > 63 {
        out.push(too_long(63, "bytes"));
    }
    if !is_value(value) {
        let what = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
                    '.', and must start and end with an alphanumeric character";
        out.push(shape(what, VALUE, &["MyValue", "my_value", "12345"]));
    }
    out
}

/// What keeps a text from being a key of a config map or secret.
pub(super) fn config_key(key: &str) -> Vec<String> {
    let mut out = Vec::new();
    if key.len() > 253 {
        out.push(too_long(253, "characters"));
    }
    if !is_config_key(key) {
        let what = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        out.push(shape(what, CONFIG_KEY, &["key.name", "KEY_NAME", "key-name"]));
    }
    match key {
        "." => out.push("must not be '.'".to_owned()),
        ".." => out.push("must not be '..'".to_owned()),
        _ if key.starts_with("..") => out.push("must not start with '..'".to_owned()),
        _ => {}
    }
    out
}

/// What keeps a text from being the name of an environment variable.
pub(super) fn env_name(name: &str) -> Vec<String> {
    if name.chars().any(|c| !(' '..='~').contains(&c) || c == '=') {
        let what = "a valid environment variable name must consist only of printable ASCII characters other \
                    than '='";
        return vec![what.to_owned()];
    }
    Vec::new()
}

/// What keeps a text from being the name of a port.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 15 {
        out.push(too_long(15, "characters"));
    }
    if name.is_empty() || !name.bytes().all(|b| b == b'-' || b.is_ascii_lowercase() || b.is_ascii_digit()) {
        out.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        out.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        out.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        out.push("must not begin or end with a hyphen".to_owned());
    }
    out
}

/// Bounds a port number must keep.
pub(super) fn port_number(port: i64) -> Option<String> {
    (!(1..=65_535).contains(&port)).then(|| between(1, 65_535))
}

/// The sentence for a number outside its bounds.
pub(super) fn between(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// What keeps a text from being a percentage.
pub(super) fn percent(text: &str) -> Option<String> {
    let what = "a valid percent string must be a numeric string followed by an ending '%'";
    (!is_percent(text)).then(|| shape(what, "[0-9]+%", &["1%", "93%"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_names_are_answered_with_upstreams_sentences() {
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert_eq!(
            subdomain("A"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
              and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
              validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert!(subdomain("a-b.c").is_empty());
        assert_eq!(subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
        assert!(qualified("example.com/Name").is_empty());
        assert_eq!(qualified("/x"), ["prefix part must be non-empty"]);
        assert_eq!(path_segment("..", false), ["may not be '..'"]);
        assert_eq!(path_segment("a/b%", false), ["may not contain '/'", "may not contain '%'"]);
        assert!(Rule::Subdomain.check("web-", true).is_empty(), "a prefix may end with a dash");
        assert!(!Rule::Subdomain.check("web-", false).is_empty());
        assert!(label_value("").is_empty());
        assert!(is_percent("10%") && percent("x%").is_some() && port_number(0).is_some());
    }
}

//! Which formats of a schema are checked, and what fulfils them.

use super::text;
use crate::schema::gotime::{self, Precision};
use base64::Engine as _;
use regex::Regex;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

/// Formats of text that are checked; upstream ignores all others.
const KNOWN: [&str; 21] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
];

/// The format that counts for a schema; empty when upstream does not know it for that type.
pub(super) fn effective(schema: &Value) -> &str {
    let format = text(schema, "format");
    let counts = match text(schema, "type") {
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        "" | "string" => is_known(format),
        _ => false,
    };
    if counts { format } else { "" }
}

/// Whether a format is one of texts that are checked.
pub(super) fn is_known(format: &str) -> bool {
    let plain = format.replace('-', "");
    KNOWN.contains(&plain.as_str()) || plain == "uuid5"
}

/// Whether a text has a format.
pub(super) fn holds(format: &str, value: &str) -> bool {
    let plain = format.replace('-', "");
    match plain.as_str() {
        "byte" => base64::engine::general_purpose::STANDARD.decode(value).is_ok(),
        "cidr" => value.split_once('/').is_some_and(|(address, bits)| match address.parse() {
            Ok(IpAddr::V4(_)) => bits.parse::<u8>().is_ok_and(|bits| bits <= 32),
            Ok(IpAddr::V6(_)) => bits.parse::<u8>().is_ok_and(|bits| bits <= 128),
            Err(_) => false,
        }),
        "date" => {
            value.len() == 10 && gotime::canonical(&format!("{value}T00:00:00Z"), Precision::Seconds).is_ok()
        }
        "datetime" => gotime::canonical(&value.to_ascii_uppercase(), Precision::Seconds).is_ok(),
        "ipv4" => value.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => value.parse::<Ipv6Addr>().is_ok(),
        "email" => matches(value, |p| &p.email),
        "hostname" => value.len() <= 255 && matches(value, |p| &p.hostname),
        "uri" => value.starts_with('/') || matches(value, |p| &p.uri),
        "duration" => value == "0" || matches(value, |p| &p.duration),
        "mac" => matches(value, |p| &p.mac),
        "uuid" => matches(value, |p| &p.uuid),
        "uuid3" => matches(value, |p| &p.uuid) && version(value) == Some('3'),
        "uuid4" => matches(value, |p| &p.uuid) && version(value) == Some('4') && variant(value),
        "uuid5" => matches(value, |p| &p.uuid) && version(value) == Some('5') && variant(value),
        "hexcolor" => matches(value, |p| &p.hexcolor),
        "rgbcolor" => matches(value, |p| &p.rgbcolor),
        "ssn" => matches(value, |p| &p.ssn),
        "bsonobjectid" => value.len() == 24 && value.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "k8sshortname" => value.len() <= 63 && label(value),
        "k8slongname" => value.len() <= 253 && value.split('.').all(label),
        _ => true,
    }
}

struct Patterns {
    email: Option<Regex>,
    hostname: Option<Regex>,
    uri: Option<Regex>,
    duration: Option<Regex>,
    mac: Option<Regex>,
    uuid: Option<Regex>,
    hexcolor: Option<Regex>,
    rgbcolor: Option<Regex>,
    ssn: Option<Regex>,
}

fn matches(value: &str, which: impl Fn(&Patterns) -> &Option<Regex>) -> bool {
    static PATTERNS: OnceLock<Patterns> = OnceLock::new();
    let patterns = PATTERNS.get_or_init(|| {
        let compile = |pattern: &str| Regex::new(pattern).ok();
        Patterns {
            email: compile(r"^[^@\s<>,;]+@[^@\s<>,;]+$"),
            hostname: compile(r"^([a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?\.?)+$"),
            uri: compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*:[^\s]*$"),
            duration: compile(
                r"^([+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+|\s*[0-9]+\s*(ns|nano|nanos|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|seconds?|m|minutes?|h|hours?|d|days?|w|weeks?)\s*)$",
            ),
            mac: compile(r"^([0-9a-fA-F]{2}[:-]){5}([0-9a-fA-F]{2}[:-]){0,14}[0-9a-fA-F]{2}$"),
            uuid: compile(r"^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
            hexcolor: compile(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
            rgbcolor: compile(r"^rgb\(\s*[0-9]{1,3}\s*,\s*[0-9]{1,3}\s*,\s*[0-9]{1,3}\s*\)$"),
            ssn: compile(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"),
        }
    });
    which(patterns).as_ref().is_some_and(|regex| regex.is_match(value))
}

/// The digit of a UUID that says how it was made.
fn version(value: &str) -> Option<char> {
    value.chars().filter(|c| *c != '-').nth(12)
}

fn variant(value: &str) -> bool {
    value.chars().filter(|c| *c != '-').nth(16).is_some_and(|c| "89abAB".contains(c))
}

fn label(value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = value.as_bytes();
    bytes.first().copied().is_some_and(inner)
        && bytes.last().copied().is_some_and(inner)
        && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
}

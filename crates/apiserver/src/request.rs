//! What a request asks for: path and query taken apart, before anything is looked up.

use crate::status::Status;
use http::Method;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

/// A path of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Path {
    /// `/`: the list of paths.
    Root,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health,
    /// `/api`.
    Legacy,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    GroupVersion(String, String),
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3` and, with a group version path, a document below it.
    OpenApiV3(Option<String>),
    /// A resource, an object or something below an object.
    Resource(Target),
    /// Nothing we know.
    Unknown,
    /// Not a path at all: an escape is broken.
    Malformed,
    /// A namespaced resource with an empty namespace.
    EmptyNamespace,
}

/// A resource, an object or something below an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Target {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace, if the path has one.
    pub namespace: Option<String>,
    /// Plural name of the resource.
    pub plural: String,
    /// Name of the object.
    pub name: Option<String>,
    /// What is asked for below the object.
    pub subresource: Option<String>,
    /// Whether the path itself asks for a watch, as `/api/v1/watch/pods` does.
    pub watch: bool,
}

impl Path {
    /// Takes a request path apart. Escapes are decoded first, as Go does: an escaped slash splits like any other.
    #[must_use]
    pub(crate) fn parse(path: &str) -> Self {
        if !escapes_are_whole(path) {
            return Self::Malformed;
        }
        let path = percent_decode_str(path).decode_utf8_lossy();
        let mut words: Vec<&str> = path.strip_prefix('/').unwrap_or(&path).split('/').collect();
        if words.last().is_some_and(|word| word.is_empty()) {
            words.pop();
        }
        match words.as_slice() {
            [] => Self::Root,
            ["version"] => Self::Version,
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["api"] => Self::Legacy,
            ["apis"] => Self::Groups,
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiV3(None),
            ["openapi", "v3", rest @ ..] => Self::OpenApiV3(Some(rest.join("/"))),
            ["api", version] => Self::GroupVersion(String::new(), (*version).to_owned()),
            ["apis", group] => Self::Group((*group).to_owned()),
            ["apis", group, version] => Self::GroupVersion((*group).to_owned(), (*version).to_owned()),
            ["api", _, "namespaces", "", _, ..] | ["apis", _, _, "namespaces", "", _, ..] => {
                Self::EmptyNamespace
            }
            ["api", version, rest @ ..] => {
                Target::parse("", version, rest).map_or(Self::Unknown, Self::Resource)
            }
            ["apis", group, version, rest @ ..] => {
                Target::parse(group, version, rest).map_or(Self::Unknown, Self::Resource)
            }
            _ => Self::Unknown,
        }
    }
}

impl Target {
    fn parse(group: &str, version: &str, rest: &[&str]) -> Option<Self> {
        if rest.iter().any(|part| part.is_empty()) {
            return None;
        }
        let own = |s: &&str| (*s).to_owned();
        let base = Self { group: group.to_owned(), version: version.to_owned(), ..Self::default() };
        if let ["watch", rest @ ..] = rest {
            return Self::parse(group, version, rest).map(|target| Self { watch: true, ..target });
        }
        Some(match rest {
            // `namespaces/x/status` and `/finalize` are below a Namespace, everything else below that namespace.
            ["namespaces", name, sub @ ("status" | "finalize")] => Self {
                plural: "namespaces".to_owned(),
                name: Some(own(name)),
                subresource: Some(own(sub)),
                ..base
            },
            ["namespaces", namespace, plural, below @ ..] => Self {
                namespace: Some(own(namespace)),
                plural: own(plural),
                name: below.first().map(own),
                subresource: (below.len() > 1).then(|| below[1..].join("/")),
                ..base
            },
            [plural, below @ ..] => Self {
                plural: own(plural),
                name: below.first().map(own),
                subresource: (below.len() > 1).then(|| below[1..].join("/")),
                ..base
            },
            [] => return None,
        })
    }
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// The verb of a method on a collection or on one object.
    #[must_use]
    pub(crate) fn of(method: &Method, target: &Target, query: &Query) -> Option<Self> {
        let named = target.name.is_some();
        Some(match *method {
            Method::GET if target.watch => Self::Watch,
            Method::GET if named => Self::Get,
            Method::GET if query.flag("watch") => Self::Watch,
            Method::GET => Self::List,
            Method::POST => Self::Create,
            Method::PUT if named => Self::Update,
            Method::PATCH if named => Self::Patch,
            Method::DELETE if named => Self::Delete,
            Method::DELETE => Self::DeleteCollection,
            _ => return None,
        })
    }

    /// Its name in discovery.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// Decoded query parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses a query string; of repeated parameters the first counts, as in Go.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Self {
        let decode = |s: &str| percent_decode_str(&s.replace('+', " ")).decode_utf8_lossy().into_owned();
        let mut all = BTreeMap::new();
        // Go leaves out pairs with a broken escape, and says nothing.
        for pair in text.split('&').filter(|p| !p.is_empty() && escapes_are_whole(p)) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            all.entry(decode(key)).or_insert_with(|| decode(value));
        }
        Self(all)
    }

    /// A parameter that is there and not empty.
    #[must_use]
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// A switch: Go reads anything but `false` and `0` as true.
    #[must_use]
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|v| !matches!(v.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    /// A whole number.
    ///
    /// # Errors
    /// 400 when it is not one.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.get(key) else { return Ok(None) };
        text.parse()
            .map(Some)
            .map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
    }
}

/// Whether every `%` starts an escape.
fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let hex = after.as_bytes().iter().take(2).filter(|byte| byte.is_ascii_hexdigit());
        hex.count() == 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match Path::parse(path) {
            Path::Resource(target) => target,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn paths_name_resources_objects_and_what_is_below() {
        let t = target("/api/v1/namespaces/a/pods/p/status");
        assert_eq!(
            (
                t.group.as_str(),
                t.namespace.as_deref(),
                t.plural.as_str(),
                t.name.as_deref(),
                t.subresource.as_deref()
            ),
            ("", Some("a"), "pods", Some("p"), Some("status"))
        );
        let t = target("/api/v1/namespaces/a");
        assert_eq!((t.plural.as_str(), t.name.as_deref(), t.namespace), ("namespaces", Some("a"), None));
        let t = target("/api/v1/namespaces/a/finalize");
        assert_eq!((t.plural.as_str(), t.subresource.as_deref()), ("namespaces", Some("finalize")));
        let t = target("/apis/apps/v1/deployments");
        assert_eq!((t.group.as_str(), t.plural.as_str(), t.name), ("apps", "deployments", None));
    }

    #[test]
    fn an_escaped_slash_splits_like_any_other() {
        let t = target("/api/v1/nodes/a%2Fb");
        assert_eq!((t.name.as_deref(), t.subresource.as_deref()), (Some("a"), Some("b")));
    }

    #[test]
    fn a_path_may_ask_for_a_watch() {
        let t = target("/api/v1/watch/namespaces/a/pods/p");
        assert_eq!((t.watch, t.plural.as_str(), t.name.as_deref()), (true, "pods", Some("p")));
    }

    #[test]
    fn odd_paths_are_unknown_not_errors() {
        for path in ["/nope", "//api/v1/pods", "/api/v1//pods", "/apis/a/b//c", "/%ff"] {
            assert_eq!(Path::parse(path), Path::Unknown, "{path}");
        }
        assert_eq!(Path::parse("/api/v1/pods/a%zz"), Path::Malformed);
        assert_eq!(Path::parse("/api/v1/namespaces//pods"), Path::EmptyNamespace);
    }
}

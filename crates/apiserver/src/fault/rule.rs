//! Which requests does a rule hit?

use super::Action;
use http::{Method, Uri};

/// One kind of fault and the requests it is for.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub(super) action: Action,
    verb: Option<String>,
    path: Option<Vec<String>>,
    when: When,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    Always,
    Nth(u64),
    First(u64),
    Every(u64),
    Chance(f64),
}

impl Rule {
    /// Hits every request; watch actions hit watches only.
    #[must_use]
    pub fn new(action: Action) -> Self {
        Self { action, verb: None, path: None, when: When::Always }
    }

    /// Only this verb, in Kubernetes' words: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Only paths of this form: `*` stands for one segment, `**` at the end for any number of them.
    #[must_use]
    pub fn path(mut self, pattern: &str) -> Self {
        self.path = Some(pattern.trim_matches('/').split('/').map(str::to_owned).collect());
        self
    }

    /// Only the nth matching request, counted from 1.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.when = When::Nth(nth);
        self
    }

    /// Only the first few matching requests.
    #[must_use]
    pub fn first(mut self, count: u64) -> Self {
        self.when = When::First(count);
        self
    }

    /// Every nth matching request.
    #[must_use]
    pub fn every(mut self, nth: u64) -> Self {
        self.when = When::Every(nth);
        self
    }

    /// Each matching request with this probability, drawn from the seed.
    #[must_use]
    pub fn chance(mut self, probability: f64) -> Self {
        self.when = When::Chance(probability);
        self
    }

    pub(super) fn matches(&self, call: &Call) -> bool {
        let verb = self.verb.as_deref().is_none_or(|verb| verb == call.verb);
        let path = self.path.as_deref().is_none_or(|pattern| {
            let segments: Vec<&str> = call.path.trim_matches('/').split('/').collect();
            path_fits(pattern, &segments)
        });
        verb && path && (!self.action.needs_watch() || call.verb == "watch")
    }

    /// `turn` is how many requests have matched before. A draw depends on seed, rule and turn only, so that what
    /// other rules do cannot shift it.
    pub(super) fn fires(&self, seed: u64, rule: usize, turn: u64) -> bool {
        match self.when {
            When::Always => true,
            When::Nth(nth) => turn + 1 == nth,
            When::First(count) => turn < count,
            When::Every(nth) => nth != 0 && (turn + 1).is_multiple_of(nth),
            When::Chance(probability) => draw(seed, rule, turn) < probability,
        }
    }
}

fn path_fits(pattern: &[String], path: &[&str]) -> bool {
    match (pattern, path) {
        ([last], _) if last == "**" => true,
        ([], []) => true,
        ([wanted, pattern @ ..], [segment, path @ ..]) => {
            (wanted == "*" || wanted == segment) && path_fits(pattern, path)
        }
        _ => false,
    }
}

/// A number in 0..1 from three numbers: the finishing steps of `SplitMix64` applied to each in turn.
fn draw(seed: u64, rule: usize, turn: u64) -> f64 {
    let mixed = [seed, rule as u64, turn].into_iter().fold(0_u64, |state, input| {
        let mut z = (state ^ input).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    });
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let unit = (mixed >> 11) as f64 / (1_u64 << 53) as f64;
    unit
}

/// What a request asks for, as far as rules need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) verb: &'static str,
    pub(super) path: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) name: String,
}

impl Call {
    /// Reads method and path the way API servers do: `/api/v1` or `/apis/<group>/<version>`, then perhaps
    /// `namespaces/<namespace>`, then `<resource>[/<name>[/<subresource>]]`.
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        let segments: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => ("", &[][..]),
        };
        let (resource, name) = match rest {
            ["namespaces", _, "status" | "finalize"] => ("namespaces", rest[1]),
            ["namespaces", _, resource] | [resource] => (*resource, ""),
            ["namespaces", _, resource, name, ..] | [resource, name, ..] => (*resource, *name),
            [] => ("", ""),
        };
        let flag = |name: &str| {
            let pairs = uri.query().unwrap_or_default().split('&');
            pairs
                .filter_map(|pair| pair.split_once('=').or(Some((pair, ""))))
                .any(|(key, value)| key == name && !matches!(value, "false" | "0"))
        };
        let one = !name.is_empty() || resource.is_empty();
        let verb = match method.as_str() {
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if one => "delete",
            "DELETE" => "deletecollection",
            _ if !resource.is_empty() && flag("watch") => "watch",
            _ if one => "get",
            _ => "list",
        };
        Self {
            verb,
            path: uri.path().to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_kubernetes_verbs() {
        for (method, uri, verb, resource, name) in [
            ("GET", "/api/v1/pods", "list", "pods", ""),
            ("GET", "/api/v1/pods?watch=true&resourceVersion=1", "watch", "pods", ""),
            ("GET", "/api/v1/pods?watch=1", "watch", "pods", ""),
            ("GET", "/api/v1/pods?watch", "watch", "pods", ""),
            ("GET", "/api/v1/pods?watch=false", "list", "pods", ""),
            ("GET", "/api/v1/namespaces/a/pods/b", "get", "pods", "b"),
            ("GET", "/api/v1/namespaces/a", "get", "namespaces", "a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update", "namespaces", "a"),
            ("GET", "/api/v1/namespaces", "list", "namespaces", ""),
            ("POST", "/api/v1/namespaces/a/pods", "create", "pods", ""),
            ("POST", "/api/v1/namespaces/a/pods/b/binding", "create", "pods", "b"),
            ("PUT", "/apis/apps/v1/namespaces/a/deployments/b/status", "update", "deployments", "b"),
            ("PATCH", "/api/v1/nodes/n", "patch", "nodes", "n"),
            ("DELETE", "/api/v1/nodes/n", "delete", "nodes", "n"),
            ("DELETE", "/api/v1/nodes", "deletecollection", "nodes", ""),
            ("GET", "/healthz", "get", "", ""),
            ("GET", "/", "get", "", ""),
        ] {
            let call = Call::of(&method.parse().unwrap(), &uri.parse().unwrap());
            let read = (call.verb, call.resource.as_str(), call.name.as_str());
            assert_eq!(read, (verb, resource, name), "{method} {uri}");
        }
    }

    #[test]
    fn path_patterns_count_segments() {
        for (pattern, path, fits) in [
            ("/api/v1/pods", "/api/v1/pods", true),
            ("/api/v1/pods", "/api/v1/pods/a", false),
            ("/api/*/pods", "/api/v1/pods", true),
            ("/api/v1/**", "/api/v1/namespaces/a/pods", true),
            ("/api/v1/**", "/apis/apps/v1", false),
            ("**", "/", true),
            ("/api/v1/nodes/*/status", "/api/v1/nodes/n/status", true),
        ] {
            let call = Call::of(&Method::GET, &path.parse().unwrap());
            let rule = Rule::new(Action::DropRequest).path(pattern);
            assert_eq!(rule.matches(&call), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn chances_come_out_about_as_often_as_they_say() {
        let rule = Rule::new(Action::DropRequest).chance(0.25);
        let hits = (0..10_000).filter(|turn| rule.fires(42, 0, *turn)).count();
        assert!((2_300..2_700).contains(&hits), "{hits} of 10000 at a chance of one in four");
        assert!(!Rule::new(Action::DropRequest).chance(0.0).fires(1, 2, 3), "never");
        assert!(Rule::new(Action::DropRequest).chance(1.0).fires(1, 2, 3), "always");
    }
}

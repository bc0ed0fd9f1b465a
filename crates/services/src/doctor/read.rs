//! What does the API server have? Lists page by page, one object after the other made into facts.

use crate::agent::watched::{ACTIONS, NODE_QOS};
use crate::cluster::connection::{Ask, Call, Cause, Verb};
use crate::cluster::resource::{
    DEFINITIONS, DEPLOYMENTS, LEASES, NODE_METRICS, NODES, RECOMMENDATIONS, Resource,
};
use crate::cluster::{Connection, Failure};
use bytes::Bytes;
use futures::future::join_all;
use http::header::DATE;
use http::{HeaderMap, Method};
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use loadline_api::doctor as facts;
use loadline_api::json::{Skip, Tree};
use loadline_api::qos::rules;
use loadline_api::{Error, metrics, recommendation};
use loadline_core::doctor::{Definition, Failed, KINDS, Lease, Node, Server, Why, Workload};
use loadline_core::ledger::Sample;
use loadline_core::load::recommend::Recommendation;
use loadline_core::object::Key;
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::policy::Policy;
use std::time::Duration;
use tokio::time::timeout;

/// Objects per page.
const PAGE: usize = 500;
/// Half of what a header without parts of a second leaves out.
const HALF: SignedDuration = SignedDuration::from_millis(500);

const VERSION: Resource = Resource::new("", "", "version", "");
const DAEMON_SETS: Resource = Resource::new("apps", "v1", "daemonsets", "DaemonSet");

/// Reads one cluster.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub connection: Connection,
    /// How long a read may take.
    pub deadline: Duration,
}

type Read<T> = Result<T, Failed>;

impl Reader {
    pub async fn server(&self) -> Read<Server> {
        let asked = Timestamp::now();
        let ask = Ask::read(Verb::Get, VERSION, "/version".to_owned());
        let answer = self.connection.answer(ask, self.deadline).await.map_err(failed)?;
        let half = Timestamp::now().duration_since(asked) / 2;
        let ours = asked.checked_add(half).unwrap_or(asked);
        let clock = date(answer.headers()).map(|theirs| (theirs, ours));
        let tree = tree(answer.body(), Skip::NOTHING)?;
        facts::server(&tree, clock).map_err(|error| unreadable(&error))
    }

    pub async fn nodes(&self) -> Read<Vec<Node>> {
        self.list(NODES, facts::NODES, |tree| facts::node(tree).map(|(node, _)| node)).await
    }

    pub async fn metrics(&self) -> Read<Vec<(String, Sample)>> {
        let read = self.list(NODE_METRICS, facts::LISTED, metrics::node).await;
        // An APIService behind which nobody is answers so.
        read.map_err(|failed| {
            let away = failed.message.contains("unable to handle the request");
            if away { Failed { why: Why::Missing, ..failed } } else { failed }
        })
    }

    pub async fn leases(&self) -> Read<Vec<Lease>> {
        self.list(LEASES, facts::LISTED, |tree| facts::lease(tree).map(|(lease, _)| lease)).await
    }

    pub async fn recommendations(&self) -> Read<Vec<Recommendation>> {
        let read = |tree: &Tree<'_>| recommendation::read(tree).map(|(one, _)| one);
        Ok(self.list(RECOMMENDATIONS, facts::LISTED, read).await?.into_iter().flatten().collect())
    }

    pub async fn lines(&self) -> Read<Policy> {
        let nodes = self.list(NODE_QOS, facts::LISTED, |tree| rules::node_qos(tree).map(|(one, _)| one));
        let actions = self.list(ACTIONS, facts::LISTED, |tree| rules::action(tree).map(|(one, _)| one));
        let (nodes, actions) = tokio::join!(nodes, actions);
        Ok(Policy::new(Catalogue::default(), &nodes?, actions?, &[]))
    }

    pub async fn workloads(&self) -> Read<Vec<Workload>> {
        let of = |resource: Resource| {
            let read = move |tree: &Tree<'_>| facts::workload(resource.kind, tree).map(|(one, _)| one);
            self.list(resource, facts::LISTED, read)
        };
        let (deployments, daemons) = tokio::join!(of(DEPLOYMENTS), of(DAEMON_SETS));
        Ok([deployments?, daemons?].concat())
    }

    /// Each by its name: all definitions of a cluster, with their schemas, are many megabytes.
    pub async fn definitions(&self) -> Read<Vec<Definition>> {
        let all = join_all(KINDS.iter().map(|kind| self.definition(kind.name))).await;
        let found: Read<Vec<Option<Definition>>> = all.into_iter().collect();
        Ok(found?.into_iter().flatten().collect())
    }

    async fn definition(&self, name: &str) -> Read<Option<Definition>> {
        let ask = Ask::read(Verb::Get, DEFINITIONS, DEFINITIONS.object(&Key::new("", name)));
        match self.connection.call(ask, self.deadline).await {
            Ok(text) => {
                let tree = tree(&text, facts::DEFINITION)?;
                facts::definition(&tree).map(|(one, _)| Some(one)).map_err(|error| unreadable(&error))
            }
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failed(failure)),
        }
    }

    /// Creates what nobody keeps, to be told something.
    pub async fn review(&self, of: Resource, body: Vec<u8>) -> Read<bool> {
        let ask = Ask {
            call: Call { verb: Verb::Create, resource: of, subresource: "" },
            method: Method::POST,
            body,
            ..Ask::read(Verb::Create, of, of.collection(""))
        };
        let text = self.connection.call(ask, self.deadline).await.map_err(failed)?;
        let tree = tree(&text, Skip::NOTHING)?;
        facts::allowed(&tree).ok_or_else(|| unreadable(&"the review has no status"))
    }

    /// All objects of a kind. One that cannot be read is left out.
    async fn list<T>(
        &self,
        of: Resource,
        skip: Skip,
        read: impl Fn(&Tree<'_>) -> Result<T, Error>,
    ) -> Read<Vec<T>> {
        let pages = self.pages(of, skip, read);
        timeout(self.deadline, pages).await.unwrap_or_else(|_| {
            let message = format!("not all of {} within {:?}", of.plural, self.deadline);
            Err(Failed { why: Why::Failed, message })
        })
    }

    async fn pages<T>(
        &self,
        of: Resource,
        skip: Skip,
        read: impl Fn(&Tree<'_>) -> Result<T, Error>,
    ) -> Read<Vec<T>> {
        let (path, mut query, mut out) = (of.collection(""), format!("?limit={PAGE}"), Vec::new());
        loop {
            let ask = Ask::read(Verb::List, of, format!("{path}{query}"));
            let text = match self.connection.call(ask, self.deadline).await {
                Ok(text) => text,
                // It changed too much between two pages: once more, in one piece.
                Err(failure) if failure.cause == Cause::Expired && !query.is_empty() => {
                    (query, out) = (String::new(), Vec::new());
                    continue;
                }
                Err(failure) => return Err(failed(failure)),
            };
            let page = tree(&text, skip)?;
            for item in page["items"].as_array().into_iter().flatten() {
                match read(item) {
                    Ok(one) => out.push(one),
                    Err(error) => tracing::debug!(%error, "left out"),
                }
            }
            match page["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => {
                    let token: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
                    query = format!("?limit={PAGE}&continue={token}");
                }
                _ => return Ok(out),
            }
        }
    }
}

fn tree(text: &Bytes, skip: Skip) -> Read<Tree<'_>> {
    Tree::parse(text, skip).map_err(|error| unreadable(&error))
}

fn unreadable(error: &dyn std::fmt::Display) -> Failed {
    Failed { why: Why::Failed, message: format!("the answer cannot be read: {error}") }
}

pub(super) fn failed(failure: Failure) -> Failed {
    let why = match failure.cause {
        Cause::Unauthorized | Cause::Forbidden => Why::Denied,
        Cause::NotFound => Why::Missing,
        _ => Why::Failed,
    };
    Failed { why, message: failure.message }
}

/// What the clock of a server said, in the middle of the second.
fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(DATE)?.to_str().ok()?;
    rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?.checked_add(HALF).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_date_of_an_answer_is_a_clock() {
        let with = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(DATE, HeaderValue::from_static(text));
            date(&headers).map(|at| at.to_string())
        };
        assert_eq!(with("Wed, 01 Jan 2025 12:00:00 GMT").as_deref(), Some("2025-01-01T12:00:00.5Z"));
        assert_eq!(with("soon"), None);
        assert_eq!(date(&HeaderMap::new()), None);
    }
}

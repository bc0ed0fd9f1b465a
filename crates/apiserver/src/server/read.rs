//! Reading: one object, or a list of them.

use super::encode::{Encoder, Form};
use super::options::invalid_options;
use super::{Answer, ApiServer, Call, convert};
use crate::schema::decode;
use crate::select::{Fields, parse_labels};
use crate::status::{FieldError, Status};
use crate::store::{Object, Page, Query};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loadline_machinery::label::Selector;
use serde_json::{Value, json};
use std::sync::Arc;

/// Label and field selectors of one request.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    labels: Selector,
    fields: Fields,
}

impl Selection {
    /// Whether it selects everything.
    pub(super) fn is_empty(&self) -> bool {
        self.labels.requirements().is_some_and(<[_]>::is_empty) && self.fields.is_empty()
    }

    /// Whether it selects this object.
    pub(super) fn matches(&self, object: &Object) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}

impl Call {
    /// The selectors of the request; a named object is selected by its name.
    pub(super) fn selection(&self) -> Result<Selection, Status> {
        let labels = self.query.get("labelSelector").unwrap_or_default();
        let labels = parse_labels(labels).map_err(Status::bad_request)?;
        let fields = self.query.get("fieldSelector").unwrap_or_default();
        let known: Vec<String> = self.resource.fields.to_vec();
        let fields = if self.resource.group == "events.k8s.io" {
            let renamed: Vec<String> =
                fields.split(',').map(|f| convert::field_name(&self.resource, f)).collect();
            Fields::parse(&renamed.join(","), &known, false)
        } else {
            Fields::parse(fields, &known, self.resource.custom.is_some())
        };
        let mut fields = fields.map_err(Status::bad_request)?;
        if let Some(name) = &self.target.name {
            fields.require_name(name);
        }
        Ok(Selection { labels, fields })
    }
}

impl ApiServer {
    pub(super) fn encoder(&self, call: &Call) -> Encoder {
        Encoder { resource: call.resource.clone(), form: call.form, headers_sent: false, now: self.now() }
    }

    pub(super) fn existing(&self, call: &Call) -> Result<Arc<Object>, Status> {
        let found = self.0.store.get(&call.resource.table, &call.key());
        found.ok_or_else(|| Status::not_found(call.resource.subject(), call.name()))
    }

    pub(super) fn get(&self, call: &Call) -> Result<Answer, Status> {
        let asked = parse_revision(call.query.get("resourceVersion").unwrap_or_default())
            .map_err(|why| Status::new(500, "", why))?;
        let newest = self.0.store.revision();
        if asked > newest {
            return Err(too_large(asked, newest));
        }
        let object = self.existing(call)?;
        call.form.check(false, &call.resource)?;
        Ok(Answer::Json(200, self.encoder(call).one(&object)))
    }

    /// Logs are not kept: pods here are simulated.
    pub(super) fn log(&self, call: &Call) -> Result<Answer, Status> {
        let pod = self.existing(call)?.value();
        // Upstream has nobody to ask about a pod without a node.
        if pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
            return Ok(Answer::Bare(204));
        }
        Ok(Answer::Text(200, String::new()))
    }

    pub(super) fn list(&self, call: &Call) -> Result<Answer, Status> {
        call.query.number("timeoutSeconds")?;
        if call.query.get("sendInitialEvents").is_some() {
            let why = "sendInitialEvents is forbidden for list";
            return Err(invalid_options("ListOptions", &[FieldError::forbidden("sendInitialEvents", why)]));
        }
        let (page, meta) = self.page(call)?;
        call.form.check(true, &call.resource)?;
        Ok(Answer::Json(200, self.encoder(call).list(&page.objects, &meta)))
    }

    /// Everything the request selects, as it is now.
    pub(super) fn matching(&self, call: &Call, selection: &Selection) -> Result<Page, Status> {
        let keep = |object: &Object| selection.matches(object);
        let query = Query {
            namespace: call.namespace(),
            keep: if selection.is_empty() { None } else { Some(&keep) },
            indexed: selection.fields.indexed(),
            ..Query::default()
        };
        let page = self.0.store.list(&call.resource.table, &query);
        page.map_err(|_| Status::internal("the present is always covered by the log"))
    }

    fn page(&self, call: &Call) -> Result<(Page, Value), Status> {
        let selection = call.selection()?;
        let limit = call.query.number("limit")?.unwrap_or(0).max(0);
        // What upstream has in its cache it hands out whole.
        let limit = if call.query.get("resourceVersion") == Some("0") { 0 } else { limit };
        let newest = self.0.store.revision();
        let start = Start::of(call, newest, limit)?;
        let keep = |object: &Object| selection.matches(object);
        let query = Query {
            namespace: call.namespace(),
            after: start.after.as_deref(),
            at: start.at,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            keep: if selection.is_empty() { None } else { Some(&keep) },
            indexed: selection.fields.indexed(),
        };
        let page = self.0.store.list(&call.resource.table, &query).map_err(|too_old| {
            if start.after.is_some() {
                expired_continue(call, newest)
            } else {
                Status::expired(format!(
                    "The resourceVersion for the provided list is too old: {} ({})",
                    start.at.unwrap_or(0),
                    too_old.oldest
                ))
            }
        })?;
        let mut meta = json!({"resourceVersion": page.revision.to_string()});
        if call.resource.custom.is_some() && call.form == Form::Plain {
            // Lists of custom resources are maps upstream, which leave nothing out.
            meta["continue"] = json!("");
        }
        if let Some(last) = &page.last {
            meta["continue"] = json!(Token { revision: page.revision, start: last.to_string() }.encode());
            if let Some(remaining) = page.remaining {
                meta["remainingItemCount"] = json!(remaining);
            }
        }
        Ok((page, meta))
    }
}

/// Where a list starts: at which revision, after which key.
struct Start {
    at: Option<u64>,
    after: Option<String>,
}

impl Start {
    fn of(call: &Call, newest: u64, limit: i64) -> Result<Self, Status> {
        let version = call.query.get("resourceVersion").unwrap_or_default();
        let rule = call.query.get("resourceVersionMatch").unwrap_or_default();
        if let Some(token) = call.query.get("continue") {
            if !version.is_empty() && version != "0" {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = Token::decode(token)?;
            let at = if token.revision == 0 { None } else { Some(token.revision) };
            return Ok(Self { at, after: Some(token.start) });
        }
        check_match(call, version, rule)?;
        let revision = parse_revision(version)
            .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
        if revision > newest {
            return Err(too_large(revision, newest));
        }
        // From before there was a rule: a revision with a limit means exactly that revision.
        let exact = rule == "Exact" || rule.is_empty() && limit > 0 && revision > 0;
        let at = exact.then_some(revision);
        Ok(Self { at, after: None })
    }
}

/// A revision as sent by clients; empty is 0, which means any.
///
/// # Errors
/// Upstream's words; which status they go into depends on the verb.
pub(super) fn parse_revision(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        FieldError::invalid("resourceVersion", &json!(text), why).to_string()
    })
}

fn check_match(_call: &Call, version: &str, rule: &str) -> Result<(), Status> {
    let field = "resourceVersionMatch";
    let error = match rule {
        "" => return Ok(()),
        _ if version.is_empty() => FieldError::forbidden(
            field,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        "Exact" if version == "0" => FieldError::forbidden(
            field,
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        "Exact" | "NotOlderThan" => return Ok(()),
        other => FieldError::not_supported(field, &json!(other), &["Exact", "NotOlderThan", ""]),
    };
    Err(invalid_options("ListOptions", &[error]))
}

/// A revision from the future: the client may know more than this server does yet.
pub(super) fn too_large(asked: u64, newest: u64) -> Status {
    let mut status = Status::new(
        504,
        "Timeout",
        format!("Timeout: Too large resource version: {asked}, current: {newest}"),
    )
    .with_cause("ResourceVersionTooLarge", "Too large resource version", "");
    if let Some(details) = &mut status.details {
        details.retry_after_seconds = Some(1);
    }
    status
}

fn expired_continue(_call: &Call, _newest: u64) -> Status {
    Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without \
         the continue parameter.",
    )
}

/// What a `continue` token carries. Opaque to clients; the layout is upstream's.
struct Token {
    revision: u64,
    start: String,
}

impl Token {
    fn encode(&self) -> String {
        // The start is exclusive here and inclusive upstream, which appends a zero byte to the last key.
        let text =
            json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": format!("{}\u{0}", self.start)});
        URL_SAFE_NO_PAD.encode(text.to_string())
    }

    fn decode(token: &str) -> Result<Self, Status> {
        let bad = |why: &str| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|e| bad(&e.to_string()))?;
        let value = decode::untyped(&bytes).map_err(|e| bad(&e.0))?.value;
        if value["v"] != "meta.k8s.io/v1" {
            let version = value["v"].as_str().unwrap_or_default();
            return Err(bad(&format!("server does not recognize this encoded version {version}")));
        }
        let start = value["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(bad("encoded start key empty (version meta.k8s.io/v1)"));
        }
        let revision = value["rv"].as_u64().ok_or_else(|| bad("incorrect encoded start resourceVersion"))?;
        Ok(Self { revision, start: start.trim_end_matches('\u{0}').to_owned() })
    }
}

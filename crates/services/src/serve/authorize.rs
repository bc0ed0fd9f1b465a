//! Who may ask? Whoever shows a token of somebody who may do the like with the objects themselves.
//!
//! As Kubernetes' own components do it: the API server says whose token it is (`TokenReview`), and whether they may
//! (`SubjectAccessReview`). Nothing is remembered; this is for questions of people, not for what is asked all the time.

use crate::cluster::connection::{Ask, Call, Connection, Media, Verb};
use crate::cluster::resource::Resource;
use http::{HeaderMap, Method, header};
use loadline_core::object::Key;
use serde_json::{Value, json};
use std::time::Duration;

const TOKEN_REVIEWS: Resource = Resource::new("authentication.k8s.io", "v1", "tokenreviews", "TokenReview");
const ACCESS_REVIEWS: Resource =
    Resource::new("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview");
/// How long one review may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// Asks the API server who may.
#[derive(Clone, Debug)]
pub struct Authorizer(Connection);

/// Why somebody is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No token, or one nobody knows.
    Unknown,
    /// They may not; what the API server says about that.
    Forbidden(String),
    /// It could not be found out.
    Failed(String),
}

impl Authorizer {
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self(connection)
    }

    /// May whoever sent these headers do that with the object?
    ///
    /// # Errors
    /// Why not.
    pub async fn admit(
        &self,
        headers: &HeaderMap,
        verb: &str,
        of: Resource,
        key: &Key,
    ) -> Result<(), Refusal> {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = given.and_then(|given| given.strip_prefix("Bearer ")).map(str::trim);
        let token = token.filter(|token| !token.is_empty()).ok_or(Refusal::Unknown)?;
        let who = self.review(TOKEN_REVIEWS, json!({"token": token})).await?;
        if who["authenticated"] != true {
            return Err(Refusal::Unknown);
        }
        let (user, wanted) = (
            &who["user"],
            json!({"group": of.group, "version": of.version,
            "resource": of.plural, "namespace": &*key.namespace, "name": &*key.name, "verb": verb}),
        );
        let mut asks = json!({"user": user["username"], "resourceAttributes": wanted});
        for field in ["groups", "uid", "extra"] {
            if !user[field].is_null() {
                asks[field] = user[field].clone();
            }
        }
        let answer = self.review(ACCESS_REVIEWS, asks).await?;
        if answer["allowed"] == true {
            return Ok(());
        }
        Err(Refusal::Forbidden(answer["reason"].as_str().unwrap_or_default().to_owned()))
    }

    /// The status of a review.
    async fn review(&self, of: Resource, spec: Value) -> Result<Value, Refusal> {
        let body = json!({"apiVersion": of.api_version(), "kind": of.kind, "spec": spec});
        let ask = Ask {
            call: Call { verb: Verb::Create, resource: of, subresource: "" },
            method: Method::POST,
            path: of.collection(""),
            content_type: "application/json",
            accept: Media::Json,
            body: body.to_string().into_bytes(),
        };
        let answer =
            self.0.call(ask, DEADLINE).await.map_err(|failure| Refusal::Failed(failure.to_string()))?;
        let mut review: Value =
            serde_json::from_slice(&answer).map_err(|error| Refusal::Failed(error.to_string()))?;
        Ok(review["status"].take())
    }
}

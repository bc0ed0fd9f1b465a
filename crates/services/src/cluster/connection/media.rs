//! What is a body written in?

use http::{HeaderMap, header};
use loadline_api::json::Skip;
use loadline_api::protobuf::{self, Envelope};
use serde::de::DeserializeOwned;

/// How objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    Json,
    /// Kubernetes' own; only built-in kinds have it.
    Protobuf,
}

impl Media {
    /// What to accept for an answer in this: JSON will do, if the server has nothing else.
    pub(super) fn accepted(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf, application/json",
        }
    }

    /// What an answer is in.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let told = headers.get(header::CONTENT_TYPE).and_then(|told| told.to_str().ok()).unwrap_or_default();
        if told.starts_with(protobuf::MEDIA) { Self::Protobuf } else { Self::Json }
    }
}

/// What a `Status` says, whatever it is written in.
pub(super) fn status<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    if !body.starts_with(protobuf::MAGIC) {
        return serde_json::from_slice(body).ok();
    }
    let tree = Envelope::read(body).and_then(|envelope| envelope.object(Skip::NOTHING)).ok()?;
    serde_json::from_value((&tree).into()).ok()
}

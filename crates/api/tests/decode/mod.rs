//! One watch event, decoded as it is and as it was: a pod of a Deployment, nearly 10 KB of JSON.
#![allow(dead_code, reason = "decoded to be counted, not to be looked at")]

pub mod before;

use kube::api::WatchEvent;
use loadline_api::json::{Skip, Tree};
use loadline_api::pod::{self, Pod};
use loadline_api::{Error, object, protobuf};
use loadline_core::object::Meta;
use serde::de::{Deserialize, DeserializeSeed, Deserializer};
use serde_json::Value;

/// As the API server sends it.
pub const EVENT: &[u8] = include_bytes!("pod.json");

/// The same in protobuf (`cargo xtask codegen records`).
pub const FRAME: &[u8] = include_bytes!("pod.pb");

/// What a watch keeps of the pod.
#[derive(Clone)]
pub struct Kept {
    pub meta: Meta,
    pub pod: Result<Pod, Error>,
}

impl<'de> Deserialize<'de> for Kept {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let object = pod::SKIP.deserialize(from)?;
        Ok(Self { meta: object::meta(&object), pod: pod::read(&object).map(|(pod, _)| pod) })
    }
}

/// Text to facts.
pub fn now(event: &[u8]) -> Option<Kept> {
    match serde_json::from_slice(event) {
        Ok(WatchEvent::Modified(kept)) => Some(kept),
        _ => None,
    }
}

/// Protobuf to facts.
pub fn framed(frame: &[u8]) -> Option<Kept> {
    let event = protobuf::Event::read(frame).ok()?;
    let object = event.object.object(pod::SKIP).ok()?;
    Some(Kept { meta: object::meta(&object), pod: pod::read(&object).map(|(pod, _)| pod) })
}

/// A tree of owned values, as it was.
#[derive(Clone)]
pub struct Owned(pub Value);

impl<'de> Deserialize<'de> for Owned {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        before::POD.deserialize(from).map(Self)
    }
}

/// Text to a tree of owned values: half of what was done. The other half made facts of the tree, as is done now.
pub fn then(event: &[u8]) -> Option<Owned> {
    match serde_json::from_slice(event) {
        Ok(WatchEvent::Modified(owned)) => Some(owned),
        _ => None,
    }
}

/// The tree of the pod in an event.
pub fn tree(event: &[u8], skip: Skip) -> Option<Tree<'_>> {
    let text = std::str::from_utf8(event).ok()?;
    let object = text.strip_prefix("{\"type\":\"MODIFIED\",\"object\":")?.trim_end().strip_suffix('}')?;
    Tree::parse(object.as_bytes(), skip).ok()
}

//! How does an object come out of a list or a watch? As facts: nothing else is kept of its text.

use super::Watched;
use loadline_api::Error;
use loadline_api::json::Tree;
use loadline_api::object::meta;
use loadline_core::object::Meta;
use serde::de::{DeserializeSeed, Deserializer};
use std::marker::PhantomData;

/// An object as it comes out of a list or a watch: facts already.
pub(in crate::cluster) struct Object<W: Watched> {
    pub meta: Meta,
    /// As the server writes it.
    pub revision: String,
    pub facts: Result<W::Facts, Error>,
    kind: PhantomData<fn() -> W>,
}

// What `kube` wants of what it decodes; nothing is cloned.
impl<W: Watched> Clone for Object<W> {
    fn clone(&self) -> Self {
        Self {
            meta: self.meta.clone(),
            revision: self.revision.clone(),
            facts: self.facts.clone(),
            kind: PhantomData,
        }
    }
}

impl<W: Watched> Object<W> {
    /// What is kept of it.
    pub fn new(object: &Tree<'_>) -> Self {
        let revision = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        Self { meta: meta(object), revision, facts: W::read(object), kind: PhantomData }
    }
}

impl<'de, W: Watched> serde::Deserialize<'de> for Object<W> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::new(&W::SKIP.deserialize(from)?))
    }
}

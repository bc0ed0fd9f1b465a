//! What does a server say of objects? Pages of lists, events of watches and single objects, in JSON or in protobuf.
//!
//! Built-in kinds are asked for in protobuf, as stock components do: it is less work for the server and for us. Servers
//! answer in JSON where they have nothing else, and all of it is read into the same facts.

use super::{Object, Watched};
use crate::cluster::connection::Media;
use kube::api::WatchEvent;
use kube::core::ObjectList;
use loadline_api::json::{Skip, Tree};
use loadline_api::protobuf::{self, Envelope, Kind, List};

/// Is that how the kind is asked for?
pub(in crate::cluster) fn media<W: Watched>() -> Media {
    let (group, version) = (W::RESOURCE.group, W::RESOURCE.version);
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    if Kind::find(&api_version, W::RESOURCE.kind).is_some() { Media::Protobuf } else { Media::Json }
}

/// One page of a list.
pub(super) struct Page<W: Watched> {
    pub items: Vec<Object<W>>,
    /// How to ask for the next one, if there is one.
    pub next: Option<String>,
    /// The revision the list is at; empty if it does not say.
    pub revision: String,
}

impl<W: Watched> Page<W> {
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let page = if body.starts_with(protobuf::MAGIC) { Self::protobuf(body) } else { Self::json(body) };
        page.map(|page| Self { next: page.next.filter(|token| !token.is_empty()), ..page })
    }

    fn json(body: &[u8]) -> Result<Self, String> {
        let list: ObjectList<Object<W>> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let revision = list.metadata.resource_version.unwrap_or_default();
        Ok(Self { items: list.items, next: list.metadata.continue_, revision })
    }

    fn protobuf(body: &[u8]) -> Result<Self, String> {
        let list = List::read(body).map_err(|error| error.to_string())?;
        let items = list.items(W::SKIP).map(|item| item.map(|tree| Object::new(&tree)));
        let items = items.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        Ok(Self { items, next: Some(list.next.into_owned()), revision: list.revision.into_owned() })
    }
}

/// What a watch brings.
pub(super) enum Change<W: Watched> {
    Applied(Object<W>),
    Deleted(Object<W>),
    /// Nothing changed up to this revision.
    Bookmark(String),
    /// The server ends it, with a code and why.
    Ended {
        code: u16,
        why: String,
    },
}

impl<W: Watched> Change<W> {
    pub fn read(event: &[u8], media: Media) -> Result<Self, String> {
        match media {
            Media::Json => Self::json(event),
            Media::Protobuf => Self::protobuf(event),
        }
    }

    fn json(line: &[u8]) -> Result<Self, String> {
        let event: WatchEvent<Object<W>> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        Ok(match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Self::Applied(object),
            WatchEvent::Deleted(object) => Self::Deleted(object),
            WatchEvent::Bookmark(mark) => Self::Bookmark(mark.metadata.resource_version),
            WatchEvent::Error(status) => Self::Ended { code: status.code, why: status.message },
        })
    }

    fn protobuf(frame: &[u8]) -> Result<Self, String> {
        let event = protobuf::Event::read(frame).map_err(|error| error.to_string())?;
        let tree = |skip| event.object.object(skip).map_err(|error| error.to_string());
        Ok(match &*event.what {
            "ADDED" | "MODIFIED" => Self::Applied(Object::new(&tree(W::SKIP)?)),
            "DELETED" => Self::Deleted(Object::new(&tree(W::SKIP)?)),
            "BOOKMARK" => Self::Bookmark(text(&tree(W::SKIP)?["metadata"]["resourceVersion"])),
            "ERROR" => {
                let status = tree(Skip::NOTHING)?;
                let code = status["code"].as_i64().and_then(|code| code.try_into().ok()).unwrap_or_default();
                Self::Ended { code, why: text(&status["message"]) }
            }
            other => return Err(format!("an event of type {other:?}")),
        })
    }
}

fn text(tree: &Tree<'_>) -> String {
    tree.as_str().unwrap_or_default().to_owned()
}

/// One object.
///
/// # Errors
/// When it is none.
pub(in crate::cluster) fn object<W: Watched>(body: &[u8]) -> Result<Object<W>, String> {
    if body.starts_with(protobuf::MAGIC) {
        let tree = Envelope::read(body).and_then(|envelope| envelope.object(W::SKIP));
        return tree.map(|tree| Object::new(&tree)).map_err(|error| error.to_string());
    }
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

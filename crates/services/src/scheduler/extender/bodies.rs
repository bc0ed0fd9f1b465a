//! How much of what others send is held at once? Whoever can reach the extender can send the largest request there may be on every
//! connection there may be: together they stay within one bound, and who would pass it is told to come again.

use super::server::LARGEST;
use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bytes of all requests that are read or answered: four of the longest, thousands of ordinary ones.
const ALL: usize = 4 * LARGEST;

/// The room there is.
#[derive(Clone, Debug)]
pub(super) struct Bodies(Arc<Semaphore>);

/// What a request takes of it; others' again once it is dropped.
#[derive(Debug, Default)]
pub(super) struct Room(Option<OwnedSemaphorePermit>);

/// Why a request was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("more than {LARGEST} bytes")]
    TooLarge,
    #[error("too many requests at once")]
    Busy,
    #[error(transparent)]
    Broken(#[from] axum::Error),
}

impl Default for Bodies {
    fn default() -> Self {
        Self::of(ALL)
    }
}

impl Bodies {
    pub fn of(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// Reads a request. Room is taken for what has come, not for what is announced, so that announcing costs others nothing; and it
    /// is not waited for, as many that are half there would wait for each other.
    pub async fn read(&self, mut body: Body) -> Result<(Bytes, Room), Unread> {
        let (mut bytes, mut room) = (Vec::new(), Room::default());
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            if bytes.len() + data.len() > LARGEST {
                return Err(Unread::TooLarge);
            }
            let more = u32::try_from(data.len()).map_err(|_| Unread::TooLarge)?;
            let more = self.0.clone().try_acquire_many_owned(more).map_err(|_| Unread::Busy)?;
            match &mut room.0 {
                Some(all) => all.merge(more),
                none => *none = Some(more),
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes.into(), room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_that_is_held_stays_within_the_room_there_is_and_is_given_back() {
        let bodies = Bodies::of(10);
        let (one, room) = bodies.read(Body::from("1234567")).await.unwrap();
        assert_eq!(one, "1234567");
        assert!(matches!(bodies.read(Body::from("1234")).await, Err(Unread::Busy)));
        let (_, other) = bodies.read(Body::from("123")).await.unwrap();
        assert!(matches!(bodies.read(Body::from("1")).await, Err(Unread::Busy)));
        assert_eq!(bodies.read(Body::empty()).await.unwrap().0, "");
        drop(room);
        assert_eq!(bodies.read(Body::from("1234567")).await.unwrap().0, "1234567");
        drop(other);
        assert_eq!(bodies.0.available_permits(), 10, "what was refused keeps nothing either");
    }

    #[tokio::test]
    async fn what_is_longer_than_a_request_may_be_is_not_read() {
        let bodies = Bodies::default();
        let (longest, _room) = bodies.read(Body::from(vec![b' '; LARGEST])).await.unwrap();
        assert_eq!(longest.len(), LARGEST);
        let refused = bodies.read(Body::from(vec![b' '; LARGEST + 1])).await;
        assert!(matches!(refused, Err(Unread::TooLarge)), "{refused:?}");
    }
}

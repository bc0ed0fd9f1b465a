//! Which events does a stream bring? Each whole, whatever pieces they come in.
//!
//! In JSON an event is a line. In protobuf its length stands before it, in four bytes, the highest first.

use crate::cluster::connection::{Media, chain};
use bytes::{Buf as _, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;

/// The longest event, in bytes. No object is that large.
const LONGEST: usize = 64 << 20;
/// How many bytes say how long an event is.
const LENGTH: usize = 4;

/// The events of a body.
pub(super) struct Frames<B> {
    body: B,
    media: Media,
    /// What came after the last event.
    rest: BytesMut,
    /// How much of that has been looked through for the end of a line.
    looked: usize,
}

impl<B: Body<Data = Bytes, Error: std::error::Error> + Unpin> Frames<B> {
    pub fn new(body: B, media: Media) -> Self {
        Self { body, media, rest: BytesMut::new(), looked: 0 }
    }

    /// The next event; none at the end. Half an event at the end is none: nobody knows how it goes on.
    ///
    /// May be dropped while it waits; nothing is lost.
    pub async fn next(&mut self) -> Option<Result<Bytes, String>> {
        loop {
            if let Some(event) = self.take() {
                if event.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Some(Ok(event));
            }
            if self.rest.len() > LONGEST || self.length().is_some_and(|length| length > LONGEST) {
                return Some(Err(format!("an event of more than {LONGEST} bytes")));
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        self.rest.extend_from_slice(&data);
                    }
                }
                Err(error) => return Some(Err(format!("the connection broke: {}", chain(&error)))),
            }
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        match self.media {
            Media::Json => self.line(),
            Media::Protobuf => {
                let length = self.length().filter(|length| self.rest.len() - LENGTH >= *length)?;
                self.rest.advance(LENGTH);
                Some(self.rest.split_to(length).freeze())
            }
        }
    }

    /// How long the next event is, if it says so and that is known already.
    fn length(&self) -> Option<usize> {
        let length = *self.rest.first_chunk::<LENGTH>().filter(|_| self.media == Media::Protobuf)?;
        usize::try_from(u32::from_be_bytes(length)).ok()
    }

    fn line(&mut self) -> Option<Bytes> {
        let Some(at) = self.rest[self.looked..].iter().position(|byte| *byte == b'\n') else {
            self.looked = self.rest.len();
            return None;
        };
        let line = self.rest.split_to(self.looked + at + 1).freeze();
        self.looked = 0;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// What is read of a stream that comes in pieces.
    fn read(stream: &[u8], cuts: &[usize], media: Media) -> Vec<Result<Vec<u8>, String>> {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts
            .windows(2)
            .map(|piece| Bytes::copy_from_slice(&stream[piece[0]..piece[1]]))
            .map(|piece| Ok::<_, Infallible>(Frame::data(piece)))
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut frames = Frames::new(StreamBody::new(stream::iter(pieces)), media);
            let mut out = Vec::new();
            while let Some(event) = frames.next().await {
                let failed = event.is_err();
                out.push(event.map(|event| event.to_vec()));
                if failed {
                    break;
                }
            }
            out
        })
    }

    proptest! {
        #[test]
        fn lines_are_whole_however_they_are_cut(text in "[ab\n]{0,40}", cuts in prop::collection::vec(0_usize..50, 0..6)) {
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let expected: Vec<_> =
                whole.split('\n').filter(|line| !line.is_empty()).map(|line| Ok(format!("{line}\n").into_bytes())).collect();
            prop_assert_eq!(read(text.as_bytes(), &cuts, Media::Json), expected);
        }

        #[test]
        fn events_with_a_length_are_whole_however_they_are_cut(
            events in prop::collection::vec("[ab\n]{1,300}", 0..4),
            cuts in prop::collection::vec(0_usize..1000, 0..6),
            missing in 0_usize..8,
        ) {
            let mut stream = Vec::new();
            for event in &events {
                stream.extend(u32::try_from(event.len()).unwrap().to_be_bytes());
                stream.extend(event.as_bytes());
            }
            // What is cut off at the end is no event.
            let missing = missing.min(events.last().map_or(0, String::len));
            stream.truncate(stream.len() - missing);
            let complete = events.len() - usize::from(missing > 0);
            let expected: Vec<_> = events[..complete]
                .iter()
                .filter(|event| !event.bytes().all(|byte| byte == b'\n'))
                .map(|event| Ok(event.clone().into_bytes()))
                .collect();
            prop_assert_eq!(read(&stream, &cuts, Media::Protobuf), expected);
        }
    }

    #[test]
    fn an_event_that_says_it_is_too_long_is_not_waited_for() {
        let told = read(&[0xff, 0xff, 0xff, 0xff, 1], &[], Media::Protobuf);
        assert!(matches!(&told[..], [Err(why)] if why.contains("more than")), "{told:?}");
    }
}

//! Which lines does a stream bring? One event each, whole, whatever pieces they come in.

use crate::cluster::connection::chain;
use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;

/// The longest line, in bytes. No object is that large.
const LONGEST: usize = 64 << 20;

/// The lines of a body.
pub(super) struct Lines<B> {
    body: B,
    /// What came after the last line.
    rest: BytesMut,
    /// How much of that has been looked through.
    looked: usize,
}

impl<B: Body<Data = Bytes, Error: std::error::Error> + Unpin> Lines<B> {
    pub fn new(body: B) -> Self {
        Self { body, rest: BytesMut::new(), looked: 0 }
    }

    /// The next line that is not empty; none at the end. Half a line at the end is none: nobody knows how it goes on.
    ///
    /// May be dropped while it waits; nothing is lost.
    pub async fn next(&mut self) -> Option<Result<Bytes, String>> {
        loop {
            if let Some(line) = self.take() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Some(Ok(line));
            }
            if self.rest.len() > LONGEST {
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

    async fn read(text: &str, cuts: &[usize]) -> Vec<String> {
        let mut pieces = Vec::new();
        let mut at = 0;
        for cut in cuts.iter().map(|cut| cut % (text.len() + 1)).filter(|cut| *cut >= at).collect::<Vec<_>>()
        {
            if cut >= at {
                pieces.push(text[at..cut].to_owned());
                at = cut;
            }
        }
        pieces.push(text[at..].to_owned());
        let frames = pieces.into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
        let mut lines = Lines::new(StreamBody::new(stream::iter(frames)));
        let mut out = Vec::new();
        while let Some(line) = lines.next().await {
            out.push(String::from_utf8(line.unwrap().to_vec()).unwrap().trim_end().to_owned());
        }
        out
    }

    proptest! {
        #[test]
        fn lines_are_whole_however_they_are_cut(text in "[ab\n]{0,40}", cuts in prop::collection::vec(0_usize..50, 0..6)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let expected: Vec<&str> = whole.split('\n').filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(runtime.block_on(read(&text, &cuts)), expected);
        }
    }
}

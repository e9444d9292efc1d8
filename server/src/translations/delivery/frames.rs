//! The frames of gRPC messages: a byte that says whether the message is compressed, four bytes with its length, and the
//! message.

use bytes::{Buf as _, Bytes};

use crate::{errors::DeliveryError, translations::header::PREFIX};

/// Splits bytes into messages.
#[derive(Debug)]
pub(super) struct Frames {
    /// Maximum length of a message.
    limit: usize,
    state: FrameState,
}

#[derive(Debug)]
enum FrameState {
    /// Some of the bytes before a message.
    Prefix { prefix: [u8; PREFIX], read: usize },
    /// Bytes of a message that are to come.
    Message { left: usize },
}

/// A part of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FramePart {
    /// The message begins.
    Start { is_compressed: bool, length: usize },
    /// The next bytes of the message.
    Bytes(Bytes),
    /// The message is complete.
    End,
}

impl Frames {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: FrameState::start(),
        }
    }

    /// Returns whether no message has begun that is not complete.
    pub(super) fn is_between_messages(&self) -> bool {
        matches!(self.state, FrameState::Prefix { read: 0, .. })
    }

    /// Takes the next part from the bytes; `None` if it needs more of them.
    pub(super) fn next(&mut self, bytes: &mut Bytes) -> Result<Option<FramePart>, DeliveryError> {
        match &mut self.state {
            FrameState::Prefix { prefix, read } => {
                *read += fill(&mut prefix[*read..], bytes);
                if *read < PREFIX {
                    Ok(None)
                } else {
                    self.start().map(Some)
                }
            }
            FrameState::Message { left: 0 } => {
                self.state = FrameState::start();
                Ok(Some(FramePart::End))
            }
            FrameState::Message { .. } if bytes.is_empty() => Ok(None),
            FrameState::Message { left } => {
                let part = bytes.split_to(bytes.len().min(*left));
                *left -= part.len();
                Ok(Some(FramePart::Bytes(part)))
            }
        }
    }

    /// Reads the bytes before a message.
    fn start(&mut self) -> Result<FramePart, DeliveryError> {
        let FrameState::Prefix {
            prefix: [flag, length @ ..],
            ..
        } = self.state
        else {
            return Ok(FramePart::End);
        };
        if flag > 1 {
            return Err(DeliveryError::Flag { flag });
        }
        // A length of 32 bits fits a `usize`.
        let length = u32::from_be_bytes(length) as usize;
        let limit = self.limit;
        // The length is believed before a byte of the message has come, so that nothing is kept of
        // a message that is too long.
        if length > limit {
            let found = length;
            return Err(DeliveryError::TooLarge { found, limit });
        }
        self.state = FrameState::Message { left: length };
        Ok(FramePart::Start {
            is_compressed: flag == 1,
            length,
        })
    }
}

/// Takes bytes for the rest of a prefix, and returns how many there were.
fn fill(rest: &mut [u8], bytes: &mut Bytes) -> usize {
    let taken = rest.len().min(bytes.len());
    bytes.copy_to_slice(&mut rest[..taken]);
    taken
}

impl FrameState {
    fn start() -> Self {
        Self::Prefix {
            prefix: [0; PREFIX],
            read: 0,
        }
    }
}

/// Returns the bytes before an uncompressed message. Only messages within the limit, which has 32 bits, have some.
pub(super) fn prefix(length: usize) -> Bytes {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut bytes = [0; PREFIX];
    bytes[1..].copy_from_slice(&length.to_be_bytes());
    Bytes::copy_from_slice(&bytes)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const LIMIT: usize = 300;

    /// Returns the messages of some chunks of bytes, each with its compression flag.
    fn messages(
        chunks: impl IntoIterator<Item = Bytes>,
    ) -> Result<Vec<(bool, Vec<u8>)>, DeliveryError> {
        let mut frames = Frames::new(LIMIT);
        let mut messages = Vec::new();
        let mut message = (false, Vec::new());
        for mut chunk in chunks {
            while let Some(part) = frames.next(&mut chunk)? {
                match part {
                    FramePart::Start { is_compressed, .. } => message.0 = is_compressed,
                    FramePart::Bytes(bytes) => message.1.extend(bytes),
                    FramePart::End => messages.push(std::mem::take(&mut message)),
                }
            }
            assert!(chunk.is_empty());
        }
        if frames.is_between_messages() {
            Ok(messages)
        } else {
            Err(DeliveryError::Truncated)
        }
    }

    fn written(messages: &[(bool, Vec<u8>)]) -> Vec<u8> {
        let frame = |(flag, message): &(bool, Vec<u8>)| {
            let mut frame = prefix(message.len()).to_vec();
            frame[0] = u8::from(*flag);
            frame.extend(message);
            frame
        };
        messages.iter().flat_map(frame).collect()
    }

    proptest! {
        #[test]
        fn messages_are_the_same_however_their_bytes_are_split(
            sent in vec((any::<bool>(), vec(any::<u8>(), 0..LIMIT)), 0..5),
            lengths in vec(0_usize..40, 0..100),
        ) {
            let mut bytes = Bytes::from(written(&sent));
            let mut chunks: Vec<_> =
                lengths.into_iter().map(|length| bytes.split_to(length.min(bytes.len()))).collect();
            chunks.push(bytes);
            prop_assert_eq!(messages(chunks).unwrap(), sent);
        }

        #[test]
        fn any_bytes_are_messages_or_an_error(chunks in vec(vec(any::<u8>(), 0..20), 0..20)) {
            let _ = messages(chunks.into_iter().map(Bytes::from));
        }
    }

    #[test]
    fn a_message_that_ends_early_is_refused() {
        let truncated = messages([Bytes::from_static(&[0, 0, 0, 0, 2, 1])]);
        assert!(matches!(truncated, Err(DeliveryError::Truncated)));
    }
}

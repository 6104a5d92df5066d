//! Large JSON: read, cut and decoded in chunks, so that only what is being worked on is held.
//!
//! A file is a sequence of documents ([`documents`]), read through a window ([`feed`]). Where
//! many objects follow each other, as the items of a list or as documents, the text is cut
//! where an object seems to begin, and the chunks are decoded side by side ([`relay`]). Parsing
//! a chunk shows whether the guess was right: it has to end exactly where the next one begins
//! ([`chunk`]). Where it was not, the text is cut anew.

mod chunk;
mod documents;
mod feed;
mod relay;
#[cfg(test)]
mod tests;

use super::Limits;
use super::error::SourceError;
use super::item::Outcome;
use super::reader::Reader;
use feed::Feed;

/// An object that was decoded.
pub(super) struct Found {
    /// The document within the file, from 1.
    pub document: u32,
    /// The line that it starts in, from 1.
    pub line: u32,
    pub outcome: Outcome,
}

/// Reads the file that begins with `text`.
pub(super) fn read(
    reader: Reader<'_>,
    text: String,
    limits: Limits,
) -> Result<Vec<Found>, Box<SourceError>> {
    documents::read(Feed::new(reader, text, limits))
}

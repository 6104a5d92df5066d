//! Large JSON: read, split and decoded in chunks, so that only the chunks in progress are held.
//! A serial scan would decode on one core; for the load time, see docs/src/speed.md.
//!
//! A file is a sequence of documents ([`documents`]), read through a window ([`feed`]). Consecutive
//! objects, as items of a list or as documents, are split where an object seems to begin, and the
//! chunks are decoded in parallel ([`relay`]). Parsing a chunk shows whether the guess was right:
//! it has to end exactly where the next one begins ([`chunk`]). If it was wrong, the text is split
//! again.

mod chunk;
mod documents;
mod feed;
mod relay;
#[cfg(test)]
mod tests;

use super::MemoryLimits;
use super::error::SourceError;
use super::item::DecodedItem;
use super::reader::TextReader;
use feed::TextFeed;

/// An object of a chunk with its place in the file.
pub(super) struct FoundObject {
    /// The document within the file, from 1.
    pub document: u32,
    /// The line in which it starts, from 1.
    pub line: u32,
    pub outcome: DecodedItem,
}

/// Reads the file that begins with `text`. With `is_checked`, unknown fields are reported.
pub(super) fn read(
    reader: TextReader<'_>,
    text: String,
    limits: MemoryLimits,
    is_checked: bool,
) -> Result<Vec<FoundObject>, Box<SourceError>> {
    documents::read(TextFeed::new(reader, text, limits, is_checked))
}

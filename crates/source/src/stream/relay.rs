//! Passes chunks through: splits them off the window, decodes them in parallel, and collects the
//! results in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use super::chunk::{Chunk, ChunkEnd, DecodedChunk, DecodedObject, Sequence};
use super::feed::TextFeed;
use crate::add;
use crate::error::SourceError;
use crate::reader::too_large;
use kubestep_api::intern::Symbol;

/// Consecutive objects that are being decoded.
pub(super) struct Relay<'f, 'p> {
    feed: &'f mut TextFeed<'p>,
    file: Symbol,
    sequence: Sequence,
    /// Whether no chunk was split off yet.
    is_first: bool,
    /// Number of documents before those of the next chunk.
    documents: u32,
    found: Vec<DecodedObject>,
}

/// A chunk that is being decoded.
struct Flight {
    chunk: Arc<Chunk>,
    done: Receiver<DecodedChunk>,
}

impl Flight {
    fn start(chunk: Chunk) -> Flight {
        let (sender, done) = sync_channel(1);
        let chunk = Arc::new(chunk);
        let flight = Flight { chunk: chunk.clone(), done };
        rayon::spawn(move || {
            // The receiver of a wrongly split chunk may have been dropped.
            let _result = sender.send(chunk.decode());
        });
        flight
    }

    fn wait(&self) -> DecodedChunk {
        // The sender is dropped only if decoding panicked, which ends the program.
        self.done.recv().unwrap_or_else(|_| self.chunk.decode())
    }
}

/// Decodes consecutive objects, up to the list's `]`, or up to a document that has to be parsed as
/// a whole. `documents` is the number of documents before, and is increased.
pub(super) fn decode(
    feed: &mut TextFeed<'_>,
    sequence: Sequence,
    documents: &mut u32,
) -> Result<Vec<DecodedObject>, Box<SourceError>> {
    let file = Symbol::new(feed.name());
    let is_first = sequence != Sequence::Documents;
    let mut relay =
        Relay { feed, file, sequence, is_first, documents: *documents, found: Vec::new() };
    let mut size = relay.feed.limits.chunk;
    while let Round::SplitAgain(next) = relay.round(size)? {
        size = next;
    }
    *documents = relay.documents;
    Ok(relay.found)
}

/// How a round of decoding ended.
enum Round {
    /// At the end of the objects.
    End,
    /// At a chunk that was split wrongly: the rest is split again, into chunks of this size.
    SplitAgain(usize),
}

impl Relay<'_, '_> {
    /// Decodes chunks of `size` bytes until one was split wrongly, or to the end.
    fn round(&mut self, size: usize) -> Result<Round, Box<SourceError>> {
        let at_once = 2 * rayon::current_num_threads() + 2;
        let marker = self.feed.marker();
        let before = if self.sequence == Sequence::Documents { '}' } else { ',' };
        let mut flights = VecDeque::new();
        let mut goes_on = true;
        loop {
            while goes_on && flights.len() < at_once {
                let Some(cut) = self.feed.cut(&marker, before, size)? else { break };
                goes_on = !cut.is_loose;
                flights.push_back(Flight::start(Chunk {
                    file: self.file,
                    text: cut.text,
                    place: cut.place,
                    sequence: self.sequence,
                    is_checked: self.feed.is_checked,
                    is_first: std::mem::take(&mut self.is_first),
                    is_last: cut.is_last,
                }));
            }
            let Some(flight) = flights.pop_front() else { return self.out_of_text(goes_on) };
            let done = flight.wait();
            self.feed.progress().check()?;
            let end = self.take_in(done.found, done.end)?;
            if !matches!(end, ChunkEnd::Full) {
                let used = flight.chunk.text.split_at(done.used);
                let place = flight.chunk.place.after(used.0);
                let later = flights.iter().map(|flight: &Flight| flight.chunk.text.as_str());
                self.feed.put_back(place, [used.1].into_iter().chain(later));
                if done.used == 0 && used.1.len() > self.feed.limits.object {
                    return Err(too_large(self.feed.name(), place.line as usize));
                }
                // Nothing of the chunk could be decoded, so it has to be larger.
                let larger = used.1.len().max(size) * 2;
                let size = if done.used == 0 { larger } else { self.feed.limits.chunk };
                return Ok(match end {
                    ChunkEnd::Short => Round::SplitAgain(size),
                    _ => Round::End,
                });
            }
        }
    }

    /// Collects the objects of a chunk; errors of earlier chunks were handled before.
    fn take_in(
        &mut self,
        found: Vec<DecodedObject>,
        end: ChunkEnd,
    ) -> Result<ChunkEnd, Box<SourceError>> {
        if let ChunkEnd::Wrong(mut error) = end {
            error.document += self.documents;
            return Err(error);
        }
        let progress = self.feed.progress();
        add(&progress.found, found.len());
        add(&progress.decoded, found.len());
        let before = self.documents;
        if self.sequence == Sequence::Documents {
            self.documents += found.len() as u32;
        }
        self.found.extend(found.into_iter().map(|mut decoded| {
            decoded.document += before;
            decoded
        }));
        Ok(end)
    }

    /// No text is left: valid at the end of documents, but not within a list.
    fn out_of_text(&mut self, goes_on: bool) -> Result<Round, Box<SourceError>> {
        if !goes_on {
            // The chunk had a loose end, which turned out to be a valid one.
            return Ok(Round::SplitAgain(self.feed.limits.chunk));
        }
        if self.sequence == Sequence::Documents {
            return Ok(Round::End);
        }
        let chunk = Chunk {
            file: self.file,
            text: String::new(),
            place: self.feed.piece().start,
            sequence: self.sequence,
            is_checked: self.feed.is_checked,
            is_first: false,
            is_last: true,
        };
        self.take_in(Vec::new(), chunk.decode().end).map(|_| Round::End)
    }
}

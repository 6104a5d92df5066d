//! Converts bytes to text, block by block: decompresses ([`super::unpack`]), checks the encoding,
//! and counts the progress.

use std::io::{self, ErrorKind, Read};

use super::error::SourceError;
use super::{Progress, add, unpack};

const BYTE_ORDER_MARK: &str = "\u{feff}";
/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// A file that is being read.
pub(super) struct TextReader<'p> {
    /// The path as it was named.
    pub name: String,
    input: Box<dyn Read + 'p>,
    is_packed: bool,
    progress: &'p Progress,
    block: Vec<u8>,
    /// Bytes at the start of `block` that are an incomplete character.
    partial: usize,
    /// Bytes of text so far, and line ends in them.
    offset: usize,
    lines: usize,
    /// Whether a truncated file is read up to its end without an error.
    may_be_cut: bool,
}

impl<'p> TextReader<'p> {
    /// Opens the file of that name.
    pub fn new(
        name: String,
        input: impl Read + 'p,
        progress: &'p Progress,
    ) -> Result<TextReader<'p>, Box<SourceError>> {
        let counted = CountingReader { input, progress };
        let (input, is_packed) = unpack::open(&name, counted, progress.limits().1)?;
        let (block, may_be_cut) = (vec![0; BLOCK], false);
        let (partial, offset, lines) = (0, 0, 0);
        Ok(TextReader {
            name,
            input,
            is_packed,
            progress,
            block,
            partial,
            offset,
            lines,
            may_be_cut,
        })
    }

    /// Accepts a truncated file from now on: it is read up to its end, be it within gzip's data or
    /// within a character.
    pub(crate) fn may_be_cut(&mut self) {
        self.may_be_cut = true;
    }

    /// Where the progress is reported.
    pub fn progress(&self) -> &'p Progress {
        self.progress
    }

    /// Appends the next block to `text`. `false` at the end.
    pub(crate) fn read_more(&mut self, text: &mut String) -> Result<bool, Box<SourceError>> {
        self.progress.check()?;
        let read = match self.input.read(&mut self.block[self.partial..]) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) if self.may_be_cut && error.kind() == ErrorKind::UnexpectedEof => 0,
            Err(error) if self.is_packed => {
                return Err(unpack::damaged(&self.name, "gzip data", &error));
            }
            Err(error) => return Err(cannot_read(&self.name, &error)),
        };
        let held = self.partial + read;
        let valid = match std::str::from_utf8(&self.block[..held]) {
            Ok(valid) => valid,
            Err(error) => {
                let valid = error.valid_up_to();
                if read == 0 && self.may_be_cut && error.error_len().is_none() {
                    return Ok(false);
                }
                if read == 0 || error.error_len().is_some() {
                    return Err(self.not_text(valid));
                }
                // The slice ends at a character boundary, so the default is never used.
                std::str::from_utf8(&self.block[..valid]).unwrap_or_default()
            }
        };
        let first = if self.offset == 0 { BYTE_ORDER_MARK } else { "" };
        text.push_str(valid.strip_prefix(first).unwrap_or(valid));
        add(&self.progress.bytes, valid.len());
        self.offset += valid.len();
        let (limit, _) = self.progress.limits();
        if self.offset as u64 > limit {
            return Err(too_long(&self.name, limit));
        }
        self.lines += line_ends(valid.as_bytes());
        let valid = valid.len();
        self.block.copy_within(valid..held, 0);
        self.partial = held - valid;
        Ok(read > 0)
    }

    /// Appends the rest to `text` while there is `more`; the text is held as a whole.
    pub(crate) fn read_rest(
        &mut self,
        text: &mut String,
        mut more: bool,
    ) -> Result<(), Box<SourceError>> {
        let (_, limit) = self.progress.limits();
        while text.len() as u64 <= limit {
            if !more {
                return Ok(());
            }
            more = self.read_more(text)?;
        }
        Err(too_long(&self.name, limit))
    }

    fn not_text(&self, valid: usize) -> Box<SourceError> {
        let (block, name) = (&self.block, &self.name);
        if self.offset + valid == 0 && matches!(block[..2], [0xff, 0xfe] | [0xfe, 0xff]) {
            return SourceError::of_file(name, "is UTF-16 text".into(), "save it as UTF-8");
        }
        let line = 1 + self.lines + line_ends(&block[..valid]);
        let message = format!("is not text: byte {} is not UTF-8", self.offset + valid);
        Box::new(SourceError { line, ..*SourceError::of_file(name, message, "save it as UTF-8") })
    }
}

/// Number of line ends in the bytes.
pub(super) fn line_ends(bytes: &[u8]) -> usize {
    // Sums of single bytes, which the compiler vectorizes.
    let in_block = |block: &[u8]| block.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
    bytes.chunks(usize::from(u8::MAX)).map(|block| usize::from(in_block(block))).sum()
}

/// Counts stored bytes, to compare with the file's size.
struct CountingReader<'p, R> {
    input: R,
    progress: &'p Progress,
}

impl<R: Read> Read for CountingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        add(&self.progress.read, read);
        Ok(read)
    }
}

/// The error about a file that exceeds the limit.
pub(super) fn too_long(name: &str, limit: u64) -> Box<SourceError> {
    let message = format!("has more than {} KiB of text", limit >> 10);
    let help = "--input-limit raises what may be read: of JSON all of it, of YAML and packed \
                archives, which are held as a whole, an eighth";
    SourceError::of_file(name, message, help)
}

/// The error about one object that is larger than any that an API server stores.
pub(super) fn too_large(name: &str, line: usize) -> Box<SourceError> {
    let message = format!("has an object of more than {} MiB", super::LIMITS.object >> 20);
    let help = "an API server stores at most 1.5 MiB for one: was the file cut or joined wrongly?";
    Box::new(SourceError { line, ..*SourceError::of_file(name, message, help) })
}

/// Why a file cannot be opened or read.
pub(super) fn cannot_read(name: &str, error: &io::Error) -> Box<SourceError> {
    let (message, help) = match error.kind() {
        ErrorKind::NotFound => ("there is no such file".to_string(), "check the path"),
        ErrorKind::PermissionDenied => {
            ("may not be read".to_string(), "check the file's permissions")
        }
        _ => (format!("cannot be read: {error}"), "check the path"),
    };
    SourceError::of_file(name, message, help)
}

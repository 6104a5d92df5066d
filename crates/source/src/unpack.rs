//! Decompresses input: gzip while it is read; a zip archive with one text file, and MessagePack,
//! which is converted to JSON, once they are read as a whole. The format is recognized by the first
//! bytes, not by the file's name.

use std::borrow::Cow;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;
use zip::ZipArchive;

use super::error::SourceError;
use super::foreign::simkube;
use super::reader::{cannot_read, too_long};

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;
/// Number of bytes by which a format is recognized.
const HEAD: usize = 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZIP: &[u8] = b"PK\x03\x04";
/// Offset and bytes of the magic number of a bbolt database, the format of etcd's snapshots.
const BBOLT: (usize, [u8; 4]) = (16, [0xed, 0xda, 0x0c, 0xed]);
/// File name suffixes that can be read from an archive.
const TEXT: &[&str] = &[".json", ".jsonl", ".yaml", ".yml"];

type Unpacked<'p> = Box<dyn Read + 'p>;
type Result<T> = std::result::Result<T, Box<SourceError>>;

/// A file's text as bytes, and whether it was compressed with gzip, because later errors may then
/// be errors of the compression. An archive with more than `limit` bytes is rejected.
pub(super) fn open<'p>(
    name: &str,
    input: impl Read + 'p,
    limit: u64,
) -> Result<(Unpacked<'p>, bool)> {
    let wrong = |error: io::Error| cannot_read(name, &error);
    let (head, input) = peek(input, GZIP.len()).map_err(wrong)?;
    if head != GZIP {
        return Ok((
            contained(name, input, limit).map_err(|error| error.into_source_error(name, false))?,
            false,
        ));
    }
    let input = MultiGzDecoder::new(BufReader::with_capacity(BLOCK, input));
    Ok((contained(name, input, limit).map_err(|error| error.into_source_error(name, true))?, true))
}

/// Why a file could not be decompressed.
enum UnpackError {
    Reading(io::Error),
    Source(Box<SourceError>),
}

impl UnpackError {
    fn into_source_error(self, name: &str, is_gzip: bool) -> Box<SourceError> {
        match self {
            UnpackError::Reading(error) if is_gzip => damaged(name, "gzip data", &error),
            UnpackError::Reading(error) => cannot_read(name, &error),
            UnpackError::Source(error) => error,
        }
    }
}

impl From<io::Error> for UnpackError {
    fn from(error: io::Error) -> UnpackError {
        UnpackError::Reading(error)
    }
}

/// The contents of a container; any other input is returned unchanged.
fn contained<'p>(
    name: &str,
    input: impl Read + 'p,
    limit: u64,
) -> std::result::Result<Unpacked<'p>, UnpackError> {
    let (head, mut input) = peek(input, HEAD)?;
    let mut whole = || up_to(name, &mut input, limit);
    let unpacked = if head.starts_with(ZIP) {
        from_zip(name, whole()?, limit).map_err(UnpackError::Source)?
    } else if simkube::is_trace(&head) {
        simkube::to_json(name, &whole()?).map_err(UnpackError::Source)?.into_bytes()
    } else if head.get(BBOLT.0..).is_some_and(|magic| magic == BBOLT.1) {
        let help = "use kwokctl snapshot save --format k8s or kubectl get -o yaml";
        let message = "is an etcd snapshot, which only etcd can read".to_owned();
        return Err(UnpackError::Source(SourceError::of_file(name, message, help)));
    } else {
        return Ok(input);
    };
    Ok(Box::new(Cursor::new(unpacked)))
}

/// All bytes; more than `limit` are an error.
fn up_to(name: &str, input: impl Read, limit: u64) -> std::result::Result<Vec<u8>, UnpackError> {
    let mut bytes = Vec::new();
    input.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(UnpackError::Source(too_long(name, limit))),
        false => Ok(bytes),
    }
}

/// The only text file in an archive.
fn from_zip(name: &str, bytes: Vec<u8>, limit: u64) -> Result<Vec<u8>> {
    let broken = |error: io::Error| damaged(name, "a zip archive", &error);
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(error.into()))?;
    let is_text = |file: &String| TEXT.iter().any(|ending| file.ends_with(ending));
    let names = archive.file_names().filter_map(std::result::Result::ok);
    let found: Vec<String> = names.map(Cow::into_owned).filter(is_text).collect();
    let [file] = found.as_slice() else {
        let message = match found.len() {
            0 => "is a zip archive without a .json or .yaml file".to_owned(),
            several => format!("is a zip archive with {several} .json or .yaml files"),
        };
        let help = "unpack it, and name the folder or the files";
        return Err(SourceError::of_file(name, message, help));
    };
    let file = archive.by_name(file).map_err(|error| broken(error.into()))?;
    up_to(name, file, limit).map_err(|wrong| match wrong {
        UnpackError::Reading(error) => broken(error),
        UnpackError::Source(error) => error,
    })
}

/// The first bytes, and a reader that returns them again before the rest.
fn peek<'p>(mut input: impl Read + 'p, length: usize) -> io::Result<(Vec<u8>, Unpacked<'p>)> {
    let mut head = Vec::with_capacity(length);
    input.by_ref().take(length as u64).read_to_end(&mut head)?;
    let all = Cursor::new(head.clone()).chain(input);
    Ok((head, Box::new(all)))
}

/// The error about compressed data that cannot be decompressed.
pub(super) fn damaged(name: &str, what: &str, error: &io::Error) -> Box<SourceError> {
    let message = match error.kind() {
        ErrorKind::UnexpectedEof => format!("is {what}, truncated"),
        _ => format!("is {what}, damaged: {error}"),
    };
    SourceError::of_file(name, message, "copy the file again; nothing was read from it")
}

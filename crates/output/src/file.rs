//! Files that may contain data of a cluster: only their owner can read them, and they appear
//! completely or not at all. The text goes into a new file in the same folder, which replaces the
//! named one at the end.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempPath};

/// What to do if the path is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Fail: another user may have created the link.
    Refuse,
    /// Replace the file that it points to.
    Follow,
}

/// A file that is being written.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// The present path and the final one; `None` once it is published.
    unpublished: Option<(TempPath, PathBuf)>,
}

/// How a path is written to.
enum WriteMode {
    /// A file that is replaced when everything is written.
    Replaced(PathBuf),
    /// Written in place: devices, pipes, and names of open files such as /dev/stdout.
    Direct,
}

impl NewFile {
    /// Creates the file. The file at `path` is unchanged until [`NewFile::publish`].
    ///
    /// # Errors
    /// No file can be created there, or it is a link that is not followed.
    pub fn create(path: &Path, links: Links) -> io::Result<NewFile> {
        Ok(match destination(path, links)? {
            WriteMode::Direct => NewFile { file: File::create(path)?, unpublished: None },
            WriteMode::Replaced(target) => {
                let (file, temporary) = beside(&target)?;
                NewFile { file, unpublished: Some((temporary, target)) }
            }
        })
    }

    /// Checks whether the file can be created, before a long operation that writes it at the end.
    ///
    /// # Errors
    /// As [`NewFile::create`].
    pub fn check(path: &Path, links: Links) -> io::Result<()> {
        match destination(path, links)? {
            WriteMode::Direct => Ok(()),
            WriteMode::Replaced(target) => beside(&target).map(drop),
        }
    }

    /// Replaces the named file with what is written so far. Later writes are appended to it.
    ///
    /// # Errors
    /// It cannot be written; the previous file is unchanged.
    pub fn publish(&mut self) -> io::Result<()> {
        let Some((temporary, target)) = self.unpublished.take() else { return Ok(()) };
        self.file.sync_all()?;
        temporary.persist(target).map_err(|error| error.error)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a whole file of the user's settings, which may be a link to where they are kept.
///
/// # Errors
/// It cannot be written; the previous file is unchanged.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut file = NewFile::create(path, Links::Follow)?;
    file.write_all(text.as_bytes())?;
    file.publish()
}

fn destination(path: &Path, links: Links) -> io::Result<WriteMode> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(WriteMode::Replaced(path.to_owned()));
        }
        found => found?,
    };
    let names_open_files = path.starts_with("/dev") || path.starts_with("/proc");
    if !found.is_symlink() || names_open_files {
        let is_replaced = found.is_file() && !names_open_files;
        return Ok(match is_replaced {
            true => WriteMode::Replaced(path.to_owned()),
            false => WriteMode::Direct,
        });
    }
    match links {
        Links::Follow => destination(&fs::canonicalize(path)?, links),
        Links::Refuse => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "is a symbolic link\n  help: name its target, or add --follow-symlinks",
        )),
    }
}

/// An empty file in the folder of `target`, readable by its owner only.
fn beside(target: &Path) -> io::Result<(File, TempPath)> {
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::metadata(folder)?;
    let made = Builder::new().prefix(".kubestep-").suffix(".tmp").tempfile_in(folder);
    // The error would name a temporary file that the user does not know.
    made.map(tempfile::NamedTempFile::into_parts)
        .map_err(|error| io::Error::new(error.kind(), format!("{} in its folder", error.kind())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_former_file_stays_until_all_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("capture.json");
        fs::write(&path, "former").unwrap();
        let mut file = NewFile::create(&path, Links::Refuse).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "former");
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "former");
        assert_eq!(names(dir.path()), ["capture.json"]);
        let mut file = NewFile::create(&path, Links::Refuse).unwrap();
        file.write_all(b"new").unwrap();
        file.publish().unwrap();
        file.write_all(b"er").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(names(dir.path()), ["capture.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("capture.json");
        fs::write(&path, "former").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, "new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_only_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::write(&target, "former").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let rejected = NewFile::create(&link, Links::Refuse).unwrap_err();
        assert!(rejected.to_string().starts_with("is a symbolic link"), "{rejected}");
        assert!(NewFile::check(&link, Links::Refuse).is_err());
        replace(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_written_as_they_are() {
        let mut file = NewFile::create(Path::new("/dev/null"), Links::Refuse).unwrap();
        file.write_all(b"x").unwrap();
        file.publish().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}

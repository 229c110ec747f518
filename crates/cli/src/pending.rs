//! Files that are written at the end of something long.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::npy::set_ordinary_permissions;

/// A file that is to be written later. That it can be is found out now; until it is, nothing changes at its path.
pub struct PendingFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl PendingFile {
    /// Makes sure that there can be a file.
    pub fn new(path: &Path) -> Result<PendingFile, Failure> {
        if path.is_dir() {
            return Err(Failure::Input(format!("{}: this is a folder", path.display())));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made = tempfile::Builder::new().prefix(".tilewright-").tempfile_in(folder);
        let file = made.map_err(|error| {
            // What the system says names the temporary file.
            Failure::Input(format!("{}: it cannot be written: {}", path.display(), error.kind()))
        })?;
        Ok(PendingFile { path: path.to_owned(), file })
    }

    /// Writes it: all of it, or nothing.
    pub fn write(self, contents: &str) -> Result<(), Failure> {
        let PendingFile { path, file } = self;
        persist(file, &path, contents)
            .map_err(|error| Failure::Machine(format!("{}: {error}", path.display())))
    }
}

fn persist(mut file: NamedTempFile, path: &Path, contents: &str) -> io::Result<()> {
    file.write_all(contents.as_bytes())?;
    file.as_file().sync_all()?;
    set_ordinary_permissions(file.as_file())?;
    file.persist(path)?;
    Ok(())
}

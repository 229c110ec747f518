//! Writes a file completely or not at all: first to a temporary file, which then replaces the old
//! one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Writes a temporary file beside `path`, and renames it when all of it is on the disk.
pub fn write(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    if is_stream(path) {
        let mut stream = OpenOptions::new().write(true).open(path)?;
        return parts.iter().try_for_each(|part| stream.write_all(part));
    }
    let path = resolve_links(path);
    let mut file = temporary_beside(&path)?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.as_file().sync_all()?;
    set_ordinary_permissions(file.as_file())?;
    file.persist(path)?;
    Ok(())
}

/// Checks whether a file can be written, as far as that can be known before.
pub fn expect_writable(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if path.exists() {
        OpenOptions::new().append(true).open(path)?;
    }
    if is_stream(path) { Ok(()) } else { temporary_beside(&resolve_links(path)).map(drop) }
}

/// Whether the path is a stream such as `/dev/stdout`, which a rename cannot replace.
fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The file that symbolic links lead to.
fn resolve_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".tilewright-").tempfile_in(folder)
}

/// Temporary files are private. Results get the usual permissions of a file.
fn set_ordinary_permissions(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    let _ = file;
    Ok(())
}

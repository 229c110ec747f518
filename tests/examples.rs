//! The examples of the repository, for the tests of every crate: `#[path]` brings this file into
//! each of them.

use std::fs;
use std::path::{Path, PathBuf};

/// Every example, in the order of their names.
pub fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let paths = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let folders = paths(&root).into_iter().filter(|path| path.is_dir());
    let mut found: Vec<PathBuf> = folders.flat_map(|folder| paths(&folder)).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "tw"));
    found.sort();
    assert!(found.len() > 40, "{found:?}");
    found
}

//! Names the files of trained models and of measured schedules in the user's data folder.

use std::path::PathBuf;

use tilewright_cache::Cache;
use tilewright_search::kind::family;
use tilewright_target::Target;

/// The file of the schedules that were measured on machines of a kind.
pub fn training_file(target: Target<'_>) -> Option<PathBuf> {
    file(&format!("{}.training.gz", family(target)))
}

/// The file of the model that searches for machines of a kind use.
pub fn weights_file(target: Target<'_>) -> Option<PathBuf> {
    file(&format!("{}.weights.json", family(target)))
}

fn file(name: &str) -> Option<PathBuf> {
    Some(Cache::default_path().ok()?.with_file_name("models").join(name))
}

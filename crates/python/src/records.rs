//! Lists, clears, exports and imports the records of the tuning cache, for `tilewright.cache`.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright::cache::{Cache, CacheError, Filter, Summary};

use crate::error;
use crate::place;

/// Opens the cache, if it exists.
fn existing() -> PyResult<Option<Cache>> {
    match place::cache_path().and_then(|path| Cache::open_existing(&path)) {
        Err(CacheError::Missing(_)) => Ok(None),
        cache => cache.map(Some).map_err(error::cache),
    }
}

/// The path of the cache.
#[pyfunction]
pub fn cache_path() -> PyResult<PathBuf> {
    place::cache_path().map_err(error::cache)
}

/// Sets the path of the cache. Without one, it is the user's default cache.
#[pyfunction]
#[pyo3(signature = (path))]
pub fn set_cache_path(path: Option<PathBuf>) {
    place::set_cache_path(path);
}

/// Lists the programs that were tuned.
#[pyfunction]
pub fn cache_list(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let found = py.detach(|| {
        let Some(cache) = existing()? else { return Ok(Vec::new()) };
        cache.summaries(&Filter::default()).map_err(error::cache)
    })?;
    let row = |summary: &Summary| {
        let row = PyDict::new(py);
        row.set_item("program", &summary.title)?;
        row.set_item("target", &summary.key.target.device)?;
        row.set_item("threads", summary.key.threads)?;
        row.set_item("trials", summary.trials)?;
        row.set_item("seconds", summary.best)?;
        Ok(row)
    };
    found.iter().map(row).collect()
}

/// Removes all records, and returns their number.
#[pyfunction]
pub fn cache_clear(py: Python<'_>) -> PyResult<usize> {
    py.detach(|| existing()?.map_or(Ok(0), |cache| cache.clear(&Filter::default()).map_err(error::cache)))
}

/// Writes all records to a portable file, and returns their number.
#[pyfunction]
pub fn cache_export(py: Python<'_>, path: PathBuf) -> PyResult<usize> {
    py.detach(|| {
        let cache = Cache::open_existing(&place::cache_path()?)?;
        cache.export(&path, &Filter::default())
    })
    .map_err(error::cache)
}

/// Adds the records of a portable file, and returns the number of new ones.
#[pyfunction]
pub fn cache_import(py: Python<'_>, path: PathBuf) -> PyResult<usize> {
    py.detach(|| {
        let cache = Cache::open(&place::cache_path()?)?;
        cache.import(&path).map(|merged| merged.added)
    })
    .map_err(error::cache)
}

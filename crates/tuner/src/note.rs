//! What the user should know of how results were compared.

use std::fmt;

use serde::{Deserialize, Serialize};
use tilewright_interp::Doubt;

/// Something that does not end a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Whether nothing was checked that should have been.
    pub is_warning: bool,
    /// One sentence.
    pub text: String,
}

impl Note {
    /// Of elements that were not compared, at sizes that are not those of the task.
    pub(crate) fn of(doubt: &Doubt, sizes: Option<&str>) -> Note {
        let place =
            sizes.map(|sizes| format!("compared with the interpreter at {sizes}, ")).unwrap_or_default();
        Note { is_warning: doubt.is_total(), text: format!("{place}{doubt}") }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_warning { "warning" } else { "note" };
        write!(f, "{kind}: {}", self.text)
    }
}

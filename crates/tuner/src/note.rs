//! Defines [`Note`], a sentence that tells the user how results were compared, such as which
//! elements were not compared.

use std::fmt;

use serde::{Deserialize, Serialize};
use tilewright_interp::NotCompared;

/// A note that does not end a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Whether something was left unchecked that should have been checked.
    pub is_warning: bool,
    /// The text, one sentence.
    pub text: String,
}

impl Note {
    /// The note about elements that were not compared. `sizes` is given if they are not those of
    /// the task.
    pub(crate) fn from_doubt(doubt: &NotCompared, sizes: Option<&str>) -> Note {
        let place =
            sizes.map(|sizes| format!("compared with the interpreter at {sizes}, ")).unwrap_or_default();
        Note { is_warning: doubt.is_whole_tensor(), text: format!("{place}{doubt}") }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_warning { "warning" } else { "note" };
        write!(f, "{kind}: {}", self.text)
    }
}

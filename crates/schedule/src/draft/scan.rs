//! Records which statements compute a recurrence in parts, as the step `scan` makes them. Legality
//! asks which dependences of the recurrence these statements keep, and which they need not keep.

use tilewright_ir::nest::{BufferId, IndexExpr, PartValue, RecurrencePart};

use super::Instance;

/// The task of a statement in a recurrence that is computed in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScanRole {
    /// The recurrence itself. Its parts do not wait for each other.
    Result {
        /// The buffer of the values before the parts of the last `scan`.
        carry: BufferId,
        /// The beginnings of the parts, for each `scan`.
        restarts: Vec<Restart>,
    },
    /// A value of each part: its total, the product of its factors, or the value before it.
    Part {
        /// The value.
        value: RecurrencePart,
        /// The value in terms of the loops, as the claims of stores name it.
        instance: Instance,
        /// For a total that is computed in the order of the recurrence, the position in the part,
        /// which is 0 in its first iteration.
        position: Option<IndexExpr>,
    },
}

/// Where a recurrence begins with a value that was computed before, and not with the value of the
/// iteration before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Restart {
    /// The number of the part. The first part begins with the value that the program has there.
    pub part: IndexExpr,
    /// The position in the part, which is 0 in its first iteration.
    pub position: IndexExpr,
}

impl ScanRole {
    /// Returns true for the total of a part, or the product of its factors. Such a statement reads
    /// what the recurrence reads, except its own tensor.
    pub fn is_total(&self) -> bool {
        matches!(self, ScanRole::Part { value, .. } if value.value != PartValue::Before)
    }

    /// Rewrites every subscript.
    pub fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
        match self {
            ScanRole::Result { restarts, .. } => {
                for restart in restarts {
                    restart.part = map(&restart.part);
                    restart.position = map(&restart.position);
                }
            }
            ScanRole::Part { instance, position, .. } => {
                instance.map_indices(map);
                position.iter_mut().for_each(|position| *position = map(position));
            }
        }
    }
}

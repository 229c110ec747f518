//! Records which statements compute a recurrence in parts, as the step `scan` makes them. Legality
//! asks which dependences of the recurrence these statements keep, and which they need not keep.

use tilewright_ir::nest::{BufferId, IndexExpr};

/// What a statement computes of a recurrence that is computed in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScanRole {
    /// The recurrence itself. Its parts do not wait for each other.
    Result {
        /// The buffer of the values before the parts of the last `scan`.
        carry: BufferId,
        /// The beginnings of the parts, for each `scan`.
        restarts: Vec<Restart>,
    },
    /// A total of each part: the statement reads what the recurrence reads, but not its tensor. If
    /// the total is computed in the order of the recurrence, this is the position in a part, which
    /// is 0 in its first iteration.
    Total {
        /// The position, if the order matters.
        position: Option<IndexExpr>,
    },
    /// The values before the parts.
    Carry,
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
    /// Rewrites every subscript.
    pub fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
        match self {
            ScanRole::Result { restarts, .. } => {
                for restart in restarts {
                    restart.part = map(&restart.part);
                    restart.position = map(&restart.position);
                }
            }
            ScanRole::Total { position: Some(position) } => *position = map(position),
            ScanRole::Total { position: None } | ScanRole::Carry => {}
        }
    }
}

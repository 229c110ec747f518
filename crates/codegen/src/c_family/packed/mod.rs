//! Computes narrow integers of several lanes at once: four bytes or two halfwords in a 32-bit word.
//!
//! ```text
//! for lane in 8: C[8*i + lane] = max(A[8*i + lane], b)         of uint8
//!   →   const uint2 A_words = *(const uint2*)&A[8 * i];
//!       uint2 C_results;
//!       C_results.x = tw_packed_max_uint8(A_words.x, (unsigned int)(unsigned char)b * 16843009u);
//!       C_results.y = …
//!       *(uint2*)&C[8 * i] = C_results;
//! ```
//!
//! A [`plan::Plan`] says how the words of a value are computed. There is one where all lanes
//! compute the same from integers whose exact values fit 8 or 16 bits: by their types, or by
//! intervals, as in `uint8((int32(a) + b + 1) / 2)`. A value may be computed in halfwords and
//! narrowed at its end. All other values are computed lane by lane (`lanes`).
//!
//! Lanes may begin in the middle of a word, as those of `x(i - 1)`, `x(i)` and `x(i + 1)` do. Their
//! words are joined from two neighbouring words of memory, and all loads of a statement share the
//! words of memory. Every second element, `x(2*i)`, is taken from two words.
//!
//! Half floats are not computed here. CUDA's compiler joins the conversions of two halves itself:
//! eight halves take the same 31 instructions with and without packed conversions.
//!
//! | file | content |
//! |---|---|
//! | `plan` | whether and how a value is computed in words |
//! | `operation` | the operations on words: their functions in each language, and their costs |
//! | `words` | loads of words |
//! | `text` | writes the words of a plan |

mod operation;
mod plan;
mod text;
mod words;

pub(super) use operation::{Operation, function};

use tilewright_ir::DType;
use tilewright_ir::nest::{Expr, ExprKind, Store};

use super::lanes::{LoadedLanes, VectorLoop, WideAccess};
use super::stmt::{Emit, Emitter};
use plan::{Plan, Planner};

/// The lanes of a word: their width and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lanes {
    /// Four lanes of 8 bits.
    Bytes,
    /// Two lanes of 16 bits.
    Halves,
}

impl Lanes {
    /// The lanes of elements in memory.
    fn of_elements(dtype: DType) -> Option<Lanes> {
        match dtype {
            DType::Bool | DType::Int8 | DType::UInt8 => Some(Lanes::Bytes),
            DType::Int16 | DType::UInt16 => Some(Lanes::Halves),
            _ => None,
        }
    }

    fn bits(self) -> u32 {
        match self {
            Lanes::Bytes => 8,
            Lanes::Halves => 16,
        }
    }

    /// The number of lanes of a word.
    fn per_word(self) -> i64 {
        i64::from(u32::BITS / self.bits())
    }

    fn unsigned(self) -> DType {
        match self {
            Lanes::Bytes => DType::UInt8,
            Lanes::Halves => DType::UInt16,
        }
    }

    fn signed(self) -> DType {
        match self {
            Lanes::Bytes => DType::Int8,
            Lanes::Halves => DType::Int16,
        }
    }

    /// A word with the low bits of a number in every lane.
    fn replicated(self, number: i128) -> u32 {
        let lane = number as u32 & (u32::MAX >> (u32::BITS - self.bits()));
        lane * self.ones()
    }

    /// A word with 1 in every lane.
    fn ones(self) -> u32 {
        match self {
            Lanes::Bytes => 0x0101_0101,
            Lanes::Halves => 0x0001_0001,
        }
    }
}

impl Emitter<'_> {
    /// Writes a store of all lanes whose values are computed in words. Returns false, and writes
    /// nothing, if that is impossible or not faster.
    pub(super) fn store_packed(
        &mut self,
        store: &Store,
        wide: &WideAccess,
        vector: VectorLoop,
    ) -> Emit<bool> {
        let Some(words) = wide.vector.words() else { return Ok(false) };
        let Some(plan) = self.packed_plan(store, vector) else { return Ok(false) };
        self.open("");
        self.load_words(&plan)?;
        let mut next = 0..;
        for first in &wide.first_elements {
            let place = self.wide_element(first, words, "")?;
            let computed = (0..words.width).zip(&mut next).map(|(_, at)| self.packed_word(&plan, at));
            let computed = computed.collect::<Emit<Vec<_>>>()?;
            if let [word] = computed.as_slice() {
                self.line(&format!("{} = {};", place.text(), word.text()));
                continue;
            }
            let name = self.lane_name(store.target.tensor, "results");
            self.line(&words.declaration(self.unit.dialect, &name, None));
            for (at, word) in computed.iter().enumerate() {
                self.line(&format!("{} = {};", words.element(&name, at), word.text()));
            }
            self.line(&format!("{} = {name};", place.text()));
        }
        self.close();
        self.lanes = LoadedLanes::default();
        Ok(true)
    }

    /// The plan of the words that a store puts into its target.
    fn packed_plan(&self, store: &Store, vector: VectorLoop) -> Option<Plan> {
        let dtype = self.unit.nest.buffer(store.target.tensor).dtype;
        let lanes = Lanes::of_elements(dtype)?;
        let value = match store.reduce {
            None => store.value.clone(),
            Some(op) => {
                let total = Expr { dtype, kind: ExprKind::Load(store.target.clone()) };
                Expr::binary(op.operator(), total, store.value.clone())
            }
        };
        Planner::new(self, vector, &store.target, &value).plan(&value, lanes)
    }
}

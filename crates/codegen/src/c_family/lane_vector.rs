//! Defines [`LaneVector`]: several neighbouring elements that one access moves, as C-like text.
//!
//! Up to four elements are a vector of the language, such as `float4`. The languages have no longer
//! vectors in common, so eight or sixteen narrow elements are moved as 32-bit integers, and a union
//! gives access to each of them:
//!
//! ```text
//! const float4 A_lanes = *(const float4*)&A[…];                                    A_lanes.y
//! const union { uint4 whole; unsigned char at[16]; } A_lanes = { *(const uint4*)&A[…] };
//!                                                                                  A_lanes.at[1]
//! ```

use tilewright_ir::DType;

use super::dialect::Dialect;

/// The maximum number of bytes of one access.
const WIDEST_ACCESS: i64 = 16;
/// The possible numbers of elements of one access, largest first.
const WIDTHS: [i64; 4] = [16, 8, 4, 2];
/// The names of the components of a vector of the language.
const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

/// Neighbouring elements, of which the first begins at a multiple of their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneVector {
    pub(super) dtype: DType,
    /// The number of elements.
    pub(super) width: i64,
}

impl LaneVector {
    /// The vectors into which a number of lanes can be divided, widest first.
    pub(super) fn that_divide(dtype: DType, lanes: i64) -> impl Iterator<Item = LaneVector> {
        let vectors = WIDTHS.into_iter().map(move |width| LaneVector { dtype, width });
        vectors.filter(move |own| lanes % own.width == 0 && own.bytes() <= WIDEST_ACCESS)
    }

    /// A vector of 32-bit words.
    pub(super) fn of_words(count: i64) -> LaneVector {
        LaneVector { dtype: DType::UInt32, width: count }
    }

    /// The same bytes as 32-bit words, if they are whole words.
    pub(super) fn words(self) -> Option<LaneVector> {
        let word = DType::UInt32.bytes() as i64;
        (self.bytes() % word == 0).then(|| LaneVector::of_words(self.bytes() / word))
    }

    pub(super) fn bytes(self) -> i64 {
        self.width * self.dtype.bytes() as i64
    }

    fn is_union(self) -> bool {
        self.width > COMPONENTS.len() as i64
    }

    /// The type with which memory is accessed.
    pub(super) fn access_type(self, dialect: Dialect) -> String {
        match self.width {
            1 => dialect.memory_type(self.dtype).to_owned(),
            _ if self.is_union() => {
                dialect.lanes_type(DType::UInt32, self.bytes() / DType::UInt32.bytes() as i64)
            }
            width => dialect.lanes_type(self.dtype, width),
        }
    }

    /// The declaration of a variable, with what memory holds as its value if given.
    pub(super) fn declaration(self, dialect: Dialect, name: &str, loaded: Option<&str>) -> String {
        let whole = self.access_type(dialect);
        if !self.is_union() {
            return format!("{whole} {name}{};", loaded.map(|text| format!(" = {text}")).unwrap_or_default());
        }
        let (element, width) = (dialect.memory_type(self.dtype), self.width);
        let loaded = loaded.map(|text| format!(" = {{ {text} }}")).unwrap_or_default();
        format!("union {{ {whole} whole; {element} at[{width}]; }} {name}{loaded};")
    }

    /// One element of a variable.
    pub(super) fn element(self, name: &str, at: usize) -> String {
        match self.width {
            1 => name.to_owned(),
            _ if self.is_union() => format!("{name}.at[{at}]"),
            _ => format!("{name}.{}", COMPONENTS[at]),
        }
    }

    /// All elements of a variable, as memory takes them.
    pub(super) fn whole(self, name: &str) -> String {
        if self.is_union() { format!("{name}.whole") } else { name.to_owned() }
    }
}

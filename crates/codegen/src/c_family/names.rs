//! Chooses a unique C identifier for every buffer, loop variable and scalar of a loop nest, from
//! its name in the nest. No identifier is a reserved word of CUDA C++ or OpenCL C.

use std::collections::BTreeSet;

use tilewright_ir::nest::{BufferId, LoopVarId};
use tilewright_ir::{LoopNest, ScalarId};

/// Words that have a meaning in one of the languages or in the text around the kernels.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "as_float",
    "as_uint",
    "asm",
    "assert",
    "auto",
    "barrier",
    "bitand",
    "bitor",
    "blockDim",
    "blockIdx",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "clk_event_t",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "complex",
    "concept",
    "const",
    "const_cast",
    "constant",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "dim3",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "event_t",
    "explicit",
    "export",
    "extern",
    "fabs",
    "fabsf",
    "false",
    "float",
    "fmax",
    "fmaxf",
    "fmin",
    "fminf",
    "for",
    "friend",
    "generic",
    "get_group_id",
    "get_local_id",
    "global",
    "goto",
    "gridDim",
    "half",
    "if",
    "image2d_t",
    "imaginary",
    "inline",
    "int",
    "intptr_t",
    "isnan",
    "kernel",
    "linux",
    "local",
    "long",
    "main",
    "mul_hi",
    "mutable",
    "namespace",
    "ndrange_t",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "pipe",
    "printf",
    "private",
    "protected",
    "ptrdiff_t",
    "public",
    "queue_t",
    "read_only",
    "read_write",
    "register",
    "reinterpret_cast",
    "requires",
    "reserve_id_t",
    "restrict",
    "return",
    "sampler_t",
    "short",
    "signed",
    "size_t",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "status",
    "struct",
    "switch",
    "template",
    "this",
    "threadIdx",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "uchar",
    "uint",
    "uintptr_t",
    "ulong",
    "uniform",
    "union",
    "unix",
    "unsigned",
    "ushort",
    "using",
    "vec_step",
    "virtual",
    "vload_half",
    "void",
    "volatile",
    "vstore_half_rte",
    "warpSize",
    "wchar_t",
    "while",
    "write_only",
    "xor",
    "xor_eq",
];

/// A unique name for every buffer, variable and scalar of a nest.
pub(super) struct Identifiers {
    buffers: Vec<String>,
    vars: Vec<String>,
    scalars: Vec<String>,
    taken: BTreeSet<String>,
}

impl Identifiers {
    pub(super) fn new(nest: &LoopNest) -> Identifiers {
        let mut taken = BTreeSet::new();
        let buffers = nest.buffers.iter().map(|buffer| unique_identifier(&buffer.name, &mut taken)).collect();
        let vars = nest.vars.iter().map(|var| unique_identifier(&var.name, &mut taken)).collect();
        let scalars = nest.scalars.iter().map(|scalar| {
            let name = format!("{}_value", identifier(&scalar.name));
            unique_identifier(&name, &mut taken)
        });
        let scalars = scalars.collect();
        Identifiers { buffers, vars, scalars, taken }
    }

    pub(super) fn buffer(&self, id: BufferId) -> &str {
        &self.buffers[id.index()]
    }

    pub(super) fn var(&self, id: LoopVarId) -> &str {
        &self.vars[id.index()]
    }

    pub(super) fn scalar(&self, id: ScalarId) -> &str {
        &self.scalars[id.index()]
    }

    /// Returns a name like `like` for a variable inside a kernel. The name differs from all names
    /// of the nest and from those in `local`, and is added to `local`.
    pub(super) fn new_local(&self, like: &str, local: &mut BTreeSet<String>) -> String {
        let mut taken = &self.taken | local;
        let name = unique_identifier(like, &mut taken);
        local.insert(name.clone());
        name
    }
}

/// Turns a name into an identifier that is not in `taken`, and adds it there.
fn unique_identifier(name: &str, taken: &mut BTreeSet<String>) -> String {
    let base = identifier(name);
    let numbered = (1..).map(|number| format!("{base}_{number}"));
    let mut names = std::iter::once(base.clone()).chain(numbered);
    let name = names.find(|name| !taken.contains(name)).expect("there is always another number");
    taken.insert(name.clone());
    name
}

/// Replaces the characters that C does not allow in an identifier, and appends `_` where the name
/// may collide. The languages and their headers define reserved words, names in capitals, and names
/// that begin with a builtin's name or with `convert_`.
pub(super) fn identifier(name: &str) -> String {
    let letters = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let mut plain: String = name.chars().map(letters).collect();
    let starts_well = plain.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts_well || plain.starts_with("tw_") {
        plain.insert_str(0, "v_");
    }
    let is_macro =
        plain.len() > 2 && plain.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
    let is_function = tilewright_ir::Builtin::ALL.iter().any(|builtin| plain.starts_with(builtin.name()));
    let is_converter = plain.starts_with("convert_");
    if RESERVED.contains(&plain.as_str()) || is_macro || is_function || is_converter || is_vector_type(&plain)
    {
        plain.push('_');
    }
    plain
}

/// Whether a name is a vector type of one of the languages, such as `float4`.
fn is_vector_type(name: &str) -> bool {
    let element = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let elements = ["longlong", "ulonglong", "bool"];
    element.len() < name.len() && (RESERVED.contains(&element) || elements.contains(&element))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_differ() {
        assert_eq!(identifier("C"), "C");
        assert_eq!(identifier("2LUT"), "v_2LUT");
        assert_eq!(identifier("blur.rows"), "blur_rows");
        assert_eq!(identifier("for"), "for_");
        assert_eq!(identifier("INFINITY"), "INFINITY_");
        assert_eq!(identifier("exp"), "exp_");
        assert_eq!(identifier("float4"), "float4_");
        assert_eq!(identifier("longlong2"), "longlong2_");
        assert_eq!(identifier("nullptr"), "nullptr_");
        assert_eq!(identifier("x4"), "x4");
        let mut taken = BTreeSet::new();
        assert_eq!(unique_identifier("i", &mut taken), "i");
        assert_eq!(unique_identifier("i", &mut taken), "i_1");
    }
}

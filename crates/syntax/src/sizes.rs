//! Infers sizes from the shapes of the tensors that are passed to a function.
//!
//! ```
//! let module = tilewright_syntax::parse("def twice(float(2*H + 1) x) -> (y) { y(i) = 2 * x(i) }");
//! let function = &module.ast.functions[0];
//! let mut sizes = tilewright_syntax::sizes::Sizes::default();
//! let param = &function.params[0];
//! sizes.infer_from_shape(&param.name, &param.ty, &[7], "x").expect("7 is odd");
//! assert_eq!(sizes.bindings.get("H"), Some(3));
//! ```

use std::collections::BTreeMap;

use tilewright_ir::{BinaryOp, DType};

use crate::ast::{Expr, ExprKind, Function, Name, Type};
use crate::check::Bindings;
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

/// The known sizes of a function, and the origin of each value.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// The values of the sizes.
    pub bindings: Bindings,
    origins: BTreeMap<String, SizeOrigin>,
}

/// The origin of a size's value.
#[derive(Clone, Debug)]
struct SizeOrigin {
    from: String,
    span: Option<Span>,
}

impl Sizes {
    /// Sets a value that was given by name.
    pub fn set(&mut self, name: &str, value: i64, from: &str) {
        self.bindings.set(name, value);
        self.origins.insert(name.to_owned(), SizeOrigin { from: from.to_owned(), span: None });
    }

    /// The origin of a value, for messages.
    pub fn origin(&self, name: &str) -> Option<&str> {
        self.origins.get(name).map(|origin| origin.from.as_str())
    }

    /// Infers sizes from the shape of a tensor, and returns an error if the shape contradicts known
    /// sizes. `from` describes the tensor in messages.
    pub fn infer_from_shape(
        &mut self,
        tensor: &Name,
        ty: &Type,
        shape: &[usize],
        from: impl Into<String>,
    ) -> Result<(), Box<Diagnostic>> {
        let from = from.into();
        if shape.len() != ty.dims.len() {
            let dimensions = match ty.dims.len() {
                1 => "1 dimension".to_owned(),
                many => format!("{many} dimensions"),
            };
            let found = shape_text(shape);
            let message =
                format!("`{}` has {dimensions} here, but {from} has the shape {found}", tensor.text);
            return Err(Diagnostic::error(Code::RankMismatch, ty.span, message).into());
        }
        for (dim, extent) in ty.dims.iter().zip(shape) {
            let extent = i64::try_from(*extent).unwrap_or(i64::MAX);
            match &dim.kind {
                ExprKind::Name(name) => self.infer_size(name, dim.span, extent, &from)?,
                ExprKind::Int(number, _) if *number != extent as i128 => {
                    let message =
                        format!("this dimension of `{}` is {number}, but {from} has {extent}", tensor.text);
                    let found = Diagnostic::error(Code::SizeMismatch, dim.span, message);
                    return Err(Box::new(match channels_elsewhere(&tensor.text, &ty.dims, shape) {
                        Some(help) => found.help(help),
                        None => found,
                    }));
                }
                _ => {
                    if let Some((name, value)) = solve_extent(dim, extent, &self.bindings) {
                        self.record(&name, value, &from, dim.span);
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles a dimension that is a single size name.
    fn infer_size(&mut self, name: &str, span: Span, extent: i64, from: &str) -> Result<(), Box<Diagnostic>> {
        match (self.bindings.get(name), self.origins.get(name)) {
            (Some(first), Some(origin)) if first != extent => {
                let message = format!("{name} is {first} from {}, but {extent} from {from}", origin.from);
                let diagnostic =
                    Diagnostic::error(Code::SizeMismatch, span, message).label(format!("{extent} here"));
                Err(Box::new(match origin.span {
                    Some(other) => diagnostic.secondary_label(other, format!("{first} here")),
                    None => diagnostic,
                }))
            }
            (Some(_), _) => Ok(()),
            (None, _) => {
                self.record(name, extent, from, span);
                Ok(())
            }
        }
    }

    fn record(&mut self, name: &str, value: i64, from: &str, span: Span) {
        self.bindings.set(name, value);
        self.origins.insert(name.to_owned(), SizeOrigin { from: from.to_owned(), span: Some(span) });
    }
}

/// The tensors in a signature: parameters, and results, which may be in-out.
pub fn tensors(function: &Function) -> impl Iterator<Item = (&Name, Option<&Type>)> {
    let params = function.params.iter().filter(|param| !param.ty.dims.is_empty());
    let params = params.map(|param| (&param.name, Some(&param.ty)));
    params.chain(function.results.iter().map(|result| (&result.name, result.ty.as_ref())))
}

/// The scalars in a signature.
pub fn scalars(function: &Function) -> impl Iterator<Item = (&Name, DType)> {
    function.params.iter().filter(|param| param.ty.dims.is_empty()).map(|param| (&param.name, param.ty.dtype))
}

/// The names that can be given a value: sizes, integer scalars, and named integers.
pub fn size_names(function: &Function) -> Vec<&str> {
    let dims = tensors(function).filter_map(|(_, ty)| ty).flat_map(|ty| &ty.dims);
    let sizes = dims.filter_map(|dim| match &dim.kind {
        ExprKind::Name(text) => Some(text.as_str()),
        _ => None,
    });
    let integers =
        scalars(function).filter(|(_, dtype)| dtype.is_integer()).map(|(name, _)| name.text.as_str());
    let named = function.definitions.iter().map(|definition| definition.name.text.as_str());
    let mut names: Vec<&str> = sizes.chain(integers).chain(named).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A shape in the notation of NumPy.
pub fn shape_text(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// The help for a picture whose channels are last instead of first, or first instead of last. Only
/// the numbers among the dimensions decide.
fn channels_elsewhere(tensor: &str, dims: &[Expr], shape: &[usize]) -> Option<String> {
    let [first, middle, last] = shape else { return None };
    let fits = |shape: [&usize; 3]| {
        dims.iter().zip(shape).all(|(dim, extent)| match dim.kind {
            ExprKind::Int(number, _) => number == *extent as i128,
            _ => true,
        })
    };
    let (found, wanted, from, to) = if fits([last, first, middle]) {
        ("last (interleaved)", "first (planar)", -1, 0)
    } else if fits([middle, last, first]) {
        ("first (planar)", "last (interleaved)", 0, -1)
    } else {
        return None;
    };
    Some(format!(
        "its channels are {found}, and those of `{tensor}` are {wanted}: move them with np.moveaxis({tensor}, {from}, {to})"
    ))
}

/// The value of a dimension, if it is plain arithmetic of numbers and known sizes.
pub fn known_extent(dim: &Expr, sizes: &Bindings) -> Option<i64> {
    let mut unknown = None;
    let extent = evaluate(dim, sizes, 0, &mut unknown)?;
    unknown.is_none().then_some(extent)
}

/// Solves an extent such as `2*H + 1` for its only unknown size, if the extent is linear in that
/// size. The later check of shapes covers all other cases.
fn solve_extent(dim: &Expr, extent: i64, sizes: &Bindings) -> Option<(String, i64)> {
    let mut unknown = None;
    let at = |value: i64, unknown: &mut Option<String>| evaluate(dim, sizes, value, unknown);
    let (zero, one, two) = (at(0, &mut unknown)?, at(1, &mut unknown)?, at(2, &mut unknown)?);
    let slope = one.checked_sub(zero)?;
    let linear = two.checked_sub(one)? == slope;
    let rest = extent.checked_sub(zero)?;
    (linear && slope != 0 && rest % slope == 0).then_some((unknown?, rest / slope))
}

/// The value of an extent with `value` for its only unknown name. Returns `None` if there are two
/// unknown names, or if the expression is not plain arithmetic.
fn evaluate(expr: &Expr, sizes: &Bindings, value: i64, unknown: &mut Option<String>) -> Option<i64> {
    match &expr.kind {
        ExprKind::Int(number, _) => i64::try_from(*number).ok(),
        ExprKind::Name(name) => match sizes.get(name) {
            Some(known) => Some(known),
            None => (unknown.get_or_insert_with(|| name.clone()) == name).then_some(value),
        },
        ExprKind::Binary(op, operands) => {
            let left = evaluate(&operands[0], sizes, value, unknown)?;
            let right = evaluate(&operands[1], sizes, value, unknown)?;
            match op {
                BinaryOp::Add => left.checked_add(right),
                BinaryOp::Sub => left.checked_sub(right),
                BinaryOp::Mul => left.checked_mul(right),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const SOURCE: &str = "def f(float(M, K) A, float(K, N) B, float(M + N, 3) C) -> (D) { D(i) = A(i, 0) }";

    fn take(shapes: &[(usize, &[usize])]) -> Result<Sizes, String> {
        let module = parse(SOURCE);
        let mut sizes = Sizes::default();
        for (at, shape) in shapes {
            let param = &module.ast.functions[0].params[*at];
            sizes
                .infer_from_shape(&param.name, &param.ty, shape, param.name.text.clone())
                .map_err(|found| found.message)?;
        }
        Ok(sizes)
    }

    #[test]
    fn sizes_are_solved_for() {
        let sizes = take(&[(0, &[4, 5]), (2, &[10, 3])]).unwrap();
        let found: Vec<(&str, i64)> = sizes.bindings.iter().collect();
        assert_eq!(found, [("K", 5), ("M", 4), ("N", 6)]);
        assert_eq!(sizes.origin("N"), Some("C"));
    }

    #[test]
    fn a_picture_with_its_channels_elsewhere_gets_help() {
        let help = |ty: &str, shape: &[usize]| {
            let module = parse(&format!("def f({ty} I) -> (O) {{ O(i) = 1 where i in 0:2 }}"));
            let param = &module.ast.functions[0].params[0];
            let found = Sizes::default().infer_from_shape(&param.name, &param.ty, shape, "I").unwrap_err();
            found.help.first().cloned().unwrap_or_default()
        };
        assert_eq!(
            help("uint8(3, H, W)", &[480, 640, 3]),
            "its channels are last (interleaved), and those of `I` are first (planar): move them with np.moveaxis(I, -1, 0)"
        );
        assert!(help("uint8(H, W, 3)", &[3, 480, 640]).ends_with("np.moveaxis(I, 0, -1)"));
        assert_eq!(help("uint8(3, H, W)", &[480, 640, 4]), "");
        assert_eq!(help("uint8(3, H)", &[480, 3]), "");
    }

    #[test]
    fn extents_are_known_from_numbers_and_sizes() {
        let module = parse("def f(float(7, N, 2*N + M) x) -> (y) { y(i) = 1 where i in 0:2 }");
        let dims = &module.ast.functions[0].params[0].ty.dims;
        let known = |sizes: &[(&str, i64)]| {
            let sizes: Bindings = sizes.iter().copied().collect();
            dims.iter().map(|dim| known_extent(dim, &sizes)).collect::<Vec<_>>()
        };
        assert_eq!(known(&[]), [Some(7), None, None]);
        assert_eq!(known(&[("N", 4)]), [Some(7), Some(4), None]);
        assert_eq!(known(&[("N", 4), ("M", 1)]), [Some(7), Some(4), Some(9)]);
    }

    #[test]
    fn contradicting_shapes_are_refused() {
        assert_eq!(take(&[(0, &[4, 5]), (1, &[6, 2])]).unwrap_err(), "K is 5 from A, but 6 from B");
        assert_eq!(take(&[(2, &[4, 4])]).unwrap_err(), "this dimension of `C` is 3, but C has 4");
        assert_eq!(take(&[(0, &[4])]).unwrap_err(), "`A` has 2 dimensions here, but A has the shape (4,)");
    }
}

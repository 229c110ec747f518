//! Lists the tensors and scalars that the caller of a program supplies and gets, with their names,
//! types and shapes. [`Signature::new`] makes the list from a [`Program`]. Other functions check
//! the arguments of a call against it.

use tilewright_ir::derived::DerivedSize;
use tilewright_ir::tensor::TensorError;
use tilewright_ir::{DType, Number, Program, Role, SymbolKind, TensorId};

use crate::buffer::Buffer;
use crate::kernel::RunError;
use crate::view::Layout;

/// The parameters of a program whose sizes are all known.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Inputs that stay the same between calls.
    pub constants: Vec<Parameter>,
    /// The other inputs.
    pub inputs: Vec<Parameter>,
    /// The tensors that the program defines or updates.
    pub results: Vec<Parameter>,
    /// Scalar parameters.
    pub scalars: Vec<ScalarParameter>,
    /// The sizes that the program was specialised for and that scalars determine.
    pub derived: Vec<DerivedSize>,
}

/// A tensor that the caller supplies or gets.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The tensor in the program.
    pub tensor: TensorId,
    /// Its name.
    pub name: String,
    /// Whether the caller supplies the tensor, gets it, or both.
    pub role: Role,
    /// Its type and shape, and the strides that a kernel needs.
    pub layout: Layout,
}

/// A scalar that the caller supplies.
#[derive(Clone, Debug)]
pub struct ScalarParameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// The only value that the caller may pass, if the program was specialised for one.
    pub fixed: Option<i64>,
}

impl Signature {
    /// The parameters of a program. The error is the name of a tensor whose shape is not known yet,
    /// or is too large to exist.
    pub fn new(program: &Program) -> Result<Signature, String> {
        let mut signature = Signature {
            constants: Vec::new(),
            inputs: Vec::new(),
            results: Vec::new(),
            scalars: scalars(program),
            derived: program.derived_sizes(),
        };
        for (tensor, declared) in program.tensors_with(|role| role != Role::Temporary) {
            let shape = program.shape(tensor).ok_or_else(|| declared.name.clone())?;
            let layout = Layout::contiguous(declared.dtype, &shape).map_err(|_| declared.name.clone())?;
            let list = match declared.role {
                Role::Input { constant: true } => &mut signature.constants,
                Role::Input { constant: false } => &mut signature.inputs,
                Role::Output | Role::InOut | Role::Temporary => &mut signature.results,
            };
            list.push(Parameter { tensor, name: declared.name.clone(), role: declared.role, layout });
        }
        Ok(signature)
    }

    /// A tensor of zeros for every result, for a call to write to.
    pub fn zero_results(&self) -> Result<Vec<Buffer>, TensorError> {
        let zeros = |result: &Parameter| Buffer::zeros(result.layout.dtype(), result.layout.shape());
        self.results.iter().map(zeros).collect()
    }

    /// The scalars as generated code takes them: integers extended to 64 bits, floats as their
    /// bits. Refuses scalars that belong to other sizes.
    pub(crate) fn scalar_bits(&self, values: &[Number]) -> Result<Vec<u64>, RunError> {
        check_count("scalars", self.scalars.len(), values.len())?;
        self.derived.iter().try_for_each(|size| size.check(values)).map_err(Box::new)?;
        self.scalars.iter().zip(values).map(|(scalar, number)| scalar.bits(*number)).collect()
    }
}

fn scalars(program: &Program) -> Vec<ScalarParameter> {
    let fixed = |at: usize| {
        let is_this = |kind: SymbolKind| matches!(kind, SymbolKind::Scalar(scalar) if scalar.index() == at);
        program.symbols.iter().find(|symbol| is_this(symbol.kind)).and_then(|symbol| symbol.value)
    };
    let parameter = |(at, scalar): (usize, &tilewright_ir::Scalar)| ScalarParameter {
        name: scalar.name.clone(),
        dtype: scalar.dtype,
        fixed: fixed(at),
    };
    program.scalars.iter().enumerate().map(parameter).collect()
}

impl ScalarParameter {
    fn bits(&self, value: Number) -> Result<u64, RunError> {
        let number = value.convert(self.dtype);
        match self.fixed {
            Some(wanted) if number != Number::Int(wanted.into()).convert(self.dtype) => {
                Err(RunError::Specialised { name: self.name.clone(), wanted, found: value })
            }
            _ => Ok(bits(self.dtype, number)),
        }
    }
}

/// The bits of a number that is already a value of the type.
fn bits(dtype: DType, number: Number) -> u64 {
    match dtype {
        DType::Float16 => half::f16::from_f64(number.as_f64()).to_bits().into(),
        DType::BFloat16 => half::bf16::from_f64(number.as_f64()).to_bits().into(),
        DType::Float32 => (number.as_f64() as f32).to_bits().into(),
        DType::Float64 => number.as_f64().to_bits(),
        // In two's complement, the low half is the sign-extended value.
        _ => number.as_i128() as u64,
    }
}

/// Checks that a tensor has the type and shape of its parameter.
pub(crate) fn check_parameter(parameter: &Parameter, found: &Layout) -> Result<(), RunError> {
    check_layout(&parameter.name, &parameter.layout, found)
}

/// Checks that a tensor has the expected type and shape.
pub(crate) fn check_layout(name: &str, wanted: &Layout, found: &Layout) -> Result<(), RunError> {
    if wanted.dtype() == found.dtype() && wanted.shape() == found.shape() {
        return Ok(());
    }
    Err(RunError::Mismatch { name: name.to_owned(), wanted: wanted.to_string(), found: found.to_string() })
}

/// Checks that the number of tensors is right, and that each has the type and shape of its
/// parameter.
pub(crate) fn check_all<'a>(
    what: &'static str,
    parameters: &[Parameter],
    found: impl ExactSizeIterator<Item = &'a Layout>,
) -> Result<(), RunError> {
    check_count(what, parameters.len(), found.len())?;
    parameters.iter().zip(found).try_for_each(|(parameter, layout)| check_parameter(parameter, layout))
}

/// Checks that the number of arguments is right.
pub(crate) fn check_count(what: &'static str, wanted: usize, found: usize) -> Result<(), RunError> {
    if wanted == found { Ok(()) } else { Err(RunError::Count { what, wanted, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_extended_or_given_by_their_bits() {
        assert_eq!(bits(DType::Int8, Number::Int(-2)), (-2i64) as u64);
        assert_eq!(bits(DType::UInt64, Number::Int(u64::MAX.into())), u64::MAX);
        assert_eq!(bits(DType::Bool, Number::Int(1)), 1);
        assert_eq!(bits(DType::Float16, Number::Float(1.0)), 0x3c00);
        assert_eq!(bits(DType::BFloat16, Number::Float(1.0)), 0x3f80);
        assert_eq!(bits(DType::Float32, Number::Float(-0.5)), u64::from((-0.5f32).to_bits()));
        assert_eq!(bits(DType::Float64, Number::Float(-0.5)), (-0.5f64).to_bits());
    }

    #[test]
    fn a_fixed_scalar_has_one_value() {
        let scalar = ScalarParameter { name: "stride".into(), dtype: DType::Int32, fixed: Some(2) };
        assert_eq!(scalar.bits(Number::Int(2)).ok(), Some(2));
        let error = scalar.bits(Number::Int(3)).unwrap_err();
        let message = "the kernel is specialised for `stride` = 2, but the call passes 3";
        assert_eq!(error.to_string(), message);
    }
}

//! Stores the tensors of a running program or loop nest: checks the inputs that the caller
//! supplies, records which elements are defined so far, and returns the results.

use std::collections::BTreeMap;

use tilewright_ir::tensor::TensorError;
use tilewright_ir::{DType, Number, Origin, Program, Scalar, Tensor, TensorId};

use crate::error::{RunError, Undefined};
use crate::value::Value;

/// The tensors and scalars that the caller supplies, by name.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Inputs and in-out tensors.
    pub tensors: BTreeMap<String, Tensor>,
    /// Scalar parameters.
    pub scalars: BTreeMap<String, Number>,
}

/// A tensor of which some elements may be undefined.
pub(crate) struct Memory<V: Value = Number> {
    pub(crate) tensor: Tensor,
    /// Which elements are defined; empty if all of them are.
    defined: Vec<bool>,
    /// The data that values have in addition to their numbers.
    annotations: V::Annotations,
}

impl<V: Value> Memory<V> {
    /// A tensor with all elements defined.
    pub(crate) fn all_defined(tensor: Tensor) -> Memory<V> {
        Memory { tensor, defined: Vec::new(), annotations: V::Annotations::default() }
    }

    /// A tensor with no element defined.
    pub(crate) fn all_undefined(dtype: DType, shape: &[usize]) -> Result<Memory<V>, TensorError> {
        let tensor = Tensor::zeros(dtype, shape)?;
        let defined = vec![false; tensor.len()];
        Ok(Memory { tensor, defined, annotations: V::Annotations::default() })
    }

    /// Stores a value, converted to the type of the elements, at an index in row-major order.
    pub(crate) fn store(&mut self, index: usize, value: V) {
        value.store(&mut self.tensor, &mut self.annotations, index);
        if let Some(defined) = self.defined.get_mut(index) {
            *defined = true;
        }
    }

    /// The element at an index in row-major order, or `None` if it is undefined.
    pub(crate) fn load(&self, index: usize) -> Option<V> {
        (self.defined.get(index) != Some(&false)).then(|| V::load(&self.tensor, &self.annotations, index))
    }

    /// Records that it is not certain which element was stored to.
    pub(crate) fn mark_undecided(&mut self) {
        V::mark_undecided(&self.tensor, &mut self.annotations);
    }

    /// Marks all elements as undefined again, unless the tensor began with all elements defined.
    pub(crate) fn mark_undefined(&mut self) {
        self.defined.fill(false);
    }

    /// The subscripts of the element at an index in row-major order.
    pub(crate) fn subscripts(&self, index: usize) -> Vec<usize> {
        let mut element = Vec::new();
        let mut rest = index;
        for extent in self.tensor.shape().iter().rev() {
            element.push(rest % extent);
            rest /= extent;
        }
        element.reverse();
        element
    }
}

/// The tensors of a program before it runs: the checked tensors of the caller, and undefined ones.
pub(crate) fn initial_tensors<V: Value>(
    program: &Program,
    inputs: &mut Inputs,
) -> Result<Vec<Memory<V>>, RunError> {
    if let Some(open) = program.symbols.iter().find(|symbol| symbol.value.is_none()) {
        return Err(RunError::UnknownSize(open.name.clone()));
    }
    let mut memory = Vec::with_capacity(program.tensors.len());
    for (at, declared) in program.tensors.iter().enumerate() {
        let name = &declared.name;
        let shape = program.shape(TensorId(at as u32)).ok_or_else(|| RunError::UnknownSize(name.clone()))?;
        memory.push(if declared.role.is_supplied() {
            let found = inputs.tensors.remove(name).ok_or_else(|| RunError::Missing(name.clone()))?;
            check_type_and_shape(name, (declared.dtype, &shape), &found)?;
            Memory::all_defined(found)
        } else {
            Memory::all_undefined(declared.dtype, &shape)?
        });
    }
    Ok(memory)
}

/// Checks that a tensor has the required type and shape.
pub(crate) fn check_type_and_shape(
    name: &str,
    (dtype, shape): (DType, &[usize]),
    found: &Tensor,
) -> Result<(), RunError> {
    if found.dtype() == dtype && found.shape() == shape {
        return Ok(());
    }
    Err(RunError::Mismatch {
        name: name.to_owned(),
        wanted: format!("{dtype}{shape:?}"),
        found: format!("{}{:?}", found.dtype(), found.shape()),
    })
}

/// The values of scalar parameters, converted to their types. They must give the program's derived
/// sizes the values that the program holds.
pub(crate) fn scalar_values(
    program: &Program,
    scalars: &[Scalar],
    inputs: &Inputs,
) -> Result<Vec<Number>, RunError> {
    let value = |scalar: &Scalar| {
        let given = inputs.scalars.get(&scalar.name).ok_or_else(|| RunError::Missing(scalar.name.clone()))?;
        Ok(given.convert(scalar.dtype))
    };
    let values = scalars.iter().map(value).collect::<Result<Vec<Number>, RunError>>()?;
    program.derived_sizes().iter().try_for_each(|size| size.check(&values)).map_err(Box::new)?;
    Ok(values)
}

/// The results of a program that has run, by name. All of their elements must be defined.
pub(crate) fn results<V: Value>(
    program: &Program,
    memory: Vec<Memory<V>>,
) -> Result<BTreeMap<String, (Tensor, V::Annotations)>, RunError> {
    let mut results = BTreeMap::new();
    for (declared, memory) in program.tensors.iter().zip(memory) {
        if !declared.role.is_result() {
            continue;
        }
        if let Some(place) = memory.defined.iter().position(|defined| !defined) {
            return Err(RunError::Undefined(Box::new(Undefined {
                tensor: declared.name.clone(),
                element: memory.subscripts(place),
                point: Vec::new(),
                origin: Origin::default(),
            })));
        }
        results.insert(declared.name.clone(), (memory.tensor, memory.annotations));
    }
    Ok(results)
}

/// The results of a program that has run with plain numbers, by name.
pub(crate) fn result_tensors(
    program: &Program,
    memory: Vec<Memory>,
) -> Result<BTreeMap<String, Tensor>, RunError> {
    let results = results(program, memory)?;
    Ok(results.into_iter().map(|(name, (tensor, ()))| (name, tensor)).collect())
}

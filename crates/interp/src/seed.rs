//! Makes inputs from a seed, for callers without data of their own.
//!
//! Each tensor has its own random generator, and an element depends only on the generator and the
//! element's index in row-major order. Every release makes the same data from a seed. The generator
//! can jump ahead, so several threads fill a large tensor, each its own part.

use std::mem::MaybeUninit;
use std::thread;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tilewright_ir::tensor::{TensorError, byte_size};
use tilewright_ir::{Atom, DType, Expr, ExprKind, IndexExpr, Number, Program, Scalar, Tensor, TensorId};
use xxhash_rust::xxh3::xxh3_64;

use crate::memory::Inputs;

/// The least number of elements for one thread. Filling fewer takes no longer than starting a
/// thread.
const MIN_ELEMENTS_PER_THREAD: usize = 1 << 16;
/// The largest number that is tried for scalars which determine sizes.
const MOST_TRIED_SIZE: u16 = 1000;
/// The number of elements that are made one by one and then copied together.
const COPY_CHUNK: usize = 1 << 12;

/// The generator for one input. The same seed and name give the same data in every program.
fn generator(seed: u64, name: &str) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed ^ xxh3_64(name.as_bytes()))
}

/// Makes all inputs of a program. An integer scalar that sizes depend on gets the value of its
/// symbol.
pub fn inputs(program: &Program, seed: u64) -> Result<Inputs, TensorError> {
    complete_inputs(program, Inputs::default(), seed)
}

/// Completes the inputs of a program: keeps the given ones, and makes the others as [`inputs`]
/// does.
pub fn complete_inputs(program: &Program, mut inputs: Inputs, seed: u64) -> Result<Inputs, TensorError> {
    for (id, declared) in program.tensors_with(|role| role.is_supplied()) {
        if !inputs.tensors.contains_key(&declared.name) {
            let shape = program.shape(id).unwrap_or_default();
            inputs.tensors.insert(declared.name.clone(), tensor(program, id, &shape, seed)?);
        }
    }
    complete_scalars(program, &mut inputs, seed);
    Ok(inputs)
}

/// Makes the scalars of a program that are not given yet.
pub fn complete_scalars(program: &Program, inputs: &mut Inputs, seed: u64) {
    find_determining_scalars(program, inputs);
    for declared in &program.scalars {
        let symbol = program.symbols.iter().find(|symbol| symbol.name == declared.name);
        inputs.scalars.entry(declared.name.clone()).or_insert_with(|| {
            match symbol.and_then(|symbol| symbol.value) {
                Some(value) => Number::Int(value as i128),
                None => scalar(&declared.name, declared.dtype, seed),
            }
        });
    }
}

/// Makes the scalars that determine the sizes of a program, where simple numbers give the sizes
/// that the program holds. One number serves all such scalars.
pub fn find_determining_scalars(program: &Program, inputs: &mut Inputs) {
    let determining = program.derived.iter().flat_map(|derived| derived.scalars());
    let is_open = |name: &&String| !inputs.scalars.contains_key(*name);
    let open = determining.map(|id| &program.scalars[id.index()].name).filter(is_open);
    let open: Vec<String> = open.cloned().collect();
    if open.is_empty() {
        return;
    }
    let sizes = program.derived_sizes();
    let halves = || (0..2 * MOST_TRIED_SIZE).map(|number| f64::from(number) / 2.0);
    let tried = halves().chain(halves().skip(1).map(f64::recip));
    let found = tried.into_iter().find_map(|number| {
        let mut scalars = inputs.scalars.clone();
        scalars.extend(open.iter().map(|name| (name.clone(), Number::Float(number))));
        let value = |own: &Scalar| Some(scalars.get(&own.name)?.convert(own.dtype));
        let values: Vec<Number> =
            program.scalars.iter().map(|own| value(own).unwrap_or(Number::Int(0))).collect();
        sizes.iter().all(|size| size.check(&values).is_ok()).then_some(scalars)
    });
    inputs.scalars.extend(found.into_iter().flatten());
}

/// Makes a tensor for the program's declaration `id`.
pub fn tensor(program: &Program, id: TensorId, shape: &[usize], seed: u64) -> Result<Tensor, TensorError> {
    elements(program, id, seed).0.tensor(shape)
}

/// The elements of such a tensor, for callers that write them elsewhere or need only some of them.
pub fn elements(program: &Program, id: TensorId, seed: u64) -> Elements {
    let declared = program.tensor(id);
    let values = Values::Standard { limit: index_limit(program, id).unwrap_or(10).max(1) };
    Elements(ElementGenerator { generator: generator(seed, &declared.name), dtype: declared.dtype, values })
}

/// Equally likely numbers between two bounds, both inclusive. The bounds have the type of the
/// numbers; floats are rounded to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniform {
    /// The least number.
    pub low: Number,
    /// The largest number, which must not be less than `low`.
    pub high: Number,
}

impl Uniform {
    /// Makes a tensor of such numbers for the input with this name.
    pub fn tensor(self, name: &str, dtype: DType, shape: &[usize], seed: u64) -> Result<Tensor, TensorError> {
        ElementGenerator { generator: generator(seed, name), dtype, values: Values::Between(self) }
            .tensor(shape)
    }

    /// Makes one such number for the scalar with this name.
    pub fn scalar(self, name: &str, dtype: DType, seed: u64) -> Number {
        self.draw(generator(seed, name).next_u64()).convert(dtype)
    }

    fn draw(self, bits: u64) -> Number {
        match (self.low, self.high) {
            (Number::Int(low), Number::Int(high)) => {
                let count = high.abs_diff(low) + 1;
                Number::Int(low + ((u128::from(bits) * count) >> 64) as i128)
            }
            (low, high) => {
                let (low, high) = (low.as_f64(), high.as_f64());
                let part = (bits >> 11) as f64 / ((1u64 << 53) - 1) as f64;
                // The difference of the bounds may overflow, so the bounds are interpolated
                // instead.
                Number::Float((low * (1.0 - part) + high * part).clamp(low, high))
            }
        }
    }
}

/// The numbers that are drawn.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    /// Floats between -1 and 1, and integers below a limit.
    Standard {
        limit: u64,
    },
    Between(Uniform),
}

/// The elements that a seed makes for a tensor, in row-major order.
#[derive(Clone)]
pub struct Elements(ElementGenerator);

impl Elements {
    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Fills the bytes with elements, on all cores. Returns the same bytes, which are then
    /// initialised.
    pub fn fill<'b>(&self, bytes: &'b mut [MaybeUninit<u8>]) -> &'b mut [u8] {
        self.0.clone().fill(bytes);
        // SAFETY: `fill` writes every byte that it is given.
        unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [u8]) }
    }

    /// Replaces bytes by those of the elements from the byte offset `begin` on, which must be the
    /// start of an element.
    pub fn overwrite(&self, begin: usize, bytes: &mut [u8]) {
        let mut drawn = self.0.clone();
        drawn.generator.advance((begin / drawn.dtype.bytes()) as u128);
        // SAFETY: `fill` only writes, and only initialised bytes, so the bytes stay initialised.
        drawn.fill(unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) });
    }
}

/// The remaining elements of a tensor, starting at the generator's position.
#[derive(Clone)]
struct ElementGenerator {
    generator: Pcg64Mcg,
    dtype: DType,
    values: Values,
}

impl ElementGenerator {
    fn tensor(self, shape: &[usize]) -> Result<Tensor, TensorError> {
        let dtype = self.dtype;
        let bytes =
            byte_size(dtype, shape).ok_or_else(|| TensorError::TooLarge { dtype, shape: shape.to_vec() })?;
        let mut data = Vec::new();
        let refused = |_| TensorError::OutOfMemory { dtype, shape: shape.to_vec(), bytes };
        data.try_reserve_exact(bytes).map_err(refused)?;
        // The memory is not zeroed first, because the threads also fault in its pages faster, each
        // its own part.
        self.fill(&mut data.spare_capacity_mut()[..bytes]);
        // SAFETY: `bytes` bytes were reserved, and `fill` writes every byte that it is given.
        unsafe { data.set_len(bytes) };
        Tensor::from_bytes(dtype, shape, data)
    }

    /// Fills all bytes with whole elements, on all cores.
    fn fill(self, bytes: &mut [MaybeUninit<u8>]) {
        let width = self.dtype.bytes();
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let part = (bytes.len() / width).div_ceil(cores).max(MIN_ELEMENTS_PER_THREAD);
        thread::scope(|scope| {
            let mut parts = bytes.chunks_mut(part * width).enumerate();
            let first = parts.next();
            for (at, bytes) in parts {
                let mut drawn = self.clone();
                drawn.generator.advance(at as u128 * part as u128);
                scope.spawn(move || drawn.fill_part(bytes));
            }
            if let Some((_, bytes)) = first {
                self.clone().fill_part(bytes);
            }
        });
    }

    /// Fills the bytes in order, on one core.
    fn fill_part(mut self, bytes: &mut [MaybeUninit<u8>]) {
        if self.dtype == DType::Float32 && matches!(self.values, Values::Standard { .. }) {
            return self.fill_float32(bytes);
        }
        let width = self.dtype.bytes();
        let mut chunk = Tensor::zeros(self.dtype, &[COPY_CHUNK]).expect("a few elements fit");
        for bytes in bytes.chunks_mut(COPY_CHUNK * width) {
            for at in 0..bytes.len() / width {
                chunk.set(at, draw(&mut self.generator, self.dtype, self.values));
            }
            write(bytes, chunk.bytes());
        }
    }

    /// Draws the same values as [`draw`] without the conversion through `Number`, because most data
    /// is float32.
    fn fill_float32(mut self, bytes: &mut [MaybeUninit<u8>]) {
        for element in bytes.chunks_exact_mut(size_of::<f32>()) {
            let steps = (self.generator.next_u64() >> 40) as i32 - (1 << 23);
            write(element, &(steps as f32 / (1u32 << 23) as f32).to_le_bytes());
        }
    }
}

/// Copies bytes until `to` is full.
fn write(to: &mut [MaybeUninit<u8>], from: &[u8]) {
    assert!(to.len() <= from.len(), "every byte is written");
    for (to, from) in to.iter_mut().zip(from) {
        to.write(*from);
    }
}

/// Makes a scalar of the given type for the parameter with this name.
pub fn scalar(name: &str, dtype: DType, seed: u64) -> Number {
    draw(&mut generator(seed, name), dtype, Values::Standard { limit: 10 }).convert(dtype)
}

fn draw(generator: &mut Pcg64Mcg, dtype: DType, values: Values) -> Number {
    let bits = generator.next_u64();
    let limit = match values {
        Values::Between(uniform) => return uniform.draw(bits),
        Values::Standard { limit } => limit,
    };
    match dtype {
        DType::Bool => Number::Int((bits >> 63) as i128),
        // Multiples of 2^-23 between -1 and 1 are exact in float32.
        _ if dtype.is_float() => Number::Float((bits >> 40) as f64 / (1u64 << 23) as f64 - 1.0),
        _ if dtype == DType::UInt8 && limit == 10 => Number::Int((bits >> 56) as i128),
        _ => Number::Int(((bits >> 32) as i128 * limit as i128) >> 32),
    }
}

/// The smallest extent that the tensor's values index, or `None` if they index nothing.
pub fn index_limit(program: &Program, id: TensorId) -> Option<u64> {
    let mut limit: Option<u64> = None;
    let mut add_limit = |index: &IndexExpr, extent: Option<&IndexExpr>| {
        // Bounds that the program declares for the value have priority over the extent of the
        // indexed tensor.
        let mut declared = None;
        index.visit_atoms(&mut |atom| {
            if let Atom::Data(data) = atom
                && reads_tensor(&data.value, id)
                && let Some((_, to)) = &data.declared
            {
                declared = to.as_constant();
            }
        });
        let extent = declared.or(extent.and_then(IndexExpr::as_constant));
        let extent = extent.and_then(|extent| u64::try_from(extent).ok());
        let reads =
            index.any_atom(&mut |atom| matches!(atom, Atom::Data(data) if reads_tensor(&data.value, id)));
        if let (Some(extent), true) = (extent, reads) {
            limit = Some(limit.map_or(extent, |limit| limit.min(extent)));
        }
    };
    for (statement, _) in program.statements() {
        for (at, index) in statement.indices.iter().enumerate() {
            add_limit(index, program.tensor(statement.target).shape.get(at));
        }
        visit_accesses(&statement.value, &mut |tensor, indices| {
            for (at, index) in indices.iter().enumerate() {
                add_limit(index, program.tensor(tensor).shape.get(at));
            }
        });
    }
    limit
}

fn reads_tensor(value: &Expr, id: TensorId) -> bool {
    let mut found = false;
    visit_accesses(value, &mut |tensor, _| found |= tensor == id);
    found
}

fn visit_accesses(expr: &Expr, visit: &mut dyn FnMut(TensorId, &[IndexExpr])) {
    if let ExprKind::Load(access) = &expr.kind {
        visit(access.tensor, &access.indices);
        for index in &access.indices {
            index.visit_atoms(&mut |atom| {
                if let Atom::Data(data) = atom {
                    visit_accesses(&data.value, visit);
                }
            });
        }
    }
    expr.operands().iter().for_each(|operand| visit_accesses(operand, visit));
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: Values = Values::Standard { limit: 10 };

    /// The elements in order, one by one, as the definition says.
    fn one_by_one(mut drawn: ElementGenerator, length: usize) -> Tensor {
        let mut tensor = Tensor::zeros(drawn.dtype, &[length]).expect("it is small");
        for at in 0..length {
            tensor.set(at, draw(&mut drawn.generator, drawn.dtype, drawn.values));
        }
        tensor
    }

    #[test]
    fn elements_do_not_depend_on_who_makes_them() {
        for dtype in DType::ALL {
            for (limit, length) in [(10, 0), (7, 1), (10, 5000), (1 << 40, 2 * MIN_ELEMENTS_PER_THREAD + 77)]
            {
                let drawn = ElementGenerator {
                    generator: generator(3, "x"),
                    dtype,
                    values: Values::Standard { limit },
                };
                let made = drawn.clone().tensor(&[length]).expect("it is small");
                assert!(made == one_by_one(drawn, length), "{dtype} {limit} {length}");
            }
        }
    }

    #[test]
    fn elements_do_not_depend_on_where_they_are_written() {
        for dtype in [DType::Float32, DType::Int16, DType::Bool] {
            let drawn = ElementGenerator { generator: generator(3, "x"), dtype, values: STANDARD };
            let wanted = drawn.clone().tensor(&[3 * MIN_ELEMENTS_PER_THREAD]).expect("it is small");
            let mut room = vec![MaybeUninit::uninit(); wanted.bytes().len()];
            assert!(Elements(drawn.clone()).fill(&mut room) == wanted.bytes(), "{dtype}");
            let begin = 70_001 * dtype.bytes();
            let mut part = vec![0; MIN_ELEMENTS_PER_THREAD * dtype.bytes()];
            Elements(drawn).overwrite(begin, &mut part);
            assert!(part == wanted.bytes()[begin..][..part.len()], "{dtype}");
        }
    }

    #[test]
    fn a_seed_means_the_same_data_in_every_release() {
        let drawn = |dtype| ElementGenerator { generator: generator(0, "A"), dtype, values: STANDARD };
        let digest = |dtype| xxh3_64(drawn(dtype).tensor(&[300, 1000]).expect("it is small").bytes());
        let digests = [DType::Float32, DType::Float16, DType::Int32, DType::Bool].map(digest);
        let wanted = [0x5f121ffee75dfe4d, 0x4fccc5fbd6d92322, 0x4b1149ccf9520fce, 0x62525ecf644a9081];
        assert_eq!(digests, wanted);
    }

    #[test]
    fn impossible_shapes_are_rejected() {
        let drawn =
            ElementGenerator { generator: generator(0, "A"), dtype: DType::Float32, values: STANDARD };
        let error = drawn.clone().tensor(&[usize::MAX, 3]);
        assert!(matches!(error, Err(TensorError::TooLarge { .. })));
        let error = drawn.tensor(&[1 << 40, 1 << 18]);
        assert!(matches!(error, Err(TensorError::OutOfMemory { bytes: 0x1000_0000_0000_0000, .. })));
    }

    #[test]
    fn uniform_numbers_are_between_their_ends() {
        let drawn = |dtype, low, high| {
            let tensor = Uniform { low, high }.tensor("x", dtype, &[3000], 5).expect("it is small");
            (0..tensor.len()).map(|at| tensor.get(at)).collect::<Vec<_>>()
        };
        for dtype in [DType::Float16, DType::BFloat16, DType::Float32, DType::Float64] {
            let floats = drawn(dtype, Number::Float(0.25), Number::Float(4.0));
            let values: Vec<f64> = floats.iter().map(|value| value.as_f64()).collect();
            assert!(values.iter().all(|value| (0.25..=4.0).contains(value)), "{dtype}");
            assert!(values.iter().any(|value| *value < 0.5) && values.iter().any(|value| *value > 3.5));
        }
        let bytes = drawn(DType::UInt8, Number::Int(0), Number::Int(255));
        let found: std::collections::BTreeSet<_> = bytes.iter().map(|value| value.as_i128()).collect();
        assert!(found.first() == Some(&0) && found.last() == Some(&255) && found.len() > 250);
        assert!(
            drawn(DType::Int8, Number::Int(-3), Number::Int(-3))
                .iter()
                .all(|value| *value == Number::Int(-3))
        );
        let widest = drawn(DType::Float64, Number::Float(f64::MIN), Number::Float(f64::MAX));
        assert!(widest.iter().all(|value| value.as_f64().is_finite()));
        let all = drawn(DType::Int64, Number::Int(i64::MIN.into()), Number::Int(i64::MAX.into()));
        assert!(all.iter().any(|value| value.as_i128() < 0) && all.iter().any(|value| value.as_i128() > 0));
        assert_eq!(bytes, drawn(DType::UInt8, Number::Int(0), Number::Int(255)));
    }
}

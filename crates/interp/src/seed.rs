//! Inputs made from a seed, for whoever has no data at hand.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tilewright_ir::tensor::TensorError;
use tilewright_ir::{Atom, DType, Expr, ExprKind, IndexExpr, Number, Program, Tensor, TensorId};
use xxhash_rust::xxh3::xxh3_64;

use crate::memory::Inputs;

/// A generator for one input: the same seed and name give the same data, whatever else the program has.
fn generator(seed: u64, name: &str) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed ^ xxh3_64(name.as_bytes()))
}

/// Everything that a program takes. Integer scalars that sizes depend on have the value of their symbol.
pub fn inputs(program: &Program, seed: u64) -> Result<Inputs, TensorError> {
    let mut inputs = Inputs::default();
    for (id, declared) in program.tensors_with(|role| role.is_supplied()) {
        let shape = program.shape(id).unwrap_or_default();
        inputs.tensors.insert(declared.name.clone(), tensor(program, id, &shape, seed)?);
    }
    for declared in &program.scalars {
        let symbol = program.symbols.iter().find(|symbol| symbol.name == declared.name);
        let value = match symbol.and_then(|symbol| symbol.value) {
            Some(value) => Number::Int(value as i128),
            None => scalar(&declared.name, declared.dtype, seed),
        };
        inputs.scalars.insert(declared.name.clone(), value);
    }
    Ok(inputs)
}

/// A tensor for the program's declaration `id`.
pub fn tensor(program: &Program, id: TensorId, shape: &[usize], seed: u64) -> Result<Tensor, TensorError> {
    let declared = program.tensor(id);
    let mut generator = generator(seed, &declared.name);
    let mut tensor = Tensor::zeros(declared.dtype, shape)?;
    let limit = index_limit(program, id).unwrap_or(10).max(1);
    for at in 0..tensor.len() {
        tensor.set(at, draw(&mut generator, declared.dtype, limit));
    }
    Ok(tensor)
}

/// A scalar of a float type.
pub fn scalar(name: &str, dtype: DType, seed: u64) -> Number {
    draw(&mut generator(seed, name), dtype, 10).convert(dtype)
}

fn draw(generator: &mut Pcg64Mcg, dtype: DType, limit: u64) -> Number {
    let bits = generator.next_u64();
    match dtype {
        DType::Bool => Number::Int((bits >> 63) as i128),
        // Multiples of 2^-23 between -1 and 1 are exact in float32.
        _ if dtype.is_float() => Number::Float((bits >> 40) as f64 / (1u64 << 23) as f64 - 1.0),
        _ if dtype == DType::UInt8 && limit == 10 => Number::Int((bits >> 56) as i128),
        _ => Number::Int(((bits >> 32) as i128 * limit as i128) >> 32),
    }
}

/// The smallest extent that the tensor's values are used to index, if they are.
fn index_limit(program: &Program, id: TensorId) -> Option<u64> {
    let mut limit: Option<u64> = None;
    let mut note = |index: &IndexExpr, extent: Option<&IndexExpr>| {
        // Bounds that the program declares for the value count more than the tensor it indexes.
        let mut declared = None;
        index.visit(&mut |atom| {
            if let Atom::Data(data) = atom
                && loads(&data.value, id)
                && let Some((_, to)) = &data.declared
            {
                declared = to.as_constant();
            }
        });
        let extent = declared.or(extent.and_then(IndexExpr::as_constant));
        let extent = extent.and_then(|extent| u64::try_from(extent).ok());
        let reads = index.any(&mut |atom| matches!(atom, Atom::Data(data) if loads(&data.value, id)));
        if let (Some(extent), true) = (extent, reads) {
            limit = Some(limit.map_or(extent, |limit| limit.min(extent)));
        }
    };
    for (statement, _) in program.statements() {
        for (at, index) in statement.indices.iter().enumerate() {
            note(index, program.tensor(statement.target).shape.get(at));
        }
        visit_accesses(&statement.value, &mut |tensor, indices| {
            for (at, index) in indices.iter().enumerate() {
                note(index, program.tensor(tensor).shape.get(at));
            }
        });
    }
    limit
}

fn loads(value: &Expr, id: TensorId) -> bool {
    let mut found = false;
    visit_accesses(value, &mut |tensor, _| found |= tensor == id);
    found
}

fn visit_accesses(expr: &Expr, visit: &mut dyn FnMut(TensorId, &[IndexExpr])) {
    if let ExprKind::Load(access) = &expr.kind {
        visit(access.tensor, &access.indices);
        for index in &access.indices {
            index.visit(&mut |atom| {
                if let Atom::Data(data) = atom {
                    visit_accesses(&data.value, visit);
                }
            });
        }
    }
    expr.operands().iter().for_each(|operand| visit_accesses(operand, visit));
}

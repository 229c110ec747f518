//! Branches to the C library for the rare arguments that a function's vector code does not cover.
//!
//! The result is the vector code's where no lane is rare, and the library's for all lanes of a
//! vector otherwise. Only this file adds blocks to the emitted code.

use inkwell::IntPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::{BasicMetadataValueEnum, FunctionValue, InstructionValue};

use super::lanes::{Lanes, Mask, lane_index};

const IN_BLOCK: &str = "the builder has a position";

/// Returns `near`, or the results of the C library's function `name` for all lanes if any lane is
/// `rare`. The name is that of the double-precision function.
pub(super) fn library_where<'ctx, 'm>(
    rare: Mask<'ctx, 'm>,
    name: &str,
    arguments: &[Lanes<'ctx, 'm>],
    near: Lanes<'ctx, 'm>,
) -> Lanes<'ctx, 'm> {
    let (builder, context) = (near.m.builder, near.m.context);
    let any_rare = rare.any();
    let start = builder.get_insert_block().expect("code is emitted into a block");
    let library = context.insert_basic_block_after(start, "library");
    let done = context.insert_basic_block_after(library, "near");
    let branch = builder.build_conditional_branch(any_rare, library, done).expect(IN_BLOCK);
    mark_unlikely(near, branch);

    builder.position_at_end(library);
    let far = library_lane_by_lane(arguments, name);
    let end = builder.get_insert_block().expect("the loop leaves the builder in a block");
    builder.build_unconditional_branch(done).expect(IN_BLOCK);

    builder.position_at_end(done);
    let result = builder.build_phi(near.value.get_type(), "").expect(IN_BLOCK);
    result.add_incoming(&[(&near.value, start), (&far.value, end)]);
    near.with(result.as_basic_value().into_vector_value())
}

/// Emits a loop over the lanes that calls a C library function for each, and leaves the builder in
/// the block after the loop. Separate calls for each lane would be long for wide vectors, and the
/// code hardly ever runs.
fn library_lane_by_lane<'ctx, 'm>(arguments: &[Lanes<'ctx, 'm>], name: &str) -> Lanes<'ctx, 'm> {
    let x = arguments[0];
    let (builder, context) = (x.m.builder, x.m.context);
    let before = builder.get_insert_block().expect("code is emitted into a block");
    let body = context.insert_basic_block_after(before, "library.lane");
    let after = context.insert_basic_block_after(body, "library.done");
    builder.build_unconditional_branch(body).expect(IN_BLOCK);

    builder.position_at_end(body);
    let index = builder.build_phi(context.i32_type(), "").expect(IN_BLOCK);
    let results = builder.build_phi(x.value.get_type(), "").expect(IN_BLOCK);
    let lane = index.as_basic_value().into_int_value();
    let so_far = x.with(results.as_basic_value().into_vector_value());
    let scalars: Vec<_> = arguments.iter().map(|argument| argument.lane(lane).into()).collect();
    let function = library_function(x, name, arguments.len());
    let call = builder.build_call(function, &scalars, "").expect(IN_BLOCK);
    let scalar = call.try_as_basic_value().expect_basic("the function gives a float").into_float_value();
    let next_results = so_far.with_lane(lane, scalar);
    let next = builder.build_int_add(lane, lane_index(x.m, 1), "").expect(IN_BLOCK);
    index.add_incoming(&[(&lane_index(x.m, 0), before), (&next, body)]);
    results.add_incoming(&[(&x.value, before), (&next_results.value, body)]);
    let count = lane_index(x.m, x.count() as u64);
    let finished = builder.build_int_compare(IntPredicate::EQ, next, count, "").expect(IN_BLOCK);
    builder.build_conditional_branch(finished, after, body).expect(IN_BLOCK);

    builder.position_at_end(after);
    next_results
}

/// A function of the C library on floats, declared once in each module.
fn library_function<'ctx>(x: Lanes<'ctx, '_>, name: &str, arity: usize) -> FunctionValue<'ctx> {
    let name = x.precision.pick(format!("{name}f"), name.to_owned());
    if let Some(function) = x.m.module.get_function(&name) {
        return function;
    }
    let scalar = x.precision.float_type(x.m);
    let function = x.m.module.add_function(&name, scalar.fn_type(&vec![scalar.into(); arity], false), None);
    // The code never reads `errno`, so the call neither changes memory (value 0 of `memory`) nor
    // ends the kernel.
    for attribute in ["nounwind", "willreturn", "memory"] {
        let kind = Attribute::get_named_enum_kind_id(attribute);
        function.add_attribute(AttributeLoc::Function, x.m.context.create_enum_attribute(kind, 0));
    }
    function
}

/// Marks the taken side of a branch as unlikely, so that the backend moves it out of the way.
fn mark_unlikely<'ctx>(x: Lanes<'ctx, '_>, branch: InstructionValue<'ctx>) {
    let context = x.m.context;
    let weight = |w| BasicMetadataValueEnum::from(context.i32_type().const_int(w, false));
    let weights = [context.metadata_string("branch_weights").into(), weight(1), weight(2000)];
    let kind = context.get_kind_id("prof");
    branch.set_metadata(context.metadata_node(&weights), kind).expect("a branch takes metadata");
}

//! Builds LLVM instructions on operands that are either scalars or vectors.
//!
//! In the body of a vector loop, a value that is the same in all lanes stays a scalar, and a value
//! that differs is an LLVM vector. [`Ops`] accepts both: where a scalar meets a vector, the scalar
//! is broadcast. So only the code for memory and control flow must distinguish the two.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys;
use inkwell::module::Module;
use inkwell::types::{BasicTypeEnum, IntType, VectorType};
use inkwell::values::{AsValueRef, BasicValueEnum, InstructionOpcode, IntValue, PointerValue, VectorValue};
use inkwell::{AddressSpace, FloatPredicate, IntPredicate};
use tilewright_ir::DType;

/// A scalar that is the same in all lanes, or a vector with one element for each lane.
pub(super) type Value<'ctx> = BasicValueEnum<'ctx>;

/// The reason why building an instruction cannot fail: the builder has a position, and the operands
/// have matching types.
pub(super) const BUILT: &str = "the builder has a position and the operands have matching types";

/// The reason why a call has a value: the code reads results only of functions that return one.
pub(super) const RESULT: &str = "the function has a result";

/// Builds instructions at the current position.
pub(super) struct Ops<'ctx> {
    pub(super) context: &'ctx Context,
    pub(super) module: Module<'ctx>,
    pub(super) builder: Builder<'ctx>,
}

impl<'ctx> Ops<'ctx> {
    pub(super) fn new(context: &'ctx Context, name: &str) -> Ops<'ctx> {
        Ops { context, module: context.create_module(name), builder: context.create_builder() }
    }

    // Types.

    pub(super) fn i64(&self) -> IntType<'ctx> {
        self.context.i64_type()
    }

    pub(super) fn ptr(&self) -> BasicTypeEnum<'ctx> {
        self.context.ptr_type(AddressSpace::default()).into()
    }

    /// The integer type of a width.
    pub(super) fn int_type(&self, bits: u32) -> IntType<'ctx> {
        let bits = std::num::NonZeroU32::new(bits).expect("integer types have a width");
        self.context.custom_width_int_type(bits).expect("widths here are far below LLVM's limit")
    }

    /// The type of values during computation: `float` for 16-bit floats, and one bit for truth
    /// values.
    pub(super) fn compute_type(&self, dtype: DType) -> BasicTypeEnum<'ctx> {
        match dtype {
            DType::Bool => self.context.bool_type().into(),
            DType::Float16 | DType::BFloat16 | DType::Float32 => self.context.f32_type().into(),
            DType::Float64 => self.context.f64_type().into(),
            integer => self.int_type(integer.bits()).into(),
        }
    }

    /// The type of values in memory. 16-bit floats are stored as their bits.
    pub(super) fn memory_type(&self, dtype: DType) -> BasicTypeEnum<'ctx> {
        match dtype {
            DType::Float32 | DType::Float64 => self.compute_type(dtype),
            other => self.int_type(other.bits()).into(),
        }
    }

    /// The vector type with this many lanes, or the scalar type for `None`.
    pub(super) fn widen(&self, element: BasicTypeEnum<'ctx>, lanes: Option<u32>) -> BasicTypeEnum<'ctx> {
        match lanes {
            Some(lanes) => vector_of(element, lanes).into(),
            None => element,
        }
    }

    // Constants.

    pub(super) fn int(&self, value: i64) -> IntValue<'ctx> {
        integer(self.i64(), value)
    }

    pub(super) fn bit(&self, value: bool) -> Value<'ctx> {
        self.context.bool_type().const_int(value as u64, false).into()
    }

    /// An integer constant of the element type of `like`, as a scalar.
    pub(super) fn int_like(&self, like: Value<'ctx>, value: i64) -> Value<'ctx> {
        integer(element_type(like).into_int_type(), value).into()
    }

    /// A float constant of the element type of `like`, as a scalar.
    pub(super) fn float_like(&self, like: Value<'ctx>, value: f64) -> Value<'ctx> {
        element_type(like).into_float_type().const_float(value).into()
    }

    /// The vector `0, step, 2 * step, …`.
    pub(super) fn iota(&self, element: IntType<'ctx>, lanes: u32, step: i64) -> Value<'ctx> {
        let values: Vec<_> = (0..lanes as i64).map(|lane| integer(element, lane * step)).collect();
        VectorType::const_vector(&values).into()
    }

    // Vectors.

    /// Broadcasts a value to all lanes.
    pub(super) fn splat(&self, value: Value<'ctx>, lanes: u32) -> Value<'ctx> {
        if value.is_vector_value() {
            return value;
        }
        let poison = vector_of(value.get_type(), lanes).get_poison();
        let zero = self.context.i32_type().const_zero();
        let first = self.builder.build_insert_element(poison, value, zero, "").expect(BUILT);
        let pattern = self.context.i32_type().vec_type(lanes).const_zero();
        self.builder.build_shuffle_vector(first, poison, pattern, "").expect(BUILT).into()
    }

    /// Broadcasts a scalar operand where the other operand is a vector.
    pub(super) fn matched(&self, left: Value<'ctx>, right: Value<'ctx>) -> (Value<'ctx>, Value<'ctx>) {
        match (lanes_of(left), lanes_of(right)) {
            (Some(lanes), None) => (left, self.splat(right, lanes)),
            (None, Some(lanes)) => (self.splat(left, lanes), right),
            _ => (left, right),
        }
    }

    /// Selects elements of the concatenation of `left` and `right`, by their positions.
    pub(super) fn shuffle(
        &self,
        left: Value<'ctx>,
        right: Value<'ctx>,
        places: impl Iterator<Item = u64>,
    ) -> Value<'ctx> {
        let small = self.context.i32_type();
        let pattern: Vec<_> = places.map(|place| small.const_int(place, false)).collect();
        let (left, right) = (left.into_vector_value(), right.into_vector_value());
        let pattern = VectorType::const_vector(&pattern);
        self.builder.build_shuffle_vector(left, right, pattern, "").expect(BUILT).into()
    }

    pub(super) fn extract(&self, vector: Value<'ctx>, lane: u32) -> Value<'ctx> {
        let lane = self.context.i32_type().const_int(lane as u64, false);
        self.builder.build_extract_element(vector.into_vector_value(), lane, "").expect(BUILT)
    }

    pub(super) fn insert(&self, vector: Value<'ctx>, value: Value<'ctx>, lane: u32) -> Value<'ctx> {
        let lane = self.context.i32_type().const_int(lane as u64, false);
        self.builder.build_insert_element(vector.into_vector_value(), value, lane, "").expect(BUILT).into()
    }

    // Arithmetic.

    pub(super) fn binary(&self, op: InstructionOpcode, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        let (left, right) = self.matched(left, right);
        self.builder.build_binop(op, left, right, "").expect(BUILT)
    }

    pub(super) fn add(&self, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        self.binary(InstructionOpcode::Add, left, right)
    }

    pub(super) fn sub(&self, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        self.binary(InstructionOpcode::Sub, left, right)
    }

    pub(super) fn mul(&self, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        self.binary(InstructionOpcode::Mul, left, right)
    }

    pub(super) fn and(&self, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        self.binary(InstructionOpcode::And, left, right)
    }

    pub(super) fn or(&self, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        self.binary(InstructionOpcode::Or, left, right)
    }

    pub(super) fn xor(&self, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        self.binary(InstructionOpcode::Xor, left, right)
    }

    /// The complement of all bits.
    pub(super) fn not(&self, value: Value<'ctx>) -> Value<'ctx> {
        self.xor(value, self.int_like(value, -1))
    }

    /// The conjunction of two conditions, where `None` means true.
    pub(super) fn and_maybe(&self, left: Option<Value<'ctx>>, right: Value<'ctx>) -> Value<'ctx> {
        left.map_or(right, |left| self.and(left, right))
    }

    pub(super) fn icmp(&self, predicate: IntPredicate, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        match self.matched(left, right) {
            (Value::IntValue(left), Value::IntValue(right)) => {
                self.builder.build_int_compare(predicate, left, right, "").expect(BUILT).into()
            }
            (left, right) => self
                .builder
                .build_int_compare(predicate, left.into_vector_value(), right.into_vector_value(), "")
                .expect(BUILT)
                .into(),
        }
    }

    pub(super) fn fcmp(
        &self,
        predicate: FloatPredicate,
        left: Value<'ctx>,
        right: Value<'ctx>,
    ) -> Value<'ctx> {
        match self.matched(left, right) {
            (Value::FloatValue(left), Value::FloatValue(right)) => {
                self.builder.build_float_compare(predicate, left, right, "").expect(BUILT).into()
            }
            (left, right) => self
                .builder
                .build_float_compare(predicate, left.into_vector_value(), right.into_vector_value(), "")
                .expect(BUILT)
                .into(),
        }
    }

    /// Selects one of two values, lane by lane where the condition is a vector. Both values are
    /// evaluated.
    pub(super) fn select(
        &self,
        condition: Value<'ctx>,
        then: Value<'ctx>,
        otherwise: Value<'ctx>,
    ) -> Value<'ctx> {
        let (mut then, mut otherwise) = self.matched(then, otherwise);
        match condition {
            Value::IntValue(condition) => {
                self.builder.build_select(condition, then, otherwise, "").expect(BUILT)
            }
            condition => {
                let condition = condition.into_vector_value();
                let lanes = condition.get_type().get_size();
                then = self.splat(then, lanes);
                otherwise = self.splat(otherwise, lanes);
                self.builder.build_select(condition, then, otherwise, "").expect(BUILT)
            }
        }
    }

    // Conversions.

    /// Converts a value to `element`, in as many lanes as the value has.
    pub(super) fn cast(
        &self,
        op: InstructionOpcode,
        value: Value<'ctx>,
        element: impl Into<BasicTypeEnum<'ctx>>,
    ) -> Value<'ctx> {
        let to = self.widen(element.into(), lanes_of(value));
        if to == value.get_type() {
            return value;
        }
        self.builder.build_cast(op, value, to, "").expect(BUILT)
    }

    /// Truncates or extends an integer to another width.
    pub(super) fn resize(&self, value: Value<'ctx>, to: IntType<'ctx>, signed: bool) -> Value<'ctx> {
        let from = element_type(value).into_int_type().get_bit_width();
        let op = match (from > to.get_bit_width(), signed) {
            (true, _) => InstructionOpcode::Trunc,
            (false, true) => InstructionOpcode::SExt,
            (false, false) => InstructionOpcode::ZExt,
        };
        self.cast(op, value, to)
    }

    // Calls.

    /// Calls an intrinsic, with the overload that `types` selects.
    pub(super) fn intrinsic(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'ctx>],
        arguments: &[Value<'ctx>],
    ) -> inkwell::values::CallSiteValue<'ctx> {
        let intrinsic = Intrinsic::find(name).expect("LLVM has the intrinsics used here");
        let function = intrinsic
            .get_declaration(&self.module, types)
            .expect("`types` selects an overload of the intrinsic");
        let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).into()).collect();
        self.builder.build_call(function, &arguments, "").expect(BUILT)
    }

    /// Calls an intrinsic whose operands and result have one type.
    pub(super) fn elementwise(&self, name: &str, arguments: &[Value<'ctx>]) -> Value<'ctx> {
        let lanes = arguments.iter().find_map(|argument| lanes_of(*argument));
        let arguments: Vec<Value<'ctx>> =
            arguments.iter().map(|value| lanes.map_or(*value, |lanes| self.splat(*value, lanes))).collect();
        self.intrinsic(name, &[arguments[0].get_type()], &arguments).try_as_basic_value().expect_basic(RESULT)
    }

    /// Whether a condition holds in any lane, as a scalar.
    pub(super) fn any(&self, condition: Value<'ctx>) -> IntValue<'ctx> {
        if !condition.is_vector_value() {
            return condition.into_int_value();
        }
        let types = [condition.get_type()];
        self.intrinsic("llvm.vector.reduce.or", &types, &[condition])
            .try_as_basic_value()
            .expect_basic(RESULT)
            .into_int_value()
    }

    // Addresses.

    /// The address `index` elements from `base`, which lies in the same buffer.
    pub(super) fn element_ptr(
        &self,
        element: BasicTypeEnum<'ctx>,
        base: PointerValue<'ctx>,
        index: IntValue<'ctx>,
    ) -> PointerValue<'ctx> {
        // SAFETY: plain address arithmetic. It is not marked as in bounds, since parts of a
        // subscript may lead outside the buffer.
        unsafe { self.builder.build_gep(element, base, &[index], "").expect(BUILT) }
    }

    /// One address for each lane.
    pub(super) fn element_ptrs(
        &self,
        element: BasicTypeEnum<'ctx>,
        base: PointerValue<'ctx>,
        indices: VectorValue<'ctx>,
    ) -> Value<'ctx> {
        use inkwell::types::AsTypeRef;
        let mut indices = [indices.as_value_ref()];
        // SAFETY: a `getelementptr` with a vector of indices, for which inkwell has no wrapper.
        unsafe {
            VectorValue::new(llvm_sys::core::LLVMBuildGEP2(
                self.builder.as_mut_ptr(),
                element.as_type_ref(),
                base.as_value_ref(),
                indices.as_mut_ptr(),
                1,
                c"".as_ptr(),
            ))
            .into()
        }
    }
}

/// An integer constant: the low bits of `value`.
pub(super) fn integer(kind: IntType<'_>, value: i64) -> IntValue<'_> {
    let bits = value as u64 & (u64::MAX >> (64 - kind.get_bit_width()));
    kind.const_int(bits, false)
}

/// The number of lanes of a value; `None` for a scalar.
pub(super) fn lanes_of(value: Value<'_>) -> Option<u32> {
    match value {
        Value::VectorValue(vector) => Some(vector.get_type().get_size()),
        _ => None,
    }
}

/// The type of one lane.
pub(super) fn element_type(value: Value<'_>) -> BasicTypeEnum<'_> {
    match value {
        Value::VectorValue(vector) => vector.get_type().get_element_type(),
        scalar => scalar.get_type(),
    }
}

pub(super) fn vector_of(element: BasicTypeEnum<'_>, lanes: u32) -> VectorType<'_> {
    match element {
        BasicTypeEnum::IntType(element) => element.vec_type(lanes),
        BasicTypeEnum::FloatType(element) => element.vec_type(lanes),
        other => other.into_pointer_type().vec_type(lanes),
    }
}

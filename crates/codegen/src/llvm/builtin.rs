//! Emits the builtin functions of the language, such as `sqrt` and `exp`. A function becomes
//! instructions if LLVM has them or expands it well, else inline code with polynomials
//! ([`super::math`]), else a call of the C library for each lane.

use inkwell::FloatPredicate;
use inkwell::attributes::AttributeLoc;
use inkwell::values::{FunctionValue, InstructionOpcode};
use tilewright_ir::{Builtin, DType};

use super::function::Unit;
use super::math::{self, MathContext};
use super::ops::{BUILT, RESULT, Value, element_type, lanes_of};

impl<'ctx> Unit<'ctx, '_> {
    /// Emits a builtin function of arguments of type `dtype`.
    pub(super) fn builtin(&self, builtin: Builtin, arguments: &[Value<'ctx>], dtype: DType) -> Value<'ctx> {
        let x = arguments[0];
        match builtin {
            Builtin::Abs if dtype.is_signed_integer() => {
                let wrap = self.ops.bit(false);
                self.ops
                    .intrinsic("llvm.abs", &[x.get_type()], &[x, wrap])
                    .try_as_basic_value()
                    .expect_basic(RESULT)
            }
            Builtin::Abs if !dtype.is_float() => x,
            _ if builtin.is_on_integers() => self.integer_builtin(builtin, arguments),
            Builtin::IsNan => self.ops.fcmp(FloatPredicate::UNO, x, x),
            Builtin::IsInf => self.compared_to_infinity(FloatPredicate::OEQ, x),
            Builtin::IsFinite => self.compared_to_infinity(FloatPredicate::OLT, x),
            _ => self.rounded(dtype, self.float_builtin(builtin, arguments)),
        }
    }

    fn compared_to_infinity(&self, predicate: FloatPredicate, x: Value<'ctx>) -> Value<'ctx> {
        let magnitude = self.ops.elementwise("llvm.fabs", &[x]);
        self.ops.fcmp(predicate, magnitude, self.ops.float_like(x, f64::INFINITY))
    }

    fn float_builtin(&self, builtin: Builtin, arguments: &[Value<'ctx>]) -> Value<'ctx> {
        if let Some(name) = intrinsic_of(builtin) {
            return self.ops.elementwise(name, arguments);
        }
        if let Some(value) = self.inline_function(builtin, arguments) {
            return value;
        }
        let x = arguments[0];
        match builtin {
            Builtin::Rsqrt => self.reciprocal(self.ops.elementwise("llvm.sqrt", &[x])),
            Builtin::Sigmoid => {
                let exponential = self.float_builtin(Builtin::Exp, &[self.negated(x)]);
                let one = self.ops.float_like(x, 1.0);
                self.reciprocal(self.ops.binary(InstructionOpcode::FAdd, exponential, one))
            }
            _ => self.library_call(builtin.name(), arguments),
        }
    }

    /// Emits a function by the code of [`math`](super::math), if there is any.
    fn inline_function(&self, builtin: Builtin, arguments: &[Value<'ctx>]) -> Option<Value<'ctx>> {
        let (context, module, builder) = (self.ops.context, &self.ops.module, &self.ops.builder);
        let has_scalef = self.machine.vector_bits == Some(512);
        let m = MathContext { context, module, builder, has_scalef, has_fma: self.machine.has_fma };
        if let (Builtin::Pow, Some(exponent)) = (builtin, arguments.get(1).and_then(float_constant))
            && let Some(power) = math::constant_power(&m, arguments[0], exponent)
        {
            return Some(power);
        }
        math::call(&m, builtin, &self.with_equal_lanes(arguments))
    }

    /// The arguments as vectors of equal length, if any is a vector.
    fn with_equal_lanes(&self, arguments: &[Value<'ctx>]) -> Vec<Value<'ctx>> {
        match arguments.iter().find_map(|argument| lanes_of(*argument)) {
            Some(lanes) => arguments.iter().map(|argument| self.ops.splat(*argument, lanes)).collect(),
            None => arguments.to_vec(),
        }
    }

    fn reciprocal(&self, x: Value<'ctx>) -> Value<'ctx> {
        self.ops.binary(InstructionOpcode::FDiv, self.ops.float_like(x, 1.0), x)
    }

    /// The remainder of C's `fmod`.
    pub(super) fn truncated_remainder(&self, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        self.float_builtin(Builtin::Fmod, &[left, right])
    }

    fn library_call(&self, name: &str, arguments: &[Value<'ctx>]) -> Value<'ctx> {
        let function = self.library_function(name, arguments);
        let vectors = self.with_equal_lanes(arguments);
        let Some(lanes) = lanes_of(vectors[0]) else {
            return self.call_value(function, arguments);
        };
        let kind = super::ops::vector_of(element_type(arguments[0]), lanes);
        (0..lanes).fold(kind.get_poison().into(), |result, lane| {
            let scalars: Vec<_> = vectors.iter().map(|vector| self.ops.extract(*vector, lane)).collect();
            self.ops.insert(result, self.call_value(function, &scalars), lane)
        })
    }

    fn call_value(&self, function: FunctionValue<'ctx>, arguments: &[Value<'ctx>]) -> Value<'ctx> {
        let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).into()).collect();
        self.ops
            .builder
            .build_call(function, &arguments, "")
            .expect(BUILT)
            .try_as_basic_value()
            .expect_basic(RESULT)
    }

    /// The C library's function for the type of the arguments.
    fn library_function(&self, name: &str, arguments: &[Value<'ctx>]) -> FunctionValue<'ctx> {
        let kind = element_type(arguments[0]).into_float_type();
        let name = if kind == self.ops.context.f32_type() { format!("{name}f") } else { name.to_owned() };
        if let Some(function) = self.ops.module.get_function(&name) {
            return function;
        }
        let parameters = vec![kind.into(); arguments.len()];
        let function = self.ops.module.add_function(&name, kind.fn_type(&parameters, false), None);
        // The code never reads `errno`, so the result depends on the arguments alone.
        for attribute in ["nounwind", "willreturn", "memory"] {
            function.add_attribute(AttributeLoc::Function, self.attribute(attribute, 0));
        }
        function
    }
}

/// The intrinsics that are instructions, or that LLVM expands well.
fn intrinsic_of(builtin: Builtin) -> Option<&'static str> {
    Some(match builtin {
        Builtin::Abs => "llvm.fabs",
        Builtin::Ceil => "llvm.ceil",
        Builtin::Copysign => "llvm.copysign",
        Builtin::Floor => "llvm.floor",
        Builtin::Fma => "llvm.fma",
        Builtin::Rint => "llvm.rint",
        Builtin::Round => "llvm.round",
        Builtin::Sqrt => "llvm.sqrt",
        Builtin::Trunc => "llvm.trunc",
        _ => return None,
    })
}

/// The value of a float constant that is the same in all lanes.
fn float_constant(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::FloatValue(value) if value.is_const() => value.get_constant().map(|(value, _)| value),
        _ => None,
    }
}

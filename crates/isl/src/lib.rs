//! Safe bindings to the part of isl, the integer set library, that Tilewright uses. That part is
//! sets and relations of integer vectors under affine constraints with quotients, and dataflow
//! analysis.
//!
//! isl gives up an operation that takes too many steps or whose numbers leave their range. The
//! object that the operation should have computed is then lost, and so is every object that is
//! computed from it. Every question about a lost object returns [`GaveUp`]. Therefore only
//! questions need error handling; expressions that build objects do not.
//!
//! Objects hold their [`Context`] and are not `Send`, because isl counts references without locks.
//! Every thread makes its own context.
//!
//! Read next: [`affine`] for functions, [`set`] and [`map`] for the sets and relations that are
//! built from functions, [`flow`] for the last write before each read.

pub mod affine;
pub mod flow;
pub mod map;
mod rows;
pub mod set;
mod sys;

use std::rc::Rc;

use thiserror::Error;

pub use affine::Affine;
pub use flow::{Accesses, Flow};
pub use map::Map;
pub use set::{Equation, Set};

/// The error that isl gave up on a question: the question needs more operations than the context
/// allows, or numbers left their range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("isl gave up: the question exceeds the limit of operations or the range of numbers")]
pub struct GaveUp;

/// The answer to a question about an object.
pub type Answer<T> = Result<T, GaveUp>;

/// An isl context: every object of isl belongs to one.
#[derive(Clone, Debug)]
pub struct Context(Rc<RawContext>);

#[derive(Debug)]
struct RawContext(*mut sys::Ctx);

impl Drop for RawContext {
    fn drop(&mut self) {
        // Every object holds the context, so no object is left when the context is dropped.
        unsafe { sys::isl_ctx_free(self.0) }
    }
}

impl Context {
    /// A context in which isl reports errors as return values instead of aborting.
    pub fn new() -> Context {
        let context = unsafe { sys::isl_ctx_alloc() };
        assert!(!context.is_null(), "isl has no memory for a context");
        unsafe { sys::isl_options_set_on_error(context, sys::ON_ERROR_CONTINUE) };
        Context(Rc::new(RawContext(context)))
    }

    /// Makes isl give up after `limit` operations; 0 means never. Restarts the count and clears
    /// errors.
    pub fn limit_operations(&self, limit: u64) {
        unsafe {
            sys::isl_ctx_reset_error(self.raw());
            sys::isl_ctx_reset_operations(self.raw());
            sys::isl_ctx_set_max_operations(self.raw(), limit);
        }
    }

    /// Returns true if the last operation failed with an internal error of isl, and clears that
    /// error.
    fn take_internal_error(&self) -> bool {
        let is_internal = unsafe { sys::isl_ctx_last_error(self.raw()) } == sys::ERROR_INTERNAL;
        if is_internal {
            unsafe { sys::isl_ctx_reset_error(self.raw()) };
        }
        is_internal
    }

    fn raw(&self) -> *mut sys::Ctx {
        self.0.0
    }

    fn value(&self, value: i64) -> *mut sys::Val {
        unsafe { sys::isl_val_int_from_si(self.raw(), value) }
    }
}

impl Default for Context {
    fn default() -> Context {
        Context::new()
    }
}

/// Converts a boolean of isl's: 1 is true, 0 is false, and -1 is an error.
fn bool_answer(value: std::ffi::c_int) -> Answer<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(GaveUp),
    }
}

/// Defines an object type: a pointer that isl reference-counts, and the object's context.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $copy:ident, $free:ident, $text:ident) => {
        $(#[$doc])*
        pub struct $name {
            raw: *mut $crate::sys::$raw,
            context: $crate::Context,
        }

        impl $name {
            pub(crate) fn from_raw(context: &$crate::Context, raw: *mut $crate::sys::$raw) -> $name {
                $name { raw, context: context.clone() }
            }

            /// A new reference, for an isl call that takes ownership of its argument.
            pub(crate) fn taken(&self) -> *mut $crate::sys::$raw {
                // isl returns a null pointer for the copy of a null pointer.
                unsafe { $crate::sys::$copy(self.raw) }
            }

            /// Returns true if isl gave up while this object was computed.
            pub fn is_lost(&self) -> bool {
                self.raw.is_null()
            }

            /// The context that the object belongs to.
            pub fn context(&self) -> &$crate::Context {
                &self.context
            }
        }

        impl Clone for $name {
            fn clone(&self) -> $name {
                $name::from_raw(&self.context, self.taken())
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                unsafe { $crate::sys::$free(self.raw) };
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let text = unsafe { $crate::sys::$text(self.raw) };
                if text.is_null() {
                    return f.write_str("(given up)");
                }
                let written = f.write_str(&unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy());
                unsafe { $crate::sys::free(text.cast()) };
                written
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use object;

#[cfg(test)]
mod tests {
    use super::*;

    /// `{ [i] : 0 <= i < extent }`.
    fn interval(context: &Context, extent: i64) -> Set {
        let i = Affine::variable(context, 1, 0);
        i.nonnegative_set().intersect(&i.scale(-1).offset(extent - 1).nonnegative_set())
    }

    #[test]
    fn sets_are_what_their_constraints_say() {
        let context = Context::new();
        let ten = interval(&context, 10);
        assert_eq!(ten.is_empty(), Ok(false));
        assert_eq!(interval(&context, 0).is_empty(), Ok(true));
        assert_eq!(interval(&context, 5).is_subset(&ten), Ok(true));
        assert_eq!(ten.subtract(&interval(&context, 9)).sample(), Ok(Some(vec![9])));
        assert_eq!(ten.bounds(0), Ok(Some((0, 9))));
    }

    #[test]
    fn quotients_and_remainders_round_down() {
        let context = Context::new();
        let i = Affine::variable(&context, 1, 0);
        let whole = i.floor_div(4).scale(4).add(&i.modulo(4));
        assert_eq!(whole.sub(&i).zero_set().is_subset(&Set::universe(&context, 1)), Ok(true));
        assert_eq!(Set::universe(&context, 1).is_subset(&whole.sub(&i).zero_set()), Ok(true));
        let below = i.offset(1).zero_set().intersect(&i.floor_div(4).offset(1).zero_set());
        assert_eq!(below.sample(), Ok(Some(vec![-1])));
    }

    #[test]
    fn equations_give_coordinates() {
        // { [i, j, k] : k = 4 i + j + 3 and 0 <= j < 4 }
        let context = Context::new();
        let at = |at| Affine::variable(&context, 3, at);
        let k = at(0).scale(4).add(&at(1)).offset(3);
        let set = k.sub(&at(2)).zero_set().intersect(&at(1).nonnegative_set());
        let expected = Equation { coordinate: 2, coefficients: vec![4, 1, 0], constant: 3 };
        assert_eq!(set.equations(), Ok(vec![expected]));
        assert_eq!(at(1).nonnegative_set().equations(), Ok(Vec::new()));
    }

    #[test]
    fn relations_compose() {
        let context = Context::new();
        let i = Affine::variable(&context, 1, 0);
        let next = Map::from_functions(&context, 1, &[i.offset(1)]);
        let twice = next.apply_range(&next);
        assert_eq!(twice.is_equal(&Map::from_functions(&context, 1, &[i.offset(2)])), Ok(true));
        assert_eq!(twice.is_injective(), Ok(true));
        let half = Map::from_functions(&context, 1, &[i.floor_div(2)]);
        assert_eq!(half.is_injective(), Ok(false));
        assert_eq!(half.is_single_valued(), Ok(true));
    }

    #[test]
    fn given_up_questions_say_so() {
        let context = Context::new();
        let parts = (1..40).map(|step| {
            let i = Affine::variable(&context, 2, 0).scale(step).add(&Affine::variable(&context, 2, 1));
            i.modulo(7 + step).offset(-1).nonnegative_set()
        });
        context.limit_operations(50);
        let all = parts.reduce(|all, part| all.intersect(&part)).expect("there are some");
        assert_eq!(all.is_empty(), Err(GaveUp));
        context.limit_operations(0);
        assert_eq!(interval(&context, 3).is_empty(), Ok(false));
    }
}

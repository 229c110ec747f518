//! Random programs and random schedules for them. The tests of loops and of compiled code both use
//! them.
//!
//! [`program`] makes the text of a program, and [`schedule`] makes steps for it that are accepted.
//! A [`case`] holds both, and [`shrink`] finds a smaller case that still fails.

pub mod case;
pub mod program;
pub mod rng;
pub mod schedule;
pub mod shrink;
pub mod source;
pub mod subscript;
pub mod value;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};

thread_local! {
    /// The message of the last panic, while one is expected.
    static EXPECTED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Silences panics inside [`guarded`] from now on.
pub fn keep_expected_panics() {
    let noisy = take_hook();
    set_hook(Box::new(move |info: &PanicHookInfo| {
        let expected = EXPECTED.with_borrow_mut(|message| match message {
            Some(message) => {
                *message = info.to_string();
                true
            }
            None => false,
        });
        if !expected {
            noisy(info);
        }
    }));
}

/// The result of a function, or the message with which it panics. Guarded functions may guard
/// others.
pub fn guarded<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    let around = EXPECTED.replace(Some(String::new()));
    let outcome = catch_unwind(AssertUnwindSafe(function));
    let message = EXPECTED.replace(around);
    outcome.map_err(|_| message.unwrap_or_default())
}

//! A small program, and a simulated measurer.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod simulated_measurer;

pub const PRODUCT: &str = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";

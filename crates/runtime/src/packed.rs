//! Makes contiguous copies of strided tensors for the duration of a call.
//!
//! Kernels take tensors that are row-major without gaps, and aligned. Any other tensor of the
//! caller is copied: an input before the call, a result after the call, and a tensor that the
//! program updates before and after the call.

use smallvec::SmallVec;
use tilewright_ir::Role;

use crate::buffer::Buffer;
use crate::kernel::RunError;
use crate::signature::{Parameter, check_count, check_parameter};
use crate::view::{View, ViewMut};

/// Contiguous copies of those tensors of a list that a kernel cannot use in place.
pub(crate) struct Packed {
    /// The index of the tensor in the list, and the copy.
    copies: SmallVec<[(usize, Buffer); 2]>,
}

impl Packed {
    /// Checks the inputs, and copies those that are not contiguous or not aligned.
    pub(crate) fn inputs(parameters: &[Parameter], inputs: &[View<'_>]) -> Result<Packed, RunError> {
        check_count("inputs", parameters.len(), inputs.len())?;
        let mut copies = SmallVec::new();
        for (at, (parameter, view)) in parameters.iter().zip(inputs).enumerate() {
            check_parameter(parameter, view.layout())?;
            if !(view.is_contiguous() && view.is_aligned()) {
                copies.push((at, Buffer::pack(view)?));
            }
        }
        Ok(Packed { copies })
    }

    /// Checks the results, and allocates copies of those that are not contiguous or not aligned. A
    /// copy gets the old values if the program updates the tensor.
    pub(crate) fn results(parameters: &[Parameter], results: &[ViewMut<'_>]) -> Result<Packed, RunError> {
        check_count("results", parameters.len(), results.len())?;
        let mut copies = SmallVec::new();
        for (at, (parameter, view)) in parameters.iter().zip(results).enumerate() {
            let layout = view.layout();
            check_parameter(parameter, layout)?;
            if !(view.is_contiguous() && view.is_aligned()) {
                let copy = match parameter.role {
                    Role::InOut => Buffer::pack(&view.view())?,
                    _ => Buffer::zeros(layout.dtype(), layout.shape())?,
                };
                copies.push((at, copy));
            }
        }
        Ok(Packed { copies })
    }

    /// The address at which the kernel reads an input.
    pub(crate) fn input_pointer(&self, at: usize, view: &View<'_>) -> *mut u8 {
        let copy = self.copies.iter().find(|(place, _)| *place == at);
        copy.map_or(view.as_ptr(), |(_, copy)| copy.view().as_ptr()).cast_mut()
    }

    /// The address at which the kernel writes a result.
    pub(crate) fn result_pointer(&mut self, at: usize, view: &mut ViewMut<'_>) -> *mut u8 {
        let copy = self.copies.iter_mut().find(|(place, _)| *place == at);
        copy.map_or_else(|| view.as_mut_ptr(), |(_, copy)| copy.view_mut().as_mut_ptr())
    }

    /// Copies the results back to the caller's tensors.
    pub(crate) fn unpack(&self, results: &mut [ViewMut<'_>]) {
        for (at, copy) in &self.copies {
            copy.unpack(&mut results[*at]).expect("the copy was made in the shape of the result");
        }
    }
}

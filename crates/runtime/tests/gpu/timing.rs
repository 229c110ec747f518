//! Times by the device's clock. The tests only check that there are times: how long they are
//! depends on the machine.

use std::time::Duration;

use tilewright_ir::DType;
use tilewright_runtime::gpu::{DeviceBuffer, Sampling, Stopwatch};

use crate::case::{LENGTH, adding, on_every_device};

#[test]
fn samples_are_taken_with_and_without_an_empty_cache() {
    on_every_device(|device| {
        let add = adding(device).bind(&[]).unwrap();
        let zeros = || DeviceBuffer::zeros(device, DType::Float32, &[LENGTH]).unwrap();
        let (a, b, mut c) = (zeros(), zeros(), zeros());
        for flush in [false, true] {
            // A machine that is busy with other tests must not reach the cap.
            let cap = Duration::from_secs(120);
            let sampling =
                Sampling { samples: 7, warm_up_time: Duration::ZERO, cap, flush, ..Sampling::default() };
            let timing = add.time(&[&a, &b], &mut [&mut c], &[], &sampling).unwrap();
            assert_eq!(timing.samples, 7, "{timing:?}");
            assert!(timing.median > 0.0 && timing.median < 60.0, "{timing:?}");
            assert!(if flush { timing.batch == 1 } else { timing.batch >= 1 }, "{timing:?}");
        }
    });
}

#[test]
fn the_cap_ends_it_after_one_sample() {
    on_every_device(|device| {
        let add = adding(device).bind(&[]).unwrap();
        let zeros = || DeviceBuffer::zeros(device, DType::Float32, &[LENGTH]).unwrap();
        let (a, b, mut c) = (zeros(), zeros(), zeros());
        let sampling = Sampling { samples: 1_000_000, cap: Duration::ZERO, ..Sampling::default() };
        let timing = add.time(&[&a, &b], &mut [&mut c], &[], &sampling).unwrap();
        assert_eq!(timing.samples, 1);
    });
}

#[test]
fn one_watch_times_several_programs_in_turn() {
    on_every_device(|device| {
        let programs = [adding(device).bind(&[]).unwrap(), adding(device).bind(&[]).unwrap()];
        let zeros = || DeviceBuffer::zeros(device, DType::Float32, &[LENGTH]).unwrap();
        let (a, b, mut c) = (zeros(), zeros(), zeros());
        let mut watch = Stopwatch::new(device, true).unwrap();
        for program in programs.iter().cycle().take(6) {
            let time = watch.time(1, &mut || program.launch(&[&a, &b], &mut [&mut c], &[])).unwrap();
            assert!(time > 0.0 && time < 60.0, "{time}");
        }
    });
}

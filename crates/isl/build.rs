//! Says which isl is linked. `TILEWRIGHT_ISL` names a folder with a `libisl.a` that was built with IMath, as
//! `scripts/build_isl.sh` leaves it: what is linked with that runs on machines without isl, and wheels are built from it.
//! Without it the system's shared library is taken.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-env-changed=TILEWRIGHT_ISL");
    println!("cargo:rerun-if-changed=build.rs");
    match std::env::var_os("TILEWRIGHT_ISL") {
        Some(folder) => {
            println!("cargo:rustc-link-search=native={}", Path::new(&folder).display());
            println!("cargo:rustc-link-lib=static=isl");
        }
        None => println!("cargo:rustc-link-lib=isl"),
    }
}

//! Chooses which isl library the crate links. The static library `libisl.a`, which
//! `scripts/build_isl.sh` builds, is linked if the folder in `TILEWRIGHT_ISL` holds it. Cargo's
//! configuration sets this variable to `target/isl`. A statically linked program also runs on
//! machines without isl. If the variable is empty or the library is missing, the system's shared
//! library is linked. Proofs then take two to three times as long.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-env-changed=TILEWRIGHT_ISL");
    println!("cargo:rerun-if-changed=build.rs");
    let folder = std::env::var("TILEWRIGHT_ISL").unwrap_or_default();
    let library = Path::new(&folder).join("libisl.a");
    if !folder.is_empty() {
        println!("cargo:rerun-if-changed={}", library.display());
    }
    match library.exists() && !folder.is_empty() {
        true => {
            println!("cargo:rustc-link-search=native={folder}");
            println!("cargo:rustc-link-lib=static=isl");
        }
        false => println!("cargo:rustc-link-lib=isl"),
    }
}

//! Says which isl is linked: the static library that `scripts/build_isl.sh` has left in the folder that `TILEWRIGHT_ISL`
//! names, `target/isl` if nobody says otherwise. What is linked with that runs on machines without isl. Where the library is
//! not there, or the variable is empty, the system's shared library is taken: its proofs take two to three times as long.

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

//! Finds isl. `TILEWRIGHT_ISL` names a folder with a `libisl.a` that was built with IMath and needs nothing else: wheels are
//! built from that one. Without it the system's is taken, which needs GMP; static where there is a static one, so that the
//! command runs on machines without isl.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=TILEWRIGHT_ISL");
    println!("cargo:rerun-if-changed=build.rs");
    if let Some(folder) = std::env::var_os("TILEWRIGHT_ISL") {
        println!("cargo:rustc-link-search=native={}", Path::new(&folder).display());
        println!("cargo:rustc-link-lib=static=isl");
        return;
    }
    match (static_library("libisl.a"), static_library("libgmp.a")) {
        (Some(isl), Some(gmp)) => {
            for (library, folder) in [("isl", isl), ("gmp", gmp)] {
                println!("cargo:rustc-link-search=native={}", folder.display());
                println!("cargo:rustc-link-lib=static={library}");
            }
        }
        _ => println!("cargo:rustc-link-lib=isl"),
    }
}

/// The folder in which the C compiler finds a library, if it finds it.
fn static_library(name: &str) -> Option<PathBuf> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let answer = Command::new(compiler).arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim());
    // A compiler that does not find it answers with the name alone.
    path.is_absolute().then(|| path.parent().map(Path::to_path_buf)).flatten()
}

//! Where the library is: what pkg-config says of `ava`. $PKG_CONFIG names another program.
use std::env;
use std::process::{exit, Command};

fn main() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_SYSROOT_DIR");
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let done = match Command::new(&program).args(["--libs", "ava"]).output() {
        Ok(done) => done,
        Err(problem) => {
            eprintln!("ava-sys: {program} cannot be run: {problem}; install it (Debian: pkg-config)");
            exit(1);
        }
    };
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        eprintln!("ava-sys: {program} does not know ava: set PKG_CONFIG_PATH to the folder of ava.pc ({})", said.trim());
        exit(1);
    }
    for word in String::from_utf8_lossy(&done.stdout).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }
}

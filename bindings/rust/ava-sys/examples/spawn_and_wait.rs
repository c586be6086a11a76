//! Start one run in the background, wait for it, print what it found.
//!
//!     cargo run --example spawn_and_wait embedded /var/tmp/ava-example "where is main?" "$PWD"
//!     cargo run --example spawn_and_wait connect ~/.local/share/ava "where is main?" "$PWD"
use std::path::Path;
use std::process::exit;

use ava_sys::{Result, Runtime, Spawn};

fn ask(how: &str, root: &str, task: &str, folder: &str) -> Result<bool> {
    let rt = if how == "embedded" { Runtime::embed(Path::new(root), &[])? } else { Runtime::connect(Some(Path::new(root)), true)? };
    let run = rt.spawn(&Spawn { role: Some("code_reviewer"), cwd: Some(Path::new(folder)), ..Spawn::task(task) })?;
    println!("started {}", run.id());
    let end = run.wait(None)?;
    println!("{}: {} after {:.1} s, {} tokens, {} citations", run.id(), end.status, end.duration_ms as f64 / 1000.0, end.tokens, end.citations);
    println!("{}\n{}", end.summary, end.output);
    Ok(end.status == "success")
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() != 5 {
        eprintln!("usage: spawn_and_wait embedded|connect ROOT TASK FOLDER");
        exit(2);
    }
    match ask(&args[1], &args[2], &args[3], &args[4]) {
        Ok(success) => exit(if success { 0 } else { 3 }),
        Err(error) => {
            eprintln!("spawn_and_wait: {error}");
            exit(1);
        }
    }
}

//! Spawn, wait, cancel and errors, embedded and connected.
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use ava_sys::{sys, Runtime, Spawn};

static ONE: Mutex<()> = Mutex::new(()); // an embedded runtime at a time
static WORLDS: AtomicUsize = AtomicUsize::new(0);

struct World {
    folder: PathBuf,
    embedded: bool,
}

impl World {
    fn new(embedded: bool) -> World {
        let folder = env::temp_dir().join(format!("ava-rust-{}-{}", std::process::id(), WORLDS.fetch_add(1, Ordering::SeqCst)));
        fs::create_dir_all(folder.join("work")).unwrap();
        fs::write(folder.join("work/notes.md"), "The torn tail is cut at the last whole record.\n").unwrap();
        fs::write(folder.join("slow.jsonl"), "{\"text\":\"late\",\"delay_ms\":600000}\n").unwrap();
        World { folder, embedded }
    }

    fn open(&self) -> Runtime {
        let root = self.folder.join("root");
        if self.embedded { Runtime::embed(&root, &["AVA_DISK_FREE_MIN_MB=0"]) } else { Runtime::connect(Some(&root), true) }.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !self.embedded {
            let lock = fs::read_to_string(self.folder.join("root/ava.lock")).unwrap_or_default();
            if let Some(pid) = lock.split_whitespace().next() {
                let _ = Command::new("kill").arg(pid).status();
                for _ in 0..6000 {
                    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
                    if stat.is_empty() || stat.contains(") Z ") {
                        break;
                    }
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn play(embedded: bool) {
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let world = World::new(embedded);
    let work = world.folder.join("work");
    let slow = format!("offline:{}", world.folder.join("slow.jsonl").display());
    let rt = world.open();
    let spawn = Spawn { role: Some("code_reviewer"), cwd: Some(&work), request_id: Some("kettle"), ..Spawn::task("where is the torn tail cut?") };
    let run = rt.spawn(&spawn).unwrap();
    let end = run.wait(Some(Duration::MAX)).unwrap();

    assert_eq!((end.status.as_str(), end.cost_microusd, end.citations), ("success", 0, 1));
    assert!(end.output.contains("notes.md") && end.tokens > 0 && run.done().unwrap());
    assert_eq!(rt.spawn(&spawn).unwrap().id(), run.id());

    let late = rt.spawn(&Spawn { model: Some(&slow), request_id: None, ..spawn.clone() }).unwrap();
    let error = late.wait(Some(Duration::from_millis(20))).unwrap_err();
    assert_eq!(error.code, sys::AVA_ETIMEOUT);
    late.cancel().unwrap();
    assert_eq!(late.wait(None).unwrap().status, "cancelled");

    let error = rt.run("S-000000").unwrap().wait(None).unwrap_err();
    assert_eq!(error.code, sys::AVA_ENOENT);
    assert!(error.to_string().contains("S-000000"));
    assert_eq!(rt.spawn(&Spawn::task("")).unwrap_err().code, sys::AVA_EINVAL);
    assert_eq!(rt.spawn(&Spawn::task("a\0b")).unwrap_err().code, sys::AVA_EINVAL);

    // Another thread may have it; its root is free again when it is dropped.
    let id = run.id().to_owned();
    let rt = {
        drop((run, late));
        thread::spawn(move || { rt.run(&id).unwrap().cancel().unwrap(); rt }).join().unwrap()
    };
    drop(rt);
    drop(world.open());
}

#[test]
fn embedded() {
    play(true);
}

#[test]
fn connected() {
    play(false);
}

#[test]
fn a_root_in_use() {
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let world = World::new(true);
    let _rt = world.open();
    let error = Runtime::embed(&world.folder.join("other"), &[]).unwrap_err();
    assert_eq!(error.code, sys::AVA_EBUSY);
    assert!(error.to_string().contains("embedded runtime already"));
    let error = Runtime::embed(Path::new("relative"), &[]).unwrap_err();
    assert_eq!(error.code, sys::AVA_EINVAL);
}

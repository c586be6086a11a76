//! Background subagents from Rust: a runtime inside this process or the daemon of a data root, runs
//! that are started, waited for and cancelled. `sys` is the C interface itself.
//!
//! ```no_run
//! use ava_sys::{Runtime, Spawn};
//!
//! let rt = Runtime::connect(None, true)?;
//! let run = rt.spawn(&Spawn { role: Some("code_reviewer"), cwd: Some("/src".as_ref()), ..Spawn::task("where is the lock taken?") })?;
//! println!("{}", run.wait(None)?.summary);
//! # Ok::<(), ava_sys::Error>(())
//! ```
//!
//! A runtime may move to another thread but is used by one at a time, which the compiler sees to:
//! `Runtime` is `Send` and not `Sync`. What a call gives is copied before the next one. A runtime
//! is closed when it is dropped, and a run cannot outlive its runtime.

use std::ffi::{CStr, CString};
use std::fmt;
use std::mem::MaybeUninit;
use std::os::raw::c_char;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::Duration;

pub mod sys;

/// A call failed; it prints as one sentence that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// A constant of `sys`: `AVA_ENOENT`.
    pub code: i32,
    pub sentence: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

/// The number of a call that went well, or its error.
fn call(f: impl FnOnce(*mut sys::ava_error) -> i32) -> Result<i32> {
    let mut err = sys::ava_error { code: 0, text: [0; 512] };
    let rv = f(&mut err);
    if rv >= 0 {
        return Ok(rv);
    }
    let sentence = unsafe { text(if err.text[0] != 0 { err.text.as_ptr() } else { sys::ava_strerror(rv) }) };
    Err(Error { code: rv, sentence })
}

/// A string of the library's, copied.
unsafe fn text(s: *const c_char) -> String {
    CStr::from_ptr(s).to_string_lossy().into_owned()
}

fn c_string(s: impl AsRef<[u8]>) -> Result<CString> {
    CString::new(s.as_ref()).map_err(|_| Error { code: sys::AVA_EINVAL, sentence: "a text must not have a NUL in it".into() })
}

/// Strings that live as long as a call; what is absent is NULL.
#[derive(Default)]
struct Strings(Vec<CString>);

impl Strings {
    fn add(&mut self, s: Option<impl AsRef<[u8]>>) -> Result<*const c_char> {
        Ok(match s {
            None => null(),
            Some(s) => {
                self.0.push(c_string(s)?);
                self.0[self.0.len() - 1].as_ptr()
            }
        })
    }

    fn path(&mut self, path: Option<&Path>) -> Result<*const c_char> {
        self.add(path.map(|p| p.as_os_str().as_bytes()))
    }
}

pub fn version() -> String {
    unsafe { text(sys::ava_version()) }
}

/// What a run gets. `None` and 0 are the defaults of its role.
#[derive(Debug, Clone, Default)]
pub struct Spawn<'a> {
    pub task: &'a str,
    pub role: Option<&'a str>,
    pub model: Option<&'a str>,
    /// Absolute; without it the run sees no files.
    pub cwd: Option<&'a Path>,
    /// The same id gives the same run again, also after a crash.
    pub request_id: Option<&'a str>,
    pub timeout_ms: i64,
    pub max_cost_microusd: i64,
    pub max_iterations: i64,
}

impl<'a> Spawn<'a> {
    pub fn task(task: &'a str) -> Self {
        Spawn { task, ..Default::default() }
    }
}

/// How a run ended. `status` is a word: "success", "cancelled".
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub status: String,
    pub summary: String,
    pub error: String,
    /// JSON.
    pub output: String,
    pub tokens: i64,
    /// -1: unknown.
    pub cost_microusd: i64,
    pub duration_ms: i64,
    pub citations: usize,
}

#[derive(Debug)]
pub struct Runtime {
    rt: *mut sys::ava_runtime,
}

// One thread at a time, any of them.
unsafe impl Send for Runtime {}

impl Runtime {
    /// The runtime in this process, one at a time. `env` ("AVA_RUNS_MAX=20") takes the place of the
    /// environment. It works only within calls.
    pub fn embed(root: &Path, env: &[&str]) -> Result<Runtime> {
        let mut keep = Strings::default();
        let mut words = Vec::new();
        for word in env {
            words.push(keep.add(Some(word))?);
        }
        words.push(null());
        let options = sys::ava_options { root: keep.path(Some(root))?, env: words.as_ptr(), ..no_options() };
        Runtime::open(|rt, err| unsafe { sys::ava_runtime_new(rt, &options, err) })
    }

    /// The daemon of a data root (`None`: the user's), started when none serves and `start` is set. Its
    /// runs go on without us.
    pub fn connect(root: Option<&Path>, start: bool) -> Result<Runtime> {
        let mut keep = Strings::default();
        let options = sys::ava_options { root: keep.path(root)?, no_start: i32::from(!start), ..no_options() };
        Runtime::open(|rt, err| unsafe { sys::ava_runtime_connect(rt, &options, err) })
    }

    fn open(f: impl FnOnce(*mut *mut sys::ava_runtime, *mut sys::ava_error) -> i32) -> Result<Runtime> {
        let mut rt = null_mut();
        call(|err| f(&mut rt, err))?;
        Ok(Runtime { rt })
    }

    /// Start a run; its start is on disk. After `AVA_EUNKNOWN` ask again with the same request id.
    pub fn spawn(&self, spawn: &Spawn<'_>) -> Result<Run<'_>> {
        let mut keep = Strings::default();
        let c = sys::ava_spawn {
            task: keep.add(Some(spawn.task))?,
            role: keep.add(spawn.role)?,
            model: keep.add(spawn.model)?,
            cwd: keep.path(spawn.cwd)?,
            request_id: keep.add(spawn.request_id)?,
            timeout_ms: spawn.timeout_ms,
            max_cost_microusd: spawn.max_cost_microusd,
            max_iterations: spawn.max_iterations,
            // Zeros are the defaults of all the others.
            ..unsafe { MaybeUninit::zeroed().assume_init() }
        };
        let mut id = sys::ava_run_id { text: [0; 24] };
        call(|err| unsafe { sys::ava_spawn(self.rt, &c, &mut id, err) })?;
        self.run(&unsafe { text(id.text.as_ptr()) })
    }

    /// The run of that id; whether there is one is not looked at.
    pub fn run(&self, id: &str) -> Result<Run<'_>> {
        Ok(Run { rt: self, id: c_string(id)? })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        unsafe { sys::ava_runtime_free(self.rt) }
    }
}

fn no_options() -> sys::ava_options {
    unsafe { MaybeUninit::zeroed().assume_init() }
}

#[derive(Debug, Clone)]
pub struct Run<'a> {
    rt: &'a Runtime,
    id: CString,
}

impl Run<'_> {
    pub fn id(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }

    pub fn done(&self) -> Result<bool> {
        Ok(call(|err| unsafe { sys::ava_is_done(self.rt.rt, self.id.as_ptr(), err) })? == 1)
    }

    /// Until it has ended, or `AVA_ETIMEOUT`, which does not stop it.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Outcome> {
        let ms = timeout.map_or(-1, |t| i64::try_from(t.as_millis()).unwrap_or(-1));
        let id = self.id.as_ptr();
        call(|err| unsafe { sys::ava_wait(self.rt.rt, &id, 1, sys::AVA_WAIT_ALL, ms, null_mut(), err) })?;
        let mut out = MaybeUninit::<sys::ava_result>::uninit();
        call(|err| unsafe { sys::ava_result(self.rt.rt, id, out.as_mut_ptr(), err) })?;
        let c = unsafe { out.assume_init() };
        Ok(unsafe {
            Outcome {
                status: text(sys::ava_status_name(c.status)),
                summary: text(c.summary),
                error: text(c.error),
                output: text(c.output),
                tokens: c.tokens,
                cost_microusd: c.cost_microusd,
                duration_ms: c.duration_ms,
                citations: c.citations,
            }
        })
    }

    /// Nothing of it starts after this; an ended run stays as it is.
    pub fn cancel(&self) -> Result<()> {
        call(|err| unsafe { sys::ava_cancel(self.rt.rt, self.id.as_ptr(), err) }).map(drop)
    }
}

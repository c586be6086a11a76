//! The part of ava.h that the safe face needs, as C has it. tests/layout.rs holds each struct and
//! constant against the header, so that neither changes alone.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_double, c_int, c_uchar, c_uint, c_void};

pub const AVA_OK: c_int = 0;
pub const AVA_EINVAL: c_int = -2;
pub const AVA_ENOENT: c_int = -3;
pub const AVA_EBUSY: c_int = -5;
pub const AVA_EUNKNOWN: c_int = -8;
pub const AVA_ETIMEOUT: c_int = -14;
pub const AVA_ECONNECT: c_int = -18;

pub type ava_status = c_uint;
pub const AVA_SUCCESS: ava_status = 7;
pub const AVA_CANCELLED: ava_status = 12;

pub type ava_wait_for = c_uint;
pub const AVA_WAIT_ALL: ava_wait_for = 0;
pub const AVA_WAIT_ANY: ava_wait_for = 1;

#[repr(C)]
pub struct ava_runtime {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct ava_error {
    pub code: c_int,
    pub text: [c_char; 512],
}

#[repr(C)]
pub struct ava_options {
    pub root: *const c_char,
    pub env: *const *const c_char,
    pub process_env: c_int,
    pub model: *const c_char,
    pub user_id: *const c_char,
    pub no_start: c_int,
    pub log: Option<unsafe extern "C" fn(line: *const c_char, user: *mut c_void)>,
    pub log_user: *mut c_void,
}

#[repr(C)]
pub struct ava_run_id {
    pub text: [c_char; 24],
}

#[repr(C)]
pub struct ava_spawn {
    pub task: *const c_char,
    pub role: *const c_char,
    pub context: *const c_char,
    pub model: *const c_char,
    pub preset: *const c_char,
    pub cwd: *const c_char,
    pub session: *const c_char,
    pub request_id: *const c_char,
    pub confirm: *const c_char,
    pub timeout_ms: i64,
    pub max_cost_microusd: i64,
    pub max_tokens: i64,
    pub max_iterations: i64,
    pub extended_thinking: c_int,
    pub instructions: c_int,
    pub tools: *const *const c_char,
    pub ntools: usize,
    pub grants: *const *const c_char,
    pub ngrants: usize,
    pub ask_before: *const *const c_char,
    pub nask_before: usize,
    pub tags: *const *const c_char,
    pub ntags: usize,
    pub output_schema: *const c_char,
    pub on_limit: *const c_char,
    pub on_quota: *const c_char,
    pub rationale: *const c_char,
    pub id: *const c_char,
    pub after: *const *const c_char,
    pub nafter: usize,
    pub check: *const c_char,
    pub check_rounds: i64,
}

#[repr(C)]
pub struct ava_result {
    pub status: ava_status,
    pub run: *const c_char,
    pub trace: *const c_char,
    pub model: *const c_char,
    pub stop_reason: *const c_char,
    pub summary: *const c_char,
    pub error: *const c_char,
    pub output: *const c_char,
    pub confidence: c_double,
    pub partial: c_int,
    pub unverified: c_int,
    pub tokens: i64,
    pub cost_microusd: i64,
    pub duration_ms: i64,
    pub iterations: i64,
    pub citations: usize,
    pub json: *const c_char,
    pub len: usize,
}

extern "C" {
    pub fn ava_version() -> *const c_char;
    pub fn ava_strerror(code: c_int) -> *const c_char;
    pub fn ava_status_name(status: ava_status) -> *const c_char;
    pub fn ava_runtime_new(rt: *mut *mut ava_runtime, options: *const ava_options, err: *mut ava_error) -> c_int;
    pub fn ava_runtime_connect(rt: *mut *mut ava_runtime, options: *const ava_options, err: *mut ava_error) -> c_int;
    pub fn ava_runtime_free(rt: *mut ava_runtime);
    pub fn ava_spawn(rt: *mut ava_runtime, spawn: *const ava_spawn, id: *mut ava_run_id, err: *mut ava_error) -> c_int;
    pub fn ava_is_done(rt: *mut ava_runtime, run: *const c_char, err: *mut ava_error) -> c_int;
    pub fn ava_wait(
        rt: *mut ava_runtime, runs: *const *const c_char, n: usize, what: ava_wait_for, timeout_ms: i64,
        ended: *mut c_uchar, err: *mut ava_error,
    ) -> c_int;
    pub fn ava_result(rt: *mut ava_runtime, run: *const c_char, out: *mut ava_result, err: *mut ava_error) -> c_int;
    pub fn ava_cancel(rt: *mut ava_runtime, run: *const c_char, err: *mut ava_error) -> c_int;
}

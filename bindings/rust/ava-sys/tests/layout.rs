//! What sys.rs says of ava.h: sizes, offsets and constants, as a C program prints them.
use std::env;
use std::fs;
use std::mem::{size_of, MaybeUninit};
use std::process::Command;
use std::ptr::addr_of;

use ava_sys::sys;

macro_rules! layout {
    ($c:ident, $rust:ident; $($name:ident { $($field:ident)* })*) => { $(
        $c.push_str(concat!("printf(\"", stringify!($name), " %zu\\n\", sizeof(struct ", stringify!($name), "));\n"));
        $rust.push_str(&format!("{} {}\n", stringify!($name), size_of::<sys::$name>()));
        let value = MaybeUninit::<sys::$name>::uninit();
        let base = value.as_ptr();
        $(
            $c.push_str(concat!("printf(\"", stringify!($name), ".", stringify!($field), " %zu %zu\\n\", offsetof(struct ",
                stringify!($name), ", ", stringify!($field), "), sizeof(((struct ", stringify!($name), " *)0)->", stringify!($field), "));\n"));
            let field = unsafe { addr_of!((*base).$field) };
            $rust.push_str(&format!("{}.{} {} {}\n", stringify!($name), stringify!($field), field as usize - base as usize, size_of_val_at(field)));
        )*
    )* };
}

macro_rules! constants {
    ($c:ident, $rust:ident; $($name:ident)*) => { $(
        $c.push_str(concat!("printf(\"", stringify!($name), " %d\\n\", (int)", stringify!($name), ");\n"));
        $rust.push_str(&format!("{} {}\n", stringify!($name), sys::$name as i32));
    )* };
}

fn size_of_val_at<T>(_: *const T) -> usize {
    size_of::<T>()
}

#[test]
fn is_that_of_the_header() {
    let mut c = String::from("#include <ava.h>\n#include <stdio.h>\nint main(void)\n{\n");
    let mut rust = String::new();

    layout! { c, rust;
        ava_error { code text }
        ava_run_id { text }
        ava_options { root env process_env model user_id no_start log log_user }
        ava_spawn { task role context model preset cwd session request_id confirm timeout_ms max_cost_microusd max_tokens
            max_iterations extended_thinking instructions tools ntools grants ngrants ask_before nask_before tags ntags output_schema
            on_limit on_quota rationale id after nafter check check_rounds }
        ava_result { status run trace model stop_reason summary error output confidence partial unverified tokens
            cost_microusd duration_ms iterations citations json len }
    }
    constants! { c, rust; AVA_OK AVA_EINVAL AVA_ENOENT AVA_EBUSY AVA_EUNKNOWN AVA_ETIMEOUT AVA_ECONNECT AVA_SUCCESS AVA_CANCELLED
        AVA_WAIT_ALL AVA_WAIT_ANY }
    c.push_str("return 0;\n}\n");

    let folder = env::temp_dir().join(format!("ava-layout-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    fs::write(&source, c).unwrap();
    let flags = Command::new("pkg-config").args(["--cflags", "ava"]).output().unwrap().stdout;
    let compiled = Command::new("cc").args(String::from_utf8(flags).unwrap().split_whitespace()).arg("-o").arg(&program).arg(&source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let said = Command::new(&program).output().unwrap().stdout;
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(rust, String::from_utf8(said).unwrap());
}

"""The extension ava._native, made of ava.h when the package is built: no declaration stands here a
second time. The C compiler expands the header, for its tables of codes and statuses as well, and
what is left of it after the attributes is what cffi reads. pkg-config's `ava` says where the
library is; $PKG_CONFIG and $CC name other programs."""

import os
import re
import shlex
import subprocess
import sysconfig

from cffi import FFI

# The header's structs again, with a word more: what Python cannot call by itself.
MORE = """
const char *ava_python_word(int code);
extern "Python" void ava_python_event(const struct ava_event *event, void *user);
extern "Python" void ava_python_complete(const char *run, enum ava_status status,
    const char *summary, const struct ava_event *event, void *user);
extern "Python" void ava_python_log(const char *line, void *user);
"""

SOURCE = """
#include <ava.h>

static const char *ava_python_word(int code)
{
	switch (code) {
#define X(name, number, word, text) case number: return word;
	AVA_ERRORS(X)
#undef X
	}
	return "unknown";
}
"""


def pkg_config(*words):
    program = shlex.split(os.environ.get("PKG_CONFIG", "pkg-config"))
    try:
        return subprocess.run([*program, *words, "ava"], check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise SystemExit("ava: pkg-config is not installed: install it (Debian: pkg-config)") from None
    except subprocess.CalledProcessError as failed:
        raise SystemExit("ava: pkg-config does not know ava: install its library and header, or set "
                         f"PKG_CONFIG_PATH to the folder of ava.pc ({failed.stderr.strip()})") from None


def declarations(flags):
    """What ava.h itself declares, expanded; and its constants."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    argv = [*compiler, "-E", "-D__attribute__(x)=", *flags, "-include", "ava.h", "-x", "c", os.devnull]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    header, kept, ours = "", [], False
    for line in text.split("\n"):
        marker = re.match(r'# \d+ "(.*?)"', line)
        if marker:
            ours = os.path.basename(marker.group(1)) == "ava.h"
            header = marker.group(1) if ours else header
        elif ours:
            kept.append(line)
    with open(header, encoding="utf-8") as f:
        names = re.findall(r"^#define (AVA_[A-Z_]+)[ \t]+\(?-?\w+\)?[ \t]*(?:/\*.*)?$", f.read(), re.M)
    return "\n".join(kept) + "".join(f"\n#define {name} ..." for name in names)


def words(text, prefix):
    return [word[len(prefix):] for word in shlex.split(text) if word.startswith(prefix)]


cflags, libs = pkg_config("--cflags"), pkg_config("--libs")
ffi = FFI()
ffi.cdef(declarations(shlex.split(cflags)) + MORE)
ffi.set_source("ava._native", SOURCE, include_dirs=words(cflags, "-I"), library_dirs=words(libs, "-L"),
               libraries=words(libs, "-l"))

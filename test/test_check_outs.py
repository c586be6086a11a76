#!/usr/bin/python3
"""script/check_outs on samples: each bad one is named, with its line, and no good one is.

Prints `ok N - name` or `not ok N - name` a sample; exit code 1 when one failed."""

import importlib.machinery
import importlib.util
import os
import sys

sys.dont_write_bytecode = True
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "script")
sys.path.insert(0, SCRIPT)
LOADER = importlib.machinery.SourceFileLoader("check_outs", os.path.join(SCRIPT, "check_outs"))
OUTS = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_outs", LOADER))
LOADER.exec_module(OUTS)

# A name, the function (tabs are made of four blanks), and what is said of its line with //!
SAMPLES = [
    ("frees what it was handed and fails, within a loop", "leaves the pointer", """
int f(const char *path, char **data, size_t *len)
{
    int rv = read_file(path, data, len);

    if (rv != 0)
        return rv;
    for (;;) {
        rv = more(path);
        if (rv == AVA_ENOENT)
            break;
        if (rv != 0) {
            free(*data);
            return rv; //!
        }
    }
    return 0;
}
"""),
    ("the same with a pointer that is closed", None, """
int f(const char *path, char **data, size_t *len)
{
    int rv = read_file(path, data, len);

    if (rv == 0 && more(path) != 0) {
        free(*data);
        *data = NULL;
        return AVA_EIO;
    }
    return rv;
}
"""),
    ("hands out what is half made", "does not know whose", """
int f(struct thing **out)
{
    struct thing *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return AVA_ENOMEM;
    *out = t;
    t->fd = open_it();
    if (t->fd < 0)
        return AVA_EIO; //!
    return 0;
}
"""),
    ("hands it out at the end", None, """
int f(struct thing **out)
{
    struct thing *t = calloc(1, sizeof(*t));
    int rv = t != NULL ? fill(t) : AVA_ENOMEM;

    if (rv != 0)
        thing_free(t);
    else
        *out = t;
    return rv;
}
"""),
    ("hands out through another and fails behind it", "does not know whose", """
static int f(int fd, char **text)
{
    int rv = read_all(fd, text);

    if (rv == 0 && !is_good(fd))
        return AVA_EINVAL; //!
    return rv;
}
"""),
    ("passes another's answer on", None, """
static int f(int fd, char **text)
{
    int rv = prepare(fd);

    return rv == 0 ? read_all(fd, text) : rv;
}
"""),
    ("by goto", "leaves the pointer", """
int f(char **text)
{
    int rv = read_all(text);

    if (rv != 0)
        return rv;
    rv = look();
    if (rv != 0)
        goto fail;
    return 0;

fail:
    free(*text);
    return rv; //!
}
"""),
    ("a field is freed, and the way out leaves it", "leaves the pointer", """
int f(struct server *s)
{
    link_close(s->link);
    if (s->broken)
        return AVA_EIO; //!
    s->link = link_open();
    return s->link ? 0 : AVA_ENOMEM;
}
"""),
    ("a field is replaced", None, """
int f(struct server *s)
{
    free(s->name);
    s->name = strdup("x");
    return s->name ? 0 : AVA_ENOMEM;
}
"""),
    ("whoever ends a thing frees its fields", None, """
void server_free(struct server *s)
{
    if (s->older)
        return;
    free(s->name);
    free(s);
}
"""),
    ("a local without a value is freed where nobody filled it", "begins as NULL", """
int f(const char *path)
{
    char *text;
    int rv = read_file(path, &text);

    if (rv == 0)
        rv = use(text);
    free(text); //!
    return rv;
}
"""),
    ("a local that is left alone there", None, """
int f(const char *path)
{
    char *text;

    if (read_file(path, &text) != 0)
        return AVA_EIO;
    use(text);
    free(text);
    return 0;
}
"""),
    ("what came from the caller and grew is the caller's", None, """
static int f(struct table **table)
{
    struct table *t = *table != NULL ? *table : calloc(1, sizeof(*t));

    *table = t;
    return t != NULL && grow(t) ? 0 : AVA_ENOMEM;
}
"""),
]


def main():
    failed = 0
    for n, (name, want, text) in enumerate(SAMPLES, 1):
        text = text.replace("    ", "\t")
        where = [i for i, line in enumerate(text.split("\n"), 1) if "//!" in line]
        found = list(OUTS.check(OUTS.plain(text)))
        good = [line for line, _ in found] == where and all(want and want in what for _, what in found)
        failed += not good
        print(f"{'ok' if good else 'not ok'} {n} - {name}" + ("" if good else f": {found}"))
    return failed > 0


sys.exit(main())

/* Lines; line.h: waiting at a terminal, the kind that libedit edits, and the plain
 * kind, where the terminal itself lets its line be edited and nothing is ever written
 * over.
 *
 * What can fail: reading, memory. */
#include "cli/line.h"

#define LIBBSD_OPENBSD_VIS /* bsd/vis.h asks for a choice; strvis is the same in both */

#include <ava.h>
#include <bsd/vis.h>
#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "cli/chat.h"
#include "cli/front.h"
#include "cli/line_keys.h"
#include "cli/term.h"

#define PASTES_MAX    16
#define PASTE_IN_LINE 1000 /* bytes of a one-line paste that is typed into the line */
#define ESCAPE_MS     100  /* longest wait for the rest of an escape sequence */
#define WORDS_MAX     128
#define HISTORY_SIZE  1000 /* entries of the history */
#define HISTORY_ENTRY 4096 /* bytes of an entry; a longer one is not kept */
#define HISTORY_FILE  ((off_t)512 << 10)
#define TAIL_LINES    12 /* most rows shown of a text that is not done */

struct line {
	struct chat *chat; /* borrowed */
	int signals;       /* descriptor of a signalfd */
	sigset_t before;   /* the signals that were blocked before */
	struct buf text;   /* the line that was read */
	struct buf in;     /* without libedit: input read and not yet taken */
	EditLine *el;      /* NULL: without libedit */
	History *history;
	char history_path[4096]; /* the file of the history; "": none */
	const char *prompt;      /* borrowed during line_read */
	size_t width;            /* columns of the terminal that libedit assumes */
	struct line_keys keys;
	bool hidden; /* the prompt stands alone: the typed line is not shown */
	bool interrupted, end;
	char *kept; /* the typed line while it is not shown; owned */
	int kept_cursor;
	char *paste[PASTES_MAX]; /* pastes named in the line; owned */
	char name[PASTES_MAX][48];
	unsigned pastes;
	size_t tail[TAIL_LINES]; /* columns of each row of the tail that is shown */
	unsigned tail_lines;
	bool no_tail;    /* erase the tail before the line is taken */
	wchar_t pending; /* the key that takes the line; 0: none */
	char note[4096]; /* a note to show with what chat_show shows */
};

/* ---- waiting at a terminal
 *
 * Signals are held back from line_open to line_close and read as they come: one that comes
 * between two lines is seen at the next, and none finds the terminal as the editor needs it. */

enum line_woken {
	LINE_WOKEN_INPUT,     /* stdin is readable, or at its end */
	LINE_WOKEN_SHOW,      /* chat_wants() said yes */
	LINE_WOKEN_INTERRUPT, /* Ctrl-C was pressed */
	LINE_WOKEN_RESIZE,
	LINE_WOKEN_SUSPEND, /* Ctrl-Z was pressed */
	LINE_WOKEN_END,     /* SIGTERM, SIGHUP or SIGQUIT came */
	LINE_WOKEN_TIME,    /* wait_ms is over */
};

/* wait_ms -1: as long as it takes. quiet: nothing is shown now. */
static enum line_woken line_wait(struct line *l, int wait_ms, bool quiet)
{
	int64_t end = wait_ms < 0 ? -1 : clock_mono_ms() + wait_ms;

	for (;;) {
		struct pollfd p[] = {{.fd = l->signals, .events = POLLIN},
				     {.fd = STDIN_FILENO, .events = POLLIN},
				     {.fd = -1, .events = POLLIN}};
		struct signalfd_siginfo signal;
		int64_t at;

		if (read(l->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal))
			return signal.ssi_signo == SIGINT     ? LINE_WOKEN_INTERRUPT
			       : signal.ssi_signo == SIGTSTP  ? LINE_WOKEN_SUSPEND
			       : signal.ssi_signo == SIGWINCH ? LINE_WOKEN_RESIZE
							      : LINE_WOKEN_END;
		if (!quiet && chat_wants(l->chat))
			return LINE_WOKEN_SHOW;
		p[2].fd = quiet ? -1 : dialog_fd(&l->chat->d);
		at = quiet ? -1 : chat_next(l->chat);
		if (at < 0 || (end >= 0 && end < at))
			at = end;
		if (poll(p, ARRAY_LEN(p), at < 0 ? -1 : (int)MAX(at - clock_mono_ms(), 0)) < 0 &&
		    errno != EINTR)
			return LINE_WOKEN_END;
		if (p[1].revents != 0 && p[0].revents == 0) /* signals come first */
			return LINE_WOKEN_INPUT;
		if (end >= 0 && clock_mono_ms() >= end)
			return LINE_WOKEN_TIME;
	}
}

/* libedit, and what appears while a line is edited.
 *
 * libedit asks get_char for each key. When there is something to show, get_char
 * answers with a key of its own, HIDE, whose function takes the line out of the
 * editor, so that libedit itself clears every row of it; the next call finds
 * the prompt alone on one row, shows what there is in its place, and answers
 * RESTORE, which puts the line back and draws all anew. Nothing here needs to know
 * how libedit breaks a line into rows, but after a change of the window, when
 * the rows above the cursor are reckoned.
 *
 * Long pastes are kept aside and stand in the line as "[paste 1: 10000 lines]",
 * which becomes their text when the line is taken. Between two lines the
 * terminal keeps what is typed without echo.
 *
 * What can fail: libedit (memory, an unknown terminal), the history file, of
 * which only the reading is told. */

/* Our own keys, which nobody can type (line_keys.h), and their names for
 * libedit. */
#define KEY_HIDE    0x1c
#define KEY_RESTORE 0x1d
#define KEY_PASTE   0x1e
#define KEY_REDRAW  0x1f

static struct line *self(EditLine *el)
{
	struct line *l = NULL;

	el_get(el, EL_CLIENTDATA, &l);
	return l;
}

static const char *prompt_text(EditLine *el)
{
	return self(el)->prompt;
}

/* ---- out of the way and back */

static void empty_line(EditLine *el)
{
	const LineInfoW *i = el_wline(el);
	int len = (int)(i->lastchar - i->buffer);

	el_cursor(el, (int)(i->lastchar - i->cursor));
	el_deletestr(el, len);
}

static unsigned char do_hide(EditLine *el, int key)
{
	struct line *l = self(el);
	const LineInfoW *w = el_wline(el);
	const LineInfo *i;

	l->kept_cursor = (int)(w->cursor - w->buffer);
	i = el_line(el);
	free(l->kept);
	l->kept = strndup(i->buffer, (size_t)(i->lastchar - i->buffer));
	if (l->kept == NULL)
		return CC_ERROR; /* show nothing until there is memory */
	empty_line(el);
	l->hidden = true;
	return CC_REFRESH;
}

static unsigned char do_restore(EditLine *el, int key)
{
	struct line *l = self(el);
	const LineInfoW *w;

	l->hidden = false;
	if (l->kept != NULL && l->kept[0] != '\0' && el_insertstr(el, l->kept) == 0) {
		w = el_wline(el);
		el_cursor(el, l->kept_cursor - (int)(w->cursor - w->buffer));
	}
	free(l->kept);
	l->kept = NULL;
	return CC_REDISPLAY;
}

static unsigned char do_redraw(EditLine *el, int key)
{
	return CC_REDISPLAY;
}

/* ---- the end of a text that is not done */

static void erase_tail(struct line *l)
{
	size_t width = MAX(term_width(stdout), (size_t)1);

	putchar('\r');
	for (unsigned i = 0; i < l->tail_lines; i++)
		for (size_t rows = MAX((l->tail[i] + width - 1) / width, (size_t)1); rows > 0;
		     rows--)
			fputs("\033[A", stdout);
	fputs("\033[J", stdout);
	l->tail_lines = 0;
}

/* The beginning of the text's last lines, with no more bytes than TAIL_LINES rows hold. */
static const char *tail_start(const char *t, size_t len)
{
	size_t max = MAX(term_width(stdout), (size_t)1) * TAIL_LINES, lines = 0, at = len;

	while (at > 0 && len - at < max && lines < TAIL_LINES)
		lines += t[--at] == '\n' && at + 1 < len;
	if (lines == TAIL_LINES)
		at++;
	while (at > 0 && at < len && ((unsigned char)t[at] & 0xc0) == 0x80)
		at++;
	return t + at;
}

/* Show the tail's last rows, in the margin of the final text; the line comes again below them. */
static void show_tail(struct line *l)
{
	size_t len = 0, total = 0, from = 0;
	const char *t = chat_tail(l->chat, &len), *start;
	char *rows = NULL;
	FILE *memory = t != NULL && !l->no_tail ? open_memstream(&rows, &total) : NULL;

	if (memory == NULL)
		return;
	start = tail_start(t, len);
	term_theirs(memory, term_width(stdout), start, len - (size_t)(start - t), 0);
	if (fclose(memory) != 0)
		total = 0;
	from = total;
	for (unsigned n = 0; from > 0; from--)
		if (rows[from - 1] == '\n' && from < total && ++n == TAIL_LINES)
			break;
	term_colour(stdout, TERM_DIM);
	for (size_t n; from < total; from += n + 1) {
		n = strcspn(rows + from, "\n");
		l->tail[l->tail_lines++] = term_columns(rows + from, n);
		fwrite(rows + from, 1, n, stdout);
		putchar('\n');
	}
	term_colour(stdout, TERM_PLAIN);
	free(rows);
}

static void show_hidden(struct line *l)
{
	erase_tail(l);
	if (l->note[0] != '\0')
		puts(l->note);
	l->note[0] = '\0';
	if (l->interrupted)
		chat_interrupt(l->chat);
	l->interrupted = false;
	chat_show(l->chat);
	show_tail(l);
	l->no_tail = false;
	fflush(stdout);
}

/* ---- pastes */

/* A paste as it stands in the line: itself, or its name. NULL: it cannot be
 * kept. */
static const char *paste_in_line(struct line *l)
{
	struct buf *p = &l->keys.paste;
	size_t lines = 1;

	while (p->len > 0 && p->data[p->len - 1] == '\n')
		p->data[--p->len] = '\0';
	if (p->len == 0)
		return "";
	if (p->len <= PASTE_IN_LINE && memchr(p->data, '\n', p->len) == NULL)
		return p->data;
	if (l->pastes == PASTES_MAX)
		return NULL;
	l->paste[l->pastes] = strndup(p->data, p->len);
	if (l->paste[l->pastes] == NULL)
		return NULL;
	for (const char *s = p->data; *s != '\0'; s++)
		lines += *s == '\n' && s[1] != '\0';
	snprintf(l->name[l->pastes], sizeof(l->name[0]), "[paste %u: %zu lines]", l->pastes + 1,
		 lines);
	return l->name[l->pastes++];
}

static unsigned char do_paste(EditLine *el, int key)
{
	struct line *l = self(el);
	const char *text = paste_in_line(l);

	if (l->keys.paste_lost > 0)
		snprintf(l->note, sizeof(l->note),
			 "The paste is too long: its last %zu bytes are left out. Put it into a "
			 "file and name that.",
			 l->keys.paste_lost);
	else if (text == NULL)
		snprintf(l->note, sizeof(l->note), "There is no room for another paste.");
	if (text == NULL || el_insertstr(el, text) != 0)
		return CC_ERROR;
	buf_reset(&l->keys.paste);
	return CC_REFRESH;
}

static void drop_pastes(struct line *l)
{
	for (unsigned i = 0; i < l->pastes; i++)
		free(l->paste[i]);
	l->pastes = 0;
}

/* The line with the pastes in place of their names. */
static int line_expand(struct line *l, const char *line, size_t len)
{
	size_t at = 0;

	buf_reset(&l->text);
	while (at < len) {
		unsigned i = 0;

		while (i < l->pastes && strncmp(line + at, l->name[i], strlen(l->name[i])) != 0)
			i++;
		if (i == l->pastes) {
			buf_addc(&l->text, line[at++]);
			continue;
		}
		buf_adds(&l->text, l->paste[i]);
		at += strlen(l->name[i]);
	}
	return buf_check(&l->text);
}

/* ---- completion */

static unsigned char do_complete(EditLine *el, int key)
{
	struct line *l = self(el);
	const LineInfo *i = el_line(el);
	const char *start = i->cursor, *found[WORDS_MAX];
	char word[64], more[128];
	size_t len, n, same;

	while (start > i->buffer && start[-1] != ' ')
		start--;
	len = (size_t)(i->cursor - start);
	if (len >= sizeof(word))
		return CC_ERROR;
	snprintf(word, sizeof(word), "%.*s", (int)len, start);
	n = chat_complete(l->chat, word, start == i->buffer, found, WORDS_MAX);
	if (n == 0)
		return CC_ERROR;
	same = strlen(found[0]);
	for (size_t k = 1; k < n; k++)
		while (strncmp(found[0], found[k], same) != 0)
			same--;
	if (n > 1 && same <= len) {
		size_t used = 0;

		for (size_t k = 0; k < n && used < sizeof(l->note); k++)
			used += (size_t)snprintf(l->note + used, sizeof(l->note) - used, "%s%s",
						 k > 0 ? "  " : "", found[k]);
		return CC_NORM;
	}
	snprintf(more, sizeof(more), "%.*s%s", (int)(same - len), found[0] + len,
		 n == 1 ? " " : "");
	return el_insertstr(el, more) == 0 ? CC_REFRESH : CC_ERROR;
}

/* ---- the window */

/* Columns from the start of the prompt to the cursor. */
static size_t columns(struct line *l)
{
	const LineInfo *i = el_line(l->el);

	return strlen(l->prompt) + term_columns(i->buffer, (size_t)(i->cursor - i->buffer));
}

/* From the first row of a line to where libedit believes its cursor is. */
static void go_down(struct line *l, size_t used, size_t width)
{
	for (size_t rows = used / MAX(width, (size_t)1); rows > 0; rows--)
		putchar('\n');
}

/* After a change of width the terminal breaks rows anew, and the cursor is in another row of the
 * line; libedit counts by the old width, so move the cursor to the row it expects. */
static void resized(struct line *l)
{
	size_t used = columns(l), before = l->width, rows;
	struct winsize w;

	l->width = term_width(stdout);
	rows = used / MAX(l->width, (size_t)1);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0)
		rows = MIN(rows, (size_t)w.ws_row - 1);
	putchar('\r');
	for (; rows > 0; rows--)
		fputs("\033[A", stdout);
	fputs("\033[J", stdout);
	go_down(l, used, before);
	fflush(stdout);
	el_resize(l->el);
}

/* Pastes are marked, and the terminal says whether it is in front, while keys are read here. */
static void line_modes(bool on)
{
	fputs(on ? "\033[?2004h" : "\033[?2004l", stdout);
	front_watch(on);
}

static void line_suspend(struct line *l)
{
	line_modes(false);
	putchar('\n');
	fflush(stdout);
	el_set(l->el, EL_PREP_TERM, 0);
	raise(SIGSTOP);
	el_set(l->el, EL_PREP_TERM, 1);
	line_modes(true);
	front_seen(true);
	go_down(l, columns(l), l->width);
	fflush(stdout);
}

/* ---- keys */

static bool full(struct line *l, wchar_t c)
{
	const LineInfoW *i = el_wline(l->el);

	return c >= ' ' && c != 127 && i->lastchar - i->buffer >= LINE_TYPED_MAX;
}

/* Bytes of the terminal; false at its end. */
static bool read_bytes(struct line *l)
{
	size_t room;
	char *to = line_keys_room(&l->keys, &room);
	ssize_t n = read(STDIN_FILENO, to, room);

	if (n > 0)
		l->keys.len += (size_t)n;
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* A key of our own for what came, 0: none. */
static wchar_t woken(struct line *l)
{
	bool inside = line_keys_inside(&l->keys);
	int wait = line_keys_partial(&l->keys) ? ESCAPE_MS : -1;

	enum line_woken why = line_wait(l, wait, inside);

	switch (why) {
	case LINE_WOKEN_INPUT:
		if (el_line(l->el)->lastchar == el_line(l->el)->buffer)
			chat_begin_line(l->chat, true);
		l->end = !read_bytes(l);
		return 0;
	case LINE_WOKEN_SHOW:
		return KEY_HIDE;
	case LINE_WOKEN_INTERRUPT:
		line_keys_reset(&l->keys);
		l->interrupted = true;
		return 0;
	case LINE_WOKEN_RESIZE:
	case LINE_WOKEN_SUSPEND:
		(why == LINE_WOKEN_RESIZE ? resized : line_suspend)(l);
		return inside ? 0 : KEY_REDRAW;
	case LINE_WOKEN_TIME:
		line_keys_expire(&l->keys);
		return 0;
	case LINE_WOKEN_END:
		l->end = true;
		return 0;
	}
	return 0;
}

/* Ctrl-C drops a begun line; at an empty line it interrupts the work under way. */
static wchar_t interrupted(struct line *l)
{
	const LineInfoW *i = el_wline(l->el);

	if (i->lastchar == i->buffer)
		return KEY_HIDE;
	l->interrupted = false;
	drop_pastes(l);
	empty_line(l->el);
	return KEY_REDRAW;
}

static int get_char(EditLine *el, wchar_t *out)
{
	struct line *l = self(el);

	if (l->hidden) {
		show_hidden(l);
		*out = KEY_RESTORE;
		return 1;
	}
	for (;;) {
		if (l->end)
			return 0;
		if (l->interrupted || l->note[0] != '\0') {
			*out = l->interrupted ? interrupted(l) : KEY_HIDE;
			return 1;
		}
		if (l->pending != 0) {
			*out = l->pending;
			l->pending = 0;
			return 1;
		}
		switch (line_keys_next(&l->keys, out)) {
		case LINE_KEY_FRONT:
			front_seen(true);
			continue;
		case LINE_KEY_BACK:
			front_seen(false);
			continue;
		case LINE_KEY_CHAR:
			front_seen(true); /* who types looks at it */
			if (full(l, *out))
				continue;
			if (l->tail_lines > 0 && (*out == '\r' || *out == '\n')) {
				l->pending = *out;
				l->no_tail = true;
				*out = KEY_HIDE;
			}
			return 1;
		case LINE_KEY_PASTE:
			*out = KEY_PASTE;
			return 1;
		case LINE_KEY_NONE:
			break;
		}
		*out = woken(l);
		if (*out != 0)
			return 1;
	}
}

/* ---- history: the file is libedit's, and several terminals append to it. Who finds it too
 * long rewrites it; what another terminal appends just then is lost from it, which is a
 * comfort and not a record. */

/* $XDG_STATE_HOME/ava/history, else ~/.local/state/ava/history; "": no home is known. */
static void history_place(char *out, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n = 0;

	if (state && state[0] == '/')
		n = snprintf(out, size, "%s/ava/history", state);
	else if (home && home[0] == '/')
		n = snprintf(out, size, "%s/.local/state/ava/history", home);
	if (n <= 0 || (size_t)n >= size)
		out[0] = '\0';
	else
		(void)sys_make_folders(out, false);
}

static void open_history(struct line *l)
{
	struct stat st = {0};
	HistEvent ev;

	l->history = history_init();
	if (l->history == NULL)
		return;
	history(l->history, &ev, H_SETSIZE, HISTORY_SIZE);
	history(l->history, &ev, H_SETUNIQUE, 1);
	history_place(l->history_path, sizeof(l->history_path));
	if (lstat(l->history_path, &st) == 0 &&
	    (!S_ISREG(st.st_mode) || history(l->history, &ev, H_LOAD, l->history_path) < 0))
		l->history_path[0] = '\0'; /* not our file: never write it */
	else if (st.st_size > HISTORY_FILE)
		history(l->history, &ev, H_SAVE, l->history_path);
	el_set(l->el, EL_HIST, history, l->history);
}

/* A line that begins with a blank, or is too long, is not kept. */
static void history_keep(struct line *l, const char *text)
{
	char entry[4 * HISTORY_ENTRY + 64] = "_HiStOrY_V2_\n";
	HistEvent ev;
	struct stat st;
	size_t from = strlen(entry), len;
	int fd;

	if (text[0] == ' ' || strlen(text) > HISTORY_ENTRY)
		return;
	if (l->history != NULL && strchr(text, '\n') == NULL)
		history(l->history, &ev, H_ENTER, text);
	if (l->history_path[0] == '\0')
		return;
	fd = open(l->history_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	len = from + (size_t)strvis(entry + from, text, VIS_WHITE);
	entry[len++] = '\n';
	if (fstat(fd, &st) == 0 && st.st_size == 0)
		from = 0;
	(void)!write(fd, entry + from, len - from);
	close(fd);
}

/* ---- opening */

static void bind_keys(EditLine *el)
{
	static const struct {
		const wchar_t *wide; /* libedit would never free a copy of this name */
		const char *name, *key;
		unsigned char (*fn)(EditLine *, int);
	} own[] = {
		{L"ava-hide", "ava-hide", "^\\", do_hide},
		{L"ava-restore", "ava-restore", "^]", do_restore},
		{L"ava-paste", "ava-paste", "^^", do_paste},
		{L"ava-redraw", "ava-redraw", "^_", do_redraw},
		{L"ava-complete", "ava-complete", "^I", do_complete},
	};

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		el_wset(el, EL_ADDFN, own[i].wide, own[i].wide, own[i].fn);
		el_set(el, EL_BIND, own[i].key, own[i].name, NULL);
	}
	el_set(el, EL_BIND, "^R", "em-inc-search-prev", NULL);
	/* No echo between two lines, so that text typed ahead appears where it is read. */
	el_set(el, EL_SETTY, "-x", "-echo", "-icanon", NULL);
}

bool line_is_plain(void)
{
	const char *term = getenv("TERM");

	return term == NULL || term[0] == '\0' || strcmp(term, "dumb") == 0 || term_is_plain();
}

static int open_editor(struct line *l, struct ava_error *err)
{
	if (setlocale(LC_CTYPE, "") == NULL || (term_utf8() && MB_CUR_MAX == 1))
		setlocale(LC_CTYPE, "C.UTF-8");
	l->el = el_init("ava", stdin, stdout, stderr);
	if (l->el == NULL)
		return err_set(err, AVA_EIO, "lines cannot be edited on this terminal");
	el_set(l->el, EL_CLIENTDATA, l);
	el_set(l->el, EL_EDITOR, "emacs");
	el_set(l->el, EL_PROMPT, prompt_text);
	el_wset(l->el, EL_GETCFN, get_char);
	bind_keys(l->el);
	open_history(l);
	return 0;
}

int line_open(struct line **out, struct chat *chat, struct ava_error *err)
{
	static const int caught[] = {SIGINT, SIGWINCH, SIGTSTP, SIGTERM, SIGHUP, SIGQUIT};
	struct line *l = calloc(1, sizeof(*l));
	sigset_t set;
	int rv = 0;

	if (l == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	l->chat = chat;
	line_keys_init(&l->keys);
	buf_init(&l->in, LINE_TEXT_MAX + 4096);
	buf_init(&l->text, LINE_TEXT_MAX + LINE_TYPED_MAX * 4);
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		sigaddset(&set, caught[i]);
	sigprocmask(SIG_BLOCK, &set, &l->before);
	l->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (l->signals < 0)
		rv = err_sys(err, "signalfd");
	if (rv == 0 && !line_is_plain())
		rv = open_editor(l, err);
	if (rv == 0)
		*out = l;
	else
		line_close(l);
	return rv;
}

void line_close(struct line *l)
{
	if (l == NULL)
		return;
	if (l->el != NULL)
		el_end(l->el);
	if (l->history != NULL)
		history_end(l->history);
	drop_pastes(l);
	free(l->kept);
	line_keys_fini(&l->keys);
	if (l->signals >= 0)
		close(l->signals);
	sigprocmask(SIG_SETMASK, &l->before, NULL);
	buf_fini(&l->in);
	buf_fini(&l->text);
	free(l);
}

/* ---- reading */

static int read_edited(struct line *l, struct ava_error *err)
{
	const char *line;
	int len = 0, rv = 0;

	if (l->width == 0)
		l->width = term_width(stdout);
	else if (l->width != term_width(stdout))
		el_resize(l->el); /* safe: no line stands on the screen */
	l->width = term_width(stdout);
	l->end = l->interrupted = false;
	line_modes(true);
	line = el_gets(l->el, &len);
	if (line != NULL && len > 0) {
		if (line_expand(l, line, (size_t)len - (line[len - 1] == '\n')) != 0)
			rv = err_set(err, AVA_ETOOBIG, "the line is too long");
		else
			drop_pastes(l);
		if (rv == 0 && l->text.len > 0)
			history_keep(l, l->text.data);
	}
	line_modes(false);
	fputs(line == NULL ? "\n" : "", stdout);
	fflush(stdout);
	if (rv != 0)
		return rv;
	return line != NULL && len > 0;
}

/* ---- plain */

/* Take the first line of what was read. */
static bool line_take(struct line *l)
{
	const char *nl = l->in.len > 0 ? memchr(l->in.data, '\n', l->in.len) : NULL;
	size_t len;

	if (nl == NULL)
		return false;
	len = (size_t)(nl - l->in.data);
	buf_reset(&l->text);
	buf_add(&l->text, l->in.data, len);
	buf_drop(&l->in, len + 1);
	return true;
}

/* 1: bytes came; 0: the end; a code. */
static int line_read_some(struct line *l, struct ava_error *err)
{
	char data[4096];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : err_sys(err, "read the terminal");
	if (n == 0)
		return 0;
	if (buf_add(&l->in, data, (size_t)n) != 0)
		return err_set(err, AVA_ETOOBIG, "the line is too long");
	return 1;
}

static void line_show(struct line *l, const char *prompt, bool interrupted)
{
	putchar('\n'); /* end the row of the prompt and of what was typed */
	if (interrupted)
		chat_interrupt(l->chat);
	else
		chat_show(l->chat);
	fputs(prompt, stdout);
	fflush(stdout);
}

static int read_plain(struct line *l, const char *prompt, struct ava_error *err)
{
	int rv = 1;

	fputs(prompt, stdout);
	fflush(stdout);
	while (rv == 1 && !line_take(l)) {
		switch (line_wait(l, -1, false)) {
		case LINE_WOKEN_INPUT:
			rv = line_read_some(l, err);
			break;
		case LINE_WOKEN_SHOW:
			line_show(l, prompt, false);
			break;
		case LINE_WOKEN_INTERRUPT:
			line_show(l, prompt, true);
			break;
		case LINE_WOKEN_SUSPEND:
			raise(SIGSTOP);
			break;
		case LINE_WOKEN_END:
			rv = err_set(err, AVA_ECANCELED, "asked to end");
			break;
		case LINE_WOKEN_RESIZE:
		case LINE_WOKEN_TIME:
			break;
		}
	}
	if (rv != 1)
		putchar('\n');
	return rv;
}

int line_read(struct line *l, const char *prompt, const char **text, struct ava_error *err)
{
	int rv;

	l->prompt = prompt;
	if (l->el != NULL) {
		rv = read_edited(l, err);
	} else {
		rv = read_plain(l, prompt, err);
		chat_begin_line(l->chat, false); /* the real beginning is not known */
	}
	*text = l->text.data != NULL ? l->text.data : "";
	return rv;
}

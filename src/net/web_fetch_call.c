/* The fetcher and libcurl; web_fetch_host.h says what is in which room.
 *
 * Happy path: web_fetch_call_start makes an easy handle with everything forbidden that could be,
 * and hands it to the multi. libcurl asks us for each socket (open_cb: the address is judged, every
 * one that it tries) and before each request (prereq_cb: that of a kept connection as well),
 * gives us the headers and the unpacked body, which are counted, and reports the end.
 *
 * Whoever breaks a transfer off from a callback sets `fault` first, since libcurl reports all of
 * them alike. Nothing is told from inside libcurl: ends are read off when it has returned, so
 * that it is safe to take a fetch out then. */
#include "net/web_fetch_host.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ava.h>
#include <ctype.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/util.h"
#include "codec/jscan.h"

#define AGENT         "Mozilla/5.0 (compatible; ava/" AVA_VERSION ")"
#define REDIRECT_BODY (64u << 10)
#define SLOW_BYTES    1024
#define OWN_MS        10000 /* time that the list of our own addresses is good */

struct web_fetch_sock {
	struct list node;
	struct fetcher *fetcher;
	int fd;
	struct os_poll *poll; /* NULL: libcurl waits for no event */
};

/* ---- addresses */

static void read_own(struct fetcher *fr)
{
	struct ifaddrs *all = NULL;

	fr->own_until = web_fetch_now(fr) + OWN_MS;
	fr->nown = 0;
	if (getifaddrs(&all) != 0)
		return;
	for (struct ifaddrs *i = all; i && fr->nown < FETCH_OWN_MAX; i = i->ifa_next) {
		/* Addresses that are not public are refused anyway, and a machine may have
		 * hundreds. */
		if (!i->ifa_addr || address_judge(i->ifa_addr) != ADDRESS_PUBLIC)
			continue;
		memcpy(&fr->own[fr->nown++], i->ifa_addr,
		       i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							 : sizeof(struct sockaddr_in6));
	}
	freeifaddrs(all);
}

static bool same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *v4 = (const void *)a, *w4 = (const void *)b;
	const struct sockaddr_in6 *v6 = (const void *)a, *w6 = (const void *)b;

	if (a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return v4->sin_addr.s_addr == w4->sin_addr.s_addr;
	return memcmp(&v6->sin6_addr, &w6->sin6_addr, sizeof(v6->sin6_addr)) == 0;
}

/* Is it a public address of this machine? A service listening here on all interfaces is not of the
 * public network. */
static bool web_fetch_call_is_own(struct fetcher *fr, const struct sockaddr *sa)
{
	if (web_fetch_now(fr) >= fr->own_until)
		read_own(fr);
	for (size_t i = 0; i < fr->nown; i++)
		if (same_address(sa, &fr->own[i]))
			return true;
	return false;
}

static bool may_connect(struct web_fetch_impl *im, const struct sockaddr *sa)
{
	enum address_kind kind = address_judge(sa);
	bool may;

	if (kind == ADDRESS_PUBLIC && web_fetch_call_is_own(im->fetcher, sa))
		kind = ADDRESS_INSIDE;
	may = kind == ADDRESS_PUBLIC || (kind == ADDRESS_INSIDE && im->listed);
	im->blocked = im->blocked || !may;
	return may;
}

/* ---- sockets */

static void web_fetch_call_act(struct fetcher *fr, curl_socket_t fd, int events);

static void sock_ready(int events, void *user)
{
	struct web_fetch_sock *s = user;

	web_fetch_call_act(s->fetcher, s->fd,
			   (events & OS_READ ? CURL_CSELECT_IN : 0) |
				   (events & OS_WRITE ? CURL_CSELECT_OUT : 0));
}

static struct web_fetch_sock *web_fetch_call_sock_of(struct fetcher *fr, int fd)
{
	LIST_EACH (&fr->socks, n, tmp) {
		struct web_fetch_sock *s = LIST_ENTRY(n, struct web_fetch_sock, node);

		if (s->fd == fd)
			return s;
	}
	return NULL;
}

static void web_fetch_call_sock_free(struct web_fetch_sock *s)
{
	if (!s)
		return;
	list_del(&s->node);
	os_poll_free(s->poll);
	free(s);
}

static curl_socket_t web_fetch_call_open_cb(void *impl, curlsocktype purpose,
					    struct curl_sockaddr *addr)
{
	struct web_fetch_impl *im = impl;
	int fd;

	if (purpose != CURLSOCKTYPE_IPCXN || !may_connect(im, &addr->addr))
		return CURL_SOCKET_BAD;
	fd = socket(addr->family, addr->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, addr->protocol);
	if (fd < 0)
		return CURL_SOCKET_BAD;
	web_fetch_call_sock_free(web_fetch_call_sock_of(im->fetcher, fd)); /* closed silently */
	return fd;
}

static int web_fetch_call_close_cb(void *fetcher, curl_socket_t fd)
{
	web_fetch_call_sock_free(web_fetch_call_sock_of(fetcher, fd));
	return close(fd);
}

static int web_fetch_call_socket_cb(CURL *easy, curl_socket_t fd, int what, void *user,
				    void *socket_user)
{
	struct fetcher *fr = user;
	struct web_fetch_sock *s = web_fetch_call_sock_of(fr, fd);
	int events = (what & CURL_POLL_IN ? OS_READ : 0) | (what & CURL_POLL_OUT ? OS_WRITE : 0);

	(void)easy, (void)socket_user;
	if (what == CURL_POLL_REMOVE) {
		web_fetch_call_sock_free(s);
		return 0;
	}
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return 0; /* without memory the fetch ends by its time limit */
		*s = (struct web_fetch_sock){.fetcher = fr, .fd = fd};
		list_add(&fr->socks, &s->node);
		s->poll = os_poll_new(fr->loop, fd, sock_ready, s);
	}
	if (s->poll)
		os_poll_set(s->poll, events);
	return 0;
}

/* ---- other callbacks of libcurl */

static int web_fetch_call_prereq_cb(void *impl, char *remote, char *local, int remote_port,
				    int local_port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	const struct sockaddr *sa = (struct sockaddr *)&v4;

	(void)local, (void)remote_port, (void)local_port;
	if (inet_pton(AF_INET, remote, &v4.sin_addr) != 1) {
		sa = (struct sockaddr *)&v6;
		if (inet_pton(AF_INET6, remote, &v6.sin6_addr) != 1)
			v6.sin6_family = AF_UNSPEC;
	}
	return may_connect(impl, sa) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/* Take the value of "Name: value", if the header has that name. */
static bool header_is(const char *line, size_t len, const char *name, struct slice *value)
{
	size_t n = strlen(name);
	const char *end = line + len;

	if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
		return false;
	for (line += n + 1; line < end && (*line == ' ' || *line == '\t'); line++)
		;
	while (end > line && isspace((unsigned char)end[-1]))
		end--;
	*value = (struct slice){line, (size_t)(end - line)};
	return true;
}

/* Take "text/html; charset=utf-8" apart. */
static void take_type(struct web_fetch *f, struct slice v)
{
	static const char name[] = "charset=";
	size_t n = 0;

	f->type[0] = f->charset[0] = '\0';
	while (n < v.len && v.s[n] != ';' && v.s[n] != ' ' && n < sizeof(f->type) - 1) {
		f->type[n] = (char)tolower((unsigned char)v.s[n]);
		n++;
	}
	f->type[n] = '\0';
	for (; n + sizeof(name) - 1 < v.len; n++) {
		size_t k = 0;

		if (strncasecmp(v.s + n, name, sizeof(name) - 1) != 0)
			continue;
		for (n += sizeof(name) - 1; n < v.len && k < sizeof(f->charset) - 1; n++)
			if (isalnum((unsigned char)v.s[n]) || strchr("-_.:+", v.s[n]))
				f->charset[k++] = v.s[n];
			else if (v.s[n] != '"')
				break;
		f->charset[k] = '\0';
		return;
	}
}

static bool type_taken(const struct web_fetch *f)
{
	size_t len = strlen(f->type);

	if (!f->types || len == 0)
		return true;
	for (size_t i = 0; f->types[i]; i++) {
		const char *t = f->types[i];
		size_t n = strlen(t);

		if (t[n - 1] == '/' ? strncmp(f->type, t, n) == 0
		    : t[0] == '+'   ? len > n && strcmp(f->type + len - n, t) == 0
				    : strcmp(f->type, t) == 0)
			return true;
	}
	return false;
}

static void web_fetch_call_heads_over(struct web_fetch_impl *im)
{
	curl_off_t length = -1;
	long status = 0;

	curl_easy_getinfo(im->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 101)
		im->fault = FETCH_BROKEN;
	if (status < 200)
		return;
	im->heads_over = true;
	im->fetch->status = (int)status;
	if (web_fetch_is_redirect((int)status)) {
		im->body_max = REDIRECT_BODY;
		return;
	}
	if (im->fetch->big_type && strcmp(im->fetch->type, im->fetch->big_type) == 0)
		im->body_max = im->fetch->big_max;
	curl_easy_getinfo(im->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	if (!type_taken(im->fetch))
		im->fault = FETCH_TYPE;
	else if (length > (curl_off_t)im->body_max && !im->fetch->plain)
		im->fault = FETCH_TOO_LARGE;
}

static size_t web_fetch_call_header_cb(char *line, size_t size, size_t n, void *impl)
{
	struct web_fetch_impl *im = impl;
	size_t len = size * n;
	struct slice value;

	im->head_bytes += len; /* counts headers of each 1xx and trailers, too */
	if (im->head_bytes > im->fetcher->limits.head_max)
		im->fault = FETCH_TOO_LARGE;
	else if (im->heads_over)
		return len;
	else if (line[0] == '\r' || line[0] == '\n')
		web_fetch_call_heads_over(im);
	else if (header_is(line, len, "content-type", &value))
		take_type(im->fetch, value);
	else if (header_is(line, len, "transfer-encoding", &value)) {
		/* libcurl also unpacks transfer encodings, unasked. */
		if (value.len != 7 || strncasecmp(value.s, "chunked", 7) != 0)
			im->fault = FETCH_BROKEN;
	} else if (header_is(line, len, "content-encoding", &value)) {
		/* A body packed twice may be tiny and take long to unpack. */
		if (im->encoded || memchr(value.s, ',', value.len))
			im->fault = FETCH_BROKEN;
		im->encoded = true;
	}
	return im->fault ? 0 : len;
}

static size_t web_fetch_call_write_cb(char *data, size_t size, size_t n, void *impl)
{
	struct web_fetch_impl *im = impl;
	struct buf *b = &im->fetch->body;
	size_t len = size * n, fits = MIN(len, im->body_max - b->len);

	if (buf_add(b, data, fits) != 0) {
		im->fault = FETCH_NO_MEMORY;
		return CURL_WRITEFUNC_ERROR;
	}
	if (fits == len)
		return len;
	im->fault = FETCH_TOO_LARGE;
	return CURL_WRITEFUNC_ERROR;
}

/* Count bytes as sent: write_cb does not see those that unpack to nothing. */
static int progress_cb(void *impl, curl_off_t total, curl_off_t now, curl_off_t up_total,
		       curl_off_t up)
{
	struct web_fetch_impl *im = impl;

	(void)total, (void)up_total, (void)up;
	if (now <= (curl_off_t)(2 * im->body_max + REDIRECT_BODY))
		return 0;
	im->fault = FETCH_TOO_LARGE;
	return 1;
}

/* ---- a call begins */

#define SET(option, value)                                                                         \
	do {                                                                                       \
		if (curl_easy_setopt(easy, option, value) != CURLE_OK)                             \
			return AVA_ENOMEM;                                                         \
	} while (0)

static int set_rules(struct fetcher *fr, CURL *easy)
{
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_HTTP09_ALLOWED, 0L);
	SET(CURLOPT_PROXY, ""); /* never a proxy: it would hide the address */
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_UNRESTRICTED_AUTH, 0L);
	SET(CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
	SET(CURLOPT_USERAGENT, AGENT);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)fr->limits.connect_ms);
	SET(CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
	SET(CURLOPT_LOW_SPEED_TIME, (long)fr->limits.slow_s);
	SET(CURLOPT_QUICK_EXIT, 1L); /* a hanging look-up is not waited for */
	SET(CURLOPT_NOPROGRESS, 0L);
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(CURLOPT_RESOLVE, fr->resolve);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (fr->ca_file)
		SET(CURLOPT_CAINFO, fr->ca_file);
	SET(CURLOPT_CAPATH, NULL); /* as in http_call.c: else certificates are not cached */
	SET(CURLOPT_PREREQFUNCTION, web_fetch_call_prereq_cb);
	SET(CURLOPT_HEADERFUNCTION, web_fetch_call_header_cb);
	SET(CURLOPT_WRITEFUNCTION, web_fetch_call_write_cb);
	SET(CURLOPT_XFERINFOFUNCTION, progress_cb);
	SET(CURLOPT_OPENSOCKETFUNCTION, web_fetch_call_open_cb);
	SET(CURLOPT_CLOSESOCKETFUNCTION, web_fetch_call_close_cb);
	SET(CURLOPT_CLOSESOCKETDATA, fr); /* a connection outlives its fetch */
	return 0;
}

static int web_fetch_call_add_header(struct web_fetch_impl *im, const char *name, const char *value)
{
	char line[400];
	struct curl_slist *more;

	if (!value)
		return 0;
	snprintf(line, sizeof(line), "%s: %s", name, value);
	more = curl_slist_append(im->headers, line);
	if (more)
		im->headers = more;
	return more ? 0 : AVA_ENOMEM;
}

static int set_call(struct web_fetch_impl *im, CURL *easy, int64_t left_ms)
{
	SET(CURLOPT_CURLU, im->url.handle);
	SET(CURLOPT_PRIVATE, im);
	SET(CURLOPT_PREREQDATA, im);
	SET(CURLOPT_HEADERDATA, im);
	SET(CURLOPT_WRITEDATA, im);
	SET(CURLOPT_XFERINFODATA, im);
	SET(CURLOPT_OPENSOCKETDATA, im);
	SET(CURLOPT_ERRORBUFFER, im->text);
	SET(CURLOPT_TIMEOUT_MS, (long)left_ms);
	SET(CURLOPT_COOKIEFILE, ""); /* no cookies but those of this fetch */
	for (struct curl_slist *c = im->fetch->cookies; c; c = c->next)
		SET(CURLOPT_COOKIELIST, c->data);
	if (web_fetch_call_add_header(im, "Accept", im->accept) != 0 ||
	    web_fetch_call_add_header(im, "Accept-Language", im->language) != 0)
		return AVA_ENOMEM;
	SET(CURLOPT_HTTPHEADER, im->headers);
	return 0;
}

static int web_fetch_call_timer_cb(CURLM *curl, long timeout_ms, void *user)
{
	struct fetcher *fr = user;

	(void)curl;
	if (timeout_ms < 0)
		os_timer_stop(fr->timer);
	else
		os_timer_set(fr->timer, timeout_ms);
	return 0;
}

static bool multi_open(struct fetcher *fr)
{
	if (fr->curl)
		return true;
	fr->curl = curl_multi_init();
	if (!fr->curl)
		return false;
	curl_multi_setopt(fr->curl, CURLMOPT_SOCKETFUNCTION, web_fetch_call_socket_cb);
	curl_multi_setopt(fr->curl, CURLMOPT_SOCKETDATA, fr);
	curl_multi_setopt(fr->curl, CURLMOPT_TIMERFUNCTION, web_fetch_call_timer_cb);
	curl_multi_setopt(fr->curl, CURLMOPT_TIMERDATA, fr);
	curl_multi_setopt(fr->curl, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	curl_multi_setopt(fr->curl, CURLMOPT_MAXCONNECTS, (long)fr->parallel);
	return true;
}

enum web_fetch_fault web_fetch_call_start(struct web_fetch_impl *im)
{
	struct fetcher *fr = im->fetcher;
	int64_t left = im->fetch->began_ms + fr->limits.total_ms - web_fetch_now(fr);
	CURL *easy = left > 0 && multi_open(fr) ? curl_easy_init() : NULL;

	if (left <= 0)
		return FETCH_TIMEOUT;
	if (!easy)
		return FETCH_NO_MEMORY;
	im->body_max = im->fetch->body_max;
	im->heads_over = im->encoded = im->blocked = false;
	im->head_bytes = 0;
	if (set_rules(fr, easy) == 0 && set_call(im, easy, left) == 0 &&
	    curl_multi_add_handle(fr->curl, easy) == CURLM_OK) {
		im->easy = easy;
		return FETCH_OK;
	}
	curl_easy_cleanup(easy);
	return FETCH_NO_MEMORY;
}

void web_fetch_call_end(struct web_fetch_impl *im)
{
	assert(im->fetcher->inside == 0);
	if (im->easy) {
		curl_slist_free_all(im->fetch->cookies);
		im->fetch->cookies = NULL;
		curl_easy_getinfo(im->easy, CURLINFO_COOKIELIST, &im->fetch->cookies);
		curl_multi_remove_handle(im->fetcher->curl, im->easy);
		curl_easy_cleanup(im->easy);
		im->easy = NULL;
	}
	curl_slist_free_all(im->headers);
	im->headers = NULL;
}

/* ---- libcurl at work */

static enum web_fetch_fault fault_of(const struct web_fetch_impl *im, CURLcode code)
{
	if (im->fault)
		return im->fault;
	switch (code) {
	case CURLE_OK:
		return im->heads_over ? FETCH_OK : FETCH_BROKEN;
	case CURLE_COULDNT_CONNECT:
	case CURLE_ABORTED_BY_CALLBACK:
		return im->blocked ? FETCH_BLOCKED : FETCH_UNREACHABLE;
	case CURLE_COULDNT_RESOLVE_HOST:
		return FETCH_UNREACHABLE;
	case CURLE_OPERATION_TIMEDOUT:
		return FETCH_TIMEOUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_ISSUER_ERROR:
		return FETCH_TLS;
	case CURLE_OUT_OF_MEMORY: /* also where a header line is too long for libcurl */
		return im->head_bytes > 0 && !im->heads_over ? FETCH_TOO_LARGE : FETCH_NO_MEMORY;
	default:
		return FETCH_BROKEN;
	}
}

static void web_fetch_call_act(struct fetcher *fr, curl_socket_t fd, int events)
{
	struct web_fetch_impl *im;
	CURLMsg *msg;
	int n;

	if (!fr->curl)
		return;
	fr->inside++;
	(void)curl_multi_socket_action(fr->curl, fd, events, &n);
	fr->inside--;
	while (fr->curl && (msg = curl_multi_info_read(fr->curl, &n))) {
		CURLcode code = msg->data.result;

		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&im);
		web_fetch_call_over(im, fault_of(im, code)); /* other fetches may start and stop */
	}
}

void web_fetch_call_timer(void *fetcher)
{
	web_fetch_call_act(fetcher, CURL_SOCKET_TIMEOUT, 0);
}

void web_fetch_call_close(struct fetcher *fr)
{
	if (!fr->curl)
		return;
	curl_multi_cleanup(fr->curl);
	fr->curl = NULL;
	os_timer_stop(fr->timer);
	while (!list_empty(&fr->socks))
		web_fetch_call_sock_free(LIST_FIRST(&fr->socks, struct web_fetch_sock, node));
}

/* Logs in pieces; read_piece.h.
 *
 * Happy path: a log with an index is cut where its chunks end, so that a
 * piece is skipped or answered by its head; the rest every 4 MB, and a piece
 * then begins with the first line behind its first byte.
 *
 * What can fail: memory, reading. A broken line is told, and so is a last one
 * that was never finished; the caller says whether to go on. */
#include "journal/read_piece.h"

#include <ava.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/util.h"

#define PIECE ((uint64_t)4 << 20)

int read_pieces_add(struct read_pieces *p, const struct read_piece *piece)
{
	size_t cap = p->cap == 0 ? 64 : p->cap * 2;
	struct read_piece *grown;

	if (p->n == p->cap) {
		grown = realloc(p->v, cap * sizeof(*grown));
		if (grown == NULL)
			return AVA_ENOMEM;
		p->v = grown;
		p->cap = cap;
	}
	p->v[p->n++] = *piece;
	p->total += piece->to - piece->from;
	return 0;
}

void read_pieces_fini(struct read_pieces *p)
{
	free(p->v);
	*p = (struct read_pieces){0};
}

/* What is covered by its index, from `*at` on: a piece for each chunk that
 * may hold something. */
static int cut_chunks(struct read_pieces *out, const char *path, const struct query_cover *cover,
		      const struct query *want, uint64_t *at)
{
	const struct query_index_head *h;

	for (size_t i = 0; (h = query_cover_chunk(cover, i)) != NULL; i++) {
		struct read_piece p = {.path = path,
				       .from = MAX(*at, h->at),
				       .to = h->at + h->bytes,
				       .whole = true,
				       .cover = cover};
		bool all;

		if (p.to <= *at)
			continue;
		if (p.from == h->at)
			p.head = h;
		*at = p.to;
		if (query_index_needs(h, want, &all) == 0 && !all)
			continue;
		if (read_pieces_add(out, &p) != 0)
			return AVA_ENOMEM;
	}
	return 0;
}

int read_pieces_cut(struct read_pieces *out, const char *path, uint64_t from, uint64_t size,
		    const struct query_cover *cover, const struct query *want)
{
	uint64_t at = from, begin;

	if (cover != NULL && cut_chunks(out, path, cover, want, &at) != 0)
		return AVA_ENOMEM;
	begin = at;
	while (at < size) {
		struct read_piece p = {.path = path,
				       .from = at,
				       .to = MIN(at + PIECE, size),
				       .whole = at == begin};

		if (read_pieces_add(out, &p) != 0)
			return AVA_ENOMEM;
		at = p.to;
	}
	return 0;
}

struct query_cover *read_piece_small(struct read_piece *p, int smallfd)
{
	struct query_cover *cover = NULL;

	if (p->small.size > 0)
		cover = query_small_cover(smallfd, &p->small);
	if (cover != NULL) {
		p->cover = cover;
		p->head = query_cover_chunk(cover, 0);
	}
	return cover;
}

int read_piece_seek(struct read_file *f, const struct read_piece *p, struct ava_error *err)
{
	read_file_seek(f, p->whole ? p->from : p->from - 1);
	return p->whole ? 0 : read_file_skip(f, err);
}

static int read_lines(struct read_file *f, const struct read_piece *p, const struct query *want,
		      const struct read_piece_do *tell, struct ava_error *err)
{
	struct read_line line;
	int rv = read_piece_seek(f, p, err);

	f->stop = p->to;
	while (rv >= 0 && f->offset < p->to) {
		rv = read_file_next(f, want, &line, err);
		if (rv == 0)
			break;
		if (rv == 1)
			rv = tell->line(&line, tell->user, err);
		else if (rv == AVA_ECORRUPT)
			rv = tell->broken(err, tell->user);
	}
	if (rv != 0 || f->end > p->to || read_file_torn(f) == 0)
		return rv;
	err_set(err, AVA_ECORRUPT, "%s:%llu: the last line (%zu bytes) was never finished", p->path,
		(unsigned long long)f->offset, read_file_torn(f));
	return tell->broken(err, tell->user);
}

int read_piece(int rootfd, const struct read_piece *p, const struct query *want,
	       const struct read_piece_do *tell, struct ava_error *err)
{
	struct read_file f;
	int rv = read_file_open(&f, rootfd, p->path, false, err);

	if (rv != 0)
		return rv;
	if (p->cover != NULL)
		read_file_share_index(&f, p->cover, want);
	rv = read_lines(&f, p, want, tell, err);
	read_file_close(&f);
	return rv;
}

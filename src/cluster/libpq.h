/* The functions of libpq that pg.c calls, found at run time: neither the build nor a daemon without
 * a cluster needs the library. Its ABI, libpq.so.5, has been the same since 2006; what is here came
 * with version 14, for the pipeline. */
#ifndef CLUSTER_LIBPQ_H
#define CLUSTER_LIBPQ_H

struct ava_error;
struct libpq_conn;   /* PGconn */
struct libpq_result; /* PGresult */

enum { LIBPQ_CONNECTION_OK = 0 }; /* ConnStatusType */

enum libpq_polling { /* PostgresPollingStatusType */
		     LIBPQ_POLLING_FAILED = 0,
		     LIBPQ_POLLING_READING = 1,
		     LIBPQ_POLLING_WRITING = 2,
		     LIBPQ_POLLING_OK = 3,
};

enum libpq_status { /* ExecStatusType */
		    LIBPQ_EMPTY_QUERY = 0,
		    LIBPQ_COMMAND_OK = 1,
		    LIBPQ_TUPLES_OK = 2,
		    LIBPQ_FATAL_ERROR = 7,
		    LIBPQ_PIPELINE_SYNC = 10,
		    LIBPQ_PIPELINE_ABORTED = 11,
};

struct libpq_option { /* PQconninfoOption */
	char *keyword, *envvar, *compiled, *val, *label, *dispchar;
	int dispsize;
};

typedef void (*libpq_notice_fn)(void *user, const struct libpq_result *rows);

#define LIBPQ_FUNCTIONS(X)                                                                         \
	X(struct libpq_option *, PQconninfoParse, (const char *conninfo, char **errmsg))           \
	X(void, PQconninfoFree, (struct libpq_option * options))                                   \
	X(struct libpq_conn *, PQconnectStartParams,                                               \
	  (const char *const *keywords, const char *const *values, int expand_dbname))             \
	X(int, PQconnectPoll, (struct libpq_conn * conn))                                          \
	X(void, PQfinish, (struct libpq_conn * conn))                                              \
	X(int, PQstatus, (const struct libpq_conn *conn))                                          \
	X(int, PQsocket, (const struct libpq_conn *conn))                                          \
	X(char *, PQerrorMessage, (const struct libpq_conn *conn))                                 \
	X(int, PQsslInUse, (struct libpq_conn * conn))                                             \
	X(int, PQgssEncInUse, (struct libpq_conn * conn))                                          \
	X(libpq_notice_fn, PQsetNoticeReceiver,                                                    \
	  (struct libpq_conn * conn, libpq_notice_fn receiver, void *user))                        \
	X(int, PQsetnonblocking, (struct libpq_conn * conn, int on))                               \
	X(int, PQenterPipelineMode, (struct libpq_conn * conn))                                    \
	X(int, PQsendQueryParams,                                                                  \
	  (struct libpq_conn * conn, const char *sql, int n, const unsigned *types,                \
	   const char *const *values, const int *lengths, const int *formats, int format))         \
	X(int, PQpipelineSync, (struct libpq_conn * conn))                                         \
	X(int, PQflush, (struct libpq_conn * conn))                                                \
	X(int, PQconsumeInput, (struct libpq_conn * conn))                                         \
	X(int, PQisBusy, (struct libpq_conn * conn))                                               \
	X(struct libpq_result *, PQgetResult, (struct libpq_conn * conn))                          \
	X(int, PQresultStatus, (const struct libpq_result *rows))                                  \
	X(char *, PQresultErrorField, (const struct libpq_result *rows, int field))                \
	X(void, PQclear, (struct libpq_result * rows))                                             \
	X(int, PQntuples, (const struct libpq_result *rows))                                       \
	X(int, PQnfields, (const struct libpq_result *rows))                                       \
	X(unsigned, PQftype, (const struct libpq_result *rows, int col))                           \
	X(int, PQgetisnull, (const struct libpq_result *rows, int row, int col))                   \
	X(int, PQgetlength, (const struct libpq_result *rows, int row, int col))                   \
	X(char *, PQgetvalue, (const struct libpq_result *rows, int row, int col))                 \
	X(char *, PQcmdTuples, (struct libpq_result * rows))                                       \
	X(void, PQfreemem, (void *memory))

struct libpq {
#define LIBPQ_MEMBER(type, name, arguments) type(*name) arguments;
	LIBPQ_FUNCTIONS(LIBPQ_MEMBER)
#undef LIBPQ_MEMBER
};

/* Fill the table from the library `file` (NULL: libpq.so.5), which stays loaded until the process
 * ends. AVA_ENOENT: there is none, or it is older than 14; the sentence names the package. */
int libpq_load(struct libpq *pq, const char *file, struct ava_error *err);

#endif

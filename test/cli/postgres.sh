# postgres.sh - a PostgreSQL of a test's own, below $T, reached by a Unix socket alone. Source it
# behind lib.sh. Started by root, who may not run one, it runs as `nobody`.

# The newest one that is installed, where Debian puts it or in $PG_BIN; 1: there is none.
postgres_there()
{
	for postgres_bin in "${PG_BIN:-}" /usr/lib/postgresql/*/bin; do
		[ ! -x "$postgres_bin/initdb" ] || PG_BIN=$postgres_bin
	done
	[ -x "${PG_BIN:-}/initdb" ] && command -v psql setpriv >/dev/null
}

postgres_as()
{
	if [ "$(id -u)" -eq 0 ]; then
		(cd / && setpriv --reuid=nobody --regid=nogroup --clear-groups "$@")
	else
		"$@"
	fi
}

# Make it, start it; its URL is in $PG_URL.
postgres()
{
	mkdir -m 700 "$T/pg"
	if [ "$(id -u)" -eq 0 ]; then
		chmod 711 "$T" # nobody has to get through
		chown nobody:nogroup "$T/pg"
	fi
	PG_URL="postgresql:///postgres?host=$T/pg&user=ava"
	postgres_as "$PG_BIN/initdb" -D "$T/pg/data" -U ava -A trust -N >"$T/initdb.out" 2>&1 ||
		{ note "$(tail -n 5 "$T/initdb.out")"; return 1; }
	postgres_start
}

postgres_start()
{
	postgres_as "$PG_BIN/pg_ctl" -D "$T/pg/data" -l "$T/pg/log" -w -s \
		-o "-k $T/pg -c listen_addresses=" start >/dev/null 2>&1 || { note "$(tail -n 5 "$T/pg/log")"; return 1; }
	IFS= read -r postgres_pid <"$T/pg/data/postmaster.pid"
	keep "$postgres_pid"
}
postgres_stop() { postgres_as "$PG_BIN/pg_ctl" -D "$T/pg/data" -m fast -w -s stop >/dev/null 2>&1; }

# sql QUERY: what it answers, columns with a bar between two.
sql() { psql -AtXq "$PG_URL" -c "$1" 2>&1; }

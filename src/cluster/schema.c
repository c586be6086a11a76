/* Rows that change often are narrow, have no index on what changes, and room on their page, so that
 * an update stays there (HOT): a snapshot that somebody holds for hours costs kilobytes. What grows
 * is only added to. */
#include "cluster/schema.h"

const char schema_sql[] =
	"create table if not exists ava_cluster (one bool primary key default true check (one),\n"
	"  id text not null, generation bigint not null, schema int not null);\n"
	"create table if not exists ava_node (node text primary key, epoch bigint not null,\n"
	"  generation bigint not null, lease_until timestamptz not null, token text not null, home "
	"text not null,\n"
	"  name text not null, version text not null, slots int not null,\n"
	"  draining bool not null default false) with (fillfactor = 10);\n"
	"create table if not exists ava_run (run text primary key, node text not null,\n"
	"  epoch bigint not null, head bigint not null, head_hash bytea not null,\n"
	"  takes int not null default 0, moves bigint not null default 0, state smallint not null) "
	"with (fillfactor = 50);\n"
	"create index if not exists ava_run_live on ava_run (node) where state < 9;\n"
	"create table if not exists ava_spec (run text primary key, request_id text not null,\n"
	"  place text not null, line bytea not null,\n"
	"  created timestamptz not null default clock_timestamp());\n"
	"create index if not exists ava_spec_created on ava_spec (created);\n"
	"create table if not exists ava_chunk (stream text, kind smallint, head bigint,\n"
	"  body bytea not null, primary key (stream, kind, head));\n"
	"create table if not exists ava_file (run text, path text, body bytea not null,\n"
	"  primary key (run, path));\n"
	"insert into ava_cluster (id, generation, schema)\n"
	"  values (md5(random()::text || clock_timestamp()::text), 1, 1) on conflict do nothing;\n";

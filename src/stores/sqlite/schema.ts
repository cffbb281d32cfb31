/** Marks a file as ours (`HFLS`), so that a database of another application is never written to. */
export const APPLICATION_ID = 0x48464c53

/** The number of the format below. Every change raises it. Another format is refused. */
export const FORMAT = 2

/**
 * The statements that create the tables. Times are milliseconds since 1970 by the wall clock. README.md describes the
 * tables.
 */
export const SCHEMA: string = `
create table counter (
  token integer not null check (token between 0 and 9007199254740991)
) strict;
insert into counter values (0);

create table holder (
  name text not null,
  id text not null,
  owner text not null,
  note text not null,
  ttl integer not null,
  slot_limit integer not null,
  token integer not null,
  slots text not null,
  expires integer not null,
  primary key (name, id)
) strict, without rowid;

create table waiter (
  seq integer primary key,
  name text not null,
  id text not null,
  owner text not null,
  note text not null,
  ttl integer not null,
  slot_limit integer not null,
  units integer not null,
  grace integer not null,
  lapses integer not null,
  passed integer not null,
  unique (name, id)
) strict;
create index queue_order on waiter (name, seq);

create table queue (
  name text primary key,
  changed integer not null
) strict, without rowid;
create index recent on queue (changed);

create table tombstone (
  seq integer primary key,
  name text not null,
  id text not null,
  until integer not null,
  unique (name, id)
) strict;

pragma application_id = ${APPLICATION_ID};
pragma user_version = ${FORMAT};
`

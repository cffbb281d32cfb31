/** Marks a file as ours (`HFLS`), so that a database of another application is never written to. */
export const APPLICATION_ID = 0x48464c53

/** The number of the format below. Every change raises it. A newer format is refused. */
export const FORMAT = 1

/** Times are milliseconds since 1970 by the wall clock. Described in docs/reference/format.md. */
export const SCHEMA: string = `
create table counter (
  token integer not null check (token between 0 and 9007199254740991)
) strict;
insert into counter values (0);

create table lease (
  name text primary key,
  id text,
  owner text not null,
  note text not null,
  token integer not null,
  ttl integer not null,
  expires integer not null
) strict, without rowid;
create index freed on lease (expires) where id is null;

create table place (
  seq integer primary key,
  name text not null,
  id text not null,
  owner text not null,
  note text not null,
  ttl integer not null,
  lapses integer not null,
  round_trip integer not null,
  unique (name, id)
) strict;

create table tombstone (
  seq integer primary key,
  id text not null unique,
  until integer not null
) strict;

pragma application_id = ${APPLICATION_ID};
pragma user_version = ${FORMAT};
`

-- What of Citus `migrate --distribute` uses, without Citus: functions of its names and parameters (those of 10.2, the last that its sources were
-- seen to change) that write down how they are called and refuse what Citus' documentation and sources say that it refuses, and a reference
-- table that refers to one which is none yet; and an entry that makes the extension seem to be there. It distributes nothing.
SET allow_system_table_mods = on;
CREATE SCHEMA citus;
CREATE TYPE citus.distribution_type AS ENUM ('hash', 'range', 'append');
CREATE TABLE citus.asked (n serial PRIMARY KEY, call text NOT NULL, mode text);
CREATE TABLE pg_catalog.pg_dist_node (nodename text, groupid int, isactive bool, shouldhaveshards bool, noderole text);
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partmethod "char", partkey text, colocationid int, repmodel "char");
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass, shardid bigserial);
INSERT INTO pg_dist_node VALUES ('coordinator', 0, true, false, 'primary'), ('one', 1, true, true, 'primary'),
  ('two', 2, true, true, 'primary'), ('copy of two', 2, true, true, 'secondary'), ('gone', 3, false, true, 'primary');

CREATE FUNCTION citus.refuse_known(named regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = named) THEN
    RAISE 'table "%" is already distributed', named;
  END IF;
END $$;

CREATE FUNCTION pg_catalog.create_reference_table(table_name regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  PERFORM citus.refuse_known(table_name);
  IF EXISTS (SELECT FROM pg_class WHERE oid = table_name AND relkind = 'p') THEN
    RAISE 'distributing partitioned tables in only supported for hash-distributed tables' USING ERRCODE = '0A000';
  END IF;
  IF EXISTS (SELECT FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid = table_name AND k.confrelid <> table_name
             AND NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = k.confrelid)) THEN
    RAISE 'a reference table may not refer to a local table';
  END IF;
  INSERT INTO pg_dist_partition VALUES (table_name, 'n', NULL, 1, 't');
  INSERT INTO citus.asked (call, mode) VALUES (
    format('create_reference_table(%s)', table_name), current_setting('citus.multi_shard_modify_mode', true));
END $$;

CREATE FUNCTION pg_catalog.create_distributed_table(table_name regclass, distribution_column text,
  distribution_type citus.distribution_type DEFAULT 'hash', colocate_with text DEFAULT 'default', shard_count int DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  column_number int2; column_type oid; their_type oid; own_group int;
BEGIN
  PERFORM citus.refuse_known(table_name);
  SELECT attnum, atttypid INTO STRICT column_number, column_type FROM pg_attribute
    WHERE attrelid = table_name AND attname = distribution_column;
  IF EXISTS (SELECT FROM pg_index WHERE indrelid = table_name AND indisunique AND NOT column_number = ANY (indkey)) THEN
    RAISE 'cannot create constraint on "%"', table_name USING DETAIL = 'Distributed relations cannot have UNIQUE, EXCLUDE, or PRIMARY KEY '
      'constraints that do not include the partition column (with an equality operator if EXCLUDE).';
  END IF;
  IF colocate_with NOT IN ('default', 'none') THEN
    IF shard_count IS NOT NULL THEN
      RAISE 'Cannot use colocate_with with a table and shard_count at the same time';
    END IF;
    SELECT a.atttypid, d.colocationid INTO their_type, own_group FROM pg_dist_partition d JOIN pg_attribute a ON a.attrelid = d.logicalrelid
      AND a.attname = d.partkey WHERE d.logicalrelid = colocate_with::regclass;
    IF NOT FOUND THEN
      RAISE 'relation % is not distributed', colocate_with;
    ELSIF their_type <> column_type THEN
      RAISE 'cannot colocate tables % and %', colocate_with, table_name USING DETAIL = 'Distribution column types don''t match.';
    END IF;
  ELSE
    own_group := 2;
    INSERT INTO pg_dist_shard SELECT table_name FROM generate_series(1, coalesce(shard_count, 32));
  END IF;
  INSERT INTO pg_dist_partition VALUES (table_name, 'h', distribution_column, own_group, 's');
  INSERT INTO citus.asked (call, mode) VALUES (
    format('create_distributed_table(%s, %s, %s, %s, %s)', table_name, distribution_column, distribution_type, colocate_with, shard_count),
    current_setting('citus.multi_shard_modify_mode', true));
END $$;

-- Citus takes partitions off its tables only while nobody reads them, and takes part in each statement on its tables.
CREATE FUNCTION citus.heard() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF current_query() ~* 'DETACH PARTITION .* (CONCURRENTLY|FINALIZE)' THEN
    RAISE 'ALTER TABLE .. DETACH PARTITION .. CONCURRENTLY commands are currently unsupported.' USING ERRCODE = '0A000';
  END IF;
  IF current_query() ~ 'ATTACH PARTITION' AND current_query() !~ 'DETACH' THEN
    INSERT INTO citus.asked (call, mode) VALUES (current_query(), current_setting('citus.multi_shard_modify_mode', true));
  END IF;
END $$;
CREATE EVENT TRIGGER heard ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION citus.heard();

INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
  VALUES (99999, 'citus', 10, 'pg_catalog'::regnamespace, false, '13.2-1');

-- The cells of a dataset's rows on one mod shard, clustered so that a row's columns lie together and the newest cell of a
-- column comes first ({key_order}: an engine without descending keys reads backwards).
CREATE TABLE {database}.{table} (
  row_key VARBINARY(1024) NOT NULL,
  column_name VARBINARY(1024) NOT NULL,
  ts BIGINT UNSIGNED NOT NULL,  -- ms
  value LONGBLOB NOT NULL,
  PRIMARY KEY (row_key, column_name, ts {key_order})
) ENGINE={engine} DEFAULT CHARACTER SET binary COMMENT='{comment}'

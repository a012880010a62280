-- The clocks of a mod shard: for each slot, the last timestamp that was assigned to a row of it. Rows share slots by hash.
CREATE TABLE IF NOT EXISTS {database}.`kv$clock` (
  slot SMALLINT UNSIGNED NOT NULL,
  last BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (slot)
) ENGINE=InnoDB COMMENT='{comment}'

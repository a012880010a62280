-- The clocks of a mod shard: the last timestamp that was given to a row of each slot (rows share slots by hash).
CREATE TABLE IF NOT EXISTS {database}.`kv$clock` (
  slot SMALLINT UNSIGNED NOT NULL,
  last BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (slot)
) ENGINE=InnoDB COMMENT='{comment}'

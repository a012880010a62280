-- The state of a dataset that migrates, on one shard, in one row. The triggers read it, and each write holds a shared lock
-- on it until its transaction ends, so that the state can change only while no write is in flight.
CREATE TABLE IF NOT EXISTS {state} (
  one TINYINT UNSIGNED NOT NULL,
  epoch BIGINT UNSIGNED NOT NULL,  -- of the migration's worker
  state TINYINT UNSIGNED NOT NULL,  -- EndpointState
  capture TINYINT UNSIGNED NOT NULL,
  PRIMARY KEY (one)
) ENGINE=InnoDB COMMENT='{comment}'

-- Where a dataset that migrates stands on one shard. One row. The triggers ask it, and each write holds it until its
-- transaction ends, so that it changes when no write is under way.
CREATE TABLE IF NOT EXISTS {state} (
  one TINYINT UNSIGNED NOT NULL,
  epoch BIGINT UNSIGNED NOT NULL,  -- of the worker
  state TINYINT UNSIGNED NOT NULL,  -- EndpointState
  capture TINYINT UNSIGNED NOT NULL,
  PRIMARY KEY (one)
) ENGINE=InnoDB COMMENT='{comment}'

-- The objects of a dataset on one shard. An object's ID consists of the shard, the dataset's type number and local_id, which
-- is never assigned twice and stays below 2^36.
CREATE TABLE {database}.{table} (
  local_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  data MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,  -- a JSON object, as the client sent it
  ts BIGINT UNSIGNED NOT NULL,  -- ms; grows with each change
  request BINARY(16) DEFAULT NULL,  -- the ID of the create, so that a retry makes no second object
  PRIMARY KEY (local_id),
  UNIQUE KEY request (request)
) ENGINE={engine} COMMENT='{comment}'

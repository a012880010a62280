-- The mappings of a dataset from the objects of one shard. The second key has all columns, so that a page in the order of
-- sequence reads neighbouring entries of that index, and nothing else.
CREATE TABLE {database}.{table} (
  from_id BIGINT UNSIGNED NOT NULL,
  to_id BIGINT UNSIGNED NOT NULL,
  sequence BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (from_id, to_id),
  KEY by_sequence (from_id, sequence, to_id)
) ENGINE={engine} COMMENT='{comment}'

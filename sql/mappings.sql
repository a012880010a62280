-- The mappings of a dataset whose `from` lies on one shard. The second key has all columns: a page by sequence reads
-- neighbours and nothing else.
CREATE TABLE {database}.{table} (
  from_id BIGINT UNSIGNED NOT NULL,
  to_id BIGINT UNSIGNED NOT NULL,
  sequence BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (from_id, to_id),
  KEY by_sequence (from_id, sequence, to_id)
) ENGINE={engine} COMMENT='{comment}'

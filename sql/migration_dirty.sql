-- The dirty log of one shard: what was written while the dataset migrates. The triggers add to it in the transaction of the
-- write.
CREATE TABLE IF NOT EXISTS {dirty} (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  {columns},
  at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARACTER SET binary

-- A shard is one database. It never splits, it only moves to another host. (shardops/freeze.cc has the same statement.)
CREATE DATABASE IF NOT EXISTS {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

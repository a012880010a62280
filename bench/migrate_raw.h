#pragma once

#include <string>
#include <vector>

#include "bench/moving_store.h"

/// What a migration does, by the engines alone. Seconds each.
namespace kvstore::bench {

struct RawCell {
  std::string row;
  std::string column;
  std::string value;
};

/// Reads all cells of the embedded store, which are kept.
double RawRocksScan(MovingStore& store, std::vector<RawCell>& cells);
/// Inserts them into a dataset of its own, MovingStore::kRawDataset, by statements of many rows.
double RawMySqlInsert(MovingStore& store, const std::vector<RawCell>& cells);
/// Reads all cells of a dataset on the servers.
double RawMySqlScan(MovingStore& store, const char* dataset);
/// Writes them to a column family, which is removed again.
double RawRocksWrite(MovingStore& store, const std::vector<RawCell>& cells);

}  // namespace kvstore::bench

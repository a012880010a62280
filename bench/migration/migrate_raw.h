#pragma once

#include <string>
#include <vector>

#include "bench/migration/migrating_store.h"

/// The work of a migration, done by the engines alone. Each function returns the seconds that it took.
namespace kvstore::bench {

struct RawCell {
  std::string row;
  std::string column;
  std::string value;
};

/// Reads all cells of the embedded store, and keeps them for InsertRaw.
double RawRocksScan(MigratingStore& store, std::vector<RawCell>& cells);
/// Inserts them into a dataset of its own, MigratingStore::kRawDataset, by statements of many rows.
double RawMySqlInsert(MigratingStore& store, const std::vector<RawCell>& cells);
/// Reads all cells of a dataset on the servers.
double RawMySqlScan(MigratingStore& store, const char* dataset);
/// Writes them to a column family, which is removed again.
double RawRocksWrite(MigratingStore& store, const std::vector<RawCell>& cells);

}  // namespace kvstore::bench

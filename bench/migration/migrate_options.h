#pragma once

#include <cstdint>
#include <filesystem>

#include "kvstore_api/open.h"

namespace kvstore::bench {

struct MigrateBenchOptions {
  MySqlFleetOptions fleet;
  uint64_t cells = 200'000;  ///< Cells of 100 bytes, ten a row.
  double seconds =
      3;            ///< Length of the load before the migration, and of each measurement of captured writes.
  bool raw = true;  ///< Also measure RocksDB and the connector alone; else only what clients see.
  std::filesystem::path svg;  ///< File for a picture of what clients saw; empty: none.
  bool tell = false;          ///< Print on standard output what happens.
};

}  // namespace kvstore::bench

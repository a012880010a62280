#pragma once

#include <string>
#include <vector>

#include "kvstore_api/types.h"

/// The form in which whole datasets are read, copied and compared, the same for all shapes.
namespace kvstore {

/// The smallest thing that is copied as a whole, in one form for all shapes.
///
/// rows      key = enc(row) enc(column) (see unit_key.h), its visible cells, newest first
/// objects   key = be64(id), one cell: the object's timestamp and JSON
/// mappings  key = be64(from) be64(to), one cell: timestamp 0, be64(sequence)
struct Unit {
  std::string key;
  std::vector<Cell> cells;  ///< Empty: the unit is absent.
  friend bool operator==(const Unit&, const Unit&) = default;
};

/// The units with keys in [start, end); if `shard` is set, only those on that shard of a backend that has
/// shards.
struct UnitRange {
  std::string start;
  std::string end;  ///< Empty: no end.
  std::string shard;
  friend bool operator==(const UnitRange&, const UnitRange&) = default;
};

}  // namespace kvstore

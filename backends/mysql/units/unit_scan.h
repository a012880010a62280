#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/unit_reader.h"
#include "backends/mysql/units/units.h"

namespace kvstore::mysql {

/// The functions by which a scan reads the shards. They must be callable for as long as the scan lives.
struct ShardReader {
  /// Returns units of a shard from a key on: see ListUnits.
  std::function<absl::StatusOr<UnitList>(uint32_t shard, std::string_view from, std::string_view end)> list;
  /// Calls `work` with the place of each shard in `shards`; hosts in parallel.
  std::function<void(std::span<const uint32_t> shards, const std::function<void(size_t)>& work)> for_each;
};

/// Walks units of a fleet in the order of their keys. Externally synchronised.
class MySqlUnitScan : public UnitScan {
 public:
  /// merged  whether units of neighbouring keys lie on different shards, as those of rows do, so that the
  ///         shards have to be merged. If not, the shards follow each other in the order of their units'
  ///         keys.
  MySqlUnitScan(ShardReader reader, const std::vector<uint32_t>& shards, const UnitRange& range, bool merged);

  absl::StatusOr<std::vector<Unit>> Next() override;

 private:
  /// The units of one shard.
  struct Stream {
    uint32_t shard = 0;
    std::string from;
    bool done = false;  // the shard has nothing after `listed`
    std::vector<Unit> listed;
    size_t at = 0;  // how many of `listed` were returned
    size_t size() const { return listed.size() - at; }
    Unit& front() { return listed[at]; }
  };

  /// Lists the shard's next units into a stream.
  absl::Status Fill(Stream& stream);
  /// Fills all streams that have few units, hosts in parallel, and makes heap_ of those that have some.
  absl::Status FillEmpty();

  const ShardReader reader_;
  const std::string end_;
  const bool merged_;
  std::vector<Stream> streams_;
  bool lacks_ = true;          // merged: a stream has run empty whose shard has more
  std::vector<Stream*> heap_;  // merged: a heap of the streams that have units, the least key first
  size_t current_ = 0;         // not merged: the stream that is read
};

}  // namespace kvstore::mysql

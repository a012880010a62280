#pragma once

#include <string>
#include <vector>

#include "backends/mysql/endpoint.h"

namespace kvstore::mysql {

/// Walks units of a fleet in order of their keys: those of rows lie on all shards and are merged; those of
/// IDs lie on one shard after another. The endpoint must outlive it. Externally synchronised.
class MySqlUnitScan : public UnitScan {
 public:
  MySqlUnitScan(MySqlEndpoint& endpoint, const std::vector<uint32_t>& shards, const UnitRange& range,
                uint64_t as_of);

  absl::StatusOr<std::vector<Unit>> Next() override;

 private:
  struct Stream {
    uint32_t shard = 0;
    std::string from;
    bool done = false;  // nothing more behind what is listed
    std::vector<Unit> listed;
    size_t at = 0;  // how many of these were taken
    size_t size() const { return listed.size() - at; }
    Unit& front() { return listed[at]; }
  };

  absl::Status Fill(Stream& stream);
  /// Fills those that have run empty, hosts in parallel.
  absl::Status FillEmpty();

  MySqlEndpoint& endpoint_;
  const std::string end_;
  const uint64_t as_of_;
  const bool merged_;
  std::vector<Stream> streams_;
  bool lacks_ = true;          // one has run empty that has more
  std::vector<Stream*> heap_;  // those that have some, the least first; where rows are merged
  size_t current_ = 0;         // of streams that are not merged
};

}  // namespace kvstore::mysql

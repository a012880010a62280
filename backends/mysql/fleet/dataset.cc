#include "backends/mysql/fleet/dataset.h"

#include "backends/mysql/driver/schema.h"

namespace kvstore::mysql {

Dataset::Dataset(const DatasetSpec& spec, uint32_t number)
    : family{.number = number,
             .space = SpaceOf(spec.shape),
             .name = TableName(spec),
             .newest_last = !HasDescendingKeys(spec)},
      incarnation(spec.incarnation),
      type(spec.type) {
  Apply(spec);
}

void Dataset::Apply(const DatasetSpec& spec) {
  max_versions = spec.max_versions;
  ttl_ms = spec.ttl_ms;
  sync = spec.durability == Durability::kMachine;
}

absl::Status Dataset::CheckDurable(const Connection& connection, bool wanted) const {
  if ((!wanted && !sync.load(std::memory_order_relaxed)) || connection.traits().flushes_each) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "durability: the server does not force commits to stable storage; set its "
      "innodb_flush_log_at_trx_commit to 1, or the dataset's durability to process");
}

}  // namespace kvstore::mysql

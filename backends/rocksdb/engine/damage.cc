#include "backends/rocksdb/engine/damage.h"

#include "base/advice.h"

namespace kvstore::rocks {
namespace {

constexpr char kRepairOrRestore[] =
    "restore a backup; or see what of a damaged log can be kept: kv repair. Nothing was changed";
constexpr char kRestore[] =
    "restore the store from a backup; kv repair mends logs (.log) only. Nothing was changed";
constexpr char kElsewhere[] =
    "the catalog is shared, and the configuration names another directory than the one in which the "
    "backend of that name keeps its datasets. Use the server that has that directory (--server ADDR), or "
    "name it (--data DIR, or data in the configuration). If this is that directory, restore it from a "
    "backup. Nothing was changed";
constexpr char kOfTwoStores[] =
    "catalog.json and rocksdb/ do not belong to the same store: restore both from the same backup. Nothing "
    "was changed";

}  // namespace

absl::Status DamagedLogError(const std::string& message) {
  return Advise(absl::DataLossError(message), kRepairOrRestore);
}

absl::Status DamagedFileError(const std::string& message) {
  return Advise(absl::DataLossError(message), kRestore);
}

absl::Status MissingDataError(const std::string& message, bool shared) {
  return Advise(absl::DataLossError(message), shared ? kElsewhere : kOfTwoStores);
}

}  // namespace kvstore::rocks

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "backend_api/marker.h"
#include "backend_api/unit_key.h"
#include "base/big_endian.h"
#include "router/router.h"

/// KVStore::ReadChanges and WatchChanges: units of a backend as changes of a dataset.
namespace kvstore {
namespace {

absl::StatusOr<Change> ToChange(const DatasetSpec& spec, UnitChange& change) {
  Change result{
      .token = SealChangesToken(spec.incarnation, change.position), .at_ms = change.at_ms, .what = {}};
  Unit& unit = change.unit;
  const std::string_view key = unit.key;
  switch (spec.shape) {
    case Shape::kRows: {
      auto parsed = ParseRowUnitKey(key);
      if (!parsed) break;
      result.what = RowChange{.row = std::move(parsed->row),
                              .column = std::move(parsed->column),
                              .cells = std::move(unit.cells),
                              .more = change.more};
      return result;
    }
    case Shape::kObjects: {
      if (key.size() != sizeof(uint64_t)) break;
      ObjectChange object{.id = ReadBigEndian<uint64_t>(key), .data = {}};
      if (!unit.cells.empty()) {
        object.timestamp = unit.cells[0].timestamp;
        object.data = std::move(unit.cells[0].value);
      }
      result.what = std::move(object);
      return result;
    }
    case Shape::kMappings: {
      if (key.size() != 2 * sizeof(uint64_t)) break;
      MappingChange mapping{.from = ReadBigEndian<uint64_t>(key),
                            .to = ReadBigEndian<uint64_t>(key.substr(sizeof(uint64_t))),
                            .sequence = {}};
      if (!unit.cells.empty()) {
        if (unit.cells[0].value.size() != sizeof(uint64_t)) break;
        mapping.sequence = ReadBigEndian<uint64_t>(unit.cells[0].value);
      }
      result.what = mapping;
      return result;
    }
  }
  return absl::DataLossError(fmt::format("the key of a change of '{}' does not decode", spec.name));
}

absl::Status CheckKept(const ServedDataset& served) {
  if (served.spec.keep_changes_ms != 0) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "dataset: the changes of '{0}' are not kept; kv dataset alter {0} --keep-changes-ms 1d begins it",
      served.spec.name));
}

absl::Status CheckConsumer(std::string_view name) {
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
  if (good && !name.empty() && name.size() <= kMaxConsumerNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("name: must be 1 to {} letters, digits, '_', '-' and '.'", kMaxConsumerNameBytes));
}

/// Returns the backend's position of `from`.
absl::StatusOr<std::string> PositionOf(const ServedDataset& served, std::string_view from) {
  if (from == kChangesFromBegin) return served.backend->StartChanges(served.spec, ChangesFrom::kBegin);
  if (from == kChangesFromNow) return served.backend->StartChanges(served.spec, ChangesFrom::kNow);
  return OpenChangesToken(served.spec.incarnation, from);
}

/// Returns an error about `from` as one about a token.
absl::Status AboutToken(const absl::Status& status) {
  constexpr std::string_view kFrom = "from: ";
  const std::string message(status.message());
  if (!message.starts_with(kFrom)) return status;
  return absl::Status(status.code(), "token: " + message.substr(kFrom.size()));
}

/// Asks again and again, as long as there is nothing.
class PolledChanges : public ChangeStream {
 public:
  PolledChanges(KVStore& store, std::string_view dataset, ChangePage first)
      : store_(store), dataset_(dataset), token_(first.token), first_(std::move(first)) {}

  absl::StatusOr<ChangePage> Next() override {
    if (first_) return *std::exchange(first_, std::nullopt);
    const auto end = std::chrono::steady_clock::now() + kMaxWait;
    for (;;) {
      auto page = store_.ReadChanges(dataset_, token_, {});
      if (!page.ok()) return page;
      token_ = page->token;
      if (!page->changes.empty() || std::chrono::steady_clock::now() >= end) return page;
      std::this_thread::sleep_for(kInterval);
    }
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{10};
  static constexpr std::chrono::seconds kMaxWait{1};

  KVStore& store_;
  const std::string dataset_;
  std::string token_;
  std::optional<ChangePage> first_;
};

}  // namespace

absl::StatusOr<ChangePage> Router::ReadChanges(std::string_view dataset, std::string_view from,
                                               const ChangeOptions& options) {
  const auto check = [&](const ServedDataset& served) -> absl::Status {
    if (options.limit < 1 || options.limit > kMaxListEntries) {
      return absl::InvalidArgumentError(
          fmt::format("limit: {} changes, out of range 1..{}", options.limit, kMaxListEntries));
    }
    if (options.max_bytes < 1 || options.max_bytes > kMaxPageBytes) {
      return absl::InvalidArgumentError(
          fmt::format("max_bytes: {}, out of range 1..{}", options.max_bytes, kMaxPageBytes));
    }
    return CheckKept(served);
  };
  const auto found = directory().Find(dataset);
  if (!found.ok()) return found.status();
  return Route(dataset, (*found)->spec.shape, check,
               [&](const ServedDataset& served) -> absl::StatusOr<ChangePage> {
                 const auto position = PositionOf(served, from);
                 if (!position.ok()) return position.status();
                 auto read = served.backend->ReadChanges(
                     served.spec, *position, {.changes = options.limit, .bytes = options.max_bytes});
                 if (!read.ok()) return read.status();
                 ChangePage page{.changes = {},
                                 .token = SealChangesToken(served.spec.incarnation, read->position),
                                 .complete_until_ms = read->complete_until_ms};
                 page.changes.reserve(read->changes.size());
                 for (UnitChange& unit : read->changes) {
                   auto change = ToChange(served.spec, unit);
                   if (!change.ok()) return change.status();
                   page.changes.push_back(*std::move(change));
                 }
                 return page;
               });
}

absl::Status Router::SetConsumer(std::string_view dataset, std::string_view name, std::string_view token) {
  const auto check = [&](const ServedDataset& served) -> absl::Status {
    if (auto status = CheckConsumer(name); !status.ok()) return status;
    return CheckKept(served);
  };
  const auto found = directory().Find(dataset);
  if (!found.ok()) return found.status();
  return Route(dataset, (*found)->spec.shape, check, [&](const ServedDataset& served) -> absl::Status {
    const auto position = PositionOf(served, token);
    if (!position.ok()) return AboutToken(position.status());
    return AboutToken(served.backend->SetConsumer(served.spec, name, *position));
  });
}

absl::StatusOr<std::vector<ChangeConsumer>> Router::ListConsumers(std::string_view dataset) {
  const auto found = directory().Find(dataset);
  if (!found.ok()) return found.status();
  return Route(
      dataset, (*found)->spec.shape, CheckKept,
      [&](const ServedDataset& served) -> absl::StatusOr<std::vector<ChangeConsumer>> {
        auto consumers = served.backend->ListConsumers(served.spec);
        if (!consumers.ok()) return consumers.status();
        std::vector<ChangeConsumer> result;
        for (UnitConsumer& one : *consumers) {
          result.push_back({.name = std::move(one.name), .set_ms = one.set_ms, .lag_ms = one.lag_ms});
          if (one.position.empty()) continue;
          result.back().token = SealChangesToken(served.spec.incarnation, one.position);
        }
        return result;
      });
}

absl::Status Router::DropConsumer(std::string_view dataset, std::string_view name) {
  const auto found = directory().Find(dataset);
  if (!found.ok()) return found.status();
  return Route(dataset, (*found)->spec.shape, CheckKept,
               [&](const ServedDataset& served) { return served.backend->DropConsumer(served.spec, name); });
}

absl::StatusOr<std::unique_ptr<ChangeStream>> Router::WatchChanges(std::string_view dataset,
                                                                   std::string_view from) {
  auto first = ReadChanges(dataset, from, {});
  if (!first.ok()) return first.status();
  return std::make_unique<PolledChanges>(*this, dataset, *std::move(first));
}

}  // namespace kvstore

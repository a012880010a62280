#include "catalog/zookeeper_table_records.h"

#include <fmt/format.h>

#include <string_view>

namespace kvstore {
namespace {

constexpr uint32_t kDigitShards = 4;
constexpr uint32_t kMaxShards = 65'536;
constexpr std::string_view kDigits = "0123456789abcdef";
/// How often a change is tried that loses to those of others.
constexpr int kMostLostChanges = 100;

/// A record, as its node has it.
class Record {
 public:
  static absl::StatusOr<Record> Parse(const std::string& node, std::string text) {
    if (text.size() > kMaxShards / kDigitShards || text.find_first_not_of(kDigits) != std::string::npos) {
      return absl::FailedPreconditionError(
          fmt::format("{}: is no record of tables: at most {} hexadecimal digits are expected", node,
                      kMaxShards / kDigitShards));
    }
    Record record;
    record.text_ = std::move(text);
    return record;
  }

  bool Has(uint32_t shard) const { return ((Digit(shard) >> (shard % kDigitShards)) & 1) != 0; }
  void Add(uint32_t shard) {
    const size_t place = shard / kDigitShards;
    if (text_.size() <= place) text_.resize(place + 1, kDigits.front());
    text_[place] = kDigits[Digit(shard) | (size_t{1} << (shard % kDigitShards))];
  }
  const std::string& text() const { return text_; }

 private:
  size_t Digit(uint32_t shard) const {
    const size_t place = shard / kDigitShards;
    return place < text_.size() ? kDigits.find(text_[place]) : 0;
  }

  std::string text_;
};

/// Returns the record of a node; nullopt if there is none.
absl::StatusOr<std::optional<Record>> Read(ZooKeeper& zookeeper, const std::string& path) {
  const auto node = zookeeper.Get(path, /*watch=*/false);
  if (absl::IsNotFound(node.status())) return std::nullopt;
  if (!node.ok()) return node.status();
  auto record = Record::Parse(path, node->data);
  if (!record.ok()) return record.status();
  return *std::move(record);
}

}  // namespace

std::string ZooKeeperTableRecords::NodeOf(const DatasetSpec& spec) const {
  return fmt::format("{}/{}-{:016x}{}{}", folder_, spec.name, spec.incarnation,
                     spec.engine.empty() ? "" : "-", spec.engine);
}

absl::Status ZooKeeperTableRecords::Sync() {
  const absl::Status status = zookeeper_->Sync(folder_);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status ZooKeeperTableRecords::Begin(const DatasetSpec& spec) {
  for (const std::string& node : {folder_, NodeOf(spec)}) {
    absl::Status made = zookeeper_->Create(node, "", /*open=*/true);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<bool>> ZooKeeperTableRecords::Find(const DatasetSpec& spec, uint32_t shard) {
  if (auto status = Sync(); !status.ok()) return status;
  const auto record = Read(*zookeeper_, NodeOf(spec));
  if (!record.ok()) return record.status();
  if (!record->has_value()) return std::nullopt;
  return (*record)->Has(shard);
}

absl::StatusOr<TableRecords::Noted> ZooKeeperTableRecords::Add(const DatasetSpec& spec, uint32_t shard) {
  const std::string path = NodeOf(spec);
  absl::Status status;
  for (int attempt = 0; attempt < kMostLostChanges; ++attempt) {
    auto node = zookeeper_->Get(path, /*watch=*/false);
    if (absl::IsNotFound(node.status())) {
      if (auto synced = Sync(); !synced.ok()) return synced;
      node = zookeeper_->Get(path, /*watch=*/false);
    }
    if (!node.ok()) return node.status();
    auto record = Record::Parse(path, node->data);
    if (!record.ok()) return record.status();
    const bool before = record->Has(shard);
    record->Add(shard);
    // The node is written also if it has the shard: only a write tells whether the record is still there,
    // since the server that was asked may be behind.
    status = zookeeper_->Set(path, record->text(), node->version);
    if (status.ok()) return before ? Noted::kBefore : Noted::kNow;
    if (!absl::IsFailedPrecondition(status)) return status;
  }
  return absl::UnavailableError(
      fmt::format("{}: was changed by others each time: {}", path, std::string(status.message())));
}

absl::Status ZooKeeperTableRecords::End(const DatasetSpec& spec) {
  if (auto status = Sync(); !status.ok()) return status;
  const absl::Status status = zookeeper_->Delete(NodeOf(spec));
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::optional<std::set<uint32_t>>> ZooKeeperTableRecords::Load(const DatasetSpec& spec) {
  const auto record = Read(*zookeeper_, NodeOf(spec));
  if (!record.ok()) return record.status();
  if (!record->has_value()) return std::nullopt;
  std::set<uint32_t> shards;
  for (uint32_t shard = 0; shard < (*record)->text().size() * kDigitShards; ++shard) {
    if ((*record)->Has(shard)) shards.insert(shard);
  }
  return shards;
}

absl::StatusOr<bool> ZooKeeperTableRecords::HasAny() {
  if (auto status = Sync(); !status.ok()) return status;
  const auto records = zookeeper_->Children(folder_);
  if (absl::IsNotFound(records.status())) return false;
  if (!records.ok()) return records.status();
  return !records->empty();
}

}  // namespace kvstore

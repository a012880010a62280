#include "catalog/zookeeper_table_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"

namespace kvstore {
namespace {

constexpr uint32_t kBlockShards = 1024;
constexpr uint32_t kDigitShards = 4;
constexpr std::string_view kDigits = "0123456789abcdef";
/// How often a change is tried that loses to others'.
constexpr int kMostLostChanges = 100;

/// The shards of a block, as a node has them.
class Block {
 public:
  Block() : text_(kBlockShards / kDigitShards, '0') {}
  static absl::StatusOr<Block> Parse(const std::string& node, const std::string& text) {
    Block block;
    if (text.size() != block.text_.size() || text.find_first_not_of(kDigits) != std::string::npos) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: is no record of tables: {} hexadecimal digits are expected", node, block.text_.size()));
    }
    block.text_ = text;
    return block;
  }

  bool Has(uint32_t place) const { return ((Digit(place) >> (place % kDigitShards)) & 1) != 0; }
  void Add(uint32_t place) {
    text_[place / kDigitShards] = kDigits[Digit(place) | (size_t{1} << (place % kDigitShards))];
  }
  const std::string& text() const { return text_; }

 private:
  size_t Digit(uint32_t place) const { return kDigits.find(text_[place / kDigitShards]); }

  std::string text_;
};

std::string BlockNode(const std::string& record, uint32_t shard) {
  return fmt::format("{}/{}", record, shard / kBlockShards);
}

}  // namespace

std::string ZooKeeperTableRecords::NodeOf(const DatasetSpec& spec) const {
  return fmt::format("{}/{}-{:016x}{}{}", folder_, spec.name, spec.incarnation,
                     spec.engine.empty() ? "" : "-", spec.engine);
}

absl::Status ZooKeeperTableRecords::Begin(const DatasetSpec& spec) {
  for (const std::string& node : {folder_, NodeOf(spec)}) {
    const absl::Status made = zookeeper_->Create(node, "", /*open=*/true);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<bool>> ZooKeeperTableRecords::Find(const DatasetSpec& spec, uint32_t shard) {
  const std::string path = BlockNode(NodeOf(spec), shard);
  const auto node = zookeeper_->Get(path, /*watch=*/false);
  if (node.ok()) {
    const auto block = Block::Parse(path, node->data);
    if (!block.ok()) return block.status();
    return block->Has(shard % kBlockShards);
  }
  if (!absl::IsNotFound(node.status())) return node.status();
  auto record = zookeeper_->Stat(NodeOf(spec), /*watch=*/false);
  if (absl::IsNotFound(record.status())) {
    // The server asked may be behind, and the dataset have just been created.
    if (auto status = zookeeper_->Sync(folder_); !status.ok() && !absl::IsNotFound(status)) return status;
    record = zookeeper_->Stat(NodeOf(spec), /*watch=*/false);
  }
  if (absl::IsNotFound(record.status())) return std::nullopt;
  if (!record.ok()) return record.status();
  return false;
}

absl::Status ZooKeeperTableRecords::Add(const DatasetSpec& spec, uint32_t shard) {
  const std::string record = NodeOf(spec);
  const std::string path = BlockNode(record, shard);
  absl::Status status;
  for (int attempt = 0; attempt < kMostLostChanges; ++attempt) {
    const auto node = zookeeper_->Get(path, /*watch=*/false);
    if (!node.ok() && !absl::IsNotFound(node.status())) return node.status();
    auto block = node.ok() ? Block::Parse(path, node->data) : Block();
    if (!block.ok()) return block.status();
    block->Add(shard % kBlockShards);
    // Also where the shard is noted already the node is written, since only a write tells whether the record
    // is still there. A step of Change makes no nodes above its own.
    status = node.ok() ? zookeeper_->Set(path, block->text(), node->version)
                       : zookeeper_->Change(
                             {{.kind = ZooKeeperStep::Kind::kCheck, .path = record},
                              {.kind = ZooKeeperStep::Kind::kCreate, .path = path, .data = block->text()}});
    if (status.ok()) return status;
    if (!node.ok() && absl::IsNotFound(status)) return status;
    // Another process has written the node, made it, or deletes the record.
    const bool lost =
        absl::IsFailedPrecondition(status) || absl::IsAlreadyExists(status) || absl::IsNotFound(status);
    if (!lost) return status;
  }
  return absl::UnavailableError(
      fmt::format("{}: was changed by others each time: {}", path, std::string(status.message())));
}

absl::Status ZooKeeperTableRecords::End(const DatasetSpec& spec) {
  const std::string record = NodeOf(spec);
  absl::Status status;
  for (int attempt = 0; attempt < kMostLostChanges; ++attempt) {
    const auto blocks = zookeeper_->Children(record);
    if (absl::IsNotFound(blocks.status())) return absl::OkStatus();
    if (!blocks.ok()) return blocks.status();
    for (const std::string& block : *blocks) {
      status = zookeeper_->Delete(fmt::format("{}/{}", record, block));
      if (!status.ok() && !absl::IsNotFound(status)) return status;
    }
    // It fails if another process has noted a shard meanwhile.
    status = zookeeper_->Delete(record);
    if (status.ok() || absl::IsNotFound(status)) return absl::OkStatus();
  }
  return status;
}

absl::StatusOr<std::optional<std::set<uint32_t>>> ZooKeeperTableRecords::Load(const DatasetSpec& spec) {
  const std::string record = NodeOf(spec);
  const auto blocks = zookeeper_->Children(record);
  if (absl::IsNotFound(blocks.status())) return std::nullopt;
  if (!blocks.ok()) return blocks.status();
  std::set<uint32_t> shards;
  for (const std::string& name : *blocks) {
    const std::string path = fmt::format("{}/{}", record, name);
    uint32_t number = 0;
    if (!absl::SimpleAtoi(name, &number)) continue;
    const auto node = zookeeper_->Get(path, /*watch=*/false);
    if (absl::IsNotFound(node.status())) return std::nullopt;  // the record ends at this moment
    if (!node.ok()) return node.status();
    const auto block = Block::Parse(path, node->data);
    if (!block.ok()) return block.status();
    for (uint32_t place = 0; place < kBlockShards; ++place) {
      if (block->Has(place)) shards.insert(number * kBlockShards + place);
    }
  }
  return shards;
}

}  // namespace kvstore

#include "backends/rocksdb/engine/write_log.h"

#include <fmt/format.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/write_batch.h>

#include <set>
#include <string>
#include <utility>

#include "backends/rocksdb/engine/file_system.h"
#include "backends/rocksdb/engine/status.h"

namespace kvstore::rocks {
namespace {

absl::Status Gone(uint64_t after) {
  return absl::OutOfRangeError(fmt::format("the log does not have the change {} any more", after + 1));
}

/// Copies the changes of a batch to families of another database, which are found by their IDs here.
class Translation : public rocksdb::WriteBatch::Handler {
 public:
  /// families  A change of a family that is not among them is left out.
  explicit Translation(const std::map<uint32_t, rocksdb::ColumnFamilyHandle*>& families)
      : families_(families) {}

  rocksdb::WriteBatch& batch() { return batch_; }

  rocksdb::Status PutCF(uint32_t id, const rocksdb::Slice& key, const rocksdb::Slice& value) override {
    auto* const family = Find(id);
    return family == nullptr ? rocksdb::Status::OK() : batch_.Put(family, key, value);
  }
  rocksdb::Status DeleteCF(uint32_t id, const rocksdb::Slice& key) override {
    auto* const family = Find(id);
    return family == nullptr ? rocksdb::Status::OK() : batch_.Delete(family, key);
  }
  rocksdb::Status SingleDeleteCF(uint32_t id, const rocksdb::Slice& key) override {
    auto* const family = Find(id);
    return family == nullptr ? rocksdb::Status::OK() : batch_.SingleDelete(family, key);
  }
  rocksdb::Status DeleteRangeCF(uint32_t id, const rocksdb::Slice& begin,
                                const rocksdb::Slice& end) override {
    auto* const family = Find(id);
    return family == nullptr ? rocksdb::Status::OK() : batch_.DeleteRange(family, begin, end);
  }
  void LogData(const rocksdb::Slice&) override {}
  rocksdb::Status MarkNoop(bool) override { return rocksdb::Status::OK(); }
  // A change of any other kind, which our stores do not write, ends the replay: the base class says
  // INVALID_ARGUMENT.

 private:
  rocksdb::ColumnFamilyHandle* Find(uint32_t id) const {
    const auto found = families_.find(id);
    return found == families_.end() ? nullptr : found->second;
  }

  const std::map<uint32_t, rocksdb::ColumnFamilyHandle*>& families_;
  rocksdb::WriteBatch batch_;
};

class RocksReplay : public WriteReplay {
 public:
  RocksReplay(rocksdb::DB* db, const std::vector<rocksdb::ColumnFamilyHandle*>& handles) : db_(db) {
    for (rocksdb::ColumnFamilyHandle* handle : handles) families_[handle->GetID()] = handle;
    last_ = db_->GetLatestSequenceNumber();
  }
  ~RocksReplay() override {
    for (const auto& [id, handle] : families_) db_->DestroyColumnFamilyHandle(handle);
    db_->Close().PermitUncheckedError();
  }

  uint64_t Last() const override { return last_; }

  absl::Status Adopt(const LogSchema& schema) override {
    for (auto at = families_.begin(); at != families_.end();) {
      const auto [id, handle] = *at;
      if (id == 0 || schema.families.contains(id)) {
        ++at;
        continue;
      }
      if (const auto status = db_->DropColumnFamily(handle); !status.ok())
        return ToStatus(status, "drop column family " + handle->GetName());
      db_->DestroyColumnFamilyHandle(handle);
      at = families_.erase(at);
    }
    for (const auto& [id, name] : schema.families) {
      if (families_.contains(id)) continue;
      rocksdb::ColumnFamilyHandle* handle = nullptr;
      if (const auto status = db_->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), name, &handle);
          !status.ok()) {
        return ToStatus(status, "create column family " + name);
      }
      families_[id] = handle;
    }
    return absl::OkStatus();
  }

  absl::Status Apply(std::span<const LoggedWrite> writes) override {
    for (const LoggedWrite& write : writes) {
      if (write.number != last_ + 1) {
        return absl::DataLossError(
            fmt::format("the write {} of the log is missing: the next one is {}", last_ + 1, write.number));
      }
      const rocksdb::WriteBatch logged(write.bytes);
      Translation translation(families_);
      auto status = logged.Iterate(&translation);
      // Not in a log again: Finish makes all of it durable.
      rocksdb::WriteOptions options;
      options.disableWAL = true;
      if (status.ok()) status = db_->Write(options, &translation.batch());
      if (!status.ok()) {
        return ToStatus(status, fmt::format("carry out the write {} of the log again", write.number));
      }
      last_ = write.last();
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    rocksdb::FlushOptions options;
    options.wait = true;
    for (const auto& [id, handle] : families_) {
      if (const auto status = db_->Flush(options, handle); !status.ok()) return ToStatus(status, "flush");
    }
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<rocksdb::DB> db_;
  std::map<uint32_t, rocksdb::ColumnFamilyHandle*> families_;  // by their IDs in the log
  uint64_t last_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<LoggedWrite>> ReadWrites(rocksdb::DB& db, uint64_t after, size_t max_bytes) {
  std::vector<LoggedWrite> writes;
  if (db.GetLatestSequenceNumber() <= after) return writes;
  std::unique_ptr<rocksdb::TransactionLogIterator> log;
  const auto opened = db.GetUpdatesSince(after + 1, &log);
  if (opened.IsNotFound()) return writes;  // it is not in the file yet
  if (!opened.ok()) return ToStatus(opened, "read the log");
  uint64_t last = after;
  for (size_t bytes = 0; log->Valid() && bytes < max_bytes; log->Next()) {
    rocksdb::BatchResult batch = log->GetBatch();
    const auto changes = static_cast<uint32_t>(batch.writeBatchPtr->Count());
    // One without changes has a number that another one has, too.
    if (changes == 0) continue;
    LoggedWrite write{.number = batch.sequence, .changes = changes, .bytes = batch.writeBatchPtr->Data()};
    if (write.last() <= after) continue;  // the file begins before it
    if (write.number != last + 1) return Gone(last);
    last = write.last();
    bytes += write.bytes.size();
    writes.push_back(std::move(write));
  }
  // At the end of what is in the file the iterator has an error, whose kind depends on what is written
  // meanwhile; the next call begins anew.
  log->status().PermitUncheckedError();
  return writes;
}

absl::StatusOr<std::unique_ptr<WriteReplay>> OpenReplay(const std::filesystem::path& folder) {
  const std::string path = (folder / "rocksdb").string();
  rocksdb::DBOptions options;
  options.env = StoreEnv();
  options.fail_if_options_file_error = false;  // as in Engine::MakeDbOptions
  std::vector<std::string> names;
  if (const auto listed = rocksdb::DB::ListColumnFamilies(options, path, &names); !listed.ok())
    return ToStatus(listed, "read " + path);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const auto opened = rocksdb::DB::Open(options, path, families, &handles, &db);
  if (!opened.ok()) return ToStatus(opened, "open " + path);
  return std::make_unique<RocksReplay>(db, handles);
}

}  // namespace kvstore::rocks

#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blobstore/blob_store.h"

namespace kvstore::testing {

/// A store of blobs that fails when a test says so, and remembers what was put into the store behind it.
class FaultyBlobs final : public BlobStore {
 public:
  /// Returns the error with which a call fails before it does anything; OK: it is made. Called by any thread.
  ///
  /// call  "put", "get", "read", "list", "delete" or "stat".
  using Fault = std::function<absl::Status(std::string_view call, std::string_view name)>;

  /// inner  must outlive this.
  /// lost   Returns the error that a put answers although it was made, as when its answer is lost.
  explicit FaultyBlobs(BlobStore& inner, Fault fault = nullptr, Fault lost = nullptr)
      : inner_(inner), fault_(std::move(fault)), lost_(std::move(lost)) {}

  /// The names of the blobs that were put, in order.
  std::vector<std::string> puts() const {
    const std::lock_guard lock(mutex_);
    return puts_;
  }

  std::string url() const override { return inner_.url(); }
  absl::StatusOr<BlobInfo> Put(std::string_view name, std::string_view bytes, PutMode mode) override {
    if (auto status = Check("put", name); !status.ok()) return status;
    return Note(name, inner_.Put(name, bytes, mode));
  }
  absl::StatusOr<BlobInfo> PutStream(std::string_view name, const BlobSource& source, PutMode mode) override {
    if (auto status = Check("put", name); !status.ok()) return status;
    return Note(name, inner_.PutStream(name, source, mode));
  }
  absl::StatusOr<std::string> Get(std::string_view name, uint64_t max_bytes) override {
    if (auto status = Check("get", name); !status.ok()) return status;
    return inner_.Get(name, max_bytes);
  }
  absl::StatusOr<std::string> GetRange(std::string_view name, uint64_t offset, uint64_t bytes) override {
    if (auto status = Check("get", name); !status.ok()) return status;
    return inner_.GetRange(name, offset, bytes);
  }
  absl::Status Read(std::string_view name, const BlobInfo& expected, const BlobSink& sink) override {
    if (auto status = Check("read", name); !status.ok()) return status;
    return inner_.Read(name, expected, sink);
  }
  absl::StatusOr<BlobPage> List(std::string_view prefix, std::string_view after, size_t limit) override {
    if (auto status = Check("list", prefix); !status.ok()) return status;
    return inner_.List(prefix, after, limit);
  }
  absl::Status Delete(std::string_view name) override {
    if (auto status = Check("delete", name); !status.ok()) return status;
    return inner_.Delete(name);
  }
  absl::StatusOr<BlobInfo> Stat(std::string_view name) override {
    if (auto status = Check("stat", name); !status.ok()) return status;
    return inner_.Stat(name);
  }

 private:
  absl::Status Check(std::string_view call, std::string_view name) const {
    return fault_ ? fault_(call, name) : absl::OkStatus();
  }
  absl::StatusOr<BlobInfo> Note(std::string_view name, absl::StatusOr<BlobInfo> put) {
    if (!put.ok()) return put;
    {
      const std::lock_guard lock(mutex_);
      puts_.emplace_back(name);
    }
    if (auto status = lost_ ? lost_("put", name) : absl::OkStatus(); !status.ok()) return status;
    return put;
  }

  BlobStore& inner_;
  const Fault fault_;
  const Fault lost_;
  mutable std::mutex mutex_;
  std::vector<std::string> puts_;  // guarded by mutex_
};

}  // namespace kvstore::testing

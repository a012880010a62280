#include "blobstore/blobs_below.h"

#include <utility>

namespace kvstore {
namespace {

class Below : public BlobStore {
 public:
  Below(std::unique_ptr<BlobStore> blobs, std::string prefix)
      : blobs_(std::move(blobs)), prefix_(std::move(prefix)) {}

  std::string url() const override {
    std::string url = blobs_->url();
    while (url.ends_with('/')) url.pop_back();
    return url + "/" + prefix_.substr(0, prefix_.size() - 1);
  }
  absl::StatusOr<BlobInfo> Put(std::string_view name, std::string_view bytes, PutMode mode) override {
    return blobs_->Put(Full(name), bytes, mode);
  }
  absl::StatusOr<BlobInfo> PutStream(std::string_view name, const BlobSource& source, PutMode mode) override {
    return blobs_->PutStream(Full(name), source, mode);
  }
  absl::StatusOr<std::string> Get(std::string_view name, uint64_t max_bytes) override {
    return blobs_->Get(Full(name), max_bytes);
  }
  absl::StatusOr<std::string> GetRange(std::string_view name, uint64_t offset, uint64_t bytes) override {
    return blobs_->GetRange(Full(name), offset, bytes);
  }
  absl::Status Read(std::string_view name, const BlobInfo& expected, const BlobSink& sink) override {
    return blobs_->Read(Full(name), expected, sink);
  }
  absl::StatusOr<BlobPage> List(std::string_view prefix, std::string_view after, size_t limit) override {
    auto page = blobs_->List(Full(prefix), after.empty() ? "" : Full(after), limit);
    if (!page.ok()) return page;
    for (BlobEntry& blob : page->blobs) blob.name.erase(0, prefix_.size());
    if (!page->next.empty()) page->next.erase(0, prefix_.size());
    return page;
  }
  absl::Status Delete(std::string_view name) override { return blobs_->Delete(Full(name)); }
  absl::StatusOr<BlobInfo> Stat(std::string_view name) override { return blobs_->Stat(Full(name)); }

 private:
  std::string Full(std::string_view name) const { return prefix_ + std::string(name); }

  const std::unique_ptr<BlobStore> blobs_;
  const std::string prefix_;
};

}  // namespace

std::unique_ptr<BlobStore> BlobsBelow(std::unique_ptr<BlobStore> blobs, std::string prefix) {
  return std::make_unique<Below>(std::move(blobs), std::move(prefix));
}

}  // namespace kvstore

#include "backends/rocksdb/engine/file_system.h"

#include <rocksdb/file_system.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace kvstore::rocks {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOStatus;

/// Whether the process or the machine has run out of file descriptors. A RocksDB error holds the text of
/// errno, not its number.
bool LacksDescriptors(const IOStatus& status) {
  if (!status.IsIOError()) return false;
  const std::string text = status.ToString();
  for (const int error : {EMFILE, ENFILE}) {
    if (text.find(std::generic_category().message(error)) != std::string::npos) return true;
  }
  return false;
}

IOStatus WithRetryable(IOStatus status) {
  if (LacksDescriptors(status)) status.SetRetryable(true);
  return status;
}

/// Whether this thread is in a ReadAheadScope.
thread_local bool reads_ahead = false;

/// A file that cannot be prefetched by the kernel in a ReadAheadScope. RocksDB reads ahead by itself then.
class TableFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  using FSRandomAccessFileOwnerWrapper::FSRandomAccessFileOwnerWrapper;

  IOStatus Prefetch(uint64_t offset, size_t bytes, const rocksdb::IOOptions& options,
                    IODebugContext* debug) override {
    if (reads_ahead) return IOStatus::NotSupported("RocksDB reads ahead into a buffer of its own");
    return target()->Prefetch(offset, bytes, options, debug);
  }
};

class StoreFiles : public rocksdb::FileSystemWrapper {
 public:
  StoreFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "kvstore.StoreFiles"; }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* file,
                             IODebugContext* debug) override {
    return WithRetryable(target()->NewSequentialFile(name, options, file, debug));
  }
  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               IODebugContext* debug) override {
    IOStatus status = WithRetryable(target()->NewRandomAccessFile(name, options, file, debug));
    if (status.ok()) *file = std::make_unique<TableFile>(std::move(*file));
    return status;
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* debug) override {
    if (std::filesystem::path(name).filename().native().starts_with("OPTIONS-")) {
      return IOStatus::NotSupported("nobody reads it");
    }
    return WithRetryable(target()->NewWritableFile(name, options, file, debug));
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* debug) override {
    return WithRetryable(target()->ReopenWritableFile(name, options, file, debug));
  }
  IOStatus ReuseWritableFile(const std::string& name, const std::string& old, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* debug) override {
    return WithRetryable(target()->ReuseWritableFile(name, old, options, file, debug));
  }
  IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory, IODebugContext* debug) override {
    return WithRetryable(target()->NewDirectory(name, options, directory, debug));
  }
};

}  // namespace

rocksdb::Env* StoreEnv() {
  static rocksdb::Env* const env = rocksdb::NewCompositeEnv(std::make_shared<StoreFiles>()).release();
  return env;
}

ReadAheadScope::ReadAheadScope() : before_(std::exchange(reads_ahead, true)) {}

ReadAheadScope::~ReadAheadScope() { reads_ahead = before_; }

}  // namespace kvstore::rocks

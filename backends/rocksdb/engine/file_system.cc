#include "backends/rocksdb/engine/file_system.h"

#include <rocksdb/file_system.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

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
    return WithRetryable(target()->NewRandomAccessFile(name, options, file, debug));
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

}  // namespace kvstore::rocks

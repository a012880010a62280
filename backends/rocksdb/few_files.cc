#include "backends/rocksdb/few_files.h"

#include <rocksdb/file_system.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace kvstore::rocks {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOStatus;

/// RocksDB's error has the text of errno, and not its number.
bool LacksDescriptors(const IOStatus& status) {
  if (!status.IsIOError()) return false;
  const std::string text = status.ToString();
  for (const int error : {EMFILE, ENFILE}) {
    if (text.find(std::generic_category().message(error)) != std::string::npos) return true;
  }
  return false;
}

IOStatus Told(IOStatus status) {
  if (LacksDescriptors(status)) status.SetRetryable(true);
  return status;
}

class FewFiles : public rocksdb::FileSystemWrapper {
 public:
  FewFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "FewFiles"; }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* file,
                             IODebugContext* debug) override {
    return Told(target()->NewSequentialFile(name, options, file, debug));
  }
  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               IODebugContext* debug) override {
    return Told(target()->NewRandomAccessFile(name, options, file, debug));
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* debug) override {
    return Told(target()->NewWritableFile(name, options, file, debug));
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* debug) override {
    return Told(target()->ReopenWritableFile(name, options, file, debug));
  }
  IOStatus ReuseWritableFile(const std::string& name, const std::string& old, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* debug) override {
    return Told(target()->ReuseWritableFile(name, old, options, file, debug));
  }
  IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory, IODebugContext* debug) override {
    return Told(target()->NewDirectory(name, options, directory, debug));
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> NewEnvOfFewFiles() {
  return rocksdb::NewCompositeEnv(std::make_shared<FewFiles>());
}

}  // namespace kvstore::rocks

#include "backends/rocksdb/file_system.h"

#include <rocksdb/file_system.h>

#include <filesystem>
#include <memory>
#include <string>

namespace kvstore::rocks {
namespace {

class WithoutOptionsFiles : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "kvstore.WithoutOptionsFiles"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* context) override {
    if (std::filesystem::path(name).filename().native().starts_with("OPTIONS-")) {
      return rocksdb::IOStatus::NotSupported("nobody reads it");
    }
    return FileSystemWrapper::NewWritableFile(name, options, result, context);
  }
};

}  // namespace

rocksdb::Env* EnvWithoutOptionsFiles() {
  static rocksdb::Env* const env =
      rocksdb::NewCompositeEnv(std::make_shared<WithoutOptionsFiles>(rocksdb::FileSystem::Default()))
          .release();
  return env;
}

}  // namespace kvstore::rocks

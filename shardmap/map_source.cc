#include "shardmap/map_source.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/files.h"

namespace kvstore {
namespace {

using std::chrono::milliseconds;

class FileSource : public MapSource {
 public:
  explicit FileSource(std::filesystem::path file) : file_(std::move(file)) {}

  absl::StatusOr<std::optional<std::string>> Read() override {
    errno = 0;
    std::ifstream in(file_, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    if (!in) return FileError(file_, "read", errno);
    return text;
  }
  void OnChange(std::function<void()>) override {}
  milliseconds poll_interval() const override { return milliseconds(500); }
  std::string name() const override { return file_.string(); }

 private:
  const std::filesystem::path file_;
};

}  // namespace

std::unique_ptr<MapSource> OpenFileSource(const std::filesystem::path& file) {
  return std::make_unique<FileSource>(file);
}

}  // namespace kvstore

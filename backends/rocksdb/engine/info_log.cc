#include "backends/rocksdb/engine/info_log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <utility>

namespace kvstore::rocks {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;
constexpr size_t kFilesKept = 10;
constexpr size_t kMaxLineBytes = 4096;

class InfoLog : public rocksdb::Logger {
 public:
  explicit InfoLog(spdlog::sink_ptr sink) : Logger(rocksdb::INFO_LEVEL), log_("rocksdb", std::move(sink)) {
    log_.set_pattern("%Y/%m/%d-%H:%M:%S.%f %t %v");
    log_.flush_on(spdlog::level::info);
    log_.set_error_handler([](const std::string&) {});
  }

  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    std::array<char, kMaxLineBytes> line{};
    const int size = std::vsnprintf(line.data(), line.size(), format, arguments);
    if (size > 0)
      log_.info(std::string_view(line.data(), std::min(static_cast<size_t>(size), line.size() - 1)));
  }

 private:
  spdlog::logger log_;
};

}  // namespace

std::shared_ptr<rocksdb::Logger> OpenInfoLog(const std::filesystem::path& file) {
  spdlog::sink_ptr sink;
  try {
    sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(file.string(), kMaxFileBytes, kFilesKept);
  } catch (const spdlog::spdlog_ex&) {
    // A disk too full for a log must not keep the store from opening.
    sink = std::make_shared<spdlog::sinks::null_sink_mt>();
  }
  return std::make_shared<InfoLog>(std::move(sink));
}

}  // namespace kvstore::rocks

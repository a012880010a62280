#include "export/parquet_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/advice.h"

namespace kvstore::exports {

absl::StatusOr<std::string> FindParquetProgram() {
  std::string program;
  if (const char* const named = std::getenv("KV_PARQUET"); named != nullptr && *named != '\0') {
    program = named;
  } else {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    program = (self.parent_path() / "kv-parquet").string();
  }
  if (::access(program.c_str(), X_OK) == 0) return program;
  return Advise(absl::FailedPreconditionError(
                    fmt::format("{} is not there, the program that writes and reads Parquet", program)),
                "in a source tree, ./dev parquet gets Arrow from PyPI (the package pyarrow) and builds it "
                "beside kv; for a kv elsewhere, name it in KV_PARQUET");
}

}  // namespace kvstore::exports

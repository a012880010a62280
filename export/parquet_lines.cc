#include "export/parquet_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "export/parquet_program.h"

namespace kvstore::exports {

absl::StatusOr<std::unique_ptr<ParquetLines>> ParquetLines::Open(int file,
                                                                 const std::vector<std::string>& arguments) {
  auto program = FindParquetProgram();
  if (!program.ok()) return program.status();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError(fmt::format("cannot make a pipe to kv-parquet: {}", std::strerror(errno)));
  }
  Descriptor from(ends[0]);
  const Descriptor theirs(ends[1]);
  std::vector<std::string> command = {*std::move(program), "lines"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto child = ChildProgram::Start(command, file, theirs.get());
  if (!child.ok()) return child.status();
  return std::unique_ptr<ParquetLines>(new ParquetLines(*std::move(child), std::move(from)));
}

}  // namespace kvstore::exports

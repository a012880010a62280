#include "backup/checked_line.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "blobstore/sha256.h"
#include "json/json.h"
#include "json/json_fields.h"
#include "json/json_text.h"

namespace kvstore::backup {

std::string WithChecksumLine(const std::string& line) {
  return fmt::format("{}\n{}\n", line, TextOf(Json{{"sha256", Hex(Sha256Of(line))}}));
}

absl::StatusOr<std::string_view> CheckedLine(std::string_view lines) {
  const size_t end = lines.find('\n');
  if (end == std::string_view::npos) return absl::DataLossError("it is cut off: its second line is missing");
  const std::string_view line = lines.substr(0, end);
  const auto second = ParseJson(lines.substr(end + 1));
  if (!second.ok()) return absl::DataLossError("its second line is not JSON");
  JsonFields fields(*second, "");
  const std::string sha256 = fields.String("sha256");
  if (auto status = fields.Finish(); !status.ok()) return absl::DataLossError(status.message());
  if (sha256 != Hex(Sha256Of(line)))
    return absl::DataLossError("it does not have the checksum of its second line");
  return line;
}

}  // namespace kvstore::backup

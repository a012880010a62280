#include "bench/reports/duckdb.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace kvstore::bench {

absl::StatusOr<std::unique_ptr<DuckDb>> DuckDb::Start(const DuckDbOptions& options,
                                                      const std::filesystem::path& folder, size_t threads) {
  for (const std::string& file : {options.python, options.script}) {
    if (!std::filesystem::exists(file)) {
      return absl::UnavailableError(
          fmt::format("peers: duckdb: there is no file '{}' here; ./dev bench reports, run in the project's "
                      "folder, makes "
                      "what DuckDB needs",
                      file));
    }
  }
  auto child =
      Child::StartAnswering({options.python, options.script, folder.string(), std::to_string(threads)});
  if (!child.ok()) return child.status();
  std::unique_ptr<DuckDb> peer(new DuckDb(*std::move(child), folder));
  const auto about = peer->Ask({{"op", "about"}});
  if (!about.ok()) return about.status();
  peer->version_ = (*about)["version"].get<std::string>();
  return peer;
}

absl::StatusOr<Json> DuckDb::Ask(const Json& request) {
  const auto line = child_.Ask(request.dump());
  if (!line.ok()) return line.status();
  Json answer = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded()) return absl::InternalError("duckdb: an answer is not JSON: " + *line);
  if (answer["ok"] == true) return answer;
  return absl::InternalError("duckdb: " + answer.value("error", *line));
}

}  // namespace kvstore::bench

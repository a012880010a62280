#include "cli/row_loader.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "cli/exec_protocol.h"
#include "kvstore_api/json_fields.h"
#include "kvstore_api/limits.h"

namespace kvstore::cli {
namespace {

/// Reads that are sent together.
constexpr size_t kTogether = 1000;

class RowLoader : public LineLoader {
 public:
  RowLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode)
      : store_(store), spec_(spec), mode_(mode) {}

  absl::Status Load(std::vector<Line>& lines) override {
    std::vector<Request> requests = Parse(lines);
    if (mode_.compare) {
      if (auto status = Compare(requests); !status.ok()) return status;
    }
    std::vector<RowWrite> writes;
    std::vector<Request*> written;
    for (Request& request : requests) {
      request.line->outcome = mode_.compare ? OutcomeOf(request) : Outcome::kLoaded;
      const bool writes_it = request.line->problem.ok() && request.line->outcome != Outcome::kSame;
      if (!mode_.write || !writes_it) continue;
      DropSame(request);
      writes.push_back({.row = request.row, .cells = request.items.cells});
      written.push_back(&request);
    }
    if (writes.empty()) return absl::OkStatus();
    const auto results = store_.PutRows(spec_.name, writes);
    if (!results.ok()) return results.status();
    for (size_t i = 0; i < written.size(); ++i) {
      const absl::Status& status = (*results)[i].status();
      if (status.ok()) continue;
      if (!IsLinesFault(status)) return status;
      Reject(*written[i], status);
    }
    return absl::OkStatus();
  }

 private:
  struct Request {
    Line* line = nullptr;
    std::string row;
    PutItems items;
    std::vector<Outcome> outcomes;  // of each of its cells
  };
  /// A cell of a request.
  struct Place {
    Request* request = nullptr;
    size_t cell = 0;
    const CellWrite& write() const { return request->items.cells[cell]; }
    Outcome& outcome() const { return request->outcomes[cell]; }
  };
  /// A read, and the cells that it is for, by column.
  struct Look {
    RowRead read;
    std::map<std::string_view, Place> places;
  };

  static std::vector<Request> Parse(std::vector<Line>& lines) {
    std::vector<Request> requests;
    for (Line& line : lines) {
      if (!line.problem.ok()) continue;
      const auto json = ParseJson(line.text);
      if (line.problem = json.status(); !json.ok()) continue;
      JsonFields fields(*json, "");
      Request request{&line, fields.Bytes("row"), ReadItems(fields), {}};
      if (line.problem = fields.Finish(); !line.problem.ok()) continue;
      request.outcomes.assign(request.items.cells.size(), Outcome::kNew);
      requests.push_back(std::move(request));
    }
    return requests;
  }

  static void Reject(Request& request, const absl::Status& status) {
    request.line->problem = status;
    request.line->outcome = Outcome::kRejected;
  }

  static Outcome OutcomeOf(const Request& request) {
    if (!request.line->problem.ok()) return Outcome::kRejected;
    const auto has = [&](Outcome outcome) {
      return std::find(request.outcomes.begin(), request.outcomes.end(), outcome) != request.outcomes.end();
    };
    if (has(Outcome::kChanged)) return Outcome::kChanged;
    // No cell at all is a mistake that the store tells.
    return has(Outcome::kNew) || request.outcomes.empty() ? Outcome::kNew : Outcome::kSame;
  }

  static void DropSame(Request& request) {
    std::vector<CellWrite> cells;
    for (size_t i = 0; i < request.items.cells.size(); ++i) {
      if (request.outcomes[i] != Outcome::kSame) cells.push_back(request.items.cells[i]);
    }
    request.items.cells = std::move(cells);
  }

  absl::Status Compare(std::vector<Request>& requests) {
    std::vector<Look> looks;
    for (Request& request : requests) {
      // Cells of one time are read together.
      std::map<std::optional<uint64_t>, std::map<std::string_view, Place>> times;
      for (size_t i = 0; i < request.items.cells.size(); ++i) {
        const CellWrite& write = request.items.cells[i];
        times[write.timestamp].insert_or_assign(write.column, Place{&request, i});
      }
      for (auto& [timestamp, places] : times) {
        TimeRange range;
        if (timestamp) range = {*timestamp, *timestamp + 1};
        looks.push_back(LookAt(request, std::move(places), range, 1));
      }
    }
    absl::Status status = ReadAll(looks, [](const Place& place, const std::vector<Cell>& cells) {
      place.outcome() = cells[0].value == place.write().value ? Outcome::kSame : Outcome::kChanged;
    });
    if (!status.ok()) return status;
    return FindHidden(looks);
  }

  static Look LookAt(const Request& request, std::map<std::string_view, Place> places, const TimeRange& range,
                     uint32_t versions) {
    Look look{.read = {.row = request.row}, .places = std::move(places)};
    look.read.options.columns.emplace();
    for (const auto& [column, place] : look.places) look.read.options.columns->emplace_back(column);
    look.read.options.time_range = range;
    look.read.options.versions = versions;
    look.read.options.limit = static_cast<uint32_t>(std::max<size_t>(1, look.places.size()));
    return look;
  }

  /// Of cells that are not there: those that would not be seen if they were.
  absl::Status FindHidden(const std::vector<Look>& compared) {
    const uint64_t now = WallClockMs();
    std::vector<Look> looks;
    for (const Look& look : compared) {
      for (const auto& [column, place] : look.places) {
        if (place.outcome() != Outcome::kNew || !place.write().timestamp) continue;
        const uint64_t timestamp = *place.write().timestamp;
        if (spec_.ttl_ms != 0 && timestamp < now && now - timestamp > spec_.ttl_ms) {
          place.outcome() = Outcome::kSame;
        } else if (spec_.max_versions != 0 && timestamp < kMaxTimestamp) {
          looks.push_back(
              LookAt(*place.request, {{column, place}}, {.start = timestamp + 1}, spec_.max_versions));
        }
      }
    }
    return ReadAll(looks, [this](const Place& place, const std::vector<Cell>& cells) {
      if (cells.size() >= spec_.max_versions) place.outcome() = Outcome::kSame;
    });
  }

  /// Reads what `looks` look at, and hands the cells of each column that has any to `found`, whole.
  template <typename Found>
  absl::Status ReadAll(std::vector<Look>& looks, const Found& found) {
    std::vector<RowRead> reads;
    for (size_t begin = 0; begin < looks.size(); begin += kTogether) {
      const size_t end = std::min(looks.size(), begin + kTogether);
      reads.clear();
      for (size_t i = begin; i < end; ++i) reads.push_back(looks[i].read);
      auto rows = store_.GetRows(spec_.name, reads);
      if (!rows.ok()) return rows.status();
      for (size_t i = begin; i < end; ++i) {
        absl::StatusOr<Row>& row = (*rows)[i - begin];
        if (!row.ok() && IsLinesFault(row.status())) {
          Reject(*looks[i].places.begin()->second.request, row.status());
          continue;
        }
        if (auto status = ReadRow(looks[i], std::move(row), found); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  template <typename Found>
  absl::Status ReadRow(Look& look, absl::StatusOr<Row> row, const Found& found) {
    std::map<std::string, std::vector<Cell>> columns;
    for (;;) {
      if (!row.ok()) return row.status();
      for (Item& item : row->items) {
        std::vector<Cell>& cells = columns[item.column];
        std::move(item.cells.begin(), item.cells.end(), std::back_inserter(cells));
      }
      if (row->marker.empty()) break;
      look.read.options.marker = std::move(row->marker);
      row = store_.GetRow(spec_.name, look.read.row, look.read.options);
    }
    for (const auto& [column, cells] : columns) {
      if (const auto place = look.places.find(column); place != look.places.end())
        found(place->second, cells);
    }
    return absl::OkStatus();
  }

  KVStore& store_;
  const DatasetSpec spec_;
  const LoadMode mode_;
};

}  // namespace

std::unique_ptr<LineLoader> NewRowLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode) {
  return std::make_unique<RowLoader>(store, spec, mode);
}

}  // namespace kvstore::cli

#include "cli/row_loader.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "backend_api/validate.h"
#include "base/clock.h"
#include "json/json_fields.h"
#include "json_api/put_items.h"
#include "kvstore_api/limits.h"

namespace kvstore::cli {
namespace {

/// How many reads are sent together.
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
    json_api::PutItems items;
    std::vector<Outcome> outcomes;  // one for each cell
  };
  /// A cell of a request.
  struct Place {
    Request* request = nullptr;
    size_t cell = 0;
    const CellWrite& write() const { return request->items.cells[cell]; }
    Outcome& outcome() const { return request->outcomes[cell]; }
  };
  /// A read, and the cells that it is for, by column.
  struct PlannedRead {
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
      Request request{&line, fields.Bytes("row"), json_api::ReadPutOrScannedItems(fields), {}};
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
    // A line without cells is invalid; the store reports that.
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
    std::vector<PlannedRead> planned;
    for (Request& request : requests) {
      // A put that the store would refuse is not compared: of a cell that is named twice only one would be.
      if (const auto valid = ValidatePut(request.row, request.items.cells, {}); !valid.ok()) {
        Reject(request, valid);
        continue;
      }
      // Cells of one time are read together.
      std::map<std::optional<uint64_t>, std::map<std::string_view, Place>> times;
      for (size_t i = 0; i < request.items.cells.size(); ++i) {
        const CellWrite& write = request.items.cells[i];
        times[write.timestamp].insert_or_assign(write.column, Place{&request, i});
      }
      for (auto& [timestamp, places] : times) {
        TimeRange range;
        if (timestamp) range = {*timestamp, *timestamp + 1};
        planned.push_back(PlanRead(request, std::move(places), range, 1));
      }
    }
    absl::Status status = ReadAll(planned, [](const Place& place, const std::vector<Cell>& cells) {
      place.outcome() = cells[0].value == place.write().value ? Outcome::kSame : Outcome::kChanged;
    });
    if (!status.ok()) return status;
    return FindHidden(planned);
  }

  static PlannedRead PlanRead(const Request& request, std::map<std::string_view, Place> places,
                              const TimeRange& range, uint32_t versions) {
    PlannedRead plan{.read = {.row = request.row}, .places = std::move(places)};
    plan.read.options.columns.emplace();
    for (const auto& [column, place] : plan.places) plan.read.options.columns->emplace_back(column);
    plan.read.options.time_range = range;
    plan.read.options.versions = versions;
    plan.read.options.limit = static_cast<uint32_t>(std::max<size_t>(1, plan.places.size()));
    return plan;
  }

  /// Finds, among the cells that are missing, those that nobody would see if they were stored; they count as
  /// the same.
  absl::Status FindHidden(const std::vector<PlannedRead>& compared) {
    const uint64_t now = WallClockMs();
    std::vector<PlannedRead> planned;
    for (const PlannedRead& plan : compared) {
      for (const auto& [column, place] : plan.places) {
        if (place.outcome() != Outcome::kNew || !place.write().timestamp) continue;
        const uint64_t timestamp = *place.write().timestamp;
        if (spec_.ttl_ms != 0 && timestamp < now && now - timestamp > spec_.ttl_ms) {
          place.outcome() = Outcome::kSame;
        } else if (spec_.max_versions != 0 && timestamp < kMaxTimestamp) {
          planned.push_back(
              PlanRead(*place.request, {{column, place}}, {.start = timestamp + 1}, spec_.max_versions));
        }
      }
    }
    return ReadAll(planned, [this](const Place& place, const std::vector<Cell>& cells) {
      if (cells.size() >= spec_.max_versions) place.outcome() = Outcome::kSame;
    });
  }

  /// Makes all the reads, and passes all cells of each column that has any to `found`.
  template <typename Found>
  absl::Status ReadAll(std::vector<PlannedRead>& planned, const Found& found) {
    std::vector<RowRead> reads;
    for (size_t begin = 0; begin < planned.size(); begin += kTogether) {
      const size_t end = std::min(planned.size(), begin + kTogether);
      reads.clear();
      for (size_t i = begin; i < end; ++i) reads.push_back(planned[i].read);
      auto rows = store_.GetRows(spec_.name, reads);
      if (!rows.ok()) return rows.status();
      for (size_t i = begin; i < end; ++i) {
        absl::StatusOr<Row>& row = (*rows)[i - begin];
        if (!row.ok() && IsLinesFault(row.status())) {
          Reject(*planned[i].places.begin()->second.request, row.status());
          continue;
        }
        if (auto status = ReadRow(planned[i], std::move(row), found); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  template <typename Found>
  absl::Status ReadRow(PlannedRead& plan, absl::StatusOr<Row> row, const Found& found) {
    std::map<std::string, std::vector<Cell>> columns;
    for (;;) {
      if (!row.ok()) return row.status();
      for (Item& item : row->items) {
        std::vector<Cell>& cells = columns[item.column];
        std::move(item.cells.begin(), item.cells.end(), std::back_inserter(cells));
      }
      if (row->marker.empty()) break;
      plan.read.options.marker = std::move(row->marker);
      row = store_.GetRow(spec_.name, plan.read.row, plan.read.options);
    }
    for (const auto& [column, cells] : columns) {
      if (const auto place = plan.places.find(column); place != plan.places.end())
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

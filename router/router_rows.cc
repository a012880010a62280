#include <fmt/format.h>

#include <utility>

#include "backend_api/batch_bytes.h"
#include "backend_api/marker.h"
#include "backend_api/scan_budget.h"
#include "backend_api/validate.h"
#include "router/router.h"

namespace kvstore {
namespace {

/// Puts the backend's name in front of the order that the backend itself reported (ScanPosition::order):
/// together they identify the order of its rows.
void AddBackend(std::string_view backend, std::string& order) {
  order = order.empty() ? std::string(backend) : fmt::format("{}/{}", backend, order);
}

/// Undoes AddBackend. FAILED_PRECONDITION if the order is that of another backend.
absl::Status StripBackend(std::string_view dataset, std::string_view backend, std::string& order) {
  // The marker was sealed by a version that did not record the order.
  if (order.empty()) return absl::OkStatus();
  const std::string_view whole(order);
  if (whole == backend) {
    order.clear();
  } else if (whole.starts_with(backend) && whole.substr(backend.size()).starts_with('/')) {
    order.erase(0, backend.size() + 1);
  } else {
    return absl::FailedPreconditionError(fmt::format(
        "marker: the scan was begun while dataset '{}' was on backend '{}'; it is on '{}' now, which has the "
        "rows in another order. Begin the scan again, without a marker",
        dataset, whole.substr(0, whole.find('/')), backend));
  }
  return absl::OkStatus();
}

Row SealRow(uint64_t incarnation, std::string_view row, RowPage page) {
  // A conditional expression would make a text from "" for each row that has no marker.
  Row sealed{.items = std::move(page.items), .marker = {}};
  if (page.next) sealed.marker = SealRowMarker(incarnation, row, *page.next);
  return sealed;
}

/// Returns whether a read begins after a column.
bool BeginsInside(const ReadOptions& options) { return !options.marker.empty() || options.after_column; }

bool Contains(const RowRange& range, std::string_view row) {
  return row >= range.start && (range.end.empty() || row < range.end);
}

}  // namespace

absl::StatusOr<Row> Router::GetRow(std::string_view dataset, std::string_view row,
                                   const ReadOptions& options) {
  const auto check = [&](const ServedDataset&) { return ValidateRead(row, options); };
  return Route(dataset, Shape::kRows, check, [&](const ServedDataset& found) -> absl::StatusOr<Row> {
    const uint64_t incarnation = found.spec.incarnation;
    std::optional<RowPosition> after;
    if (!options.marker.empty()) {
      auto position = OpenRowMarker(incarnation, row, options.marker);
      if (!position.ok()) return position.status();
      after = *std::move(position);
    } else if (options.after_column) {
      after = RowPosition{.column = *options.after_column};
    }
    auto page = found.rows->Get(row, options, after);
    if (!page.ok()) return page.status();
    keeper_.read_taps().OnRow(dataset, row, options, page->items);
    return SealRow(incarnation, row, *std::move(page));
  });
}

absl::StatusOr<PutResult> Router::PutRow(std::string_view dataset, std::string_view row,
                                         std::span<const CellWrite> cells, const WriteOptions& options) {
  const auto check = [&](const ServedDataset&) { return ValidatePut(row, cells, options); };
  return Route(dataset, Shape::kRows, check, [&](const ServedDataset& found) -> absl::StatusOr<PutResult> {
    return found.rows->Put(row, cells, options);
  });
}

absl::Status Router::DeleteRow(std::string_view dataset, std::string_view row, const DeleteOptions& options) {
  const auto check = [&](const ServedDataset&) { return ValidateDelete(row, options); };
  return Route(dataset, Shape::kRows, check,
               [&](const ServedDataset& found) { return found.rows->Delete(row, options); });
}

absl::StatusOr<std::vector<absl::StatusOr<Row>>> Router::GetRows(std::string_view dataset,
                                                                 std::span<const RowRead> reads) {
  uint64_t incarnation = 0;
  auto pages = RouteBatch<absl::StatusOr<RowPage>>(
      dataset, Shape::kRows, reads,
      [](const ServedDataset&, const RowRead& read) {
        // A read that does not begin with the first column is made on its own below. Its placeholder error is
        // not returned.
        return BeginsInside(read.options) ? absl::UnknownError("") : ValidateRead(read.row, read.options);
      },
      [&](const ServedDataset& found, std::span<const RowRead> valid) {
        incarnation = found.spec.incarnation;
        return found.rows->GetMany(valid);
      });
  if (!pages.ok()) return pages.status();
  std::vector<absl::StatusOr<Row>> rows;
  rows.reserve(reads.size());
  BatchBytes bytes;
  for (const auto& page : *pages) {
    if (page.ok()) bytes.Add(page->items);
  }
  for (size_t i = 0; i < reads.size(); ++i) {
    absl::StatusOr<RowPage>& page = (*pages)[i];
    if (BeginsInside(reads[i].options)) {
      if (i > 0 && bytes.full()) {
        rows.emplace_back(BatchFullError());
        continue;
      }
      rows.push_back(GetRow(dataset, reads[i].row, reads[i].options));
      if (rows.back().ok()) bytes.Add(rows.back()->items);
    } else if (page.ok()) {
      keeper_.read_taps().OnRow(dataset, reads[i].row, reads[i].options, page->items);
      rows.emplace_back(SealRow(incarnation, reads[i].row, *std::move(page)));
    } else {
      rows.emplace_back(page.status());
    }
  }
  return rows;
}

absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> Router::PutRows(std::string_view dataset,
                                                                       std::span<const RowWrite> writes) {
  return RouteBatch<absl::StatusOr<PutResult>>(
      dataset, Shape::kRows, writes,
      [](const ServedDataset&, const RowWrite& write) {
        return ValidatePut(write.row, write.cells, write.options);
      },
      [](const ServedDataset& found, std::span<const RowWrite> valid) { return found.rows->PutMany(valid); });
}

absl::StatusOr<std::vector<absl::Status>> Router::DeleteRows(std::string_view dataset,
                                                             std::span<const RowDelete> deletes) {
  return RouteBatch<absl::Status>(
      dataset, Shape::kRows, deletes,
      [](const ServedDataset&, const RowDelete& one) { return ValidateDelete(one.row, one.options); },
      [](const ServedDataset& found, std::span<const RowDelete> valid) {
        return found.rows->DeleteMany(valid);
      });
}

// ---- scans ----

/// A cursor over a backend's scan that seals its positions as markers. As long as it has given nothing, it
/// waits for a migration as other calls do: backends ask their hosts only with the first row. Later it cannot
/// go on elsewhere, since another backend has the rows in another order.
class Router::Cursor : public RowCursor {
 public:
  Cursor(Router& router, std::string_view dataset, const RowRange& range, const ScanOptions& options)
      : router_(router), dataset_(dataset), range_(range), options_(options) {}

  /// Opens the scan where the dataset is served, and calls `then()`, which returns a Status or StatusOr; both
  /// again while the dataset migrates.
  template <typename Then>
  auto Open(const Then& then) -> std::invoke_result_t<Then> {
    const auto check = [&](const ServedDataset&) { return ValidateScan(range_, options_); };
    return router_.Route(dataset_, Shape::kRows, check,
                         [&](const ServedDataset& found) -> std::invoke_result_t<Then> {
                           if (auto status = OpenOn(found); !status.ok()) return status;
                           return then();
                         });
  }

  absl::StatusOr<bool> Next(ScannedRow& row) override {
    if (auto status = CheckCall(); !status.ok()) return status;
    auto more = scan_->Next(row);
    if (!more.ok() && !has_moved_ && IsMigrating(more.status()))
      more = Open([&] { return scan_->Next(row); });
    // The caller of a scan that was paused continues it with its marker, as if there had been a row.
    if (more.ok() || IsPaused(more.status())) has_moved_ = true;
    return more;
  }

  std::string marker() const override {
    auto position = scan_->position();
    if (!position) return options_.marker;
    AddBackend(backend_, position->order);
    return SealScanMarker(incarnation_, *position);
  }

 private:
  absl::Status OpenOn(const ServedDataset& found) {
    std::optional<ScanPosition> after;
    if (!options_.marker.empty()) {
      auto position = OpenScanMarker(found.spec.incarnation, options_.marker);
      if (!position.ok()) return position.status();
      if (auto status = StripBackend(dataset_, found.backend_name, position->order); !status.ok())
        return status;
      if (!Contains(range_, position->row)) {
        return absl::InvalidArgumentError("marker: lies outside of start_row and end_row");
      }
      after = *std::move(position);
    }
    auto scan = found.rows->Scan(range_, options_, after);
    if (!scan.ok()) return scan.status();
    scan_ = *std::move(scan);
    store_ = found.rows;
    backend_ = found.backend_name;
    incarnation_ = found.spec.incarnation;
    return absl::OkStatus();
  }

  Router& router_;
  const std::string dataset_;
  const RowRange range_;
  const ScanOptions options_;        // its marker is where the cursor starts; empty: the beginning
  std::shared_ptr<RowStore> store_;  // stays open as long as the scan
  std::unique_ptr<RowScan> scan_;
  std::string_view backend_;
  uint64_t incarnation_ = 0;
  // Whether a row was given, or the scan was paused. The position of a scan that began with a marker does not
  // tell, since that is there from the beginning.
  bool has_moved_ = false;
};

absl::StatusOr<std::unique_ptr<RowCursor>> Router::ScanRows(std::string_view dataset, const RowRange& range,
                                                            const ScanOptions& options) {
  auto cursor = std::make_unique<Cursor>(*this, dataset, range, options);
  if (auto status = cursor->Open([] { return absl::OkStatus(); }); !status.ok()) return status;
  return cursor;
}

absl::StatusOr<std::vector<Partition>> Router::ListPartitions(std::string_view dataset, size_t wanted) {
  const auto check = [&](const ServedDataset&) -> absl::Status {
    if (wanted >= 1 && wanted <= 65536) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("wanted: {} partitions, out of range 1..65536", wanted));
  };
  const auto found = directory().Find(dataset);
  if (!found.ok()) return found.status();
  return Route(dataset, (*found)->spec.shape, check, [&](const ServedDataset& served) {
    switch (served.spec.shape) {
      case Shape::kRows:
        break;
      case Shape::kObjects:
        return served.objects->Partitions(wanted);
      case Shape::kMappings:
        return served.mappings->Partitions(wanted);
    }
    return served.rows->Partitions(wanted);
  });
}

}  // namespace kvstore

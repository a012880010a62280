#include "server/resp/commands/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "backend_api/scan_budget.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/key.h"

namespace kvstore::server::resp {
namespace {

/// The largest page that is read on a thread that serves connections.
constexpr uint32_t kColumnsHere = 1'000;
constexpr size_t kBytesHere = size_t{256} << 10;
/// The most columns that a read names there, and the most cells that it examines, found or not.
constexpr size_t kNamedHere = 100;
constexpr uint64_t kExaminedHere = 4'000;
/// A command with more keys is left to a worker.
constexpr size_t kKeysHere = 64;
/// The most columns in a page that a worker reads. It keeps a page below about 4 MiB even if all names and
/// values are short: memory is counted only after the read, and by then every worker may hold one page.
constexpr uint32_t kReadColumns = 8'000;
/// The bytes that an allocation takes beside its content.
constexpr size_t kAllocation = 16;
/// About how many bytes the protocol adds to each name and value of an answer.
constexpr size_t kAnswerElement = 12;

/// Bounds a read on a thread that serves connections: it ends with a marker where it exceeds kExaminedHere.
class BoundHere {
 public:
  explicit BoundHere(bool here) {
    if (here) budget_.emplace(kExaminedHere);
  }

 private:
  std::optional<ScanBudget> budget_;
};

/// Adds up what was read.
struct Size {
  size_t bytes = 0;
  size_t items = 0;
  size_t cells = 0;

  void Add(const Row& page) {
    items += page.items.size();
    for (const Item& item : page.items) {
      bytes += item.column.size();
      cells += item.cells.size();
      for (const Cell& cell : item.cells) bytes += cell.value.size();
    }
  }
  size_t memory() const {
    return bytes + items * (sizeof(Item) + 2 * kAllocation) + cells * (sizeof(Cell) + kAllocation);
  }
  size_t answer() const { return bytes + (items + 2 * cells) * kAnswerElement; }
  bool IsTooLarge() const { return bytes > kMaxAnswerBytes || cells > kMaxAnswerElements; }
};

/// Appends the next page of a row, which may begin within the last column.
void AppendPage(Row& row, Row page) {
  for (Item& item : page.items) {
    if (row.items.empty() || row.items.back().column != item.column) {
      row.items.push_back(std::move(item));
    } else {
      auto& cells = row.items.back().cells;
      cells.insert(cells.end(), std::make_move_iterator(item.cells.begin()),
                   std::make_move_iterator(item.cells.end()));
    }
  }
  row.marker = std::move(page.marker);
}

/// Returns the options of the plan's first page.
ReadOptions PageOptions(const ReadPlan& plan, bool here) {
  ReadOptions options = plan.options;
  options.max_bytes = std::min(options.max_bytes, here ? kBytesHere : kReadBytes);
  options.limit = std::min(options.limit, here ? kColumnsHere : kReadColumns);
  return options;
}

/// The most entries of a batch that a worker reads at once.
constexpr size_t kMostTogether = 2'000;

}  // namespace

size_t NextTogether(size_t entries, size_t bytes) {
  return std::clamp<size_t>(kReadBytes / (bytes / std::max<size_t>(entries, 1) + 1), 1, kMostTogether);
}

absl::Status TooLargeAnswerError() {
  return absl::FailedPreconditionError(fmt::format(
      "the answer would have more than {} bytes or {} elements; read it in parts: by HSCAN, XREVRANGE ... "
      "COUNT, ZRANGE with an end, KV.GET or KV.SCAN",
      kMaxAnswerBytes, kMaxAnswerElements));
}

absl::Status ReadAll(Router& router, const ReadPlan& plan, bool here, AnswerMemory& memory, Row& row) {
  if (here && plan.options.columns && plan.options.columns->size() > kNamedHere) return TooLongHereError();
  ReadOptions options = PageOptions(plan, here);
  const BoundHere bound(here);
  row = {};
  Size size;
  do {
    auto page = router.GetRow(plan.dataset, plan.row, options);
    if (!page.ok()) return page.status();
    if (here && !page->marker.empty()) return TooLongHereError();
    const size_t before = size.memory() + size.answer();
    size.Add(*page);
    if (size.IsTooLarge()) return TooLargeAnswerError();
    if (auto status = memory.Hold(size.memory() + size.answer() - before); !status.ok()) return status;
    AppendPage(row, *std::move(page));
    options.marker = row.marker;
  } while (!options.marker.empty());
  return absl::OkStatus();
}

size_t AnswerBytes(const Row& row) {
  Size size;
  size.Add(row);
  return size.answer();
}

absl::StatusOr<bool> HasCells(Router& router, std::string_view dataset, std::string_view row,
                              const std::optional<std::string>& column, bool here) {
  const BoundHere bound(here);
  ReadOptions options{.limit = 1, .max_bytes = 1};
  if (column) options.columns.emplace().push_back(*column);
  for (;;) {
    auto page = router.GetRow(dataset, row, options);
    if (!page.ok()) return page.status();
    if (!page->items.empty()) return true;
    if (page->marker.empty()) return false;
    if (here) return TooLongHereError();
    options.marker = std::move(page->marker);
  }
}

absl::StatusOr<std::string_view> TypeOfRow(Router& router, std::string_view dataset, std::string_view row,
                                           bool here) {
  const BoundHere bound(here);
  ReadOptions options{.limit = 1, .max_bytes = 1};
  bool has_string = false;
  for (;;) {
    auto page = router.GetRow(dataset, row, options);
    if (!page.ok()) return page.status();
    for (const Item& item : page->items) {
      if (!item.column.empty()) return std::string_view("hash");
      has_string = true;
    }
    if (page->marker.empty()) return std::string_view(has_string ? "string" : "none");
    if (here && page->items.empty()) return TooLongHereError();
    options.marker = std::move(page->marker);
  }
}

absl::StatusOr<Row> PageOf(Router& router, std::string_view dataset, std::string_view row,
                           ReadOptions options, bool here) {
  if (!here) return router.GetRow(dataset, row, options);
  const bool names_many = options.columns && options.columns->size() > kNamedHere;
  if (names_many || options.limit > kColumnsHere) return TooLongHereError();
  const BoundHere bound(here);
  options.max_bytes = std::min(options.max_bytes, kBytesHere);
  auto page = router.GetRow(dataset, row, options);
  // The budget of this thread may have ended the page early; a worker reads all of it.
  if (page.ok() && !page->marker.empty() && page->items.size() < options.limit) return TooLongHereError();
  return page;
}

absl::StatusOr<uint64_t> CountIn(Router& router, ReadPlan plan, Counted counted, bool here) {
  if (here && plan.options.columns && plan.options.columns->size() > kNamedHere) return TooLongHereError();
  ReadOptions options = PageOptions(plan, here);
  const BoundHere bound(here);
  uint64_t count = 0;
  std::string last;
  bool any = false;
  do {
    auto page = router.GetRow(plan.dataset, plan.row, options);
    if (!page.ok()) return page.status();
    if (here && !page->marker.empty()) return TooLongHereError();
    for (Item& item : page->items) {
      if (counted == Counted::kCells) {
        count += item.cells.size();
      } else if (!any || item.column != last) {
        ++count;
      }
      last = std::move(item.column);
      any = true;
    }
    options.marker = std::move(page->marker);
  } while (!options.marker.empty());
  return count;
}

const std::string* NewestOf(const Row& row, std::string_view column) {
  const auto found =
      std::lower_bound(row.items.begin(), row.items.end(), column,
                       [](const Item& item, std::string_view wanted) { return item.column < wanted; });
  if (found == row.items.end() || found->column != column) return nullptr;
  return &found->cells.front().value;
}

absl::StatusOr<bool> HideObject(Router& router, std::string_view dataset, uint64_t id) {
  // Unlike DeleteObject this tells whether it was this call that has hidden the object.
  const auto object = router.PatchObject(dataset, id, R"({"active": false})", {});
  if (object.ok()) return true;
  if (absl::IsNotFound(object.status()) && router.Locate(dataset)) return false;
  return object.status();
}

absl::Status CheckShape(Router& router, std::string_view dataset, std::optional<Shape> shape,
                        absl::Status error) {
  // A key that is written for another shape may have failed as an invalid argument, too.
  const bool may_be_shape = absl::IsFailedPrecondition(error) || absl::IsInvalidArgument(error);
  if (!shape || !may_be_shape) return error;
  const auto spec = router.GetDataset(dataset);
  if (!spec.ok() || spec->shape == *shape) return error;
  return WrongTypeError(fmt::format("dataset '{}' holds {}, and this command is for {}", spec->name,
                                    Name(spec->shape), Name(*shape)));
}

absl::Status CheckKeys(StoreCall& call, Arguments keys, size_t step, Right right) {
  if (call.here && keys.size() / step > kKeysHere) return TooLongHereError();
  std::string_view checked;
  for (size_t i = 0; i < keys.size(); i += step) {
    if (auto status = CheckNamesDataset(keys[i]); !status.ok()) return status;
    const std::string_view dataset = DatasetOf(keys[i]);
    if (i > 0 && dataset == checked) continue;
    checked = dataset;
    if (auto status = server::CheckRight(call.principal, dataset, right); !status.ok()) return status;
    // The command was admitted for the dataset of its first key.
    if (call.counted.insert(dataset).second && i > 0) {
      if (auto status = server::TakeFurtherCall(call.principal, dataset); !status.ok())
        return server::MarkRefused(std::move(status));
    }
    const auto where = call.router.Locate(dataset);
    if (!call.here || !where) continue;
    const bool flushes = right >= Right::kWrite && where->durability == Durability::kMachine;
    if (where->waits || flushes) return TooLongHereError();
  }
  return absl::OkStatus();
}

absl::Status CheckCount(size_t count, std::string_view what) {
  if (count <= kMaxBatchRows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} {} were given, and the limit is {}; use several commands", count, what, kMaxBatchRows));
}

}  // namespace kvstore::server::resp

#include "backends/rocksdb/rows/row_answer.h"

#include <algorithm>
#include <cstring>

#include "backends/rocksdb/engine/answer_cache.h"

namespace kvstore::rocks {
namespace {

/// With more columns, or longer names, a read is seldom asked for again.
constexpr size_t kMaxKeyBytes = 1024;

/// The beginning of an answer. Each column follows: its name, how many cells it has, how many bytes these
/// have, and the cells.
struct Header {
  uint64_t start;     // cells with lower timestamps were not returned
  uint64_t oldest;    // the lowest timestamp
  uint32_t versions;  // that were asked for
  uint32_t items;
  uint64_t bytes;  // of names and values, as a page counts them
};

template <typename T>
void Append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendText(std::string& to, std::string_view text) {
  Append(to, static_cast<uint32_t>(text.size()));
  to.append(text);
}

template <typename T>
T Take(std::string_view& from) {
  T value;
  std::memcpy(&value, from.data(), sizeof(value));
  from.remove_prefix(sizeof(value));
  return value;
}

std::string_view TakeText(std::string_view& from) {
  const auto size = Take<uint32_t>(from);
  const std::string_view text = from.substr(0, size);
  from.remove_prefix(size);
  return text;
}

/// A cell and a column of an answer whose bytes are elsewhere.
struct CellView {
  uint64_t timestamp;
  std::string_view value;
};
struct ItemView {
  std::string_view column;
  std::vector<CellView> cells;
};

std::vector<ItemView> ViewsIn(std::string_view answer, uint32_t count) {
  std::vector<ItemView> items(count);
  for (ItemView& item : items) {
    item.column = TakeText(answer);
    item.cells.resize(Take<uint32_t>(answer));
    std::string_view of_cells = TakeText(answer);
    for (CellView& cell : item.cells) {
      cell.timestamp = Take<uint64_t>(of_cells);
      cell.value = TakeText(of_cells);
    }
  }
  return items;
}

template <typename Items>
std::string Encode(const Items& items, uint32_t versions, uint64_t start) {
  Header header{.start = start,
                .oldest = UINT64_MAX,
                .versions = versions,
                .items = static_cast<uint32_t>(items.size()),
                .bytes = 0};
  size_t size = sizeof(header);
  for (const auto& item : items) {
    size += 3 * sizeof(uint32_t) + item.column.size();
    // A zero byte of a name counts as two (RowReader::OpenItem).
    header.bytes +=
        item.column.size() + static_cast<size_t>(std::count(item.column.begin(), item.column.end(), '\0'));
    for (const auto& cell : item.cells) {
      size += sizeof(uint64_t) + sizeof(uint32_t) + cell.value.size();
      header.bytes += cell.value.size();
      header.oldest = std::min(header.oldest, cell.timestamp);
    }
  }
  std::string answer;
  if (size > AnswerCache::kMaxAnswerBytes) return answer;
  answer.reserve(size);
  Append(answer, header);
  for (const auto& item : items) {
    AppendText(answer, item.column);
    Append(answer, static_cast<uint32_t>(item.cells.size()));
    // Those who want fewer cells pass the others at once.
    const size_t at = answer.size();
    Append(answer, uint32_t{0});
    for (const auto& cell : item.cells) {
      Append(answer, cell.timestamp);
      AppendText(answer, cell.value);
    }
    const auto bytes = static_cast<uint32_t>(answer.size() - at - sizeof(uint32_t));
    std::memcpy(answer.data() + at, &bytes, sizeof(bytes));
  }
  return answer;
}

/// Puts a cell in its place among those of a column, of which at most `most` are kept.
void Insert(std::vector<CellView>& cells, const CellView& cell, uint64_t most) {
  const auto at = std::find_if(cells.begin(), cells.end(),
                               [&](const CellView& other) { return other.timestamp <= cell.timestamp; });
  if (at != cells.end() && at->timestamp == cell.timestamp) {
    at->value = cell.value;
    return;
  }
  cells.insert(at, cell);
  if (cells.size() > most) cells.pop_back();
}

}  // namespace

bool MakeAnswerKey(const Family& family, std::string_view row, std::string& key) {
  static_assert(4 * sizeof(uint32_t) + 1 > AnswerCache::kBlockKeyBytes);
  key.clear();
  Append(key, family.handle->GetID());
  const uint32_t changes = family.settings->changes.load(std::memory_order_acquire);
  Append(key, changes);
  Append(key, family.gate.changes());
  AppendText(key, row);
  key.push_back('r');
  return family.IsSettled(changes);
}

bool AddColumn(std::string& key, std::string_view column) {
  AppendText(key, column);
  return key.size() <= kMaxKeyBytes;
}

std::string EncodeAnswer(const std::vector<Item>& items, const RowQuery& query) {
  return Encode(items, query.versions, query.start);
}

std::optional<std::vector<Item>> DecodeAnswer(std::string_view answer, const RowQuery& query) {
  const auto header = Take<Header>(answer);
  if (header.versions < query.versions || header.items > query.limit || header.bytes > query.max_bytes ||
      header.oldest < query.start || query.start < header.start) {
    return std::nullopt;
  }
  std::vector<Item> items(header.items);
  for (Item& item : items) {
    item.column = TakeText(answer);
    const auto cells = Take<uint32_t>(answer);
    std::string_view of_cells = TakeText(answer);
    item.cells.resize(std::min(cells, query.versions));
    for (Cell& cell : item.cells) {
      cell.timestamp = Take<uint64_t>(of_cells);
      cell.value.assign(TakeText(of_cells));
    }
  }
  return items;
}

std::string AnswerAfterPut(std::string_view answer, std::span<const CellWrite> cells, uint64_t assigned,
                           const FamilySettings& settings) {
  const auto header = Take<Header>(answer);
  const uint64_t start = settings.OldestVisible();
  if (header.oldest < start || start < header.start) return {};
  const uint32_t max_versions = settings.max_versions.load(std::memory_order_relaxed);
  const uint32_t most = max_versions == 0 ? header.versions : std::min(header.versions, max_versions);
  std::vector<ItemView> items = ViewsIn(answer, header.items);
  for (const CellWrite& cell : cells) {
    const CellView view{.timestamp = cell.timestamp.value_or(assigned), .value = cell.value};
    if (view.timestamp < start) continue;
    auto at =
        std::lower_bound(items.begin(), items.end(), cell.column,
                         [](const ItemView& item, std::string_view column) { return item.column < column; });
    if (at == items.end() || at->column != cell.column)
      at = items.insert(at, {.column = cell.column, .cells = {}});
    Insert(at->cells, view, most);
  }
  return Encode(items, header.versions, start);
}

}  // namespace kvstore::rocks

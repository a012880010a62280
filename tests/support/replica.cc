#include "tests/support/replica.h"

#include <limits>
#include <variant>

#include "kvstore_api/limits.h"

namespace kvstore::testing {

absl::Status Replica::Follow(KVStore& store, const std::string& dataset, std::string& token, uint32_t limit) {
  for (;;) {
    const auto page = store.ReadChanges(dataset, token.empty() ? kChangesFromBegin : std::string_view(token),
                                        {.limit = limit});
    if (!page.ok()) return page.status();
    for (const Change& change : page->changes) Apply(change);
    token = page->token;
    if (page->complete_until_ms != 0) return absl::OkStatus();
  }
}

void Replica::Apply(const Change& change) {
  if (const auto* row = std::get_if<RowChange>(&change.what)) {
    if (!row->column) {
      std::erase_if(columns, [&](const auto& column) { return column.first.first == row->row; });
    } else if (row->cells.empty()) {
      columns.erase({row->row, *row->column});
    } else {
      columns[{row->row, *row->column}] = row->cells;
    }
  } else if (const auto* object = std::get_if<ObjectChange>(&change.what)) {
    if (object->data) {
      objects[object->id] = *object->data;
    } else {
      objects.erase(object->id);
    }
  } else if (const auto* mapping = std::get_if<MappingChange>(&change.what)) {
    if (mapping->sequence) {
      mappings[{mapping->from, mapping->to}] = *mapping->sequence;
    } else {
      mappings.erase({mapping->from, mapping->to});
    }
  }
}

absl::StatusOr<Replica> Replica::Of(KVStore& store, const std::string& dataset) {
  const auto spec = store.GetDataset(dataset);
  if (!spec.ok()) return spec.status();
  Replica replica;
  switch (spec->shape) {
    case Shape::kRows: {
      const auto cursor = store.ScanRows(dataset, {}, {.versions = std::numeric_limits<uint32_t>::max()});
      if (!cursor.ok()) return cursor.status();
      ScannedRow row;
      for (;;) {
        const auto more = (*cursor)->Next(row);
        if (!more.ok()) return more.status();
        if (!*more) return replica;
        for (const Item& item : row.items) {
          auto& cells = replica.columns[{row.key, item.column}];
          cells.insert(cells.end(), item.cells.begin(), item.cells.end());
        }
      }
    }
    case Shape::kObjects: {
      ObjectScanOptions options{.include_inactive = true, .limit = kMaxListEntries};
      do {
        const auto page = store.ScanObjects(dataset, {}, options);
        if (!page.ok()) return page.status();
        for (const Object& object : page->objects) replica.objects[object.id] = object.data;
        options.marker = page->marker;
      } while (!options.marker.empty());
      return replica;
    }
    case Shape::kMappings: {
      MappingScanOptions options{.limit = kMaxListEntries};
      do {
        const auto page = store.ScanMappings(dataset, {}, options);
        if (!page.ok()) return page.status();
        for (const ScannedMapping& entry : page->entries) {
          replica.mappings[{entry.from, entry.to}] = entry.sequence;
        }
        options.marker = page->marker;
      } while (!options.marker.empty());
      return replica;
    }
  }
  return absl::InternalError("a shape that this test does not know");
}

}  // namespace kvstore::testing

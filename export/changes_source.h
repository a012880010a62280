#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "export/export_source.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::exports {

/// The most units that may have changed for an export of changes: 16 bytes of memory are kept for each.
inline constexpr size_t kMaxChangedUnits = 7'000'000;

/// Returns the token with which an export of changes will go on after what is exported from now on. Errors as
/// of KVStore::ReadChanges: FAILED_PRECONDITION if the dataset keeps no changes.
absl::StatusOr<std::string> TokenOfNow(KVStore& store, const std::string& dataset);

/// Reads the units that were written to since a token, each once, as it is when it is read. A unit without
/// cells is gone; one whose key is enc(row) alone says that the whole row was deleted, and what it has now is
/// told by other units. The units come in no order, as one part. All is read that was written before the
/// source was opened, and perhaps some of what is written after it: whoever goes on with a token of before
/// that (TokenOfNow) reads those again. The store must outlive the source.
///
/// since  the token of the export before.
/// most   RESOURCE_EXHAUSTED if more units have changed.
///
/// Errors of the scan are those of KVStore::ReadChanges: OUT_OF_RANGE if the changes after `since` are not
/// kept any more. While the store does not say until when all was told, because a master is silent or a write
/// is open, the scan waits, as long as the deadline of the thread's CallScope allows. A column that has
/// changed is in memory as a whole, with all of its versions.
std::unique_ptr<ExportSource> OpenChanges(KVStore& store, const DatasetSpec& spec, std::string since,
                                          size_t most = kMaxChangedUnits);

}  // namespace kvstore::exports

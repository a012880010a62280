#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/rocksdb/engine/family.h"
#include "backends/rocksdb/rows/row_reader.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"

/// Answers of reads of a row in the form in which AnswerCache keeps them. That form is of this process alone.
namespace kvstore::rocks {

/// Begins the key of the answers to reads of a row; answers to reads of the whole row have this key. The key
/// is of the dataset as it is now: after it was altered, or moved, others are asked for. Returns false if no
/// answers may be kept or found now (Family::IsSettled).
bool MakeAnswerKey(const Family& family, std::string_view row, std::string& key);
/// Adds a column, in ascending order, to the key of the answers to reads of these columns alone. Returns
/// false if the key becomes too long.
bool AddColumn(std::string& key, std::string_view column);

/// Returns the whole answer to a read. Empty if it is too large.
std::string EncodeAnswer(const std::vector<Item>& items, const RowQuery& query);

/// Returns what a query would read of the row, by an answer to a read of its columns; nullopt if the answer
/// does not tell: it has fewer versions than are asked for, more columns or bytes than a page may have, or
/// cells that have expired since; or the clock was set back.
std::optional<std::vector<Item>> DecodeAnswer(std::string_view answer, const RowQuery& query);

/// Returns what an answer is after a put of cells, whose columns are all among those that the answer is
/// about. Empty if the old answer does not tell, or the new one is too large.
///
/// assigned  the timestamp of the cells that have none of their own.
/// settings  of the dataset, as they are in the key of the answer.
std::string AnswerAfterPut(std::string_view answer, std::span<const CellWrite> cells, uint64_t assigned,
                           const FamilySettings& settings);

}  // namespace kvstore::rocks

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/rocksdb/engine/family.h"
#include "backends/rocksdb/rows/row_reader.h"
#include "kvstore_api/types.h"

/// Answers of reads of a row in the form in which AnswerCache keeps them. That form is of this process alone.
namespace kvstore::rocks {

/// Makes the key of the answers to reads of a row, or of some of its columns, into `key`. They differ in how
/// many versions, columns and bytes they have at most, and not in anything else. The key is of the dataset as
/// it is now: after it was altered, or moved, others are asked for. Returns false if there are too many
/// columns for a key.
bool MakeAnswerKey(const Family& family, std::string_view row, const std::vector<std::string>* columns,
                   std::string& key);

/// Returns the whole answer to a read, for FindAnswer. Empty if it is too large.
///
/// versions  how many were asked for of each column.
std::string EncodeAnswer(const std::vector<Item>& items, uint32_t versions);

/// Returns what a query would read of the row, by an answer to a read of its columns; nullopt if the answer
/// does not tell: it has fewer versions than are asked for, more columns or bytes than a page may have, or
/// cells that have expired since.
std::optional<std::vector<Item>> DecodeAnswer(std::string_view answer, const RowQuery& query);

}  // namespace kvstore::rocks

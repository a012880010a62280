#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/resp/commands/answer_memory.h"
#include "server/resp/commands/command.h"

/// Reads, writes and checks that commands of several groups need.
namespace kvstore::server::resp {

/// Returns the error of an answer that would be larger than kMaxAnswerBytes or kMaxAnswerElements.
absl::Status TooLargeAnswerError();

/// The bytes that a worker reads at once. They are counted only after the read, and by then every worker may
/// hold as many.
inline constexpr size_t kReadBytes = size_t{3} << 20;
/// How many entries of a batch a worker reads at first; later as many as NextTogether says.
inline constexpr size_t kFirstTogether = 64;

/// Returns how many entries of a batch fill kReadBytes when `entries` that were read have `bytes` together.
size_t NextTogether(size_t entries, size_t bytes);

/// Reads all pages of a plan into `row`.
///
/// here    as StoreCall::here: TooLongHereError if there is more than a short page.
/// memory  holds what was read, and AnswerBytes for the answer that is made of it.
absl::Status ReadAll(Router& router, const ReadPlan& plan, bool here, AnswerMemory& memory, Row& row);
/// Returns how long the text of an answer is that has all names and values of a row, in about.
size_t AnswerBytes(const Row& row);

/// Whether a row has a cell, or one in this column.
///
/// here  as StoreCall::here: TooLongHereError if it takes long to find out.
absl::StatusOr<bool> HasCells(Router& router, std::string_view dataset, std::string_view row,
                              const std::optional<std::string>& column, bool here);

/// Returns the type of a row, as TYPE tells it: that of a string if it has only the column with the empty
/// name.
///
/// here  likewise.
absl::StatusOr<std::string_view> TypeOfRow(Router& router, std::string_view dataset, std::string_view row,
                                           bool here);

/// Reads a page of a row.
///
/// here  likewise.
absl::StatusOr<Row> PageOf(Router& router, std::string_view dataset, std::string_view row,
                           ReadOptions options, bool here);

enum class Counted : uint8_t { kColumns, kCells };
/// Counts the columns of a row, or their cells, by reading them; `here` as in ReadAll.
absl::StatusOr<uint64_t> CountIn(Router& router, ReadPlan plan, Counted counted, bool here);

/// Returns the newest value of a column among what was read of a row; null if it has none.
const std::string* NewestOf(const Row& row, std::string_view column);

/// Hides an object, as a soft delete does; returns whether it was visible. NOT_FOUND if there is no such
/// dataset.
absl::StatusOr<bool> HideObject(Router& router, std::string_view dataset, uint64_t id);

/// Returns the error as it is, or, if a dataset holds something else than `shape`, that error in the words of
/// Redis.
absl::Status CheckShape(Router& router, std::string_view dataset, std::optional<Shape> shape,
                        absl::Status error);

/// Checks for each key that it names a dataset on which the caller has the right, before anything is done;
/// and where the command must not wait, that no dataset does. Counts the command against the limit of each
/// of the datasets, once, also if it is carried out again (StoreCall).
///
/// keys  every `step`th is a key.
absl::Status CheckKeys(StoreCall& call, Arguments keys, size_t step, Right right);

/// Checks that a command that deals with things one by one has at most kMaxBatchRows of them.
///
/// what  what the things are called, such as "keys".
absl::Status CheckCount(size_t count, std::string_view what);

}  // namespace kvstore::server::resp

#pragma once

#include <cstddef>
#include <cstdint>

/// The limits of the data model, the same on every backend. A request beyond one is INVALID_ARGUMENT and
/// changes nothing. They are part of stored formats and of the wire protocol: raise them with care, never
/// lower them.
namespace kvstore {

inline constexpr size_t kMaxRowKeyBytes = 1024;            ///< A row key has 1 to this many bytes.
inline constexpr size_t kMaxColumnNameBytes = 1024;        ///< A column name has 0 to this many bytes.
inline constexpr size_t kMaxValueBytes = size_t{4} << 20;  ///< A value, or an object's JSON text.
inline constexpr size_t kMaxPutBytes = size_t{8} << 20;    ///< Column names and values of one put, added up.
inline constexpr size_t kMaxBatchRows = 10'000;            ///< Rows, or object IDs, of one batch call.
inline constexpr size_t kMaxListEntries = 10'000;          ///< Entries of one page of a mapping.
inline constexpr size_t kMaxDatasetNameBytes = 48;
inline constexpr size_t kMaxConsumerNameBytes = 64;  ///< A follower's name (KVStore::SetConsumer).
inline constexpr size_t kMaxConsumers = 100;         ///< Followers of one dataset.
inline constexpr size_t kRequestIdBytes = 16;        ///< The size of CreateOptions::request_id.

/// Timestamps are unsigned milliseconds below 2^63; sequences of mappings share the range.
inline constexpr uint64_t kMaxTimestamp = (uint64_t{1} << 63) - 1;

/// IDs leave their top two bits zero.
inline constexpr uint64_t kMaxId = (uint64_t{1} << 62) - 1;

/// The default limit for the names and values in a page of a row, chosen so that one page returns what one
/// put wrote.
inline constexpr size_t kDefaultPageBytes = kMaxPutBytes;
/// The default limit for a piece of a scanned row.
inline constexpr size_t kDefaultScanBytes = size_t{1} << 20;
/// A server sends pages, and pieces of scanned rows, of at most this many bytes.
inline constexpr size_t kMaxWireBytes = size_t{4} << 20;
inline constexpr size_t kMaxPageBytes = size_t{64} << 20;
/// A page, a piece of a scanned row or a put has at most this many cells; a read or delete names no more.
inline constexpr size_t kMaxPageCells = 100'000;

/// JSON documents nest at most this deep; deeper ones are refused before they reach any recursive code.
inline constexpr int kMaxJsonDepth = 100;

}  // namespace kvstore

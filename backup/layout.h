#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

/// The names of blobs in a store of backups, and the times by which creates and prunes stay out of each
/// other's way. docs/backup-format.md is for those who read such a store with other programs.
///
///   backups/ID.json        the manifest of a backup (manifest.h), put last
///   log/ID/NUMBER          a segment of the log that follows the backup (log_segment.h)
///   removed/ID             an empty blob: the backup was removed, when this was put
///   objects/table-UNIQUE.ID   a table file, by RocksDB's unique ID; ID is that of the backup that put it
///   objects/file-CHECKSUM.ID  another file, by the checksum of its bytes (blob_checksum.h)
///
/// No blob is ever replaced. A create uses an object that is there only if the newest backup names it, or if
/// it was put less than kReuseMs ago, and it puts its manifest at most kMaxCreateMs after it has looked. A
/// prune deletes an object only if it was put, and the last backup that names it was removed, at least
/// kGraceMs ago. Therefore no create can lose an object to a prune, as long as the clocks of those who make
/// backups, who prune, and of the store differ by less than kGraceMs - kReuseMs - kMaxCreateMs in all.
///
/// A name that a prune may delete is never put again: a prune that has listed it long ago, or whose delete
/// was lost on the way and is repeated, would delete what was put meanwhile. Therefore each create puts
/// objects under names of its own. Only what a live backup names and has lost is put under its old name.
namespace kvstore::backup {

inline constexpr uint64_t kHourMs = 3'600'000;
inline constexpr uint64_t kReuseMs = 24 * kHourMs;
inline constexpr uint64_t kMaxCreateMs = 24 * kHourMs;
inline constexpr uint64_t kGraceMs = 72 * kHourMs;

inline constexpr std::string_view kManifestPrefix = "backups/";
inline constexpr std::string_view kRemovedPrefix = "removed/";
inline constexpr std::string_view kObjectPrefix = "objects/";

/// Returns the ID of a backup that begins now, "20261124T031459Z-1a2b3c4d": the time in UTC, and random
/// digits. IDs sort by time.
///
/// newest  The newest backup that there is, if any. The ID sorts after it, also if that was made in the same
///         second, or by a clock that was ahead: the time in the ID is then a second later than in that one.
std::string NewBackupId(uint64_t now_ms, std::string_view newest = "");
/// Returns INVALID_ARGUMENT unless the text has the form of an ID.
absl::Status CheckBackupId(std::string_view id);

/// "backups/ID.json"
std::string ManifestBlob(std::string_view id);
/// Returns the ID in such a name; empty if the name has another form.
std::string_view IdOfManifest(std::string_view blob);
/// "removed/ID"
std::string RemovedBlob(std::string_view id);
/// "objects/table-UNIQUE", what identifies the bytes of a table.
std::string TableBlob(std::string_view unique_id);
/// "objects/file-CHECKSUM", what identifies the bytes of another file.
std::string FileBlob(std::string_view checksum);
/// Returns the name without the ID of a backup at its end: what identifies the bytes of an object.
std::string_view IdentityOf(std::string_view object);

}  // namespace kvstore::backup

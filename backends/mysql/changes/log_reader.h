#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/changes/log_position.h"
#include "backends/mysql/changes/row_events.h"

namespace kvstore::mysql {

/// A place in the files of one server's log.
struct FilePlace {
  std::string file;  ///< Without its folder.
  uint64_t offset = 0;
  /// Whether nothing between the two places is after `other`.
  bool IsAtOrBefore(const FilePlace& other) const;
};

/// An item that a LogReader has found.
struct LogItem {
  enum class Kind : uint8_t {
    kBegin,      ///< A transaction begins.
    kRows,       ///< It has touched `rows` of `table`.
    kStatement,  ///< It has a statement that is no row event.
    kCommit,     ///< It is complete.
    kIdle,       ///< There is nothing more at the moment.
    kEnd         ///< There is nothing more, and the session is over.
  };
  Kind kind = Kind::kEnd;
  LogGtid gtid;  ///< The transaction.
  bool standalone = false;
  uint64_t at_ms = 0;
  FilePlace end;  ///< Behind the event.
  std::shared_ptr<const LoggedTable> table;
  std::vector<TouchedRow> rows;
  LoggedStatement statement;
};

/// Makes transactions, and the rows that they touched, of the events of a log. Externally synchronised.
class LogReader {
 public:
  using NextEvent = std::function<absl::StatusOr<std::string_view>()>;
  using Wants = std::function<bool(const LoggedTable&)>;

  /// next   returns the bytes of the next event, and nothing at the end; as LogSession::Next.
  /// after  the place where it begins.
  /// wants  whether the rows of a table are wanted.
  /// checksums  whether events that come before the log's format have checksums.
  LogReader(NextEvent next, LogVector after, Wants wants, bool checksums)
      : next_(std::move(next)), done_(std::move(after)), wants_(std::move(wants)), checksums_(checksums) {}

  /// DATA_LOSS           an event does not decode.
  /// FAILED_PRECONDITION  a setting of the server is in the way; the message names it.
  /// OUT_OF_RANGE         the server has lost events, or has them in an order in which a place means nothing.
  /// Other errors are those of `next`.
  absl::StatusOr<LogItem> Next();

  /// Behind the last transaction that was complete.
  const LogVector& done() const { return done_; }

 private:
  /// A transaction whose beginning was read, and is to be told next.
  struct Begun {
    LogGtid gtid;
    bool standalone = false;
    uint64_t at_ms = 0;
  };

  absl::StatusOr<bool> Take(LogEvent& event, LogItem& item);
  absl::StatusOr<LogItem> Begin(const Begun& begun);
  absl::StatusOr<bool> TakeRows(const LogEvent& event, LogItem& item);
  LogItem Commit();
  LogItem Item(LogItem::Kind kind) const;

  const NextEvent next_;
  LogVector done_;
  const Wants wants_;
  bool checksums_;
  FilePlace place_;
  bool open_ = false;  // within a transaction
  bool standalone_ = false;
  std::optional<Begun> begin_next_;
  bool commit_next_ = false;  // the transaction is complete; to be told next
  LogGtid gtid_;
  uint64_t at_ms_ = 0;
  std::map<uint64_t, std::shared_ptr<const LoggedTable>> tables_;  // of the transaction; null: not wanted
};

}  // namespace kvstore::mysql

#include "backends/mysql/changes/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "backends/mysql/changes/host_seal.h"
#include "backends/mysql/changes/server_settings.h"
#include "backends/mysql/changes/unit_values.h"
#include "backends/mysql/driver/schema.h"
#include "backends/mysql/driver/statements.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {
namespace {

using std::chrono::milliseconds;
using Patience = MasterAsks::Patience;

/// A token that has nothing before it is made anew when the last one is so old, so that it does not become
/// too old while only other datasets are written.
constexpr uint64_t kRenewMs = 1000;
/// The longest time that a process may go on with an old shard map. A token without a pair of the map in
/// force is refused if that pair's log was purged, unless the log began at least so long before the token.
constexpr uint64_t kMapDelayMs = 600'000;
/// A position may name at most so many pairs that have no shards any more; their logs are read too.
constexpr size_t kMaxFormerPairs = 64;
/// How long a follower who begins waits until what is in the log is committed.
constexpr milliseconds kMaxCommit{5000};
constexpr milliseconds kCommitPoll{5};
constexpr uint64_t kMsPerSecond = 1000;

std::string WithoutFolder(const std::string& file) { return file.substr(file.find_last_of('/') + 1); }

/// Returns the error of a server that writes no binary log.
absl::Status NoLogError(const Host& host) {
  return SettingError(host, "log_bin", "OFF", "set it in the server's configuration, and start it again");
}

/// Says which rights the account needs, if the server has refused a statement for want of one.
absl::Status WithRights(const absl::Status& status) {
  const std::string message(status.message());
  if (message.find("(error 1227)") == std::string::npos) return status;
  return absl::FailedPreconditionError(fmt::format("{}; {}", message, kRightsOfChanges));
}

absl::Status TooLate(const std::string& why) {
  return absl::OutOfRangeError(
      fmt::format("from: some changes after this token may not be kept any more: {}; begin again with "
                  "--snapshot",
                  why));
}

}  // namespace

// ---- masters ----

void Changes::ForEach(ShardSpace space, std::vector<PairNow>& pairs,
                      const std::function<void(PairNow&, size_t)>& work) {
  if (pairs.size() == 1) return work(pairs[0], 0);
  std::vector<uint32_t> shards;
  for (const PairNow& pair : pairs) shards.push_back(pair.shard);
  fleet_->ForEach(space, shards, [&](size_t i) { work(pairs[i], i); });
}

Changes::Changes(std::shared_ptr<Fleet> fleet, std::chrono::milliseconds unused_after)
    : fleet_(std::move(fleet)),
      unused_after_(unused_after),
      asks_([of = fleet_](const Host& host) { return AskOne(*of, host); }) {}

std::vector<Changes::PairNow> Changes::Ask(ShardSpace space, MasterAsks::Patience patience) {
  CloseUnused();
  std::vector<PairNow> pairs;
  std::set<Host> masters;
  for (const ShardRange& range : fleet_->map(space).ranges()) {
    if (!masters.insert(range.master).second) continue;
    pairs.push_back({.pair = {.master = range.master, .slave = range.slave, .domain = {}},
                     .shard = range.first,
                     .answer = {}});
  }
  std::vector<Host> hosts;
  for (const PairNow& pair : pairs) hosts.push_back(pair.pair.master);
  std::vector<MasterAnswer> answers = asks_.AskAll(hosts, patience);
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].answer = std::move(answers[i]);
    if (pairs[i].answer.status.ok()) pairs[i].pair.domain = pairs[i].answer.domain;
  }
  return pairs;
}

MasterAnswer Changes::AskOne(Fleet& fleet, const Host& host) {
  MasterAnswer answer;
  answer.status = fleet.RunOn(
      host, {.space = ShardSpace::kId, .shard = {}}, Repeat::kAlways,
      [&](Connection& connection) -> absl::Status {
        if (!connection.traits().returning) {
          return absl::FailedPreconditionError(
              "keep_changes_ms: the change stream reads the binary logs of MariaDB servers only, and this is "
              "MySQL");
        }
        Rows rows = connection.Ask(
            fmt::format("SELECT {}, @@global.gtid_binlog_pos, @@global.gtid_domain_id, @@global.log_bin, "
                        "@@global.binlog_format, @@global.log_bin_compress, @@global.read_only, "
                        "@@global.gtid_strict_mode",
                        kNowMs));
        if (!rows.Next()) return absl::InternalError("the server does not say its settings");
        if (rows.Uint(4) == 0) return NoLogError(host);
        if (rows.Bytes(5) != "ROW") {
          return SettingError(host, "binlog_format", rows.Bytes(5),
                              "set it to ROW, in the server's configuration too; connections that are open "
                              "keep what they have");
        }
        if (rows.Uint(6) != 0) return SettingError(host, "log_bin_compress", "ON", "set it to OFF");
        // The connection may be older than that. The new master has what was written since.
        if (rows.Uint(7) != 0) {
          return absl::UnavailableError(
              fmt::format("{} is read-only: it is not a master, or is about to be demoted", host.ToString()));
        }
        if (rows.Uint(8) == 0) return SettingError(host, "gtid_strict_mode", "OFF", "set it to ON");
        answer.now_ms = rows.Uint(1);
        answer.domain = static_cast<uint32_t>(rows.Uint(3));
        auto end = LogVector::Parse(rows.Bytes(2));
        if (!end.ok()) return end.status();
        answer.end = *std::move(end);
        return absl::OkStatus();
      });
  return answer;
}

absl::Status Changes::CheckServers(ShardSpace space) {
  std::map<uint32_t, Host> by_domain;
  std::vector<PairNow> pairs = Ask(space, Patience::kWhole);
  // A slave is a master one day.
  std::vector<absl::Status> settings(pairs.size());
  ForEach(space, pairs, [&](PairNow& pair, size_t i) {
    if (!pair.answer.status.ok()) return;
    settings[i] = CheckLogSettings(pair.pair.master, fleet_->options());
    if (settings[i].ok()) settings[i] = CheckLogSettings(pair.pair.slave, fleet_->options());
  });
  for (size_t i = 0; i < pairs.size(); ++i) {
    const PairNow& pair = pairs[i];
    if (!pair.answer.status.ok()) return pair.answer.status;
    if (!settings[i].ok()) return settings[i];
    const auto [other, is_new] = by_domain.try_emplace(pair.answer.domain, pair.pair.master);
    if (is_new) continue;
    return SettingError(
        pair.pair.master, "gtid_domain_id", fmt::format("{}", pair.answer.domain),
        fmt::format("{} has the same; give each pair of servers one of its own", other->second.ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<FilePlace> Changes::Visible(ShardSpace space, const PairNow& pair) {
  return fleet_->RunOn(
      pair.pair.master, {.space = space, .shard = {}}, Repeat::kAlways,
      [&](Connection& connection) -> absl::StatusOr<FilePlace> {
        FilePlace place;
        Rows rows = connection.Ask("SHOW STATUS LIKE 'Binlog_snapshot_%'");
        while (rows.Next()) {
          const std::string name = rows.Bytes(1);
          if (name == "Binlog_snapshot_file") place.file = WithoutFolder(rows.Bytes(2));
          if (name == "Binlog_snapshot_position") place.offset = rows.Uint(2);
        }
        if (!place.file.empty()) return place;
        return absl::FailedPreconditionError(
            fmt::format("{}: SHOW STATUS LIKE 'Binlog_snapshot_%' has no Binlog_snapshot_file, so it is not "
                        "known how far its binary log is committed; is log_bin ON, and is this MariaDB?",
                        pair.pair.master.ToString()));
      });
}

absl::StatusOr<LogPlace> Changes::AwaitNow(ShardSpace space, const PairNow& pair) {
  FilePlace written;
  absl::Status status =
      fleet_->RunOn(pair.pair.master, {.space = space, .shard = {}}, Repeat::kAlways,
                    [&](Connection& connection) -> absl::Status {
                      Rows rows = connection.Ask("SHOW MASTER STATUS");
                      if (!rows.Next()) return NoLogError(pair.pair.master);
                      written = {.file = WithoutFolder(rows.Bytes(1)), .offset = rows.Uint(2)};
                      return absl::OkStatus();
                    });
  if (!status.ok()) return WithRights(status);
  const auto deadline = std::chrono::steady_clock::now() + kMaxCommit;
  for (;;) {
    const auto visible = Visible(space, pair);
    if (!visible.ok()) return visible.status();
    if (written.IsAtOrBefore(*visible)) break;
    if (auto over = CheckCall(); !over.ok()) return over;
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::UnavailableError(fmt::format(
          "{}: commits are waiting, for a slave perhaps (see kv shards status); try again when they go on",
          pair.pair.master.ToString()));
    }
    std::this_thread::sleep_for(kCommitPoll);
  }
  return LogPlace{.done = pair.answer.end, .part = {}, .rows = 0, .at_ms = 0};
}

absl::StatusOr<std::string> Changes::OldestFile(ShardSpace space, const Host& host) {
  return fleet_->RunOn(host, {.space = space, .shard = {}}, Repeat::kAlways,
                       [&](Connection& connection) -> absl::StatusOr<std::string> {
                         Rows rows = connection.Ask("SHOW BINARY LOGS");
                         if (rows.Next()) return rows.Bytes(1);
                         return NoLogError(host);
                       });
}

absl::StatusOr<LogPlace> Changes::Oldest(ShardSpace space, const PairNow& pair, uint64_t& since_ms) {
  const Host& host = pair.pair.master;
  const auto file = OldestFile(space, host);
  if (!file.ok()) return WithRights(file.status());
  auto session = LogSession::OpenFile(host, fleet_->options(), *file);
  if (!session.ok()) return session.status();
  for (;;) {
    const auto bytes = (*session)->Next();
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) {
      return absl::UnavailableError(
          fmt::format("{}: {} does not say what is before it", host.ToString(), *file));
    }
    const auto event = DecodeEvent(*bytes);
    if (!event.ok()) return event.status();
    if (!event->Is(EventType::kGtidList)) continue;
    const auto list = DecodeGtidList(*event);
    if (!list.ok()) return list.status();
    LogPlace place;
    for (const LogGtid& gtid : *list) {
      if (!place.done.Has(gtid)) place.done.Add(gtid);
    }
    since_ms = event->seconds * kMsPerSecond;
    return place;
  }
}

bool Changes::AwaitsMap(ShardSpace space, const PairNow& pair, uint32_t shard) {
  const ShardRange* const range = fleet_->map(space).Find(shard);
  if (range == nullptr || range->master != pair.pair.master) return false;
  // The move may also have been undone, or the shard have come back.
  const auto moved = fleet_->RunOn(
      pair.pair.master, {.space = space, .shard = shard}, Repeat::kAlways,
      [&](Connection& connection) -> absl::StatusOr<bool> { return HasMoved(connection, space, shard); });
  return !moved.ok() || *moved;
}

std::shared_ptr<HostLog> Changes::LogOf(const PairNow& pair) {
  const MutexLock lock(mutex_);
  std::shared_ptr<HostLog>& log = logs_[pair.pair.master];
  if (!log) log = std::make_shared<HostLog>(pair.pair.master, fleet_->options(), unused_after_);
  return log;
}

// ---- positions ----

absl::StatusOr<std::string> Changes::Start(const DatasetSpec& spec, ChangesFrom from) {
  const ShardSpace space = SpaceOf(spec.shape);
  std::vector<PairNow> pairs = Ask(space, Patience::kWhole);
  ChangePosition position{.made_ms = std::numeric_limits<uint64_t>::max(), .whole_ms = 0, .pairs = {}};
  std::vector<absl::StatusOr<LogPlace>> places(pairs.size(), LogPlace());
  ForEach(space, pairs, [&](PairNow& pair, size_t i) {
    if (!pair.answer.status.ok()) {
      places[i] = pair.answer.status;
      return;
    }
    uint64_t since = 0;
    places[i] = from == ChangesFrom::kNow ? AwaitNow(space, pair) : Oldest(space, pair, since);
    if (from == ChangesFrom::kNow) LogOf(pair)->Watch(pair.answer.end);
  });
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!places[i].ok()) return places[i].status();
    const MappedPair& pair = pairs[i].pair;
    const uint64_t now = pairs[i].answer.now_ms;
    position.made_ms = std::min(position.made_ms, now);
    position.pairs.push_back({.master = pair.master.ToString(),
                              .slave = pair.slave.ToString(),
                              .domain = pairs[i].answer.domain,
                              .complete_ms = from == ChangesFrom::kNow ? now : 0,
                              .place = *std::move(places[i])});
  }
  if (from == ChangesFrom::kNow) position.whole_ms = position.made_ms;
  position.seal = SealHosts(position.pairs, Secret());
  return position.Encode();
}

absl::Status Changes::Resume(ShardSpace space, const ChangePosition& position, std::vector<PairNow>& pairs,
                             ChangePosition& now) {
  std::vector<MappedPair> mapped;
  for (const PairNow& pair : pairs) mapped.push_back(pair.pair);
  const auto matches = MatchPairs(position, mapped);
  std::vector<bool> known(position.pairs.size(), false);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const PairNow& pair = pairs[i];
    ChangePosition::Pair next;
    if (matches[i]) {
      known[*matches[i]] = true;
      next = position.pairs[*matches[i]];
    } else {
      // The pair has got its first shards since. Its log has all of their changes if it begins before that.
      if (!pair.answer.status.ok()) return pair.answer.status;
      uint64_t since = 0;
      auto oldest = Oldest(space, pair, since);
      if (!oldest.ok()) return oldest.status();
      const bool is_purged = !oldest->done.last().empty();
      if (is_purged && since + kMapDelayMs > position.made_ms) {
        return TooLate(fmt::format("{} has shards now, and its binary logs do not go back far enough",
                                   pair.pair.master.ToString()));
      }
      next.place = *std::move(oldest);
    }
    next.master = pair.pair.master.ToString();
    next.slave = pair.pair.slave.ToString();
    if (pair.pair.domain) next.domain = *pair.pair.domain;
    now.pairs.push_back(std::move(next));
  }
  // The log of a pair alone has what was written to it before its last shard was moved away.
  const auto former = std::count(known.begin(), known.end(), false);
  if (former > 0 && !HostsAreSealed(position, Secret())) {
    return TooLate(
        "it names servers that have no shards now, and was made by a program with another account");
  }
  if (static_cast<size_t>(former) > kMaxFormerPairs) {
    return TooLate(fmt::format("it names {} pairs of servers that have no shards now; the limit is {}",
                               former, kMaxFormerPairs));
  }
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i]) continue;
    if (auto over = CheckCall(); !over.ok()) return over;
    pairs.push_back(AskFormer(position.pairs[i]));
    now.pairs.push_back(position.pairs[i]);
  }
  return absl::OkStatus();
}

Changes::PairNow Changes::AskFormer(const ChangePosition::Pair& pair) {
  PairNow former;
  bool late = false;
  for (const std::string& name : {pair.master, pair.slave}) {
    const auto host = Host::Parse(name);
    if (!host.ok()) continue;
    former.pair.master = *host;
    // A host that is read-only, as slaves are, refuses: what it has may not be all.
    former.answer = asks_.AskAll({&former.pair.master, 1}, Patience::kShort).front();
    if (former.answer.status.ok()) return former;
    late = late || former.answer.is_late;
  }
  former.answer.status = absl::UnavailableError(
      fmt::format("from: the pair {} and {} has no shards any more, and what was written there before is to "
                  "be read from its master, which does not answer: {}; without it, begin again with "
                  "--snapshot",
                  pair.master, pair.slave, std::string(former.answer.status.message())));
  former.answer.is_late = late;
  return former;
}

absl::StatusOr<UnitChanges> Changes::Read(const DatasetSpec& spec, std::shared_ptr<const Dataset> dataset,
                                          std::string_view position, const ChangeLimits& limits) {
  const auto from = ChangePosition::Decode(position);
  if (!from.ok()) return from.status();
  const ShardSpace space = SpaceOf(spec.shape);
  std::vector<PairNow> pairs = Ask(space, Patience::kShort);
  const size_t mapped = pairs.size();  // those after these have no shards any more
  ChangePosition now{.made_ms = from->made_ms, .whole_ms = from->whole_ms, .pairs = {}};
  if (auto status = Resume(space, *from, pairs, now); !status.ok()) return status;
  now.seal = SealHosts(now.pairs, Secret());
  const std::vector<ChangePosition::Pair> before = now.pairs;
  DatasetTables tables{.space = space,
                       .name = dataset->family.name,
                       .shape = spec.shape,
                       .type = spec.type,
                       .domains = {},
                       .whole_ms = from->whole_ms};
  for (const ChangePosition::Pair& pair : now.pairs) tables.domains.insert(pair.domain);

  // The pair that is furthest behind comes first, so that a busy pair does not keep the others back.
  std::vector<size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return now.pairs[a].complete_ms < now.pairs[b].complete_ms; });

  UnitChanges result{.changes = {}, .position = std::string(position), .complete_until_ms = 0};
  UnitValues values(fleet_, spec, std::move(dataset), limits.bytes);
  uint64_t complete = std::numeric_limits<uint64_t>::max();
  uint64_t made = std::numeric_limits<uint64_t>::max();
  absl::Status failed;
  bool is_whole = true;
  for (const PairNow& pair : pairs) {
    if (pair.answer.status.ok()) made = std::min(made, pair.answer.now_ms);
  }
  for (const size_t i : order) {
    if (auto over = CheckCall(); !over.ok()) return over;
    const PairNow& pair = pairs[i];
    ChangePosition::Pair& mine = now.pairs[i];
    absl::Status status = pair.answer.status;
    // A place that is not before the log's end, nor the same, is of transactions that were lost, which the
    // log says when it is read.
    const bool has_news = status.ok() && (mine.place.part || mine.place.done != pair.answer.end);
    LogPage page{.units = {}, .next = mine.place, .at_end = true};
    if (has_news && result.changes.size() >= limits.changes) {
      is_whole = false;
      continue;
    }
    if (has_news) {
      tables.awaits_map = [&](uint32_t shard) { return AwaitsMap(space, pair, shard); };
      const auto visible = Visible(space, pair);
      auto read = !visible.ok()
                      ? absl::StatusOr<LogPage>(visible.status())
                      : LogOf(pair)->Read(tables, mine.place, limits.changes - result.changes.size(),
                                          pair.answer.end, *visible);
      status = read.status();
      if (read.ok()) page = *std::move(read);
    }
    // The changes of the other pairs are told while one cannot be reached.
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
      // A host that hangs is told of once it has failed.
      if (failed.ok() && !pair.answer.is_late) failed = std::move(status);
      is_whole = false;
      continue;
    }
    if (!status.ok()) return status;
    now.made_ms = made;
    const auto read = values.Append(
        page.units,
        [&](const LogPlace& after) {
          mine.place = after;
          return now.Encode();
        },
        result.changes);
    if (!read.ok()) return read.status();
    if (!*read) {
      // The page has as many bytes as it may have.
      result.position = result.changes.back().position;
      return result;
    }
    mine.place = page.next;
    if (page.at_end) {
      if (i < mapped) LogOf(pair)->Watch(pair.answer.end);
      mine.complete_ms = pair.answer.now_ms;
      complete = std::min(complete, pair.answer.now_ms);
    } else {
      is_whole = false;
    }
  }
  if (!failed.ok() && result.changes.empty()) return failed;
  // The position stays the same where there is nothing to tell, so that nobody looks again because of it.
  bool renews =
      !result.changes.empty() || (is_whole && pairs.size() > mapped) || made >= from->made_ms + kRenewMs;
  for (size_t i = 0; i < before.size() && !is_whole; ++i) {
    renews = renews || now.pairs[i].place != before[i].place;
  }
  if (is_whole) {
    now.pairs.resize(mapped);
    now.seal = SealHosts(now.pairs, Secret());
    now.whole_ms = complete;
  }
  if (renews) result.position = now.Encode();
  if (is_whole) result.complete_until_ms = complete;
  return result;
}

}  // namespace kvstore::mysql

#include "backends/cached/servers/memcached.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "backends/cached/servers/channel.h"
#include "backends/cached/servers/connections.h"
#include "backends/cached/servers/memcached_answers.h"
#include "base/big_endian.h"
#include "base/clock.h"

namespace kvstore::cached {
namespace {

/// The kinds of items, as their client flags tell them; memcached gives a lease 0.
constexpr uint64_t kValue = 1;
constexpr uint64_t kMarks = 2;
constexpr size_t kMarkBytes = 16;
/// How often a change is tried again that another client has come before.
constexpr int kRounds = 100;

/// A connection, and the answers to what was sent on it.
class MemcachedConnection {
 public:
  MemcachedConnection(Channel channel, std::chrono::milliseconds timeout)
      : channel_(std::move(channel)), timeout_(timeout) {}

  /// Sends commands, and returns the answers to so many of them.
  absl::StatusOr<std::vector<MemcachedAnswer>> Ask(std::string_view commands, size_t answers) {
    channel_.EndAt(std::chrono::steady_clock::now() + timeout_);
    // Bytes that are there already are not the answer to these commands.
    if (auto status = channel_.CheckUnused(); !status.ok()) return status;
    if (auto status = channel_.Send(commands); !status.ok()) return status;
    std::vector<MemcachedAnswer> all;
    all.reserve(answers);
    while (all.size() < answers) {
      auto answer = answers_.Next();
      if (!answer.ok()) return answer.status();
      if (*answer) {
        all.push_back(**std::move(answer));
        continue;
      }
      if (auto status = channel_.Receive(answers_.bytes()); !status.ok()) return status;
    }
    if (!answers_.empty()) return absl::UnavailableError("answers more than it was asked");
    return all;
  }

 private:
  Channel channel_;
  MemcachedAnswers answers_;
  const std::chrono::milliseconds timeout_;
};

/// The marks of an item: kMarkBytes each, the mark and when it was made (ms since 1970), big-endian.
std::string WithoutMark(std::string_view marks, uint64_t mark) {
  const uint64_t now = WallClockMs();
  std::string left;
  for (; marks.size() >= kMarkBytes; marks.remove_prefix(kMarkBytes)) {
    const uint64_t made = ReadBigEndian<uint64_t>(marks.substr(8));
    // The item lives on as long as there are new marks, those of the dead do not. Twice the time, as the
    // writers' clocks need not agree.
    const bool expired = made + uint64_t{kMarkSeconds} * 2000 < now;
    if (ReadBigEndian<uint64_t>(marks) != mark && !expired) left.append(marks.substr(0, kMarkBytes));
  }
  return left;
}

std::string WithMark(std::string_view marks, uint64_t mark) {
  std::string more = WithoutMark(marks, mark);
  AppendBigEndian(more, mark);
  AppendBigEndian(more, WallClockMs());
  return more;
}

class Memcached : public Server {
 public:
  explicit Memcached(const ServerOptions& options)
      : name_("memcached " + options.address),
        guard_(options.guard),
        ask_guard_(fmt::format("mg {} v c f\r\n", guard_)),
        connections_(
            [options]() -> absl::StatusOr<std::unique_ptr<MemcachedConnection>> {
              auto channel = Channel::Connect(options);
              if (!channel.ok()) return channel.status();
              return std::make_unique<MemcachedConnection>(*std::move(channel), options.timeout);
            },
            options) {}

  const std::string& name() const override { return name_; }
  uint32_t connections() const override { return connections_.count(); }

  absl::StatusOr<LookedAll> Look(std::span<const Key> keys, bool lease) override {
    std::string commands;
    for (const Key& key : keys) {
      fmt::format_to(std::back_inserter(commands), "mg {} v c f", key.name);
      if (lease) fmt::format_to(std::back_inserter(commands), " N{}", kLeaseSeconds);
      commands += "\r\n";
    }
    commands += ask_guard_;
    auto answers = Ask(commands, keys.size() + 1);
    if (!answers.ok()) return answers.status();
    LookedAll all;
    all.guard = TextOf(answers->back());
    answers->pop_back();
    all.keys.reserve(keys.size());
    for (MemcachedAnswer& answer : *answers) all.keys.push_back(LookedOf(answer));
    return all;
  }

  absl::Status Fill(std::span<const Filling> fillings, uint32_t ttl_s) override {
    std::string commands;
    for (const auto& [key, lease, value] : fillings) {
      if (value.size() > kMaxValueBytes) {
        // It is too large for the server, whose error would cost the connection.
        fmt::format_to(std::back_inserter(commands), "md {} C{}\r\n", key.name, lease);
      } else {
        fmt::format_to(std::back_inserter(commands), "ms {} {} C{} F{} T{}\r\n{}\r\n", key.name, value.size(),
                       lease, kValue, ttl_s, value);
      }
    }
    return Ask(commands, fillings.size()).status();
  }

  absl::Status Release(const Key& key, uint64_t lease) override {
    return Ask(fmt::format("md {} C{}\r\n", key.name, lease), 1).status();
  }

  absl::StatusOr<Marked> Mark(std::string_view key, uint64_t mark) override {
    Marked marked;
    auto status = Change(
        key,
        [&](const std::optional<MemcachedAnswer>& item) {
          const bool marks = item && item->client == kMarks;
          return std::optional<std::string>(WithMark(marks ? item->value : "", mark));
        },
        &marked);
    if (!status.ok()) return status;
    return marked;
  }

  absl::Status Unmark(std::string_view key, uint64_t mark, uint64_t version) override {
    if (version != 0) {
      auto removed = Ask(fmt::format("md {} C{}\r\n", key, version), 1);
      if (!removed.ok()) return removed.status();
      if (removed->front().code == "HD") return absl::OkStatus();
    }
    return Change(key, [&](const std::optional<MemcachedAnswer>& item) -> std::optional<std::string> {
      if (!item || item->client != kMarks) return std::nullopt;
      std::string left = WithoutMark(item->value, mark);
      if (left.empty()) return std::nullopt;
      return left;
    });
  }

  absl::Status Forget(std::string_view key) override {
    return Change(key, [&](const std::optional<MemcachedAnswer>& item) -> std::optional<std::string> {
      if (!item || item->client != kMarks) return std::nullopt;
      return item->value;
    });
  }

  absl::StatusOr<std::optional<std::string>> ReadGuard() override {
    auto answers = Ask(ask_guard_, 1);
    if (!answers.ok()) return answers.status();
    return TextOf(answers->front());
  }

  absl::StatusOr<bool> ChangeGuard(const MakeGuard& make) override {
    // On one connection: the numbers that are compared begin anew in each run of the server.
    return Named(connections_.Run([&](MemcachedConnection& connection) -> absl::StatusOr<bool> {
      auto answers = connection.Ask(ask_guard_, 1);
      if (!answers.ok()) return answers.status();
      const uint64_t cas = answers->front().cas;
      const std::optional<std::string> read = TextOf(answers->front());
      const std::optional<std::string> text = make(read);
      if (!text) return true;
      const std::string condition = answers->front().code == "VA" ? fmt::format("C{}", cas) : "ME";
      answers = connection.Ask(
          fmt::format("ms {} {} {} F{} T0\r\n{}\r\n", guard_, text->size(), condition, kValue, *text), 1);
      if (!answers.ok()) return answers.status();
      return answers->front().code == "HD";
    }));
  }

 private:
  absl::StatusOr<std::vector<MemcachedAnswer>> Ask(std::string_view commands, size_t answers) {
    return Named(
        connections_.Run([&](MemcachedConnection& connection) { return connection.Ask(commands, answers); }));
  }

  /// The result, or its error with the name of the server.
  template <typename T>
  absl::StatusOr<T> Named(absl::StatusOr<T> result) const {
    if (result.ok()) return result;
    return Error(name_, result.status());
  }

  static std::optional<std::string> TextOf(MemcachedAnswer& answer) {
    if (answer.code != "VA" || answer.client != kValue) return std::nullopt;
    return std::move(answer.value);
  }

  static Looked LookedOf(MemcachedAnswer& answer) {
    using Kind = Looked::Kind;
    if (answer.code != "VA") return {.kind = Kind::kNothing, .value = {}, .lease = 0};
    if (answer.client == kValue) return {.kind = Kind::kHit, .value = std::move(answer.value), .lease = 0};
    if (answer.client == kMarks) return {.kind = Kind::kMarked, .value = {}, .lease = 0};
    return {.kind = answer.won ? Kind::kLeased : Kind::kTaken, .value = {}, .lease = answer.cas};
  }

  /// Reads an item and replaces it by the marks that `change` makes of it, or removes it for nullopt, until
  /// nobody else has changed it in between. `marked` receives what Mark returns; may be null.
  template <typename Make>
  absl::Status Change(std::string_view key, Make make, Marked* marked = nullptr) {
    for (int round = 0; round < kRounds; ++round) {
      auto read = Ask(fmt::format("mg {} v c f\r\n", key), 1);
      if (!read.ok()) return read.status();
      std::optional<MemcachedAnswer> item;
      if (read->front().code == "VA") item = std::move(read->front());
      const std::optional<std::string> marks = make(item);
      if (!marks && !item) return absl::OkStatus();
      std::string command =
          marks ? fmt::format("ms {} {} {} F{} T{} c\r\n{}\r\n", key, marks->size(),
                              item ? fmt::format("C{}", item->cas) : "ME", kMarks, kMarkSeconds, *marks)
                : fmt::format("md {} C{}\r\n", key, item->cas);
      if (marked != nullptr) command += ask_guard_;
      auto done = Ask(command, marked != nullptr ? 2 : 1);
      if (!done.ok()) return done.status();
      if (done->front().code != "HD") continue;
      if (marked == nullptr) return absl::OkStatus();
      marked->guard = TextOf(done->back());
      // Removing the item as a whole would take the marks of others with it.
      if (marks->size() == kMarkBytes) marked->version = done->front().cas;
      return absl::OkStatus();
    }
    return absl::UnavailableError(fmt::format("{}: others change key '{}' without end", name_, key));
  }

  const std::string name_;
  /// The item of the guard. It has no time to live, so that it goes only with the memory of the server, or
  /// when that runs full of what is used more often.
  const std::string guard_;
  const std::string ask_guard_;
  Connections<MemcachedConnection> connections_;
};

}  // namespace

std::unique_ptr<Server> OpenMemcached(const ServerOptions& options) {
  return std::make_unique<Memcached>(options);
}

}  // namespace kvstore::cached

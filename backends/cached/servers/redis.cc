#include "backends/cached/servers/redis.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "backends/cached/servers/channel.h"
#include "backends/cached/servers/connections.h"
#include "backends/cached/servers/redis_answers.h"
#include "backends/cached/servers/shown.h"
#include "base/random_number.h"

namespace kvstore::cached {
namespace {

/// Returns for each key a letter, and for 'H' the value after it; then the guard.
///   KEYS  the keys; ARGV  the guard's key, the lease to take or '', for how long (ms), then the part of each
///   key
constexpr std::string_view kLookText = R"lua(
local out = {}
for i, key in ipairs(KEYS) do
  local part = ARGV[i + 3]
  local value = redis.call('GET', key .. ':v' .. part)
  if redis.call('EXISTS', key .. ':m') == 1 then
    out[i] = 'M'
  elseif value then
    out[i] = 'H' .. value
  elseif ARGV[2] == '' then
    out[i] = redis.call('EXISTS', key .. ':l' .. part) == 1 and 'T' or 'N'
  elseif redis.call('SET', key .. ':l' .. part, ARGV[2], 'NX', 'PX', ARGV[3]) then
    out[i] = 'L'
  else
    out[i] = 'T'
  end
end
out[#KEYS + 1] = redis.call('GET', ARGV[1]) or ''
return out
)lua";

///   KEYS  the key; ARGV  part, lease, value, time to live (ms); without the last two the lease is given back
constexpr std::string_view kFillText = R"lua(
local lease = KEYS[1] .. ':l' .. ARGV[1]
if redis.call('GET', lease) ~= ARGV[2] then return 0 end
redis.call('DEL', lease)
if ARGV[4] then redis.call('SET', KEYS[1] .. ':v' .. ARGV[1], ARGV[3], 'PX', ARGV[4]) end
return 1
)lua";

/// Removes the values and the leases of a key; the beginning of the scripts below.
constexpr std::string_view kForgetAll = R"lua(
local function forget()
  for part in string.gmatch('adc', '.') do
    redis.call('DEL', KEYS[1] .. ':v' .. part, KEYS[1] .. ':l' .. part)
  end
end
)lua";

///   KEYS  the key; ARGV  mark, for how long it is kept (s), the guard's key
constexpr std::string_view kMarkText = R"lua(
local marks = KEYS[1] .. ':m'
local now = tonumber(redis.call('TIME')[1])
forget()
local all = redis.call('HGETALL', marks)
for i = 1, #all, 2 do
  if tonumber(all[i + 1]) + tonumber(ARGV[2]) < now then redis.call('HDEL', marks, all[i]) end
end
redis.call('HSET', marks, ARGV[1], now)
redis.call('EXPIRE', marks, ARGV[2])
return redis.call('GET', ARGV[3]) or ''
)lua";

///   KEYS  the key; ARGV  mark
constexpr std::string_view kUnmarkText = R"lua(
if redis.call('HDEL', KEYS[1] .. ':m', ARGV[1]) == 0 then forget() end
return 1
)lua";

constexpr std::string_view kForgetText = R"lua(
forget()
return 1
)lua";

///   KEYS  the guard's key; ARGV  the text that was read or '', the text
constexpr std::string_view kReplaceGuardText = R"lua(
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
)lua";

using AnswerKind = RedisAnswer::Kind;

/// A command as it is sent: an array of texts.
std::string Encode(std::span<const std::string_view> words) {
  std::string command;
  fmt::format_to(std::back_inserter(command), "*{}\r\n", words.size());
  for (const std::string_view word : words) {
    fmt::format_to(std::back_inserter(command), "${}\r\n", word.size());
    command.append(word).append("\r\n");
  }
  return command;
}

/// A connection, and the run of the server that it leads to.
class RedisConnection {
 public:
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Open(const ServerOptions& options) {
    auto channel = Channel::Connect(options);
    if (!channel.ok()) return channel.status();
    auto connection =
        std::unique_ptr<RedisConnection>(new RedisConnection(*std::move(channel), options.timeout));
    if (!options.password.empty()) {
      std::vector<std::string_view> login = {"AUTH"};
      if (!options.user.empty()) login.push_back(options.user);
      login.push_back(options.password);
      if (auto answer = connection->Command(login); !answer.ok()) return answer.status();
    }
    const auto info = connection->Command(std::vector<std::string_view>{"INFO", "server"});
    if (!info.ok()) return info.status();
    constexpr std::string_view kRun = "run_id:";
    const std::string_view all = info->text;
    const size_t at = all.find(kRun);
    if (at == std::string_view::npos) return absl::UnavailableError("does not tell its run_id (INFO server)");
    const std::string_view run = all.substr(at + kRun.size());
    connection->run_ = run.substr(0, run.find_first_of("\r\n"));
    return connection;
  }

  const std::string& run() const { return run_; }

  /// Sends a command, and returns its answer. UNAVAILABLE for an error.
  ///
  /// most_parts  How many parts a list may have that is the answer.
  absl::StatusOr<RedisAnswer> Command(std::span<const std::string_view> words, size_t most_parts = 0) {
    channel_.EndAt(std::chrono::steady_clock::now() + timeout_);
    // Bytes that are there already are not the answer to this command.
    if (auto status = channel_.CheckUnused(); !status.ok()) return status;
    if (auto status = channel_.Send(Encode(words)); !status.ok()) return status;
    for (;;) {
      auto answer = answers_.Next(most_parts);
      if (!answer.ok()) return answer.status();
      if (!*answer) {
        if (auto status = channel_.Receive(answers_.bytes()); !status.ok()) return status;
        continue;
      }
      if (!answers_.empty()) return absl::UnavailableError("answers more than it was asked");
      if ((*answer)->kind != AnswerKind::kError) return **std::move(answer);
      return absl::UnavailableError(fmt::format("refuses: {}", Shown((*answer)->text)));
    }
  }

 private:
  RedisConnection(Channel channel, std::chrono::milliseconds timeout)
      : channel_(std::move(channel)), timeout_(timeout) {}

  Channel channel_;
  RedisAnswers answers_;
  const std::chrono::milliseconds timeout_;
  std::string run_;
};

/// The name by which Redis knows a script: its SHA-1, in hexadecimal.
std::string NameOf(std::string_view script) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(script.data(), script.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), size});
}

/// A script, whose text is a constant, and its name.
class Script {
 public:
  explicit Script(std::string text) : text_(std::move(text)), name_(NameOf(text_)) {}
  std::string_view text() const { return text_; }
  std::string_view name() const { return name_; }

 private:
  const std::string text_;
  const std::string name_;
};

struct Scripts {
  const Script look{std::string(kLookText)};
  const Script fill{std::string(kFillText)};
  const Script mark{std::string(kForgetAll) + std::string(kMarkText)};
  const Script unmark{std::string(kForgetAll) + std::string(kUnmarkText)};
  const Script forget{std::string(kForgetAll) + std::string(kForgetText)};
  const Script replace_guard{std::string(kReplaceGuardText)};
};

const Scripts& AllScripts() {
  static const Scripts scripts;
  return scripts;
}

class Redis : public Server {
 public:
  explicit Redis(const ServerOptions& options)
      : name_("redis " + options.address),
        guard_(options.guard),
        connections_([options] { return RedisConnection::Open(options); }, options) {}

  const std::string& name() const override { return name_; }
  uint32_t connections() const override { return connections_.count(); }

  absl::StatusOr<LookedAll> Look(std::span<const Key> keys, bool lease) override {
    const uint64_t mine = RandomNumber();
    std::vector<std::string_view> names;
    const std::string mine_text = lease ? std::to_string(mine) : "";
    const std::string lease_ms = std::to_string(kLeaseSeconds * 1000);
    std::vector<std::string_view> arguments = {guard_, mine_text, lease_ms};
    for (const Key& key : keys) {
      names.push_back(key.name);
      arguments.emplace_back(&key.part, 1);
    }
    LookedAll all;
    auto status =
        Run(scripts_.look, names, arguments, [&](const RedisAnswer& answer, const std::string& run) {
          if (answer.kind != AnswerKind::kList || answer.parts.size() != keys.size() + 1) return false;
          all.keys.clear();
          for (size_t i = 0; i < answer.parts.size(); ++i) {
            if (answer.parts[i].kind != AnswerKind::kText) return false;
            const std::string_view text = answer.parts[i].text;
            if (i == keys.size()) {
              all.guard = GuardOf(text, run);
            } else if (!AddLooked(text, mine, all.keys)) {
              return false;
            }
          }
          return true;
        });
    if (!status.ok()) return status;
    return all;
  }

  absl::Status Fill(std::span<const Filling> fillings, uint32_t ttl_s) override {
    const std::string ttl_ms = std::to_string(uint64_t{ttl_s} * 1000);
    for (const auto& [key, lease, value] : fillings) {
      const std::string lease_text = std::to_string(lease);
      auto status =
          value.size() > kMaxValueBytes
              ? Release(key, lease)
              : Run(scripts_.fill, {key.name}, {std::string_view(&key.part, 1), lease_text, value, ttl_ms});
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Release(const Key& key, uint64_t lease) override {
    const std::string lease_text = std::to_string(lease);
    return Run(scripts_.fill, {key.name}, {std::string_view(&key.part, 1), lease_text});
  }

  absl::StatusOr<Marked> Mark(std::string_view key, uint64_t mark) override {
    const std::string mark_text = std::to_string(mark);
    const std::string kept = std::to_string(kMarkSeconds);
    Marked marked;
    auto status = Run(scripts_.mark, {key}, {mark_text, kept, guard_},
                      [&](const RedisAnswer& answer, const std::string& run) {
                        if (answer.kind != AnswerKind::kText) return false;
                        marked.guard = GuardOf(answer.text, run);
                        return true;
                      });
    if (!status.ok()) return status;
    return marked;
  }

  absl::Status Unmark(std::string_view key, uint64_t mark, uint64_t /*version*/) override {
    const std::string mark_text = std::to_string(mark);
    return Run(scripts_.unmark, {key}, {mark_text});
  }

  absl::Status Forget(std::string_view key) override { return Run(scripts_.forget, {key}, {}); }

  absl::StatusOr<std::optional<std::string>> ReadGuard() override {
    std::optional<std::string> text;
    auto status = connections_.Run([&](RedisConnection& connection) -> absl::Status {
      auto stored = StoredGuard(connection);
      if (!stored.ok()) return stored.status();
      text = GuardOf(*stored, connection.run());
      return absl::OkStatus();
    });
    if (!status.ok()) return Named(status);
    return text;
  }

  absl::StatusOr<bool> ChangeGuard(const MakeGuard& make) override {
    bool replaced = false;
    auto status = connections_.Run([&](RedisConnection& connection) -> absl::Status {
      const auto stored = StoredGuard(connection);
      if (!stored.ok()) return stored.status();
      const auto text = make(GuardOf(*stored, connection.run()));
      replaced = !text;
      if (!text) return absl::OkStatus();
      const std::string next = connection.run() + " " + *text;
      const auto answer = Evaluate(connection, scripts_.replace_guard, {guard_}, {*stored, next});
      if (!answer.ok()) return answer.status();
      replaced = answer->kind == AnswerKind::kNumber && answer->number == 1;
      return absl::OkStatus();
    });
    if (!status.ok()) return Named(status);
    return replaced;
  }

 private:
  absl::Status Named(const absl::Status& status) const { return Error(name_, status); }

  /// The guard as it is stored, with the run in front; empty if there is none.
  absl::StatusOr<std::string> StoredGuard(RedisConnection& connection) const {
    const auto answer = connection.Command(std::vector<std::string_view>{"GET", guard_});
    if (!answer.ok()) return answer.status();
    return answer->text;
  }

  /// The guard's text, if it was stored in this run of the server.
  static std::optional<std::string> GuardOf(std::string_view stored, const std::string& run) {
    if (!stored.starts_with(run + " ")) return std::nullopt;
    return std::string(stored.substr(run.size() + 1));
  }

  static bool AddLooked(std::string_view text, uint64_t mine, std::vector<Looked>& all) {
    using Kind = Looked::Kind;
    if (text.empty()) return false;
    Looked looked;
    switch (text.front()) {
      case 'H':
        looked.kind = Kind::kHit;
        break;
      case 'L':
        looked.kind = Kind::kLeased;
        break;
      case 'T':
        looked.kind = Kind::kTaken;
        break;
      case 'M':
        looked.kind = Kind::kMarked;
        break;
      case 'N':
        looked.kind = Kind::kNothing;
        break;
      default:
        return false;
    }
    if (looked.kind == Kind::kHit) looked.value = text.substr(1);
    if (looked.kind == Kind::kLeased) looked.lease = mine;
    all.push_back(std::move(looked));
    return true;
  }

  /// Runs a script: by its hash, or whole where the server does not know it yet.
  static absl::StatusOr<RedisAnswer> Evaluate(RedisConnection& connection, const Script& script,
                                              const std::vector<std::string_view>& keys,
                                              const std::vector<std::string_view>& arguments) {
    const std::string count = std::to_string(keys.size());
    std::vector<std::string_view> words = {"EVALSHA", script.name(), count};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    // A script answers with a list of one part for each key and the guard, or with no list.
    auto answer = connection.Command(words, keys.size() + 1);
    if (answer.ok() || answer.status().message().find("NOSCRIPT") == absl::string_view::npos) return answer;
    words[0] = "EVAL";
    words[1] = script.text();
    return connection.Command(words, keys.size() + 1);
  }

  /// Runs a script, and gives its answer and the server's run to `read`, which returns whether it is what it
  /// must be.
  template <typename Read>
  absl::Status Run(const Script& script, const std::vector<std::string_view>& keys,
                   const std::vector<std::string_view>& arguments, Read read) {
    auto status = connections_.Run([&](RedisConnection& connection) -> absl::Status {
      const auto answer = Evaluate(connection, script, keys, arguments);
      if (!answer.ok()) return answer.status();
      if (!read(*answer, connection.run()))
        return absl::UnavailableError("answers what no server of Redis does");
      return absl::OkStatus();
    });
    return status.ok() ? status : Named(status);
  }
  absl::Status Run(const Script& script, const std::vector<std::string_view>& keys,
                   const std::vector<std::string_view>& arguments) {
    return Run(script, keys, arguments, [](const RedisAnswer&, const std::string&) { return true; });
  }

  const Scripts& scripts_ = AllScripts();
  const std::string name_;
  const std::string guard_;
  Connections<RedisConnection> connections_;
};

}  // namespace

std::unique_ptr<Server> OpenRedis(const ServerOptions& options) { return std::make_unique<Redis>(options); }

}  // namespace kvstore::cached

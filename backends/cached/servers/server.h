#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::cached {

class TlsClient;

/// How a cache server is reached.
struct ServerOptions {
  std::string address;             ///< "host:port"
  std::string guard = "kv:guard";  ///< The key of the guard, so that others may have one on the same server.
  std::chrono::milliseconds timeout{250};  ///< To connect, and for an answer.
  uint32_t connections = 16;               ///< At most.
  std::string user;                        ///< Redis only; empty: the default one.
  std::string password;                    ///< Redis only; empty: none is asked for.
  std::shared_ptr<TlsClient> tls;          ///< Null: connections are not encrypted.
};

/// The answer of a cache server for one key.
struct Looked {
  enum class Kind : uint8_t {
    kHit,     ///< It has a value.
    kLeased,  ///< It has none, and whoever has looked may fill it: `lease` says that this was it.
    kTaken,   ///< It has none, and somebody else may fill it.
    kMarked,  ///< A writer is at work, or has died at it: only the backend knows the value.
    kNothing  ///< It has none, and no lease was asked for.
  };
  Kind kind = Kind::kNothing;
  std::string value;
  uint64_t lease = 0;
};

/// The answer of a cache server for several keys, with its guard.
struct LookedAll {
  std::vector<Looked> keys;  ///< In the order of the keys.
  /// The guard, read after all of the keys; nullopt: the server has none.
  std::optional<std::string> guard;
};

/// The answer of a server that has set a mark.
struct Marked {
  std::optional<std::string> guard;  ///< Read after the key was marked.
  /// The key's version, opaque: while the key has it, nothing else was done to the key.
  uint64_t version = 0;
};

/// A server that keeps values by keys for some time, and forgets them when it likes. Thread-safe.
///
/// A key has a value, or a lease (the right to fill it), or the marks of writers, or nothing. A key may have
/// several *parts* with a value each, which writers mark together. Beside the keys a server has one *guard*,
/// a text that says what its keys are worth (guard.h).
///
/// tests/model/cache.pml is the model of how these are used. All calls fail with UNAVAILABLE, which names the
/// server, if it cannot be reached, does not answer in time, or answers what it must not; with
/// RESOURCE_EXHAUSTED if all connections to it are in use. A call that has failed may have done its work all
/// the same.
class Server {
 public:
  /// A key and a part of it. A server without parts has only the part 'v'.
  struct Key {
    std::string_view name;  ///< 1..200 printable bytes without spaces.
    char part = 'v';
  };

  virtual ~Server() = default;

  /// "memcached 10.0.0.1:11211"
  virtual const std::string& name() const = 0;

  /// Looks at keys, and then at the guard.
  ///
  /// lease  Takes the lease of each key that has nothing.
  [[nodiscard]] virtual absl::StatusOr<LookedAll> Look(std::span<const Key> keys, bool lease) = 0;

  /// A value for a key whose lease was taken.
  struct Filling {
    Key key;
    uint64_t lease = 0;
    std::string_view value;
  };
  /// Stores values for `ttl_s`, each if its key's lease is still this one. OK also where it is not, and where
  /// a value has more than kMaxValueBytes.
  [[nodiscard]] virtual absl::Status Fill(std::span<const Filling> fillings, uint32_t ttl_s) = 0;
  /// Gives a lease back, as far as it is still this one.
  [[nodiscard]] virtual absl::Status Release(const Key& key, uint64_t lease) = 0;

  /// Adds a mark to a key, whose values and leases are gone with that, in all parts. A mark is forgotten
  /// after kMarkSeconds.
  ///
  /// mark  a number that no other writer has.
  [[nodiscard]] virtual absl::StatusOr<Marked> Mark(std::string_view key, uint64_t mark) = 0;
  /// Removes a mark. If it is not there any more, removes whatever the key has but the marks of others.
  ///
  /// version  what Mark has returned; 0 if that is not known.
  [[nodiscard]] virtual absl::Status Unmark(std::string_view key, uint64_t mark, uint64_t version) = 0;
  /// Removes the value or the lease of a key in all parts, but no marks.
  [[nodiscard]] virtual absl::Status Forget(std::string_view key) = 0;

  /// Nullopt if there is none.
  [[nodiscard]] virtual absl::StatusOr<std::optional<std::string>> ReadGuard() = 0;
  /// Reads the guard, and replaces it by what `make` makes of it, nullopt for nothing, if it is still the
  /// same then. Returns whether that was so, or nothing was to be replaced. `make` may be called twice.
  using MakeGuard = std::function<std::optional<std::string>(const std::optional<std::string>& read)>;
  [[nodiscard]] virtual absl::StatusOr<bool> ChangeGuard(const MakeGuard& make) = 0;
  /// How many connections there are now.
  virtual uint32_t connections() const = 0;
};

/// The largest value that is kept: below the largest item of a memcached server as it comes, 1 MiB.
inline constexpr size_t kMaxValueBytes = size_t{1000} << 10;
/// How long a lease is kept: about as long as a master may take to answer.
inline constexpr uint32_t kLeaseSeconds = 5;
/// How long the mark of a writer that has died is kept: longer than a commit may wait for a slave, as one
/// that is in doubt may.
inline constexpr uint32_t kMarkSeconds = 86'400;

}  // namespace kvstore::cached

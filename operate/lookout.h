#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "json/json.h"
#include "shardops/host.h"
#include "shardops/maps.h"

namespace kvstore::operate {

/// The state of a master, as its slave reports it.
enum class SlaveSays : uint8_t {
  kLostIt,   ///< It follows the master, and has no connection to it.
  kHearsIt,  ///< It receives from the master, which must be alive.
  kUnknown,  ///< It does not answer, or follows nobody, or another host.
};

/// A master that does not answer this process.
struct Silence {
  Host master;
  std::string error;    ///< The error of the attempt to ask it.
  uint64_t for_ms = 0;  ///< How long it has not answered, as far as this process knows.
  SlaveSays slave = SlaveSays::kUnknown;
  uint64_t lost_ms = 0;    ///< How long the slave has lost it, as far as this process knows.
  std::string slave_says;  ///< The same, in words.
};

/// {"master", "error", "for_ms", "slave", "lost_ms", "slave_says"}
Json ToJson(const Silence& silence);
/// Reads that back; nullopt if it is anything else.
std::optional<Silence> SilenceFromJson(const Json& json);

/// Asks all masters, again and again, whether they are there, by connections that are kept. Asks the slave of
/// each master that is not. Externally synchronised.
class Lookout {
 public:
  /// How long a host may take to answer, in seconds.
  static constexpr uint32_t kTimeoutS = 2;

  /// access  The operator's logins.
  explicit Lookout(shardops::Access access);

  /// Asks the masters of these pairs at the same time. Takes no longer than two timeouts, some four seconds.
  std::vector<Silence> Look(std::span<const shardops::Pair> pairs);

 private:
  using Clock = std::chrono::steady_clock;

  struct Watched {
    std::unique_ptr<shardops::HostAdmin> admin;  // null: not connected
    std::optional<Clock::time_point> silent_since;
    std::optional<Clock::time_point> lost_since;  // by its slave
  };

  /// OK if a master answers.
  absl::Status Ask(const Host& master, Watched& watched) const;
  /// The same; INTERNAL for what it throws.
  absl::Status AskSafely(const Host& master, Watched& watched) const;
  /// Asks the slave about its master.
  void AskSlave(const shardops::Pair& pair, Silence& silence) const;

  const shardops::Access access_;
  std::map<Host, Watched> watched_;
};

}  // namespace kvstore::operate

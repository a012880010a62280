#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "operate/lookout.h"
#include "operate/membership.h"

namespace kvstore::operate {

/// A master that has not answered for less than this may be back in a moment.
inline constexpr uint64_t kDeadAfterMs = 3'000;
/// A slave that has lost its master for less than this may be about to connect again.
inline constexpr uint64_t kLostForMs = 2'000;
/// A member's report that is older than this does not count.
inline constexpr uint64_t kFreshMs = 8'000;

/// The verdict of all processes together on a master that does not answer the leader.
struct Verdict {
  bool dead = false;
  /// The observations of all processes, or why the master is not taken for dead. A sentence.
  std::string why;
};

/// A master is dead if this process and another one cannot reach it, by its port and by its slave, and nobody
/// reaches it: it has been silent for kDeadAfterMs for both, both see that its slave has lost it for
/// kLostForMs, and of all members that have said something lately none is without that finding.
///
/// own     The silence as this process, the leader, sees it.
/// others  All other members, which say the text of `Says`.
/// now_ms  The time by the clock of Member::said_ms.
Verdict Judge(const Silence& own, std::span<const Member> others, uint64_t now_ms);

/// Returns what a process says to the others in a meeting: {"silent": [...]}.
Json Says(std::span<const Silence> silences);

}  // namespace kvstore::operate

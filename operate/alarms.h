#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
#include "operate/event.h"

namespace kvstore::operate {

/// Something that is wrong now.
struct Finding {
  std::string subject;  ///< The subject of the finding, as Event::subject.
  /// A sentence, with what to do. Its numbers may change while it is the same finding.
  std::string text;
  std::string page;  ///< As Event::page.
};

/// Keeps what is wrong, and since when. A person is told when something becomes wrong, and when it is over.
/// Externally synchronised.
class Alarms {
 public:
  /// tell  Is given an event when an alarm begins and when it is over.
  explicit Alarms(std::function<void(Event)> tell) : tell_(std::move(tell)) {}

  /// Says when two findings of a source are the same, so that a person is not told again.
  enum class Same : uint8_t {
    kSubject,  ///< They are about the same: a source says one thing about each.
    kText,     ///< They are about the same, and their texts differ in numbers only.
  };

  static constexpr size_t kMost = 500;

  /// The present state of an alarm.
  struct Alarm {
    Finding finding;
    std::string source;
    Same same = Same::kText;
    uint64_t since_ms = 0;  ///< When it was found first, by this machine's clock.
    bool told = false;      ///< Whether `tell` was given it.
  };

  /// Replaces what a source has found.
  ///
  /// settle  For how long something must be found before a person is told.
  void Set(const std::string& source, const std::vector<Finding>& findings, std::chrono::milliseconds settle,
           Same same = Same::kText);
  /// All alarms of which a person was told.
  std::vector<Alarm> Told() const;

  /// Writes the alarms of which a person was told to ROOT/operate/alarms, if they have changed; the first
  /// kMost of them. FAILED_PRECONDITION if `condition` does not hold.
  absl::Status Publish(ZooKeeper& zookeeper, const std::string& root, const ZooKeeperStep& condition);
  /// Reads what the leader before has written, so that a person is not told again. Forgets what was known.
  ///
  /// sources  Those that Set is called with: nobody else would say that an alarm is over.
  absl::Status Load(ZooKeeper& zookeeper, const std::string& root, const std::set<std::string>& sources);
  /// Reads what is written there, for people.
  static absl::StatusOr<std::vector<Alarm>> Read(ZooKeeper& zookeeper, const std::string& root);

 private:
  const std::function<void(Event)> tell_;
  std::map<std::string, Alarm> alarms_;  // by KeyOf
  std::string published_;
};

}  // namespace kvstore::operate

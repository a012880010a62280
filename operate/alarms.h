#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
#include "operate/event.h"

namespace kvstore::operate {

/// Something that is wrong now.
struct Finding {
  std::string subject;  ///< What it is about, as Event::subject.
  /// A sentence, with what to do. Its numbers may change while it is the same finding.
  std::string text;
  std::string page;  ///< As Event::page.
};

/// What is wrong, and since when; a person is told when something becomes wrong, and when it is over.
/// Externally synchronised.
class Alarms {
 public:
  /// tell  Is given an event when an alarm begins and when it is over.
  explicit Alarms(std::function<void(Event)> tell) : tell_(std::move(tell)) {}

  /// What an alarm is at present.
  struct Alarm {
    Finding finding;
    std::string source;
    uint64_t since_ms = 0;  ///< When it was found first, by this machine's clock.
    bool told = false;      ///< Whether `tell` was given it.
  };

  /// Replaces what a source has found.
  ///
  /// settle  For how long something must be found before a person is told.
  void Set(const std::string& source, const std::vector<Finding>& findings, std::chrono::milliseconds settle);
  /// All alarms of which a person was told.
  std::vector<Alarm> Told() const;

  /// Writes the alarms of which a person was told to ROOT/operate/alarms, if they have changed.
  absl::Status Publish(ZooKeeper& zookeeper, const std::string& root);
  /// Reads what the leader before has written, so that a person is not told again.
  absl::Status Load(ZooKeeper& zookeeper, const std::string& root);
  /// Reads what is written there, for people.
  static absl::StatusOr<std::vector<Alarm>> Read(ZooKeeper& zookeeper, const std::string& root);

 private:
  const std::function<void(Event)> tell_;
  std::map<std::string, Alarm> alarms_;  // by source, subject and text without its numbers
  std::string published_;
};

}  // namespace kvstore::operate

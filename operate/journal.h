#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/metrics_sink.h"
#include "coordination/zookeeper.h"
#include "operate/event.h"
#include "operate/options.h"
#include "operate/webhook.h"

namespace kvstore::operate {

/// Tells the events of a process of `kv operate` to everybody who wants to know: its log, a file with a line
/// of JSON for each, a webhook, and ROOT/operate/journal in ZooKeeper, which has the last events of all
/// processes. Externally synchronised.
class Journal {
 public:
  /// How many events ZooKeeper has.
  static constexpr size_t kKept = 200;
  /// The most bytes of an event's text; the rest is cut.
  static constexpr size_t kMaxTextBytes = 2'000;

  /// zookeeper  Must outlive this.
  /// who        Names this process to people.
  Journal(ZooKeeper& zookeeper, const std::string& root, std::string who, const OperateOptions& options);

  /// Logs an event, appends it to the file, and hands it to the webhook; Publish brings it to ZooKeeper.
  void Add(Event event);
  /// Adds what was added since to the journal in ZooKeeper. Events that cannot be written now are tried again
  /// by the next call.
  absl::Status Publish();
  /// Thread-safe.
  void Describe(MetricsSink& sink) const;

  /// Reads the journal in ZooKeeper, oldest first.
  static absl::StatusOr<std::vector<Event>> Read(ZooKeeper& zookeeper, const std::string& root);

 private:
  void AppendToFile(const Event& event) const;

  ZooKeeper& zookeeper_;
  const std::string path_;
  const std::string who_;
  const std::filesystem::path file_;
  std::unique_ptr<Webhook> webhook_;  // null: there is none
  std::vector<Event> unpublished_;
};

}  // namespace kvstore::operate

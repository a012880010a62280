#include "operate/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "json/json_text.h"

namespace kvstore::operate {
namespace {

/// How often the journal is tried again because somebody else has added to it meanwhile.
constexpr int kJournalAttempts = 5;

/// Reads the list of events; none if it is none.
std::vector<Event> DecodeEvents(const std::string& text) {
  std::vector<Event> events;
  const Json list = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return events;
  for (const Json& one : list) events.push_back(EventFromJson(one));
  return events;
}

bool IsForPeople(const Event& event) { return event.kind == "alarm" || event.kind == "fail"; }

}  // namespace

Journal::Journal(ZooKeeper& zookeeper, const std::string& root, std::string who,
                 const OperateOptions& options)
    : zookeeper_(zookeeper), path_(root + "/operate/journal"), who_(std::move(who)), file_(options.journal) {
  if (!options.webhook.empty()) {
    webhook_ = std::make_unique<Webhook>(options.webhook,
                                         [](const std::string& line) { spdlog::error("webhook: {}", line); });
  }
}

void Journal::Add(Event event) {
  event.at_ms = WallClockMs();
  event.by = who_;
  if (event.text.size() > kMaxTextBytes) {
    event.text.resize(kMaxTextBytes);
    event.text += "...";
  }
  spdlog::log(IsForPeople(event) ? spdlog::level::err : spdlog::level::info, "{} {}: {}", event.kind,
              event.subject, event.text);
  AppendToFile(event);
  if (webhook_ != nullptr) webhook_->Send(TextOf(ToJson(event)));
  unpublished_.push_back(std::move(event));
  if (unpublished_.size() > kKept) unpublished_.erase(unpublished_.begin());
}

void Journal::AppendToFile(const Event& event) const {
  if (file_.empty()) return;
  const std::string line = TextOf(ToJson(event)) + "\n";
  const int file = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const bool written = file >= 0 &&
                       ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
                       ::fdatasync(file) == 0;
  if (!written) spdlog::error("journal: {} cannot be written: {}", file_.string(), std::strerror(errno));
  if (file >= 0) ::close(file);
}

absl::Status Journal::Publish() {
  if (unpublished_.empty()) return absl::OkStatus();
  absl::Status status;
  for (int attempt = 0; attempt < kJournalAttempts; ++attempt) {
    const auto node = zookeeper_.Get(path_, /*watch=*/false);
    if (absl::IsNotFound(node.status())) {
      status = zookeeper_.Create(path_, "[]", /*open=*/true);
      if (!status.ok() && !absl::IsAlreadyExists(status)) return status;
      continue;
    }
    if (!node.ok()) return node.status();
    std::vector<Event> events = DecodeEvents(node->data);
    events.insert(events.end(), unpublished_.begin(), unpublished_.end());
    Json list = Json::array();
    for (size_t i = events.size() - std::min(events.size(), kKept); i < events.size(); ++i) {
      list.push_back(ToJson(events[i]));
    }
    status = zookeeper_.Set(path_, TextOf(list), node->version);
    if (status.ok()) {
      unpublished_.clear();
      return status;
    }
    if (!absl::IsFailedPrecondition(status)) return status;
  }
  return status;
}

void Journal::Describe(MetricsSink& sink) const {
  if (webhook_ == nullptr) return;
  sink.Counter("kvstore_operate_webhook_given_up_total",
               "Events that the webhook did not take, though they were sent for minutes", {},
               static_cast<double>(webhook_->given_up()));
}

absl::StatusOr<std::vector<Event>> Journal::Read(ZooKeeper& zookeeper, const std::string& root) {
  const auto node = zookeeper.Get(root + "/operate/journal", /*watch=*/false);
  if (absl::IsNotFound(node.status())) return std::vector<Event>();
  if (!node.ok()) return node.status();
  return DecodeEvents(node->data);
}

}  // namespace kvstore::operate

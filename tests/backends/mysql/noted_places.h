#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_api/consumer_places.h"

namespace kvstore::testing {

/// Places of consumers in memory. Externally synchronised.
class NotedPlaces : public ConsumerPlaces {
 public:
  absl::StatusOr<std::vector<NotedConsumer>> List(const DatasetSpec& spec) override {
    std::vector<NotedConsumer> all;
    for (const auto& [key, consumer] : consumers_) {
      if (key.first == spec.incarnation) all.push_back(consumer);
    }
    return all;
  }
  absl::StatusOr<NotedConsumer> Find(const DatasetSpec& spec, std::string_view name) override {
    const auto found = consumers_.find({spec.incarnation, std::string(name)});
    if (found == consumers_.end()) return absl::NotFoundError("no such consumer");
    return found->second;
  }
  absl::Status Put(const DatasetSpec& spec, std::string_view name, std::string_view position,
                   std::optional<int32_t> version) override {
    ++puts;
    if (on_put) {
      if (auto status = on_put(); !status.ok()) return status;
    }
    const auto before = Find(spec, name);
    if (before.ok() != version.has_value() || (version && before->version != *version)) {
      return absl::AbortedError("somebody else was faster");
    }
    consumers_[{spec.incarnation, std::string(name)}] = {.name = std::string(name),
                                                         .position = std::string(position),
                                                         .set_ms = 1,
                                                         .version = version ? *version + 1 : 0};
    return absl::OkStatus();
  }
  absl::Status Drop(const DatasetSpec& spec, std::string_view name) override {
    if (consumers_.erase({spec.incarnation, std::string(name)}) == 0) {
      return absl::NotFoundError("no such consumer");
    }
    return absl::OkStatus();
  }
  absl::Status DropAll(const DatasetSpec& spec) override {
    std::erase_if(consumers_, [&](const auto& one) { return one.first.first == spec.incarnation; });
    if (after_drop_all) after_drop_all();
    return absl::OkStatus();
  }

  int puts = 0;
  std::function<absl::Status()> on_put;  ///< Called by Put first, whose error is that of Put.
  std::function<void()> after_drop_all;

 private:
  std::map<std::pair<uint64_t, std::string>, NotedConsumer> consumers_;  // by incarnation and name
};

}  // namespace kvstore::testing

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "json/json.h"
#include "json/json_fields.h"
#include "migration/throttle.h"
#include "router/read_taps.h"

namespace kvstore::migration {

/// The fields of a command of `kv migrate`. Each verb uses some of them.
struct CommandOptions {
  std::string command;
  std::string dataset;
  std::string who;
  bool dry_run = false;
  // create
  std::string target;
  std::string engine;
  bool automatic = false;
  std::string keep;                 // resolve
  std::string gone;                 // abandon
  bool yes = false;                 // repair
  bool accept_differences = false;  // cutover
  /// create, throttle: of ReadTaps::kAll
  std::optional<uint64_t> shadow_share;
  std::optional<uint64_t> threads;
  std::optional<uint64_t> freeze_ms;
  // create, throttle
  std::optional<uint64_t> units_per_s;
  std::optional<uint64_t> bytes_per_s;
  std::optional<uint64_t> share;
  std::optional<uint64_t> max_read_us;

  /// INVALID_ARGUMENT names a field that is unknown, missing or out of range.
  static absl::StatusOr<CommandOptions> Parse(const Json& json) {
    JsonFields fields(json, "");
    CommandOptions options{.command = fields.String("command"),
                           .dataset = fields.OptionalString("dataset").value_or(""),
                           .who = fields.OptionalString("who").value_or("unknown"),
                           .dry_run = fields.OptionalBool("dry_run").value_or(false),
                           .target = fields.OptionalString("target").value_or(""),
                           .engine = fields.OptionalString("engine").value_or(""),
                           .automatic = fields.OptionalBool("auto").value_or(false),
                           .keep = fields.OptionalString("keep").value_or(""),
                           .gone = fields.OptionalString("gone").value_or(""),
                           .yes = fields.OptionalBool("yes").value_or(false),
                           .accept_differences = fields.OptionalBool("accept_differences").value_or(false),
                           .shadow_share = fields.OptionalUint("shadow_share", 0, ReadTaps::kAll),
                           .threads = fields.OptionalUint("threads", 1, 64),
                           .freeze_ms = fields.OptionalUint("freeze_ms", 10, 60'000),
                           .units_per_s = fields.OptionalUint("units_per_s", 0, UINT64_MAX),
                           .bytes_per_s = fields.OptionalUint("bytes_per_s", 0, UINT64_MAX),
                           .share = fields.OptionalUint("share", 1, 100),
                           .max_read_us = fields.OptionalUint("max_read_us", 0, 60'000'000)};
    if (auto status = fields.Finish(); !status.ok()) return status;
    return options;
  }

  /// Returns `limits` with those that the command gives.
  Limits Apply(Limits limits) const {
    if (units_per_s) limits.units_per_s = *units_per_s;
    if (bytes_per_s) limits.bytes_per_s = *bytes_per_s;
    if (share) limits.share = static_cast<uint32_t>(*share);
    if (max_read_us) limits.max_read_us = *max_read_us;
    return limits;
  }
};

}  // namespace kvstore::migration

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "base/clock.h"
#include "migration/migration.h"

/// The requests of operators to a migration: each is recorded, and the worker carries it out later.
namespace kvstore::migration {
namespace {

/// The error for a command that was given before with another backend in `field`, and is not done yet.
absl::Status AlreadyAskedError(std::string_view command, std::string_view field, const std::string& side) {
  return absl::FailedPreconditionError(
      fmt::format("{}: {} with '{}' was asked for before, and is not done yet: see kv migrate status", field,
                  command, side));
}

}  // namespace

absl::Status Migration::RecordRequest(Wanted wanted, const std::function<absl::Status(Record&)>& change,
                                      std::string event, std::string who) {
  bool asked = false;
  absl::Status status = ChangeOrRefuse(
      [&](Record& record) -> absl::Status {
        if (auto possible = CheckCommand(record, Name(wanted)); !possible.ok()) return possible;
        asked = record.wanted == wanted;
        if (auto changed = change(record); !changed.ok()) return changed;
        // The same was requested before: once is enough.
        if (asked) return absl::CancelledError();
        record.wanted = wanted;
        return absl::OkStatus();
      },
      std::move(event), std::move(who));
  wake_run_.notify_all();
  return asked && absl::IsCancelled(status) ? absl::OkStatus() : status;
}

absl::Status Migration::ActOnRequest(Wanted wanted, const std::function<void(Record&)>& change,
                                     std::string event) {
  bool replaced = false;
  absl::Status status = ChangeOrRefuse(
      [&](Record& record) -> absl::Status {
        replaced = record.wanted != wanted;
        if (replaced) return absl::CancelledError();
        change(record);
        return absl::OkStatus();
      },
      std::move(event), "worker");
  return replaced ? absl::OkStatus() : status;
}

void Migration::Stop() {
  // Takes no lock. A wait that misses the notification ends by itself, within a second.
  stop_ = true;
  wake_run_.notify_all();
}

void Migration::Cancel() {
  cancelled_ = true;
  Stop();
}

absl::Status Migration::Request(Wanted wanted, std::string who) {
  return RecordRequest(
      wanted, [](Record&) { return absl::OkStatus(); }, std::string(Name(wanted)) + " asked for",
      std::move(who));
}

absl::Status Migration::Resolve(std::string keep, std::string who) {
  return RecordRequest(
      Wanted::kResolve,
      [&](Record& record) -> absl::Status {
        if (record.wanted == Wanted::kResolve && record.keep != keep)
          return AlreadyAskedError("resolve", "keep", record.keep);
        record.keep = keep;
        return absl::OkStatus();
      },
      fmt::format("'{}' is to be kept", keep), std::move(who));
}

absl::Status Migration::Abandon(std::string gone, std::string who) {
  return RecordRequest(
      Wanted::kAbandon,
      [&](Record& record) -> absl::Status {
        if (record.wanted == Wanted::kAbandon && record.gone != gone)
          return AlreadyAskedError("abandon", "gone", record.gone);
        record.gone = gone;
        return absl::OkStatus();
      },
      fmt::format("'{}' is to be given up for good", gone), std::move(who));
}

absl::Status Migration::Pause(bool paused, std::string who) {
  return Change([paused](Record& record) { record.paused = paused; }, paused ? "paused" : "resumed",
                std::move(who));
}

absl::Status Migration::SetLimits(const std::function<Limits(const Limits&)>& change, std::string who) {
  std::string event;
  // Decided under the lock: two commands that change different limits must not undo each other.
  const absl::Status status = Change(
      [&](Record& record) {
        const Limits limits = record.limits = change(record.limits);
        event = fmt::format("limits: {} units/s, {} bytes/s, {} % of the time, reads of {} us",
                            limits.units_per_s, limits.bytes_per_s, limits.share, limits.max_read_us);
        record.AddEvent(who, event, WallClockMs());
      },
      /*event=*/"", who);
  if (status.ok()) spdlog::info("migration of '{}': {} ({})", names_.dataset, event, who);
  return status;
}

absl::Status Migration::Begin(std::string who) {
  return ChangeOrRefuse(
      [](Record& record) -> absl::Status {
        if (auto possible = CheckCommand(record, "start"); !possible.ok()) return possible;
        record.phase = Phase::kPrepare;
        return absl::OkStatus();
      },
      "started", std::move(who));
}

}  // namespace kvstore::migration

#include <fmt/format.h>

#include <string>
#include <utility>

#include "migration/migration.h"

/// The boot IDs of both sides, which say whether a host was restarted or replaced since they were compared.
namespace kvstore::migration {

std::pair<std::string_view, std::string_view> Migration::SplitBootIds(std::string_view boots) {
  const size_t bar = boots.find('|');
  if (bar == std::string_view::npos) return {boots, {}};
  return {boots.substr(0, bar), boots.substr(bar + 1)};
}

absl::StatusOr<std::string> Migration::BootIdsOf(MigrationControl& source, MigrationControl& target) {
  auto first = source.BootId();
  if (!first.ok()) return first;
  auto second = target.BootId();
  if (!second.ok()) return second;
  return *first + "|" + *second;
}

absl::Status Migration::ReadBootIds() {
  auto boots = BootIdsOf(*source_, *target_);
  if (!boots.ok()) return boots.status();
  boot_ids_ = *std::move(boots);
  UpdateTruthBootId();
  return absl::OkStatus();
}

void Migration::UpdateTruthBootId() {
  const auto [source, target] = SplitBootIds(boot_ids_);
  truth_boot_id_ = on_target_ ? target : source;
}

bool Migration::IsUnchangedSinceVerified(bool of_truth) {
  const std::string verified = record().verified;
  const auto [source, target] = SplitBootIds(verified);
  const bool of_target = of_truth == on_target_;
  const auto boot = (of_target ? *target_ : *source_).BootId();
  return boot.ok() && *boot == (of_target ? target : source);
}

bool Migration::TruthWasReplaced() const {
  const std::string verified = record().verified;
  const auto [source, target] = SplitBootIds(verified);
  return (on_target_ ? target : source) != truth_boot_id_;
}

bool Migration::CopyWasReplaced() const {
  const std::string verified = record().verified;
  const auto before = SplitBootIds(verified);
  const auto now = SplitBootIds(boot_ids_);
  return on_target_ ? before.first != now.first : before.second != now.second;
}

absl::Status Migration::CheckTruth() {
  const auto boot = truth().BootId();
  if (!boot.ok()) return boot.status();
  if (*boot == truth_boot_id_) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("a host of '{}' was restarted or replaced", on_target_ ? names_.target : names_.source));
}

absl::StatusOr<bool> Migration::HasChanged() {
  const Record now = record();
  for (const auto& [side, known] :
       {std::pair(source_, now.source_extent), std::pair(target_, now.target_extent)}) {
    const auto extent = side->Extent();
    if (!extent.ok()) return extent.status();
    if (*extent != known) return true;
  }
  const auto boots = BootIdsOf(*source_, *target_);
  if (!boots.ok()) return boots.status();
  return *boots != boot_ids_;
}

absl::StatusOr<bool> Migration::CancelMustWait() {
  const Record now = record();
  if (!now.crossed || on_target_) return false;
  const auto boot = source_->BootId();
  if (!boot.ok()) return boot.status();
  // The hosts of the last comparison, or those that an operator has declared right.
  return *boot != SplitBootIds(now.verified).first && *boot != SplitBootIds(now.trusted).first;
}

absl::StatusOr<bool> Migration::VerifyAgain(const std::string& boots) {
  if (record().verified == boots) return false;
  absl::Status status = Change([](Record& record) { record.phase = Phase::kVerify; },
                               "a host was restarted or replaced: both sides are compared again");
  if (!status.ok()) return status;
  return true;
}

}  // namespace kvstore::migration

#include "kvstore_api/leftover.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "absl/strings/cord.h"
#include "kvstore_api/backend.h"
#include "kvstore_api/catalog.h"

namespace kvstore {
namespace {

constexpr char kPayload[] = "kvstore/leftover";
/// How many datasets of one name can have been left.
constexpr int kAttempts = 10;

/// Whether a dataset of that incarnation is there, or is being made.
bool Names(const CatalogContents& contents, uint64_t incarnation) {
  return std::any_of(contents.entries.begin(), contents.entries.end(), [&](const CatalogEntry& entry) {
    return entry.spec.incarnation == incarnation && entry.state != DatasetState::kDropping;
  });
}

}  // namespace

absl::Status LeftoverError(std::string_view message, uint64_t incarnation) {
  absl::Status status = absl::FailedPreconditionError(absl::string_view(message.data(), message.size()));
  status.SetPayload(kPayload, absl::Cord(std::to_string(incarnation)));
  return status;
}

std::optional<uint64_t> LeftoverOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const std::string text(*payload);
  uint64_t incarnation = 0;
  std::from_chars(text.data(), text.data() + text.size(), incarnation);
  return incarnation;
}

absl::Status CreateWithoutLeftovers(Backend& backend, Catalog& catalog, const DatasetSpec& spec) {
  for (int attempt = 1;; ++attempt) {
    absl::Status created = backend.CreateDataset(spec);
    const auto leftover = LeftoverOf(created);
    if (!leftover || attempt == kAttempts) return created;
    const auto contents = catalog.Load();
    if (!contents.ok()) return contents.status();
    if (Names(*contents, *leftover)) return created;
    DatasetSpec dead = spec;
    dead.incarnation = *leftover;
    if (auto status = backend.DropLeftover(dead); !status.ok()) return status;
  }
}

}  // namespace kvstore

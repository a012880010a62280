#include "catalog/zookeeper_catalog.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

#include "backend_api/outcome.h"
#include "base/files.h"
#include "catalog/catalog_json.h"
#include "json/json.h"
#include "json/json_text.h"
#include "kvstore_api/call_scope.h"

namespace kvstore {
namespace {

/// How often Load reads a catalog that others change while it is read.
constexpr int kReadAttempts = 50;

std::string RandomName() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Whether a stored entry's dataset is not being dropped. True for an entry that does not decode.
bool IsNotDropping(const ZooKeeperNode& node) {
  const auto entry = DecodeCatalogEntry(node.data);
  return !entry.ok() || entry->state != DatasetState::kDropping;
}

/// Parses the content of a node below /dropped.
absl::StatusOr<uint64_t> ParseCount(const ZooKeeperNode& node, const std::string& path) {
  uint64_t count = 0;
  const char* const end = node.data.data() + node.data.size();
  const auto [at, error] = std::from_chars(node.data.data(), end, count);
  if (error == std::errc() && at == end) return count;
  return absl::DataLossError(fmt::format("ZooKeeper, {}: '{}' is not a number", path, node.data));
}

}  // namespace

ZooKeeperCatalog::ZooKeeperCatalog(const ZooKeeperOptions& options, const std::string& root,
                                   std::filesystem::path copy, std::string version)
    : servers_(options.servers),
      datasets_(root + "/datasets"),
      dropped_(root + "/dropped"),
      clients_(root + "/clients"),
      migrations_(root + "/migrations"),
      copy_(std::move(copy)),
      program_version_(std::move(version)),
      self_(RandomName()),
      ledger_(zookeeper_, root),
      zookeeper_(options, [this] { NotifyChanged(); }) {}

std::string ZooKeeperCatalog::PathOf(std::string_view name) const {
  return fmt::format("{}/{}", datasets_, name);
}

std::string ZooKeeperCatalog::RecordPath(std::string_view name) const {
  return fmt::format("{}/{}", migrations_, name);
}

void ZooKeeperCatalog::OnChange(std::function<void()> on_change) {
  const MutexLock lock(mutex_);
  on_change_ = std::move(on_change);
}

void ZooKeeperCatalog::NotifyChanged() {
  const MutexLock lock(mutex_);
  if (on_change_) on_change_();
}

absl::Status ZooKeeperCatalog::Register() {
  // Watched, so that after a session has expired, which removes the node, the next Load creates it again.
  // While it is there, so are the others, and a Load asks for nothing else.
  const std::string own = fmt::format("{}/{}", clients_, self_);
  const auto there = zookeeper_.Stat(own, /*watch=*/true);
  if (!absl::IsNotFound(there.status())) return there.status();
  for (const std::string& path : {datasets_, dropped_, clients_}) {
    const auto node = zookeeper_.Stat(path, /*watch=*/false);
    if (node.ok()) continue;
    if (!absl::IsNotFound(node.status())) return node.status();
    if (auto made = zookeeper_.Create(path, ""); !made.ok() && !absl::IsAlreadyExists(made)) return made;
  }
  const Json about = {{"host", HostName()}, {"pid", ::getpid()}, {"version", program_version_}};
  const absl::Status made = zookeeper_.CreateEphemeral(own, TextOf(about));
  return absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
}

absl::StatusOr<CatalogContents> ZooKeeperCatalog::Read() {
  CatalogContents contents;
  const auto before = zookeeper_.Get(datasets_, /*watch=*/true);
  if (!before.ok()) return before.status();
  contents.version = before->version;
  auto names = zookeeper_.Children(datasets_);
  if (!names.ok()) return names.status();
  std::sort(names->begin(), names->end());
  for (const std::string& name : *names) {
    const auto node = zookeeper_.Get(PathOf(name), /*watch=*/false);
    if (absl::IsNotFound(node.status())) return absl::AbortedError("changed while it was read");
    if (!node.ok()) return node.status();
    auto entry = DecodeCatalogEntry(node->data);
    if (!entry.ok() || entry->spec.name != name) {
      contents.damaged.push_back({name, fmt::format("ZooKeeper at {}, {}: {}", servers_, PathOf(name),
                                                    entry.ok() ? "holds the entry of another dataset"
                                                               : std::string(entry.status().message()))});
      continue;
    }
    contents.entries.push_back(*std::move(entry));
  }
  const auto after = zookeeper_.Get(datasets_, /*watch=*/false);
  if (!after.ok()) return after.status();
  if (after->version != before->version) return absl::AbortedError("changed while it was read");
  return contents;
}

absl::StatusOr<CatalogContents> ZooKeeperCatalog::Load() {
  absl::Status ready = Register();
  // Makes visible everything that others wrote before this call, even if this session's server lags behind.
  if (ready.ok()) ready = zookeeper_.Sync(datasets_);
  absl::StatusOr<CatalogContents> contents = ready.ok() ? Read() : ready;
  // If others changed the catalog while it was read, it is read again, each time after a longer pause.
  for (int attempt = 1; attempt < kReadAttempts && absl::IsAborted(contents.status()); ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt));
    contents = Read();
  }
  // A failure because the caller had no time left says nothing about ZooKeeper.
  if (contents.ok() || CheckCall().ok()) reached_ = contents.ok() && contents->damaged.empty();
  if (!contents.ok()) {
    if (!absl::IsAborted(contents.status())) return contents;
    return absl::UnavailableError(
        fmt::format("ZooKeeper at {}: the catalog changes faster than it can be read", servers_));
  }
  loaded_version_ = contents->version;
  // Damaged entries stay in the copy as they were when they could be read, and can be restored from it.
  if (!copy_.empty()) {
    std::vector<CatalogEntry> entries = contents->entries;
    absl::StatusOr<CatalogContents> before = CatalogContents();
    if (!contents->damaged.empty()) before = LoadCopy();
    if (before.ok()) {
      std::copy_if(
          before->entries.begin(), before->entries.end(), std::back_inserter(entries),
          [&](const CatalogEntry& entry) { return !CheckReadable(*contents, entry.spec.name).ok(); });
      std::sort(entries.begin(), entries.end(),
                [](const CatalogEntry& a, const CatalogEntry& b) { return a.spec.name < b.spec.name; });
    }
    std::string text = EncodeCatalog(entries);
    // A copy that cannot be read is not replaced by one without the damaged entries.
    if (text != copied_ && (before.ok() || absl::IsNotFound(before.status()))) {
      if (auto status = ReplaceFile(copy_, text); status.ok()) {
        copied_ = std::move(text);
      } else {
        spdlog::warn("the copy of the catalog on this machine cannot be written: {}",
                     std::string(status.message()));
      }
    }
  }
  return contents;
}

absl::StatusOr<CatalogContents> ZooKeeperCatalog::LoadCopy() const {
  std::error_code error;
  if (copy_.empty() || !std::filesystem::exists(copy_, error)) {
    return absl::NotFoundError("there is no copy of the catalog on this machine");
  }
  auto entries = ReadCatalogFile(copy_.string());
  if (!entries.ok()) return entries.status();
  return CatalogContents{*std::move(entries), -1};
}

absl::StatusOr<int64_t> ZooKeeperCatalog::Change(std::vector<ZooKeeperStep> steps, std::string_view dropped,
                                                 int64_t version) {
  if (version < 0) return absl::UnavailableError("the catalog has not been reached yet");
  steps.insert(
      steps.begin(),
      {.kind = ZooKeeperStep::Kind::kSet, .path = datasets_, .version = static_cast<int32_t>(version)});
  if (!dropped.empty()) {
    auto count = CountDropStep(dropped);
    if (!count.ok()) return count.status();
    steps.push_back(*std::move(count));
  }
  absl::Status status = zookeeper_.Change(std::move(steps));
  if (status.ok()) return version + 1;
  // Another process was faster, or somebody created or removed an entry by hand.
  if (absl::IsFailedPrecondition(status) || absl::IsAlreadyExists(status) || absl::IsNotFound(status)) {
    return absl::AbortedError(std::string(status.message()));
  }
  if (!absl::IsUnavailable(status)) return status;
  return MarkInDoubt(absl::UnavailableError(
      fmt::format("{}; the catalog may or may not have changed", std::string(status.message()))));
}

absl::StatusOr<ZooKeeperStep> ZooKeeperCatalog::CountDropStep(std::string_view name) {
  std::string path = fmt::format("{}/{}", dropped_, name);
  const auto node = zookeeper_.Get(path, /*watch=*/false);
  if (absl::IsNotFound(node.status())) {
    return ZooKeeperStep{.kind = ZooKeeperStep::Kind::kCreate, .path = std::move(path), .data = "1"};
  }
  if (!node.ok()) return node.status();
  const auto count = ParseCount(*node, path);
  if (!count.ok()) return count.status();
  return ZooKeeperStep{.kind = ZooKeeperStep::Kind::kSet,
                       .path = std::move(path),
                       .data = std::to_string(*count + 1),
                       .version = node->version};
}

absl::StatusOr<uint64_t> ZooKeeperCatalog::CountDropped(std::string_view name) {
  const std::string path = fmt::format("{}/{}", dropped_, name);
  if (auto status = zookeeper_.Sync(datasets_); !status.ok()) return status;
  const auto node = zookeeper_.Get(path, /*watch=*/false);
  if (absl::IsNotFound(node.status())) return 0;
  if (!node.ok()) return node.status();
  return ParseCount(*node, path);
}

absl::StatusOr<int64_t> ZooKeeperCatalog::Put(const CatalogEntry& entry, int64_t version,
                                              const std::optional<RecordFence>& fence) {
  const std::string path = PathOf(entry.spec.name);
  const auto node = zookeeper_.Get(path, /*watch=*/false);
  if (!node.ok() && !absl::IsNotFound(node.status())) return node.status();
  const bool drops = entry.state == DatasetState::kDropping && node.ok() && IsNotDropping(*node);
  std::vector<ZooKeeperStep> steps = {
      {.kind = node.ok() ? ZooKeeperStep::Kind::kSet : ZooKeeperStep::Kind::kCreate,
       .path = path,
       .data = EncodeCatalogEntry(entry),
       .version = node.ok() ? node->version : -1}};
  if (fence) {
    steps.push_back({.kind = ZooKeeperStep::Kind::kCheck,
                     .path = RecordPath(fence->name),
                     .version = static_cast<int32_t>(fence->version)});
  }
  return Change(std::move(steps), drops ? entry.spec.name : "", version);
}

absl::StatusOr<int64_t> ZooKeeperCatalog::Remove(std::string_view name, int64_t version) {
  const std::string path = PathOf(name);
  const auto node = zookeeper_.Get(path, /*watch=*/false);
  if (absl::IsNotFound(node.status())) return version;
  if (!node.ok()) return node.status();
  return Change({{.kind = ZooKeeperStep::Kind::kDelete, .path = path, .version = node->version}},
                IsNotDropping(*node) ? name : "", version);
}

// ---- records ----

absl::StatusOr<CatalogRecord> ZooKeeperCatalog::GetRecord(std::string_view name) {
  if (auto status = zookeeper_.Sync("/"); !status.ok()) return status;
  auto node = zookeeper_.Get(RecordPath(name), /*watch=*/false);
  if (!node.ok()) return node.status();
  if (node->data.empty())
    return absl::NotFoundError(fmt::format("{}: the migration has ended", RecordPath(name)));
  return CatalogRecord{std::move(node->data), node->version};
}

absl::StatusOr<int64_t> ZooKeeperCatalog::PutRecord(std::string_view name, std::string_view text,
                                                    int64_t version) {
  const std::string path = RecordPath(name);
  absl::Status status = version == -1 ? zookeeper_.Create(path, text)
                                      : zookeeper_.Set(path, text, static_cast<int32_t>(version));
  if (version == -1 && absl::IsAlreadyExists(status)) {
    const auto node = zookeeper_.Get(path, /*watch=*/false);
    if (!node.ok()) return node.status();
    if (node->data.empty()) {
      version = node->version;
      status = zookeeper_.Set(path, text, node->version);
    }
  }
  if (status.ok()) return version + 1;
  if (absl::IsFailedPrecondition(status) || absl::IsAlreadyExists(status) || absl::IsNotFound(status)) {
    return absl::AbortedError(status.message());
  }
  return absl::IsUnavailable(status) ? MarkInDoubt(status) : status;
}

absl::Status ZooKeeperCatalog::RemoveRecord(std::string_view name, int64_t version) {
  const absl::Status status = zookeeper_.Set(RecordPath(name), "", static_cast<int32_t>(version));
  if (absl::IsFailedPrecondition(status)) {
    // An earlier attempt, whose answer was lost, may have removed the record.
    return absl::IsNotFound(GetRecord(name).status()) ? absl::OkStatus()
                                                      : absl::AbortedError(status.message());
  }
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::vector<std::string>> ZooKeeperCatalog::ListRecords() {
  auto names = zookeeper_.Children(migrations_);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  if (!names.ok()) return names;
  std::vector<std::string> present;
  for (std::string& name : *names) {
    const auto node = zookeeper_.Get(RecordPath(name), /*watch=*/false);
    if (absl::IsNotFound(node.status()) || (node.ok() && node->data.empty())) continue;
    if (!node.ok()) return node.status();
    present.push_back(std::move(name));
  }
  std::sort(present.begin(), present.end());
  return present;
}

bool ZooKeeperCatalog::IsAlive(const std::string& owner) {
  if (owner == self_) return true;
  if (owner.empty()) return false;
  return !absl::IsNotFound(zookeeper_.Get(fmt::format("{}/{}", clients_, owner), /*watch=*/false).status());
}

void ZooKeeperCatalog::Describe(MetricsSink& sink) const {
  sink.Gauge("kvstore_zookeeper_connected", "Whether there is a session with ZooKeeper", {{"of", "catalog"}},
             zookeeper_.connected() ? 1 : 0);
  sink.Gauge("kvstore_catalog_version", "Changes of the catalog, as last seen; -1: never seen", {},
             static_cast<double>(loaded_version_.load()));
  sink.Gauge("kvstore_catalog_current", "Whether the catalog could be read when it was last tried", {},
             reached_ ? 1 : 0);
}

}  // namespace kvstore

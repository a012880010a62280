#include "server/call/access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <spdlog/spdlog.h>
#include <strings.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/files.h"
#include "json/json.h"
#include "json/json_fields.h"

namespace kvstore::server {
namespace {

constexpr std::string_view kBearer = "Bearer ";

/// Returns whether this is the scheme of tokens, in any case, with a token.
bool IsBearer(std::string_view authorization) {
  return authorization.size() >= kBearer.size() &&
         ::strncasecmp(authorization.data(), kBearer.data(), kBearer.size()) == 0;
}

std::optional<Right> ParseRight(std::string_view text) {
  for (size_t i = 0; i < kRightNames.size(); ++i) {
    if (kRightNames[i] == text) return static_cast<Right>(i);
  }
  return std::nullopt;
}

std::array<uint8_t, 32> Sha256(std::string_view token) {
  std::array<uint8_t, 32> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

/// Reads 64 hexadecimal digits; returns false if the text is anything else.
bool ParseDigest(std::string_view text, std::array<uint8_t, 32>& digest) {
  if (text.size() != 2 * digest.size()) return false;
  const auto value = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = value(text[2 * i]);
    const int low = value(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    digest[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

/// Returns whether a caller can have this name, by which logs, metrics and refusals tell callers apart: 1 to
/// 200 printable characters. `name` is UTF-8, as all strings of JSON are.
bool IsCallerName(std::string_view name) {
  constexpr size_t kMostCharacters = 200;
  size_t characters = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    // U+0080 to U+009F are control characters, too; they are C2 80 to C2 9F.
    const bool is_high_control =
        byte == 0xC2 && i + 1 < name.size() && static_cast<unsigned char>(name[i + 1]) < 0xA0;
    if (byte < 0x20 || byte == 0x7F || is_high_control) return false;
    if ((byte & 0xC0) != 0x80) ++characters;
  }
  return characters >= 1 && characters <= kMostCharacters;
}

void ReadRights(JsonFields& fields, Principal& principal) {
  const Json* rights = fields.Require("rights");
  if (rights == nullptr) return;
  if (!rights->is_object()) return fields.Fail("rights", "must be an object: {\"DATASET or *\": \"read\"}");
  for (const auto& [dataset, json] : rights->items()) {
    const auto right = json.is_string() ? ParseRight(json.get<std::string>()) : std::nullopt;
    if (!right) {
      fields.Fail("rights." + dataset, "must be \"none\", \"read\", \"write\" or \"admin\"");
    } else if (dataset.empty()) {
      fields.Fail("rights", "has an empty name; give that of a dataset, or \"*\" for all of them");
    } else if (dataset == "*") {
      principal.everywhere = *right;
    } else if (const size_t slash = dataset.find('/'); slash != std::string::npos) {
      if (slash == 0 || slash + 1 == dataset.size() || dataset.starts_with("*/"))
        fields.Fail("rights." + dataset, "must name a dataset and a report: \"reports/flights\"");
      principal.report_rights[dataset.substr(0, slash)][dataset.substr(slash + 1)] = *right;
    } else {
      principal.rights[dataset] = *right;
    }
  }
  // An entry that looks as if it hid a report from a caller who can read its rows is a trap.
  for (const auto& [dataset, reports] : principal.report_rights) {
    for (const auto& [report, right] : reports) {
      if (right > principal.On(dataset)) continue;
      fields.Fail(fmt::format("rights.{}/{}", dataset, report),
                  fmt::format("must be more than the right on '{}', which is '{}' and counts for all of its "
                              "reports; give '{}' less, and each report its own right",
                              dataset, kRightNames[static_cast<size_t>(principal.On(dataset))], dataset));
    }
  }
}

/// Reads the limits in the field of this name, if it is there.
QuotaLimits ReadLimits(JsonFields& fields, const std::string& name) {
  const Json* json = fields.Find(name);
  if (json == nullptr) return {};
  constexpr uint64_t kMost = 1'000'000'000'000;
  JsonFields limits(*json, fields.Path(name) + ".");
  const QuotaLimits read = {.calls_per_s = limits.OptionalUint("calls_per_s", 1, kMost).value_or(0),
                            .bytes_per_s = limits.OptionalUint("bytes_per_s", 1, kMost).value_or(0),
                            .max_calls = limits.OptionalUint("max_calls", 1, kMost).value_or(0)};
  fields.FailAll(limits);
  return read;
}

}  // namespace

Right Principal::On(std::string_view dataset, std::string_view report) const {
  const auto reports = report_rights.find(dataset);
  if (reports == report_rights.end()) return On(dataset);
  const auto found = reports->second.find(report);
  return found == reports->second.end() ? On(dataset) : std::max(On(dataset), found->second);
}

Quota* Principal::QuotaOf(std::string_view dataset) const {
  if (datasets == nullptr) return nullptr;
  const auto found = datasets->find(dataset);
  return found == datasets->end() ? nullptr : found->second;
}

bool Principal::MayKnowOf(std::string_view dataset) const {
  return On(dataset) >= Right::kRead || report_rights.contains(dataset);
}

std::string TokenDigest(std::string_view token) {
  std::string text;
  for (const uint8_t byte : Sha256(token)) text += fmt::format("{:02x}", byte);
  return text;
}

absl::StatusOr<AccessList> AccessList::Parse(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return absl::InvalidArgumentError("tokens: not JSON");
  JsonFields top(*json, "");
  const auto& tokens = top.Array("tokens");
  AccessList list;
  for (size_t i = 0; i < tokens.size(); ++i) {
    JsonFields fields(tokens[i], fmt::format("tokens[{}].", i));
    Entry entry;
    entry.principal.name = fields.String("name");
    if (const Json* name = fields.Find("name");
        name != nullptr && name->is_string() && !IsCallerName(entry.principal.name)) {
      fields.Fail("name", "must be 1 to 200 printable characters");
    }
    const auto digest = fields.OptionalString("sha256");
    entry.common_name = fields.OptionalString("common_name").value_or("");
    entry.has_digest = digest.has_value();
    if (digest && !ParseDigest(*digest, entry.digest)) {
      fields.Fail("sha256", "must be 64 hexadecimal digits: the SHA-256 of the token");
    } else if (digest && entry.digest == Sha256("")) {
      fields.Fail("sha256", "is the digest of an empty token, which everybody has: hash the token itself");
    }
    if (digest.has_value() == !entry.common_name.empty()) {
      fields.Fail("sha256", "give either this or common_name");
    }
    ReadRights(fields, entry.principal);
    entry.principal.limits = ReadLimits(fields, "limits");
    top.FailAll(fields);
    list.entries_.push_back(std::move(entry));
  }
  list.SpreadLimits(top);
  if (const Json* datasets = top.Find("dataset_limits"); datasets != nullptr && datasets->is_object()) {
    JsonFields fields(*datasets, "dataset_limits.");
    for (const auto& [dataset, limits] : datasets->items()) {
      const QuotaLimits read = ReadLimits(fields, dataset);
      if (dataset.empty() || dataset == "*" || dataset.find('/') != std::string::npos) {
        fields.Fail(dataset, "must be the name of one dataset");
      } else if (limits.is_object() && limits.empty()) {
        fields.Fail(dataset, "has no limit: give calls_per_s, bytes_per_s or max_calls, or leave it away");
      }
      list.dataset_limits_[dataset] = read;
    }
    top.FailAll(fields);
  } else if (datasets != nullptr) {
    top.Fail("dataset_limits", "must be an object: {\"DATASET\": {\"calls_per_s\": 1000}}");
  }
  if (auto status = top.FinishAll(); !status.ok()) return status;
  return list;
}

void AccessList::SpreadLimits(JsonFields& fields) {
  std::map<std::string, QuotaLimits> limits;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Principal& principal = entries_[i].principal;
    if (principal.limits == QuotaLimits{}) continue;
    const auto [found, first] = limits.try_emplace(principal.name, principal.limits);
    if (!first && found->second != principal.limits) {
      fields.Fail(fmt::format("tokens[{}].limits", i),
                  fmt::format("must be those of the other entries of '{}', which are one caller's, or be "
                              "left away",
                              principal.name));
    }
  }
  for (Entry& entry : entries_) {
    if (const auto found = limits.find(entry.principal.name); found != limits.end()) {
      entry.principal.limits = found->second;
    }
  }
}

void AccessList::SetShares(const std::function<CallerShare&(const std::string& name)>& share_of,
                           const std::function<Quota&(const std::string& dataset)>& quota_of) {
  for (const auto& [dataset, limits] : dataset_limits_) dataset_quotas_[dataset] = &quota_of(dataset);
  for (Entry& entry : entries_) {
    entry.principal.share = &share_of(entry.principal.name);
    if (!dataset_quotas_.empty()) entry.principal.datasets = &dataset_quotas_;
  }
}

QuotaLimits AccessList::LimitsOf(const std::string& name) const {
  for (const Entry& entry : entries_) {
    if (entry.principal.name == name) return entry.principal.limits;
  }
  return {};
}

const Principal* AccessList::FindToken(std::string_view token) const {
  const auto digest = Sha256(token);
  const Principal* found = nullptr;
  // Every entry is compared, each in constant time, so that the time tells nothing.
  for (const Entry& entry : entries_) {
    const bool same = CRYPTO_memcmp(digest.data(), entry.digest.data(), digest.size()) == 0;
    if (same && entry.has_digest) found = &entry.principal;
  }
  return found;
}

const Principal* AccessList::FindCommonName(std::string_view name) const {
  if (name.empty()) return nullptr;
  for (const Entry& entry : entries_) {
    if (entry.common_name == name) return &entry.principal;
  }
  return nullptr;
}

Access::Access(std::filesystem::path file)
    : file_(std::move(file)), list_(std::make_shared<const AccessList>()) {}

absl::StatusOr<std::unique_ptr<Access>> Access::Open(std::filesystem::path file) {
  std::unique_ptr<Access> access(new Access(std::move(file)));
  if (access->open_to_all()) return access;
  if (auto status = access->Load(); !status.ok()) return status;
  return access;
}

CallerShare& Access::ShareOf(const std::string& name) {
  const MutexLock lock(mutex_);
  return shares_.try_emplace(name, name).first->second;
}

size_t Access::BytesInFlight() const {
  size_t bytes = nobody_.bytes.load(std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  for (const auto& [name, share] : shares_) bytes += share.bytes.load(std::memory_order_relaxed);
  return bytes;
}

absl::Status Access::Load() {
  // The state is taken before the text: what is written in between is read the next time.
  const auto seen = ReadFileState(file_);
  const auto text = ReadFile(file_);
  if (!seen || !text.ok())
    return absl::UnavailableError(fmt::format("tokens: cannot read {}", file_.string()));
  loaded_ = seen;
  auto list = AccessList::Parse(*text);
  if (!list.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", file_.string(), std::string(list.status().message())));
  }
  const auto loaded = std::make_shared<AccessList>(*std::move(list));
  loaded->SetShares([this](const std::string& name) -> CallerShare& { return ShareOf(name); },
                    [this](const std::string& dataset) -> Quota& {
                      const MutexLock lock(mutex_);
                      return dataset_quotas_.try_emplace(dataset, "dataset '" + dataset + "'").first->second;
                    });
  SetLimits(*loaded);
  list_.Store(loaded);
  version_.fetch_add(1, std::memory_order_release);
  return absl::OkStatus();
}

void Access::SetLimits(const AccessList& list) {
  const MutexLock lock(mutex_);
  for (auto& [name, share] : shares_) share.quota.Set(list.LimitsOf(name));
  for (auto& [dataset, quota] : dataset_quotas_) {
    const auto found = list.dataset_limits().find(dataset);
    quota.Set(found == list.dataset_limits().end() ? QuotaLimits{} : found->second);
  }
}

void Access::Describe(MetricsSink& sink) const {
  const MutexLock lock(mutex_);
  for (const auto& [name, share] : shares_) {
    if (share.quota.is_limited()) share.quota.Describe(sink, "caller", name);
  }
  for (const auto& [dataset, quota] : dataset_quotas_) {
    if (quota.is_limited()) quota.Describe(sink, "dataset", dataset);
  }
}

void Access::Refresh() {
  if (open_to_all()) return;
  const auto seen = ReadFileState(file_);
  if (seen == loaded_) return told_.reset();
  const absl::Status status = Load();
  if (status.ok()) {
    told_.reset();
    spdlog::info("{}: read again", file_.string());
    return;
  }
  // It is tried again each time, because what cannot be read now may be readable in a moment.
  if (told_ && *told_ == seen) return;
  told_.emplace(seen);
  if (seen) {
    spdlog::error("tokens: refused, the last good list stays in force: {}", std::string(status.message()));
  } else {
    spdlog::error(
        "tokens: {} is missing, or its folder cannot be entered, so the last good list stays in force; to "
        "take "
        "rights away, put back a list without them",
        file_.string());
  }
}

absl::StatusOr<std::shared_ptr<const Principal>> Access::Identify(std::string_view authorization,
                                                                  std::string_view common_name) const {
  if (open_to_all()) return nullptr;
  const auto list = list_.Load();
  const Principal* found = nullptr;
  if (IsBearer(authorization)) {
    found = list->FindToken(authorization.substr(kBearer.size()));
  } else if (authorization.empty()) {
    found = list->FindCommonName(common_name);
  }
  if (found != nullptr) return std::shared_ptr<const Principal>(list, found);
  return absl::UnauthenticatedError(authorization.empty()
                                        ? "no token was given: send \"authorization: Bearer TOKEN\""
                                        : "the token is not known here");
}

std::string ReadableReport(const Principal* principal, std::string_view dataset) {
  if (principal == nullptr || CheckRight(principal, dataset, Right::kRead, "").ok()) return "";
  const auto reports = principal->report_rights.find(dataset);
  if (reports == principal->report_rights.end()) return "";
  for (const auto& [report, right] : reports->second) {
    if (right >= Right::kRead) return report;
  }
  return "";
}

absl::Status CheckRight(const Principal* principal, std::string_view dataset, Right right,
                        std::string_view report) {
  if (principal == nullptr || right == Right::kNone) return absl::OkStatus();
  if (principal->On(dataset, report) >= right) return absl::OkStatus();
  std::string subject;
  if (!dataset.empty()) subject = fmt::format(" '{}{}{}'", dataset, report.empty() ? "" : "/", report);
  return absl::PermissionDeniedError(
      fmt::format("'{}' lacks the right to {}{}", principal->name,
                  right == Right::kAdmin ? "administer" : kRightNames[static_cast<size_t>(right)], subject));
}

absl::Status TakeFurtherCall(const Principal* principal, std::string_view dataset) {
  Quota* const quota = principal == nullptr ? nullptr : principal->QuotaOf(dataset);
  if (quota == nullptr || !quota->is_limited()) return absl::OkStatus();
  const auto refusal = quota->TakeCall(Quota::Clock::now());
  if (!refusal) return absl::OkStatus();
  quota->CountRefused(refusal->limit);
  return quota->Error(*refusal);
}

}  // namespace kvstore::server

#include "backends/mysql/changes/log_position.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/varint.h"

namespace kvstore::mysql {
namespace {

constexpr char kMagic = 'M';
constexpr char kVersion = 1;
/// No fleet has as many.
constexpr uint64_t kMaxPairs = 65'536;
constexpr uint64_t kMaxDomains = 65'536;

/// Reads what Encode has written; once something is missing, all that follows is.
class PositionReader {
 public:
  explicit PositionReader(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool empty() const { return bytes_.empty(); }
  uint64_t Varint(uint64_t max = std::numeric_limits<uint64_t>::max()) {
    uint64_t value = 0;
    if (ConsumeVarint(bytes_, value)) {
      ok_ = ok_ && value <= max;
      return ok_ ? value : 0;
    }
    ok_ = false;
    return 0;
  }
  std::string Text() {
    const uint64_t size = Varint();
    if (!ok_ || size > bytes_.size()) {
      ok_ = false;
      return "";
    }
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  LogGtid Gtid() {
    constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
    LogGtid gtid;
    gtid.domain = static_cast<uint32_t>(Varint(kMax));
    gtid.server = static_cast<uint32_t>(Varint(kMax));
    gtid.sequence = Varint();
    return gtid;
  }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

void AppendText(std::string& out, std::string_view text) {
  AppendVarint(out, text.size());
  out += text;
}

void AppendGtid(std::string& out, const LogGtid& gtid) {
  AppendVarint(out, gtid.domain);
  AppendVarint(out, gtid.server);
  AppendVarint(out, gtid.sequence);
}

}  // namespace

// ---- vectors ----

absl::StatusOr<LogVector> LogVector::Parse(std::string_view text) {
  LogVector vector;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    LogGtid gtid;
    const auto number = [&](auto& value, bool last) {
      const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), value);
      one.remove_prefix(static_cast<size_t>(end - one.data()));
      if (error != std::errc()) return false;
      if (last) return one.empty();
      if (!one.starts_with('-')) return false;
      one.remove_prefix(1);
      return true;
    };
    if (!number(gtid.domain, false) || !number(gtid.server, false) || !number(gtid.sequence, true)) {
      return absl::DataLossError("the server's GTID position does not parse");
    }
    vector.Add(gtid);
  }
  return vector;
}

std::string LogVector::ToString() const {
  std::string text;
  for (const auto& [domain, gtid] : last_) {
    text += fmt::format("{}{}-{}-{}", text.empty() ? "" : ",", domain, gtid.server, gtid.sequence);
  }
  return text;
}

bool LogVector::Has(const LogGtid& gtid) const {
  const auto found = last_.find(gtid.domain);
  return found != last_.end() && found->second.sequence >= gtid.sequence;
}

bool LogVector::Has(const LogVector& other) const {
  for (const auto& [domain, gtid] : other.last_) {
    if (!Has(gtid)) return false;
  }
  return true;
}

void LogVector::Add(const LogVector& other) {
  for (const auto& [domain, gtid] : other.last_) {
    if (!Has(gtid)) Add(gtid);
  }
}

// ---- positions ----

std::string ChangePosition::Encode() const {
  std::string bytes{kMagic, kVersion};
  AppendVarint(bytes, made_ms);
  AppendVarint(bytes, whole_ms);
  AppendVarint(bytes, pairs.size());
  for (const Pair& pair : pairs) {
    AppendText(bytes, pair.master);
    AppendText(bytes, pair.slave);
    AppendVarint(bytes, pair.domain);
    AppendVarint(bytes, pair.complete_ms);
    AppendVarint(bytes, pair.place.at_ms);
    AppendVarint(bytes, pair.place.rows);
    const bool part = pair.place.rows != 0 && pair.place.part.has_value();
    AppendVarint(bytes, pair.place.done.last().size() + (part ? 1 : 0));
    if (part) AppendGtid(bytes, *pair.place.part);
    for (const auto& [domain, gtid] : pair.place.done.last()) AppendGtid(bytes, gtid);
  }
  AppendText(bytes, seal);
  return bytes;
}

absl::StatusOr<ChangePosition> ChangePosition::Decode(std::string_view bytes) {
  if (bytes.size() < 2 || bytes[0] != kMagic || bytes[1] != kVersion) {
    return absl::OutOfRangeError(
        "from: this token was made while the dataset was on another backend, and its changes are not kept "
        "here: the dataset was migrated since; begin again with --snapshot");
  }
  PositionReader reader(bytes.substr(2));
  ChangePosition position;
  position.made_ms = reader.Varint();
  position.whole_ms = reader.Varint();
  const uint64_t pairs = reader.Varint(kMaxPairs);
  for (uint64_t i = 0; i < pairs && reader.ok(); ++i) {
    Pair pair;
    pair.master = reader.Text();
    pair.slave = reader.Text();
    pair.domain = static_cast<uint32_t>(reader.Varint(std::numeric_limits<uint32_t>::max()));
    pair.complete_ms = reader.Varint();
    pair.place.at_ms = reader.Varint();
    pair.place.rows = reader.Varint();
    uint64_t transactions = reader.Varint(kMaxDomains);
    if (pair.place.rows != 0) {
      if (transactions == 0) return absl::InvalidArgumentError("from: this is no token of changes");
      pair.place.part = reader.Gtid();
      --transactions;
    }
    for (uint64_t j = 0; j < transactions && reader.ok(); ++j) pair.place.done.Add(reader.Gtid());
    position.pairs.push_back(std::move(pair));
  }
  position.seal = reader.Text();
  if (!reader.ok() || !reader.empty()) return absl::InvalidArgumentError("from: this is no token of changes");
  return position;
}

std::vector<std::optional<size_t>> MatchPairs(const ChangePosition& position,
                                              const std::vector<MappedPair>& pairs) {
  std::vector<std::optional<size_t>> matches(pairs.size());
  std::vector<bool> taken(position.pairs.size(), false);
  // A host says more than a domain, which all pairs may have in common; and a domain that is the same more
  // than another one.
  enum class By : uint8_t { kHostAndDomain, kHost, kDomain };
  for (const By by : {By::kHostAndDomain, By::kHost, By::kDomain}) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (matches[i]) continue;
      const std::string master = pairs[i].master.ToString();
      const std::string slave = pairs[i].slave.ToString();
      std::optional<size_t> found;
      size_t count = 0;
      for (size_t j = 0; j < position.pairs.size(); ++j) {
        const ChangePosition::Pair& known = position.pairs[j];
        if (taken[j]) continue;
        const bool host =
            known.master == master || known.master == slave || known.slave == master || known.slave == slave;
        const bool domain = pairs[i].domain == known.domain;
        if (!(by == By::kHost ? host : by == By::kDomain ? domain : host && domain)) continue;
        ++count;
        if (!found || known.master == master) found = j;
      }
      // Two pairs that have the same domain cannot be told apart by it.
      if (!found || (by == By::kDomain && count > 1)) continue;
      matches[i] = found;
      taken[*found] = true;
    }
  }
  return matches;
}

}  // namespace kvstore::mysql

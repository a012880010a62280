#include "fleet_backup/binlog_shipper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backup/list.h"
#include "backup/log_segment.h"
#include "backup/object_sender.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "blobstore/sha256.h"
#include "fleet_backup/binlog.h"
#include "fleet_backup/binlog_chains.h"
#include "fleet_backup/binlog_stream.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::fleet_backup {
namespace {

/// How often Ship begins again because another process sends the same.
constexpr int kShipAttempts = 3;

/// Puts transactions together to a segment.
class SegmentBuilder {
 public:
  SegmentBuilder(uint64_t domain, shardops::GtidPosition position)
      : domain_(domain), position_(std::move(position)), after_(position_.ToString()) {}

  /// Takes the next event of the log. OUT_OF_RANGE if transactions of the pair are missing before it.
  absl::Status Add(std::string_view bytes) {
    const BinlogEvent event = *FirstEvent(bytes);
    if (const auto gtid = GtidOf(event)) {
      EndTransaction();
      if (auto status = CheckNext(*gtid); !status.ok()) return status;
      current_ = *gtid;
      seconds_ = event.seconds;
      transaction_ = bytes;
    } else if (current_ && IsInGroup(event)) {
      transaction_ += bytes;
    } else {
      EndTransaction();
      if (IsFormat(event)) format_ = bytes;
    }
    if (transaction_.size() + format_.size() <= kMaxLogBytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(fmt::format(
        "the transaction {}-{}-{} has more than {} bytes of binary log, which cannot be sent; make a "
        "backup after it",
        current_->domain, current_->server, current_->sequence, kMaxLogBytes));
  }
  /// Adds the transaction whose events were taken last: its end is known by what follows.
  void EndTransaction() {
    if (!current_) return;
    // The format stands before the first transaction, and again where an upgrade of the server changes it.
    if (std::exchange(written_format_, format_) != format_ || segment_.log.empty()) segment_.log += format_;
    segment_.log += transaction_;
    const uint64_t at_ms = uint64_t{seconds_} * 1000;
    if (segment_.transactions++ == 0) segment_.first_ms = at_ms;
    segment_.last_ms = std::max(segment_.last_ms, at_ms);
    position_.Add(*current_);
    current_.reset();
    transaction_.clear();
  }

  size_t bytes() const { return segment_.log.size(); }
  uint64_t transactions() const { return segment_.transactions; }
  /// Whether the next transaction would make the segment too large for one.
  bool IsFull() const { return segment_.log.size() >= backup::kSegmentBytes; }

  /// Returns the segment of what was added, and begins another one.
  BinlogSegment Take() {
    BinlogSegment taken = std::exchange(segment_, {});
    taken.after = std::exchange(after_, position_.ToString());
    taken.last = after_;
    return taken;
  }

 private:
  absl::Status CheckNext(const shardops::Gtid& gtid) const {
    const uint64_t last = position_.LastOf(gtid.domain);
    if (gtid.sequence <= last) {
      return absl::DataLossError(
          fmt::format("the transaction {}-{}-{} comes after {}-*-{}: gtid_strict_mode must be on",
                      gtid.domain, gtid.server, gtid.sequence, gtid.domain, last));
    }
    // Only of its own domain has a pair all transactions: when shards move, it gets a part of another pair's.
    if (gtid.domain != domain_ || gtid.sequence == last + 1) return absl::OkStatus();
    return absl::OutOfRangeError(fmt::format("the first transaction after {}-*-{} that it has is {}-{}-{}",
                                             gtid.domain, last, gtid.domain, gtid.server, gtid.sequence));
  }

  const uint64_t domain_;
  shardops::GtidPosition position_;
  std::string after_;
  BinlogSegment segment_;
  std::string format_;          // the event of format that holds
  std::string written_format_;  // the one in the segment
  std::optional<shardops::Gtid> current_;
  uint32_t seconds_ = 0;
  std::string transaction_;
};

}  // namespace

absl::Status BinlogShipper::FindChain() {
  const auto list = backup::ListBackups(blobs_);
  if (!list.ok()) return list.status();
  // A backup that cannot be read keeps nobody from sending: the log then continues an older one.
  for (auto id = list->live.rbegin(); id != list->live.rend(); ++id) {
    const auto manifest = backup::ReadManifest(blobs_, *id);
    if (absl::IsUnavailable(manifest.status())) return manifest.status();
    if (!manifest.ok() || !manifest->server) continue;
    const auto chain = ListChain(blobs_, *id);
    if (!chain.ok()) return chain.status();
    Chain found{.id = *id};
    if (chain->segments.empty()) {
      found.position = shardops::GtidPosition(manifest->server->gtid);
    } else {
      const auto last = FetchBinlogSegment(blobs_, chain->segments.back());
      if (!last.ok()) return last.status();
      found.number = last->segment.number + 1;
      found.previous = last->sha256;
      found.position = shardops::GtidPosition(last->segment.last);
      auto nodes = NodesAfter(blobs_, last->segment);
      if (!nodes.ok()) return nodes.status();
      found.nodes = *std::move(nodes);
      found.nodes_in = last->segment.nodes_in;
    }
    chain_ = std::move(found);
    return absl::OkStatus();
  }
  return absl::NotFoundError(fmt::format(
      "{}: there is no backup that the binary log could follow: kv backup create --host makes one",
      blobs_.url()));
}

absl::Status BinlogShipper::Ship(const Host& host) {
  for (int attempt = 1;; ++attempt) {
    if (!chain_) {
      if (auto status = FindChain(); !status.ok()) return status;
    }
    absl::Status sent = Send(host);
    if (!absl::IsAborted(sent)) return sent;
    chain_.reset();
    if (attempt == kShipAttempts) return absl::UnavailableError(std::string(sent.message()));
  }
}

absl::Status BinlogShipper::Send(const Host& host) {
  const auto admin = shardops::HostAdmin::Open(host, access_);
  if (!admin.ok()) return admin.status();
  const auto state = (*admin)->Read();
  if (!state.ok()) return state.status();
  const std::string position = chain_->position.ToString();
  if (const uint64_t missing = shardops::CountMissing(position, state->gtid); missing > 0) {
    return absl::UnavailableError(
        fmt::format("{}: lacks {} transactions of those that were sent, up to {}; it has {}", host.ToString(),
                    missing, position, state->gtid));
  }
  const auto nodes = options_.nodes();
  const uint64_t nodes_ms = WallClockMs();
  const bool has_nodes = nodes.ok() && *nodes != chain_->nodes;
  SegmentBuilder builder(options_.domain, chain_->position);
  if (shardops::CountMissing(state->gtid, position) > 0) {
    const auto stream = BinlogStream::Open(host, access_.admin, position);
    if (!stream.ok()) return stream.status();
    for (;;) {
      if (auto status = CheckCall(); !status.ok()) return status;
      const auto event = (*stream)->Next();
      if (!event.ok()) return event.status();
      if (event->empty()) break;
      absl::Status added = builder.Add(*event);
      if (!added.ok()) {
        return absl::Status(added.code(),
                            fmt::format("{}: {}", host.ToString(), std::string(added.message())));
      }
      if (!builder.IsFull()) continue;
      if (auto status = Put(builder.Take()); !status.ok()) return status;
    }
    builder.EndTransaction();
  }
  if (builder.transactions() > 0 || has_nodes) {
    BinlogSegment segment = builder.Take();
    if (segment.transactions == 0) segment.first_ms = segment.last_ms = WallClockMs();
    if (has_nodes) {
      segment.nodes = *nodes;
      segment.nodes_ms = nodes_ms;
    }
    if (auto status = Put(std::move(segment)); !status.ok()) return status;
  }
  // The log was sent, but it is not what was promised without the settings of datasets.
  return nodes.status();
}

absl::Status BinlogShipper::Put(BinlogSegment segment) {
  Chain& chain = *chain_;
  segment.chain = chain.id;
  segment.number = chain.number;
  segment.previous = chain.previous;
  segment.nodes_in = segment.nodes.empty() ? chain.nodes_in : chain.number;
  const std::string bytes = EncodeBinlogSegment(segment);
  Reached("binlog-segment");
  const absl::Status put = backup::PutBytes(blobs_, backup::SegmentBlob(chain.id, chain.number), bytes);
  if (absl::IsAlreadyExists(put)) {
    return absl::AbortedError(
        fmt::format("{}: another process sends the log of the same pair", blobs_.url()));
  }
  if (!put.ok()) return put;
  ++chain.number;
  chain.previous = Hex(Sha256Of(bytes));
  chain.position = shardops::GtidPosition(segment.last);
  chain.nodes_in = segment.nodes_in;
  if (!segment.nodes.empty()) chain.nodes = segment.nodes;
  ++figures_.segments;
  figures_.transactions += segment.transactions;
  figures_.sent_bytes += bytes.size();
  return absl::OkStatus();
}

}  // namespace kvstore::fleet_backup

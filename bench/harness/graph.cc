#include "bench/harness/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "bench/harness/report.h"

namespace kvstore::bench {
namespace {

struct Share {
  GraphOp op;
  const char* name;
  uint64_t per_mille;
};

/// The published frequencies. "Get link" (0.5 %) is counted with the lists, because our API has no such call.
constexpr std::array<Share, 9> kShares = {{{GraphOp::kGetLinks, "get_links", 512},
                                           {GraphOp::kGetNode, "get_node", 129},
                                           {GraphOp::kAddLink, "add_link", 90},
                                           {GraphOp::kUpdateLink, "update_link", 80},
                                           {GraphOp::kUpdateNode, "update_node", 74},
                                           {GraphOp::kCountLinks, "count_links", 49},
                                           {GraphOp::kDeleteLink, "delete_link", 30},
                                           {GraphOp::kAddNode, "add_node", 26},
                                           {GraphOp::kDeleteNode, "delete_node", 10}}};

uint64_t Mix(uint64_t i) {
  i = (i ^ i >> 30) * 0xBF58476D1CE4E5B9;
  i = (i ^ i >> 27) * 0x94D049BB133111EB;
  return i ^ i >> 31;
}

}  // namespace

const char* Name(GraphOp op) {
  return std::find_if(kShares.begin(), kShares.end(), [op](const Share& share) { return share.op == op; })
      ->name;
}

// ---- the mix ----

GraphMix::Zipf::Zipf(double exponent) : sums_(kNodes) {
  double sum = 0;
  for (uint64_t i = 0; i < kNodes; ++i) sums_[i] = sum += std::pow(static_cast<double>(i + 1), -exponent);
}

uint64_t GraphMix::Zipf::Draw(uint64_t random) const {
  const double at = static_cast<double>(random >> 11) / static_cast<double>(uint64_t{1} << 53) * sums_.back();
  const auto rank = static_cast<uint64_t>(std::upper_bound(sums_.begin(), sums_.end(), at) - sums_.begin());
  return std::min(rank, kNodes - 1) * 7919 % kNodes;
}

GraphMix::GraphMix() : link_read_(0.8), link_write_(0.741), node_read_(0.625), node_update_(0.606) {}

GraphMix::Step GraphMix::At(uint64_t i) const {
  uint64_t at = Mix(4 * i) % 1000;
  GraphOp op = GraphOp::kGetLinks;
  for (const Share& share : kShares) {
    op = share.op;
    if (at < share.per_mille) break;
    at -= share.per_mille;
  }
  const uint64_t random = Mix(4 * i + 1);
  const uint64_t other = Mix(4 * i + 2) % kNodes;
  switch (op) {
    case GraphOp::kGetLinks:
    case GraphOp::kCountLinks:
      return {op, link_read_.Draw(random), other};
    case GraphOp::kAddLink:
    case GraphOp::kUpdateLink:
    case GraphOp::kDeleteLink:
      return {op, link_write_.Draw(random), other};
    case GraphOp::kGetNode:
      return {op, node_read_.Draw(random), other};
    case GraphOp::kUpdateNode:
      return {op, node_update_.Draw(random), other};
    case GraphOp::kAddNode:
    case GraphOp::kDeleteNode:
      break;
  }
  return {op, random % kNodes, other};
}

// ---- the graph ----

std::string Graph::Node(uint64_t i) {
  return fmt::format(R"({{"version":"{:08}","data":"{}"}})", i % 100'000'000, std::string(96, 'n'));
}

Graph::Graph(KVStore& store, std::string nodes, std::string links, std::span<const uint32_t> shards)
    : store_(store), nodes_(std::move(nodes)), links_(std::move(links)) {
  for (uint64_t i = 0; i < GraphMix::kNodes; ++i) {
    CreateOptions options;
    if (!shards.empty()) options.shard = shards[i % shards.size()];
    const auto id = store.CreateObject(nodes_, Node(i), options);
    Check(id.status());
    ids_.push_back(*id);
  }
  for (uint64_t i = 0; i < GraphMix::kNodes * kLinksOfANode; ++i) {
    Check(store.AddMapping(links_, ids_[i % ids_.size()], ids_[Mix(i) % ids_.size()], i));
  }
}

void Graph::Execute(const GraphMix::Step& step, uint64_t i) const {
  const uint64_t node = ids_[step.node];
  const uint64_t other = ids_[step.other];
  absl::Status status;
  switch (step.op) {
    case GraphOp::kGetLinks:
      status = store_
                   .ListMapping(links_, node,
                                {.order = MappingListOptions::Order::kDescending, .limit = kListLimit})
                   .status();
      break;
    case GraphOp::kGetNode:
      status = store_.GetObject(nodes_, node, {}).status();
      break;
    case GraphOp::kAddLink:
    case GraphOp::kUpdateLink:
      status = store_.AddMapping(links_, node, other, i);
      break;
    case GraphOp::kUpdateNode:
      status = store_
                   .UpdateObject(nodes_, node,
                                 [i](std::string_view) -> absl::StatusOr<std::string> { return Node(i); }, {})
                   .status();
      break;
    case GraphOp::kCountLinks:
      status = store_.CountMapping(links_, node).status();
      break;
    case GraphOp::kDeleteLink:
      status = store_.RemoveMapping(links_, node, other).status();
      break;
    case GraphOp::kAddNode:
      status = store_.CreateObject(nodes_, Node(i), {.near = node}).status();
      break;
    case GraphOp::kDeleteNode:
      status = store_.DeleteObject(nodes_, node, /*hard=*/true);
      break;
  }
  // The mix also asks for nodes that were deleted.
  if (!absl::IsNotFound(status)) Check(status);
}

}  // namespace kvstore::bench

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "bench/mysql_fixture.h"
#include "idgen/object_id.h"

/// kv bench linkbench.
namespace kvstore::bench {
namespace {

using mysql::Space;
using mysql::Sql;

constexpr uint64_t kNodes = 10'000;
constexpr uint64_t kLinksOfANode = 5;
constexpr size_t kThreads = 8;
constexpr uint32_t kListLimit = 10'000;

/// Numbers 0..n-1, the i-th drawn in proportion to 1 / (i + 1)^exponent, scattered over the nodes.
class Zipf {
 public:
  explicit Zipf(double exponent) : sums_(kNodes) {
    double sum = 0;
    for (uint64_t i = 0; i < kNodes; ++i) sums_[i] = sum += std::pow(static_cast<double>(i + 1), -exponent);
  }
  uint64_t Draw(uint64_t random) const {
    const double at =
        static_cast<double>(random >> 11) / static_cast<double>(uint64_t{1} << 53) * sums_.back();
    const auto rank = static_cast<uint64_t>(std::upper_bound(sums_.begin(), sums_.end(), at) - sums_.begin());
    return std::min(rank, kNodes - 1) * 7919 % kNodes;
  }

 private:
  std::vector<double> sums_;
};

enum class Op : uint8_t {
  kGetLinks,
  kGetNode,
  kAddLink,
  kUpdateLink,
  kUpdateNode,
  kCountLinks,
  kDeleteLink,
  kAddNode,
  kDeleteNode,
};

/// Tenths of a percent, as published. "Get link" (0.5 %) is counted with the lists: there is no such call.
constexpr std::array<std::pair<Op, uint64_t>, 9> kShares = {{{Op::kGetLinks, 512},
                                                             {Op::kGetNode, 129},
                                                             {Op::kAddLink, 90},
                                                             {Op::kUpdateLink, 80},
                                                             {Op::kUpdateNode, 74},
                                                             {Op::kCountLinks, 49},
                                                             {Op::kDeleteLink, 30},
                                                             {Op::kAddNode, 26},
                                                             {Op::kDeleteNode, 10}}};

uint64_t Mix(uint64_t i) {
  i = (i ^ i >> 30) * 0xBF58476D1CE4E5B9;
  i = (i ^ i >> 27) * 0x94D049BB133111EB;
  return i ^ i >> 31;
}

/// What operation number i is: the same for both sides.
struct Step {
  Op op;
  uint64_t node;
  uint64_t other;
};

class Plan {
 public:
  Step At(uint64_t i) const {
    uint64_t at = Mix(4 * i) % 1000;
    Op op = Op::kGetLinks;
    for (const auto& [candidate, share] : kShares) {
      op = candidate;
      if (at < share) break;
      at -= share;
    }
    const uint64_t random = Mix(4 * i + 1);
    const uint64_t other = Mix(4 * i + 2) % kNodes;
    switch (op) {
      case Op::kGetLinks:
      case Op::kCountLinks:
        return {op, link_read_.Draw(random), other};
      case Op::kAddLink:
      case Op::kUpdateLink:
      case Op::kDeleteLink:
        return {op, link_write_.Draw(random), other};
      case Op::kGetNode:
        return {op, node_read_.Draw(random), other};
      case Op::kUpdateNode:
        return {op, node_update_.Draw(random), other};
      case Op::kAddNode:
      case Op::kDeleteNode:
        break;
    }
    return {op, random % kNodes, other};
  }

 private:
  const Zipf link_read_{0.8};
  const Zipf link_write_{0.741};
  const Zipf node_read_{0.625};
  const Zipf node_update_{0.606};
};

std::string Node(uint64_t i) {
  return fmt::format(R"({{"version":"{:08}","data":"{}"}})", i % 100'000'000, std::string(96, 'n'));
}

/// Nodes on the first host, with their links.
struct Graph {
  Graph(MySqlFixture& fixture, const std::string& name)
      : nodes(fixture.Create(name + "_nodes", Shape::kObjects)),
        links(fixture.Create(name + "_links", Shape::kMappings)),
        shards(fixture.ShardsOfFirstHost(Space::kId)) {
    for (uint64_t i = 0; i < kNodes; ++i) {
      const auto id = fixture.store().CreateObject(nodes, Node(i), {.shard = shards[i % shards.size()]});
      Check(id.status());
      ids.push_back(*id);
    }
    for (uint64_t i = 0; i < kNodes * kLinksOfANode; ++i) {
      Check(fixture.store().AddMapping(links, ids[i % kNodes], ids[Mix(i) % kNodes], i));
    }
  }
  const std::string nodes;
  const std::string links;
  const std::vector<uint32_t> shards;
  std::vector<uint64_t> ids;
};

void DoOurs(KVStore& store, const Graph& graph, const Step& step, uint64_t i) {
  const uint64_t node = graph.ids[step.node];
  const uint64_t other = graph.ids[step.other];
  absl::Status status;
  switch (step.op) {
    case Op::kGetLinks:
      status = store
                   .ListMapping(graph.links, node,
                                {.order = MappingListOptions::Order::kDescending, .limit = kListLimit})
                   .status();
      break;
    case Op::kGetNode:
      status = store.GetObject(graph.nodes, node, {}).status();
      break;
    case Op::kAddLink:
    case Op::kUpdateLink:
      status = store.AddMapping(graph.links, node, other, i);
      break;
    case Op::kUpdateNode:
      status = store
                   .UpdateObject(graph.nodes, node,
                                 [i](std::string_view) -> absl::StatusOr<std::string> { return Node(i); }, {})
                   .status();
      break;
    case Op::kCountLinks:
      status = store.CountMapping(graph.links, node).status();
      break;
    case Op::kDeleteLink:
      status = store.RemoveMapping(graph.links, node, other).status();
      break;
    case Op::kAddNode:
      status = store.CreateObject(graph.nodes, Node(i), {.near = node}).status();
      break;
    case Op::kDeleteNode:
      status = store.DeleteObject(graph.nodes, node, /*hard=*/true);
      break;
  }
  // Nodes that were deleted are asked for again.
  if (!absl::IsNotFound(status)) Check(status);
}

/// The same by the connector alone, on one connection.
class RawClient {
 public:
  RawClient(const Host& host, const MySqlFleet& options, const Graph& graph)
      : graph_(graph), connection_(host, options), statements_(1 << 16) {
    for (const uint32_t shard : graph.shards) {
      const auto nodes = [&](Sql sql) { return &connection_.Prepare(sql, Space::kId, graph.nodes, shard); };
      const auto links = [&](Sql sql) { return &connection_.Prepare(sql, Space::kId, graph.links, shard); };
      statements_[shard] = {nodes(Sql::kGetObject),    nodes(Sql::kLockObject),   nodes(Sql::kUpdateObject),
                            nodes(Sql::kCreateObject), nodes(Sql::kEraseObject),  links(Sql::kListDescending),
                            links(Sql::kAddMapping),   links(Sql::kCountMapping), links(Sql::kRemoveMapping)};
    }
  }

  void Do(const Step& step, uint64_t i) {
    const uint64_t node = graph_.ids[step.node];
    const uint64_t other = graph_.ids[step.other];
    const uint64_t local = node & ObjectId::kMaxLocal;
    Statements& on = statements_[node >> 46];
    switch (step.op) {
      case Op::kGetLinks:
        on.list->setUInt64(1, node);
        on.list->setUInt64(2, kListLimit + 1);
        on.list->setUInt64(3, 0);
        Read(*on.list);
        break;
      case Op::kGetNode:
        on.get->setUInt64(1, local);
        Read(*on.get);
        break;
      case Op::kAddLink:
      case Op::kUpdateLink:
        on.add->setUInt64(1, node);
        on.add->setUInt64(2, other);
        on.add->setUInt64(3, i);
        on.add->executeUpdate();
        break;
      case Op::kUpdateNode:
        connection_.Run("START TRANSACTION");
        on.lock->setUInt64(1, local);
        if (Read(*on.lock) > 0) {
          on.update->setString(1, Node(i));
          on.update->setUInt64(2, i);
          on.update->setUInt64(3, local);
          on.update->executeUpdate();
        }
        connection_.Run("COMMIT");
        break;
      case Op::kCountLinks:
        on.count->setUInt64(1, node);
        Read(*on.count);
        break;
      case Op::kDeleteLink:
        on.remove->setUInt64(1, node);
        on.remove->setUInt64(2, other);
        on.remove->executeUpdate();
        break;
      case Op::kAddNode:
        on.create->setString(1, Node(i));
        Read(*on.create);
        break;
      case Op::kDeleteNode:
        on.erase->setUInt64(1, local);
        on.erase->executeUpdate();
        break;
    }
  }

 private:
  struct Statements {
    sql::PreparedStatement* get = nullptr;
    sql::PreparedStatement* lock = nullptr;
    sql::PreparedStatement* update = nullptr;
    sql::PreparedStatement* create = nullptr;
    sql::PreparedStatement* erase = nullptr;
    sql::PreparedStatement* list = nullptr;
    sql::PreparedStatement* add = nullptr;
    sql::PreparedStatement* count = nullptr;
    sql::PreparedStatement* remove = nullptr;
  };

  static uint64_t Read(sql::PreparedStatement& statement) {
    const std::unique_ptr<sql::ResultSet> rows(statement.executeQuery());
    uint64_t count = 0;
    for (; rows->next(); ++count) {
      const std::string first = rows->getString(1);
      if (first.empty()) Check(absl::InternalError("an empty column"));
    }
    return count;
  }

  const Graph& graph_;
  RawConnection connection_;
  std::vector<Statements> statements_;
};

}  // namespace

absl::StatusOr<Report> BenchLinks(const MySqlBenchOptions& options) {
  auto opened = MySqlFixture::Open(options);
  if (!opened.ok()) return opened.status();
  MySqlFixture& fixture = **opened;
  Report report = NewReport("linkbench", options);
  report.settings.emplace_back("nodes", kNodes);
  report.settings.emplace_back("links", kNodes * kLinksOfANode);
  const Graph ours(fixture, "ours");
  const Graph theirs(fixture, "raw");
  std::vector<std::unique_ptr<RawClient>> clients;
  for (size_t t = 0; t < kThreads; ++t) {
    clients.push_back(std::make_unique<RawClient>(fixture.FirstHost(Space::kId), fixture.options(), theirs));
  }
  const Plan plan;
  Measure(
      report, options, "mix_8", kThreads,
      [&](uint64_t i) {
        DoOurs(fixture.store(), ours, plan.At(i), i);
        return uint64_t{1};
      },
      [&](uint64_t i) {
        // A deadlock of the raw side is repeated, as ours repeats its own.
        for (int attempt = 0;; ++attempt) {
          try {
            clients[i % kThreads]->Do(plan.At(i), i);
            return uint64_t{1};
          } catch (const sql::SQLException& error) {
            if (attempt == 20) Check(absl::UnavailableError(error.what()));
          }
        }
      });
  return report;
}

}  // namespace kvstore::bench

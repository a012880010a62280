#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/fleet/mysql_fixture.h"
#include "bench/harness/graph.h"
#include "idgen/object_id.h"

/// kv bench linkbench.
namespace kvstore::bench {
namespace {

using mysql::Sql;

constexpr size_t kThreads = 8;
/// More links than any node has.
constexpr uint64_t kCounted = 65'536;

/// Nodes on the first host, with their links.
Graph MakeGraph(MySqlFixture& fixture, const std::string& name) {
  const std::string nodes = fixture.Create(name + "_nodes", Shape::kObjects);
  const std::string links = fixture.Create(name + "_links", Shape::kMappings);
  return {fixture.store(), nodes, links, fixture.ShardsOfFirstHost(ShardSpace::kId)};
}

/// The same operations by the connector alone, on one connection.
class RawClient {
 public:
  RawClient(const Host& host, const MySqlFleetOptions& options, const Graph& graph,
            std::span<const uint32_t> shards)
      : graph_(graph), connection_(host, options), statements_(1 << 16) {
    for (const uint32_t shard : shards) {
      const auto nodes = [&](Sql sql) {
        return &connection_.Prepare(sql, ShardSpace::kId, graph.nodes(), shard);
      };
      const auto links = [&](Sql sql) {
        return &connection_.Prepare(sql, ShardSpace::kId, graph.links(), shard);
      };
      statements_[shard] = {nodes(Sql::kGetObject),    nodes(Sql::kLockObject),   nodes(Sql::kUpdateObject),
                            nodes(Sql::kCreateObject), nodes(Sql::kEraseObject),  links(Sql::kListDescending),
                            links(Sql::kAddMapping),   links(Sql::kCountMapping), links(Sql::kRemoveMapping)};
    }
  }

  void Execute(const GraphMix::Step& step, uint64_t i) {
    const uint64_t node = graph_.ids()[step.node];
    const uint64_t other = graph_.ids()[step.other];
    const uint64_t local = node & ObjectId::kMaxLocal;
    Statements& on = statements_[ObjectId::ShardOf(node)];
    switch (step.op) {
      case GraphOp::kGetLinks:
        on.list->setUInt64(1, node);
        on.list->setUInt64(2, Graph::kListLimit + 1);
        on.list->setUInt64(3, 0);
        Read(*on.list);
        break;
      case GraphOp::kGetNode:
        on.get->setUInt64(1, local);
        Read(*on.get);
        break;
      case GraphOp::kAddLink:
      case GraphOp::kUpdateLink:
        on.add->setUInt64(1, node);
        on.add->setUInt64(2, other);
        on.add->setUInt64(3, i);
        on.add->executeUpdate();
        break;
      case GraphOp::kUpdateNode:
        connection_.Run("START TRANSACTION");
        on.lock->setUInt64(1, local);
        if (Read(*on.lock) > 0) {
          on.update->setString(1, Graph::Node(i));
          on.update->setUInt64(2, i);
          on.update->setUInt64(3, local);
          on.update->executeUpdate();
        }
        connection_.Run("COMMIT");
        break;
      case GraphOp::kCountLinks:
        on.count->setUInt64(1, node);
        on.count->setUInt64(2, 0);
        on.count->setUInt64(3, kCounted);
        Read(*on.count);
        break;
      case GraphOp::kDeleteLink:
        on.remove->setUInt64(1, node);
        on.remove->setUInt64(2, other);
        on.remove->executeUpdate();
        break;
      case GraphOp::kAddNode:
        on.create->setString(1, Graph::Node(i));
        Read(*on.create);
        break;
      case GraphOp::kDeleteNode:
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
  report.settings.emplace_back("nodes", GraphMix::kNodes);
  report.settings.emplace_back("links", GraphMix::kNodes * Graph::kLinksOfANode);
  const Graph ours = MakeGraph(fixture, "ours");
  const Graph theirs = MakeGraph(fixture, "raw");
  const std::vector<uint32_t> shards = fixture.ShardsOfFirstHost(ShardSpace::kId);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (size_t t = 0; t < kThreads; ++t) {
    clients.push_back(
        std::make_unique<RawClient>(fixture.FirstHost(ShardSpace::kId), fixture.options(), theirs, shards));
  }
  const GraphMix mix;
  Measure(
      report, options, "mix_8", kThreads,
      [&](uint64_t i) {
        ours.Execute(mix.At(i), i);
        return uint64_t{1};
      },
      [&](uint64_t i) {
        // The raw side retries deadlocks, as our side does.
        for (int attempt = 0;; ++attempt) {
          try {
            clients[i % kThreads]->Execute(mix.At(i), i);
            return uint64_t{1};
          } catch (const sql::SQLException& error) {
            if (attempt == 20) Check(absl::UnavailableError(error.what()));
          }
        }
      });
  fixture.AddCacheFigures(report);
  return report;
}

}  // namespace kvstore::bench

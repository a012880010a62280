#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvstore_api/kvstore.h"

/// The mix of LinkBench (Armstrong et al., "LinkBench: a Database Benchmark Based on the Facebook Social
/// Graph", SIGMOD 2013): nodes are objects, links are mappings.
namespace kvstore::bench {

enum class GraphOp : uint8_t {
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
/// "get_links"
const char* Name(GraphOp op);

/// Generates operation number i of the mix, always the same for an i, with the frequencies of operations and
/// the skew of nodes that the paper gives. Immutable.
class GraphMix {
 public:
  static constexpr uint64_t kNodes = 10'000;

  struct Step {
    GraphOp op;
    uint64_t node;   ///< Below kNodes.
    uint64_t other;  ///< The link's other end.
  };

  GraphMix();
  Step At(uint64_t i) const;

 private:
  /// Draws numbers below kNodes, the i-th in proportion to 1 / (i + 1)^exponent, and scatters them.
  class Zipf {
   public:
    explicit Zipf(double exponent);
    uint64_t Draw(uint64_t random) const;

   private:
    std::vector<double> sums_;
  };

  const Zipf link_read_;
  const Zipf link_write_;
  const Zipf node_read_;
  const Zipf node_update_;
};

/// A graph of GraphMix::kNodes nodes with some links each. Thread-safe; calls that fail end the benchmark.
class Graph {
 public:
  static constexpr uint64_t kLinksOfANode = 5;
  static constexpr uint32_t kListLimit = 10'000;

  /// Fills two datasets, which are empty. The store must outlive it.
  /// shards  shards on which the nodes are made, in turn; none: the store chooses.
  Graph(KVStore& store, std::string nodes, std::string links, std::span<const uint32_t> shards);

  /// Executes operation number i of a mix.
  void Execute(const GraphMix::Step& step, uint64_t i) const;

  const std::string& nodes() const { return nodes_; }
  const std::string& links() const { return links_; }
  const std::vector<uint64_t>& ids() const { return ids_; }
  /// Returns the text of a node, different for each i.
  static std::string Node(uint64_t i);

 private:
  KVStore& store_;
  const std::string nodes_;
  const std::string links_;
  std::vector<uint64_t> ids_;
};

}  // namespace kvstore::bench

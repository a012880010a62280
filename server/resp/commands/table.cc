#include "server/resp/commands/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "server/resp/commands/groups.h"
#include "server/resp/commands/words.h"

namespace kvstore::server::resp {
namespace {

/// Longer words are no names of commands.
constexpr size_t kMaxNameBytes = 32;

constexpr std::string_view kTransactions =
    "a command on one row is atomic, and several of them are not; put several columns with one HSET, or with "
    "a condition by KV.PUT ... IFEQUALS";
constexpr std::string_view kExpiry =
    "keys have no time to live of their own: cells expire by the ttl_ms of their dataset (kv dataset alter "
    "NAME --ttl-ms MS)";
constexpr std::string_view kLists =
    "there are no lists: a column of a row is a stream (XADD, XREVRANGE), a mapping is a sorted set (ZADD)";
constexpr std::string_view kSets =
    "there are no sets: a mapping is a sorted set (ZADD), a row is a hash (HSET)";
constexpr std::string_view kMessages = "there are no messages between clients";
constexpr std::string_view kScripts = "there are no scripts or functions";
constexpr std::string_view kCluster =
    "every server serves every dataset, so clients need not know where data is; connect without the "
    "cluster's mode";
constexpr std::string_view kAdministration =
    "a store is administered with kv, by --server or on its machine (docs/operations.md)";
constexpr std::string_view kGroups =
    "there are no groups of consumers; read a stream with XREVRANGE or XRANGE";

constexpr std::string_view kBits = "there are no bitmaps; a value is read and written as a whole";
constexpr std::string_view kParts = "read the value with GET, and look at the part in the client";
constexpr std::string_view kRandom = "use HSCAN or ZSCAN, and choose in the client";
constexpr std::string_view kSetPlaces =
    "read the entries with ZRANGE or ZRANGEBYSCORE, and count in the client; ZCARD counts all of them";
constexpr std::string_view kSetMembers = "members are numbers: their order is that of ZSCAN";
constexpr std::string_view kSetTakes =
    "read the entries with ZRANGE or ZRANGEBYSCORE, and remove them with ZREM, which tells how many were "
    "there";
constexpr std::string_view kSetAlgebra = "read each set with ZRANGE, and combine them in the client";
constexpr std::string_view kShapes = "a dataset has one shape for all of its keys; use TYPE";

struct Unsupported {
  std::string_view name;
  std::string_view instead;
};
constexpr std::array kUnsupported = {
    Unsupported{"multi", kTransactions},
    Unsupported{"exec", kTransactions},
    Unsupported{"discard", kTransactions},
    Unsupported{"watch", kTransactions},
    Unsupported{"unwatch", kTransactions},
    Unsupported{"msetnx", kTransactions},
    Unsupported{"expire", kExpiry},
    Unsupported{"expireat", kExpiry},
    Unsupported{"expiretime", kExpiry},
    Unsupported{"pexpire", kExpiry},
    Unsupported{"pexpireat", kExpiry},
    Unsupported{"pexpiretime", kExpiry},
    Unsupported{"persist", kExpiry},
    Unsupported{"ttl", kExpiry},
    Unsupported{"pttl", kExpiry},
    Unsupported{"setex", kExpiry},
    Unsupported{"psetex", kExpiry},
    Unsupported{"getex", kExpiry},
    Unsupported{"hexpire", kExpiry},
    Unsupported{"hpexpire", kExpiry},
    Unsupported{"httl", kExpiry},
    Unsupported{"lpush", kLists},
    Unsupported{"rpush", kLists},
    Unsupported{"lpop", kLists},
    Unsupported{"rpop", kLists},
    Unsupported{"lrange", kLists},
    Unsupported{"llen", kLists},
    Unsupported{"lindex", kLists},
    Unsupported{"blpop", kLists},
    Unsupported{"brpop", kLists},
    Unsupported{"sadd", kSets},
    Unsupported{"srem", kSets},
    Unsupported{"smembers", kSets},
    Unsupported{"sismember", kSets},
    Unsupported{"scard", kSets},
    Unsupported{"spop", kSets},
    Unsupported{"sscan", kSets},
    Unsupported{"subscribe", kMessages},
    Unsupported{"psubscribe", kMessages},
    Unsupported{"ssubscribe", kMessages},
    Unsupported{"unsubscribe", kMessages},
    Unsupported{"punsubscribe", kMessages},
    Unsupported{"publish", kMessages},
    Unsupported{"spublish", kMessages},
    Unsupported{"pubsub", kMessages},
    Unsupported{"eval", kScripts},
    Unsupported{"evalsha", kScripts},
    Unsupported{"eval_ro", kScripts},
    Unsupported{"evalsha_ro", kScripts},
    Unsupported{"script", kScripts},
    Unsupported{"function", kScripts},
    Unsupported{"fcall", kScripts},
    Unsupported{"fcall_ro", kScripts},
    Unsupported{"cluster", kCluster},
    Unsupported{"asking", kCluster},
    Unsupported{"readonly", kCluster},
    Unsupported{"readwrite", kCluster},
    Unsupported{"xgroup", kGroups},
    Unsupported{"xreadgroup", kGroups},
    Unsupported{"xread", kGroups},
    Unsupported{"xack", kGroups},
    Unsupported{"xclaim", kGroups},
    Unsupported{"xautoclaim", kGroups},
    Unsupported{"xpending", kGroups},
    Unsupported{"xinfo", kGroups},
    Unsupported{"xtrim", "a column keeps as many versions as its dataset's max_versions"},
    Unsupported{"keys", "it would list everything at once; use SCAN"},
    Unsupported{"randomkey", "use SCAN"},
    Unsupported{"rename", "a row keeps its key"},
    Unsupported{"renamenx", "a row keeps its key"},
    Unsupported{"copy", "read the row and write it under the other key"},
    Unsupported{"move", "there is one database; datasets take its place"},
    Unsupported{"swapdb", "there is one database; datasets take its place"},
    Unsupported{"getset", "use GET and SET, or KV.PUT ... IFEQUALS"},
    Unsupported{"append", "read the value, and put it with KV.PUT ... IFEQUALS"},
    Unsupported{"setrange", "read the value, and put it with KV.PUT ... IFEQUALS"},
    Unsupported{"getrange", "read the value with GET"},
    Unsupported{"incrbyfloat", "only whole numbers are added: INCRBY, HINCRBY"},
    Unsupported{"hincrbyfloat", "only whole numbers are added: INCRBY, HINCRBY"},
    Unsupported{"hrandfield", kRandom},
    Unsupported{"zrandmember", kRandom},
    Unsupported{"setbit", kBits},
    Unsupported{"getbit", kBits},
    Unsupported{"bitcount", kBits},
    Unsupported{"bitop", kBits},
    Unsupported{"bitpos", kBits},
    Unsupported{"bitfield", kBits},
    Unsupported{"lcs", kParts},
    Unsupported{"substr", kParts},
    Unsupported{"zcount", kSetPlaces},
    Unsupported{"zrank", kSetPlaces},
    Unsupported{"zrevrank", kSetPlaces},
    Unsupported{"zmscore", "use ZSCORE in a pipeline"},
    Unsupported{"zlexcount", kSetMembers},
    Unsupported{"zrangebylex", kSetMembers},
    Unsupported{"zrevrangebylex", kSetMembers},
    Unsupported{"zremrangebylex", kSetMembers},
    Unsupported{"zpopmin", kSetTakes},
    Unsupported{"zpopmax", kSetTakes},
    Unsupported{"bzpopmin", kSetTakes},
    Unsupported{"bzpopmax", kSetTakes},
    Unsupported{"zmpop", kSetTakes},
    Unsupported{"bzmpop", kSetTakes},
    Unsupported{"zremrangebyrank", kSetTakes},
    Unsupported{"zremrangebyscore", kSetTakes},
    Unsupported{"zunion", kSetAlgebra},
    Unsupported{"zunionstore", kSetAlgebra},
    Unsupported{"zinter", kSetAlgebra},
    Unsupported{"zinterstore", kSetAlgebra},
    Unsupported{"zintercard", kSetAlgebra},
    Unsupported{"zdiff", kSetAlgebra},
    Unsupported{"zdiffstore", kSetAlgebra},
    Unsupported{"zrangestore", kSetAlgebra},
    Unsupported{"object", kShapes},
    Unsupported{"dump", "a dataset is exported as a whole (docs/export.md)"},
    Unsupported{"restore", "put the values with HSET, SET or XADD"},
    Unsupported{"xsetid", "an entry's ID is its timestamp, which XADD can be given"},
    Unsupported{"zincrby", "a score is the sequence of an entry; set it with ZADD"},
    Unsupported{"flushall", "drop a dataset with kv dataset drop"},
    Unsupported{"flushdb", "drop a dataset with kv dataset drop"},
    Unsupported{"config", kAdministration},
    Unsupported{"monitor", kAdministration},
    Unsupported{"save", kAdministration},
    Unsupported{"bgsave", kAdministration},
    Unsupported{"bgrewriteaof", kAdministration},
    Unsupported{"lastsave", kAdministration},
    Unsupported{"shutdown", kAdministration},
    Unsupported{"replicaof", kAdministration},
    Unsupported{"slaveof", kAdministration},
    Unsupported{"psync", kAdministration},
    Unsupported{"sync", kAdministration},
    Unsupported{"failover", kAdministration},
    Unsupported{"role", kAdministration},
    Unsupported{"wait", kAdministration},
    Unsupported{"debug", kAdministration},
    Unsupported{"memory", kAdministration},
    Unsupported{"slowlog", kAdministration},
    Unsupported{"latency", kAdministration},
    Unsupported{"module", kAdministration},
    Unsupported{"acl", "callers and their rights are in the file of server.tokens (docs/security.md)"},
};

using Names = std::unordered_map<std::string_view, const Command*>;

const Names& ByName() {
  static const Names names = [] {
    Names made;
    for (const Command* command : AllCommands()) made.emplace(command->name, command);
    return made;
  }();
  return names;
}

}  // namespace

const std::vector<const Command*>& AllCommands() {
  static const std::vector<const Command*> commands = [] {
    std::vector<const Command*> all;
    for (const auto group : {ConnectionCommands(), ServerCommands(), KeyCommands(), ScanCommands(),
                             HashCommands(), StringCommands(), CounterCommands(), StreamCommands(),
                             SortedSetCommands(), JsonCommands(), StoreCommands()}) {
      for (const Command& command : group) all.push_back(&command);
    }
    std::sort(all.begin(), all.end(), [](const Command* a, const Command* b) { return a->name < b->name; });
    return all;
  }();
  return commands;
}

const Command* FindCommand(std::string_view name) {
  if (name.size() > kMaxNameBytes) return nullptr;
  std::array<char, kMaxNameBytes> lower;
  for (size_t i = 0; i < name.size(); ++i) lower[i] = LowerCase(name[i]);
  const auto found = ByName().find({lower.data(), name.size()});
  return found == ByName().end() ? nullptr : found->second;
}

std::string_view WhyNotSupported(std::string_view name) {
  for (const Unsupported& unsupported : kUnsupported) {
    if (Is(name, unsupported.name)) return unsupported.instead;
  }
  return {};
}

absl::Status UnknownCommandError(std::string_view name) {
  if (const std::string_view instead = WhyNotSupported(name); !instead.empty()) {
    return absl::UnimplementedError(fmt::format("'{}' is not supported: {}", LowerCase(name), instead));
  }
  // The words after the name may be values, which no error shows.
  const std::string_view shown = name.substr(0, kMaxNameBytes);
  return absl::UnimplementedError(
      fmt::format("unknown command '{}'; docs/redis.md and COMMAND list those that there are", shown));
}

}  // namespace kvstore::server::resp

#pragma once

#include <memory>
#include <string>

#include "backend_api/mapping_store.h"
#include "backends/rocksdb/engine/engine.h"

namespace kvstore::rocks {

/// Mappings in a column family. Three kinds of keys, each beginning with the ID they belong to:
///
///   be64(from) 0x01                           -> be64(count)
///   be64(from) 0x02 be64(to)                  -> be64(sequence)
///   be64(from) 0x03 be64(sequence) be64(to)   -> nothing
class RocksMappingStore : public MappingStore {
 public:
  RocksMappingStore(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family)
      : engine_(std::move(engine)), family_(std::move(family)) {}

  // The methods of MappingStore.
#define KV_MAPPING_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

  // ---- keys ----

  static std::string CountKey(uint64_t from);
  /// The prefix of the keys of pairs; be64(to) follows.
  static std::string PairPrefix(uint64_t from);
  static std::string OrderKey(uint64_t from, uint64_t sequence, uint64_t to);
  /// Whether `key` is the key of a pair.
  static bool IsPair(std::string_view key);
  /// The key of the unit that a pair is: be64(from) be64(to) of the pair's key.
  static std::string UnitKeyOf(std::string_view pair);

 private:
  /// The number stored under `key`; nullopt if there is none.
  absl::StatusOr<std::optional<uint64_t>> GetNumber(const std::string& key);
  /// Chooses the row lock of all entries of `from`.
  uint64_t Hash(uint64_t from) const;

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Family> family_;
};

}  // namespace kvstore::rocks

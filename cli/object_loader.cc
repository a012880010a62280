#include "cli/object_loader.h"

#include <fmt/format.h>

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid.hpp>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "cli/object_text.h"
#include "json/json_fields.h"
#include "kvstore_api/limits.h"

namespace kvstore::cli {
namespace {

constexpr char kIdColumn[] = "id";

/// Finds objects' IDs by their keys in a dataset of rows.
class Keys {
 public:
  Keys(KVStore& store, std::string dataset) : store_(store), dataset_(std::move(dataset)) {}
  bool on() const { return !dataset_.empty(); }

  /// Finds the IDs of the keys that are known.
  absl::StatusOr<std::map<std::string, uint64_t>> Find(const std::set<std::string>& keys) {
    std::map<std::string, uint64_t> found;
    std::vector<RowRead> reads;
    for (const std::string& key : keys) {
      reads.push_back({.row = key});
      reads.back().options.columns = {kIdColumn};
    }
    if (reads.empty()) return found;
    const auto rows = store_.GetRows(dataset_, reads);
    if (!rows.ok()) return rows.status();
    for (size_t i = 0; i < reads.size(); ++i) {
      const auto& row = (*rows)[i];
      // A key that cannot be a row key is unknown.
      if (absl::IsInvalidArgument(row.status())) continue;
      if (!row.ok()) return row.status();
      if (row->items.empty()) continue;
      const std::string& text = row->items[0].cells[0].value;
      uint64_t id = 0;
      const auto read = std::from_chars(text.data(), text.data() + text.size(), id);
      if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
        return absl::DataLossError(fmt::format("dataset '{}': its column id of '{}' is no ID: '{}'", dataset_,
                                               std::string(reads[i].row), text));
      }
      found[std::string(reads[i].row)] = id;
    }
    return found;
  }

  absl::Status Add(const std::string& key, uint64_t id) {
    const std::string text = std::to_string(id);
    const CellWrite cell{kIdColumn, text, std::nullopt};
    return store_.PutRow(dataset_, key, {&cell, 1}, {}).status();
  }

  /// Returns the request ID of the create of a key's object, so that a repeated create makes no second
  /// object.
  static std::string RequestId(const std::string& key) {
    constexpr boost::uuids::uuid kSpace = {
        {0x6b, 0x76, 0x20, 0x69, 0x6d, 0x70, 0x6f, 0x72, 0x74, 0x20, 0x6b, 0x65, 0x79, 0x73, 0x20, 0x31}};
    const boost::uuids::uuid id = boost::uuids::name_generator_sha1(kSpace)(key);
    return {id.begin(), id.end()};
  }

 private:
  KVStore& store_;
  const std::string dataset_;
};

/// Code that the loaders of lines that are written one by one share.
class SingleLoader : public LineLoader {
 public:
  SingleLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode)
      : store_(store), dataset_(spec.name), mode_(mode), keys_(store, mode.keys) {}

 protected:
  /// Stores an error that is the line's fault in the line; returns an error of the store.
  static absl::Status Settle(Line& line, Outcome outcome, const absl::Status& status) {
    line.outcome = status.ok() ? outcome : Outcome::kRejected;
    if (status.ok() || !IsLinesFault(status)) return status;
    line.problem = status;
    return absl::OkStatus();
  }

  KVStore& store_;
  const std::string dataset_;
  const LoadMode mode_;
  Keys keys_;
};

// ---- objects ----

class ObjectLoader : public SingleLoader {
 public:
  using SingleLoader::SingleLoader;

  absl::Status Load(std::vector<Line>& lines) override {
    written_.clear();
    std::vector<Wanted> wanted = Parse(lines);
    std::set<std::string> names;
    for (const Wanted& one : wanted) {
      if (one.key) names.insert(*one.key);
    }
    auto known = keys_.Find(names);
    if (!known.ok()) return known.status();
    std::vector<uint64_t> ids;
    for (Wanted& one : wanted) {
      if (!one.key) continue;
      if (const auto id = known->find(*one.key); id != known->end()) one.id = id->second;
    }
    for (const Wanted& one : wanted) {
      if (one.id) ids.push_back(*one.id);
    }
    std::vector<absl::StatusOr<Object>> objects;
    if (mode_.compare && !ids.empty()) {
      auto found = store_.GetObjects(dataset_, ids, kAlsoDeleted);
      if (!found.ok()) return found.status();
      objects = *std::move(found);
    }
    size_t next = 0;
    for (Wanted& one : wanted) {
      std::optional<absl::StatusOr<Object>> there;
      if (one.id && mode_.compare) {
        there = std::move(objects[next++]);
        // An earlier one of these lines may have changed it since.
        if (written_.contains(*one.id)) there = store_.GetObject(dataset_, *one.id, kAlsoDeleted);
      } else if (const auto made = one.key ? known->find(*one.key) : known->end();
                 !one.id && made != known->end()) {
        // The same key occurs twice in these lines.
        one.id = made->second;
        if (mode_.compare) there = store_.GetObject(dataset_, *one.id, kAlsoDeleted);
      }
      if (auto status = one.id ? Replace(one, there) : Create(one, *known); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  // A line says what the object is to be, also if it was deleted softly: its document may say that it stays
  // so.
  static constexpr ObjectReadOptions kAlsoDeleted{.include_inactive = true};

  struct Wanted {
    Line* line = nullptr;
    std::string data;  // the document
    std::optional<uint64_t> id;
    std::optional<std::string> key;
    CreateOptions where;
  };

  std::vector<Wanted> Parse(std::vector<Line>& lines) const {
    std::vector<Wanted> wanted;
    for (Line& line : lines) {
      if (!line.problem.ok()) continue;
      // The document is stored as it stands in the line.
      const auto json = ParseStoredJson(line.text, kMaxEnvelopeDepth);
      if (line.problem = json.status(); !json.ok()) continue;
      JsonFields fields(*json, "");
      Wanted one{.line = &line};
      fields.Require("data");
      one.id = fields.OptionalUint("id", 0, kMaxId);
      one.key = fields.OptionalBytes("key");
      one.where.near = fields.OptionalUint("near", 0, kMaxId);
      if (const auto shard = fields.OptionalUint("shard", 0, 65535)) {
        one.where.shard = static_cast<uint32_t>(*shard);
      }
      if (one.key && !keys_.on()) fields.Fail("key", "needs the dataset that knows the keys: --keys");
      if (one.key && one.id) fields.Fail("key", "not together with an id");
      if (mode_.compare && !one.key && !one.id) {
        fields.Fail("id", "or a key is needed to find the object that is there");
      }
      if (line.problem = fields.Finish(); !line.problem.ok()) continue;
      one.data = DocumentIn(line.text);
      wanted.push_back(std::move(one));
    }
    return wanted;
  }

  absl::Status Create(const Wanted& one, std::map<std::string, uint64_t>& known) {
    const Outcome outcome = mode_.compare ? Outcome::kNew : Outcome::kLoaded;
    if (!mode_.write) return Settle(*one.line, outcome, absl::OkStatus());
    CreateOptions options = one.where;
    if (one.key) options.request_id = Keys::RequestId(*one.key);
    const auto id = store_.CreateObject(dataset_, one.data, options);
    if (!id.ok() || !one.key) return Settle(*one.line, outcome, id.status());
    if (auto status = keys_.Add(*one.key, *id); !status.ok()) return Settle(*one.line, outcome, status);
    known[*one.key] = *id;
    return Settle(*one.line, outcome, absl::OkStatus());
  }

  /// there  as it is; none if that was not asked.
  absl::Status Replace(const Wanted& one, const std::optional<absl::StatusOr<Object>>& there) {
    if (there) {
      if (!there->ok()) return Settle(*one.line, Outcome::kRejected, there->status());
      if (SameDocument((*there)->data, one.data)) return Settle(*one.line, Outcome::kSame, absl::OkStatus());
    }
    const Outcome outcome = there ? Outcome::kChanged : Outcome::kLoaded;
    if (!mode_.write) return Settle(*one.line, outcome, absl::OkStatus());
    const auto updated = store_.UpdateObject(
        dataset_, *one.id, [&](std::string_view) -> absl::StatusOr<std::string> { return one.data; },
        {.include_inactive = true});
    written_.insert(*one.id);
    return Settle(*one.line, outcome, updated.status());
  }

  std::set<uint64_t> written_;  // the objects that these lines have changed
};

// ---- mappings ----

class MappingLoader : public SingleLoader {
 public:
  using SingleLoader::SingleLoader;

  absl::Status Load(std::vector<Line>& lines) override {
    auto wanted = Parse(lines);
    if (!wanted.ok()) return wanted.status();
    std::map<uint64_t, std::map<uint64_t, std::optional<uint64_t>>> there;  // by from: to, its sequence
    if (mode_.compare) {
      for (const Wanted& one : *wanted) there[one.from.id][one.to.id];
      for (auto& [from, entries] : there) {
        if (auto status = Find(from, entries); !status.ok()) return status;
      }
    }
    for (const Wanted& one : *wanted) {
      Outcome outcome = Outcome::kLoaded;
      if (mode_.compare) {
        std::optional<uint64_t>& sequence = there[one.from.id][one.to.id];
        outcome = !sequence                                    ? Outcome::kNew
                  : one.sequence && *one.sequence != *sequence ? Outcome::kChanged
                                                               : Outcome::kSame;
        sequence = one.sequence.value_or(sequence.value_or(0));
      }
      absl::Status status;
      if (mode_.write && outcome != Outcome::kSame) {
        status = store_.AddMapping(dataset_, one.from.id, one.to.id, one.sequence);
      }
      if (status = Settle(*one.line, outcome, status); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  struct End {
    uint64_t id = 0;
    std::optional<std::string> key;  // instead of it
  };
  struct Wanted {
    Line* line = nullptr;
    End from;
    End to;
    std::optional<uint64_t> sequence;
  };

  /// Reads an ID or, where there is a dataset of keys, {"key": ...}.
  End ReadEnd(JsonFields& fields, const char* name) const {
    const Json* const value = fields.Find(name);
    if (value == nullptr || !value->is_object() || !keys_.on()) return {.id = fields.Uint(name, 0, kMaxId)};
    JsonFields inner(*value, fields.Path(name) + ".");
    End end{.key = inner.Bytes("key")};
    fields.FailAll(inner);
    return end;
  }

  /// Replaces keys by their IDs; lines that name an unknown key get a problem.
  absl::StatusOr<std::vector<Wanted>> Parse(std::vector<Line>& lines) {
    std::vector<Wanted> parsed;
    std::set<std::string> names;
    for (Line& line : lines) {
      if (!line.problem.ok()) continue;
      const auto json = ParseJson(line.text);
      if (line.problem = json.status(); !json.ok()) continue;
      JsonFields fields(*json, "");
      Wanted one{.line = &line,
                 .from = ReadEnd(fields, "from"),
                 .to = ReadEnd(fields, "to"),
                 .sequence = fields.OptionalUint("sequence", 0, kMaxTimestamp)};
      if (line.problem = fields.Finish(); !line.problem.ok()) continue;
      if (one.from.key) names.insert(*one.from.key);
      if (one.to.key) names.insert(*one.to.key);
      parsed.push_back(std::move(one));
    }
    const auto known = keys_.Find(names);
    if (!known.ok()) return known.status();
    std::vector<Wanted> wanted;
    for (Wanted& one : parsed) {
      for (End* end : {&one.from, &one.to}) {
        if (!end->key) continue;
        if (const auto id = known->find(*end->key); id != known->end()) {
          end->id = id->second;
        } else {
          one.line->problem = absl::NotFoundError(fmt::format("{}.key: dataset '{}' does not know it",
                                                              end == &one.from ? "from" : "to", mode_.keys));
        }
      }
      if (one.line->problem.ok()) wanted.push_back(std::move(one));
    }
    return wanted;
  }

  /// Fills in the sequences of the entries that exist.
  absl::Status Find(uint64_t from, std::map<uint64_t, std::optional<uint64_t>>& entries) {
    MappingListOptions options{.limit = kMaxListEntries};
    do {
      auto page = store_.ListMapping(dataset_, from, options);
      if (!page.ok()) return page.status();
      for (const MappingEntry& entry : page->entries) {
        if (const auto found = entries.find(entry.to); found != entries.end()) found->second = entry.sequence;
      }
      options.marker = std::move(page->marker);
    } while (!options.marker.empty());
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<LineLoader> NewObjectLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode) {
  return std::make_unique<ObjectLoader>(store, spec, mode);
}

std::unique_ptr<LineLoader> NewMappingLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode) {
  return std::make_unique<MappingLoader>(store, spec, mode);
}

}  // namespace kvstore::cli

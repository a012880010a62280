#include "shardops/notes.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/clock.h"
#include "base/process.h"
#include "json/json_text.h"
#include "shardmap/nodes.h"

namespace kvstore::shardops {
namespace {

using Json = nlohmann::json;

/// The field of a note for a copy to the host that has not ended: {"from": master, "operation": ID}.
constexpr char kCopy[] = "copy";
/// The field of a note for shards of which moves that were given up have left copies on the host:
/// [{"mod": true, "first": 0, "last": 3}, ...].
constexpr char kLeft[] = "left";
/// The field of a note for who has fenced the host: {"by": "ann@ops1, process 4711", "at_ms"}.
constexpr char kFenced[] = "fenced";

/// How often a change is tried, since others may change the note at the same moment.
constexpr int kAttempts = 5;

/// Changes a note by `edit(json)`, as long as the operation `held` is held; `edit` returns false if nothing
/// is to change.
template <typename Edit>
absl::Status Change(FleetOperator& fleet, const Held& held, const Host& host, const Edit& edit) {
  for (int attempt = 1;; ++attempt) {
    auto note = LoadNote(fleet, host);
    if (!note.ok()) return note.status();
    if (!note->version) {
      // A transaction could not create the note's parents, so the note is created empty first.
      absl::Status made = fleet.zookeeper.Create(HostPath(fleet.root, host), "{}");
      if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
      continue;
    }
    if (!edit(note->json)) return absl::OkStatus();
    absl::Status status = fleet.ledger->Change(
        held, {{ZooKeeperStep::Kind::kSet, HostPath(fleet.root, host), TextOf(note->json), *note->version}});
    if (!absl::IsFailedPrecondition(status) || attempt == kAttempts) return status;
  }
}

/// The same for what holds whoever has claims: no operation is under way.
template <typename Edit>
absl::Status ChangeUnclaimed(FleetOperator& fleet, const Host& host, const Edit& edit) {
  for (int attempt = 1;; ++attempt) {
    auto note = LoadNote(fleet, host);
    if (!note.ok()) return note.status();
    if (!edit(note->json)) return absl::OkStatus();
    const std::string path = HostPath(fleet.root, host);
    absl::Status status = note->version ? fleet.zookeeper.Set(path, TextOf(note->json), *note->version)
                                        : fleet.zookeeper.Create(path, TextOf(note->json));
    const bool crossed = absl::IsFailedPrecondition(status) || absl::IsAlreadyExists(status);
    if (!crossed || attempt == kAttempts) return status;
  }
}

Json ToJson(const MoveRange& shards) {
  return {{"mod", shards.space == ShardSpace::kMod}, {"first", shards.first}, {"last", shards.last}};
}

/// Returns the shards that a note has under kLeft; entries that do not parse are left out.
std::vector<MoveRange> LeftIn(const Json& note) {
  std::vector<MoveRange> left;
  for (const Json& entry : note.value(kLeft, Json::array())) {
    try {
      left.push_back({.space = entry.at("mod").get<bool>() ? ShardSpace::kMod : ShardSpace::kId,
                      .first = entry.at("first"),
                      .last = entry.at("last")});
    } catch (const Json::exception&) {
      continue;
    }
  }
  return left;
}

}  // namespace

absl::StatusOr<Note> LoadNote(FleetOperator& fleet, const Host& host) {
  const auto node = fleet.zookeeper.Get(HostPath(fleet.root, host), /*watch=*/false);
  if (absl::IsNotFound(node.status())) return Note{};
  if (!node.ok()) return node.status();
  Note note{.version = node->version, .changed_ms = node->changed_ms};
  Json json = Json::parse(node->data, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) note.json = std::move(json);
  return note;
}

Json NoteOrEmpty(FleetOperator& fleet, const Host& host) {
  auto note = LoadNote(fleet, host);
  return note.ok() ? std::move(note->json) : Json::object();
}

absl::Status WriteNote(FleetOperator& fleet, const Host& host, const Json& note, const Note* before) {
  auto next = before != nullptr ? *before : LoadNote(fleet, host);
  if (!next.ok()) return next.status();
  const Json before_json = std::exchange(next->json, note);
  for (const char* const kept : {kCopy, kLeft, kFenced}) {
    next->json.erase(kept);
    if (before_json.contains(kept)) next->json[kept] = before_json[kept];
  }
  if (!next->version) return fleet.zookeeper.Create(HostPath(fleet.root, host), TextOf(next->json));
  return fleet.zookeeper.Set(HostPath(fleet.root, host), TextOf(next->json), *next->version);
}

absl::Status BeginCopy(FleetOperator& fleet, const Held& held, const Host& host, const Host& master) {
  return Change(fleet, held, host, [&](Json& note) {
    note[kCopy] = {{"from", master.ToString()}, {"operation", held.id()}};
    return true;
  });
}

absl::Status EndCopy(FleetOperator& fleet, const Held& held, const Host& host) {
  return Change(fleet, held, host, [&](Json& note) {
    const Json copy = note.value(kCopy, Json::object());
    if (!copy.is_object() || copy.value("operation", "") != held.id()) return false;
    note.erase(kCopy);
    return true;
  });
}

absl::Status CheckCopyEnded(FleetOperator& fleet, const Host& host) {
  const auto note = LoadNote(fleet, host);
  if (!note.ok()) return note.status();
  const Json copy = note->json.value(kCopy, Json());
  if (!copy.is_object()) return absl::OkStatus();
  const auto from = copy.find("from");
  return Refuse(fmt::format(
      "{0}: a copy to it from {1} was begun and has not ended, so it lacks data: unless that is still "
      "at work (kv shards operations), kv shards replace-slave {0} --discard begins it again",
      host.ToString(), from != copy.end() && from->is_string() ? from->get<std::string>() : "its master"));
}

absl::Status RecordLeftCopies(FleetOperator& fleet, const Held& held, const Host& host,
                              const MoveRange& shards) {
  return Change(fleet, held, host, [&](Json& note) {
    Json left = Json::array();
    for (const MoveRange& range : LeftIn(note)) {
      if (range == shards) return false;
      left.push_back(ToJson(range));
    }
    left.push_back(ToJson(shards));
    note[kLeft] = std::move(left);
    return true;
  });
}

std::vector<MoveRange> LeftCopies(FleetOperator& fleet, const Host& host) {
  return LeftIn(NoteOrEmpty(fleet, host));
}

absl::Status ForgetLeftCopies(FleetOperator& fleet, const Held& held, const Host& host,
                              const MoveRange& shards) {
  if (LeftCopies(fleet, host).empty()) return absl::OkStatus();
  return Change(fleet, held, host, [&](Json& note) {
    Json left = Json::array();
    for (const MoveRange& range : LeftIn(note)) {
      if (!range.Overlaps(shards)) left.push_back(ToJson(range));
    }
    if (left.empty()) {
      note.erase(kLeft);
    } else {
      note[kLeft] = std::move(left);
    }
    return true;
  });
}

absl::Status RecordFenced(FleetOperator& fleet, const Host& host) {
  return ChangeUnclaimed(fleet, host, [&](Json& note) {
    note[kFenced] = {{"by", fleet.who.empty() ? ProcessName() : fleet.who}, {"at_ms", WallClockMs()}};
    return true;
  });
}

absl::Status ForgetFenced(FleetOperator& fleet, const Host& host, const Note& known) {
  return ChangeUnclaimed(fleet, host, [&](Json& note) {
    return HaveSameFence({.json = note}, known) && note.erase(kFenced) > 0;
  });
}

std::string FencedBy(const Note& note) {
  const auto fenced = note.json.find(kFenced);
  if (fenced == note.json.end()) return "";
  const auto by = fenced->is_object() ? fenced->find("by") : fenced->end();
  return by != fenced->end() && by->is_string() ? by->get<std::string>() : "somebody";
}

bool HaveSameFence(const Note& one, const Note& other) {
  return one.json.value(kFenced, Json()) == other.json.value(kFenced, Json());
}

Note WithoutFenced(Note note) {
  note.json.erase(kFenced);
  return note;
}

}  // namespace kvstore::shardops

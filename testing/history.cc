#include "testing/history.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <set>
#include <stdexcept>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace kvstore::testing {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

uint64_t Now() { return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()); }

/// An operation on one key, with its answer.
struct Op {
  uint64_t begin = 0;
  uint64_t end = 0;  // kNever if the outcome is unknown
  uint64_t value = 0;
  History::Kind kind = History::Kind::kRead;
};

/// Searches, depth first, for an order of operations that explains their answers: takes an operation that
/// could come next, goes on, and backtracks if no order follows. A state, which is the set of operations
/// taken and the register's value, is not tried twice. A read that could come next is taken at once: it
/// changes nothing, so an order that has it later is one that has it now, too.
class Search {
 public:
  explicit Search(std::vector<Op> ops) : ops_(std::move(ops)), done_(ops_.size(), false) {
    std::sort(ops_.begin(), ops_.end(), [](const Op& a, const Op& b) { return a.begin < b.begin; });
    needed_ = static_cast<size_t>(
        std::count_if(ops_.begin(), ops_.end(), [](const Op& op) { return op.end != kNever; }));
  }

  /// Returns nullopt if there is an order; else the operations around the place that the search did not get
  /// beyond.
  std::optional<std::string> Run() {
    struct Choice {
      size_t op;
      uint64_t value_before;
      size_t first_before;
    };
    std::vector<Choice> stack;
    uint64_t value = History::kNone;
    size_t first = 0;  // all operations before it are taken
    size_t needed = needed_;
    size_t from = 0;  // operations before it were tried as the next one
    size_t farthest = 0;
    while (needed > 0) {
      // An operation that began after another one ended, which is not taken yet, cannot come next.
      uint64_t bound = kNever;
      for (size_t i = first; i < ops_.size() && ops_[i].begin <= bound; ++i) {
        if (!done_[i]) bound = std::min(bound, ops_[i].end);
      }
      size_t chosen = ops_.size();
      bool read = false;
      for (size_t i = first; from == 0 && !read && i < ops_.size() && ops_[i].begin <= bound; ++i) {
        read = !done_[i] && ops_[i].kind == History::Kind::kRead && ops_[i].value == value;
        if (read && Take(i, value)) chosen = i;
      }
      for (size_t i = std::max(from, first); !read && i < ops_.size() && ops_[i].begin <= bound; ++i) {
        if (done_[i] || ops_[i].kind == History::Kind::kRead || !Take(i, ops_[i].value)) continue;
        chosen = i;
        break;
      }
      if (chosen < ops_.size()) {
        stack.push_back({chosen, value, first});
        const Op& op = ops_[chosen];
        if (op.kind != History::Kind::kRead) value = op.value;
        if (op.end != kNever) --needed;
        while (first < ops_.size() && done_[first]) ++first;
        farthest = std::max(farthest, first);
        from = 0;
        continue;
      }
      if (stack.empty()) return Describe(farthest);
      const Choice choice = stack.back();
      stack.pop_back();
      done_[choice.op] = false;
      Forget(choice.op);
      if (ops_[choice.op].end != kNever) ++needed;
      value = choice.value_before;
      first = choice.first_before;
      from = ops_[choice.op].kind == History::Kind::kRead ? ops_.size() : choice.op + 1;
    }
    return std::nullopt;
  }

 private:
  /// Takes an operation, after which the register has this value, unless that leads to a state that was tried
  /// before.
  bool Take(size_t op, uint64_t value) {
    done_[op] = true;
    if (seen_.insert(Fingerprint(op, value)).second) return true;
    Forget(op);
    done_[op] = false;
    return false;
  }
  /// Returns a hash of the state: the set of operations taken, with `added` added to it, and the value.
  uint64_t Fingerprint(size_t added, uint64_t value) {
    set_ ^= Mix(added);
    return set_ ^ Mix(value + (uint64_t{1} << 40));
  }
  void Forget(size_t op) { set_ ^= Mix(op); }
  static uint64_t Mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  std::string Describe(size_t at) const {
    std::string text;
    const size_t begin = at > 6 ? at - 6 : 0;
    for (size_t i = begin; i < std::min(ops_.size(), at + 8); ++i) {
      const Op& op = ops_[i];
      text += fmt::format("\n  {}{} {} [{}, {}]", i == at ? "> " : "  ",
                          op.kind == History::Kind::kWrite    ? "write"
                          : op.kind == History::Kind::kDelete ? "delete"
                                                              : "read",
                          op.value, op.begin / 1000,
                          op.end == kNever ? std::string("?") : std::to_string(op.end / 1000));
    }
    return text;
  }

  std::vector<Op> ops_;
  std::vector<bool> done_;
  size_t needed_ = 0;
  uint64_t set_ = 0;
  std::unordered_set<uint64_t> seen_;
};

/// Removes the operations of unknown outcome that nobody can have seen: an order with them is one without
/// them, too. Many of them together have more orders than a search can try.
void RemoveUnseen(std::vector<Op>& ops) {
  std::unordered_set<uint64_t> read;
  uint64_t last_none = 0;  // when the last read ended that found nothing
  for (const Op& op : ops) {
    if (op.kind != History::Kind::kRead) continue;
    read.insert(op.value);
    if (op.value == History::kNone) last_none = std::max(last_none, op.end);
  }
  std::erase_if(ops, [&](const Op& op) {
    if (op.end != kNever) return false;
    return op.kind == History::Kind::kDelete ? op.begin > last_none : !read.contains(op.value);
  });
}

}  // namespace

History::History(uint32_t keys, size_t capacity)
    : keys_(keys), capacity_(capacity), bytes_(sizeof(Shared) + capacity * sizeof(Operation)) {
  void* const memory =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for a history");
  shared_ = new (memory) Shared{};
  operations_ = reinterpret_cast<Operation*>(static_cast<char*>(memory) + sizeof(Shared));
}

History::~History() { ::munmap(shared_, bytes_); }

size_t History::size() const { return std::min(shared_->count.load(), capacity_); }

size_t History::Begin(uint32_t key, Kind kind, uint64_t value) {
  const size_t place = shared_->count.fetch_add(1);
  if (place >= capacity_) throw std::runtime_error("the history is full");
  Operation& operation = operations_[place];
  operation.key = key;
  operation.kind = kind;
  operation.value = value;
  operation.end.store(0, std::memory_order_relaxed);
  operation.begin = Now();
  return place;
}

void History::End(size_t place, uint64_t value) {
  Operation& operation = operations_[place];
  if (operation.kind == Kind::kRead) operation.value = value;
  operation.end.store(Now(), std::memory_order_release);
}

void History::EndBy(size_t place, std::chrono::steady_clock::time_point time) {
  operations_[place].end.store(static_cast<uint64_t>(time.time_since_epoch().count()),
                               std::memory_order_release);
}

void History::Fail(size_t place) { operations_[place].end.store(1, std::memory_order_release); }

std::optional<std::string> History::Check() const {
  std::vector<std::vector<Op>> by_key(keys_);
  for (size_t i = 0; i < size(); ++i) {
    const Operation& operation = operations_[i];
    const uint64_t end = operation.end.load(std::memory_order_acquire);
    if (end == 1 || operation.begin == 0 || (end == 0 && operation.kind == Kind::kRead)) continue;
    by_key[operation.key].push_back(
        {operation.begin, end == 0 ? kNever : end, operation.value, operation.kind});
  }
  for (uint32_t key = 0; key < keys_; ++key) {
    RemoveUnseen(by_key[key]);
    if (auto problem = Search(std::move(by_key[key])).Run()) return fmt::format("key {}:{}", key, *problem);
  }
  return std::nullopt;
}

}  // namespace kvstore::testing

// The orders again, written the slow and obvious way: vectors, a real shuffle buffer, one number at
// a time. Only the random bits come from the library.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <penstock/order/operations.hpp>

namespace penstock::order::model {

using Samples = std::vector<SampleId>;

// ---- the two shuffles, from their descriptions

inline std::uint64_t low_half(const std::array<std::uint32_t, 4>& words) {
  return words[0] | std::uint64_t{words[1]} << 32;
}
inline std::uint64_t high_half(const std::array<std::uint32_t, 4>& words) {
  return words[2] | std::uint64_t{words[3]} << 32;
}

/// Where a whole shuffle of `size` puts its positions, for any size that fits in memory.
inline std::vector<std::uint64_t> permutation(std::uint64_t size, const RandomKey& key,
                                              std::uint32_t iteration) {
  std::vector<std::uint64_t> image(size);
  for (std::uint64_t i = 0; i < size; ++i) image[i] = i;
  if (size <= 256) {  // Fisher and Yates, from the back
    for (std::uint64_t i = size; i > 1; --i)
      std::swap(image[i - 1], image[scale_to(low_half(key.bits(i, iteration, 0)), i)]);
    return image;
  }
  const auto bits = static_cast<unsigned>(std::bit_width(size - 1));
  const unsigned high_bits = bits / 2;
  const unsigned low_bits = bits - high_bits;
  for (std::uint64_t& value : image) {
    do {  // walk the cycle until the value is inside
      std::uint64_t high = value >> low_bits;
      std::uint64_t low = value % (std::uint64_t{1} << low_bits);
      for (std::uint64_t round = 0; round < 24; ++round) {
        const auto words = key.bits(round, iteration, 1);
        const std::uint64_t factor = low_half(words) | 1;
        const std::uint64_t summand = high_half(words);
        if (round % 2 == 0)
          high ^= (low * factor + summand) >> (64 - high_bits);
        else
          low ^= (high * factor + summand) >> (64 - low_bits);
      }
      value = (high << low_bits) + low;
    } while (value >= size);
  }
  return image;
}

/// tf.data's buffer: fill it, then pick one and refill its place; at the end fill the hole with the
/// last. `pick(position, n)` chooses below n.
template <typename Value, typename Pick>
std::vector<Value> window(const std::vector<Value>& input, std::uint64_t buffer, const Pick& pick) {
  std::vector<Value> held;
  std::vector<Value> out;
  auto next = input.begin();
  while (next != input.end() && held.size() < buffer) held.push_back(*next++);
  while (!held.empty()) {
    Value& place = held.at(pick(out.size(), held.size()));
    out.push_back(place);
    if (next != input.end()) {
      place = *next++;
    } else {
      place = held.back();
      held.pop_back();
    }
  }
  return out;
}

/// The window's pick at a position: a half of the bits of a pair of positions.
inline std::uint64_t pick(const RandomKey& key, std::uint32_t iteration, std::uint64_t position,
                          std::uint64_t n) {
  const auto words = key.bits(position / 2, iteration, 0);
  return scale_to(position % 2 == 0 ? low_half(words) : high_half(words), n);
}

// ---- plans

enum class Verb { take, skip, shard, repeat, shuffle, window };

struct Op {
  Verb verb;
  std::uint64_t a = 0;  ///< count, shards, times or buffer
  std::uint64_t b = 0;  ///< the shard's index
  bool endless = false;
  bool reshuffle = true;
  RandomKey key;
};

struct Plan {
  std::uint64_t size = 0;
  std::uint32_t source = 0;
  std::vector<Op> ops;
};

constexpr std::uint64_t kForEver = std::numeric_limits<std::uint64_t>::max();

/// Positions in one iteration of the first `depth` operations; kForEver for an endless order.
inline std::uint64_t size(const Plan& plan, std::size_t depth) {
  if (depth == 0) return plan.size;
  const Op& op = plan.ops[depth - 1];
  const std::uint64_t n = size(plan, depth - 1);
  switch (op.verb) {
    case Verb::take:
      return std::min(n, op.a);
    case Verb::skip:
      return n == kForEver ? n : n - std::min(n, op.a);
    case Verb::shard:
      if (n == kForEver) return n;
      return static_cast<std::uint64_t>(std::max<std::int64_t>(
          0, (static_cast<std::int64_t>(n) - static_cast<std::int64_t>(op.b) +
              static_cast<std::int64_t>(op.a) - 1) /
                 static_cast<std::int64_t>(op.a)));
    case Verb::repeat:
      return n == 0 ? 0 : op.endless ? kForEver : n * op.a;
    case Verb::shuffle:
    case Verb::window:
      return n;
  }
  return 0;
}

/// Passes over the source in one iteration; none where a repeat is endless.
inline std::optional<std::uint32_t> epochs(const Plan& plan, std::size_t depth) {
  if (depth == 0) return 1;
  const Op& op = plan.ops[depth - 1];
  const auto below = epochs(plan, depth - 1);
  if (op.verb != Verb::repeat || !below) return below;
  if (!op.endless) return static_cast<std::uint32_t>(*below * op.a);
  return size(plan, depth - 1) == 0 ? std::optional<std::uint32_t>(0) : std::nullopt;
}

/// The first `limit` samples of an iteration of the first `depth` operations, or all there are.
inline Samples samples(const Plan& plan, std::size_t depth, std::uint32_t iteration,
                       std::uint64_t limit) {
  Samples out;
  if (depth == 0) {
    for (std::uint64_t i = 0; i < std::min(plan.size, limit); ++i)
      out.push_back({i, iteration, plan.source});
    return out;
  }
  const Op& op = plan.ops[depth - 1];
  const auto below = [&](std::uint64_t n) { return samples(plan, depth - 1, iteration, n); };
  switch (op.verb) {
    case Verb::take:
      out = below(std::min(limit, op.a));
      break;
    case Verb::skip:
      out = below(limit + op.a);
      out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(
                                               std::min<std::uint64_t>(op.a, out.size())));
      break;
    case Verb::shard: {
      const Samples all = below(limit * op.a);
      for (std::size_t p = 0; p < all.size(); ++p)
        if (p % op.a == op.b) out.push_back(all[p]);
      break;
    }
    case Verb::repeat:
      for (std::uint64_t pass = 0; size(plan, depth - 1) != 0 && out.size() < limit; ++pass) {
        if (!op.endless && pass == op.a) break;
        const auto run = static_cast<std::uint32_t>(iteration * op.a + pass);
        const Samples one = samples(plan, depth - 1, run, size(plan, depth - 1));
        out.insert(out.end(), one.begin(), one.end());
      }
      break;
    case Verb::shuffle: {
      const Samples all = below(size(plan, depth - 1));
      for (const std::uint64_t p : permutation(all.size(), op.key, op.reshuffle ? iteration : 0))
        out.push_back(all[p]);
      break;
    }
    case Verb::window: {
      const Samples all = below(limit + op.a);
      out = window(all, op.a, [&](std::uint64_t position, std::uint64_t n) {
        return pick(op.key, op.reshuffle ? iteration : 0, position, n);
      });
      break;
    }
  }
  if (out.size() > limit) out.resize(limit);
  return out;
}

inline OrderPtr build(const Plan& plan) {
  OrderPtr order = range(plan.size, plan.source);
  for (const Op& op : plan.ops) switch (op.verb) {
      case Verb::take:
        order = take(order, op.a);
        break;
      case Verb::skip:
        order = skip(order, op.a);
        break;
      case Verb::shard:
        order = shard(order, static_cast<std::int64_t>(op.a), static_cast<std::int64_t>(op.b));
        break;
      case Verb::repeat:
        order = op.endless ? repeat(order) : repeat(order, static_cast<std::int64_t>(op.a));
        break;
      case Verb::shuffle:
        order = shuffle(order, op.key, op.reshuffle);
        break;
      case Verb::window:
        order = shuffle_window(order, op.key, op.a, op.reshuffle);
        break;
    }
  return order;
}

/// How large a random plan's numbers get.
struct Scale {
  std::uint64_t size;
  std::uint64_t times;
  std::uint64_t count;  ///< of take, skip and buffer
  std::uint64_t shards;
};

/// A plan of one to six operations that may stand on one another. The same for the same seed, with
/// every standard library.
inline Plan random_plan(std::uint64_t seed, const Scale& scale) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t n) { return random() % (n + 1); };
  // 0 and 1 in one of ten, so that most plans stay long enough to tell something.
  const auto mostly = [&](std::uint64_t n) { return up_to(9) == 0 ? up_to(1) : 2 + up_to(n - 2); };
  Plan plan{.size = mostly(scale.size), .source = static_cast<std::uint32_t>(up_to(1)), .ops = {}};
  for (std::uint64_t left = 1 + up_to(5); left != 0; --left) {
    const std::size_t depth = plan.ops.size();
    Op op{.verb = static_cast<Verb>(up_to(5)),
          .reshuffle = up_to(3) != 0,
          .key = RandomKey(seed, static_cast<std::uint32_t>(depth))};
    switch (op.verb) {
      case Verb::take:
      case Verb::skip:
        op.a = up_to(scale.count);
        break;
      case Verb::shard:
        op.a = 1 + up_to(scale.shards - 1);
        op.b = up_to(op.a - 1);
        break;
      case Verb::repeat:
        if (size(plan, depth) == kForEver || !epochs(plan, depth)) continue;  // refused
        op.endless = up_to(4) == 0;
        op.a = op.endless ? 0 : mostly(scale.times);
        break;
      case Verb::shuffle:
        if (size(plan, depth) == kForEver) continue;  // refused
        break;
      case Verb::window:
        op.a = 1 + up_to(scale.count);
        break;
    }
    plan.ops.push_back(op);
  }
  return plan;
}

}  // namespace penstock::order::model

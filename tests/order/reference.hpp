// What every order should be, written down plainly: whole vectors, one number at a time, and random
// numbers straight from philox4x32. Shares no code with src/order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "src/order/mix.hpp"
#include "src/order/operations.hpp"

namespace penstock {

inline void PrintTo(const SampleId& id, std::ostream* out) {
  *out << id.number << " (epoch " << id.epoch << ", source " << id.source << ", draw " << id.draw
       << ")";
}

namespace reference {

using Samples = std::vector<SampleId>;

/// The first `limit` samples of an iteration.
using Model = std::function<Samples(std::uint32_t iteration, std::uint64_t limit)>;

inline Model range(std::uint64_t size, std::uint32_t source = 0) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    Samples out;
    for (std::uint64_t n = 0; n < size && n < limit; ++n) out.push_back({n, iteration, source});
    return out;
  };
}

inline Model take(Model input, std::uint64_t count) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    return input(iteration, std::min(count, limit));
  };
}

inline Model skip(Model input, std::uint64_t count) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    Samples out = input(iteration, limit + count);
    out.erase(out.begin(),
              out.begin() + static_cast<long>(std::min<std::size_t>(count, out.size())));
    return out;
  };
}

inline Model shard(Model input, std::uint64_t shards, std::uint64_t index) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    const Samples all = input(iteration, limit * shards);
    Samples out;
    for (std::uint64_t p = 0; p < all.size(); ++p)
      if (p % shards == index) out.push_back(all[p]);
    return out;
  };
}

inline Model repeat(Model input, std::optional<std::uint32_t> times) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    Samples out;
    for (std::uint32_t pass = 0; out.size() < limit && (!times || pass < *times); ++pass) {
      const Samples once = input(iteration * times.value_or(0) + pass, limit - out.size());
      if (once.empty()) break;
      out.insert(out.end(), once.begin(), once.end());
    }
    return out;
  };
}

inline Model repeat_each(Model input, std::uint64_t times) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    Samples out;
    for (const SampleId& sample : input(iteration, limit))
      for (std::uint64_t k = 0; k < times && out.size() < limit; ++k) {
        out.push_back(sample);
        out.back().draw = out.size();
      }
    return out;
  };
}

/// Where each position's number comes from in a whole shuffle.
inline std::vector<std::uint64_t> permutation(std::uint64_t size, const RandomKey& key,
                                              std::uint32_t iteration) {
  std::vector<std::uint64_t> image(size);
  if (size <= 256) {
    for (std::uint64_t n = 0; n < size; ++n) image[n] = n;
    for (std::uint64_t left = size; left > 1; --left)
      std::swap(image[left - 1], image[scale_to(key.u64(left, iteration, 0), left)]);
    return image;
  }
  const int bits = std::bit_width(size - 1);
  const int low_bits = (bits + 1) / 2;
  const int high_bits = bits / 2;
  for (std::uint64_t n = 0; n < size; ++n) {
    std::uint64_t value = n;
    do {
      std::uint64_t high = value >> low_bits;
      std::uint64_t low = value % (std::uint64_t{1} << low_bits);
      for (std::uint32_t round = 0; round < 24; ++round) {
        const auto words = key.bits(round, iteration, 1);
        const std::uint64_t factor = (words[0] | std::uint64_t{words[1]} << 32) | 1;
        const std::uint64_t summand = words[2] | std::uint64_t{words[3]} << 32;
        if (round % 2 == 0)
          high ^= (low * factor + summand) >> (64 - high_bits);
        else
          low ^= (high * factor + summand) >> (64 - low_bits);
      }
      value = high << low_bits | low;
    } while (value >= size);
    image[n] = value;
  }
  return image;
}

inline Model shuffle(Model input, RandomKey key, bool reshuffle) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    const Samples all = input(iteration, 1'000'000);
    Samples out;
    for (const std::uint64_t from : permutation(all.size(), key, reshuffle ? iteration : 0)) {
      if (out.size() == limit) break;
      out.push_back(all[from]);
    }
    return out;
  };
}

/// Runs of samples with the same `chunk_of`, in a random order.
template <class ChunkOf>
Model shuffle_chunks(Model input, ChunkOf chunk_of, RandomKey key, bool reshuffle) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    std::vector<Samples> chunks;
    std::optional<std::uint64_t> last;
    for (const SampleId& sample : input(iteration, 1'000'000)) {
      const std::uint64_t chunk = chunk_of(sample.number);
      if (last != chunk) chunks.emplace_back();
      last = chunk;
      chunks.back().push_back(sample);
    }
    Samples out;
    for (const std::uint64_t k : permutation(chunks.size(), key, reshuffle ? iteration : 0))
      for (const SampleId& sample : chunks[k])
        if (out.size() < limit) out.push_back(sample);
    return out;
  };
}

/// The 64 random bits that a window or a sample has for a position.
inline std::uint64_t window_draw(const RandomKey& key, std::uint32_t iteration,
                                 std::uint64_t position) {
  const auto own = key.bits(0, 0, 0);
  const std::uint64_t block = position / 2;
  const auto words = philox4x32(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), iteration, 0},
      {own[0], own[1]});
  const std::size_t half = position % 2 * 2;
  return words[half] | std::uint64_t{words[half + 1]} << 32;
}

/// tf.data's buffer: fill it; put out a picked one and take the next input in its place; without
/// input, close the gap with the last.
inline Model shuffle_window(Model input, RandomKey key, std::uint64_t places, bool reshuffle) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    const Samples all = input(iteration, limit + places);
    Samples buffer;
    Samples out;
    std::size_t next = 0;
    while (next < all.size() && buffer.size() < places) buffer.push_back(all[next++]);
    while (!buffer.empty() && out.size() < limit) {
      const std::uint64_t draw = window_draw(key, reshuffle ? iteration : 0, out.size());
      SampleId& picked = buffer[scale_to(draw, buffer.size())];
      out.push_back(picked);
      if (next < all.size()) {
        picked = all[next++];
      } else {
        picked = buffer.back();
        buffer.pop_back();
      }
    }
    return out;
  };
}

inline Model pick(Model input, std::vector<std::uint64_t> positions) {
  const std::set<std::uint64_t> different(positions.begin(), positions.end());
  const bool repeats = different.size() < positions.size();
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    Samples out;
    if (positions.empty()) return out;
    const Samples all = input(iteration, 1 + *std::ranges::max_element(positions));
    for (const std::uint64_t position : positions) {
      if (out.size() == limit) break;
      out.push_back(all[position]);
      if (repeats) out.back().draw = out.size();
    }
    return out;
  };
}

/// With equal weights.
inline Model sample(Model input, std::uint64_t count, RandomKey key, bool reshuffle) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    const Samples all = input(iteration, 1'000'000);
    Samples out;
    while (out.size() < std::min(count, limit)) {
      const std::uint64_t draw = window_draw(key, reshuffle ? iteration : 0, out.size());
      out.push_back(all[scale_to(draw, all.size())]);
      out.back().draw = out.size();
    }
    return out;
  };
}

inline Model concatenate(std::vector<Model> inputs) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    Samples out;
    for (const Model& input : inputs) {
      const Samples some = input(iteration, limit - out.size());
      out.insert(out.end(), some.begin(), some.end());
    }
    return out;
  };
}

/// Blocks of quotas, shuffled; integers as weights. An input of none in `sizes` is endless.
inline Model mix(std::vector<Model> inputs, std::vector<std::optional<std::uint64_t>> sizes,
                 std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>> weights,
                 RandomKey key, bool until_all) {
  return [=](std::uint32_t iteration, std::uint64_t limit) {
    std::vector<Samples> all;
    for (const Model& input : inputs) all.push_back(input(iteration, limit + 2000));
    std::vector<std::uint64_t> taken(inputs.size());
    Samples out;
    std::size_t change = 0;
    while (out.size() < limit) {
      while (change + 1 < weights.size() && weights[change + 1].first <= out.size()) ++change;
      std::vector<std::uint64_t> shares = weights[change].second;
      for (std::size_t k = 0; k < shares.size(); ++k) {
        if (shares[k] == 0 || taken[k] != sizes[k]) continue;
        if (!until_all) return out;
        shares[k] = 0;
      }
      std::uint64_t common = 0;
      for (const std::uint64_t share : shares) common = std::gcd(common, share);
      if (common == 0) return out;
      const std::uint64_t sum = std::accumulate(shares.begin(), shares.end(), 0ULL) / common;
      const std::uint64_t times = (64 + sum - 1) / sum;
      for (std::uint64_t& share : shares) share = share / common * times;
      // Blocks until an input cannot fill its share; the last one is as much shorter as it falls
      // short.
      for (bool last = false; !last && out.size() < limit;) {
        std::vector<std::uint64_t> quotas = shares;
        for (std::size_t k = 0; k < shares.size(); ++k) {
          if (shares[k] == 0 || !sizes[k] || *sizes[k] - taken[k] >= shares[k]) continue;
          last = true;
          for (std::size_t other = 0; other < shares.size(); ++other)
            quotas[other] =
                std::min(quotas[other], shares[other] * (*sizes[k] - taken[k]) / shares[k]);
        }
        std::vector<std::size_t> turns;
        for (std::size_t k = 0; k < quotas.size(); ++k) turns.insert(turns.end(), quotas[k], k);
        for (std::uint64_t left = turns.size(); left > 1; --left)
          std::swap(turns[left - 1],
                    turns[scale_to(key.u64(out.size() + left - 1, iteration, 0), left)]);
        for (const std::size_t turn : turns) {
          if (out.size() == limit) break;
          if (change + 1 < weights.size() && out.size() == weights[change + 1].first) {
            last = true;
            break;
          }
          out.push_back(all[turn][taken[turn]++]);
        }
      }
    }
    return out;
  };
}

}  // namespace reference

/// The samples at first, first + stride, …, at most `limit`.
inline reference::Samples read(order::OrderCursor& cursor, std::uint32_t iteration,
                               std::uint64_t first, std::uint64_t stride, std::size_t limit) {
  reference::Samples out(limit);
  out.resize(cursor.read(iteration, first, stride, out));
  return out;
}

/// The first `limit` samples of an iteration, from a cursor of their own.
inline reference::Samples read(const order::OrderPtr& order, std::size_t limit,
                               std::uint32_t iteration = 0) {
  return read(*order->open(), iteration, 0, 1, limit);
}

inline std::vector<std::uint64_t> numbers(const reference::Samples& samples) {
  std::vector<std::uint64_t> out;
  for (const SampleId& id : samples) out.push_back(id.number);
  return out;
}

/// The message that `act` throws an Exception with; fails the test if it throws none.
template <class Exception, class Act>
std::string message_of(Act&& act) {
  try {
    act();
  } catch (const Exception& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// How often each outcome was seen, against how often it should be.
class ChiSquare {
 public:
  void add(double seen, double expected) {
    statistic_ += (seen - expected) * (seen - expected) / expected;
    ++cells_;
  }
  /// How many standard deviations above its mean the statistic is, with `freedom` degrees of
  /// freedom (cells - 1 where not said). A fair order passes 3.72 once in 10,000 times.
  ///
  /// Source  Wilson and Hilferty's cube-root approximation
  [[nodiscard]] double z(std::optional<double> freedom = {}) const {
    const double k = freedom.value_or(cells_ - 1);
    const double spread = 2 / (9 * k);
    return (std::cbrt(statistic_ / k) - (1 - spread)) / std::sqrt(spread);
  }

 private:
  double statistic_ = 0;
  double cells_ = 0;
};

inline constexpr double kOnceIn10000 = 3.72;

}  // namespace penstock

// loader/epochs: a Loader's steps, epoch by epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include <penstock/loader/loader.hpp>

namespace penstock {

/// The steps of one epoch that are left.
class Epoch {
 public:
  Epoch(Loader& loader, std::uint32_t number) : loader_(&loader), number_(number) {}
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] Loader::Iterator begin() const { return {*loader_, number_}; }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  Loader* loader_;
  std::uint32_t number_;
};

/// The epochs that are left. Advancing skips what is left of the current one.
class Epochs {
 public:
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Epoch;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Loader& loader) : loader_(&loader), number_(loader.next_epoch()) {}
    [[nodiscard]] Epoch operator*() const { return {*loader_, *number_}; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.number_; }

   private:
    Loader* loader_;
    std::optional<std::uint32_t> number_;
  };

  explicit Epochs(Loader& loader) : loader_(&loader) {}
  [[nodiscard]] Iterator begin() const { return Iterator(*loader_); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  Loader* loader_;
};

}  // namespace penstock

#include <charconv>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/device/device.hpp>

namespace penstock {

namespace {

std::optional<int> to_index(std::string_view text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<Device::Kind> to_kind(std::string_view text) {
  if (text == "host") return Device::Kind::host;
  if (text == "cuda") return Device::Kind::cuda;
  return std::nullopt;
}

}  // namespace

Device Device::parse(std::string_view name) {
  const std::size_t colon = name.find(':');
  const auto kind = to_kind(name.substr(0, colon));
  const auto index = colon == std::string_view::npos ? 0 : to_index(name.substr(colon + 1));
  if (!kind || !index)
    throw std::invalid_argument(fmt::format("a device is host:i or cuda:i, found '{}'", name));
  return {.kind = *kind, .index = *index};
}

std::string Device::to_string() const {
  return fmt::format("{}:{}", kind == Kind::host ? "host" : "cuda", index);
}

std::vector<Device> host_devices(int count) {
  if (count < 1)
    throw std::invalid_argument(fmt::format("at least 1 host device, found {}", count));
  std::vector<Device> devices;
  for (int index = 0; index < count; ++index) devices.push_back({Device::Kind::host, index});
  return devices;
}

std::vector<Device> parse_devices(std::string_view spec) {
  if (spec == "auto") return all_gpus_or_host();
  const bool is_list = spec.find(',') != std::string_view::npos;
  if (!is_list && spec.starts_with("host:") && spec != "host:0")
    if (const auto count = to_index(spec.substr(5))) return host_devices(*count);
  std::vector<Device> devices;
  std::string_view rest = spec;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const auto bare_index = to_index(item);
    if (bare_index && !devices.empty()) {
      devices.push_back({devices.back().kind, *bare_index});  // the 1 of "cuda:0,1"
    } else {
      try {
        devices.push_back(Device::parse(item));
      } catch (const std::invalid_argument&) {
        throw std::invalid_argument(
            fmt::format("expected auto, host:4 (four host devices), or devices such as cuda:0,1 or "
                        "host:0,host:1; found '{}'",
                        spec));
      }
    }
    if (comma == std::string_view::npos) return devices;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<Device> all_gpus_or_host(const Launch& launch) {
  const auto count = static_cast<std::uint32_t>(gpu_count());
  if (count == 0) return host_devices(1);
  std::vector<Device> own;
  for (std::uint32_t gpu = launch.local_rank; gpu < count; gpu += launch.local_world)
    own.push_back({Device::Kind::cuda, static_cast<int>(gpu)});
  if (own.empty()) own.push_back({Device::Kind::cuda, static_cast<int>(launch.local_rank % count)});
  return own;
}

}  // namespace penstock

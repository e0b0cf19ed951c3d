#include "throughput_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace throughput {

namespace ps = penstock;

namespace {

constexpr double kMiB = 1 << 20;

double per_second(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string advice(const ps::Stats& stats) {
  const std::string_view bottleneck = stats.bottleneck();
  if (bottleneck == "consumer") return "the input keeps up: the consumer is what limits the speed";
  if (bottleneck == "decode")
    return fmt::format(
        "decoding limits the speed: {} threads were busy with it; give it more cores, or smaller "
        "images",
        stats.threads);
  if (bottleneck == "read")
    return "reading limits the speed: the storage is slow or cold; keep the data nearer or in "
           "fewer, larger files";
  if (bottleneck == "slot")
    return "no slot was free: batches are held too long, or copies are slow; raise --depth";
  if (bottleneck == "copy") return "copying to the devices limits the speed";
  return "drawing the order limits the speed: is the shuffle window very large?";
}

// Images that were decoded ahead but not delivered count, too.
std::string decoders(const JpegReport& jpeg) {
  std::string text = fmt::format("Penstock {}", jpeg.counts.own);
  if (jpeg.has_index) text += fmt::format(" ({} by an index)", jpeg.counts.indexed);
  std::uint64_t others = 0;
  std::string reasons;
  for (std::size_t i = 0; i < ps::kJpegFallbacks; ++i) {
    if (jpeg.counts.libjpeg[i] == 0) continue;
    others += jpeg.counts.libjpeg[i];
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ",
                           ps::to_string(static_cast<ps::JpegFallback>(i)), jpeg.counts.libjpeg[i]);
  }
  if (others != 0) text += fmt::format(", libjpeg-turbo {} ({})", others, reasons);
  return text;
}

nlohmann::json jpeg_json(const JpegReport& jpeg) {
  using nlohmann::json;
  json libjpeg = json::object();
  for (std::size_t i = 0; i < ps::kJpegFallbacks; ++i)
    libjpeg[std::string(ps::to_string(static_cast<ps::JpegFallback>(i)))] = jpeg.counts.libjpeg[i];
  json object{
      {"own", jpeg.counts.own}, {"indexed", jpeg.counts.indexed}, {"libjpeg", std::move(libjpeg)}};
  object["index"] = jpeg.has_index
                        ? json{{"images", jpeg.index_images}, {"bytes", jpeg.index_bytes}}
                        : json(nullptr);
  return object;
}

}  // namespace

std::string to_text(const Report& report) {
  const ps::Stats& stats = report.stats;
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("{:<14}{}\n", label, value);
  };
  if (report.world > 1) line("process", fmt::format("{} of {}", report.rank, report.world));
  line("throughput",
       fmt::format("{:.0f} images/s, {:.1f} MB/s read", per_second(stats.samples, stats.seconds),
                   per_second(stats.bytes_read, stats.seconds) / 1e6));
  line("delivered",
       fmt::format("{} images in {} steps, {:.2f} s", stats.samples, stats.steps, stats.seconds));
  for (const EpochReport& epoch : report.epochs)
    line("", fmt::format("epoch {}: {} images, {:.0f} images/s", epoch.epoch, epoch.samples,
                         per_second(epoch.samples, epoch.seconds)));
  line("first batch", fmt::format("{:.0f} ms", stats.first_batch_s * 1e3));

  line("stall",
       fmt::format("{:.1f}% of the time after the first batch", stats.stall_fraction * 100));
  std::string waits;
  for (std::size_t stage = 0; stage < ps::kStages; ++stage)
    if (stats.stages[stage].wait_s >= 0.0005)
      waits += fmt::format("{}{} {:.3f} s", waits.empty() ? "" : ", ",
                           ps::name_of(static_cast<ps::Stage>(stage)), stats.stages[stage].wait_s);
  line("waited for", waits.empty() ? "nothing" : waits);
  line("bottleneck", fmt::format("{}: {}", stats.bottleneck(), advice(stats)));

  if (stats.retries > 0)
    line("read again", fmt::format("{} times, after transient errors", stats.retries));
  line("memory", fmt::format("{:.0f} MiB by the loader ({} slots), {:.0f} MiB in all",
                             static_cast<double>(stats.memory_peak_bytes) / kMiB, stats.slots,
                             report.peak_rss_mb));
  line("JPEG decoders", decoders(report.jpeg));
  if (report.jpeg.has_index)
    line("JPEG index", fmt::format("{} images, {:.1f} MiB", report.jpeg.index_images,
                                   static_cast<double>(report.jpeg.index_bytes) / kMiB));
  std::string devices;
  for (std::size_t device = 0; device < report.devices.size(); ++device)
    devices += fmt::format("{}{} {}", device == 0 ? "" : ", ", report.devices[device].to_string(),
                           report.device_samples[device]);
  line("devices", devices);
  line("seed", std::to_string(report.seed));
  if (report.has_digest) line("digest", report.digest.to_string());
  if (stats.faults > 0) {
    line("bad samples", std::to_string(stats.faults));
    constexpr std::size_t kShown = 10;
    for (std::size_t i = 0; i < std::min(report.faults.size(), kShown); ++i)
      line("", report.faults[i].to_string());
    if (stats.faults > kShown)
      line("", fmt::format("and {} more (--json lists 100)", stats.faults - kShown));
  }
  return text;
}

std::string to_json(const Report& report) {
  using nlohmann::json;
  const ps::Stats& stats = report.stats;
  json stages = json::object();
  for (std::size_t stage = 0; stage < ps::kStages; ++stage)
    stages[std::string(ps::name_of(static_cast<ps::Stage>(stage)))] = {
        {"wait_s", stats.stages[stage].wait_s}, {"busy_s", stats.stages[stage].busy_s}};
  json epochs = json::array();
  for (const EpochReport& epoch : report.epochs)
    epochs.push_back({{"epoch", epoch.epoch},
                      {"samples", epoch.samples},
                      {"seconds", epoch.seconds},
                      {"samples_per_s", per_second(epoch.samples, epoch.seconds)}});
  json devices = json::array();
  for (std::size_t device = 0; device < report.devices.size(); ++device)
    devices.push_back(
        {{"name", report.devices[device].to_string()}, {"samples", report.device_samples[device]}});
  json faults = json::array();
  for (const ps::Fault& fault : report.faults)
    faults.push_back({{"sample", fault.sample.number},
                      {"epoch", fault.sample.epoch},
                      {"step", fault.step},
                      {"row", fault.row},
                      {"file", fault.file},
                      {"offset", fault.offset},
                      {"reason", fault.reason}});
  const json object{
      {"samples", stats.samples},
      {"steps", stats.steps},
      {"epochs", report.epochs.size()},
      {"seconds", stats.seconds},
      {"samples_per_s", per_second(stats.samples, stats.seconds)},
      {"per_epoch", std::move(epochs)},
      {"bytes_read", stats.bytes_read},
      {"stall_fraction", stats.stall_fraction},
      {"consume_s", stats.consume_s},
      {"first_batch_ms", stats.first_batch_s * 1e3},
      {"bottleneck", stats.bottleneck()},
      {"stages", std::move(stages)},
      {"peak_rss_mb", report.peak_rss_mb},
      {"budget_peak_mb", static_cast<double>(stats.memory_peak_bytes) / kMiB},
      {"threads", stats.threads},
      {"io_threads", stats.io_threads},
      {"retries", stats.retries},
      {"seed", report.seed},
      {"world", report.world},
      {"devices", std::move(devices)},
      {"jpeg", jpeg_json(report.jpeg)},
      {"faults", {{"count", stats.faults}, {"list", std::move(faults)}}},
      {"digest", report.has_digest ? json(report.digest.to_string()) : json(nullptr)},
      {"version", PENSTOCK_VERSION},
  };
  // A file name may be any bytes.
  return object.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace throughput
